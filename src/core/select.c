/* SPDX-License-Identifier: Apache-2.0 */
/* Whose paths are worked out. A path costs far more than to take its request in, and nobody looks
 * at a million: of what ends between two TICKs it is the slowest ones, which are rows, and as many
 * of the others by the hash of their ids, each of which stands for so many of them in sums. */
#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"

#define PATHS_LEAST 16u /* at a TICK, however often there is one */

/* How many paths may be worked out at this TICK; UINT32_MAX: all. */
static uint32_t paths_max(const struct engine *e)
{
	cc_ns tick = e->tick_ns ? e->tick_ns : CC_S(1);
	double max = (double)e->opts.paths_per_s * (double)tick / (double)CC_S(1);

	if (!e->opts.paths_per_s || max >= (double)UINT32_MAX)
		return UINT32_MAX;
	return CC_MAX((uint32_t)max, PATHS_LEAST);
}

static bool is_over(const struct req *r, cc_ns to) { return r->told && r->pub.end < to; }

static struct lat_row row_of(const struct req *r)
{
	return (struct lat_row){ r->pub.end - r->pub.start, r->pub.end };
}

/* The latencies of what is over now. Streams are in none. */
static int keep_latencies(struct engine *e, cc_ns to)
{
	e->rows.cnt = 0;
	for (uint32_t i = 0; i < e->due.cnt; i++) {
		const struct req *r = e->due.p[i].r;

		if (!is_over(r, to) || r->pub.rec.what & CC_RQ_STREAM)
			continue;
		if (vec_reserve(&e->mem, &e->rows, e->rows.cnt + 1))
			return -ENOMEM;
		e->rows.p[e->rows.cnt++] = row_of(r);
	}
	return latencies_add(&e->mem, &e->reqs.lat, e->rows.p, e->rows.cnt);
}

static int by_latency(const void *pa, const void *pb)
{
	const struct lat_row *a = pa, *b = pb;

	if (a->latency != b->latency)
		return a->latency > b->latency ? -1 : 1;
	return (a->end < b->end) - (a->end > b->end);
}

/* Of those due for which @over says so, the @max longest are shown; *ret_rest: how many are not. */
static int show_slowest(struct engine *e, cc_ns to, bool over, uint32_t max, uint32_t *ret_rest)
{
	struct lat_row least = { 0 };

	e->rows.cnt = 0;
	for (uint32_t i = 0; i < e->due.cnt; i++) {
		if (is_over(e->due.p[i].r, to) != over)
			continue;
		if (vec_reserve(&e->mem, &e->rows, e->rows.cnt + 1))
			return -ENOMEM;
		e->rows.p[e->rows.cnt++] = row_of(e->due.p[i].r);
	}
	*ret_rest = 0;
	if (e->rows.cnt > max) {
		qsort(e->rows.p, e->rows.cnt, sizeof(*e->rows.p), by_latency);
		least = e->rows.p[max - 1];
		*ret_rest = e->rows.cnt - max;
	}
	for (uint32_t i = 0; i < e->due.cnt; i++) {
		struct req *r = e->due.p[i].r;
		struct lat_row row = row_of(r);

		if (is_over(r, to) == over && by_latency(&row, &least) <= 0 && !r->pub.weight)
			r->pub.weight = 1;
	}
	return 0;
}

/* One in so many of the others. */
static void show_sample(struct engine *e, cc_ns to, uint32_t rest, uint32_t max)
{
	uint32_t weight = (rest + max - 1) / max;

	for (uint32_t i = 0; i < e->due.cnt; i++) {
		struct req *r = e->due.p[i].r;

		if (is_over(r, to) && !r->pub.weight && reqid_hash(r->pub.id) % weight == 0)
			r->pub.weight = weight;
	}
}

int select_shown(struct engine *e, cc_ns to)
{
	uint32_t max = paths_max(e), rest;
	int err = keep_latencies(e, to);

	if (err)
		return err;
	for (uint32_t i = 0; i < e->due.cnt; i++) { /* what goes on is chosen anew each time */
		struct req *r = e->due.p[i].r;

		if (e->due.cnt <= max)
			r->pub.weight = CC_MAX(r->pub.weight, 1);
		else if (!r->settled)
			r->pub.weight = 0;
	}
	if (e->due.cnt <= max)
		return 0;
	err = show_slowest(e, to, true, max / 2, &rest);
	if (!err && rest)
		show_sample(e, to, rest, max / 2);
	return err ? err : show_slowest(e, to, false, max, &rest);
}
