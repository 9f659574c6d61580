/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a thread between a request's operations, and before its first: an event loop serves
 * many, so each slice goes to the first of DESIGN's reasons that holds (section 5, Arrival). */
#include <string.h>

#include "engine_priv.h"

struct split {
	struct walk *w;
	const struct ident_seg *seg;
	const struct req *r;
	const struct task *t;
	uint32_t ti;
	bool arrival;
};

/* The latest moment before @at at which a reason may begin or end. */
static cc_ns cut_before(const struct split *x, cc_ns at)
{
	const struct req *r = x->r;
	cc_ns cut = x->seg->lo;
	uint32_t i = task_touch_from(x->t, at);

	if (i)
		cut = CC_MAX(cut, x->t->touches.p[i - 1].t);
	i = vec_lower_bound(&r->ops, t, at);
	if (i)
		cut = CC_MAX(cut, r->ops.p[i - 1].t);
	i = vec_lower_bound(&r->ups, t, at);
	if (i)
		cut = CC_MAX(cut, r->ups.p[i - 1].t);
	if (r->pub.rec.accepted < at)
		cut = CC_MAX(cut, r->pub.rec.accepted);
	return cut;
}

static bool is_call(const struct up_op *op)
{
	return op->op == CC_OP_SEND || op->op == CC_OP_CONNECT;
}

/* The upstream that has been called for the request and has not answered right before @at; 0. */
static uint64_t upstream_pending(const struct split *x, cc_ns at)
{
	const struct req *r = x->r;

	for (uint32_t i = vec_lower_bound(&r->ups, t, at); i-- > 0;) {
		const struct up_op *op = &r->ups.p[i];
		bool answered = false;

		if (!is_call(op))
			continue;
		for (uint32_t j = i + 1; j < r->ups.cnt && r->ups.p[j].t < at; j++)
			answered |= r->ups.p[j].cookie == op->cookie && !is_call(&r->ups.p[j]);
		if (!answered && requests_link_agreed(&x->w->e->reqs, r->pub.id, op->cookie))
			return op->cookie;
	}
	return 0;
}

/* The first operation on socket @cookie in [i, hi) of the request's upstream ones; NULL. */
static const struct up_op *up_op_of(const struct req *r, uint64_t cookie, uint32_t i, uint32_t hi)
{
	for (; i < hi; i++)
		if (r->ups.p[i].cookie == cookie)
			return &r->ups.p[i];
	return NULL;
}

/* The upstream of whose answer a part was read before @at, with more to come after it; 0. What has
 * come and lies unread is no wait for the upstream. */
static uint64_t upstream_goes_on(const struct split *x, cc_ns at)
{
	const struct req *r = x->r;
	uint32_t next = vec_lower_bound(&r->ups, t, at);
	uint64_t looked_at = 0;

	for (uint32_t i = next; i-- > 0;) {
		const struct up_op *op = &r->ups.p[i], *more;

		if (op->cookie == looked_at)
			continue;
		looked_at = op->cookie;
		if (op->op != CC_OP_RECV || up_op_of(r, op->cookie, i + 1, next))
			continue;
		more = up_op_of(r, op->cookie, next, r->ups.cnt);
		if (more && !is_call(more) && more->op != CC_OP_CLOSE &&
		    requests_link_agreed(&x->w->e->reqs, r->pub.id, op->cookie))
			return op->cookie;
	}
	return 0;
}

static bool send_blocked(const struct split *x, cc_ns at)
{
	uint32_t i = vec_lower_bound(&x->r->ops, t, at);

	return i && x->r->ops.p[i - 1].op == CC_OP_EAGAIN;
}

static bool body_missing(const struct split *x, cc_ns at)
{
	for (uint32_t i = vec_lower_bound(&x->r->ops, t, at); i < x->r->ops.cnt; i++)
		if (x->r->ops.p[i].op == CC_OP_RECV)
			return !x->arrival;
	return false;
}

