/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the file behind a mapping. */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define NOTE_MAX 4096
#define NEAR_FILE 8 /* mappings of one file lie side by side: so many to look at */

/* Opens a regular file for reading, and nothing else: opening a device or a FIFO may hang or do
 * things. Returns a descriptor or -errno. */
static int open_regular(const char *path)
{
	char self[32];
	struct stat st;
	int at = open(path, O_PATH | O_CLOEXEC), fd;

	if (at < 0)
		return -errno;
	if (fstat(at, &st) || !S_ISREG(st.st_mode)) {
		close(at);
		return -EINVAL;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		fd = -errno;
	close(at);
	return fd;
}

static bool same_dev(const struct mapping *p, const struct elf_file *f)
{
	return (major(f->dev) << 20 | minor(f->dev)) == p->dev;
}

static bool same_inode(const struct mapping *p, const struct elf_file *f)
{
	return f->ino == p->ino && same_dev(p, f);
}

/* Another file may have been mapped at just this place since the mappings were read. Some file
 * systems (btrfs, overlayfs) tell stat() other numbers; then the name decides. */
static bool still_mapped(const struct maps *m, const struct mapping *p, const struct elf_file *f,
			 const char *link)
{
	const char *path = maps_path(m, p);
	char now[4200];
	ssize_t len;

	if (same_dev(p, f))
		return f->ino == p->ino;
	len = readlink(link, now, sizeof(now));
	return len == (ssize_t)strlen(path) && !memcmp(now, path, (size_t)len);
}

/* True if the notes of @f, its build-id among them, are what the process has in its memory. */
static bool same_notes(const struct maps *m, const struct mapping *p, struct elf_file *f)
{
	uint8_t file[NOTE_MAX], memory[NOTE_MAX];
	uint64_t vaddr;
	struct iovec local = { memory, (size_t)f->note_len }, remote = { 0 };

	if (!f->build_id_len || !f->note_len || f->note_len > NOTE_MAX ||
	    maps_vaddr(p, f, p->start, &vaddr))
		return false;
	remote.iov_base = (void *)(uintptr_t)(p->start - vaddr + f->note_vaddr);
	remote.iov_len = local.iov_len;
	return elf_file_read(f, f->note_off, file, local.iov_len) == (ssize_t)local.iov_len &&
	       process_vm_readv((pid_t)m->tgid, &local, 1, &remote, 1, 0) ==
		       (ssize_t)local.iov_len &&
	       !memcmp(file, memory, local.iov_len);
}

/* Opens the file by a path that may since have come to name another file. */
static struct elf_file *open_checked(struct maps *m, struct mapping *p, struct file_cache *c,
				     const char *path)
{
	struct elf_file *f;
	int fd = open_regular(path);

	if (fd < 0 || file_cache_open(c, fd, &f))
		return NULL;
	if (same_inode(p, f) || same_notes(m, p, f))
		return f;
	elf_file_put(f);
	return NULL;
}

static struct elf_file *open_mapped(struct maps *m, struct mapping *p, struct file_cache *c)
{
	char path[4200];
	struct elf_file *f;
	int fd, n;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", m->tgid,
		 (unsigned long long)p->start, (unsigned long long)p->end);
	fd = open_regular(path);
	if (fd >= 0) {
		if (file_cache_open(c, fd, &f))
			return NULL;
		if (still_mapped(m, p, f, path))
			return f;
		elf_file_put(f);
		return NULL;
	}
	n = snprintf(path, sizeof(path), "/proc/%u/root%s", m->tgid, maps_path(m, p));
	f = n < (int)sizeof(path) ? open_checked(m, p, c, path) : NULL;
	if (f)
		return f;
	snprintf(path, sizeof(path), "/proc/%u/exe", m->tgid);
	return open_checked(m, p, c, path);
}

/* A mapping of the same file close by that is open already. */
static struct elf_file *neighbour(struct maps *m, const struct mapping *p)
{
	size_t at = (size_t)(p - m->v), lo = at > NEAR_FILE ? at - NEAR_FILE : 0;

	for (size_t i = lo; i < m->cnt && i <= at + NEAR_FILE; i++) {
		const struct mapping *q = &m->v[i];

		if (q->file && q->ino == p->ino && q->dev == p->dev)
			return elf_file_get(q->file);
	}
	return NULL;
}

struct elf_file *maps_file(struct maps *m, struct mapping *p, struct file_cache *c)
{
	if (p->tried)
		return p->file;
	p->tried = true;
	if (p->ino)
		p->file = neighbour(m, p);
	if (!p->file && *maps_path(m, p) == '/')
		p->file = open_mapped(m, p, c);
	else if (!p->ino && !strcmp(maps_path(m, p), "[vdso]"))
		p->file = file_cache_vdso(c);
	return p->file;
}
