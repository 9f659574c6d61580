/* SPDX-License-Identifier: Apache-2.0 */
/* A wait for the answer of another traced process: what that process did for the call. The request
 * it served then is not another one that it was busy with: it is the call itself. */
#include "engine_priv.h"

struct call {                              /* on the other end */
	const struct sock_io *recv, *sent; /* sent NULL: not yet */
	struct cc_reqid id;
};

static struct cc_reqid touched(const struct engine *e, const struct sock_io *io, uint64_t cookie)
{
	const struct task *t = tasks_find(&e->tasks, io->tid, io->t);

	for (uint32_t i = t ? task_touch_from(t, io->t) : 0;
	     t && i < t->touches.cnt && t->touches.p[i].t == io->t; i++)
		if (t->touches.p[i].socket == cookie && touch_is_server(&t->touches.p[i]))
			return touch_id(&t->touches.p[i]);
	return (struct cc_reqid){ 0 };
}

/* What the other end @m read last before @end, and its answer to that. False: nothing of it lies
 * in [start, end). */
static bool find_call(const struct engine *e, const struct sock *m, cc_ns start, cc_ns end,
		      struct call *ret)
{
	*ret = (struct call){ 0 };
	for (uint32_t i = vec_lower_bound(&m->io, t, end); i-- > 0 && !ret->recv;)
		if (m->io.p[i].op == CC_OP_RECV)
			ret->recv = &m->io.p[i];
	if (!ret->recv)
		return false;
	for (uint32_t i = vec_lower_bound(&m->io, t, ret->recv->t); i < m->io.cnt; i++)
		if (m->io.p[i].op == CC_OP_SEND) {
			ret->sent = &m->io.p[i];
			break;
		}
	ret->id = touched(e, ret->recv, m->cookie);
	return ret->id.kind != CC_REQID_NONE && (!ret->sent || ret->sent->t > start);
}

static void emit_way(struct walk *w, const struct cc_piece *p, const struct task *other, cc_ns from,
		     cc_ns to, enum wait_class cls)
{
	struct cc_piece way = walk_piece(w, other, from, to, (uint16_t)(p->depth + 1), cls);

	way.evidence |= CC_EV_BIT(LOOPBACK);
	walk_emit(w, &way);
}

bool walk_call(struct walk *w, struct cc_piece *p, const struct sock *s)
{
	const struct sock *m = s->upstream ? requests_mirror(&w->e->reqs, s) : NULL;
	struct cc_reqid serving = w->serving;
	uint64_t evidence = w->evidence;
	const struct req *q;
	struct task *other;
	struct call c;
	cc_ns lo, hi, arrived;
	bool cycle;

	if (!m || m->upstream || !find_call(w->e, m, p->start, p->end, &c))
		return false;
	hi = c.sent ? CC_MIN(c.sent->t, p->end) : p->end;
	lo = CC_MAX(p->start, c.recv->t);
	other = tasks_find(&w->e->tasks, c.sent ? c.sent->tid : c.recv->tid, hi);
	if (lo >= hi || !other || !other->timeline ||
	    !walk_may_nest(w, (uint32_t)(other - w->e->tasks.v.p), p->depth, &cycle))
		return false;
	q = requests_find(&w->e->reqs, c.id);
	arrived = q ? CC_MIN(CC_MAX(q->pub.rec.arrival, p->start), lo) : lo;
	walk_lean_on(w, c.id);
	p->evidence = (p->evidence & ~CC_EV_BIT(WAKER_IRQ)) | CC_EV_BIT(LOOPBACK);
	p->waker_tid = other->tid;
	p->waker_tgid = other->tgid;
	p->waker_kind = CC_WAKER_TASK;
	w->evidence |= p->evidence & ~(CC_EV_BIT(CLASS_GUESSED) | CC_EV_BIT(STACKLESS));
	w->serving = c.id;
	emit_way(w, p, other, hi, p->end, WAIT_TRANSIT);
	walk_nest(w, (uint32_t)(other - w->e->tasks.v.p), lo, hi, p->depth, NEST_HELP, 0);
	w->serving = serving;
	emit_way(w, p, other, arrived, lo, WAIT_SOCKQ);
	emit_way(w, p, other, p->start, arrived, WAIT_TRANSIT);
	w->evidence = evidence;
	p->flags |= CC_PC_NESTED;
	walk_emit(w, p);
	return true;
}

struct cc_reqid walk_answered(const struct walk *w, const struct task *waker, cc_ns wake)
{
	struct cc_reqid none = { 0 };
	uint32_t i = task_touch_from(waker, wake);
	const struct sock_touch *s = &waker->touches.p[i];

	if (i == waker->touches.cnt || s->op != CC_OP_SEND || !touch_is_server(s) ||
	    requests_find(&w->e->reqs, touch_id(s)) == w->r)
		return none;
	/* the wake came out of this send when it did not sleep between */
	return task_ep_from(waker, wake) == task_ep_from(waker, s->t + 1) ? touch_id(s) : none;
}
