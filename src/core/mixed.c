/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that carry several requests at once: what is told of one is then a busy period of it,
 * no request. The kernel tells those whose next request lay unread when an answer began. What only
 * links show is seen here: a thread reads an upstream's reply to a call for one request, and in the
 * same turn sends on that request's connection, of which it has read a later one since. */
#include "engine_priv.h"

#define SIGNS_LEAST 3u /* requests of a connection that say so, before it is believed */
#define BACK_MAX 64u   /* earlier ones that are told anew then */

static bool answers_earlier(const struct engine *e, const struct req *r, const struct req_op *op)
{
	const struct task *t = op->tid ? tasks_find(&e->tasks, op->tid, op->t) : NULL;
	const struct sock_touch *reply = NULL;

	if (!t || op->op != CC_OP_SEND)
		return false;
	for (uint32_t i = task_touch_from(t, op->t); i-- > 0;) {
		reply = &t->touches.p[i];
		if (touch_is_server(reply) || reply->op != CC_OP_EOF)
			break;
	}
	return reply && !touch_is_server(reply) && reply->op == CC_OP_RECV &&
	       reply->cookie == r->pub.id.id && reply->ordinal < r->pub.id.ordinal &&
	       owner_one_turn(t, reply->t, op->t);
}

static bool has_sign(const struct engine *e, const struct req *r)
{
	if (r->pub.rec.what & CC_RQ_BUSY)
		return true;
	for (uint32_t i = 0; i < r->ops.cnt; i++)
		if (answers_earlier(e, r, &r->ops.p[i]))
			return true;
	return false;
}

bool mixed_is_new(struct engine *e, struct req *r)
{
	struct sock *s = requests_sock_of(&e->reqs, r->pub.id);

	if (!s)
		return false;
	if (s->mixed_signs < SIGNS_LEAST && !r->mixed_sign && r->told && has_sign(e, r)) {
		r->mixed_sign = true;
		s->mixed_signs++;
		if (s->mixed_signs == SIGNS_LEAST) {
			r->pub.rec.what |= CC_RQ_BUSY;
			return true;
		}
	}
	if (s->mixed_signs >= SIGNS_LEAST)
		r->pub.rec.what |= CC_RQ_BUSY;
	return false;
}

struct req *mixed_earlier(struct engine *e, const struct req *r, uint32_t nth)
{
	struct cc_reqid id = r->pub.id;

	if (nth > BACK_MAX || id.ordinal <= nth)
		return NULL;
	id.ordinal -= nth;
	return requests_find(&e->reqs, id);
}
