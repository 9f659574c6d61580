/* SPDX-License-Identifier: Apache-2.0 */
/* Who held a request, from when to when, and how that is known. From the answer back: the thread
 * that sent it, who handed the work to that thread, and so on to the one that received it. */
#include <errno.h>
#include <string.h>

#include "identity.h"

/* A damaged record can say that a task had the request before it began: only [@from, ..) counts. */
static int push_seg(struct finder *f, struct ident_seg s, cc_ns from)
{
	s.lo = CC_MAX(s.lo, from);
	if (s.lo >= s.hi)
		return 0;
	if (vec_reserve(&f->e->mem, &f->e->segs, f->e->segs.cnt + 1))
		return -ENOMEM;
	f->e->segs.p[f->e->segs.cnt++] = s;
	__builtin_prefetch(&f->e->segs.p[f->e->segs.cnt + 4], 1);
	return 0;
}

int identity_add(struct finder *f, struct ident_seg s) { return push_seg(f, s, f->first); }

/* The time of the tasks on @c up to now, and on to the one that touched the request. */
static int follow(struct finder *f, const struct chain *c)
{
	for (uint32_t i = 0; i < c->cnt; i++) {
		const struct link *l = &c->v[i];
		struct ident_seg s = {
			.lo = CC_MAX(l->from, f->first),
			.hi = f->t,
			.task = l->task,
			.kind = SEG_WALK,
			.evidence = CC_EV_BIT(INFERRED),
		};
		int err;

		if (l->kind == LINK_TOUCH) {
			f->cur = l->task;
			return 0;
		}
		if (l->kind == LINK_BORN) {
			s.evidence = CC_EV_BIT(LINEAGE);
		} else if (l->kind == LINK_ITEM) {
			s.evidence = l->evidence;
		} else if (l->evidence & CC_EV_BIT(GO_SELECT)) {
			s.kind = SEG_AMBIGUOUS;
			s.evidence = l->evidence;
		} else if (chain_executor(f, task_at(f, l->task), s.lo, s.hi)) {
			s.kind = SEG_AMBIGUOUS;
			s.evidence = CC_EV_BIT(EXECUTOR);
		}
		err = identity_add(f, s);
		if (err)
			return err;
		f->t = CC_MIN(f->t, s.lo);
	}
	return 0;
}

/* Back over the thread's own operations on the request, up to one on another server socket. */
static int own_run(struct finder *f, cc_ns *ret_foreign)
{
	const struct task *t = task_at(f, f->cur);
	struct ident_seg s = {
		.hi = f->t,
		.task = f->cur,
		.kind = SEG_SPLIT,
		.evidence = CC_EV_BIT(SOCKET),
	};
	cc_ns run = f->t;

	*ret_foreign = 0;
	for (uint32_t i = task_touch_from(t, f->t); i-- > 0;) {
		const struct sock_touch *k = &t->touches.p[i];

		if (!touch_is_server(k))
			continue;
		if (!is_ours(f, k)) {
			*ret_foreign = k->t;
			break;
		}
		run = k->t;
	}
	s.lo = CC_MAX(run, f->first);
	if (run <= f->first && f->r->pub.recv_tid == t->tid)
		s.evidence = CC_EV_BIT(SAME_THREAD);
	if (f->r->pub.rec.what & CC_RQ_BY_PROXY)
		s.evidence = CC_EV_BIT(BY_PROXY);
	f->t = CC_MIN(f->t, s.lo);
	return identity_add(f, s);
}

/* The last operation on the request before @at, by any thread. */
static const struct req_op *op_before(const struct finder *f, cc_ns at)
{
	uint32_t i = vec_lower_bound(&f->r->ops, t, at);

	while (i > 0 && !f->r->ops.p[i - 1].tid)
		i--;
	return i ? &f->r->ops.p[i - 1] : NULL;
}

#define HOLDERS_MAX 64 /* operations looked at for who let go last */

