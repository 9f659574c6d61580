/* SPDX-License-Identifier: Apache-2.0 */
/* What a task was in over time, for timelines beside the paths. */
#include "engine_priv.h"

struct state_walk {
	const struct engine *e;
	engine_state_fn *fn;
	void *ctx;
};

static int tell(const struct state_walk *w, const struct task *t, const struct tl_piece *tp,
		cc_ns start, cc_ns end)
{
	struct engine_state s = { .start = start, .end = end, .cls = WAIT_UNKNOWN };
	const struct episode *ep = tp->ep;

	if (tp->kind == TL_NODATA)
		return 0;
	if (tp->kind == TL_RUN)
		s.cls = WAIT_CPU;
	else if (tp->kind == TL_RUNQ)
		s.cls = WAIT_RUNQ;
	else if (tp->kind == TL_BLOCKED)
		s.cls = (uint8_t)engine_classify(w->e, t, ep).cls;
	s.open = (tp->kind == TL_BLOCKED || tp->kind == TL_RUNQ) && end < tp->end;
	if (tp->kind == TL_BLOCKED && !s.open && ep->wake) {
		s.waker_kind = ep_is_go(ep)
				       ? CC_WAKER_UNKNOWN
				       : (uint8_t)walk_waker_kind(ep, ep_side(&w->e->tasks, ep));
		if (ep_task_wake(ep)) {
			s.waker_kind =
				ep_ctx(ep) == CC_CTX_KTHREAD ? CC_WAKER_KTHREAD : CC_WAKER_TASK;
			s.waker_tid = ep->waker_tid;
			s.waker_tgid = ep->waker_tgid;
		}
	}
	return w->fn(w->ctx, &s);
}

static int tell_span(const struct state_walk *w, const struct task *t, cc_ns lo, cc_ns hi);

/* [lo, hi) of a goroutine's time that was no wait: its threads' time, else the Go run queue. */
static int tell_go_run(const struct state_walk *w, const struct task *t, cc_ns lo, cc_ns hi)
{
	const struct go_state *g = task_go(&w->e->tasks, t);
	int err = 0;

	for (cc_ns at = hi, from; at > lo && err >= 0; at = from) {
		uint32_t i = vec_lower_bound(&g->ons, from, at);
		cc_ns end = i ? go_on_end(g, i - 1) : 0;

		if (i && end >= at) {
			from = CC_MAX(lo, g->ons.p[i - 1].from);
			err = tell_span(w, &w->e->tasks.v.p[g->ons.p[i - 1].other], from, at);
			continue;
		}
		struct engine_state s = { .start = CC_MAX(lo, end), .end = at };

		from = s.start;
		s.cls = i < g->ons.cnt ? WAIT_RUNQ : WAIT_UNKNOWN;
		err = w->fn(w->ctx, &s);
	}
	return err;
}

static int tell_span(const struct state_walk *w, const struct task *t, cc_ns lo, cc_ns hi)
{
	int err = 0;

	for (cc_ns at = hi, a; at > lo && err >= 0; at = a) {
		struct tl_piece tp;

		task_piece(t, &w->e->tasks, at, false, &tp);
		a = CC_MAX(tp.start, lo);
		err = tp.kind == TL_RUN && task_is_go(t) ? tell_go_run(w, t, a, at)
							 : tell(w, t, &tp, a, at);
	}
	return CC_MIN(err, 0);
}

int engine_states(const struct engine *e, uint32_t tid, cc_ns lo, cc_ns hi, engine_state_fn *fn,
		  void *ctx)
{
	const struct state_walk w = { e, fn, ctx };
	const struct task *t = tasks_find(&e->tasks, tid, hi);

	return t && hi ? tell_span(&w, t, lo, hi) : 0;
}
