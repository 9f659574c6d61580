/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers that come in parts. Nobody tells where an answer ends: what is sent on its
 * connection belongs to it until the next request is read. But a thread that has sent a part, and
 * goes back to wait for events (or reads the next request) while nothing it called for this one is
 * still to come, may as well be done with it; what it sends then is pushed: by a timer, by
 * somebody's message (websockets, events, publish and subscribe). By times alone the two cannot be
 * told apart, so what lies between is never sure, and with several such parts it is a stream.
 * Nor does anybody tell where a request begins: what was read before the rest came may have been a
 * message that nothing answers. */
#include <errno.h>

#include "engine_priv.h"

#define STREAM_GAP CC_MS(5ull) /* parts closer than that are those of an answer */
#define STREAM_GAPS 2u
#define LOOK_BACK 32u /* operations before it that are looked at */
#define GAPS_MAX 64u  /* of one request that are kept; then the last one goes on */

/* A wait of @t for the next request on the very connection. */
static bool reads_next(const struct engine *e, const struct req *r, const struct task *t,
		       const struct episode *ep)
{
	const struct side *s = ep_side(&e->tasks, ep);
	const struct go_wait *g = ep_go_wait(&e->tasks, ep);
	uint64_t socket = s && s->told ? s->fd_id : g ? g->fd_id : 0;

	return socket == r->pub.id.id && ep_blocked(ep) &&
	       engine_classify(e, t, ep).cls == WAIT_NET_RECV;
}

static uint64_t stack_of(const struct engine *e, const struct episode *ep)
{
	const struct side *s = ep_side(&e->tasks, ep);

	return s ? s->ustack : 0;
}

/* Where @t waited for what it read at @at; 0: it did not, or too short a time for a stack. */
static uint64_t stack_before(const struct engine *e, const struct task *t, cc_ns at)
{
	uint32_t i = task_ep_from(t, at);

	return i && ep_blocked(&t->eps.p[i - 1]) ? stack_of(e, &t->eps.p[i - 1]) : 0;
}

/* Where @t waits for requests, by @r and the ones before it; 0: not known. */
static uint64_t idle_stack(const struct engine *e, const struct req *r, const struct task *t)
{
	uint32_t i = task_touch_from(t, r->pub.rec.first_recv + 1);
	uint64_t stack = 0;

	for (uint32_t n = 0; i-- > 0 && n < LOOK_BACK && !stack; n++)
		if (touch_is_server(&t->touches.p[i]) && t->touches.p[i].op == CC_OP_RECV)
			stack = stack_before(e, t, t->touches.p[i].t);
	return stack;
}

static bool ended_by_signal(const struct engine *e, const struct episode *ep)
{
	const struct side *s = ep_side(&e->tasks, ep);

	return s && s->flags & CC_EX_SIGNAL;
}

/* Who waits somewhere else than @idle, where it does for requests, is not free: a database's
 * session that sleeps in a query. Where that is not known, a signal says that it was asked to go
 * on. */
static bool is_free(const struct engine *e, const struct task *t, const struct episode *ep,
		    uint64_t idle)
{
	uint64_t here = stack_of(e, ep);

	if (!owner_is_idle(e, t, ep))
		return false;
	return idle && here ? here == idle : !ended_by_signal(e, ep);
}

/* The last wait of @t that begins in [a, b), in which it was free; NULL: none. */
static const struct episode *free_wait(const struct engine *e, const struct req *r,
				       const struct task *t, cc_ns a, cc_ns b, bool *ret_reads)
{
	uint64_t idle = idle_stack(e, r, t);

	for (uint32_t i = task_ep_from(t, b); i-- > 0;) {
		const struct episode *ep = &t->eps.p[i];

		if (ep->out < a)
			break;
		*ret_reads = reads_next(e, r, t, ep);
		if (*ret_reads || is_free(e, t, ep, idle))
			return ep;
	}
	return NULL;
}

/* Before it was free @t woke who ended that wait, or who sends next: it had handed the rest on. */
static bool handed_on(struct task *t, cc_ns a, const struct episode *ep, uint32_t next_tid)
{
	uint32_t cnt;
	const struct given_wake *g = wakes_given(t, a, ep->out, &cnt);

	for (uint32_t i = 0; i < cnt; i++)
		if (g[i].wakee_tid == next_tid ||
		    (ep_task_wake(ep) && g[i].wakee_tid == ep->waker_tid))
			return true;
	return false;
}

/* Something was called for the request that had not all come at @a, or more of it came until @b. */
static bool upstream_within(const struct engine *e, const struct req *r, cc_ns a, cc_ns b)
{
	uint32_t i = vec_lower_bound(&r->ups, t, a);

	for (i -= i > 0; i < r->ups.cnt && r->ups.p[i].t < b; i++) {
		const struct up_op *op = &r->ups.p[i];

		if ((op->t >= a || op->op == CC_OP_SEND || op->op == CC_OP_CONNECT) &&
		    requests_link_agreed(&e->reqs, r->pub.id, op->cookie))
			return true;
	}
	return false;
}

