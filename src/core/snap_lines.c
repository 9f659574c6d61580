/* SPDX-License-Identifier: Apache-2.0 */
#include "snap_build.h"

#include <errno.h>
#include <stdlib.h>

struct line_walk {
	struct snap_build *b;
	VEC(struct snap_line) lines;
	VEC(struct snap_state) states;
};

static int take_state(void *ctx, const struct engine_state *x)
{
	struct line_walk *w = ctx;

	if (vec_reserve(&w->b->labels.mem, &w->states, (size_t)w->states.cnt + 1))
		return -ENOMEM;
	w->states.p[w->states.cnt++] = (struct snap_state){
		.start = x->start,
		.end = x->end,
		.cls = x->cls,
		.waker_kind = x->waker_kind,
		.open = x->open,
		.waker = labels_task(&w->b->labels, x->waker_tid, x->waker_tgid, x->end),
	};
	return 0;
}

static void reverse(struct snap_state *p, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt / 2; i++) {
		struct snap_state x = p[i];

		p[i] = p[cnt - 1 - i];
		p[cnt - 1 - i] = x;
	}
}

/* The task's own part of [lo, hi): its tid was another's before and after. */
static int take_line(struct line_walk *w, const struct engine_task *t, cc_ns lo, cc_ns hi)
{
	struct mem *mem = &w->b->labels.mem;
	uint32_t first = w->states.cnt;
	int err;

	lo = CC_MAX(lo, t->born);
	hi = t->dead ? CC_MIN(hi, t->dead) : hi;
	if (lo >= hi)
		return 0;
	err = engine_states(w->b->e, t->tid, lo, hi, take_state, w);
	if (err || w->states.cnt == first)
		return err;
	if (vec_reserve(mem, &w->lines, w->lines.cnt + 1))
		return -ENOMEM;
	reverse(w->states.p + first, w->states.cnt - first);
	w->lines.p[w->lines.cnt++] =
		(struct snap_line){ .task = labels_task(&w->b->labels, t->tid, t->tgid, hi),
				    .first_state = first,
				    .state_cnt = w->states.cnt - first };
	return 0;
}

/* From the first start to the last end of what is shown; nothing is shown: the window. */
static void shown_time(const struct snap_build *b, cc_ns *ret_lo, cc_ns *ret_hi)
{
	const struct snapshot *s = b->s;

	*ret_lo = s->request_cnt ? UINT64_MAX : b->lo;
	*ret_hi = s->request_cnt ? 0 : b->hi;
	for (uint32_t i = 0; i < s->request_cnt; i++) {
		*ret_lo = CC_MIN(*ret_lo, s->requests[i].start);
		*ret_hi = CC_MAX(*ret_hi, s->requests[i].end);
	}
}

int snap_lines(struct snap_build *b)
{
	struct line_walk w = { .b = b };
	struct engine_task t;
	cc_ns lo, hi;
	int err = 0;

	if (!b->q->lines)
		return 0;
	shown_time(b, &lo, &hi);
	for (size_t i = 0; !err && engine_task_at(b->e, i, &t); i++)
		err = take_line(&w, &t, lo, hi);
	b->s->lines = w.lines.p;
	b->s->line_cnt = w.lines.cnt;
	b->s->states = w.states.p;
	b->s->state_cnt = w.states.cnt;
	return err;
}
