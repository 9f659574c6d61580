/* SPDX-License-Identifier: Apache-2.0 */
/* elf_file: one mapped file: its build-id, its functions and data by address, its FDEs. Addresses
 * here are as linked ("vaddr"); maps.h turns addresses of a process into these. Separate debug
 * files and .gnu_debugdata are not read. The file is hostile: sizes are bounded, everything is
 * read with pread (a file that shrinks gives an error, not a SIGBUS). */
#ifndef CC_ELF_FILE_H
#define CC_ELF_FILE_H

#include "base.h"
#include "ehframe.h"

#include <sys/types.h>

#define ELF_BUILD_ID_MAX 24

struct elf_seg { /* a PT_LOAD */
	uint64_t vaddr, memsz;
	uint64_t off, filesz;
	bool exec;
};

struct elf_sym { /* of several at one address the best name is kept; addr is what it is sorted by */
	uint64_t addr;
	uint32_t size; /* 0: not told */
	uint32_t name; /* offset in its string table */
};

struct elf_symtab { /* sorted by address */
	struct elf_sym *v;
	size_t cnt;
};

struct elf_range { /* a section or a piece of a segment; len 0: there is none */
	uint64_t addr, off, len;
};

struct elf_block;
struct cfi;
struct cfi_row;
struct go_tab;
struct table_cache;

struct elf_file {
	unsigned int refs;
	int fd; /* owned; -1 never */
	dev_t dev;
	ino_t ino;
	uint64_t bytes;
	struct timespec mtime;
	uint16_t machine; /* EM_* */
	bool is64;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	uint32_t build_id_len; /* 0: none */
	struct elf_seg *segs;
	size_t seg_cnt;
	uint64_t note_vaddr, note_off, note_len; /* first PT_NOTE; note_len 0: none */
	struct elf_symtab funcs, objects;
	uint64_t str_off, str_len;        /* where the names of both lie in the file */
	uint64_t eh_addr, eh_off, eh_len; /* .eh_frame; eh_len 0: none */
	struct elf_range debug_frame;     /* .debug_frame; no address */
	struct fde *fdes;                 /* of both */
	size_t fde_cnt;
	struct elf_range dynamic; /* PT_DYNAMIC */
	struct elf_range eh_hdr;  /* PT_GNU_EH_FRAME */
	uint64_t tls_size;        /* of the thread-local block, aligned as it asks; 0: none */
	struct elf_range go_tab_at, go_info_at; /* .gopclntab, .go.buildinfo, if they have a name */
	bool maybe_go;                          /* a section is named so, or none is named at all */
	struct cfi *cfi;                        /* made when it is first asked for */
	struct go_tab *go;                      /* the same; NULL: go_err says why */
	int go_err;                             /* 1: not searched yet */
	struct elf_block *blocks;               /* what was read last */
	struct table_cache *tables;             /* borrowed while it is read; NULL: none */
	void *mapped;                           /* what funcs, objects and fdes lie in; */
	size_t mapped_len;                      /* NULL: they are owned one by one */
};

/* Takes @fd, also on failure. @tables: what large files' tables are looked up in, and kept (see
 * table_cache.h); NULL: nowhere. Returns 0, -ENOEXEC if it is no ELF file, -EFBIG, -ENOMEM, -EIO.
 */
CC_NODISCARD int elf_file_open(int fd, struct table_cache *tables, struct elf_file **ret);
static inline CC_NODISCARD int elf_file_new(int fd, struct elf_file **ret)
{
	return elf_file_open(fd, NULL, ret);
}

/* Drops one reference; NULL is a no-op. */
void elf_file_put(struct elf_file *f);
static inline struct elf_file *elf_file_get(struct elf_file *f)
{
	f->refs++;
	return f;
}

/* Reads up to @len bytes at file offset @off through a small cache. Returns how many, or -errno. */
ssize_t elf_file_read(struct elf_file *f, uint64_t off, void *buf, size_t len);

/* Reads up to @len bytes at @vaddr as linked; .bss is zeros. Returns how many, or -errno. */
ssize_t elf_file_read_at(struct elf_file *f, uint64_t vaddr, void *buf, size_t len);

/* The PT_LOAD that @vaddr lies in; NULL: none. */
const struct elf_seg *elf_file_seg(const struct elf_file *f, uint64_t vaddr);

/* The vaddr at file offset @off within an executable (or other) PT_LOAD. Returns -ENOENT: none. */
CC_NODISCARD int elf_file_vaddr(const struct elf_file *f, uint64_t off, bool exec, uint64_t *ret);

/* Names the function (or with @object the variable) that covers @vaddr. Never guesses: an address
 * outside a symbol's size, or outside its FDE when it has no size, has no name.
 * Writes a NUL-terminated, possibly shortened name: hostile bytes. Returns 0 or -ENOENT. */
CC_NODISCARD int elf_file_name(struct elf_file *f, uint64_t vaddr, bool object, char *name,
			       size_t name_size, uint64_t *ret_off);

/* True if a function that has a name begins at @vaddr. */
bool elf_file_begins(const struct elf_file *f, uint64_t vaddr);

/* True if @vaddr lies in a writable or read-only data segment, .bss included. */
bool elf_file_has_data(const struct elf_file *f, uint64_t vaddr);

/* How to unwind at @vaddr (cfi.h). NULL: the file tells nothing, or no memory. Borrowed until the
 * next call. */
const struct cfi_row *elf_file_cfi_row(struct elf_file *f, uint64_t vaddr);

/* The same by the code that follows at @vaddr, where an instruction begins, perhaps behind a call
 * (@called); a guess (code_row.h). */
const struct cfi_row *elf_file_code_row(struct elf_file *f, uint64_t vaddr, bool called);

/* That row was wrong: from now on it is a bad one. */
void elf_file_code_wrong(struct elf_file *f, uint64_t vaddr, bool called);

/* Its Go functions (go_tab.h), found when they are first asked for; a file that does not look like
 * a Go program is not searched unless @search. *ret is borrowed. Returns 0, or what go_tab_new()
 * returned: -ENOEXEC if it is no Go program. */
CC_NODISCARD int elf_file_go(struct elf_file *f, bool search, struct go_tab **ret);

/* Memory the tables take, in bytes. */
size_t elf_file_mem(const struct elf_file *f);

#endif
