/* SPDX-License-Identifier: Apache-2.0 */
/* Where a wait that is told as several is really over: a timeout after which it begins anew, a wake
 * with others that was for one of those. */
#include "engine_priv.h"

#define SLICE_GAP CC_US(100) /* on the CPU between two of them, to look whether it is over */
#define BETWEEN_MAX 8        /* waits for the lock beneath, between two of them */

void wakes_back_of(struct engine *e, const struct task *t, const struct episode *ep, cc_ns lo,
		   cc_ns hi, struct wakes_back *ret)
{
	struct episode other = *ep;
	uint32_t words = 1;

	*ret = (struct wakes_back){ 0 };
	if (!ep_is_go(ep) && engine_classify(e, t, ep).cls == WAIT_COND) {
		other.key ^= 4;
		words = 2;
	}
	for (uint32_t i = 0; i < words; i++) {
		uint32_t res = wakes_lock_of(e, t, i ? &other : ep);

		if (res)
			ret->v[i] = resource_wakes(&e->res, res, lo, hi, &ret->cnt[i]);
		ret->left[i] = ret->cnt[i];
	}
}

const struct lock_wake *wakes_back_next(struct wakes_back *b, uint32_t *ret_of)
{
	const struct lock_wake *x = b->left[0] ? &b->v[0][b->left[0] - 1] : NULL;
	const struct lock_wake *y = b->left[1] ? &b->v[1][b->left[1] - 1] : NULL;

	*ret_of = y && (!x || y->t > x->t);
	if (!x && !y)
		return NULL;
	b->left[*ret_of]--;
	return *ret_of ? y : x;
}

bool wait_same_object(const struct episode *a, const struct episode *b)
{
	return (a->key | 7) == (b->key | 7) && a->syscall == b->syscall;
}

const struct episode *wait_last_slice(const struct engine *e, const struct task *t,
				      const struct episode *ep)
{
	const struct episode *end = t->eps.p + t->eps.cnt;
	const struct side *s = ep_side(&e->tasks, ep);

	if (ep == &t->open.ep)
		return ep;
	while (s && s->flags & CC_EX_TIMEOUT && ep + 1 < end && wait_same_object(&ep[0], &ep[1]) &&
	       ep[1].out - ep->in <= SLICE_GAP && ep_blocked(ep + 1)) {
		ep++;
		s = ep_side(&e->tasks, ep);
	}
	return ep;
}

uint32_t wait_herd(struct engine *e, const struct task *t, const struct episode *ep)
{
	cc_ns from = ep->wake > SLICE_GAP ? ep->wake - SLICE_GAP : 0;
	const struct lock_wake *v;
	struct wakes_back b;
	uint32_t ignored, others = 0;

	wakes_back_of(e, t, ep, from, ep->wake + SLICE_GAP, &b);
	while ((v = wakes_back_next(&b, &ignored)) != NULL)
		others += v->waker_tid == ep->waker_tid && v->wakee_tid != t->tid;
	return others ? others + 1 : 0;
}

/* It answered somebody, or read a request. */
static bool served_within(const struct task *t, cc_ns from, cc_ns to)
{
	for (uint32_t i = task_touch_from(t, from); i < t->touches.cnt && t->touches.p[i].t < to;
	     i++)
		if (touch_is_server(&t->touches.p[i]))
			return true;
	return false;
}

/* The next wait of @t for the same thing, if all that it did between was to look: it ran no longer
 * than that takes, and waited for nothing but the lock beneath, and for a CPU. NULL: none. */
static const struct episode *waits_again(const struct engine *e, const struct task *t,
					 const struct episode *ep)
{
	const struct episode *end = t->eps.p + t->eps.cnt, *next = ep + 1;
	cc_ns ran = 0;

	for (uint32_t n = 0; next < end && n < BETWEEN_MAX; n++, next++) {
		ran += next->out - next[-1].in;
		if (ran > SLICE_GAP || ep_kind(next) == EP_UNSEEN)
			break;
		if (ep_blocked(next) && wait_same_object(ep, next))
			return served_within(t, ep->in, next->out) ? NULL : next;
		if (ep_blocked(next) && !engine_classify(e, t, next).is_lock)
			break;
	}
	return NULL;
}

const struct episode *wait_goes_on(struct engine *e, const struct task *t, const struct episode *ep)
{
	const struct episode *next;

	if (ep == &t->open.ep || ep_is_go(ep) || !ep_task_wake(ep) ||
	    !classify_is_futex(&e->cls, ep))
		return NULL;
	next = waits_again(e, t, ep);
	return next && ep_task_wake(next) && wait_herd(e, t, ep) ? next : NULL;
}

bool wait_is_tried_again(const struct engine *e, const struct task *t, const struct episode *ep)
{
	return ep != &t->open.ep && !ep_is_go(ep) && ep_task_wake(ep) &&
	       classify_is_futex(&e->cls, ep) && waits_again(e, t, ep) != NULL;
}

const struct episode *wait_last_of_herd(struct engine *e, const struct task *t,
					const struct episode *ep)
{
	for (const struct episode *next; (next = wait_goes_on(e, t, ep)) != NULL;)
		ep = next;
	return ep;
}

#define TURNS_LOOKED 32 /* wakes that are looked at, backward */

struct release { /* wakes that one gave at a time */
	cc_ns t;
	uint32_t waker;
	cc_ns waited_since; /* by one of those that it woke */
};

/* Since when @t, that was woken from @ep, was at something else at @at, for the first time since it
 * had looked whether it may go on. 0: it was not, or waits again, or is on its way to look: that
 * may wait for the lock beneath, or for a CPU. */
static cc_ns elsewhere_since(const struct engine *e, const struct task *t, const struct episode *ep,
			     cc_ns at)
{
	const struct episode *end = t->eps.p + t->eps.cnt;

	if (ep == &t->open.ep)
		return 0;
	for (const struct episode *o = ep + 1; o < end && o->out < at; o++) {
		if (ep_kind(o) == EP_UNSEEN || (ep_blocked(o) && wait_same_object(ep, o)))
			return 0;
		if (ep_blocked(o) && !engine_classify(e, t, o).is_lock)
			return ep_blocked_end(o) > at ? o->out : 0;
	}
	return 0;
}

bool wait_is_for_several(struct engine *e, const struct task *t, const struct episode *ep, cc_ns to)
{
	struct release now = { 0 }, next = { 0 };
	const struct lock_wake *v;
	struct wakes_back b;
	uint32_t ignored;

	wakes_back_of(e, t, ep, 0, to, &b);
	for (uint32_t n = 0; n < TURNS_LOOKED && (v = wakes_back_next(&b, &ignored)); n++) {
		const struct task *wakee = tasks_find(&e->tasks, v->wakee_tid, v->t);
		const struct episode *o = wakee ? wakes_episode_of(wakee, v->t) : NULL;

		if (!o)
			continue;
		if (v->waker_tid != now.waker || now.t - v->t > SLICE_GAP) {
			next = now;
			now = (struct release){ v->t, v->waker_tid, o->out };
		}
		now.waited_since = CC_MIN(now.waited_since, o->out);
		if (next.waker && next.waker != v->wakee_tid &&
		    elsewhere_since(e, wakee, o, next.t) > next.waited_since)
			return true;
	}
	return false;
}
