/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work a goroutine did: what it touched, whose child it is, whose item it received, in that
 * order. Never whose wake it got. What a goroutine that works for many at a time did is anybody's.
 */
#include "engine_priv.h"

#define HOPS_MAX 8
#define JUDGED_ITEMS 16u /* the last ones, by which a goroutine is judged */
#define JUDGED_WRONG 2u  /* wakes for other requests than its item's, from which on it is shared */
#define SHARED_SHARE 10u /* ... if they are more than one in so many */

static void serving(struct engine *e, const struct task *t, cc_ns at, cc_ns lo, uint32_t hops,
		    struct served *ret);

/* ---- by what it touched ------------------------------------------------------------------- */

static bool by_hold(const struct task *t, cc_ns at, cc_ns lo, struct served *ret)
{
	for (uint32_t i = vec_lower_bound(&t->holds, from, at); i-- > 0;) {
		const struct hold *h = &t->holds.p[i];

		if (h->to >= at) {
			ret->id = h->id;
			ret->since = CC_MAX(ret->since, h->from);
			ret->evidence = CC_EV_BIT(SOCKET);
			return true;
		}
		ret->since = CC_MAX(ret->since, h->to);
		if (h->to < lo)
			break;
	}
	return false;
}

/* ---- by birth ----------------------------------------------------------------------------- */

/* The first operation on another request's socket after @from and before @to. */
static cc_ns first_foreign(const struct task *t, struct cc_reqid id, cc_ns from, cc_ns to)
{
	for (uint32_t i = task_touch_from(t, from); i < t->touches.cnt; i++) {
		const struct sock_touch *s = &t->touches.p[i];

		if (s->t >= to)
			break;
		if (touch_is_server(s) && !cc_reqid_eq(touch_id(s), id))
			return s->t;
	}
	return CC_NEVER;
}

static cc_ns end_of(const struct engine *e, struct cc_reqid id)
{
	const struct req *r = requests_find(&e->reqs, id);

	return r ? r->pub.end : 0;
}

/* Work that came to @t for other requests after the one it was born for was over: it was made to
 * stay, by whoever came first. */
static bool outlived(struct engine *e, const struct task *t, cc_ns end)
{
	const struct go_state *g = task_go(&e->tasks, t);

	for (uint32_t i = vec_lower_bound(&g->got, t, end); i < g->got.cnt; i++)
		if (g->got.p[i].from &&
		    go_channel_kind(&e->tasks, t->tgid, g->got.p[i].channel) == GO_CHAN_WORK)
			return true;
	return false;
}

static bool by_birth(struct engine *e, const struct task *t, cc_ns at, uint32_t hops,
		     struct served *ret)
{
	const struct task *parent;
	struct served p;
	cc_ns end;

	if (t->born == CC_NEVER || !t->parent_tid || at <= t->born)
		return false;
	parent = tasks_find(&e->tasks, t->parent_tid, t->born);
	if (!parent || parent == t)
		return false;
	serving(e, parent, t->born, 0, hops + 1, &p);
	end = p.id.kind ? end_of(e, p.id) : 0;
	if (!p.id.kind || first_foreign(t, p.id, t->born, at) < at || outlived(e, t, end))
		return false;
	if (at > end) {
		ret->since = CC_MAX(ret->since, end);
		return false;
	}
	ret->id = p.id;
	ret->since = CC_MAX(ret->since, t->born);
	ret->evidence = p.evidence | CC_EV_BIT(LINEAGE);
	ret->ambiguous = p.ambiguous;
	return true;
}

/* ---- by item ------------------------------------------------------------------------------ */

#define LOOK_BACK 32u /* items received before */

/* It waits for something out of a channel that @got or what it had before @got came from. */
static bool is_parked_for_more(const struct engine *e, const struct task *t,
			       const struct episode *ep, const struct go_recv *got)
{
	const struct go_wait *w = ep_go_wait(&e->tasks, ep);
	const struct go_state *g = task_go(&e->tasks, t);

	if (ep->key == WAIT_CHAN) {
		uint32_t i = (uint32_t)(got - g->got.p) + 1;

		for (uint32_t n = 0; w && w->object && i-- > 0 && n < LOOK_BACK; n++)
			if (g->got.p[i].channel == w->object)
				return true;
		return false;
	}
	/* a loop around a select: it lay in one when this item came, it is in one again */
	if (ep->key != WAIT_SELECT)
		return false;
	for (uint32_t i = task_ep_from(t, got->t); i-- > 0;)
		return t->eps.p[i].key == WAIT_SELECT && t->eps.p[i].in >= got->t;
	return false;
}

