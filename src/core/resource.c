/* SPDX-License-Identifier: Apache-2.0 */
#include "resource.h"

#include <stdlib.h>
#include <string.h>

#include "sort_tail.h"

void resources_init(struct resources *rs, struct mem *mem)
{
	*rs = (struct resources){ .mem = mem };
}

void resources_done(struct resources *rs)
{
	for (uint32_t i = 0; i < rs->v.cnt; i++) {
		vec_done(rs->mem, &rs->v.p[i].wakes);
		vec_done(rs->mem, &rs->v.p[i].sharers);
	}
	vec_done(rs->mem, &rs->v);
	vec_done(rs->mem, &rs->free);
	map_done(rs->mem, &rs->by_key);
}

static uint64_t key_of(enum res_kind kind, uint64_t id, uint64_t id2, uint32_t tgid)
{
	return map_join(map_join(id, id2), (uint64_t)kind << 32 | tgid);
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
	bool again;

	if (i)
		return i;
	again = rs->free.cnt > 0;
	i = again ? rs->free.p[rs->free.cnt - 1] : rs->v.cnt;
	if (vec_reserve(rs->mem, &rs->v, i + 1))
		return 0;
	rs->v.p[i] = (struct resource){
		.id = id,
		.id2 = id2,
		.tgid = tgid,
		.kind = (uint8_t)kind,
		.next = map_get(&rs->by_key, key),
	};
	if (map_put(rs->mem, &rs->by_key, key, i + 1))
		return 0;
	rs->free.cnt -= again;
	rs->v.cnt = CC_MAX(rs->v.cnt, i + 1);
	return i + 1;
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

static void sort_wakes(struct resource *r)
{
	sort_tail(r->wakes.p, r->sorted, r->wakes.cnt, sizeof(*r->wakes.p), by_time);
	r->sorted = r->wakes.cnt;
}

const struct lock_wake *resource_wakes(struct resources *rs, uint32_t res, cc_ns lo, cc_ns hi,
				       uint32_t *ret_cnt)
{
	struct resource *r = &rs->v.p[res - 1];
	uint32_t from;

	sort_wakes(r);
	from = r->near = vec_lower_bound_near(&r->wakes, t, lo + 1, r->near);
	*ret_cnt = vec_lower_bound_near(&r->wakes, t, hi + 1, from) - from;
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

void resources_mark(struct resources *rs, uint32_t res)
{
	if (res && res <= rs->v.cnt)
		rs->v.p[res - 1].marked = true;
}

static void resource_free(struct resources *rs, uint32_t i)
{
	struct resource *r = &rs->v.p[i];
	uint64_t key = key_of((enum res_kind)r->kind, r->id, r->id2, r->tgid);
	uint32_t at = map_get(&rs->by_key, key);

	if (at == i + 1) {
		if (!r->next || map_put(rs->mem, &rs->by_key, key, r->next))
			map_del(&rs->by_key, key);
	} else {
		while (rs->v.p[at - 1].next != i + 1)
			at = rs->v.p[at - 1].next;
		rs->v.p[at - 1].next = r->next;
	}
	vec_done(rs->mem, &r->wakes);
	vec_done(rs->mem, &r->sharers);
	*r = (struct resource){ .kind = RES_NONE };
	rs->free.p[rs->free.cnt++] = i;
}

void resources_sweep(struct resources *rs)
{
	for (uint32_t i = 0; i < rs->v.cnt; i++) {
		struct resource *r = &rs->v.p[i];

		if (r->kind != RES_NONE && !r->marked && !r->wakes.cnt &&
		    !vec_reserve(rs->mem, &rs->free, rs->free.cnt + 1))
			resource_free(rs, i);
		r->marked = false;
	}
}
