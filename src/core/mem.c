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

typedef int compare_fn(const void *, const void *);

struct runs { /* elements to be sorted that are in order in parts */
	size_t cnt, size;
	compare_fn *cmp;
};

/* Where the run that begins at @from ends. */
static size_t run_end(const struct runs *r, const char *base, size_t from)
{
	size_t i = from + 1;

	while (i < r->cnt && r->cmp(base + (i - 1) * r->size, base + i * r->size) <= 0)
		i++;
	return CC_MIN(i, r->cnt);
}

/* [a, b) and [b, end) to @to; of equal ones those of the first run come first. */
static void merge_two(const struct runs *r, char *to, const char *a, const char *b, const char *end)
{
	const char *mid = b;

	while (a < mid && b < end) {
		const char **least = r->cmp(a, b) > 0 ? &b : &a;

		memcpy(to, *least, r->size);
		*least += r->size;
		to += r->size;
	}
	memcpy(to, a, (size_t)(mid - a));
	memcpy(to + (mid - a), b, (size_t)(end - b));
}

/* Each two runs of @from become one in @to. Returns how many there are then. */
static size_t merge_pass(const struct runs *r, const char *from, char *to)
{
	size_t runs = 0;

	for (size_t i = 0, end; i < r->cnt; i = end, runs++) {
		size_t mid = run_end(r, from, i);

		end = mid < r->cnt ? run_end(r, from, mid) : mid;
		merge_two(r, to + i * r->size, from + i * r->size, from + mid * r->size,
			  from + end * r->size);
	}
	return runs;
}

#define RUN_LEAST 8 /* elements, on average: below it runs are chance */

/* As qsort(), which keeps equal ones in order here; the fewer runs there are, the faster. */
static void sort_runs(char *base, size_t cnt, size_t size, compare_fn *cmp)
{
	const struct runs r = { cnt, size, cmp };
	size_t runs = 0;
	char *tmp, *from = base, *to;

	for (size_t i = 0; i < cnt; i = run_end(&r, base, i))
		runs++;
	if (runs <= 1)
		return;
	tmp = runs <= cnt / RUN_LEAST ? malloc(cnt * size) : NULL;
	if (!tmp) {
		qsort(base, cnt, size, cmp);
		return;
	}
	for (to = tmp; merge_pass(&r, from, to) > 1;) {
		char *swap = from;

		from = to;
		to = swap;
	}
	if (to != base)
		memcpy(base, to, cnt * size);
	free(tmp);
}

void sort_tail(void *p, size_t old, size_t cnt, size_t size, int (*cmp)(const void *, const void *))
{
	char *base = p, *new = base + old *size;
	size_t from = old;

	if (old == cnt)
		return;
	sort_runs(new, cnt - old, size, cmp);
	while (from > 0 && cmp(base + (from - 1) * size, new) > 0)
		from--;
	if (from < old)
		sort_runs(base + from * size, cnt - from, size, cmp);
}
