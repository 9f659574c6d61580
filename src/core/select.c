/* SPDX-License-Identifier: Apache-2.0 */
/* Whose paths are worked out. A path costs far more than to take its request in, and nobody looks
 * at a million: of what ends between two TICKs it is the slowest ones, which are rows, and as many
 * of the others by the hash of their ids, each of which stands for so many of them in sums.
 * How many is a number of the stream's own time, and no measured one: what is told would depend on
 * the machine else, and a replay would tell something else than was told live. */
#include <errno.h>

#include "engine_priv.h"

#define PATHS_LEAST 16u /* at a TICK, however often there is one */
#define ROWS 500u       /* the slowest of all that are kept are among them, too */

/* How many paths may be worked out at this TICK; UINT32_MAX: all. */
static uint32_t paths_max(const struct engine *e)
{
	cc_ns tick = e->tick_ns ? e->tick_ns : CC_S(1);
	double max = (double)e->opts.paths_per_s * (double)tick / (double)CC_S(1);

	if (!e->opts.paths_per_s || max >= (double)UINT32_MAX)
		return UINT32_MAX;
	return CC_MAX((uint32_t)max, PATHS_LEAST);
}

int select_note(struct engine *e, const struct req *r, cc_ns to)
{
	if (vec_reserve(&e->mem, &e->standings, e->standings.cnt + 1))
		return -ENOMEM;
	e->standings.p[e->standings.cnt++] = (struct standing){
		.row = { r->pub.end - r->pub.start, r->pub.end },
		.hash = reqid_hash(r->pub.id),
		.weight = r->pub.weight,
		.over = r->told && r->pub.end < to,
		.settled = r->settled,
		.explains = r->explains,
		.untimed = (r->pub.rec.what & CC_RQ_UNTIMED) != 0,
	};
	return 0;
}

static void set_weight(struct engine *e, uint32_t i, uint32_t weight)
{
	if (e->standings.p[i].weight != weight)
		e->due.p[i].r->pub.weight = e->standings.p[i].weight = weight;
}

/* Latencies of those due for which @over says so, into @l. Untimed ones are in none. */
static int add_latencies(struct engine *e, bool over, struct latencies *l)
{
	e->rows.cnt = 0;
	if (vec_reserve(&e->mem, &e->rows, e->due.cnt))
		return -ENOMEM;
	for (uint32_t i = 0; i < e->due.cnt; i++) {
		const struct standing *s = &e->standings.p[i];

		if (s->over == over && !s->explains && !s->untimed)
			e->rows.p[e->rows.cnt++] = s->row;
	}
	return latencies_add(&e->mem, l, e->rows.p, e->rows.cnt);
}

static int longest(struct engine *e, const struct latencies *l, uint32_t nth, cc_ns *ret)
{
	struct lat_view v;
	int err = lat_view_open(&e->mem, l, 0, CC_NEVER, &v);

	if (err)
		return err;
	*ret = lat_longest(&v, nth);
	lat_view_done(&e->mem, &v);
	return 0;
}

/* Those due for which @over says so and that took @least or more, as many as there are rows at
 * most. Returns how many others there are. */
static uint32_t show_from(struct engine *e, bool over, cc_ns least)
{
	uint32_t left = ROWS, rest = 0;

	for (uint32_t i = 0; i < e->due.cnt; i++) {
		const struct standing *s = &e->standings.p[i];

		if (s->over != over || s->explains || s->weight)
			continue;
		if (left && s->row.latency >= least) {
			set_weight(e, i, 1);
			left--;
		} else {
			rest++;
		}
	}
	return rest;
}

/* One in so many of the others. */
static void show_sample(struct engine *e, uint32_t rest, uint32_t max)
{
	uint32_t weight = (rest + max - 1) / max;

	for (uint32_t i = 0; i < e->due.cnt; i++) {
		const struct standing *s = &e->standings.p[i];

		if (s->over && !s->explains && !s->weight && s->hash % weight == 0)
			set_weight(e, i, weight);
	}
}

/* Of what is over: the @max / 2 that took longest, and what is among the rows of all that are kept.
 * The last @now_cnt runs of latencies are those of now. */
static int show_over(struct engine *e, uint32_t max, uint32_t now_cnt)
{
	const struct latencies *all = &e->reqs.lat;
	struct latencies now = *all;
	cc_ns least, row, now_row;
	uint32_t rest;
	int err;

	now.runs.p += all->runs.cnt - now_cnt;
	now.runs.cnt = now_cnt;
	err = longest(e, &now, max / 2, &least) ?: longest(e, &now, ROWS, &now_row) ?:
	      longest(e, all, ROWS, &row);
	if (err)
		return err;
	rest = show_from(e, true, CC_MIN(least, CC_MAX(row, now_row)));
	if (rest)
		show_sample(e, rest, max / 2);
	return 0;
}

static int show_open(struct engine *e, uint32_t max)
{
	struct latencies open = { 0 };
	cc_ns least;
	int err = add_latencies(e, false, &open) ?: longest(e, &open, max, &least);

	latencies_done(&e->mem, &open);
	if (!err)
		show_from(e, false, least);
	return err;
}

static int select_up_to(struct engine *e, uint32_t max)
{
	uint32_t runs = e->reqs.lat.runs.cnt;
	int err = add_latencies(e, true, &e->reqs.lat);

	for (uint32_t i = 0; i < e->due.cnt; i++) { /* what goes on is chosen anew each time */
		const struct standing *s = &e->standings.p[i];

		if (s->explains)
			continue;
		if (e->due.cnt <= max)
			set_weight(e, i, CC_MAX(s->weight, 1));
		else if (!s->settled)
			set_weight(e, i, 0);
	}
	if (err || e->due.cnt <= max)
		return err;
	return show_over(e, max, e->reqs.lat.runs.cnt - runs) ?: show_open(e, max);
}

int select_shown(struct engine *e) { return select_up_to(e, paths_max(e)); }

int select_shown_once(struct engine *e) { return select_up_to(e, CC_MAX(paths_max(e), ROWS)); }
