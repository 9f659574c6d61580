/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping to the window and to the budget. What was worked out stays longest; what it was worked
 * out from, timelines and operations, goes first. */
#include <errno.h>

#include "engine_priv.h"

#define STALE_TICKS 3  /* an open request not told again for so long is gone: its REQ was lost */
#define FRESH_TICKS 3  /* paths may need what else ended so long ago */
#define SWEEP_SHARE 16 /* of all requests are looked at at a TICK */
#define AGE_STEPS 8    /* timelines go by age in so many steps per window: each costs all of them */

static cc_ns ago(cc_ns now, cc_ns span) { return now > span ? now - span : 0; }

static bool is_open(void *ctx, const struct req *r)
{
	return r->open && r->seen >= *(const cc_ns *)ctx;
}

static bool is_kept(const struct req *r) { return !r->finished || r->pub.weight; }

static bool is_silent(void *ctx, const struct req *r)
{
	return r->silent_cnt && (is_kept(r) || r->pub.end >= *(const cc_ns *)ctx);
}

static bool is_leaning(void *ctx, const struct req *r)
{
	return r->leaned_open && (is_kept(r) || r->pub.end >= *(const cc_ns *)ctx);
}

void work_tidy(struct engine *e, cc_ns to, cc_ns now)
{
	struct requests *rs = &e->reqs;
	cc_ns stale = e->tick_ns && now ? ago(now, STALE_TICKS * e->tick_ns) : 0;
	cc_ns fresh = e->tick_ns ? ago(to, FRESH_TICKS * e->tick_ns) : 0;

	requests_unlist(rs, LIST_OPEN, is_open, &stale);
	requests_unlist_fresh(rs, fresh, false);
	requests_unlist(rs, LIST_SILENT, is_silent, &fresh);
	requests_unlist(rs, LIST_LEANING, is_leaning, &fresh);
}

/* ---- age and memory ----------------------------------------------------------------------- */

static cc_ns oldest_episode(const struct engine *e)
{
	cc_ns first = CC_NEVER;

	for (uint32_t i = 0; i < e->tasks.v.cnt; i++)
		if (e->tasks.v.p[i].eps.cnt)
			first = CC_MIN(first, e->tasks.v.p[i].eps.p[0].in);
	return first;
}

static cc_ns oldest_request(const struct engine *e)
{
	const struct requests *rs = &e->reqs;
	cc_ns first = latencies_oldest(&rs->lat);

	if (rs->shown.cnt)
		first = CC_MIN(first, rs->shown.p[0]->end);
	for (uint32_t i = 0; i < rs->list[LIST_DUE].cnt; i++)
		first = CC_MIN(first, rs->list[LIST_DUE].p[i]->pub.end);
	return first;
}

#define RESOURCES_MANY 65536u /* from here on those that nothing is about are looked for */

/* False: no memory. */
static bool mark_resources(struct engine *e, const struct cc_request *r, struct path_buf *buf)
{
	const struct cc_piece *path = request_path(r, buf);

	for (uint32_t i = 0; path && i < r->path_cnt; i++)
		resources_mark(&e->res, path[i].resource);
	return path != NULL;
}

/* Pieces tell resources by number: what is shown keeps its own. What a slow wait taught about one
 * goes with it, and is learned again. */
static void drop_resources(struct engine *e)
{
	struct requests *rs = &e->reqs;
	struct path_buf buf = { 0 };
	bool marked = true;

	if (e->res.v.cnt - e->res.free.cnt < RESOURCES_MANY)
		return;
	for (uint32_t i = 0; i < rs->v.cnt && marked; i++)
		marked = !rs->v.p[i] || mark_resources(e, &rs->v.p[i]->pub, &buf);
	path_buf_done(&buf);
	if (marked)
		resources_sweep(&e->res);
}

/* What paths are worked out from. */
static void drop_timelines(struct engine *e, cc_ns before)
{
	e->stats.evicted += tasks_evict(&e->tasks, before);
	resources_evict(&e->res, before);
	requests_evict_io(&e->reqs, before);
	requests_evict_socks(&e->reqs, before);
	tasks_free_gone(&e->tasks, before);
	requests_evict_receivers(&e->reqs);
	drop_resources(e);
	e->stats.evicted += requests_sweep(&e->reqs, before, UINT32_MAX);
}

static bool ends_later(void *ctx, const struct req *r) { return r->pub.end >= *(const cc_ns *)ctx; }

static void drop_requests(struct engine *e, cc_ns before)
{
	struct requests *rs = &e->reqs;
	uint32_t due = rs->list[LIST_DUE].cnt;

	e->sorted.cnt = 0; /* pointers into requests that go */
	e->stats.evicted += requests_evict_shown(rs, before);
	requests_evict_latencies(rs, before);
	requests_unlist(rs, LIST_DUE, ends_later, &before); /* of a stream without TICKs */
	e->stats.evicted += due - rs->list[LIST_DUE].cnt;
	requests_unlist_fresh(rs, before, true);
	for (int l = LIST_SILENT; l <= LIST_LEANING; l++)
		requests_unlist(rs, (enum req_list)l, ends_later, &before);
}

static void keep_to_window(struct engine *e, cc_ns now)
{
	cc_ns window = e->opts.window_ns, from = ago(now, window);

	if (!window || !from)
		return;
	drop_requests(e, from);
	requests_sweep(&e->reqs, from, e->reqs.v.cnt / SWEEP_SHARE + 1);
	if (from < e->aged_to + window / AGE_STEPS)
		return;
	e->aged_to = from;
	drop_timelines(e, from);
}

/* A quarter of the time at once: going through everything must be rare. */
static cc_ns quarter(cc_ns first, cc_ns last) { return first + (last - first) / 4 + 1; }

void work_evict(struct engine *e, cc_ns now)
{
	size_t budget = e->opts.memory_bytes;
	cc_ns last = CC_MAX(e->stats.last_ns, now);

	keep_to_window(e, now);
	while (e->mem.used > budget) {
		size_t used = e->mem.used;
		cc_ns first = oldest_episode(e);

		if (first < last)
			drop_timelines(e, quarter(first, last));
		if (used - e->mem.used > used / 16)
			continue;
		first = oldest_request(e);
		if (first >= last)
			break;
		drop_requests(e, quarter(first, last));
		if (e->mem.used >= used && oldest_request(e) <= first)
			break;
	}
	e->evict_at = CC_MAX(budget, e->mem.used + budget / 16);
	e->stats.memory_bytes = e->mem.used;
}
