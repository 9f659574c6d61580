/* SPDX-License-Identifier: Apache-2.0 */
/* The backward walk (DESIGN 5): what a task did, from a moment back to another. Time off the CPU is
 * in walk_wait.c. Everything is put down last first, and what explains a piece before that piece.
 */
#include <errno.h>
#include <string.h>

#include "engine_priv.h"

#define STOLEN_MIN CC_US(100) /* below it, rounding and the switch itself */
#define SAMPLES_MAX 64        /* of one stretch of CPU that are compared */

static void fill(struct cc_piece *p, const struct walk *w, const struct task *t, cc_ns start,
		 cc_ns end, uint16_t depth, enum wait_class cls)
{
	memset(p, 0, sizeof(*p));
	p->start = start;
	p->end = end;
	p->tid = t->tid;
	p->tgid = t->tgid;
	p->goid = task_is_go(t) ? task_go(&w->e->tasks, t)->goid : 0;
	p->depth = depth;
	p->cls = (uint8_t)cls;
	p->evidence = w->evidence;
	p->for_request = w->blame;
}

struct cc_piece walk_piece(const struct walk *w, const struct task *t, cc_ns start, cc_ns end,
			   uint16_t depth, enum wait_class cls)
{
	struct cc_piece p;

	fill(&p, w, t, start, end, depth, cls);
	return p;
}

void walk_lean_on(struct walk *w, struct cc_reqid id)
{
	const struct req *r = id.kind == CC_REQID_SOCK ? requests_find(&w->e->reqs, id) : NULL;

	if (r && requests_is_open(&w->e->reqs, r))
		w->leaned_open |= reqid_bit(id);
}

void walk_emit(struct walk *w, const struct cc_piece *p)
{
	if (w->err || p->start >= p->end)
		return;
	w->err = vec_reserve(&w->e->mem, &w->out, w->out.cnt + 1);
	if (!w->err)
		w->out.p[w->out.cnt++] = *p;
}

/* Puts down a piece, filled in where it lies: most are made here, and a copy of what was just
 * written costs as much as all the rest. NULL: nothing to put down, or no memory. */
static struct cc_piece *put_leaf(struct walk *w, const struct task *t, cc_ns a, cc_ns b,
				 uint16_t depth, enum wait_class cls, uint64_t evidence)
{
	struct cc_piece *p;

	if (w->err || a >= b)
		return NULL;
	w->err = vec_reserve(&w->e->mem, &w->out, w->out.cnt + 1);
	if (w->err)
		return NULL;
	p = &w->out.p[w->out.cnt++];
	fill(p, w, t, a, b, depth, cls);
	p->evidence |= evidence;
	return p;
}

static void walk_leaf(struct walk *w, const struct task *t, cc_ns a, cc_ns b, uint16_t depth,
		      enum wait_class cls, enum cc_ended ended, uint64_t evidence)
{
	struct cc_piece *p = put_leaf(w, t, a, b, depth, cls, evidence);

	if (p)
		p->ended = (uint8_t)ended;
}

/* Waits below --min-block inside [a, b): a sum's share by time. */
static cc_ns short_within(const struct task *t, cc_ns a, cc_ns b)
{
	cc_ns sum = 0;

	for (uint32_t i = vec_lower_bound(&t->shorts, until, a + 1); i < t->shorts.cnt; i++) {
		const struct short_sum *s = &t->shorts.p[i];
		cc_ns lo = CC_MAX(a, s->since), hi = CC_MIN(b, s->until);

		if (s->since >= b)
			break;
		if (lo < hi)
			sum += (cc_ns)((double)s->ns * (double)(hi - lo) /
				       (double)(s->until - s->since));
	}
	return CC_MIN(sum, b - a);
}

/* Where it ran in [a, b): the stack that most samples of it have, the earliest of several. */
static void sampled_stack(const struct task *t, cc_ns a, cc_ns b, struct cc_piece *p)
{
	uint32_t from = vec_lower_bound(&t->samples, t, a), most = 0;

	for (uint32_t i = from; i < t->samples.cnt && t->samples.p[i].t < b; i++) {
		const struct cpu_sample *s = &t->samples.p[i];
		uint32_t same = 0;

		for (uint32_t j = i; j < t->samples.cnt && t->samples.p[j].t < b; j++)
			same += t->samples.p[j].ustack == s->ustack;
		if (same > most) {
			most = same;
			p->ustack = s->ustack;
			p->kstack = s->kstack;
		}
		if (i - from >= SAMPLES_MAX)
			break;
	}
}

