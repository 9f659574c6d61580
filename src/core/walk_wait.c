/* SPDX-License-Identifier: Apache-2.0 */
/* A wait: who ended it, who held what was waited for, and their time meanwhile. */
#include <errno.h>

#include "engine_priv.h"

struct wait { /* [a, b) of a wait of task @ti */
	uint32_t ti;
	cc_ns a, b;
	const struct tl_piece *tp;
	struct wait_kind kind;
	struct cc_piece piece; /* what all its pieces have */
	uint16_t depth;
	bool apart;   /* a lock of which wakes_are_apart() */
	bool several; /* no lock, and taken in turn, but not by one at a time */
};

bool walk_may_nest(const struct walk *w, uint32_t ti, uint16_t depth, bool *ret_cycle)
{
	*ret_cycle = false;
	for (uint32_t i = 0; i < w->depth; i++)
		*ret_cycle |= w->stack[i].task == ti;
	return !*ret_cycle && w->depth < WALK_DEPTH_MAX && depth < WALK_DEPTH_MAX &&
	       w->out.cnt < w->nested_max;
}

enum cc_waker walk_waker_kind(const struct episode *ep, const struct side *s)
{
	if (s && s->flags & CC_EX_TIMEOUT)
		return CC_WAKER_TIMER;
	switch (ep_ctx(ep)) {
	case CC_CTX_TASK:
		return ep->waker_tid ? CC_WAKER_TASK : CC_WAKER_IDLE;
	case CC_CTX_SOFTIRQ:
	case CC_CTX_KSOFTIRQD:
		return CC_WAKER_SOFTIRQ;
	case CC_CTX_HARDIRQ:
		return CC_WAKER_HARDIRQ;
	case CC_CTX_IDLE:
	case CC_CTX_IRQ:
		return CC_WAKER_IDLE;
	case CC_CTX_KTHREAD:
		return CC_WAKER_KTHREAD;
	default:
		return CC_WAKER_UNKNOWN;
	}
}

static enum cc_ended how_ended(const struct wait *x, const struct episode *ep, const struct side *s)
{
	if (x->piece.flags & CC_PC_OPEN)
		return CC_ENDED_OPEN;
	if (s && s->flags & CC_EX_TIMEOUT)
		return CC_ENDED_TIMEOUT;
	if (s && s->flags & CC_EX_SIGNAL)
		return CC_ENDED_SIGNAL;
	return ep->wake ? CC_ENDED_WAKE : CC_ENDED_RAN;
}

/* What all pieces of the wait have. */
static void describe(struct walk *w, struct wait *x)
{
	const struct task *t = &w->e->tasks.v.p[x->ti];
	const struct episode *ep = x->tp->ep;
	const struct side *s = ep_side(&w->e->tasks, ep);
	struct cc_piece *p = &x->piece;

	x->kind = engine_classify(w->e, t, ep);
	*p = walk_piece(w, t, x->a, x->b, x->depth, x->kind.cls);
	p->evidence |= CC_EV_BIT(SCHED);
	if (x->b < x->tp->end)
		p->flags |= CC_PC_OPEN;
	if (ep->flags & CC_EP_SEEDED) {
		p->flags |= CC_PC_SEEDED;
		p->evidence |= CC_EV_BIT(SEEDED);
	}
	if (x->kind.guessed)
		p->evidence |= CC_EV_BIT(CLASS_GUESSED);
	if (ep_is_go(ep)) {
		go_walk_describe(w, t, ep, p);
		return;
	}
	p->ended = (uint8_t)how_ended(x, ep, s);
	p->resource = path_resource(w->e, t, ep);
	if (s && s->told) {
		p->srtt_us = s->srtt_us;
		p->retrans = s->retrans;
		p->ustack = s->ustack;
		p->kstack = s->kstack;
		p->waker_ustack = p->flags & CC_PC_OPEN ? 0 : s->waker_ustack;
		p->waker_kstack = p->flags & CC_PC_OPEN ? 0 : s->waker_kstack;
	}
	if (!p->ustack && !p->kstack)
		p->evidence |= CC_EV_BIT(STACKLESS);
	if (p->flags & CC_PC_OPEN) {
		p->evidence |= CC_EV_BIT(OPEN);
		return;
	}
	if (!ep->wake) {
		p->evidence |= CC_EV_BIT(WAKER_NONE);
		return;
	}
	p->waker_kind = (uint8_t)walk_waker_kind(ep, s);
	if (ep_task_wake(ep)) {
		const struct task *waker = go_walk_doer(w->e, ep->waker_tid, ep->wake);

		p->waker_tid = waker ? waker->tid : ep->waker_tid;
		p->waker_tgid = ep->waker_tgid;
		if (w->e->stats.option[CC_OPT_IMPORTED] &
		    (CC_IMPORTED_NO_CONTEXT | CC_IMPORTED_WAKEUPS))
			p->evidence |= CC_EV_BIT(WAKER_IMPORT);
	} else if (p->cls != WAIT_SLEEP || p->ended != CC_ENDED_TIMEOUT) {
		p->evidence |=
			CC_EV_BIT(WAKER_IRQ); /* a sleep that timed out leaves nothing open */
	}
}

