/* SPDX-License-Identifier: Apache-2.0 */
#include "resource.h"

#include <stdlib.h>
#include <string.h>

void resources_init(struct resources *rs, struct mem *mem)
{
	*rs = (struct resources){ .mem = mem };
}

void resources_done(struct resources *rs)
{
	for (uint32_t i = 0; i < rs->v.cnt; i++)
		vec_done(rs->mem, &rs->v.p[i].wakes);
	vec_done(rs->mem, &rs->v);
	map_done(rs->mem, &rs->by_key);
}

static uint64_t key_of(enum res_kind kind, uint64_t id, uint64_t id2, uint32_t tgid)
{
	return map_mix2(map_mix2(id, id2), (uint64_t)kind << 32 | tgid);
}

uint32_t resources_find(const struct resources *rs, enum res_kind kind, uint64_t id, uint64_t id2,
			uint32_t tgid)
{
	uint32_t i = map_get(&rs->by_key, key_of(kind, id, id2, tgid));

	for (; i; i = rs->v.p[i - 1].next) {
		const struct resource *r = &rs->v.p[i - 1];

		if (r->kind == kind && r->id == id && r->id2 == id2 && r->tgid == tgid)
			break;
	}
	return i;
}

uint32_t resources_get(struct resources *rs, enum res_kind kind, uint64_t id, uint64_t id2,
		       uint32_t tgid)
{
	uint64_t key = key_of(kind, id, id2, tgid);
	uint32_t i = resources_find(rs, kind, id, id2, tgid);

	if (i)
		return i;
	if (vec_reserve(rs->mem, &rs->v, rs->v.cnt + 1))
		return 0;
	rs->v.p[rs->v.cnt] = (struct resource){
		.id = id,
		.id2 = id2,
		.tgid = tgid,
		.kind = (uint8_t)kind,
		.next = map_get(&rs->by_key, key),
	};
	if (map_put(rs->mem, &rs->by_key, key, rs->v.cnt + 1))
		return 0;
	return ++rs->v.cnt;
}

static int by_time(const void *a, const void *b)
{
	const struct lock_wake *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	if (x->waker_tid != y->waker_tid)
		return x->waker_tid < y->waker_tid ? -1 : 1;
	return (x->wakee_tid > y->wakee_tid) - (x->wakee_tid < y->wakee_tid);
}

int resource_wake(struct resources *rs, uint32_t res, struct lock_wake w)
{
	struct resource *r = &rs->v.p[res - 1];
	int err = vec_reserve(rs->mem, &r->wakes, r->wakes.cnt + 1);

	if (err)
		return err;
	if (r->sorted == r->wakes.cnt &&
	    (!r->wakes.cnt || by_time(&r->wakes.p[r->wakes.cnt - 1], &w) <= 0))
		r->sorted++;
	r->wakes.p[r->wakes.cnt++] = w;
	return 0;
}

/* What is new is sorted, then moved in among the last of what was. */
static void sort_wakes(struct resource *r)
{
	uint32_t old = r->sorted, cnt = r->wakes.cnt;
	struct lock_wake *p = r->wakes.p, *new = p + old;

	r->sorted = cnt;
	if (old == cnt)
		return;
	qsort(new, cnt - old, sizeof(*p), by_time);
	while (old > 0 && by_time(&p[old - 1], new) > 0)
		old--;
	if (old < new - p)
		qsort(p + old, cnt - old, sizeof(*p), by_time);
}

const struct lock_wake *resource_wakes(struct resources *rs, uint32_t res, cc_ns lo, cc_ns hi,
				       uint32_t *ret_cnt)
{
	struct resource *r = &rs->v.p[res - 1];
	uint32_t from;

	sort_wakes(r);
	from = vec_lower_bound(&r->wakes, t, lo + 1);
	*ret_cnt = vec_lower_bound(&r->wakes, t, hi + 1) - from;
	return r->wakes.p + from;
}

void resources_evict(struct resources *rs, cc_ns before)
{
	for (uint32_t i = 0; i < rs->v.cnt; i++) {
		struct resource *r = &rs->v.p[i];
		uint32_t kept = 0;

		sort_wakes(r);
		for (uint32_t j = 0; j < r->wakes.cnt; j++)
			if (r->wakes.p[j].t >= before)
				r->wakes.p[kept++] = r->wakes.p[j];
		r->wakes.cnt = r->sorted = kept;
		vec_shrink(rs->mem, &r->wakes);
	}
}
