/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between traced tasks over loopback or unix sockets, known by both ends' operations. */
#include "engine_priv.h"

/* The socket that the wait was for: told, or the one the thread read from right after. */
static const struct sock *socket_of_wait(const struct engine *e, const struct task *t,
					 const struct episode *ep, const struct side *side)
{
	const struct sock *s = side ? requests_sock(&e->reqs, side->fd_id) : NULL;
	uint32_t i;

	if (s)
		return s;
	i = task_touch_from(t, ep->wake);
	if (i == t->touches.cnt || t->touches.p[i].op != CC_OP_RECV)
		return NULL;
	/* asleep between, it may have been another event */
	if (task_ep_from(t, ep->out + 1) != task_ep_from(t, t->touches.p[i].t))
		return NULL;
	return requests_sock(&e->reqs, t->touches.p[i].socket);
}

static const struct sock_io *io_at_or_before(const struct sock *s, cc_ns at, uint8_t op)
{
	for (uint32_t i = vec_lower_bound(&s->io, t, at + 1); i-- > 0;)
		if (s->io.p[i].op == op)
			return &s->io.p[i];
	return NULL;
}

/* The interrupted task was sending: the wake came out of its own send, which is told when it
 * returns, with no switch-out between. */
static bool sent_by_waker(const struct engine *e, const struct episode *ep,
			  const struct sock *mirror)
{
	const struct task *k =
		ep->waker_tid ? tasks_find(&e->tasks, ep->waker_tid, ep->wake) : NULL;
	uint32_t i;

	if (!k)
		return false;
	i = task_touch_from(k, ep->wake);
	if (i == k->touches.cnt || k->touches.p[i].op != CC_OP_SEND ||
	    k->touches.p[i].socket != mirror->cookie)
		return false;
	return task_ep_from(k, ep->wake) == task_ep_from(k, k->touches.p[i].t + 1);
}

static bool is_net(enum wait_class cls)
{
	return wait_class_letter(cls) == 'N' || cls == WAIT_EPOLL || cls == WAIT_POLL;
}

bool message_of_wake(const struct engine *e, const struct task *t, const struct episode *ep,
		     const struct side *side, struct message *ret)
{
	const struct sock *s, *mirror;
	const struct sock_io *sent, *read;

	if (!e->stats.has_sockets || !is_net(engine_classify(e, t, ep).cls))
		return false;
	s = socket_of_wait(e, t, ep, side);
	mirror = s ? requests_mirror(&e->reqs, s) : NULL;
	if (!mirror)
		return false;
	if (sent_by_waker(e, ep, mirror)) {
		*ret = (struct message){ ep->waker_tid, ep->wake, ep->wake, s };
		return true;
	}
	sent = io_at_or_before(mirror, ep->wake, CC_OP_SEND);
	read = io_at_or_before(s, ep->wake - 1, CC_OP_RECV);
	if (!sent || (read && read->t >= sent->t))
		return false; /* what was sent before has been read before */
	*ret = (struct message){ sent->tid, sent->t, ep->wake, s };
	return true;
}

bool message_received(const struct engine *e, const struct task *t, cc_ns lo, cc_ns hi,
		      struct message *ret)
{
	for (uint32_t i = task_touch_from(t, lo + 1); i < t->touches.cnt; i++) {
		const struct sock_touch *k = &t->touches.p[i];
		const struct sock *s, *mirror;
		const struct sock_io *sent;

		if (k->t > hi)
			break;
		s = k->op == CC_OP_RECV ? requests_sock(&e->reqs, k->socket) : NULL;
		mirror = s ? requests_mirror(&e->reqs, s) : NULL;
		sent = mirror ? io_at_or_before(mirror, k->t, CC_OP_SEND) : NULL;
		if (!sent)
			continue;
		*ret = (struct message){ sent->tid, sent->t, k->t, s };
		return true;
	}
	return false;
}
