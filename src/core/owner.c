/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work a thread's time was: by what it touched, by what identity found. */
#include "engine_priv.h"

struct wait_kind engine_classify(const struct engine *e, const struct task *t,
				 const struct episode *ep)
{
	struct wait_kind k;

	if (ep_is_go(ep))
		return go_classify(e, t, ep);
	k = classify(&e->cls, t, ep, ep_side(&e->tasks, ep));
	if (t->go && go_walk_is_idle(e, t, ep, &k))
		k = (struct wait_kind){ .cls = WAIT_IDLE, .idle = IDLE_LOOP, .guessed = true };
	return k;
}

/* The touch says whose time what follows is: a server socket, or an upstream called for one. */
static bool says_owner(const struct engine *e, const struct sock_touch *s)
{
	if (touch_is_server(s))
		return true;
	return s->cookie && requests_link_agreed(&e->reqs, touch_id(s), s->socket);
}

/* The request that @t touched last at @at or before is over, or it touched none. */
static bool is_free(const struct engine *e, const struct task *t, cc_ns at)
{
	uint32_t i = task_touch_from(t, at + 1);
	const struct req *r;

	while (i > 0 && !says_owner(e, &t->touches.p[i - 1]))
		i--;
	if (!i && t->late.id.kind == CC_REQID_NONE)
		return true;
	r = requests_find(&e->reqs, i ? touch_id(&t->touches.p[i - 1]) : t->late.id);
	return !r || (r->told && r->pub.end <= at);
}

bool owner_is_idle(const struct engine *e, const struct task *t, const struct episode *ep)
{
	enum idle_kind idle;

	if (!ep_blocked(ep))
		return false;
	idle = engine_classify(e, t, ep).idle;
	return idle == IDLE_LOOP || (idle == IDLE_WHEN_FREE && is_free(e, t, ep->out));
}

bool owner_one_turn(const struct task *t, cc_ns from, cc_ns to)
{
	for (uint32_t i = task_ep_from(t, from); i < t->eps.cnt; i++) {
		if (t->eps.p[i].out >= to)
			break;
		if (ep_blocked(&t->eps.p[i]))
			return false;
	}
	return true;
}

/* The first idle episode that begins in [from, to); CC_NEVER: none. A thread's time is asked for
 * backward, from one touch on again and again: what was scanned last is remembered. */
static cc_ns first_idle_episode(struct engine *e, const struct task *t, cc_ns from, cc_ns to)
{
	struct idle_memo *m = &e->idle;
	uint32_t ti = (uint32_t)(t - e->tasks.v.p);
	cc_ns scan = from;

	if (m->valid && m->task == ti && m->from == from) {
		if (m->first < CC_NEVER || to <= m->scanned)
			return m->first < to ? m->first : CC_NEVER;
		scan = m->scanned;
	}
	*m = (struct idle_memo){ ti, true, from, to, CC_NEVER };
	for (uint32_t i = task_ep_from(t, scan); i < t->eps.cnt; i++) {
		if (t->eps.p[i].out >= to)
			break;
		if (!owner_is_idle(e, t, &t->eps.p[i]))
			continue;
		m->first = t->eps.p[i].out;
		break;
	}
	return m->first;
}

cc_ns owner_first_idle(struct engine *e, const struct task *t, cc_ns from, cc_ns to)
{
	cc_ns first = first_idle_episode(e, t, from, to);

	if (first < CC_NEVER)
		return first;
	if (t->open.now && t->open.out && t->open.out >= from && t->open.out < to &&
	    owner_is_idle(e, t, &t->open.ep))
		return t->open.out;
	return CC_NEVER;
}

cc_ns owner_idle_end(const struct engine *e, const struct task *t, cc_ns lo, cc_ns at,
		     cc_ns *ret_out)
{
	for (uint32_t i = task_ep_from(t, at); i-- > 0;) {
		const struct episode *ep = &t->eps.p[i];
		cc_ns end = ep_blocked_end(ep);

		if (end < lo)
			return 0;
		if (end <= at && owner_is_idle(e, t, ep)) {
			*ret_out = ep->out;
			return end;
		}
	}
	return 0;
}

/* By what it touched before @touched_to, unless an idle wait began since and before @idle_to. */
static struct cc_reqid owner_by(struct engine *e, const struct task *t, cc_ns touched_to,
				cc_ns idle_to, cc_ns *ret_since)
{
	uint32_t i = task_touch_from(t, touched_to);
	struct cc_reqid none = { 0 };
	const struct sock_touch *s;

	*ret_since = 0;
	while (i > 0 && !says_owner(e, &t->touches.p[i - 1]))
		i--;
	if (!i) {
		*ret_since = t->late.from;
		return touched_to > t->late.from && idle_to <= t->late.to ? t->late.id : none;
	}
	s = &t->touches.p[i - 1];
	*ret_since = s->t;
	return owner_first_idle(e, t, s->t, idle_to) < idle_to ? none : touch_id(s);
}