static void walk_cpu(struct walk *w, const struct task *t, cc_ns a, cc_ns b,
		     const struct tl_piece *tp, uint16_t depth)
{
	const struct side *s = tp->exact ? ep_side(&w->e->tasks, tp->ep) : NULL;
	cc_ns wall = tp->end - tp->start, stolen_from = CC_NEVER;
	struct cc_piece *p;

	if (s && s->flags & CC_EX_EXEC && s->ran_ns < wall && wall - s->ran_ns > STOLEN_MIN)
		stolen_from = CC_MAX(a, tp->end - (wall - s->ran_ns));
	if (stolen_from < b) {
		walk_leaf(w, t, stolen_from, b, depth, WAIT_STOLEN, CC_ENDED_NONE,
			  CC_EV_BIT(SCHED));
		b = stolen_from;
	}
	p = put_leaf(w, t, a, b, depth, WAIT_CPU, CC_EV_BIT(SCHED));
	if (p && t->samples.cnt)
		sampled_stack(t, a, b, p);
	if (p && t->shorts.cnt) {
		p->short_ns = short_within(t, a, b);
		p->evidence |= p->short_ns ? CC_EV_BIT(SHORT) : 0;
	}
}

static bool is_handoff(const struct walk *w, const struct task *t, const struct episode *ep)
{
	const struct walk_frame *f = w->depth ? &w->stack[w->depth - 1] : NULL;

	return f && f->handoff && ep->wake == f->handoff && ep_blocked(ep) &&
	       &w->e->tasks.v.p[f->task] == t;
}

/* Who had the CPU longest while the task of @tp was queued. Of a part of that time it is named for
 * what it had of that part at least. */
static void name_occupant(struct cc_piece *p, const struct side *s, const struct tl_piece *tp)
{
	cc_ns len = p->end - p->start, others = tp->end - tp->start - len;

	if (s->occupant_ns <= others)
		return;
	p->occupant_tid = s->occupant_tid;
	p->occupant_tgid = s->occupant_tgid;
	p->occupant_ns = CC_MIN(s->occupant_ns - others, len);
	p->evidence |=
		s->occupant_ns - others >= len / 2 ? CC_EV_BIT(OCCUPANT) : CC_EV_BIT(OCCUPANT_PART);
}

/* Who had the CPU meanwhile, and how the wait for it came about. */
static void describe_runq(struct walk *w, const struct task *t, const struct tl_piece *tp,
			  const struct side *s, struct cc_piece *p)
{
	if (task_is_go(t))
		p->resource = go_runq_resource(w->e);
	p->ended = tp->open ? CC_ENDED_OPEN : CC_ENDED_RAN;
	if (tp->open) {
		p->flags |= CC_PC_OPEN;
		p->evidence |= CC_EV_BIT(OPEN);
	}
	if (is_handoff(w, t, tp->ep)) {
		p->cls = WAIT_LOCK_HANDOFF;
		p->evidence |= CC_EV_BIT(HANDOFF_LOCK);
	}
	if (s && s->occupant_tid)
		name_occupant(p, s, tp);
	if (s && s->flags & CC_EX_MIGRATED) {
		p->flags |= CC_PC_MIGRATED;
		p->evidence |= CC_EV_BIT(MIGRATED);
	}
}

void walk_runq(struct walk *w, const struct task *t, cc_ns a, cc_ns b, const struct tl_piece *tp,
	       uint16_t depth)
{
	const struct side *s = ep_side(&w->e->tasks, tp->ep);
	cc_ns throttled = CC_MIN(CC_MAX(tp->start + (s ? s->throttled_ns : 0), a), b);
	struct cc_piece *p = put_leaf(w, t, throttled, b, depth, WAIT_RUNQ, CC_EV_BIT(SCHED));

	if (p)
		describe_runq(w, t, tp, s, p);
	walk_leaf(w, t, a, throttled, depth, WAIT_THROTTLE, CC_ENDED_RAN, CC_EV_BIT(SCHED));
}

/* Takes back what was put down for @depth and deeper before @t, from @since on. */
static void rewind_to(struct walk *w, uint32_t since, cc_ns t)
{
	while (w->out.cnt > since && w->out.p[w->out.cnt - 1].start < t) {
		struct cc_piece *p = &w->out.p[w->out.cnt - 1];

		if (p->end > t && !(p->flags & CC_PC_NESTED)) {
			p->start = t; /* it ran when the message came */
			return;
		}
		w->out.cnt--;
	}
}

