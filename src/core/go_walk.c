/* SPDX-License-Identifier: Apache-2.0 */
/* A goroutine's time: while it is on a thread it is that thread's, so a preempted thread, a page
 * fault or a file that is read are told as they are; on none, it queues for one, or nothing is
 * known. And what its waits were for. */
#include <string.h>

#include "engine_priv.h"

/* ---- what a wait was for ------------------------------------------------------------------ */

uint32_t go_runq_resource(struct engine *e) { return resources_get(&e->res, RES_GO_RUNQ, 0, 0, 0); }

static bool is_socket(unsigned int fd_kind)
{
	return fd_kind >= CC_FD_SOCK_TCP && fd_kind <= CC_FD_SOCK_OTHER;
}

/* Of a select it is the channel that ended it. */
static uint32_t object_class(const struct episode *ep)
{
	return ep->key == WAIT_SELECT ? WAIT_CHAN : ep->key;
}

uint32_t go_resource(struct engine *e, const struct task *t, const struct episode *ep)
{
	const struct go_wait *g = ep_go_wait(&e->tasks, ep);
	uint32_t res;

	if (!g)
		return 0;
	if (is_socket(g->fd_kind) && g->fd_id)
		return resources_get(&e->res, RES_SOCK, g->fd_id, 0, 0);
	if (g->fd_kind && g->fd >= 0) {
		res = resources_get(&e->res, RES_FD, (uint32_t)g->fd, 0, t->tgid);
		if (res)
			e->res.v.p[res - 1].learned = g->fd_kind;
		return res;
	}
	return g->object ? resources_get(&e->res, RES_GO, g->object, object_class(ep), t->tgid) : 0;
}

uint32_t go_resource_find(const struct engine *e, const struct task *t, const struct episode *ep)
{
	const struct go_wait *g = ep_go_wait(&e->tasks, ep);

	return g && g->object
		       ? resources_find(&e->res, RES_GO, g->object, object_class(ep), t->tgid)
		       : 0;
}

/* The goroutine's first operation on a socket after the wait, before another one. */
static const struct sock_touch *touch_after(const struct task *t, const struct episode *ep)
{
	uint32_t i = task_touch_from(t, ep->in);
	uint32_t next = task_ep_from(t, ep->out + 1);

	if (i == t->touches.cnt || (next < t->eps.cnt && t->touches.p[i].t > t->eps.p[next].out))
		return NULL;
	return &t->touches.p[i];
}

static enum wait_class of_socket(const struct engine *e, const struct task *t,
				 const struct episode *ep, uint64_t cookie)
{
	const struct sock_touch *after = touch_after(t, ep);
	uint32_t before = task_touch_from(t, ep->out + 1);

	if (!cookie && after)
		cookie = after->socket;
	if (!cookie && before && t->touches.p[before - 1].op == CC_OP_CONNECT)
		cookie = t->touches.p[before - 1].socket;
	if (cookie && map_get(&e->reqs.upstreams, cookie))
		return WAIT_UPSTREAM;
	if (ep->key == WAIT_NET_SEND)
		return WAIT_NET_SEND;
	return after && after->socket == cookie && after->op == CC_OP_SEND ? WAIT_NET_SEND
									   : WAIT_NET_RECV;
}

/* "IO wait" is for whatever the poller can wait for; only its direction is told. */
static bool is_io(uint32_t cls)
{
	return cls == WAIT_POLL || cls == WAIT_NET_RECV || cls == WAIT_NET_SEND;
}

static enum wait_class of_io(const struct engine *e, const struct task *t, const struct episode *ep)
{
	const struct go_wait *g = ep_go_wait(&e->tasks, ep);

