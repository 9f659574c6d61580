/* SPDX-License-Identifier: Apache-2.0 */
/* Upstream calls of event loops whose votes tell nothing, since a call waits for a timer or for a
 * free connection first: what was read right before it may be anybody's. But many such servers
 * answer in the very turn of the loop in which they have read the reply, always. Of such a process,
 * a reply that is the only one since the last answer, in a turn with only one answer after it, is
 * to the call for what is answered; if that had been read when the call was made. What came between
 * its read and its call stays not attributed. */
#include <errno.h>
#include <string.h>

#include "engine_priv.h"

#define LOOK_BACK 256u  /* touches of the thread before the answer that are looked at */
#define LOOK_ON 32u     /* and after it, in its turn */
#define SOCKETS_MAX 16u /* upstream ones between two answers */
#define LEAST 50u       /* replies before a process is trusted */
#define ELSE_MAX 100u   /* and no more than 1 in so many that is answered otherwise */

struct answer {
	const struct task *t;
	uint64_t socket;  /* of the last reply before it */
	cc_ns replied;    /* when the last of it was read */
	cc_ns called;     /* when that call was made; 0: not seen */
	uint32_t replies; /* since the answer before it, if any */
	bool several;     /* others were answered in that turn, too */
};

static bool is_answer(const struct sock_touch *s)
{
	return touch_is_server(s) && s->op == CC_OP_SEND;
}

/* The replies that were read between the answer before touch @i and that one. */
static void count_replies(struct answer *a, uint32_t i)
{
	struct {
		uint64_t socket;
		bool reading;
	} met[SOCKETS_MAX];
	uint32_t cnt = 0;

	for (uint32_t n = 0; i-- > 0 && n < LOOK_BACK; n++) {
		const struct sock_touch *s = &a->t->touches.p[i];
		uint32_t k = 0;

		if (is_answer(s))
			return;
		if (touch_is_server(s) || (s->op != CC_OP_RECV && s->op != CC_OP_SEND))
			continue;
		while (k < cnt && met[k].socket != s->socket)
			k++;
		if (k == SOCKETS_MAX)
			break;
		if (k == cnt) {
			met[cnt].socket = s->socket;
			met[cnt++].reading = false;
		}
		if (s->op == CC_OP_RECV && !met[k].reading && !a->replies++) {
			a->socket = s->socket;
			a->replied = s->t;
		}
		met[k].reading = s->op == CC_OP_RECV;
	}
	a->replies = UINT32_MAX; /* not all was seen */
}

/* When the call was made whose reply was read last. */
static cc_ns called_at(const struct answer *a, cc_ns since)
{
	cc_ns at = 0;

	for (uint32_t i = task_touch_from(a->t, a->replied); i-- > 0;) {
		const struct sock_touch *s = &a->t->touches.p[i];

		if (s->t < since)
			break;
		if (touch_is_server(s) || s->socket != a->socket)
			continue;
		if (s->op == CC_OP_SEND)
			at = s->t;
		else if (at)
			break;
	}
	return at;
}

/* Another request was answered in the turn of the loop in which touch @i answered one. */
static bool answers_another(const struct task *t, uint32_t i)
{
	const struct sock_touch *v = t->touches.p;

	for (uint32_t k = i + 1; k < t->touches.cnt && k <= i + LOOK_ON; k++) {
		if (!owner_one_turn(t, v[i].t, v[k].t))
			return false;
		if (is_answer(&v[k]) && !cc_reqid_eq(touch_id(&v[k]), touch_id(&v[i])))
			return true;
	}
	return false;
}

/* How @r was first answered, by the thread that had read it. False: that is not known, or nothing
 * that was called had to do with it. */
static bool find_answer(const struct engine *e, const struct req *r, struct answer *ret)
{
	const struct cc_rec_req *q = &r->pub.rec;
	uint32_t i;

	*ret = (struct answer){ 0 };
	if (!r->told || !q->first_send || !q->first_recv || go_proc(&e->tasks, q->tgid))
		return false;
	ret->t = tasks_find(&e->tasks, q->recv_tid, q->first_recv);
	if (!ret->t || !ret->t->timeline)
		return false;
	i = task_touch_from(ret->t, q->first_send);
	if (i == ret->t->touches.cnt || ret->t->touches.p[i].t != q->first_send ||
	    !is_answer(&ret->t->touches.p[i]))
		return false;
	count_replies(ret, i);
	ret->several = answers_another(ret->t, i);
	ret->called = ret->replies == 1 ? called_at(ret, q->first_recv) : 0;
	return ret->replies != 0;
}

static bool at_once(const struct req *r, const struct answer *a)
{
	return a->replies == 1 && owner_one_turn(a->t, a->replied, r->pub.rec.first_send);
}

/* Its own reply, read while it was worked on, and the loop waited for events before the answer. A
 * lock or a disk in between is no other turn; a reply from before is another's, whose answer may
 * not have been told yet. */
static bool answered_later(struct engine *e, const struct req *r, const struct answer *a)
{
	const struct cc_rec_req *q = &r->pub.rec;

	return a->replies == 1 && a->replied >= q->first_recv &&
	       owner_first_idle(e, a->t, a->replied, q->first_send) < q->first_send;
}

static void learn(struct engine *e, struct link_habit *h, const struct req *r,
		  const struct answer *a)
{
	if (a->replies == UINT32_MAX || (at_once(r, a) && a->several))
		return; /* says nothing */
	if (at_once(r, a))
		h->at_once++;
	else
		h->otherwise += a->replies;
	h->later += answered_later(e, r, a);
	if (h->at_once + h->otherwise > LINK_HABIT_MAX) {
		h->at_once /= 2;
		h->otherwise /= 2;
		h->later /= 2;
	}
}

int link_reply_learn(struct engine *e, const struct req *r)
{
	struct link_habit *h;
	struct answer a;

	if (!e->reqs.upstreams.cnt || r->settled || !find_answer(e, r, &a))
		return 0;
	h = link_habit_of(e, r->pub.rec.tgid);
	if (!h)
		return -ENOMEM;
	learn(e, h, r, &a);
	return 0;
}

int link_reply(struct engine *e, struct req *r)
{
	const struct link_habit *h;
	struct answer a;

	if (!e->reqs.upstreams.cnt || r->linked_up || r->pub.rec.up_votes > 1 ||
	    !find_answer(e, r, &a) || !at_once(r, &a) || a.several || !a.called)
		return 0;
	h = link_habit_of(e, r->pub.rec.tgid);
	if (!h)
		return -ENOMEM;
	if (h->at_once < LEAST || h->otherwise * ELSE_MAX > h->at_once)
		return 0;
	r->linked_by = CC_EV_AT_ONCE;
	return link_give(e, a.t, r, a.socket, a.called, a.replied);
}