/* A goroutine that none made: a timer did (time.AfterFunc), which somebody had set. */
static bool is_timers(const struct walk *w, const struct task *t)
{
	const struct go_proc *p = task_is_go(t) ? go_proc(&w->e->tasks, t->tgid) : NULL;

	return p && p->waits && t->born != CC_NEVER && !t->cut && !t->parent_tid;
}

static void walk_timer(struct walk *w, const struct task *t, cc_ns a, cc_ns b, uint16_t depth)
{
	struct cc_piece *p = put_leaf(w, t, a, b, depth, WAIT_SLEEP, CC_EV_BIT(GO_RUNTIME));

	if (p) {
		p->ended = CC_ENDED_TIMEOUT;
		p->waker_kind = CC_WAKER_TIMER;
	}
}

/* Nothing is known of the task before @hi. Goes on with its parent, or with who sent the last
 * message it got. @first: number of pieces before this span's. Returns how far back it came. */
static cc_ns walk_no_data(struct walk *w, uint32_t ti, cc_ns lo, cc_ns hi, cc_ns span_end,
			  const struct tl_piece *tp, uint32_t first, uint16_t depth)
{
	const struct task *t = &w->e->tasks.v.p[ti], *other = NULL;
	cc_ns from = CC_MAX(tp->start, lo);
	struct message m = { 0 };
	bool cycle;

	if (is_timers(w, t) && hi <= t->born) {
		walk_timer(w, t, from, hi, depth);
		return from;
	}
	if (t->born != CC_NEVER && hi <= t->born && !t->cut && t->parent_tid) {
		other = tasks_find(&w->e->tasks, t->parent_tid, t->born);
		m.sent = hi;
	} else if (message_received(w->e, t, hi, span_end, &m)) {
		other = tasks_find(&w->e->tasks, m.sender_tid, m.sent);
	}
	if (!other || !other->timeline ||
	    !walk_may_nest(w, (uint32_t)(other - w->e->tasks.v.p), depth, &cycle)) {
		walk_leaf(w, t, from, hi, depth, WAIT_UNKNOWN, CC_ENDED_NONE, CC_EV_BIT(NO_DATA));
		return from;
	}
	if (m.sender_tid) {
		rewind_to(w, first, m.arrived);
		walk_leaf(w, other, CC_MAX(m.sent, lo), m.arrived, depth, WAIT_TRANSIT,
			  CC_ENDED_NONE, CC_EV_BIT(LOOPBACK));
	}
	if (m.sent > lo) {
		uint32_t oi = (uint32_t)(other - w->e->tasks.v.p);

		w->stack[w->depth++] = (struct walk_frame){ .task = oi };
		walk_span(w, oi, lo, m.sent, true, depth);
		w->depth--;
	}
	return lo;
}

void walk_span(struct walk *w, uint32_t ti, cc_ns lo, cc_ns hi, bool ran, uint16_t depth)
{
	const struct task *t = &w->e->tasks.v.p[ti];
	uint32_t first = w->out.cnt;

	for (cc_ns at = hi; at > lo && !w->err;) {
		struct tl_piece tp;
		cc_ns a;

		task_piece(t, &w->e->tasks, at, ran && at == hi, &tp);
		a = CC_MAX(tp.start, lo);
		if (w->out.cnt > w->pieces_max) {
			/* more than anybody can look at: the rest stays one piece */
			walk_leaf(w, t, lo, at, depth, WAIT_UNKNOWN, CC_ENDED_NONE,
				  CC_EV_BIT(NO_DATA));
			return;
		}
		switch (tp.kind) {
		case TL_RUN:
			if (task_is_go(t))
				go_walk_run(w, ti, a, at, depth);
			else
				walk_cpu(w, t, a, at, &tp, depth);
			break;
		case TL_RUNQ:
			walk_runq(w, t, a, at, &tp, depth);
			break;
		case TL_BLOCKED:
			walk_wait(w, ti, a, at, &tp, depth);
			break;
		case TL_LOST:
			walk_leaf(w, t, a, at, depth, WAIT_UNKNOWN, CC_ENDED_LOST, CC_EV_BIT(LOST));
			break;
		case TL_NODATA:
			a = walk_no_data(w, ti, lo, at, hi, &tp, first, depth);
			break;
		}
		at = a;
	}
}
