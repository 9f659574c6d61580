/* SPDX-License-Identifier: Apache-2.0 */
/* Whether both votes for an upstream call are worth something. They name the request that a thread
 * read last when it called, and the one it answered first after it had read the reply: of an event
 * loop that tells something only as long as it has not gone back to wait for events in between. A
 * handler that sleeps, asks a resolver or another thread goes on in a later turn of the loop, and
 * what was read or answered next to that may be anybody's. Where the thread had no other request
 * meanwhile, there is nothing to mix up. And where such a process does so more than once in a
 * while, what was read or answered in the very turn is not trusted, either: it may be chance. */
#include <errno.h>
#include <string.h>

#include "engine_priv.h"

#define HABITS_MAX 1024u /* processes */
#define ONCE_MAX 2       /* calls of another turn are no habit */
#define ELSEWHERE_MAX 20 /* 1 call in so many may be of another turn before no vote is trusted */

#define LOOK_BACK 256u /* touches of the thread before the request that are looked at */
#define LOOK_IN 1024u  /* and within it */

/* @t worked on another request in [r's first read, its end]. */
static bool touched_other(const struct task *t, const struct req *r)
{
	uint32_t i = task_touch_from(t, r->pub.rec.first_recv);

	for (uint32_t n = 0; i < t->touches.cnt && t->touches.p[i].t <= r->pub.end; i++, n++)
		if (n >= LOOK_IN || (touch_is_server(&t->touches.p[i]) &&
				     !cc_reqid_eq(touch_id(&t->touches.p[i]), r->pub.id)))
			return true;
	return false;
}

/* It had read another one before that was not answered yet. */
static bool had_other(const struct engine *e, const struct task *t, const struct req *r)
{
	cc_ns first = r->pub.rec.first_recv;
	const struct req_vec *open = &e->reqs.list[LIST_OPEN];

	for (uint32_t i = task_touch_from(t, first), n = 0; i-- > 0; n++) {
		const struct sock_touch *s = &t->touches.p[i];
		const struct req *o;

		if (n >= LOOK_BACK)
			break;
		if (!touch_is_server(s) || cc_reqid_eq(touch_id(s), r->pub.id))
			continue;
		o = requests_find(&e->reqs, touch_id(s));
		if (o && (!o->told || o->pub.end > first))
			return true;
	}
	for (uint32_t i = 0; i < open->cnt; i++) {
		const struct req *o = open->p[i];

		if (o != r && o->open && o->pub.rec.recv_tid == t->tid &&
		    o->pub.rec.first_recv < r->pub.end)
			return true;
	}
	return false;
}

static bool is_call(const struct up_op *op)
{
	return op->op == CC_OP_SEND || op->op == CC_OP_CONNECT;
}

/* The last operation on the request's own socket before @at; 0: none. */
static cc_ns own_before(const struct req *r, cc_ns at)
{
	uint32_t i = vec_lower_bound(&r->ops, t, at);

	return i ? r->ops.p[i - 1].t : 0;
}

static cc_ns answered_after(const struct req *r, cc_ns at)
{
	for (uint32_t i = vec_lower_bound(&r->ops, t, at); i < r->ops.cnt; i++)
		if (r->ops.p[i].op == CC_OP_SEND)
			return r->ops.p[i].t;
	return r->pub.end;
}

static bool one_turn(struct engine *e, const struct task *t, cc_ns from, cc_ns to)
{
	return from >= to || owner_first_idle(e, t, from, to) >= to;
}

#define CALLED_MAX 16 /* upstream sockets of a request that are followed */

struct turns {      /* a request's upstream operations in order, so far */
	cc_ns busy; /* up to when its thread was at work for it, as far as that is known */
	struct {
		uint64_t cookie; /* called in a turn that was for it */
		bool replied;
	} called[CALLED_MAX];
	uint32_t cnt;
};

static bool call_in_turn(struct engine *e, const struct task *t, struct turns *x, uint32_t i,
			 const struct up_op *op)
{
	if (i < x->cnt && !x->called[i].replied)
		return true; /* a further piece of it, or what it had connected for */
	if (i == CALLED_MAX || !one_turn(e, t, x->busy, op->t))
		return false;
	x->called[i].cookie = op->cookie;
	x->called[i].replied = false;
	x->cnt = CC_MAX(x->cnt, i + 1);
	return true;
}