static bool not_accepted(const struct split *x, cc_ns at)
{
	const struct cc_rec_req *q = &x->r->pub.rec;

	return at <= q->accepted || (x->arrival && !q->accepted && q->what & CC_RQ_ACCEPTQ);
}

static bool is_foreign(const struct split *x, const struct sock_touch *s)
{
	return touch_is_server(s) && !cc_reqid_eq(touch_id(s), x->r->pub.id);
}

/* The thread did nothing on another server socket since the request's last operation, nor is that
 * what it does next: then what it waited for was the other's. */
static bool touched_no_other(const struct split *x, cc_ns at)
{
	uint32_t op = vec_lower_bound(&x->r->ops, t, at), next;
	cc_ns since = op ? x->r->ops.p[op - 1].t : 0;

	next = task_touch_from(x->t, at);
	while (next < x->t->touches.cnt && !touch_is_server(&x->t->touches.p[next]))
		next++;
	if (next < x->t->touches.cnt && is_foreign(x, &x->t->touches.p[next]))
		return false;
	for (uint32_t i = task_touch_from(x->t, at); i-- > 0;) {
		const struct sock_touch *s = &x->t->touches.p[i];

		if (s->t < since)
			break;
		if (is_foreign(x, s))
			return false;
	}
	return true;
}

static bool is_idle_over(const struct engine *e, const struct task *t, cc_ns a, cc_ns b)
{
	struct tl_piece tp;

	task_piece(t, &e->tasks, b, false, &tp);
	return tp.kind == TL_BLOCKED && tp.start <= a &&
	       engine_classify(e, t, tp.ep).idle == IDLE_LOOP;
}

/* Another worker for the same port or in the same process had nothing to do meanwhile. */
static bool sibling_idle(const struct split *x, cc_ns a, cc_ns b)
{
	const struct engine *e = x->w->e;
	const struct cc_rec_req *q = &x->r->pub.rec;

	for (uint32_t i = 0; i < e->reqs.receiver_cnt; i++) {
		const struct receiver *o = &e->reqs.receivers[i];

		if (o->task == x->ti ||
		    (o->tgid != q->tgid && (!q->local_port || o->port != q->local_port)))
			continue;
		if (is_idle_over(e, &e->tasks.v.p[o->task], a, b))
			return true;
	}
	return false;
}

static void emit(const struct split *x, cc_ns a, cc_ns b, enum wait_class cls, enum cc_ended ended,
		 uint64_t evidence, struct cc_reqid by)
{
	struct cc_piece p = walk_piece(x->w, x->t, a, b, 0, cls);

	p.ended = (uint8_t)ended;
	p.evidence |= evidence;
	if (by.ordinal)
		p.by_request = by;
	if (cls == WAIT_SOCKQ && sibling_idle(x, a, b))
		p.flags |= CC_PC_IDLE_SIBLING;
	walk_emit(x->w, &p);
}

static void emit_upstream(const struct split *x, cc_ns a, cc_ns b, uint64_t cookie)
{
	const struct sock *s = requests_sock(&x->w->e->reqs, cookie);
	struct cc_piece p = walk_piece(x->w, x->t, a, b, 0, WAIT_UPSTREAM);

	p.evidence |= CC_EV_BIT(SOCKET) | CC_EV_BIT(SCHED);
	p.evidence |= x->r->linked_up == cookie ? 1ull << x->r->linked_by : CC_EV_BIT(VOTES2);
	p.resource = resources_get(&x->w->e->res, RES_SOCK, cookie, 0, 0);
	if (!s || !walk_call(x->w, &p, s))
		walk_emit(x->w, &p);
}

static void walk_answer(const struct split *x, cc_ns a, cc_ns b, bool ran)
{
	uint64_t evidence = x->w->evidence;

	x->w->evidence |= CC_EV_BIT(INFERRED);
	walk_span(x->w, x->ti, a, b, ran, 0);
	x->w->evidence = evidence;
}

