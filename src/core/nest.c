/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a task that another one waited for, told apart by the request it worked for. */
#include "engine_priv.h"

#define TOGETHER_SHARE 8 /* less than so much of the work before is next to nothing */

struct helper { /* task @ti, for whose work another one waits until @hi */
	struct walk *w;
	uint32_t ti;
	cc_ns lo, hi;
	cc_ns until;             /* when it is over: not before @hi */
	struct cc_reqid serving; /* the request of the one that waits */
};

/* The request whose holder waited for the work that this wake ended; kind NONE: none. */
static struct cc_reqid wake_served(struct walk *w, const struct given_wake *g)
{
	struct engine *e = w->e;
	const struct task *t = tasks_find(&e->tasks, g->wakee_tid, g->t);
	const struct episode *ep = t ? wakes_episode_of(t, g->t) : NULL;
	cc_ns ignored;

	if (!ep || engine_classify(e, t, ep).is_lock || wait_goes_on(e, t, ep))
		return (struct cc_reqid){ 0 };
	w->leaned |= 1ull << (t->tid % 64);
	return owner_serving(e, t, ep->out + 1, 0, &ignored);
}

/* The request that the helper worked for right before @at, as the wakes it gave tell: until it
 * ended a wait for Q it worked for Q. */
static struct cc_reqid by_wakes(const struct helper *h, cc_ns at, cc_ns *start)
{
	struct engine *e = h->w->e;
	struct task *t = &e->tasks.v.p[h->ti];
	struct cc_reqid none = { 0 }, id = none;
	cc_ns idle_out = 0, idle = owner_idle_end(e, t, h->lo, at, &idle_out);
	const struct given_wake *g;
	uint32_t cnt, i = 0;

	if (idle == at) {
		*start = CC_MAX(*start, idle_out);
		return none; /* idle: for nobody */
	}
	*start = CC_MAX(*start, idle);
	g = wakes_given(t, h->lo, CC_MAX(h->hi, h->until) - 1, &cnt);
	for (; i < cnt && g[i].t < at; i++)
		if (wake_served(h->w, &g[i]).kind != CC_REQID_NONE)
			*start = CC_MAX(*start, g[i].t);
	for (; i < cnt && id.kind == CC_REQID_NONE; i++) {
		id = wake_served(h->w, &g[i]);
		if (id.kind != CC_REQID_NONE && owner_first_idle(e, t, at, g[i].t) < g[i].t)
			return none; /* what it did before it was idle nothing tells */
	}
	return id;
}

static void emit_busy(struct walk *w, uint32_t ti, cc_ns lo, cc_ns hi, uint16_t depth,
		      enum wait_class cls, struct cc_reqid by)
{
	struct cc_piece p = walk_piece(w, &w->e->tasks.v.p[ti], lo, hi, depth, cls);

	if (cls == WAIT_QUEUED)
		p.by_request = by;
	p.evidence |= CC_EV_BIT(SCHED);
	walk_emit(w, &p);
}

/* The request that the helper worked for right before @at; kind NONE: not known. */
static struct served served_before(const struct helper *h, cc_ns at)
{
	const struct task *t = &h->w->e->tasks.v.p[h->ti];
	struct served s;

	owner_served(h->w->e, t, at, h->lo, &s);
	if (s.id.kind == CC_REQID_NONE && t->given.cnt) {
		s.id = by_wakes(h, at, &s.since);
		s.by_wakes = true;
		if (tasks_gap_within(&h->w->e->tasks, t->tgid, CC_MAX(s.since, h->lo), at))
			s.evidence |= CC_EV_BIT(WAKE_MISSED);
		/* a goroutine that reads a connection of many wakes for each of them in turn, and
		 * lies in the network poller between: that is no work for the next one */
		s.ambiguous = task_is_go(t) && s.id.kind != CC_REQID_NONE;
	}
	s.since = CC_MAX(s.since, h->lo);
	walk_lean_on(h->w, s.id);
	return s;
}

/* For whom it was is not sure, what it was is. */
static void walk_together(struct helper *h, cc_ns start, cc_ns at, uint16_t depth)
{
	h->w->evidence |= CC_EV_BIT(TOGETHER);
	walk_span(h->w, h->ti, start, at, false, depth);
}

/* @t has done next to nothing at @at since its last wait, less than @little. */
static bool just_woken(const struct task *t, cc_ns at, cc_ns little)
{
	uint32_t i = task_ep_from(t, at);

	while (i > 0 && !ep_blocked(&t->eps.p[i - 1]))
		i--;
	if (!i || ep_blocked_end(&t->eps.p[i - 1]) > at)
		return false;
	return CC_MAX(t->eps.p[i - 1].in, at) - t->eps.p[i - 1].in < little;
}

/* @t worked in [start, at), answered one that waited for that, and another one at @end with next to
 * nothing done between. That one waited since @since: had it been taken up together with the
 * first, nothing would look different. */
static bool maybe_together(const struct task *t, cc_ns since, cc_ns start, cc_ns at, cc_ns end)
{
	cc_ns cpu, little = (at - start) / TOGETHER_SHARE;

	return (start > since || just_woken(t, since, little)) &&
	       task_ran_through(t, at, end, &cpu) && cpu < little;
}

/* Who gave the helper what it worked on for the request, of which it knew nothing before that;
 * NULL: whoever waits for it did, or it is not known. */
static struct task *giver_of(const struct helper *h, const struct served *s, uint16_t depth)
{
	struct walk *w = h->w;
	struct task *t =
		s->giver && s->given > h->lo && !s->ambiguous && cc_reqid_eq(s->id, h->serving)
			? tasks_find(&w->e->tasks, s->giver, s->given)
			: NULL;
	bool cycle;