static void name_owner(const struct task *t, const struct side *s, struct cc_piece *p)
{
	p->holder_tid = s->owner;
	p->holder_tgid = s->owner_tgid ? s->owner_tgid : t->tgid;
	p->evidence |= CC_EV_BIT(HOLDER_OWNER);
}

/* earlier waits of the task that are looked at for one on the same thing */
#define LAST_LOOKED 256

/* Who last ended a wait on what @x still waits for: of anybody's when it is a lock, else of its own
 * on the same descriptor. 0: nobody was seen to. */
static uint32_t last_waker(struct walk *w, const struct wait *x)
{
	const struct task *t = &w->e->tasks.v.p[x->ti];
	const struct episode *ep = x->tp->ep;
	uint32_t res = wakes_lock_of(w->e, t, ep), cnt = 0;
	const struct lock_wake *v = res ? resource_wakes(&w->e->res, res, 0, ep->out, &cnt) : NULL;

	if (cnt)
		return v[cnt - 1].waker_tid;
	if (ep_is_go(ep) || !ep->key)
		return 0;
	for (uint32_t i = task_ep_from(t, ep->out), left = LAST_LOOKED; i-- > 0 && left > 0;
	     left--) {
		const struct episode *o = &t->eps.p[i];

		if (o->syscall == ep->syscall && o->key == ep->key && ep_blocked(o) &&
		    ep_task_wake(o))
			return o->waker_tid;
	}
	return 0;
}

/* Still waiting: who had the lock when it began, and who ended such a wait last, is all there is to
 * say. */
static void emit_open(struct walk *w, struct wait *x)
{
	const struct side *s = ep_side(&w->e->tasks, x->tp->ep);

	if (x->kind.is_lock && s && s->flags & CC_EX_OWNER && s->owner)
		name_owner(&w->e->tasks.v.p[x->ti], s, &x->piece);
	x->piece.last_tid = last_waker(w, x);
	walk_emit(w, &x->piece);
}

static void emit_cycle(struct walk *w, struct cc_piece *p)
{
	p->cls = WAIT_CYCLE;
	p->evidence |= CC_EV_BIT(CYCLE);
	w->e->stats.cycles++;
	walk_emit(w, p);
}

/* @p, explained by what task @ti did in [lo, hi) of it. A message on its way fills the rest. */
static void emit_explained(struct walk *w, struct cc_piece *p, struct task *other, cc_ns hi,
			   enum nest_kind kind, cc_ns handoff)
{
	uint32_t ti = (uint32_t)(other - w->e->tasks.v.p), before = w->out.cnt;
	uint64_t evidence = w->evidence;
	bool cycle;

	if (!walk_may_nest(w, ti, p->depth, &cycle)) {
		if (cycle)
			emit_cycle(w, p);
		else
			walk_emit(w, p);
		return;
	}
	w->evidence |= p->evidence & ~(CC_EV_BIT(CLASS_GUESSED) | CC_EV_BIT(STACKLESS));
	if (hi < p->end) {
		struct cc_piece transit = walk_piece(w, other, CC_MAX(hi, p->start), p->end,
						     (uint16_t)(p->depth + 1), WAIT_TRANSIT);

		walk_emit(w, &transit);
	}
	if (hi > p->start)
		walk_nest(w, ti, p->start, CC_MIN(hi, p->end), p->depth, kind, handoff);
	w->evidence = evidence;
	if (w->out.cnt > before)
		p->flags |= CC_PC_NESTED;
	walk_emit(w, p);
}

/* ---- locks (rule 4) ----------------------------------------------------------------------- */

