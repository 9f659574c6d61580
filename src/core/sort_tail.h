/* SPDX-License-Identifier: Apache-2.0 */
/* sort_tail: sorting what is in order in long runs. Made anew for each type that is sorted: an
 * order that can be seen costs a fraction of one that is called. */
#ifndef CC_SORT_TAIL_H
#define CC_SORT_TAIL_H

#include <stdlib.h>
#include <string.h>

#include "base.h"

#define SORT_INLINE static inline __attribute__((always_inline))

typedef int compare_fn(const void *, const void *);

struct runs { /* elements to be sorted that are in order in parts */
	size_t cnt, size;
	compare_fn *cmp;
};

/* Where the run that begins at @from ends. */
SORT_INLINE size_t run_end(const struct runs *r, const char *base, size_t from)
{
	size_t i = from + 1;

	while (i < r->cnt && r->cmp(base + (i - 1) * r->size, base + i * r->size) <= 0)
		i++;
	return CC_MIN(i, r->cnt);
}

/* [a, b) and [b, end) to @to; of equal ones those of the first run come first. */
SORT_INLINE void merge_two(const struct runs *r, char *to, const char *a, const char *b,
			   const char *end)
{
	const char *mid = b;

	while (a < mid && b < end) { /* without a branch: which is less is hard to foretell */
		bool second = r->cmp(a, b) > 0;

		memcpy(to, second ? b : a, r->size);
		a += second ? 0 : r->size;
		b += second ? r->size : 0;
		to += r->size;
	}
	memcpy(to, a, (size_t)(mid - a));
	memcpy(to + (mid - a), b, (size_t)(end - b));
}

/* Each two runs of @from become one in @to. Returns how many there are then. */
SORT_INLINE size_t merge_pass(const struct runs *r, const char *from, char *to)
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

#define RUN_LEAST 8    /* elements, on average: below it runs are chance, and are made */
#define SORTED_MOST 64 /* bytes of an element */

/* Runs of RUN_LEAST elements, of equal ones in their order. */
SORT_INLINE void make_runs(const struct runs *r, char *base)
{
	_Alignas(uint64_t) char one[SORTED_MOST];

	for (size_t i = 0; i < r->cnt; i++) {
		char *first = base + i / RUN_LEAST * RUN_LEAST * r->size, *at = base + i * r->size;

		memcpy(one, at, r->size);
		for (; at > first && r->cmp(at - r->size, one) > 0; at -= r->size)
			memcpy(at, at - r->size, r->size);
		memcpy(at, one, r->size);
	}
}

/* As qsort(), which keeps equal ones in order here; the fewer runs there are, the faster. */
SORT_INLINE void sort_runs(char *base, size_t cnt, size_t size, compare_fn *cmp)
{
	const struct runs r = { cnt, size, cmp };
	size_t runs = 0;
	char *tmp, *from = base, *to;

	for (size_t i = 0; i < cnt; i = run_end(&r, base, i))
		runs++;
	if (runs <= 1)
		return;
	tmp = size <= SORTED_MOST ? malloc(cnt * size) : NULL;
	if (!tmp) {
		qsort(base, cnt, size, cmp);
		return;
	}
	if (runs > cnt / RUN_LEAST)
		make_runs(&r, base);
	for (to = tmp; merge_pass(&r, from, to) > 1;) {
		char *swap = from;

		from = to;
		to = swap;
	}
	if (to != base)
		memcpy(base, to, cnt * size);
	free(tmp);
}

/* Sorts @cnt elements at @p of which the first @old are sorted already: what is new, then only as
 * much of the old as it belongs among. */
SORT_INLINE void sort_tail(void *p, size_t old, size_t cnt, size_t size, compare_fn *cmp)
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

#endif
