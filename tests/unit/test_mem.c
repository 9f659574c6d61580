/* SPDX-License-Identifier: Apache-2.0 */
/* sort_tail(): what grows at its end is sorted, whatever runs it consists of. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

struct item {
	uint64_t key;
	uint32_t nr; /* in which order it came */
	uint32_t pad;
};

static int by_key(const void *pa, const void *pb)
{
	const struct item *a = pa, *b = pb;

	return (a->key > b->key) - (a->key < b->key);
}

static uint64_t rnd(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

/* @cnt items in @runs runs, with many equal keys. */
static void fill(struct item *v, size_t cnt, size_t runs, uint64_t *state)
{
	uint64_t key = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (i % CC_MAX(cnt / runs, 1) == 0)
			key = rnd(state, 50);
		key += rnd(state, 3);
		v[i] = (struct item){ key, (uint32_t)i, 0 };
	}
}

Test(mem, sorted_as_a_stable_sort_does)
{
	enum { MOST = 3000 };
	static struct item v[MOST];
	uint64_t state = 88172645463325252ull;

	for (int round = 0; round < 300; round++) {
		size_t cnt = 1 + rnd(&state, MOST), old = rnd(&state, cnt + 1);

		fill(v, cnt, 1 + rnd(&state, round % 2 ? 8 : cnt), &state);
		sort_tail(v, 0, old, sizeof(v[0]), by_key);
		sort_tail(v, old, cnt, sizeof(v[0]), by_key);
		for (size_t i = 1; i < cnt; i++)
			cr_assert(v[i - 1].key < v[i].key ||
					  (v[i - 1].key == v[i].key && v[i - 1].nr < v[i].nr),
				  "round %d, %zu of %zu", round, i, cnt);
	}
}
