/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a task's timeline backward, and wakes that no episode carries. */
#include <errno.h>
#include <string.h>

#include "task.h"

/* Who asks for one moment asks for others near it next. Where that was is no part of what the
 * timeline says, so it is kept in a task that is otherwise only read. */
static struct task *memo(const struct task *t) { return (struct task *)t; }

uint32_t task_ep_from(const struct task *t, cc_ns at)
{
	return memo(t)->near_ep = vec_lower_bound_near(&t->eps, out, at, t->near_ep);
}

uint32_t task_ep_until(const struct task *t, cc_ns at)
{
	return memo(t)->near_ep = vec_lower_bound_near(&t->eps, in, at, t->near_ep);
}

uint32_t task_touch_from(const struct task *t, cc_ns at)
{
	return memo(t)->near_touch = vec_lower_bound_near(&t->touches, t, at, t->near_touch);
}

static void in_episode(const struct episode *ep, cc_ns at, struct tl_piece *ret)
{
	cc_ns blocked_end = ep_kind(ep) == EP_RUNNABLE ? ep->out : ep_blocked_end(ep);

	ret->ep = ep;
	if (ep_kind(ep) == EP_UNSEEN) {
		ret->kind = TL_LOST;
		ret->start = ep->out;
		ret->end = ep->in;
	} else if (at <= blocked_end) {
		ret->kind = TL_BLOCKED;
		ret->start = ep->out;
		ret->end = blocked_end;
	} else {
		ret->kind = TL_RUNQ;
		ret->start = blocked_end;
		ret->end = ep->in;
	}
}

/* A time on the CPU between two episodes, as far as it is known. */
struct gap {
	bool lo_known;              /* lo is where it came onto the CPU, told by an episode */
	cc_ns lo, hi;               /* lo CC_NEVER: nothing is known before hi */
	cc_ns lost_ns;              /* before hi */
	bool all_lost;              /* episodes are missing that no loss accounts for */
	const struct episode *next; /* NULL: none yet */
};

static void lost_before(struct gap *g, const struct episode *prev, uint32_t seq, uint64_t lost)
{
	int32_t missing = prev ? (int32_t)(seq - prev->seq) - 1 : 0;

	g->lost_ns = CC_LOST_NS(lost);
	g->all_lost = missing > 0 && (uint32_t)missing > CC_LOST_CNT(lost);
}

static void in_gap(const struct gap *g, cc_ns at, struct tl_piece *ret)
{
	cc_ns lost_from = g->hi;

	if (g->all_lost)
		lost_from = g->lo;
	else if (g->lost_ns)
		lost_from = g->hi > g->lost_ns ? g->hi - g->lost_ns : 0;
	if (g->lo != CC_NEVER)
		lost_from = CC_MAX(lost_from, g->lo);
	ret->ep = g->next;
	if (at > lost_from) {
		ret->kind = TL_LOST;
		ret->start = lost_from;
		ret->end = g->hi;
	} else if (g->lo == CC_NEVER || at <= g->lo) {
		ret->kind = TL_NODATA;
		ret->start = 0;
		ret->end = CC_MIN(g->lo, lost_from);
	} else {
		ret->kind = TL_RUN;
		ret->start = g->lo;
		ret->end = lost_from;
		ret->exact = g->lo_known && g->next && lost_from == g->hi;
	}
}

static void in_open_wait(const struct open_state *o, cc_ns at, struct tl_piece *ret)
{
	bool queued = o->wake && at > o->wake;

	ret->kind = queued ? TL_RUNQ : TL_BLOCKED;
	ret->start = queued ? o->wake : o->out;
	ret->end = queued || !o->wake ? CC_NEVER : o->wake;
	ret->ep = &o->ep;
	ret->open = true;
}

/* After the last episode: what the iterator saw, how long it lived, when it was last seen. */
static void after_last(const struct task *t, struct gap *g, cc_ns at, bool ran,
		       struct tl_piece *ret)
{
	const struct open_state *o = &t->open;
	const struct episode *prev = t->eps.cnt ? &t->eps.p[t->eps.cnt - 1] : NULL;
	bool waits = o->now && o->out && (!prev || o->out >= prev->in);
	cc_ns seen = ran && at <= t->dead ? CC_MAX(t->alive, at) : t->alive;

	seen = CC_MIN(seen, t->dead);
	if (waits) {
		if (at > o->out) {
			in_open_wait(o, at, ret);
			return;
		}
		g->hi = o->out;
		g->next = &o->ep;
		lost_before(g, prev, o->seq, o->lost);
		in_gap(g, at, ret);
		return;
	}
	if (o->now && !o->out && g->lo != CC_NEVER && o->last_in > g->lo) {
		lost_before(g, prev, o->seq, o->lost);
		if (at <= o->last_in) {
			g->hi = o->last_in;
			in_gap(g, at, ret);
			return;
		}
		g->lo = o->last_in;
		g->lost_ns = 0;
		g->all_lost = false;
	}
	if (at > seen || g->lo == CC_NEVER) {
		bool before = g->lo != CC_NEVER && at <= g->lo; /* last seen before it was known */

		ret->kind = TL_NODATA;
		ret->start = g->lo == CC_NEVER || before ? 0 : CC_MAX(seen, g->lo);
		ret->end = before ? g->lo : CC_NEVER;
		return;
	}
	g->hi = seen;
	in_gap(g, at, ret);
}