/* The thread that read @r and sent its first part reads the next in [a, b), whoever sends now. */
static bool reader_is_done(const struct engine *e, const struct req *r, cc_ns a, cc_ns b)
{
	const struct cc_rec_req *q = &r->pub.rec;
	uint32_t first = vec_lower_bound(&r->ops, t, q->first_send);
	const struct task *t = tasks_find(&e->tasks, q->recv_tid, q->first_send);

	if (!t || first == r->ops.cnt || r->ops.p[first].tid != q->recv_tid)
		return false;
	for (uint32_t i = task_ep_until(t, a); i < t->eps.cnt && t->eps.p[i].out < b; i++)
		if (t->eps.p[i].out >= q->first_send && reads_next(e, r, t, &t->eps.p[i]))
			return true;
	return false;
}

enum gap { GAP_NONE, GAP_OWN, GAP_OTHER, GAP_READS };

/* What lies between @r's @i th operation and its next, when @before lies before it: NONE: nothing,
 * or work for it. OWN: its thread was free until a task of its own process woke it, OTHER: until
 * something else did; READS: a thread that sent a part reads the next request since then. */
static enum gap gap_after(struct engine *e, const struct req *r, uint32_t i, enum gap before)
{
	const struct req_op *a = &r->ops.p[i], *b = a + 1;
	const struct episode *ep;
	struct task *t;
	bool reads;

	if (a->op != CC_OP_SEND || b->op != CC_OP_SEND || !a->tid || !b->tid)
		return GAP_NONE;
	if (before == GAP_READS ||
	    (a->tid != r->pub.rec.recv_tid && reader_is_done(e, r, a->t, b->t)))
		return GAP_READS;
	t = tasks_find(&e->tasks, a->tid, a->t);
	ep = t ? free_wait(e, r, t, a->t, b->t, &reads) : NULL;
	if (!ep || upstream_within(e, r, a->t, b->t) || handed_on(t, a->t, ep, b->tid))
		return GAP_NONE;
	if (reads)
		return GAP_READS;
	return ep_task_wake(ep) && ep->waker_tgid == t->tgid ? GAP_OWN : GAP_OTHER;
}

/* The first operation of @r that may have a gap after it. */
static uint32_t first_send(const struct req *r)
{
	return r->pub.rec.first_send ? vec_lower_bound(&r->ops, t, r->pub.rec.first_send)
				     : r->ops.cnt;
}

void parts_label(struct engine *e, struct req *r)
{
	enum gap gap = GAP_NONE;
	uint32_t gaps = 0;

	if (!r->told || r->pub.rec.send_cnt < 2 || r->pub.rec.what & CC_RQ_STREAM)
		return;
	for (uint32_t i = first_send(r); i + 1 < r->ops.cnt && gaps < STREAM_GAPS; i++) {
		if (r->ops.p[i + 1].t - r->ops.p[i].t < STREAM_GAP)
			continue;
		gap = gap_after(e, r, i, gap);
		gaps += gap == GAP_READS ? STREAM_GAPS : gap == GAP_OTHER;
	}
	if (gaps >= STREAM_GAPS)
		r->pub.rec.what |= CC_RQ_STREAM;
}

static int find_gaps(struct engine *e, const struct req *r)
{
	enum gap gap = GAP_NONE;

	e->gaps.cnt = 0;
	for (uint32_t i = first_send(r); i + 1 < r->ops.cnt; i++) {
		cc_ns to = r->ops.p[i + 1].t;

		gap = gap_after(e, r, i, gap);
		if (gap == GAP_NONE)
			continue;
		if (e->gaps.cnt == GAPS_MAX) {
			e->gaps.p[GAPS_MAX - 1].to = to;
			continue;
		}
		if (vec_reserve(&e->mem, &e->gaps, e->gaps.cnt + 1))
			return -ENOMEM;
		e->gaps.p[e->gaps.cnt++] = (struct loss_span){ r->ops.p[i].t, to };
	}
	return 0;
}

/* The time in which the rest was missing, of a request that was read in parts. */
static void mark_missing(const struct req *r, struct piece_vec *v)
{
	for (uint32_t i = 0; i < v->cnt; i++) {
		struct cc_piece *p = &v->p[i];
		uint32_t k;

		if (p->cls != WAIT_NET_RECV || p->depth)
			continue;
		k = vec_lower_bound(&r->ops, t, p->end);
		if (k > 0 && k < r->ops.cnt && r->ops.p[k].op == CC_OP_RECV &&
		    r->ops.p[k - 1].op == CC_OP_RECV)
			p->evidence |= CC_EV_BIT(READ_PARTS);
	}
}

int parts_mark(struct engine *e, const struct req *r, struct piece_vec *v)
{
	int err = r->pub.rec.send_cnt < 2 ? 0 : find_gaps(e, r);

	if (r->pub.rec.recv_cnt > 1)
		mark_missing(r, v);
	if (err || r->pub.rec.send_cnt < 2)
		return err;
	for (uint32_t i = 0; i < v->cnt; i++) {
		struct cc_piece *p = &v->p[i];

		for (uint32_t k = 0; k < e->gaps.cnt; k++) {
			cc_ns from = CC_MAX(p->start, e->gaps.p[k].from);
			cc_ns to = CC_MIN(p->end, e->gaps.p[k].to);

			if (from < to && to - from >= (p->end - p->start) / 2)
				p->evidence |= CC_EV_BIT(PARTS);
		}
	}
	return 0;
}
