/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that were read before tracing began: nobody saw by whom. It is found by elimination,
 * from what each thread of the process did when it was first seen. One that has slept since before
 * the request came has not read it; if only one is left, that one did. Of several, those that wait
 * for something which is no work to come may have it: the only one, or the only one that went to
 * sleep right after the data had come. Nothing else is said. */
#include "confidence.h"
#include "identity.h"

#define SLACK_NS CC_MS(12) /* when the data came is known to a jiffy: 1 to 10 ms */
#define SOON_NS CC_MS(50)
#define OTHERS_MAX 64 /* late requests of one process: of more nothing is said */

bool late_is(const struct cc_rec_req *q)
{
	return (q->what & (CC_RQ_LATE | CC_RQ_UNREAD)) == CC_RQ_LATE && !q->first_recv;
}

struct threads {
	uint32_t all;  /* that were there when it came */
	uint32_t able; /* of these, that ran since */
	uint32_t busy; /* of these, that may have it by what they wait for */
	uint32_t soon; /* of these, that went to sleep right after it came */
	uint32_t one;  /* the first of all, able or busy, or the last of soon: of the narrowest that
			* is not empty */
};

/* The wait that @t was in when it was first seen, not over yet; NULL: there is none. */
static const struct episode *first_wait(const struct task *t)
{
	if (t->eps.cnt || t->cut || !t->open.out || t->open.out != t->slept_since)
		return NULL;
	return &t->open.ep;
}

/* It waits for data on a connection of its own server, maybe this one: as a thread does that has
 * nothing to do, or has handed on what it read. */
static bool for_next_request(const struct finder *f, const struct side *side)
{
	return !side || !side->sock_ports || side->sock_ports >> 16 == f->r->pub.rec.local_port;
}

/* May @t have the request, by the wait that it is in since it was first seen? */
static bool may_have(const struct finder *f, const struct task *t)
{
	const struct episode *ep = first_wait(t);
	struct wait_kind k;

	if (!ep)
		return !t->slept_since && !t->eps.cnt; /* on the CPU ever since */
	k = engine_classify(f->e, t, ep);
	if (k.cls == WAIT_NET_RECV || k.cls == WAIT_UPSTREAM)
		return !for_next_request(f, ep_side(&f->e->tasks, ep));
	return k.idle == IDLE_NO && k.cls != WAIT_PIPE && k.cls != WAIT_SIGNAL;
}

static void look_at(const struct finder *f, const struct task *t, struct threads *n)
{
	cc_ns came = f->r->pub.start, slept = t->slept_since;
	bool soon;

	if (!t->tid || t->tgid != f->r->pub.rec.tgid || task_is_go(t) || !t->timeline ||
	    t->dead <= came || (t->born != CC_NEVER && t->born > came + SLACK_NS))
		return;
	if (!n->all++)
		n->one = index_of(f, t);
	if (slept && slept + SLACK_NS < came)
		return;
	if (!n->able++)
		n->one = index_of(f, t);
	if (!may_have(f, t))
		return;
	soon = slept && slept < came + SOON_NS;
	if (!n->busy++ || soon)
		n->one = index_of(f, t);
	n->soon += soon;
}

/* Of the late requests of the process, this is the one that came last before @t went to sleep: when
 * it has one, it is that. *ret_others: how many there are beside it. */
static bool came_last(const struct finder *f, const struct task *t, uint32_t *ret_others)
{
	const struct req_vec *v = &f->e->reqs.list[LIST_OPEN];
	cc_ns came = f->r->pub.start, until = t->slept_since ? t->slept_since + SLACK_NS : CC_NEVER;

	*ret_others = 0;
	for (uint32_t i = 0; i < v->cnt && *ret_others < OTHERS_MAX; i++) {
		const struct req *o = v->p[i];

		if (o == f->r || !o->open || !late_is(&o->pub.rec) ||
		    o->pub.rec.tgid != f->r->pub.rec.tgid)
			continue;
		++*ret_others;
		if (o->pub.start >= came && o->pub.start <= until)
			return false;
	}
	return *ret_others < OTHERS_MAX;
}

/* @t answered another request before it read any: it had that one when it was first seen. */
static bool had_other(const struct finder *f, const struct task *t)
{
	for (uint32_t i = 0; i < t->touches.cnt; i++) {
		const struct sock_touch *s = &t->touches.p[i];

		if (touch_is_server(s))
			return s->op == CC_OP_SEND && !is_ours(f, s);
	}
	return false;
}

static uint64_t why(const struct threads *n)
{
	if (n->able == 1)
		return CC_EV_BIT(LATE_ONLY_ONE);
	if (n->soon == 1)
		return CC_EV_BIT(LATE_SOON);
	if (n->busy == 1)
		return CC_EV_BIT(LATE_LEFT);
	return n->busy ? CC_EV_BIT(LATE_MANY) : CC_EV_BIT(LATE_NONE);
}