/* The path must be worked out again when this thread is heard of. */
static void note_silent(struct req *r, uint32_t task)
{
	if (r->silent_cnt < ARRAY_SIZE(r->silent))
		r->silent[r->silent_cnt++] = task;
}

/* The thread that let go of the request last, of those that touched it before @at; NULL: none did.
 * *ret_let_go: when; *ret_touched: its operation. */
static const struct task *last_holder(const struct finder *f, cc_ns at, cc_ns *ret_let_go,
				      cc_ns *ret_touched)
{
	uint32_t i = vec_lower_bound(&f->r->ops, t, at), looked = 0;
	const struct task *last = NULL;

	for (*ret_let_go = 0; i-- > 0 && looked < HOLDERS_MAX; looked++) {
		const struct req_op *op = &f->r->ops.p[i];
		const struct task *t = op->tid ? tasks_find(&f->e->tasks, op->tid, op->t) : NULL;
		cc_ns let_go;

		if (!t)
			continue;
		/* told dead before it did this: at least until then it was not */
		let_go = CC_MAX(owner_let_go(f->e, t, f->r->pub.id, op->t, f->r->pub.end), op->t);
		/* what it did after it was last seen nobody knows */
		if (let_go > CC_MAX(t->alive, op->t)) {
			let_go = CC_MAX(t->alive, op->t);
			note_silent(f->r, index_of(f, t));
		}
		if (last && let_go <= *ret_let_go)
			continue;
		last = t;
		*ret_let_go = let_go;
		*ret_touched = op->t;
	}
	return last;
}

/* What @t touched last at @at is a request other than this one, and not over. */
static bool busy_with_other(const struct finder *f, const struct task *t, cc_ns at)
{
	cc_ns since;
	struct cc_reqid id = owner_at(f->e, t, at, &since);
	const struct req *r;

	if (id.kind == CC_REQID_NONE || cc_reqid_eq(id, f->r->pub.id))
		return false;
	r = requests_find(&f->e->reqs, id);
	if (r && requests_is_open(&f->e->reqs, r))
		f->r->leaned_open |= reqid_bit(id);
	return !r || !r->told || r->pub.end > at;
}

static bool received_at(const struct finder *f, const struct task *t, cc_ns at)
{
	for (uint32_t i = vec_lower_bound(&f->r->ops, t, at);
	     i < f->r->ops.cnt && f->r->ops.p[i].t == at; i++)
		if (f->r->ops.p[i].op == CC_OP_RECV && f->r->ops.p[i].tid == t->tid)
			return true;
	return false;
}

#define FEED_LOOKED 256 /* waits that are looked at for one for work, where none was met later */

/* The task that gave @t the last work that it was idle for before @at; 0: none is known. A busy one
 * may not have been idle for long: what was looked through is remembered. */
static uint32_t feeder_of(const struct finder *f, struct task *t, cc_ns at)
{
	uint32_t n = 0;
	bool goes_on = at >= t->fed_to;
	cc_ns since = goes_on ? t->fed_to : 0;
	uint32_t found = goes_on ? t->feeder : 0;

	for (uint32_t i = task_ep_from(t, at); i-- > 0; n++) {
		const struct episode *ep = &t->eps.p[i];

		if (ep->out < since || (!goes_on && n >= FEED_LOOKED))
			break;
		if (!ep_task_wake(ep) || !owner_is_idle(f->e, t, ep))
			continue;
		found = ep->waker_tid;
		break;
	}
	if (goes_on) {
		t->fed_to = at;
		t->feeder = found;
	}
	return found;
}

/* Has it, before @at? What it does later may be known already, or not yet. */
static bool answers_requests(const struct task *t, cc_ns at)
{
	for (uint32_t i = task_touch_from(t, at), n = 0; i-- > 0 && n < FEED_LOOKED; n++)
		if (touch_is_server(&t->touches.p[i]))
			return true;
	return false;
}