/* The next operation. False: it was in another turn than the request's. */
static bool in_turn(struct engine *e, const struct task *t, const struct req *r, struct turns *x,
		    const struct up_op *op)
{
	uint32_t i = 0;

	while (i < x->cnt && x->called[i].cookie != op->cookie)
		i++;
	x->busy = CC_MAX(x->busy, own_before(r, op->t));
	if (is_call(op) && !call_in_turn(e, t, x, i, op))
		return false;
	if (!is_call(op) && op->agreed && !one_turn(e, t, op->t, answered_after(r, op->t)))
		return false;
	if (i == x->cnt)
		return true; /* the reply to a call that was in another */
	x->called[i].replied |= !is_call(op);
	x->busy = op->t;
	return true;
}

struct link_habit *link_habit_of(struct engine *e, uint32_t tgid)
{
	for (uint32_t i = 0; i < e->habits.cnt; i++)
		if (e->habits.p[i].tgid == tgid)
			return &e->habits.p[i];
	if (e->habits.cnt == HABITS_MAX)
		vec_drop_front(&e->habits, 1);
	if (vec_reserve(&e->mem, &e->habits, e->habits.cnt + 1))
		return NULL;
	e->habits.p[e->habits.cnt] = (struct link_habit){ .tgid = tgid };
	return &e->habits.p[e->habits.cnt++];
}

static const struct task *loop_of(const struct engine *e, const struct req *r)
{
	const struct cc_rec_req *q = &r->pub.rec;
	const struct task *t;

	if (!r->ups.cnt || !q->first_recv || r->linked_up || go_proc(&e->tasks, q->tgid))
		return NULL;
	t = tasks_find(&e->tasks, q->recv_tid, q->first_recv);
	return t && t->timeline ? t : NULL;
}

int link_learn(struct engine *e, const struct req *r)
{
	const struct task *t = loop_of(e, r);
	struct turns x = { 0 };
	struct link_habit *h;

	if (!t || !r->told || r->settled)
		return 0;
	h = link_habit_of(e, r->pub.rec.tgid);
	if (!h)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->ups.cnt; i++) {
		bool in = in_turn(e, t, r, &x, &r->ups.p[i]);

		h->calls += is_call(&r->ups.p[i]);
		h->elsewhere += !in;
	}
	if (h->calls > LINK_HABIT_MAX) {
		h->calls /= 2;
		h->elsewhere /= 2;
	}
	return 0;
}

static void disagree(struct req *r, uint64_t cookie)
{
	struct cc_rec_req *q = &r->pub.rec;

	for (uint32_t i = 0; i < r->ups.cnt; i++)
		if (r->ups.p[i].cookie == cookie)
			r->ups.p[i].agreed = false;
	if (q->up_cookie != cookie)
		return;
	q->up_votes = CC_MIN(q->up_votes, 1u);
	q->up_calls = 0;
}

/* It was only answered right after somebody's reply was read, and no call is known that may be its
 * own: that says nothing of it. */
static void forget_neighbour(struct req *r)
{
	struct cc_rec_req *q = &r->pub.rec;

	if (q->up_votes != 1)
		return;
	for (uint32_t i = 0; i < r->ups.cnt; i++)
		if (r->ups.p[i].cookie == q->up_cookie)
			return;
	q->up_votes = q->up_calls = 0;
	q->up_cookie = 0;
	q->up_peer = (struct cc_addr){ 0 };
}

int link_turn(struct engine *e, struct req *r)
{
	const struct task *t = loop_of(e, r);
	const struct link_habit *h;
	struct turns x = { 0 };
	bool bad;

	forget_neighbour(r);
	if (!t || (!touched_other(t, r) && !had_other(e, t, r)))
		return 0;
	h = link_habit_of(e, r->pub.rec.tgid);
	if (!h)
		return -ENOMEM;
	bad = (h->elsewhere > ONCE_MAX && h->elsewhere * ELSEWHERE_MAX > h->calls) ||
	      (h->later > ONCE_MAX && h->later * ELSEWHERE_MAX > h->later + h->at_once);
	for (uint32_t i = 0; i < r->ups.cnt; i++)
		if (!in_turn(e, t, r, &x, &r->ups.p[i]) || bad)
			disagree(r, r->ups.p[i].cookie);
	e->idle.valid = false; /* what a thread last worked on may be another request now */
	return 0;
}