	switch (g ? g->fd_kind : CC_FD_NONE) {
	case CC_FD_NONE:
		return of_socket(e, t, ep, 0);
	case CC_FD_SOCK_TCP:
	case CC_FD_SOCK_UDP:
	case CC_FD_SOCK_OTHER:
		return of_socket(e, t, ep, g->fd_id);
	case CC_FD_SOCK_UNIX:
		return g->fd_id && map_get(&e->reqs.upstreams, g->fd_id) ? WAIT_UPSTREAM
									 : WAIT_UNIX;
	case CC_FD_PIPE:
		return WAIT_PIPE;
	default:
		return WAIT_POLL;
	}
}

/* A sync.RWMutex, which several readers may have at a time. */
static bool is_shared_lock(const struct engine *e, const struct task *t, const struct episode *ep)
{
	uint32_t res = go_resource_find(e, t, ep);

	return res && e->res.v.p[res - 1].shared;
}

struct wait_kind go_classify(const struct engine *e, const struct task *t, const struct episode *ep)
{
	struct wait_kind k = {
		.cls = ep->key < WAIT_CLASS_CNT ? (enum wait_class)ep->key : WAIT_BLOCKED,
	};

	if (is_io(k.cls))
		k.cls = of_io(e, t, ep);
	k.is_lock = k.cls == WAIT_MUTEX || k.cls == WAIT_SEMA;
	if (k.cls == WAIT_MUTEX && is_shared_lock(e, t, ep))
		k.site = FUTEX_SITE_RWLOCK;
	if (k.cls == WAIT_NET_RECV || k.cls == WAIT_CHAN || k.cls == WAIT_SELECT ||
	    k.cls == WAIT_COND || k.cls == WAIT_UNIX)
		k.idle = IDLE_WHEN_FREE;
	return k;
}

bool go_walk_is_idle(const struct engine *e, const struct task *t, const struct episode *ep,
		     const struct wait_kind *k)
{
	const struct side *s = ep_side(&e->tasks, ep);

	return !ep_is_go(ep) && classify_is_futex(&e->cls, ep) && !(s && s->ustack) &&
	       (k->cls == WAIT_COND || (k->cls == WAIT_LOCK && k->guessed)) &&
	       task_go(&e->tasks, t)->ons.cnt &&
	       go_on_thread(&e->tasks, t->tid, ep->out) == GO_NONE;
}

bool go_walk_is_resource(const struct engine *e, const struct task *t, const struct episode *ep)
{
	const struct go_wait *g = ep_go_wait(&e->tasks, ep);

	return g && g->object && object_class(ep) == WAIT_CHAN &&
	       go_channel_kind(&e->tasks, t->tgid, g->object) != GO_CHAN_WORK;
}

struct go_turn go_walk_turn(const struct engine *e, const struct task *t, const struct episode *ep,
			    uint32_t holder, cc_ns to)
{
	uint64_t channel = ep_go_wait(&e->tasks, ep)->object;
	const struct task *h = tasks_find(&e->tasks, holder, to);
	const struct go_recv *took = h ? go_took(&e->tasks, h, channel, to) : NULL;
	struct go_turn turn = {
		.several = go_channel_kind(&e->tasks, t->tgid, channel) == GO_CHAN_SEVERAL,
	};

	/* before that it lay in the channel, or somebody had it who gave it from hand to hand */
	if (took && took->t > ep->out && took->t < to) {
		turn.since = took->t;
		turn.before = took->sent == took->t ? took->from : 0;
	}
	return turn;
}

struct task *go_walk_doer(const struct engine *e, uint32_t tid, cc_ns at)
{
	uint32_t on = go_on_thread(&e->tasks, tid, at);

	return on == GO_NONE ? tasks_find(&e->tasks, tid, at) : &e->tasks.v.p[on];
}

/* What is waited for may come by a timer: a select with a timeout, a channel of ticks. */
static bool may_time_out(unsigned int cls) { return cls == WAIT_SELECT || cls == WAIT_CHAN; }

void go_walk_describe(const struct walk *w, const struct task *t, const struct episode *ep,
		      struct cc_piece *p)
{
	const struct go_wait *g = ep_go_wait(&w->e->tasks, ep);

