/* SPDX-License-Identifier: Apache-2.0 */
#include "maps.h"
#include "table_cache.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX 256 /* each holds a descriptor; beyond it the least recently used one goes */

struct file_cache {
	struct elf_file *v[FILE_MAX]; /* most recently opened first */
	size_t cnt;
	struct elf_file *vdso;
	bool vdso_tried;
	struct table_cache *tables; /* owned; NULL: none */
};

int file_cache_new(struct file_cache **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void file_cache_keep(struct file_cache *c, struct table_cache *tables)
{
	table_cache_free(c->tables);
	c->tables = tables;
}

void file_cache_free(struct file_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->cnt; i++)
		elf_file_put(c->v[i]);
	elf_file_put(c->vdso);
	table_cache_free(c->tables);
	free(c);
}

size_t file_cache_mem(const struct file_cache *c)
{
	size_t sum = sizeof(*c);

	for (size_t i = 0; i < c->cnt; i++)
		sum += elf_file_mem(c->v[i]);
	return sum;
}

static bool same_file(const struct elf_file *f, const struct stat *st)
{
	return f->dev == st->st_dev && f->ino == st->st_ino && f->bytes == (uint64_t)st->st_size &&
	       f->mtime.tv_sec == st->st_mtim.tv_sec && f->mtime.tv_nsec == st->st_mtim.tv_nsec;
}

static void move_to_front(struct file_cache *c, size_t i)
{
	struct elf_file *f = c->v[i];

	memmove(&c->v[1], &c->v[0], i * sizeof(*c->v));
	c->v[0] = f;
}

int file_cache_open(struct file_cache *c, int fd, struct elf_file **ret)
{
	struct elf_file *f;
	struct stat st;
	int err;

	if (fstat(fd, &st)) {
		err = -errno;
		close(fd);
		return err;
	}
	for (size_t i = 0; i < c->cnt; i++) {
		if (!same_file(c->v[i], &st))
			continue;
		close(fd);
		move_to_front(c, i);
		*ret = elf_file_get(c->v[0]);
		return 0;
	}
	err = elf_file_open(fd, c->tables, &f);
	if (err)
		return err;
	if (c->cnt == FILE_MAX)
		elf_file_put(c->v[--c->cnt]);
	c->v[c->cnt] = f;
	move_to_front(c, c->cnt++);
	*ret = elf_file_get(f);
	return 0;
}

static struct elf_file *copy_vdso(void)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct elf_file *f = NULL;
	Elf64_Ehdr eh;
	int fd;

	if (!image)
		return NULL;
	memcpy(&eh, image, sizeof(eh));
	/* the linker puts the section headers last */
	size_t len = eh.e_shoff + (size_t)eh.e_shnum * eh.e_shentsize;

	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (write(fd, image, len) != (ssize_t)len) {
		close(fd);
		return NULL;
	}
	return elf_file_new(fd, &f) ? NULL : f;
}

struct elf_file *file_cache_vdso(struct file_cache *c)
{
	if (!c->vdso_tried) {
		c->vdso_tried = true;
		c->vdso = copy_vdso();
	}
	return c->vdso ? elf_file_get(c->vdso) : NULL;
}
