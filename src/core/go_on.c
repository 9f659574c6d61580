/* SPDX-License-Identifier: Apache-2.0 */
/* On which thread a goroutine was, and when. */
#include "go_task_int.h"

#include <errno.h>
#include <string.h>

static void go_ran_at(struct task *t, cc_ns at)
{
	task_ran_at(t, at);
	t->timeline = true;
}

/* Element with the latest from <= @at; -1: none. */
static int64_t on_before(const struct go_state *g, cc_ns at)
{
	return (int64_t)vec_lower_bound(&g->ons, from, at + 1) - 1;
}

cc_ns go_on_end(const struct go_state *g, uint32_t i)
{
	cc_ns next = i + 1 < g->ons.cnt ? g->ons.p[i + 1].from : CC_NEVER;

	return CC_MIN(g->ons.p[i].to, next);
}

static int on_add(struct tasks *ts, uint32_t idx, struct go_on on)
{
	struct go_state *g = go_state_get(ts, &ts->v.p[idx]);
	uint32_t i;

	if (!g || vec_reserve(ts->mem, &g->ons, g->ons.cnt + 1))
		return -ENOMEM;
	i = (uint32_t)(on_before(g, on.from) + 1);
	memmove(&g->ons.p[i + 1], &g->ons.p[i], (g->ons.cnt - i) * sizeof(on));
	g->ons.p[i] = on;
	g->ons.cnt++;
	return 0;
}

/* What @idx had been with since before @at it was with until then, at the latest. */
void go_on_close(struct tasks *ts, uint32_t idx, uint32_t other, cc_ns at)
{
	struct go_state *g = task_go(ts, &ts->v.p[idx]);
	int64_t i = g ? on_before(g, at) : -1;

	if (i >= 0 && g->ons.p[i].other == other && g->ons.p[i].to > at)
		g->ons.p[i].to = at;
}

/* Thread @ti has goroutine @gi (GO_NONE: none) from @at on. */
int go_bind(struct tasks *ts, uint32_t ti, uint32_t gi, cc_ns at)
{
	struct go_state *g = task_go(ts, &ts->v.p[ti]);
	int64_t i = g ? on_before(g, at) : -1;
	uint32_t had = i >= 0 && g->ons.p[i].to > at ? g->ons.p[i].other : GO_NONE;

	if (had == gi && (gi == GO_NONE || g->ons.p[i].to == CC_NEVER))
		return 0; /* told again */
	if (had != GO_NONE) {
		go_on_close(ts, had, ti, at);
		go_on_close(ts, ti, had, at);
	}
	if (gi == GO_NONE)
		return 0;
	task_go(ts, &ts->v.p[gi])->last_thread = ts->v.p[ti].tid;
	return on_add(ts, ti, (struct go_on){ at, CC_NEVER, gi })
		       ?: on_add(ts, gi, (struct go_on){ at, CC_NEVER, ti });
}

/* It is told to have left, and to be there again, with no wait and nobody else between: it never
 * left. A thread that works on its system stack looks as if it had no goroutine. */
static bool never_left(struct tasks *ts, uint32_t ti, uint32_t gi, cc_ns at)
{
	struct go_state *th = task_go(ts, &ts->v.p[ti]), *g = task_go(ts, &ts->v.p[gi]);
	const struct task *t = &ts->v.p[gi];
	int64_t i = th ? on_before(th, at) : -1, k = on_before(g, at);
	cc_ns left;

	if (i < 0 || k < 0 || th->ons.p[i].other != gi || g->ons.p[k].other != ti ||
	    th->ons.p[i].from != g->ons.p[k].from)
		return false;
	left = th->ons.p[i].to;
	if (left > at || (t->eps.cnt && t->eps.p[t->eps.cnt - 1].in > left))
		return false;
	th->ons.p[i].to = g->ons.p[k].to = CC_NEVER;
	return true;
}

uint32_t go_on_thread(const struct tasks *ts, uint32_t tid, cc_ns at)
{
	const struct task *t = tasks_find(ts, tid, at);
	const struct go_state *g = t && !tid_is_go(tid) ? task_go(ts, t) : NULL;
	int64_t i = g ? on_before(g, at) : -1;

	return i >= 0 && at <= g->ons.p[i].to ? g->ons.p[i].other : GO_NONE;
}

int go_thread_of(struct tasks *ts, uint32_t tid, uint32_t tgid, cc_ns at, uint32_t *ret)
{
	struct task *t = tasks_get(ts, tid, at);

	if (!t)
		return -ENOMEM;
	if (task_is_go(t))
		return -EINVAL;
	if (!t->tgid)
		task_set_tgid(ts, t, tgid);
	*ret = (uint32_t)(t - ts->v.p);
	return 0;
}

int go_thread_on(struct tasks *ts, const struct cc_rec_go_on *r)
{
	uint32_t gi, ti;
	int err;

	if (!r->tgid || !r->tid || tid_is_go(r->tid) || !r->h.ts)
		return -EINVAL;
	err = go_proc_seen(ts, r->tgid, false, false) ?: go_index(ts, r->tgid, r->goid, &gi) ?:
	      go_thread_of(ts, r->tid, r->tgid, r->h.ts, &ti);
	if (err)
		return err;
	if (gi)
		go_ran_at(&ts->v.p[gi - 1], r->h.ts);
	if (r->h.aux == 0) {
		if (gi) {
			go_on_close(ts, gi - 1, ti, r->h.ts);
			go_on_close(ts, ti, gi - 1, r->h.ts);
			return 0;
		}
		return go_bind(ts, ti, GO_NONE, r->h.ts);
	}
	if (!gi || (go_proc(ts, r->tgid) && go_proc(ts, r->tgid)->waits &&
		    never_left(ts, ti, gi - 1, r->h.ts)))
		return 0;
	return go_bind(ts, ti, gi - 1, r->h.ts);
}