void task_piece(const struct task *t, const struct tasks *ts, cc_ns at, bool ran,
		struct tl_piece *ret)
{
	uint32_t i = task_ep_from(t, at);
	const struct episode *prev = i ? &t->eps.p[i - 1] : NULL;
	struct gap g = {
		.lo = prev ? prev->in : t->known_from,
		.lo_known = prev != NULL,
	};

	*ret = (struct tl_piece){ 0 };
	if (prev && prev->in >= at) {
		in_episode(prev, at, ret);
		return;
	}
	if (at > t->dead) {
		ret->kind = TL_NODATA;
		ret->start = prev ? CC_MAX(prev->in, t->dead) : t->dead;
		ret->end = CC_NEVER;
		return;
	}
	if (i == t->eps.cnt) {
		after_last(t, &g, at, ran, ret);
		return;
	}
	g.next = &t->eps.p[i];
	g.hi = g.next->out;
	if (g.lo != CC_NEVER && g.lo >= g.hi)
		g.lo = CC_NEVER;
	lost_before(&g, prev, g.next->seq, ep_lost(ts, g.next));
	in_gap(&g, at, ret);
}

bool task_ran_through(const struct task *t, cc_ns a, cc_ns b, cc_ns *ret_cpu)
{
	*ret_cpu = b - a;
	for (uint32_t i = task_ep_until(t, a + 1); i < t->eps.cnt; i++) {
		const struct episode *ep = &t->eps.p[i];

		if (ep->out >= b)
			break;
		if (ep_kind(ep) == EP_UNSEEN || (ep_blocked(ep) && ep_blocked_end(ep) > a))
			return false;
		*ret_cpu -= CC_MIN(ep->in, b) - CC_MAX(ep->out, a);
	}
	return true;
}

static int insert_at(struct tasks *ts, struct task *t, uint32_t i, const struct episode *ep)
{
	if (vec_reserve(ts->mem, &t->eps, t->eps.cnt + 1))
		return -ENOMEM;
	memmove(&t->eps.p[i + 1], &t->eps.p[i], (t->eps.cnt - i) * sizeof(*ep));
	t->eps.p[i] = *ep;
	t->eps.cnt++;
	t->indexed = CC_MIN(t->indexed, i);
	return 0;
}

/* Two wakes in one episode: it must have run unseen from @first to @second, and queued after. */
static int split_at(struct tasks *ts, struct task *t, uint32_t i, cc_ns first, cc_ns second)
{
	struct episode whole = t->eps.p[i], part = whole;
	int err;

	part.out = first;
	part.wake = 0;
	part.in = second;
	part.kind = EP_UNSEEN | EP_INDEXED;
	part.side = 0;
	err = insert_at(ts, t, i + 1, &part);
	if (err)
		return err;
	part.out = part.wake = second;
	part.in = whole.in;
	part.kind = EP_RUNNABLE | EP_INDEXED;
	err = insert_at(ts, t, i + 2, &part);
	if (err)
		return err;
	t->eps.p[i].wake = t->eps.p[i].in = first;
	return 0;
}

static void set_waker(struct episode *ep, const struct cc_rec_wake *r)
{
	ep->wake = r->h.ts;
	ep->waker_tid = r->waker_tid;
	ep->waker_tgid = r->waker_tgid;
	ep->flags &= (uint8_t)~CC_EP_CTX_MASK;
	ep->flags |= (uint8_t)(r->h.flags << CC_EP_CTX_SHIFT & CC_EP_CTX_MASK);
	ep->kind &= (uint8_t)~EP_INDEXED;
	if (!ep->key)
		ep->key = r->key;
}

static int wake_in(struct tasks *ts, struct task *t, uint32_t i, const struct cc_rec_wake *r)
{
	struct episode *ep = &t->eps.p[i];
	cc_ns old = ep->wake;

	if (ep_kind(ep) == EP_UNSEEN)
		return 1;
	if (ep_kind(ep) == EP_RUNNABLE) {
		if (i == 0 || ep_kind(ep - 1) != EP_UNSEEN)
			return 0;
		ep[-1].in = ep->out = ep->wake = r->h.ts; /* a third wake: it ran once more */
		return 1;
	}
	if (old == r->h.ts)
		return 1;
	t->indexed = CC_MIN(t->indexed, i);
	if (!old || r->h.ts < old) {
		set_waker(ep, r);
		return old ? split_at(ts, t, i, r->h.ts, old) ?: 1 : 1;
	}
	return split_at(ts, t, i, old, r->h.ts) ?: 1;
}

int tasks_wake(struct tasks *ts, const struct cc_rec_wake *r)
{
	struct task *t = tasks_find(ts, r->tid, r->h.ts);
	struct tl_piece p;
	uint32_t i;

	if (!t || !t->timeline)
		return 1; /* nothing is kept of it */
	/* on ties the waking comes before the switch-in */
	i = task_ep_from(t, r->h.ts);
	if (i > 0 && r->h.ts <= t->eps.p[i - 1].in)
		return wake_in(ts, t, i - 1, r);
	if (i < t->eps.cnt) {
		task_piece(t, ts, r->h.ts + 1, false, &p);
		return p.kind == TL_LOST;
	}
	if (t->open.now && t->open.out && t->open.out <= r->h.ts) {
		if (!t->open.wake) {
			set_waker(&t->open.ep, r);
			t->open.wake = r->h.ts;
		}
		return -EAGAIN; /* its episode is to tell it too */
	}
	return t->alive > r->h.ts ? 0 : -EAGAIN;
}
