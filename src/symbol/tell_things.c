/* SPDX-License-Identifier: Apache-2.0 */
#include "teller_int.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEAR_MAP 8

/* The mapping of a file that @addr belongs to: its own, or for .bss the one just before it. */
static struct mapping *data_mapping(struct maps *m, uint64_t addr)
{
	struct mapping *p = maps_find(m, addr);

	for (int i = 0; p && i < 2 && !p->ino; i++) {
		if (*maps_path(m, p) || p == m->v || p[-1].end != p->start)
			return NULL;
		p--;
	}
	return p && p->ino ? p : NULL;
}

/* The file of the data at @addr and where it is linked there. The code of the same file tells how
 * far it was moved when it was loaded. */
static struct elf_file *data_file(struct teller *t, struct maps *m, uint64_t addr,
				  struct mapping **ret, uint64_t *ret_vaddr)
{
	struct mapping *d = data_mapping(m, addr);
	size_t at = d ? (size_t)(d - m->v) : 0, lo = at > NEAR_MAP ? at - NEAR_MAP : 0;

	for (size_t i = lo; d && i < m->cnt && i <= at + NEAR_MAP; i++) {
		struct mapping *p = &m->v[i];
		struct elf_file *f;
		uint64_t vaddr;

		if (!p->exec || p->ino != d->ino || p->dev != d->dev)
			continue;
		f = maps_file(m, p, t->files);
		if (!f || maps_vaddr(p, f, p->start, &vaddr))
			return NULL;
		*ret = d;
		*ret_vaddr = addr - p->start + vaddr;
		return elf_file_has_data(f, *ret_vaddr) ? f : NULL;
	}
	return NULL;
}

int tell_address(struct teller *t, struct proc *proc, uint64_t addr)
{
	char name[NAME_MAX_], text[NAME_MAX_ + 32];
	struct mapping *p;
	struct elf_file *f;
	const char *base;
	size_t base_len;
	uint64_t vaddr, off;
	int len, first;

	if (!t->names)
		return 0;
	first = tell_first_time(t, TOLD_ADDR, (uint64_t)proc->epoch << 32 | proc->tgid, addr);
	if (first <= 0)
		return first;
	f = data_file(t, &proc->now.maps, addr, &p, &vaddr);
	if (!f) { /* the heap, a stack: the address says all; unless it meant something before */
		if (!tell_was_told(t, TOLD_ADDR_NAME, proc->tgid, addr))
			return 0;
		return tell_name(t, CC_NAME_ADDR, addr, 0, proc->tgid, "", 0, "", 0);
	}
	first = tell_first_time(t, TOLD_ADDR_NAME, proc->tgid, addr);
	if (first < 0)
		return first;
	base = maps_base_name(&proc->now.maps, p, &base_len);
	base_len = CC_MIN(base_len, NAME_MAX_ - 1);
	if (elf_file_name(f, vaddr, true, name, sizeof(name), &off))
		len = snprintf(text, sizeof(text), "%.*s+0x%" PRIx64, (int)base_len, base, vaddr);
	else if (off)
		len = snprintf(text, sizeof(text), "%s+0x%" PRIx64, name, off);
	else
		len = snprintf(text, sizeof(text), "%s", name);
	return tell_name(t, CC_NAME_ADDR, addr, 0, proc->tgid, text, (size_t)len, base, base_len);
}

int tell_fd(struct teller *t, uint32_t tgid, int fd, uint64_t ino, uint32_t dev)
{
	char link[48], path[PATH_MAX];
	struct stat st;
	ssize_t len;
	int first;

	if (!t->names || fd < 0 || !ino)
		return 0;
	first = tell_first_time(t, TOLD_FILE, ino, dev);
	if (first <= 0)
		return first;
	snprintf(link, sizeof(link), "/proc/%u/fd/%d", tgid, fd);
	len = readlink(link, path, sizeof(path));
	/* the number may be another file's by now */
	if (len <= 0 || stat(link, &st) || st.st_ino != ino)
		return 0;
	return tell_name(t, CC_NAME_FILE, ino, dev, 0, path, (size_t)len, "", 0);
}
