/* SPDX-License-Identifier: Apache-2.0 */
/* maps: what is mapped where in a process, and the files behind it. Knows nothing of threads or
 * stacks. One thread at a time. Source: proc_pid_maps(5), proc_pid_map_files(5). */
#ifndef CC_MAPS_H
#define CC_MAPS_H

#include "base.h"
#include "elf_file.h"
#include "rule.h"

/* Files that processes have mapped, each opened and read once. */
struct file_cache;

CC_NODISCARD int file_cache_new(struct file_cache **ret);
/* From now on tables of large files are looked up in @tables, which it takes, and kept there. */
void file_cache_keep(struct file_cache *c, struct table_cache *tables);
void file_cache_free(struct file_cache *c);        /* NULL is a no-op; files in use live on */
size_t file_cache_mem(const struct file_cache *c); /* bytes */

/* The file that @fd is open on, shared if it is known: same device, inode, size and time of last
 * change. Takes @fd. The caller drops the reference. Returns 0, or as elf_file_new(). */
CC_NODISCARD int file_cache_open(struct file_cache *c, int fd, struct elf_file **ret);

/* The vDSO is no file, but the kernel maps the same pages into every 64-bit process: a copy of
 * ours. The caller drops the reference. NULL: there is none. */
struct elf_file *file_cache_vdso(struct file_cache *c);

struct mapping {
	uint64_t start, end; /* addresses */
	uint64_t off;        /* in the file */
	uint64_t ino;        /* 0: anonymous */
	uint32_t dev;        /* as the kernel's s_dev: major << 20 | minor */
	uint32_t path;       /* offset in maps.text */
	uint32_t since;      /* the generation in which what is here came here */
	bool exec, write;
	bool told;             /* free for the user of the maps; survives a refresh */
	bool tried;            /* to open it */
	struct elf_file *file; /* NULL: not opened yet, or cannot be */
};

struct maps {
	uint32_t tgid;
	struct mapping *v; /* sorted by address */
	size_t cnt;
	char *text;  /* all paths, NUL-terminated; hostile bytes */
	size_t last; /* index of the last hit */
};

void maps_init(struct maps *m, uint32_t tgid);
void maps_done(struct maps *m);

/* Reads /proc/TGID/maps anew. Mappings that are as before keep their file and marks.
 * *ret_changed: one of the old ones is gone or different, so that what was learned from it is void.
 * Returns 0, -ESRCH if the process is gone, -ENOMEM or another -errno; on failure @m is as before.
 */
CC_NODISCARD int maps_refresh(struct maps *m, bool *ret_changed);

/* As maps_refresh() from a text of @len bytes. */
CC_NODISCARD int maps_parse(struct maps *m, const char *text, size_t len, bool *ret_changed);

/* The same for who must know what was where before. */
struct maps_news {
	uint32_t gen;    /* in: the since of what is new; what only grew or shrank keeps its own */
	bool fresh;      /* something is new */
	bool changed;    /* as *ret_changed */
	struct maps old; /* those of before, as they were; the caller's. Empty on failure */
};
CC_NODISCARD int maps_renew(struct maps *m, struct maps_news *n);
CC_NODISCARD int maps_renew_by(struct maps *m, const char *text, size_t len, struct maps_news *n);

struct mapping *maps_find(struct maps *m, uint64_t addr); /* NULL: nothing is mapped there */

/* What code lies where: equal only if all executable mappings are. */
void maps_layout(const struct maps *m, struct cc_layout *ret);

static inline const char *maps_path(const struct maps *m, const struct mapping *p)
{
	return m->text + p->path;
}

/* The last part of the path: "libc.so.6", "[vdso]"; "" if it has none. " (deleted)" is cut off:
 * *ret_len bytes count, not up to the NUL. */
const char *maps_base_name(const struct maps *m, const struct mapping *p, size_t *ret_len);

/* The file behind @p, opened at the first call: by map_files, which is the very file that is mapped
 * even if it was deleted or lies in another mount namespace; without the right for that by
 * /proc/PID/root or exe, if inode or build-id agree. NULL: there is none, or it cannot be read. */
struct elf_file *maps_file(struct maps *m, struct mapping *p, struct file_cache *c);

/* Turns @addr within @p into an address of @f as linked. Returns 0 or -ENOENT. */
CC_NODISCARD int maps_vaddr(const struct mapping *p, const struct elf_file *f, uint64_t addr,
			    uint64_t *ret);

#endif