/* What @t was idle for last came from a task that answers no requests itself: there is a stage
 * between those that receive and @t, and the time of a request may have been that one's. */
static bool is_stage(const struct finder *f, const struct task *t, const struct task *holder,
		     uint32_t feeder)
{
	const struct task *w = tasks_find(&f->e->tasks, feeder, f->t);

	if (!w || w == holder || !w->timeline || w->tgid != t->tgid)
		return false;
	return !answers_requests(w, f->t);
}

/* Who is not seen to be fed, since it was never idle: @holder gives work to tasks of its process
 * that answer no requests. It may be theirs before it is @t's. */
static bool feeds_a_stage(const struct finder *f, const struct task *t, struct task *holder)
{
	uint32_t cnt;
	const struct given_wake *g = wakes_given(holder, 0, f->t, &cnt);

	for (uint32_t n = 0; cnt-- > 0 && n < FEED_LOOKED; n++) {
		const struct task *to = tasks_find(&f->e->tasks, g[cnt].wakee_tid, g[cnt].t);
		const struct episode *ep = to ? wakes_episode_of(to, g[cnt].t) : NULL;

		if (ep && to != t && to->tgid == t->tgid && owner_is_idle(f->e, to, ep) &&
		    !answers_requests(to, f->t))
			return true;
	}
	return false;
}

/* No hand-over is known: it lay queued until this thread was free for it. When this thread had it
 * before too, the time between is an event loop's. */
static int queued_since(struct finder *f, cc_ns foreign)
{
	struct task *t = task_at(f, f->cur);
	const struct task *holder;
	uint32_t feeder;
	cc_ns began, touched, let_go, idle = owner_idle_end(f->e, t, f->first, f->t, &began);
	cc_ns free = CC_MIN(CC_MAX(CC_MAX(foreign, idle), f->first), f->t);
	struct ident_seg held = {
		.hi = f->t,
		.task = f->cur,
		.kind = SEG_WALK,
		.evidence = CC_EV_BIT(QUEUE_INFERRED),
	};
	struct ident_seg before = {
		.task = f->cur,
		.kind = SEG_QUEUED,
		.evidence = CC_EV_BIT(QUEUE_INFERRED),
	};
	int err;

	holder = last_holder(f, f->t, &let_go, &touched);
	if (!holder && late_had_it(f)) {
		held.lo = f->first;
		held.kind = SEG_SPLIT;
		held.evidence = CC_EV_BIT(LATE_SENT);
		f->t = f->first;
		return identity_add(f, held);
	}
	if (!holder) {
		if (free == f->first)
			free = f->t; /* nothing says since when */
		let_go = f->first;
		before.kind = SEG_NO_IDENTITY;
		before.evidence = CC_EV_BIT(NO_IDENTITY);
	} else {
		if (let_go >= f->t) /* it never did: then this one has it since it was free */
			let_go = CC_MAX(free, touched);
		f->cur = index_of(f, holder);
	}
	if (holder == t) {
		before.kind = SEG_LOOP;
		before.evidence = CC_EV_BIT(SOCKET);
		/* not its own before it received more of it, nor while another one was open */
		if (received_at(f, t, f->t) || busy_with_other(f, t, free))
			free = f->t;
	} else if (holder) {
		feeder = feeder_of(f, t, f->t);
		if (feeder ? is_stage(f, t, holder, feeder)
			   : feeds_a_stage(f, t, task_at(f, f->cur))) {
			before.kind = SEG_AMBIGUOUS;
			before.evidence = CC_EV_BIT(ELSEWHERE);
		} else if (!feeder) {
			before.evidence = CC_EV_BIT(QUEUE_UNFED);
		}
	}
	held.lo = CC_MAX(let_go, free);
	before.lo = let_go;
	before.hi = free;
	f->t = let_go;
	err = identity_add(f, held);
	return err ? err : identity_add(f, before);
}