/* When @t let go of the request that it had when it was first seen. */
static cc_ns let_go(struct finder *f, const struct task *t)
{
	cc_ns came = f->r->pub.start;
	cc_ns at = t->slept_since ? CC_MIN(came, t->slept_since) : came;

	return CC_MAX(came, owner_let_go(f->e, t, f->r->pub.id, at, f->r->pub.end));
}

static void set_late(struct finder *f, struct task *t, cc_ns to)
{
	t->late = (struct late_work){ f->r->pub.id, f->r->pub.start, to };
	f->e->idle.valid = false; /* of a thread that works, other waits are idle */
}

static void count_threads(const struct finder *f, struct threads *n)
{
	*n = (struct threads){ 0 };
	for (uint32_t i = 0; i < f->e->tasks.v.cnt; i++)
		look_at(f, &f->e->tasks.v.p[i], n);
}

/* Who had it first: evidence that names a thread, n->one, or says why none. */
static uint64_t late_holder(struct finder *f, struct threads *n)
{
	const struct task *t;
	uint32_t others;
	uint64_t ev;

	if (f->r->pub.rec.what & CC_RQ_SHARED)
		return CC_EV_BIT(LATE_SHARED);
	count_threads(f, n);
	ev = why(n);
	if (!evidence_confidence(ev))
		return ev;
	t = task_at(f, n->one);
	if (!came_last(f, t, &others) || had_other(f, t))
		return CC_EV_BIT(LATE_MANY);
	if (others && ev == CC_EV_BIT(LATE_ONLY_ONE)) /* it read them all, and has one of them */
		ev = n->soon ? CC_EV_BIT(LATE_SOON) : CC_EV_BIT(LATE_LEFT);
	return ev;
}

int late_find(struct finder *f)
{
	struct threads n = { 0 };
	struct ident_seg s = { .hi = f->t, .lo = f->first, .task = UINT32_MAX };
	uint64_t ev = late_holder(f, &n);
	struct task *t;
	cc_ns to;
	int err;

	s.evidence = ev;
	if (!evidence_confidence(ev)) {
		s.kind = ev == CC_EV_BIT(LATE_MANY) ? SEG_AMBIGUOUS : SEG_NO_IDENTITY;
		return identity_add(f, s);
	}
	t = task_at(f, n.one);
	set_late(f, t, CC_NEVER);
	to = let_go(f, t);
	set_late(f, t, to);
	s.lo = to;
	if (n.all == 1) {
		s.kind = SEG_LOOP;
		s.task = n.one;
	} else {
		s.kind = SEG_NO_IDENTITY;
		s.evidence = CC_EV_BIT(LATE_NONE);
	}
	err = identity_add(f, s);
	if (err)
		return err;
	s = (struct ident_seg){ f->first, CC_MIN(to, f->t), n.one, SEG_SPLIT, ev };
	return identity_add(f, s);
}

bool late_had_it(struct finder *f)
{
	struct task *t = task_at(f, f->cur);
	struct threads n;

	if (!late_is(&f->r->pub.rec) || f->r->pub.rec.what & CC_RQ_SHARED ||
	    (t->born != CC_NEVER && t->born > f->first))
		return false;
	count_threads(f, &n);
	if (n.able == 1 && n.one == f->cur)
		set_late(f, t, CC_NEVER); /* what it waits for it waits for with it */
	if (had_other(f, t) || let_go(f, t) < f->t)
		return false;
	set_late(f, t, f->r->pub.end);
	return true;
}

/* The one thread of the process that is known to read requests of this port; UINT32_MAX: none, or
 * more than one is. */
static uint32_t only_reader(const struct finder *f)
{
	const struct requests *rs = &f->e->reqs;
	const struct cc_rec_req *q = &f->r->pub.rec;
	uint32_t one = UINT32_MAX;

	if (rs->receiver_cnt == RECEIVERS_MAX)
		return UINT32_MAX;
	for (uint32_t i = 0; i < f->e->tasks.v.cnt; i++) {
		const struct task *t = &f->e->tasks.v.p[i];

		if (!t->tid || t->tgid != q->tgid || t->late.id.kind == CC_REQID_NONE)
			continue;
		if (one != UINT32_MAX)
			return UINT32_MAX;
		one = i;
	}
	for (uint32_t i = 0; i < rs->receiver_cnt; i++) {
		const struct receiver *o = &rs->receivers[i];

		if (o->tgid != q->tgid || o->port != q->local_port || o->task == one)
			continue;
		if (one != UINT32_MAX)
			return UINT32_MAX;
		one = o->task;
	}
	return one;
}

uint32_t late_reader(const struct finder *f, uint64_t *evidence)
{
	const struct sock *s = requests_sock(&f->e->reqs, f->r->pub.id.id);
	const struct task *t = NULL;
	struct threads n;
	uint32_t one;

	count_threads(f, &n);
	if (n.all == 1)
		return n.one;
	if (s && s->tid)
		t = tasks_find(&f->e->tasks, s->tid, f->r->pub.end);
	one = t ? index_of(f, t) : only_reader(f);
	if (one == UINT32_MAX || task_is_go(task_at(f, one)))
		return UINT32_MAX;
	*evidence |= CC_EV_BIT(READER);
	return one;
}
