/* SPDX-License-Identifier: Apache-2.0 */
/* Work at each TICK: which requests to work out, which to forget. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"

#define STALE_TICKS 3 /* an open request not told again for so long is gone: its REQ was lost */

/* What a thread touched is its owner until it touches something else. */
static cc_ns matters_until(const struct engine *e, const struct req_news *n)
{
	const struct task *t = tasks_find(&e->tasks, n->tid, n->to);
	uint32_t i;

	if (!t)
		return n->to;
	i = vec_lower_bound(&t->touches, t, n->to + 1);
	return i < t->touches.cnt ? t->touches.p[i].t : CC_NEVER;
}

/* A thread that was silent when the path was worked out has been heard of. */
static bool is_broken_silence(const struct engine *e, const struct req *r)
{
	for (uint32_t i = 0; i < r->silent_cnt; i++)
		if (e->tasks.v.p[r->silent[i]].alive >= r->pub.end)
			return true;
	return false;
}

/* Losses and episodes that were told late. */
static int add_late(struct engine *e)
{
	struct requests *rs = &e->reqs;

	for (uint32_t i = 0; i < e->tasks.late.cnt; i++) {
		const struct late_span *l = &e->tasks.late.p[i];

		if (l->from >= rs->worked_to)
			continue;
		if (vec_reserve(&e->mem, &rs->news, rs->news.cnt + 1))
			return -ENOMEM;
		rs->news.p[rs->news.cnt++] = (struct req_news){ l->from, l->to, l->tid, true };
	}
	e->tasks.late.cnt = 0;
	return 0;
}

/* Work that was told late: paths that leaned on these threads then are worked out again. */
static void forget_leaning(struct engine *e)
{
	struct requests *rs = &e->reqs;
	cc_ns first = CC_NEVER;

	for (uint32_t i = 0; i < rs->news.cnt; i++) {
		if (!rs->news.p[i].exact)
			rs->news.p[i].to =
				CC_MAX(rs->news.p[i].to, matters_until(e, &rs->news.p[i]));
		first = CC_MIN(first, rs->news.p[i].from);
	}
	for (uint32_t i = 0; i < rs->v.cnt && rs->news.cnt; i++) {
		struct req *r = rs->v.p[i];

		if (!r || !r->computed || r->pub.end < first)
			continue;
		for (uint32_t j = 0; j < rs->news.cnt && r->computed; j++) {
			const struct req_news *n = &rs->news.p[j];

			if (n->from <= r->pub.end && n->to >= r->pub.start &&
			    r->leaned >> (n->tid % 64) & 1)
				r->computed = false;
		}
	}
	rs->news.cnt = 0;
}

/* Paths that leaned on requests that were open then and are told now (@told: their bits). */
static void forget_open(struct engine *e, uint64_t told)
{
	for (uint32_t i = 0; i < e->reqs.v.cnt && told; i++) {
		struct req *r = e->reqs.v.p[i];

		if (r && !r->due && r->leaned_open & told)
			r->computed = false;
	}
}

/* Remembers the holds of @r before they are found anew. */
static int save_holds(struct engine *e, const struct req *r)
{
	if (vec_reserve(&e->mem, &e->old_holds, r->holds.cnt))
		return -ENOMEM;
	e->old_holds.cnt = r->holds.cnt;
	for (uint32_t i = 0; i < r->holds.cnt; i++)
		e->old_holds.p[i] = r->holds.p[i];
	return 0;
}

/* Holds that were not known when the time they lie in was worked out. */
static int add_holders(struct engine *e, const struct req *r)
{
	struct requests *rs = &e->reqs;

	for (uint32_t i = 0; i < r->holds.cnt; i++) {
		struct held h = r->holds.p[i];

		for (uint32_t j = 0; j < e->old_holds.cnt; j++) {
			const struct held *o = &e->old_holds.p[j];

			if (o->task == h.task && o->from <= h.from && o->to > h.from)
				h.from = CC_MIN(h.to, o->to);
			if (o->task == h.task && o->from < h.to && o->to >= h.to)
				h.to = CC_MAX(h.from, o->from);
		}
		if (h.from >= h.to || h.from >= rs->worked_to)
			continue;
		if (vec_reserve(&e->mem, &rs->news, rs->news.cnt + 1))
			return -ENOMEM;
		rs->news.p[rs->news.cnt++] =
			(struct req_news){ h.from, h.to, e->tasks.v.p[h.task].tid, true };
	}
	return 0;
}

/* What ends after the watermark is worked out too, as far as it is known, and again later. */
static bool is_due(const struct engine *e, const struct req *r, cc_ns now)
{
	if (r->told)
		return !r->computed || is_broken_silence(e, r);
	return r->open && now;
}

static bool is_sampled(const struct engine *e, const struct req *r)
{
	uint64_t n = e->stats.option[CC_OPT_SAMPLE];

	return n < 2 || map_mix2(r->pub.id.id, r->pub.id.ordinal) % n == 0;
}

struct due { /* a request to work out, and its segments in e->segs */
	uint32_t slot, first, cnt;
};
struct due_vec {
	struct due *p;
	uint32_t cnt, cap;
};