	p->ustack = g ? g->ustack : 0;
	p->evidence |= p->ustack ? 0 : CC_EV_BIT(STACKLESS);
	p->resource = go_resource(w->e, t, ep);
	if (p->flags & CC_PC_OPEN) {
		p->ended = CC_ENDED_OPEN;
		p->evidence |= CC_EV_BIT(OPEN);
		return;
	}
	p->ended = CC_ENDED_WAKE;
	if (ep_task_wake(ep)) {
		p->waker_kind = CC_WAKER_TASK;
		p->waker_tid = ep->waker_tid;
		p->waker_tgid = ep->waker_tgid;
	} else if (p->cls == WAIT_SLEEP || (ep->wake && may_time_out(p->cls))) {
		p->waker_kind = CC_WAKER_TIMER;
		p->ended = CC_ENDED_TIMEOUT;
		p->evidence |= p->cls == WAIT_SLEEP ? 0 : CC_EV_BIT(GO_RUNTIME);
	} else if (wait_class_letter(p->cls) == 'N' || p->cls == WAIT_POLL) {
		p->waker_kind = CC_WAKER_NETPOLL;
		p->evidence |= CC_EV_BIT(GO_RUNTIME);
	} else {
		p->waker_kind = CC_WAKER_UNKNOWN;
		p->evidence |= CC_EV_BIT(WAKER_NONE);
	}
}

/* ---- between waits ------------------------------------------------------------------------ */

/* [a, b) on thread @thread: its pieces, as the goroutine's. */
static void on_thread(struct walk *w, uint32_t ti, uint32_t thread, cc_ns a, cc_ns b,
		      uint16_t depth)
{
	const struct task *t = &w->e->tasks.v.p[ti], *on = &w->e->tasks.v.p[thread];
	uint32_t before = w->out.cnt;

	w->leaned |= 1ull << (on->tid % 64);
	walk_span(w, thread, a, b, false, depth);
	for (uint32_t i = before; i < w->out.cnt; i++) {
		struct cc_piece *p = &w->out.p[i];

		if (p->depth != depth || p->tid != on->tid)
			continue;
		p->on_tid = p->tid;
		p->tid = t->tid;
		p->goid = task_go(&w->e->tasks, t)->goid;
	}
}

/* [a, b) on no thread and in no wait: it queued, when it is told to have run again after it. */
static void off_thread(struct walk *w, uint32_t ti, cc_ns a, cc_ns b, uint16_t depth, bool ran_on)
{
	const struct task *t = &w->e->tasks.v.p[ti];
	const struct go_proc *proc = go_proc(&w->e->tasks, t->tgid);
	struct cc_piece p = walk_piece(w, t, a, b, depth, WAIT_UNKNOWN);

	if (ran_on && proc && proc->waits) {
		p.cls = WAIT_RUNQ;
		p.ended = CC_ENDED_RAN;
		p.resource = go_runq_resource(w->e);
		p.evidence |= CC_EV_BIT(SCHED);
	} else {
		p.evidence |= proc && proc->waits ? CC_EV_BIT(NO_DATA) : CC_EV_BIT(GO_OFF);
	}
	walk_emit(w, &p);
}

void go_walk_run(struct walk *w, uint32_t ti, cc_ns a, cc_ns b, uint16_t depth)
{
	for (cc_ns at = b, from; at > a && !w->err; at = from) {
		/* the walk may make tasks, so that pointers do not last */
		const struct go_state *g = task_go(&w->e->tasks, &w->e->tasks.v.p[ti]);
		uint32_t i = vec_lower_bound(&g->ons, from, at);
		cc_ns end = i ? go_on_end(g, i - 1) : 0;

		if (i && end >= at) {
			from = CC_MAX(a, g->ons.p[i - 1].from);
			on_thread(w, ti, g->ons.p[i - 1].other, from, at, depth);
			continue;
		}
		from = CC_MAX(a, end);
		off_thread(w, ti, from, at, depth, i < g->ons.cnt);
	}
}
