/* SPDX-License-Identifier: Apache-2.0 */
#include "mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 4

int mem_grow(struct mem *m, void *slot, uint32_t *cap, size_t need, size_t size)
{
	size_t want = *cap + *cap / 2;
	void *p, *more;

	want = CC_MAX(want, CC_MAX(need, FIRST_CAP));
	if (want > UINT32_MAX || want > SIZE_MAX / size)
		return -ENOMEM;
	memcpy(&p, slot, sizeof(p));
	more = realloc(p, want * size);
	if (!more)
		return -ENOMEM; /* the old block is still good */
	m->used += (want - *cap) * size;
	memcpy(slot, &more, sizeof(more));
	*cap = (uint32_t)want;
	/* cppcheck-suppress memleak ; the memcpy() gave it to *@slot */
	return 0;
}

void mem_shrink(struct mem *m, void *slot, uint32_t *cap, size_t keep, size_t size)
{
	void *p;

	if (*cap <= FIRST_CAP || keep * 2 > *cap)
		return;
	memcpy(&p, slot, sizeof(p));
	if (keep == 0) {
		free(p);
		p = NULL;
	} else {
		void *less = realloc(p, keep * size);

		if (!less)
			return; /* the old block is still good */
		p = less;
	}
	m->used -= (*cap - keep) * size;
	memcpy(slot, &p, sizeof(p));
	*cap = (uint32_t)keep;
}

void *mem_alloc(struct mem *m, size_t size)
{
	void *p = calloc(1, size);

	if (p)
		m->used += size;
	return p;
}

void mem_free(struct mem *m, void *p, size_t size)
{
	if (p)
		m->used -= size;
	free(p);
}