struct lock_part { /* [from, to): @holder's; 0: not known */
	cc_ns from, to;
	uint32_t holder;
	bool first;   /* the wait begins with it */
	bool handoff; /* the holder was woken at its start, to take the lock */
	bool came_by; /* ... or is not known to have waited for it: it took it some time in it */
};

/* From when on @holder had the lock for sure, in [from, to): where it waited meanwhile for a word
 * of its own that no owner is known of, that may have been its turn for this very lock; where it is
 * x->apart, any wait for a word of several processes may. */
static cc_ns had_since(const struct walk *w, const struct wait *x, const struct task *holder,
		       const struct lock_part *part)
{
	for (uint32_t i = task_ep_from(holder, part->to); i-- > 0;) {
		const struct episode *ep = &holder->eps.p[i];
		const struct side *s = ep_side(&w->e->tasks, ep);

		if (ep->in <= part->from)
			break;
		if (s && s->told && ep_blocked(ep) && ep->key != x->tp->ep->key &&
		    classify_is_futex(&w->e->cls, ep) && classify_futex(s) == WAIT_LOCK &&
		    (x->apart ? classify_futex_is_across(s)
			      : !(s->flags & CC_EX_OWNER && s->owner)))
			return CC_MIN(ep_blocked_end(ep), part->to);
	}
	return part->from;
}

static void emit_part(struct walk *w, struct wait *x, const struct lock_part *part)
{
	const struct task *t = &w->e->tasks.v.p[x->ti];
	const struct side *s = ep_side(&w->e->tasks, x->tp->ep);
	uint32_t owner = s && s->flags & CC_EX_OWNER ? s->owner : 0;
	struct cc_piece p = x->piece;
	struct task *holder;
	cc_ns since;

	p.start = CC_MAX(part->from, x->a);
	p.end = CC_MIN(part->to, x->b);
	if (p.start >= p.end)
		return;
	if (!part->holder) {
		/* given up: nobody let the lock go meanwhile, so who had it kept it */
		if (part->first && owner)
			name_owner(t, s, &p);
		walk_emit(w, &p);
		return;
	}
	if (part->first && owner) {
		if (owner != part->holder) {
			p.evidence |= CC_EV_BIT(HOLDER_CONFLICT);
			walk_emit(w, &p);
			return;
		}
		p.evidence |= CC_EV_BIT(HOLDER_OWNER);
	} else {
		p.evidence |= CC_EV_BIT(HOLDER_CUT);
	}
	if (x->kind.shared || part->came_by || x->several)
		p.evidence |= CC_EV_BIT(LET_GO_LAST);
	else if (!x->kind.is_lock && !ep_is_go(x->tp->ep))
		p.evidence |= CC_EV_BIT(IN_TURN);
	if (x->apart)
		p.evidence |= CC_EV_BIT(APART);
	if (tasks_gap_within(&w->e->tasks, t->tgid, part->from, part->to))
		p.evidence |= CC_EV_BIT(WAKE_MISSED); /* and with it another holder */
	holder = go_walk_doer(w->e, part->holder, part->to);
	p.holder_tid = holder ? holder->tid : part->holder;
	p.holder_tgid = holder ? holder->tgid : 0;
	if (!is_traced(holder)) {
		p.flags |= CC_PC_NOT_TRACED;
		p.evidence |= CC_EV_BIT(WAKER_UNTRACED);
		walk_emit(w, &p);
		return;
	}
	/* a word that tells its owner is one lock's, and a wait without EXTRA was short */
	since = x->kind.is_lock && s && s->told && (x->apart || !owner)
			? had_since(w, x, holder, part)
			: p.start;
	if (since > p.start) {
		struct cc_piece before = p;

		before.end = CC_MIN(since, p.end);
		before.holder_tid = before.holder_tgid = 0;
		before.evidence &= ~CC_EV_BIT(HOLDER_CUT);
		p.start = before.end;
		if (p.start < p.end)
			emit_explained(w, &p, holder, p.end, NEST_LOCK, 0);
		p = before;
	}
	emit_explained(w, &p, holder, p.end, NEST_LOCK, part->handoff ? part->from : 0);
}

/* A wake given when the @i th of @cnt was woke @holder. */
static bool woken_then(const struct lock_wake *v, uint32_t cnt, uint32_t i, uint32_t holder)
{
	cc_ns then = v[i].t;

	while (i > 0 && v[i - 1].t == then)
		i--;
	for (; i < cnt && v[i].t == then; i++)
		if (v[i].wakee_tid == holder)
			return true;
	return false;
}