	return is_traced(t) && walk_may_nest(w, (uint32_t)(t - w->e->tasks.v.p), depth, &cycle)
		       ? t
		       : NULL;
}

/* A helper that served another request meanwhile was busy, not helping; before one that goes from
 * helper to helper came to it, it was that of the one before. */
static void nest_help(struct helper *h, uint16_t depth)
{
	struct walk *w = h->w;
	const struct task *t = &w->e->tasks.v.p[h->ti];
	struct helper before = *h;
	cc_ns lo = h->lo;

	before.hi = 0;
	for (cc_ns at = h->hi, start; at > lo && !w->err; at = start) {
		struct served s = served_before(h, at);
		const struct task *giver = before.hi ? NULL : giver_of(h, &s, depth);
		uint64_t evidence = w->evidence;

		if (giver) {
			before.ti = (uint32_t)(giver - w->e->tasks.v.p);
			before.hi = before.until = lo = s.given;
		}
		start = CC_MAX(s.since, lo);
		w->evidence |= s.evidence;
		if (s.id.kind == CC_REQID_NONE || cc_reqid_eq(s.id, h->serving))
			walk_span(w, h->ti, start, at, at == h->hi, depth);
		else if (s.ambiguous)
			emit_busy(w, h->ti, start, at, depth, WAIT_AMBIGUOUS, s.id);
		else if (s.by_wakes && maybe_together(t, h->lo, start, at, h->hi))
			walk_together(h, start, at, depth);
		else
			emit_busy(w, h->ti, start, at, depth, WAIT_QUEUED, s.id);
		w->evidence = evidence;
	}
	if (before.hi && !w->err) {
		w->stack[w->depth++] = (struct walk_frame){ .task = before.ti };
		nest_help(&before, depth);
		w->depth--;
	}
}

/* The first operation of @t on the request itself, not before @at. */
static cc_ns first_touch(const struct walk *w, const struct task *t, cc_ns at)
{
	for (uint32_t i = task_touch_from(t, at); i < t->touches.cnt; i++)
		if (touch_is_server(&t->touches.p[i]) &&
		    cc_reqid_eq(touch_id(&t->touches.p[i]), w->r->pub.id))
			return t->touches.p[i].t;
	return CC_NEVER;
}

void walk_queued(struct walk *w, uint32_t ti, cc_ns lo, cc_ns hi)
{
	struct helper h = { .w = w, .ti = ti, .lo = lo, .hi = hi, .serving = w->serving };
	const struct task *t = &w->e->tasks.v.p[ti];
	cc_ns sent = first_touch(w, t, hi);

	for (cc_ns at = hi, start; at > lo && !w->err; at = start) {
		struct served s = served_before(&h, at);
		uint64_t evidence = w->evidence;
		enum wait_class cls = WAIT_QUEUED;
		cc_ns idle, idle_out = 0;

		start = s.since;
		if (s.ambiguous || cc_reqid_eq(s.id, w->serving))
			s.id = (struct cc_reqid){ 0 };
		idle = s.id.kind == CC_REQID_NONE ? owner_idle_end(w->e, t, lo, at, &idle_out) : 0;
		if (idle == at) { /* free, yet it did not take it: it lay elsewhere */
			start = CC_MAX(start, idle_out);
			cls = WAIT_AMBIGUOUS;
			w->evidence |= CC_EV_BIT(ELSEWHERE);
		} else {
			start = CC_MAX(start, idle);
		}
		w->evidence |= s.evidence;
		if (s.id.kind != CC_REQID_NONE && maybe_together(t, lo, start, at, sent)) {
			cls = WAIT_AMBIGUOUS; /* behind the other one, or with it */
			w->evidence |= CC_EV_BIT(TOGETHER);
		}
		emit_busy(w, ti, start, at, 0, cls, s.id);
		w->evidence = evidence;
	}
}

/* A holder's time keeps its class; the request it served is to blame. */
static void nest_lock(struct helper *h, uint16_t depth)
{
	struct walk *w = h->w;
	const struct task *t = &w->e->tasks.v.p[h->ti];

	for (cc_ns at = h->hi, start; at > h->lo && !w->err; at = start) {
		struct cc_reqid id = owner_serving(w->e, t, at, h->lo, &start);

		start = CC_MAX(start, h->lo);
		walk_lean_on(w, id);
		w->serving = id.kind != CC_REQID_NONE ? id : h->serving;
		if (cc_reqid_eq(id, w->r->pub.id))
			id = (struct cc_reqid){ 0 }; /* the request itself is nobody to blame */
		w->blame = id;
		walk_span(w, h->ti, start, at, at == h->hi, depth);
	}
}

void walk_nest(struct walk *w, uint32_t ti, cc_ns lo, cc_ns hi, uint16_t depth, enum nest_kind kind,
	       cc_ns handoff)
{
	struct helper h = {
		.w = w, .ti = ti, .lo = lo, .hi = hi, .until = w->until, .serving = w->serving
	};
	struct cc_reqid blame = w->blame;

	w->until = 0;

	w->leaned |= 1ull << (w->e->tasks.v.p[ti].tid % 64);
	w->stack[w->depth++] = (struct walk_frame){ .task = ti, .handoff = handoff };
	depth++;
	if (!w->r)
		walk_span(w, ti, lo, hi, true, depth);
	else if (kind == NEST_HELP)
		nest_help(&h, depth);
	else
		nest_lock(&h, depth);
	w->depth--;
	w->serving = h.serving;
	w->blame = blame;
}
