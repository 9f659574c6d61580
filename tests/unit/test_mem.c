/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting what grows at its end, finding what lies nearby, and maps. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "mem.h"
#include "sort_tail.h"

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

/* From a slab first, then by itself; what is counted is what there is, and nothing at the end. */
Test(mem, short_arrays_grow_out_of_their_slab)
{
	struct mem m = { 0 };
	struct slab s = { .size = VEC_FIRST * sizeof(uint64_t) };

	for (uint32_t n = 1; n < 40; n++) {
		VEC(uint64_t) v = { 0 }, other = { 0 };

		for (uint64_t i = 0; i < n; i++) {
			cr_assert_eq(vec_reserve_short(&m, &s, &v, v.cnt + 1), 0);
			v.p[v.cnt++] = i * n;
			cr_assert_eq(vec_reserve_short(&m, &s, &other, other.cnt + 1), 0);
			other.p[other.cnt++] = ~i;
		}
		for (uint64_t i = 0; i < n; i++) {
			cr_expect_eq(v.p[i], i * n);
			cr_expect_eq(other.p[i], ~i);
		}
		cr_expect_geq(m.used, 2 * n * sizeof(uint64_t));
		vec_done_short(&m, &s, &v);
		vec_done_short(&m, &s, &other);
		cr_expect_null(v.p);
	}
	slab_done(&m, &s);
	cr_expect_eq(m.used, 0);
}

Test(mem, what_shrinks_keeps_what_it_has_and_grows_again)
{
	struct mem m = { 0 };
	VEC(uint64_t) v = { 0 };

	for (uint32_t keep = 0; keep < 3; keep++) {
		while (v.cnt < 1000) {
			cr_assert_eq(vec_reserve(&m, &v, v.cnt + 1), 0);
			v.p[v.cnt] = v.cnt;
			v.cnt++;
		}
		v.cnt = keep;
		vec_shrink(&m, &v);
		cr_expect_eq(m.used, keep * sizeof(uint64_t), "%u", keep);
		cr_expect_eq(v.p == NULL, keep == 0);
		for (uint32_t i = 0; i < keep; i++)
			cr_expect_eq(v.p[i], i);
	}
	vec_done(&m, &v);
	cr_expect_eq(m.used, 0);
}

struct moment {
	uint64_t t;
};

/* Whatever is taken for near: the answer is that of a search through all. */
Test(mem, what_is_looked_for_nearby_is_found_from_anywhere)
{
	struct moment all[40];
	VEC(struct moment) v = { .p = all };

	for (v.cnt = 0; v.cnt <= ARRAY_SIZE(all); v.cnt++) {
		for (uint32_t i = 0; i < v.cnt; i++)
			all[i].t = 2 * (i / 3); /* some are equal */
		for (uint64_t value = 0; value < 30; value++)
			for (uint32_t near = 0; near < 44; near++)
				cr_assert_eq(vec_lower_bound_near(&v, t, value, near),
					     vec_lower_bound(&v, t, value), "of %u: %lu from %u",
					     v.cnt, value, near);
	}
}

/* Numbers one after the other and multiples of four share their places in a map. */
Test(mem, a_map_keeps_neighbouring_keys_apart)
{
	static const uint64_t steps[] = { 1, 3, 4, 64, 4096, 1ull << 40 };
	enum { KEYS = 3000 };

	for (uint32_t s = 0; s < ARRAY_SIZE(steps); s++) {
		struct mem m = { 0 };
		struct map map = { 0 };

		for (uint32_t i = 0; i < KEYS; i++)
			cr_assert_eq(map_put(&m, &map, i * steps[s], i + 1), 0);
		for (uint32_t i = 0; i < KEYS; i += 2)
			map_del(&map, i * steps[s]);
		for (uint32_t i = 0; i < KEYS; i++)
			cr_assert_eq(map_get(&map, i * steps[s]), i % 2 ? i + 1 : 0);
		map_done(&m, &map);
		cr_assert_eq(m.used, 0);
	}
}