/* Finds out who worked for each request that is due and not among the first @done of @due. */
static int identify(struct engine *e, struct due_vec *due, uint32_t done, cc_ns now,
		    uint64_t *ret_told)
{
	struct requests *rs = &e->reqs;

	for (uint32_t i = 0; i < rs->v.cnt; i++) {
		struct req *r = rs->v.p[i];
		struct due *d;
		int err;

		if (!r || r->pub.id.kind != CC_REQID_SOCK || !is_due(e, r, now))
			continue;
		if (done && r->due)
			continue;
		if (!r->told)
			r->pub.end = CC_MAX(r->pub.start, now);
		if (vec_reserve(&e->mem, due, due->cnt + 1))
			return -ENOMEM;
		d = &due->p[due->cnt++];
		*d = (struct due){ .slot = i, .first = e->segs.cnt };
		r->due = true;
		r->leaned = r->leaned_open = 0;
		r->silent_cnt = 0;
		err = save_holds(e, r);
		if (!err)
			err = identity_find(e, r);
		d->cnt = e->segs.cnt - d->first;
		if (!err)
			err = add_holders(e, r);
		if (err)
			return err;
		if (r->told && r->identified)
			*ret_told |= reqid_bit(r->pub.id);
		r->identified = true;
	}
	return 0;
}

int work_paths(struct engine *e, cc_ns to, cc_ns now)
{
	struct due_vec due = { 0 };
	uint64_t told = 0, ignored;
	int err;

	e->segs.cnt = 0;
	e->idle.valid = false;
	e->reqs.working_to = to;
	err = add_late(e);
	if (err)
		return err;
	/* who worked for which request must be known of all before one is walked */
	err = identify(e, &due, 0, now, &told);
	if (!err && (e->reqs.news.cnt || told)) {
		forget_leaning(e);
		forget_open(e, told);
		err = identify(e, &due, due.cnt, now, &ignored);
		e->reqs.news.cnt = 0;
	}
	for (uint32_t i = 0; i < due.cnt && !err; i++) {
		struct req *r = e->reqs.v.p[due.p[i].slot];

		if (is_sampled(e, r))
			err = path_of_request(e, r, e->segs.p + due.p[i].first, due.p[i].cnt);
		r->computed = r->told && r->pub.end < to;
		r->due = false;
	}
	vec_done(&e->mem, &due);
	e->reqs.worked_to = CC_MAX(e->reqs.worked_to, to);
	return err;
}

static int by_end(const void *a, const void *b)
{
	const struct cc_request *x = *(const struct cc_request *const *)a,
				*y = *(const struct cc_request *const *)b;

	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	if (x->id.kind != y->id.kind)
		return x->id.kind < y->id.kind ? -1 : 1;
	if (x->id.id != y->id.id)
		return x->id.id < y->id.id ? -1 : 1;
	return (x->id.ordinal > y->id.ordinal) - (x->id.ordinal < y->id.ordinal);
}

int work_sort(struct engine *e)
{
	e->sorted.cnt = 0;
	for (uint32_t i = 0; i < e->reqs.v.cnt; i++) {
		const struct req *r = e->reqs.v.p[i];

		if (!r || (!r->told && !r->open))
			continue;
		if (vec_reserve(&e->mem, &e->sorted, e->sorted.cnt + 1))
			return -ENOMEM;
		e->sorted.p[e->sorted.cnt++] = &r->pub;
	}
	if (e->sorted.cnt)
		qsort(e->sorted.p, e->sorted.cnt, sizeof(e->sorted.p[0]), by_end);
	return 0;
}

/* ---- keeping to the budget ---------------------------------------------------------------- */

static uint64_t drop_requests(struct engine *e, cc_ns before, cc_ns stale)
{
	uint64_t cnt = 0;

	for (uint32_t i = 0; i < e->reqs.v.cnt; i++) {
		struct req *r = e->reqs.v.p[i];
		bool go;

		if (!r)
			continue;
		if (r->told)
			go = r->pub.end < before;
		else
			go = r->seen < (r->open ? stale : before);
		if (!go)
			continue;
		requests_drop(&e->reqs, i);
		cnt++;
	}
	return cnt;
}

static cc_ns oldest(const struct engine *e)
{
	cc_ns first = CC_NEVER;

	for (uint32_t i = 0; i < e->tasks.v.cnt; i++)
		if (e->tasks.v.p[i].eps.cnt)
			first = CC_MIN(first, e->tasks.v.p[i].eps.p[0].in);
	for (uint32_t i = 0; i < e->reqs.v.cnt; i++)
		if (e->reqs.v.p[i])
			first = CC_MIN(first, e->reqs.v.p[i]->told ? e->reqs.v.p[i]->pub.end
								   : e->reqs.v.p[i]->seen);
	return first;
}

static void drop_before(struct engine *e, cc_ns before, cc_ns stale)
{
	e->sorted.cnt = 0; /* pointers into requests that go */
	e->stats.evicted += drop_requests(e, before, stale);
	e->stats.evicted += tasks_evict(&e->tasks, before);
	resources_evict(&e->res, before);
	requests_evict_io(&e->reqs, before);
}

void work_evict(struct engine *e, cc_ns now)
{
	size_t budget = e->opts.memory_bytes;
	cc_ns window = e->opts.window_ns, interval = e->tick_ns;
	cc_ns stale = interval && now > STALE_TICKS * interval ? now - STALE_TICKS * interval : 0;

	if (window && now > window)
		e->stats.evicted += drop_requests(e, now - window, stale);
	else if (stale)
		e->stats.evicted += drop_requests(e, 0, stale);
	/* a quarter of the time at once: going through everything must be rare */
	while (e->mem.used > budget) {
		cc_ns first = oldest(e), last = CC_MAX(e->stats.last_ns, now);
		size_t used = e->mem.used;

		if (first >= last)
			break;
		drop_before(e, first + (last - first) / 4 + 1, stale);
		if (e->mem.used >= used && oldest(e) <= first)
			break;
	}
	e->evict_at = CC_MAX(budget, e->mem.used + budget / 16);
	e->stats.memory_bytes = e->mem.used;
}
