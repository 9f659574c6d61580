/* SPDX-License-Identifier: Apache-2.0 */
/* How a task came to hold a request: it touched it, was born of a holder, or was woken by one. */
#include "identity.h"

/* The latest operation of @t on another server socket before @at; 0: none. */
static cc_ns last_foreign(const struct finder *f, const struct task *t, cc_ns at,
			  struct cc_reqid *ret_id)
{
	for (uint32_t i = task_touch_from(t, at); i-- > 0;) {
		const struct sock_touch *s = &t->touches.p[i];

		if (!touch_is_server(s) || is_ours(f, s))
			continue;
		*ret_id = touch_id(s);
		return s->t;
	}
	return 0;
}

static bool chain_of(struct finder *f, const struct task *t, cc_ns at, uint32_t hops,
		     struct chain *c);

bool chain_handed(struct finder *f, const struct task *t, cc_ns lo, cc_ns at, uint32_t hops,
		  cc_ns *ret_wake, struct chain *c)
{
	uint32_t had = c->cnt;

	for (uint32_t i = task_ep_until(t, lo); i < t->eps.cnt; i++) {
		const struct episode *ep = &t->eps.p[i];
		const struct task *waker;

		if (ep->out >= at || ++f->looks > LOOKS_MAX)
			break;
		if (!ep_blocked(ep) || !ep_task_wake(ep) || ep->wake <= lo || ep->wake > at ||
		    ep->waker_tid == t->tid)
			continue;
		waker = tasks_find(&f->e->tasks, ep->waker_tid, ep->wake);
		if (!waker || !chain_of(f, waker, ep->wake, hops, c)) {
			c->cnt = had;
			continue;
		}
		if (engine_classify(f->e, t, ep).is_lock) {
			c->cnt = had; /* it passed a lock, not work */
			continue;
		}
		if (had > 0)
			c->v[had - 1].evidence = chain_wake_evidence(ep);
		*ret_wake = ep->wake;
		return true;
	}
	return false;
}

/* Work that goes through a channel is told as an item, also where it is given to one that waits. A
 * wake without one is a signal, a closed channel, a lock, a timer: whose work it was it does not
 * say. */
uint64_t chain_wake_evidence(const struct episode *ep)
{
	return CC_EV_BIT(INFERRED) | (ep_is_go(ep) ? CC_EV_BIT(GO_SELECT) : 0);
}

bool chain_item(struct finder *f, const struct task *t, cc_ns lo, cc_ns at, uint32_t hops,
		struct link *l, struct chain *c)
{
	const struct go_recv *got = task_is_go(t) ? go_item_before(f->e, t, lo, at) : NULL;
	const struct task *from = got ? tasks_find(&f->e->tasks, got->from, got->sent) : NULL;
	uint32_t had = c->cnt;

	if (!from || from == t || ++f->looks > LOOKS_MAX ||
	    !chain_of(f, from, got->sent, hops, c)) {
		c->cnt = had;
		return false;
	}
	l->kind = LINK_ITEM;
	l->from = got->t;
	l->evidence = got->how == GO_HOW_EXACT ? CC_EV_BIT(GO_ITEM) : CC_EV_BIT(GO_PEEK);
	return true;
}

bool chain_born(struct finder *f, const struct task *t, cc_ns at, uint32_t hops, struct chain *c)
{
	const struct task *parent;

	if (t->born == CC_NEVER || !t->parent_tid || t->born > at || t->born < f->first)
		return false;
	parent = tasks_find(&f->e->tasks, t->parent_tid, t->born);
	return parent && parent != t && chain_of(f, parent, t->born, hops, c);
}

/* A thread lets go of what it was born for when it waits for anything new; a goroutine is made for
 * one thing. */
static bool kept_since_birth(const struct finder *f, const struct task *t, cc_ns at)
{
	struct cc_reqid ignored;

	if (task_is_go(t))
		return last_foreign(f, t, at, &ignored) < t->born;
	return owner_let_go(f->e, t, f->r->pub.id, CC_MIN(t->born, at), at) >= at;
}

/* Puts on @c how @t held the request right before @at. False: it did not. */
static bool chain_of(struct finder *f, const struct task *t, cc_ns at, uint32_t hops,
		     struct chain *c)
{
	struct link *l = &c->v[c->cnt];
	struct cc_reqid owner, ignored;
	cc_ns since, lo, idle, began;

	if (c->cnt >= ARRAY_SIZE(c->v) || at < f->first)
		return false;
	*l = (struct link){ .task = index_of(f, t), .kind = LINK_TOUCH };
	f->r->leaned |= 1ull << (t->tid % 64);
	owner = owner_at(f->e, t, at, &since);
	if (cc_reqid_eq(owner, f->r->pub.id)) {
		c->cnt++;
		return true;
	}
	if (hops >= HOPS_MAX)
		return false;
	c->cnt++;
	l->kind = LINK_BORN;
	l->from = t->born;
	if (kept_since_birth(f, t, at) && chain_born(f, t, at, hops + 1, c))
		return true;
	lo = CC_MAX(f->first - 1, last_foreign(f, t, at + 1, &ignored));
	if (chain_item(f, t, lo, at, hops + 1, l, c))
		return true;
	/* handed to it by a wake, and it did nothing else and was not idle since */
	l->kind = LINK_WOKEN;
	idle = owner_idle_end(f->e, t, lo, at, &began);
	if (idle)
		lo = CC_MAX(lo, idle - 1); /* the idle wait itself may have been ended by it */
	if (chain_handed(f, t, lo, at, hops + 1, &l->from, c))
		return true;
	c->cnt--;
	return false;
}

bool chain_executor(const struct finder *f, const struct task *t, cc_ns from, cc_ns to)
{
	for (uint32_t i = task_ep_until(t, from); i < t->eps.cnt; i++) {
		const struct episode *ep = &t->eps.p[i];
		const struct task *waker;
		struct cc_reqid id;
		cc_ns since;

		if (ep->out >= to)
			break;
		if (!ep_task_wake(ep) || ep->wake < from || ep->wake > to)
			continue;
		waker = tasks_find(&f->e->tasks, ep->waker_tid, ep->wake);
		if (!waker)
			continue;
		id = owner_at(f->e, waker, ep->wake, &since);
		if (id.kind != CC_REQID_NONE && !cc_reqid_eq(id, f->r->pub.id))
			return true;
	}
	return false;
}