/* When @t was through with @got: it wants the next one. @at: not yet. */
static cc_ns item_end(const struct engine *e, const struct task *t, const struct go_recv *got,
		      cc_ns at)
{
	const struct go_state *g = task_go(&e->tasks, t);

	for (uint32_t i = (uint32_t)(got - g->got.p) + 1; i < g->got.cnt; i++)
		if (g->got.p[i].t < at && g->got.p[i].channel == got->channel) {
			at = g->got.p[i].t;
			break;
		}
	for (uint32_t i = task_ep_from(t, got->t + 1); i < t->eps.cnt; i++) {
		if (t->eps.p[i].out >= at)
			break;
		if (is_parked_for_more(e, t, &t->eps.p[i], got))
			return t->eps.p[i].out;
	}
	if (t->open.now && t->open.out > got->t && t->open.out < at &&
	    is_parked_for_more(e, t, &t->open.ep, got))
		return t->open.out;
	return at;
}

static const struct go_recv *last_item(const struct engine *e, const struct task *t, cc_ns lo,
				       cc_ns at, cc_ns *ret_end)
{
	const struct go_state *g = task_go(&e->tasks, t);

	*ret_end = 0;
	for (uint32_t i = g ? vec_lower_bound(&g->got, t, at) : 0, n = 0; i-- > 0; n++) {
		const struct go_recv *got = &g->got.p[i];
		cc_ns end;

		if (got->t < lo || n == LOOK_BACK)
			break;
		if (e->serve != ENGINE_SERVE_ITEMS &&
		    go_channel_kind(&e->tasks, t->tgid, got->channel) != GO_CHAN_WORK)
			continue;
		end = item_end(e, t, got, at);
		if (end < at) /* what it had before may go on: this was a part of it */
			*ret_end = CC_MAX(*ret_end, end);
		else if (got->from)
			return got;
	}
	return NULL;
}

const struct go_recv *go_item_before(const struct engine *e, const struct task *t, cc_ns lo,
				     cc_ns at)
{
	cc_ns ignored;

	return last_item(e, t, lo, at, &ignored);
}

/* ---- who works for many ------------------------------------------------------------------- */

/* The items that @g is judged by begin here. */
static uint32_t first_judged(const struct go_state *g)
{
	return g->got.cnt > JUDGED_ITEMS ? g->got.cnt - JUDGED_ITEMS : 0;
}

/* What @ep waited for is one of the channels that @g takes its items out of. */
static bool is_source(const struct engine *e, const struct go_state *g, const struct episode *ep)
{
	const struct go_wait *w = ep_go_wait(&e->tasks, ep);

	for (uint32_t i = first_judged(g); w && w->object && i < g->got.cnt; i++)
		if (g->got.p[i].channel == w->object)
			return true;
	return false;
}

/* A wake by the goroutine of @g that handed something back, and to whose goroutine: kind NONE,
 * none. Whoever was woken out of a channel that @g takes from was relieved of its item, no more. */
static struct cc_reqid answered(struct engine *e, const struct go_state *g,
				const struct given_wake *w)
{
	const struct task *t = tasks_find(&e->tasks, w->wakee_tid, w->t);
	const struct episode *ep = t ? wakes_episode_of(t, w->t) : NULL;
	struct served s = { 0 };

	if (!ep || !ep_is_go(ep) || engine_classify(e, t, ep).is_lock ||
	    go_walk_is_resource(e, t, ep) || is_source(e, g, ep))
		return s.id;
	if (!by_hold(t, ep->out, 0, &s))
		by_birth(e, t, ep->out, HOPS_MAX / 2, &s);
	return s.id;
}

/* While it had one request's item it answered others: it takes them together. */
static bool judge(struct engine *e, struct task *t)
{
	const struct go_state *g = task_go(&e->tasks, t);
	uint32_t right = 0, wrong = 0;

	for (uint32_t i = first_judged(g); i < g->got.cnt; i++) {
		const struct go_recv *got = &g->got.p[i];
		cc_ns next = i + 1 < g->got.cnt ? g->got.p[i + 1].t : CC_NEVER - 1;
		const struct task *from =
			got->from ? tasks_find(&e->tasks, got->from, got->sent) : NULL;
		const struct given_wake *w;
		struct served s = { 0 };
		uint32_t cnt;

		if (!from || (!by_hold(from, got->sent, 0, &s) &&
			      !by_birth(e, from, got->sent, HOPS_MAX / 2, &s)))
			continue;
		w = wakes_given(t, got->t, next, &cnt);
		for (uint32_t j = 0; j < cnt; j++) {
			struct cc_reqid id = answered(e, g, &w[j]);

			right += cc_reqid_eq(id, s.id);
			wrong += id.kind != CC_REQID_NONE && !cc_reqid_eq(id, s.id);
		}
	}
	return wrong >= JUDGED_WRONG && wrong * SHARED_SHARE > right + wrong;
}

