/* SPDX-License-Identifier: Apache-2.0 */
#include "mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MANY (1u << 20) /* bytes */

int mem_grow(struct mem *m, void *slot, uint32_t *cap, size_t need, size_t size)
{
	/* to move a large one costs less than to have room for as much again */
	size_t want = *cap * size < MANY ? *cap * (size_t)2 : *cap + *cap / 2;
	void *p, *more;

	want = CC_MAX(want, CC_MAX(need, VEC_FIRST));
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

	if (*cap <= VEC_FIRST || keep * 2 > *cap)
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

void *mem_get(struct mem *m, size_t size)
{
	void *p = malloc(size);

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

#define SLAB_OBJECTS 64
#define LINE 64 /* bytes */

static int slab_grow(struct mem *m, struct slab *s)
{
	char *block;

	if (s->block_cnt == s->block_cap &&
	    mem_grow(m, &s->blocks, &s->block_cap, s->block_cnt + 1, sizeof(*s->blocks)))
		return -ENOMEM;
	block = malloc(SLAB_OBJECTS * s->size);
	if (!block)
		return -ENOMEM;
	s->blocks[s->block_cnt++] = block;
	for (size_t i = SLAB_OBJECTS; i-- > 0;) {
		memcpy(block + i * s->size, &s->free, sizeof(s->free));
		s->free = block + i * s->size;
	}
	return 0;
}

void *slab_alloc(struct mem *m, struct slab *s)
{
	void *p;

	if (!s->free && slab_grow(m, s))
		return NULL;
	p = s->free;
	memcpy(&s->free, p, sizeof(s->free));
	for (size_t off = 0; off < s->size; off += LINE) /* the next one is far away, as a rule */
		__builtin_prefetch((const char *)s->free + off, 1);
	m->used += s->size;
	return p;
}

void slab_free(struct mem *m, struct slab *s, void *p)
{
	memcpy(p, &s->free, sizeof(s->free));
	s->free = p;
	m->used -= s->size;
}

void slab_done(struct mem *m, struct slab *s)
{
	for (uint32_t i = 0; i < s->block_cnt; i++)
		free(s->blocks[i]);
	mem_free(m, s->blocks, s->block_cap * sizeof(*s->blocks));
	*s = (struct slab){ .size = s->size };
}

int mem_grow_short(struct mem *m, struct slab *s, void *slot, uint32_t *cap, size_t need,
		   size_t size)
{
	void *first = NULL, *p = NULL;
	uint32_t more = 0;

	if (*cap > VEC_FIRST)
		return mem_grow(m, slot, cap, need, size);
	if (*cap)
		memcpy(&first, slot, sizeof(first));
	if (!first && need <= VEC_FIRST) {
		p = slab_alloc(m, s);
		if (!p)
			return -ENOMEM;
		more = VEC_FIRST;
	} else if (mem_grow(m, &p, &more, CC_MAX(need, VEC_FIRST + 2), size)) {
		return -ENOMEM;
	}
	if (first) {
		memcpy(p, first, *cap * size);
		slab_free(m, s, first);
	}
	memcpy(slot, &p, sizeof(p));
	*cap = more;
	return 0;
}