/* waits of who ended one that are looked at for one of its own on the same thing */
#define TAKERS_LOOKED 64

/* @t's wait for what @x waits for, of those that began before @before the last. NULL: none. */
static const struct episode *waited_too(const struct walk *w, const struct wait *x,
					const struct task *t, cc_ns before)
{
	const struct task *own = &w->e->tasks.v.p[x->ti];
	const struct episode *ep = x->tp->ep;
	uint32_t res = wakes_lock_of(w->e, own, ep);

	for (uint32_t i = task_ep_from(t, before), n = 0; i-- > 0 && n < TAKERS_LOOKED; n++) {
		const struct episode *o = &t->eps.p[i];

		if (o->syscall == ep->syscall && ep_blocked(o) &&
		    (t->tgid == own->tgid ? wait_same_object(o, ep)
					  : res && wakes_lock_of(w->e, t, o) == res))
			return o;
	}
	return NULL;
}

/* Several wait there for the last of them to come: nobody has it. */
static bool is_barrier(const struct wait *x) { return x->kind.site == FUTEX_SITE_BARRIER; }

/* A condition variable or a semaphore by which a thing goes from one to the next: who ended the
 * wait waited for it too. Who only gives work to others does not. */
static bool is_taken_in_turn(const struct walk *w, const struct wait *x, const struct episode *last)
{
	const struct task *waker;

	if ((x->kind.cls != WAIT_COND && x->kind.cls != WAIT_SEMA) || ep_is_go(x->tp->ep) ||
	    !classify_is_futex(&w->e->cls, x->tp->ep) || !ep_task_wake(last) || is_barrier(x))
		return false;
	waker = tasks_find(&w->e->tasks, last->waker_tid, last->wake);
	return is_traced(waker) && waited_too(w, x, waker, last->wake);
}

enum turn {
	TURN_ENDS,    /* who has it next waited for it then: the part of who gave the wake ends */
	TURN_IS_LATE, /* who has it next had it already, or was at work: no concern of its */
	TURN_UNKNOWN, /* it came by at the right moment, or was at work all the time */
};

/* Of such a one: what the wake @v, before it was @holder's, says of @x. @b: the wakes before. */
static enum turn turn_at(const struct walk *w, const struct wait *x, const struct lock_wake *v,
			 struct wakes_back b, uint32_t holder)
{
	const struct task *t = tasks_find(&w->e->tasks, holder, v->t);
	const struct episode *ep = t ? waited_too(w, x, t, v->t) : NULL;
	const struct lock_wake *before;
	uint32_t ignored;

	if (!ep)
		return TURN_UNKNOWN;
	if (ep_blocked_end(ep) >= v->t)
		return TURN_ENDS;
	if (ep_blocked_end(ep) <= x->tp->ep->out)
		return TURN_UNKNOWN;
	while ((before = wakes_back_next(&b, &ignored)) && before->t > ep_blocked_end(ep))
		if (before->waker_tid == holder)
			return TURN_UNKNOWN; /* it let go, and has it again */
	return TURN_IS_LATE;
}

static bool has_waited(const struct walk *w, const struct wait *x, uint32_t tid, cc_ns before)
{
	const struct task *t = tid ? tasks_find(&w->e->tasks, tid, before) : NULL;

	return t && waited_too(w, x, t, before);
}