/* One step back from f->t, before which f->cur is not known to have held the request. */
static int step_back(struct finder *f, cc_ns foreign)
{
	const struct task *t = task_at(f, f->cur);
	struct chain c = { .cnt = 1 };
	cc_ns wake;

	c.v[0] = (struct link){ .task = f->cur, .kind = LINK_BORN, .from = t->born };
	if (t->born != CC_NEVER && t->born >= foreign && chain_born(f, t, f->t, 1, &c))
		return follow(f, &c);
	c.cnt = 1;
	if (chain_item(f, t, CC_MAX(foreign, f->first - 1), f->t, 0, &c.v[0], &c))
		return follow(f, &c);
	c.cnt = 1;
	c.v[0].kind = LINK_WOKEN;
	if (chain_handed(f, t, CC_MAX(foreign, f->first - 1), f->t, 0, &wake, &c)) {
		c.v[0].from = wake;
		/* the sender itself is no executor: it ends with this answer */
		struct ident_seg s = {
			.lo = CC_MAX(wake, f->first),
			.hi = f->t,
			.task = f->cur,
			.kind = SEG_WALK,
			.evidence = c.v[0].evidence | CC_EV_BIT(INFERRED),
		};
		int err;

		if (s.evidence & CC_EV_BIT(GO_SELECT))
			s.kind = SEG_AMBIGUOUS;
		err = identity_add(f, s);
		f->t = CC_MIN(f->t, s.lo);
		memmove(&c.v[0], &c.v[1], --c.cnt * sizeof(c.v[0]));
		return err ? err : follow(f, &c);
	}
	return queued_since(f, foreign);
}

/* The one task that @holder woke after @from and that did nothing else since: it has the work of a
 * request not answered yet. False: none, or more than one could have it. */
static bool woken_holder(struct finder *f, uint32_t holder, cc_ns from, cc_ns let_go,
			 uint32_t *ret_task, cc_ns *ret_wake, bool *ret_many)
{
	uint32_t cnt;
	const struct given_wake *g = wakes_given(task_at(f, holder), from, let_go, &cnt);

	*ret_wake = 0;
	for (uint32_t i = 0; i < cnt && f->looks <= LOOKS_MAX; i++, f->looks++) {
		const struct task *t = tasks_find(&f->e->tasks, g[i].wakee_tid, g[i].t);
		const struct episode *ep = t ? wakes_episode_of(t, g[i].t) : NULL;

		if (!ep || engine_classify(f->e, t, ep).is_lock || index_of(f, t) == holder)
			continue;
		if (owner_first_idle(f->e, t, g[i].t, f->t) < f->t ||
		    owner_let_go(f->e, t, f->r->pub.id, g[i].t, f->t) < f->t)
			continue;
		*ret_many = *ret_wake && *ret_task != index_of(f, t);
		if (*ret_many)
			return false;
		if (!*ret_wake) {
			*ret_task = index_of(f, t);
			*ret_wake = g[i].t;
		}
	}
	return *ret_wake != 0;
}

/* Who holds a request at its end, when that is not its last send: it goes on, or was dropped. */
static int unanswered(struct finder *f, const struct req_op *z)
{
	cc_ns let_go = owner_let_go(f->e, task_at(f, f->cur), f->r->pub.id, z->t, f->t), wake;
	struct ident_seg s = { .hi = f->t, .evidence = CC_EV_BIT(INFERRED) };
	bool many = false;

	if (let_go >= f->t)
		return 0; /* that thread still has it */
	if (woken_holder(f, f->cur, z->t - 1, let_go, &s.task, &wake, &many)) {
		s.lo = wake;
		s.kind = SEG_WALK;
	} else if (many) {
		s.lo = let_go;
		s.task = f->cur;
		s.kind = SEG_AMBIGUOUS;
		s.evidence = CC_EV_BIT(EXECUTOR);
	} else {
		return 0; /* an event loop's time, as far as can be told */
	}
	f->t = CC_MAX(s.lo, f->first);
	s.lo = f->t;
	return identity_add(f, s);
}