/* The first reason that holds for [a, b), a slice within which none changes. */
static void first_reason(const struct split *x, cc_ns a, cc_ns b, struct cc_reqid owner,
			 const struct tl_piece *tp, bool ran)
{
	const uint64_t ev = CC_EV_BIT(SOCKET) | CC_EV_BIT(SCHED);
	const struct cc_reqid none = { 0 };
	uint64_t upstream;

	if (x->ti == UINT32_MAX && x->r->pub.rec.what & CC_RQ_UNREAD)
		emit(x, a, b, not_accepted(x, b) ? WAIT_ACCEPTQ : WAIT_SOCKQ,
		     x->r->open ? CC_ENDED_OPEN : CC_ENDED_NONE,
		     CC_EV_BIT(SOCKET) | (x->r->open ? CC_EV_BIT(OPEN) : 0), none);
	else if (tp->kind == TL_LOST)
		emit(x, a, b, WAIT_UNKNOWN, CC_ENDED_LOST, CC_EV_BIT(LOST), none);
	else if (tp->kind == TL_NODATA && (x->t->born == CC_NEVER || b > x->t->born))
		emit(x, a, b, WAIT_UNKNOWN, CC_ENDED_NONE, CC_EV_BIT(NO_DATA), none);
	else if (tp->kind == TL_RUNQ)
		walk_runq(x->w, x->t, a, b, tp, 0);
	else if (tp->kind != TL_NODATA && owner.kind != CC_REQID_NONE)
		emit(x, a, b, WAIT_HOL, CC_ENDED_NONE, ev, owner);
	else if ((upstream = upstream_pending(x, b)) != 0)
		emit_upstream(x, a, b, upstream);
	else if (send_blocked(x, b))
		emit(x, a, b, WAIT_NET_SEND, CC_ENDED_NONE, ev, none);
	else if ((upstream = upstream_goes_on(x, b)) != 0)
		emit_upstream(x, a, b, upstream);
	else if (body_missing(x, b))
		emit(x, a, b, WAIT_NET_RECV, CC_ENDED_NONE, ev, none);
	else if (not_accepted(x, b))
		emit(x, a, b, WAIT_ACCEPTQ, CC_ENDED_NONE, ev, none);
	else if (x->arrival)
		emit(x, a, b, WAIT_SOCKQ, CC_ENDED_NONE, ev, none);
	else if (touched_no_other(x, b))
		walk_answer(x, a, b, ran);
	else
		emit(x, a, b, WAIT_ASYNC, CC_ENDED_NONE, ev, none);
}

void split_span(struct walk *w, const struct ident_seg *seg)
{
	struct task nobody = { .tid = w->r->pub.rec.recv_tid,
			       .tgid = w->r->pub.rec.tgid,
			       .known_from = CC_NEVER,
			       .born = CC_NEVER,
			       .dead = CC_NEVER };
	struct split x = {
		.w = w,
		.seg = seg,
		.r = w->r,
		.t = seg->task == UINT32_MAX ? &nobody : &w->e->tasks.v.p[seg->task],
		.ti = seg->task,
		.arrival = seg->kind == SEG_ARRIVAL,
	};

	for (cc_ns at = seg->hi, a; at > seg->lo && !w->err; at = a) {
		struct tl_piece tp;
		cc_ns since;
		struct cc_reqid owner = owner_before(w->e, x.t, at, &since);

		if (cc_reqid_eq(owner, w->r->pub.id)) {
			a = CC_MAX(seg->lo, since);
			walk_span(w, x.ti, a, at, at == seg->hi, 0);
			continue;
		}
		walk_lean_on(w, owner);
		task_piece(x.t, &w->e->tasks, at, at == seg->hi, &tp);
		a = CC_MAX(cut_before(&x, at), tp.start);
		if (x.t->born < at)
			a = CC_MAX(a, x.t->born);
		first_reason(&x, a, at, owner, &tp, at == seg->hi);
	}
}