/* @last: the wait that it goes on to be, and ends with. */
static void walk_lock(struct walk *w, struct wait *x, const struct episode *last)
{
	const struct task *t = &w->e->tasks.v.p[x->ti];
	const struct episode *ep = x->tp->ep;
	struct lock_part part = { .to = ep_blocked_end(last) };
	const struct lock_wake *v;
	struct wakes_back b;
	enum turn turn;
	uint32_t of;

	x->apart = wakes_are_apart(w->e, wakes_lock_of(w->e, t, ep));
	x->several = !x->kind.is_lock && wait_is_for_several(w->e, t, ep, part.to);
	wakes_back_of(w->e, t, ep, ep->out, part.to, &b);
	if (ep_task_wake(last) && wakes_is_release(w->e, last))
		part.holder = last->waker_tid;
	/* backward: each wake before ends the part of who gave it */
	while (!w->err && (v = wakes_back_next(&b, &of)) != NULL) {
		if (v->t >= part.to)
			continue;
		if (!x->kind.is_lock && v->waker_tid == part.holder)
			continue; /* it woke several */
		turn = x->kind.is_lock ? TURN_ENDS : turn_at(w, x, v, b, part.holder);
		if (turn == TURN_IS_LATE)
			continue;
		part.from = v->t;
		part.handoff = woken_then(b.v[of], b.cnt[of], b.left[of], part.holder);
		part.came_by = turn == TURN_UNKNOWN;
		emit_part(w, x, &part);
		part = (struct lock_part){ .to = v->t, .holder = v->waker_tid };
		if (turn == TURN_UNKNOWN) {
			part.holder = 0;
			break;
		}
	}
	part.from = ep->out;
	part.first = true;
	part.came_by = !x->kind.is_lock && !has_waited(w, x, part.holder, part.to);
	emit_part(w, x, &part);
}

/* Of a channel of things, such as connections: who put one back had it since it took it, which is
 * seen. */
static void walk_turns(struct walk *w, struct wait *x)
{
	const struct task *t = &w->e->tasks.v.p[x->ti];
	const struct episode *ep = x->tp->ep;
	struct lock_part part = { .to = ep->wake, .holder = ep->waker_tid };

	do {
		struct go_turn turn = go_walk_turn(w->e, t, ep, part.holder, part.to);

		part.from = CC_MAX(turn.since, ep->out);
		part.came_by = turn.several;
		emit_part(w, x, &part);
		part = (struct lock_part){ .to = part.from, .holder = turn.before };
		t = &w->e->tasks.v.p[x->ti]; /* the walk may make tasks */
	} while (part.to > ep->out && part.holder && !w->err);
	part.from = ep->out;
	emit_part(w, x, &part);
}

/* ---- everything else (rules 5 to 7) ------------------------------------------------------- */

/* A semaphore of Go's may be a lock. */
static enum nest_kind nest_kind_of(const struct wait *x)
{
	return x->kind.cls == WAIT_LOCK || (x->kind.is_lock && ep_is_go(x->tp->ep)) ? NEST_LOCK
										    : NEST_HELP;
}

/* Every wake on the lock is known: each ends one holder's part. Not of an rwlock, which several
 * have at a time. */
static bool is_lock_cut(const struct wait *x)
{
	if (!x->tp->ep->wake || x->kind.site == FUTEX_SITE_RWLOCK)
		return false;
	return x->kind.cls == WAIT_LOCK || x->kind.cls == WAIT_KLOCK ||
	       (x->kind.cls == WAIT_MUTEX && x->piece.resource);
}

/* The wait that @x goes on to be: it ends as that one does. */
static const struct episode *whole_wait(struct walk *w, struct wait *x)
{
	const struct task *t = &w->e->tasks.v.p[x->ti];
	const struct episode *ep = x->tp->ep, *slice, *last;

	if (ep_is_go(ep) || (!x->kind.is_lock && x->kind.cls != WAIT_COND) || is_barrier(x))
		return ep; /* a wake at a barrier is for all that it wakes */
	last = slice = wait_last_slice(w->e, t, ep);
	if (x->kind.cls == WAIT_COND)
		last = wait_last_of_herd(w->e, t, slice);
	if (x->kind.cls == WAIT_COND && ep_task_wake(last))
		x->piece.herd = wait_herd(w->e, t, last);
	if (x->piece.herd)
		x->piece.evidence |= CC_EV_BIT(HERD);
	else if (x->kind.cls == WAIT_COND && wait_is_tried_again(w->e, t, last))
		x->piece.evidence |= CC_EV_BIT(AGAIN);
	if (last == ep || !ep_task_wake(last) || is_lock_cut(x))
		return last;
	x->piece.ended = CC_ENDED_WAKE;
	x->piece.waker_kind = CC_WAKER_TASK;
	x->piece.waker_tid = last->waker_tid;
	x->piece.waker_tgid = last->waker_tgid;
	x->piece.evidence &= ~CC_EV_BIT(WAKER_IRQ);
	x->piece.evidence |= last == slice ? CC_EV_BIT(SLICES) : CC_EV_BIT(HERD);
	return last;
}

/* A wait for what lies in a file (a pipe, an eventfd, a socket of datagrams) and was put there by
 * one that takes it from there itself, as make's job server does: a lock, of which it is not seen
 * who takes it without a wait. */