static bool is_shared(struct engine *e, const struct task *t)
{
	struct go_state *g = task_go(&e->tasks, t);

	if (g->judged_at != e->stats.events + 1) {
		g->judged_at = e->stats.events + 1; /* it may be asked of again meanwhile */
		g->shared = false;
		g->shared = judge(e, &e->tasks.v.p[t - e->tasks.v.p]);
	}
	return g->shared;
}

/* When it was at work on @got: a wait that this ended is over when it is woken. */
static cc_ns item_begin(const struct task *t, const struct go_recv *got)
{
	uint32_t i = task_ep_from(t, got->t);
	const struct episode *ep = i ? &t->eps.p[i - 1] : NULL;

	return ep && ep->in >= got->t ? CC_MAX(ep->wake, got->t) : got->t;
}

static bool by_item(struct engine *e, const struct task *t, cc_ns at, uint32_t hops,
		    struct served *ret)
{
	cc_ns end, over;
	const struct go_recv *got = last_item(e, t, 0, at, &end);
	const struct task *from;
	struct served s;

	if (got && item_begin(t, got) >= at)
		got = last_item(e, t, 0, got->t, &end);
	from = got ? tasks_find(&e->tasks, got->from, got->sent) : NULL;
	ret->since = CC_MAX(ret->since, end);
	if (!from || from == t)
		return false;
	serving(e, from, got->sent, 0, hops + 1, &s);
	ret->since = CC_MAX(ret->since, item_begin(t, got));
	if (!s.id.kind)
		return false;
	over = end_of(e, s.id);
	if (at > over) { /* it is answered: what goes on is not in the way of others for it */
		ret->since = CC_MAX(ret->since, over);
		return false;
	}
	ret->id = s.id;
	ret->evidence =
		s.evidence | (got->how == GO_HOW_EXACT ? CC_EV_BIT(GO_ITEM) : CC_EV_BIT(GO_PEEK));
	ret->ambiguous = s.ambiguous;
	ret->giver = from->tid;
	ret->given = got->sent;
	if (is_shared(e, t)) {
		ret->ambiguous = true;
		ret->evidence |= CC_EV_BIT(GO_SHARED);
	}
	return true;
}

/* ---- by who woke it: what not to do ------------------------------------------------------- */

static bool by_waker(struct engine *e, const struct task *t, cc_ns at, uint32_t hops,
		     struct served *ret)
{
	for (uint32_t i = task_ep_from(t, at); i-- > 0;) {
		const struct episode *ep = &t->eps.p[i];
		const struct task *waker;
		struct served s;

		if (!ep_task_wake(ep) || ep->wake > at)
			continue;
		waker = tasks_find(&e->tasks, ep->waker_tid, ep->wake);
		if (!waker || waker == t)
			return false;
		serving(e, waker, ep->wake, 0, hops + 1, &s);
		ret->id = s.id;
		ret->evidence = CC_EV_BIT(INFERRED);
		return s.id.kind != CC_REQID_NONE;
	}
	return false;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void serving(struct engine *e, const struct task *t, cc_ns at, cc_ns lo, uint32_t hops,
		    struct served *ret)
{
	*ret = (struct served){ .since = lo };
	if (hops >= HOPS_MAX)
		return;
	if (e->serve == ENGINE_SERVE_NAIVE && by_waker(e, t, at, hops, ret))
		return;
	if (e->serve == ENGINE_SERVE_ITEMS && task_is_go(t) && by_item(e, t, at, hops, ret))
		return;
	if (by_hold(t, at, lo, ret) || !task_is_go(t) || by_birth(e, t, at, hops, ret))
		return;
	if (e->serve == ENGINE_SERVE_FULL)
		by_item(e, t, at, hops, ret);
}

void go_serving(struct engine *e, const struct task *t, cc_ns at, cc_ns lo, struct served *ret)
{
	serving(e, t, at, lo, 0, ret);
}

void go_serving_by(struct engine *e, const struct task *t, cc_ns at, enum engine_serve mode,
		   struct served *ret)
{
	e->serve = mode;
	serving(e, t, at, 0, 0, ret);
	e->serve = ENGINE_SERVE_FULL;
}