static int find_back(struct finder *f)
{
	struct ident_seg rest = { .lo = f->first,
				  .task = UINT32_MAX,
				  .kind = SEG_NO_IDENTITY,
				  .evidence = CC_EV_BIT(NO_IDENTITY) };

	for (uint32_t steps = 0; f->t > f->first && steps < STEPS_MAX; steps++) {
		cc_ns foreign;
		int err = own_run(f, &foreign);

		if (!err && f->t > f->first)
			err = step_back(f, foreign);
		if (err)
			return err;
	}
	rest.hi = f->t;
	return identity_add(f, rest);
}

int identity_find(struct engine *e, struct req *r)
{
	const struct cc_rec_req *q = &r->pub.rec;
	cc_ns first = CC_MIN(CC_MAX(q->first_recv, r->pub.start), r->pub.end);
	struct finder f = { .e = e, .r = r, .first = first, .t = r->pub.end };
	const struct req_op *z = op_before(&f, f.t + 1);
	const struct task *t = z ? tasks_find(&e->tasks, z->tid, z->t) : NULL;
	struct ident_seg arrival = { .lo = r->pub.start,
				     .hi = first,
				     .kind = SEG_ARRIVAL,
				     .task = UINT32_MAX,
				     .evidence = CC_EV_BIT(SOCKET) };
	uint32_t first_seg = e->segs.cnt;
	int err = 0;

	identity_forget(e, r);
	if (r->pub.id.kind == CC_REQID_GOID)
		return go_request_seg(e, r) ?: identity_keep(e, r, first_seg);
	if (t && go_request_is_mux(e, t)) { /* many streams: each is told for itself */
		r->pub.rec.what |= CC_RQ_BUSY;
		e->reqs.busy_told = true;
		err = push_seg(&f,
			       (struct ident_seg){ .lo = r->pub.start,
						   .hi = f.t,
						   .task = index_of(&f, t),
						   .kind = SEG_AMBIGUOUS,
						   .evidence = CC_EV_BIT(GO_SHARED) },
			       r->pub.start);
		return err ? err : identity_keep(e, r, first_seg);
	}
	if (t && go_proc(&e->tasks, q->tgid) && !task_is_go(t)) {
		/* a thread of a Go program, before its goroutines were followed: anybody's */
		err = push_seg(&f,
			       (struct ident_seg){ .lo = r->pub.start,
						   .hi = f.t,
						   .task = UINT32_MAX,
						   .kind = SEG_NO_IDENTITY,
						   .evidence = CC_EV_BIT(NO_IDENTITY) },
			       r->pub.start);
		return err ? err : identity_keep(e, r, first_seg);
	}
	if (t) {
		f.cur = index_of(&f, t);
		err = z->t < f.t ? unanswered(&f, z) : 0;
		if (!err)
			err = find_back(&f);
	} else if (q->what & CC_RQ_UNREAD) {
		arrival.hi = f.t;
		arrival.task = late_reader(&f, &arrival.evidence);
	} else if (late_is(q)) {
		err = late_find(&f);
	} else {
		err = identity_add(&f, (struct ident_seg){ .lo = first,
							   .hi = f.t,
							   .task = UINT32_MAX,
							   .kind = SEG_NO_IDENTITY,
							   .evidence = CC_EV_BIT(NO_IDENTITY) });
	}
	if (err)
		return err;
	t = q->recv_tid ? tasks_find(&e->tasks, q->recv_tid, first) : NULL;
	if (t)
		arrival.task = index_of(&f, t);
	err = push_seg(&f, arrival, r->pub.start);
	return err ? err : identity_keep(e, r, first_seg);
}