static bool is_token(const struct walk *w, const struct wait *x, const struct task *waker, cc_ns at)
{
	const struct episode *ep = x->tp->ep;
	const struct task *own = &w->e->tasks.v.p[x->ti];
	const struct side *s = ep_is_go(ep) ? NULL : ep_side(&w->e->tasks, ep);

	if (!s || own == waker ||
	    (x->kind.cls != WAIT_PIPE && x->kind.cls != WAIT_UNIX && x->kind.cls != WAIT_POLL))
		return false;
	for (uint32_t i = task_ep_from(waker, at), n = 0; i-- > 0 && n < TAKERS_LOOKED; n++) {
		const struct episode *o = &waker->eps.p[i];
		const struct side *of = ep_side(&w->e->tasks, o);

		if (ep_blocked(o) && o->syscall == ep->syscall && of && of->told && of->fd_id &&
		    of->fd_kind == s->fd_kind && of->fd_id == s->fd_id)
			return true;
	}
	return false;
}

static void walk_woken(struct walk *w, struct wait *x, const struct episode *ep)
{
	struct cc_reqid serving = w->serving, answered = { 0 };
	uint64_t evidence = w->evidence;
	struct cc_piece *p = &x->piece;
	struct task *waker;
	struct message m;
	cc_ns sent = ep == x->tp->ep ? ep->wake : x->b; /* later than this slice: all of it */

	if (ep_task_wake(ep)) {
		waker = go_walk_doer(w->e, ep->waker_tid, ep->wake);
		if (!is_traced(waker)) {
			p->flags |= CC_PC_NOT_TRACED;
			p->evidence |= CC_EV_BIT(WAKER_UNTRACED);
			walk_emit(w, p);
			return;
		}
		p->evidence |= CC_EV_BIT(WAKER_TASK);
		if (!p->depth)
			p->sibling_end =
				walk_sibling_end(w, &w->e->tasks.v.p[x->ti], waker, x->a, x->b);
		if (wait_class_letter(p->cls) == 'N')
			answered = walk_answered(w, waker, ep->wake);
	} else {
		const struct task *t = &w->e->tasks.v.p[x->ti];

		if (!ep->wake || !message_of_wake(w->e, t, ep, ep_side(&w->e->tasks, ep), &m)) {
			walk_emit(w, p);
			return;
		}
		waker = go_walk_doer(w->e, m.sender_tid, m.sent);
		if (!is_traced(waker)) {
			walk_emit(w, p);
			return;
		}
		p->evidence = (p->evidence & ~CC_EV_BIT(WAKER_IRQ)) | CC_EV_BIT(LOOPBACK);
		p->waker_tid = waker->tid;
		p->waker_tgid = waker->tgid;
		p->waker_kind = CC_WAKER_TASK;
		sent = m.sent;
		if (walk_call(w, p, m.sock))
			return;
	}
	if (answered.kind != CC_REQID_NONE)
		w->serving = answered;
	w->until = ep == x->tp->ep ? 0 : ep->wake;
	/* who ended it is known, but not since when that one had it, nor whether alone */
	if (x->kind.cls == WAIT_LOCK || x->kind.site == FUTEX_SITE_RWLOCK ||
	    is_token(w, x, waker, sent))
		w->evidence |= CC_EV_BIT(LET_GO_LAST);
	emit_explained(w, p, waker, CC_MIN(sent, x->b), nest_kind_of(x), 0);
	w->evidence = evidence;
	w->until = 0;
	w->serving = serving;
}

void walk_wait(struct walk *w, uint32_t ti, cc_ns a, cc_ns b, const struct tl_piece *tp,
	       uint16_t depth)
{
	struct wait x = { .ti = ti, .a = a, .b = b, .tp = tp, .depth = depth };
	const struct episode *last;

	describe(w, &x);
	if (x.piece.flags & CC_PC_OPEN) {
		emit_open(w, &x);
		return;
	}
	last = whole_wait(w, &x);
	if (ep_is_go(tp->ep) && ep_task_wake(tp->ep) &&
	    go_walk_is_resource(w->e, &w->e->tasks.v.p[ti], tp->ep))
		walk_turns(w, &x);
	else if (is_lock_cut(&x) || is_taken_in_turn(w, &x, last))
		walk_lock(w, &x, last);
	else
		walk_woken(w, &x, last);
}