struct cc_reqid owner_before(struct engine *e, const struct task *t, cc_ns at, cc_ns *ret_since)
{
	return owner_by(e, t, at, at, ret_since);
}

struct cc_reqid owner_at(struct engine *e, const struct task *t, cc_ns at, cc_ns *ret_since)
{
	return owner_by(e, t, at + 1, at, ret_since);
}

cc_ns owner_let_go(struct engine *e, const struct task *t, struct cc_reqid id, cc_ns at,
		   cc_ns limit)
{
	cc_ns end = CC_MIN(limit, t->dead);

	for (uint32_t i = task_touch_from(t, at + 1); i < t->touches.cnt; i++) {
		const struct sock_touch *s = &t->touches.p[i];

		if (s->t >= end)
			break;
		if (says_owner(e, s) && !cc_reqid_eq(touch_id(s), id)) {
			end = s->t;
			break;
		}
	}
	return CC_MIN(end, owner_first_idle(e, t, at, end));
}

bool owner_regained(struct engine *e, const struct task *t, struct cc_reqid id, cc_ns *at, cc_ns hi,
		    cc_ns *ret_until)
{
	uint32_t i = task_touch_from(t, *at);

	for (; i < t->touches.cnt && t->touches.p[i].t < hi; i++)
		if (says_owner(e, &t->touches.p[i]) && cc_reqid_eq(touch_id(&t->touches.p[i]), id))
			break;
	if (i == t->touches.cnt || t->touches.p[i].t >= hi)
		return false;
	*at = t->touches.p[i].t;
	while (++i < t->touches.cnt && t->touches.p[i].t < hi)
		if (says_owner(e, &t->touches.p[i]) && !cc_reqid_eq(touch_id(&t->touches.p[i]), id))
			break;
	if (i < t->touches.cnt)
		hi = CC_MIN(hi, t->touches.p[i].t);
	*ret_until = CC_MIN(hi, owner_first_idle(e, t, *at, hi));
	return true;
}

/* A hold of the task that made @t: what a new task works for until it does something of its own. */
static struct cc_reqid by_birth(struct engine *e, const struct task *t, cc_ns at)
{
	struct cc_reqid none = { 0 };
	const struct task *parent;

	if (t->born == CC_NEVER || !t->parent_tid || at <= t->born)
		return none;
	parent = tasks_find(&e->tasks, t->parent_tid, t->born);
	for (uint32_t i = parent ? parent->holds.cnt : 0; i-- > 0;) { /* the latest counts */
		const struct hold *h = &parent->holds.p[i];
		const struct req *r;

		if (h->from > t->born || h->to < t->born)
			continue;
		r = requests_find(&e->reqs, h->id);
		if (!r || at > r->pub.end || owner_let_go(e, t, h->id, t->born, at) < at)
			continue;
		return h->id;
	}
	return none;
}

#define HOLDS_OVERLAP \
	16 /* holds of one task that were over before: then the earlier ones are too */

void owner_served(struct engine *e, const struct task *t, cc_ns at, cc_ns lo, struct served *ret)
{
	if (task_is_go(t)) {
		go_serving(e, t, at, lo, ret);
		return;
	}
	*ret = (struct served){ 0 };
	ret->id = owner_serving(e, t, at, lo, &ret->since);
}

struct cc_reqid owner_serving(struct engine *e, const struct task *t, cc_ns at, cc_ns lo,
			      cc_ns *ret_start)
{
	if (task_is_go(t)) {
		struct served s;

		go_serving(e, t, at, lo, &s);
		*ret_start = s.since;
		if (s.ambiguous)
			s.id.kind = CC_REQID_NONE;
		return s.id;
	}
	const struct hold *best = NULL;
	uint32_t over = 0;
	cc_ns start = lo;

	for (uint32_t i = vec_lower_bound(&t->holds, from, at); i-- > 0;) {
		const struct hold *h = &t->holds.p[i];

		if (h->to < at) {
			start = CC_MAX(start, h->to);
			if (h->to < lo && ++over > HOLDS_OVERLAP)
				break;
			continue;
		}
		best = h; /* the one that began last */
		start = CC_MAX(start, h->from);
		break;
	}
	*ret_start = start;
	if (best)
		return best->id;
	if (t->born != CC_NEVER && t->born < at)
		*ret_start = CC_MAX(start, t->born);
	return by_birth(e, t, at);
}
