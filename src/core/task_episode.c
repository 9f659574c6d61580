/* SPDX-License-Identifier: Apache-2.0 */
/* What each task did: episodes, what is told beside them, and states seen by iterators. */
#include <errno.h>
#include <string.h>

#include "decode.h" /* CC_TIME_MAX */
#include "task.h"

static uint32_t side_new(struct tasks *ts)
{
	uint32_t i;

	if (ts->free_sides.cnt) {
		i = ts->free_sides.p[--ts->free_sides.cnt];
	} else {
		i = CC_MAX(ts->sides.cnt, 1);
		if (vec_reserve(ts->mem, &ts->sides, i + 1))
			return 0;
		ts->sides.cnt = i + 1;
	}
	ts->sides.p[i] = (struct side){ .fd = -1 };
	return i;
}

void task_free_side(struct tasks *ts, uint32_t *side)
{
	if (*side && !vec_reserve(ts->mem, &ts->free_sides, ts->free_sides.cnt + 1))
		ts->free_sides.p[ts->free_sides.cnt++] = *side;
	*side = 0;
}

static enum ep_kind kind_of(uint32_t state, unsigned int flags)
{
	enum { TASK_UNINTERRUPTIBLE = 2, TASK_STOPPED_OR_TRACED = 4 | 8 };

	if (!state || flags & (CC_EP_PREEMPT | CC_EP_BORN))
		return EP_RUNNABLE;
	if (state & TASK_STOPPED_OR_TRACED)
		return EP_STOPPED;
	return state & TASK_UNINTERRUPTIBLE ? EP_DISK : EP_SLEEPING;
}

/* out <= wake <= in, whatever was told. */
static void clamp(struct tasks *ts, struct episode *ep)
{
	cc_ns out = ep->out, wake = ep->wake;

	ep->out = CC_MIN(out, ep->in);
	if (ep_kind(ep) == EP_RUNNABLE || ep->flags & CC_EP_EARLY_WAKE)
		ep->wake = ep->out;
	else if (wake)
		ep->wake = wake < ep->out ? ep->out : CC_MIN(wake, ep->in);
	if (out != ep->out || (wake && wake != ep->wake && ep_kind(ep) != EP_RUNNABLE) ||
	    ep->flags & CC_EP_CLAMPED)
		ts->clamped++;
}

/* [..., @end): what comes later goes on on another CPU. */
static void truncate_at(struct tasks *ts, struct episode *ep, cc_ns end)
{
	ep->in = end;
	ep->wake = ep->wake <= end ? ep->wake : 0;
	ts->clamped++;
}

static int mark_dirty(struct tasks *ts, struct task *t)
{
	if (t->dirty)
		return 0;
	if (vec_reserve(ts->mem, &ts->dirty, ts->dirty.cnt + 1))
		return -ENOMEM;
	t->dirty = true;
	ts->dirty.p[ts->dirty.cnt++] = (uint32_t)(t - ts->v.p);
	return 0;
}

/* Returns where @ep went, or -EEXIST: it is there already. There is room. */
static int64_t place(struct tasks *ts, struct task *t, const struct episode *ep)
{
	struct episode *e = t->eps.p;
	uint32_t i = t->eps.cnt;

	while (i > 0 && e[i - 1].out > ep->out)
		i--;
	for (uint32_t j = i; j > 0 && e[j - 1].out == ep->out; j--)
		if (e[j - 1].seq == ep->seq)
			return -EEXIST;
	memmove(&e[i + 1], &e[i], (t->eps.cnt - i) * sizeof(*e));
	e[i] = *ep;
	t->eps.cnt++;
	if (i > 0 && e[i - 1].in > ep->out)
		truncate_at(ts, &e[i - 1], ep->out);
	if (i + 1 < t->eps.cnt && ep->in > e[i + 1].out)
		truncate_at(ts, &e[i], e[i + 1].out);
	t->indexed = CC_MIN(t->indexed, i);
	return i;
}

/* The side of @ep: an EXTRA that came before it, a loss that its record tells. */
static int attach_side(struct tasks *ts, struct task *t, struct episode *ep, uint64_t lost)
{
	if (t->extra_side && t->extra_seq == ep->seq) {
		struct task *waker;

		ep->side = t->extra_side;
		t->extra_side = 0;
		if (ep_task_wake(ep)) {
			uint32_t idx = (uint32_t)(t - ts->v.p);
			char comm[CC_COMM_LEN];

			memcpy(comm, t->extra_comm, sizeof(comm));
			waker = tasks_get(ts, ep->waker_tid, CC_NEVER);
			if (!waker)
				return -ENOMEM;
			if (!waker->comm[0])
				task_set_comm(waker, comm);
			t = &ts->v.p[idx];
		}
	} else if (t->extra_side) {
		task_free_side(ts, &t->extra_side); /* its episode was lost */
	}
	if (!lost)
		return 0;
	if (!ep->side)
		ep->side = side_new(ts);
	if (!ep->side)
		return -ENOMEM;
	ts->sides.p[ep->side].lost = lost;
	return 0;
}

/* Time that was taken for RUNNING, or for a wait that goes on: it was lost, or it ended. */
static int note_late(struct tasks *ts, const struct task *t, cc_ns from, cc_ns to)
{
	if (vec_reserve(ts->mem, &ts->late, ts->late.cnt + 1))
		return -ENOMEM;
	ts->late.p[ts->late.cnt++] = (struct late_span){ from, to, t->tid };
	return 0;
}

/* Episodes of @t are missing in [from, to). */
static int note_gap(struct tasks *ts, const struct task *t, cc_ns from, cc_ns to)
{
	uint32_t i = ts->gaps.cnt;

	if (vec_reserve(ts->mem, &ts->gaps, i + 1))
		return -ENOMEM;
	for (; i > 0 && ts->gaps.p[i - 1].to > to; i--)
		ts->gaps.p[i] = ts->gaps.p[i - 1];
	ts->gaps.p[i] = (struct gap_span){ from, to, t->tid, t->tgid };
	ts->gaps.cnt++;
	return 0;
}

/* What was missing in a gap of @t has come late: only what lies after it may be missing still. */
static void fill_gap(struct tasks *ts, const struct task *t, const struct episode *ep)
{
	for (uint32_t i = vec_lower_bound(&ts->gaps, to, ep->in); i < ts->gaps.cnt; i++) {
		struct gap_span *g = &ts->gaps.p[i];

		if (g->tid != t->tid || g->from > ep->out)
			continue;
		g->from = ep->in;
		return;
	}
}

bool tasks_gap_within(const struct tasks *ts, uint32_t tgid, cc_ns lo, cc_ns hi)
{
	for (uint32_t i = vec_lower_bound(&ts->gaps, to, lo + 1); i < ts->gaps.cnt; i++) {
		const struct gap_span *g = &ts->gaps.p[i];

		if (g->from < hi && g->from < g->to && (!g->tgid || g->tgid == tgid))
			return true;
	}
	return false;
}

static bool is_dup(const struct task *t, const struct cc_rec_episode *r)
{
	const struct episode *last = t->eps.cnt ? &t->eps.p[t->eps.cnt - 1] : NULL;

	return last && last->seq == r->seq && last->out == r->out;
}

/* Facts about the task that the episode is a witness of. */
static void witness(struct tasks *ts, struct task *t, const struct episode *ep)
{
	t->timeline = true;
	t->alive = CC_MAX(t->alive, ep->in);
	if (ep->flags & CC_EP_BORN) {
		t->born = CC_MIN(t->born, ep->out);
		if (!t->cut)
			t->known_from = CC_MIN(t->known_from, ep->out);
	}
	if (t->open.now && (ep->in >= t->open.now || ep->out == t->open.out)) {
		if (ep_is_go(&t->open.ep))
			go_wait_free(ts, t->open.ep.side);
		else
			task_free_side(ts, &t->open.ep.side);
		t->open = (struct open_state){ 0 };
	}
}

/* Returns where @ep went; -EEXIST: it is there already; -ENOMEM. There is room for it. */
static int64_t append_or_place(struct tasks *ts, struct task *t, const struct episode *ep,
			       uint64_t lost)
{
	const struct episode *last = t->eps.cnt ? &t->eps.p[t->eps.cnt - 1] : NULL;
	int64_t at = t->eps.cnt;

	if (last && ep->out < last->in) {
		at = place(ts, t, ep);
		fill_gap(ts, t, ep);
		return at < 0 || !note_late(ts, t, ep->out, ep->in) ? at : -ENOMEM;
	}
	if ((lost || (last && ep->seq - last->seq > 1)) &&
	    (note_late(ts, t, last ? last->in : 0, ep->out) ||
	     note_gap(ts, t, last ? last->in : 0, ep->out)))
		return -ENOMEM;
	t->eps.p[t->eps.cnt++] = *ep;
	__builtin_prefetch(&t->eps.p[t->eps.cnt + 1], 1); /* where the next one goes */
	return at;
}

static void count_lost(struct tasks *ts, uint64_t lost)
{
	ts->lost_cnt += CC_LOST_CNT(lost);
	ts->lost_ns += CC_LOST_NS(lost);
}

int64_t tasks_insert(struct tasks *ts, uint32_t idx, struct episode *ep, uint64_t lost)
{
	struct task *t = &ts->v.p[idx];
	int64_t at;

	clamp(ts, ep);
	if (mark_dirty(ts, t) || vec_reserve(ts->mem, &t->eps, t->eps.cnt + 1))
		return -ENOMEM;
	at = append_or_place(ts, t, ep, lost);
	if (at < 0)
		return at;
	witness(ts, t, ep);
	count_lost(ts, lost);
	ts->episodes++;
	return at;
}

int tasks_episode(struct tasks *ts, const struct cc_rec_episode *r)
{
	struct episode ep = {
		.out = r->out,
		.wake = r->wake,
		.in = r->h.ts,
		.seq = r->seq,
		.waker_tid = r->waker_tid,
		.waker_tgid = r->waker_tgid,
		.key = r->key,
		.syscall = (int16_t)r->h.aux,
		.flags = r->h.flags,
		.kind = (uint8_t)kind_of(r->state, r->h.flags),
	};
	struct task *t;
	uint32_t idx;
	int64_t at;

	if (!r->tid || !r->h.ts || r->out > CC_TIME_MAX || r->wake > CC_TIME_MAX)
		return -EINVAL;
	t = tasks_get(ts, r->tid, CC_MIN(r->out, r->h.ts));
	if (!t)
		return -ENOMEM;
	if (is_dup(t, r))
		return 0;
	if (CC_MIN(r->out, r->h.ts) >= t->dead) {
		count_lost(ts, r->lost);
		return 0; /* after its exit it may still sleep, but for nobody */
	}
	if (r->h.flags & CC_EP_SEEDED && ep_blocked(&ep))
		t->slept_since = r->out;
	idx = (uint32_t)(t - ts->v.p);
	at = tasks_insert(ts, idx, &ep, r->lost);
	if (at < 0)
		return at == -EEXIST ? 0 : (int)at;
	if (!r->lost && !t->extra_side)
		return 0;
	ep = t->eps.p[at];
	if (attach_side(ts, t, &ep, r->lost))
		return -ENOMEM;
	ts->v.p[idx].eps.p[at].side = ep.side;
	return 0;
}

static struct episode *by_seq(struct task *t, uint32_t seq, cc_ns in)
{
	struct episode *e = t->eps.p;
	uint32_t i;

	if (t->eps.cnt && e[t->eps.cnt - 1].seq == seq)
		return &e[t->eps.cnt - 1];
	/* its end may have been cut, so that it lies a little before */
	i = vec_lower_bound(&t->eps, in, in);
	for (uint32_t j = i > 2 ? i - 2 : 0; j < t->eps.cnt && j <= i + 1; j++)
		if (e[j].seq == seq)
			return &e[j];
	return NULL;
}

static int name_task(struct tasks *ts, uint32_t tid, uint32_t tgid, const char comm[CC_COMM_LEN],
		     cc_ns at)
{
	struct task *t;

	if (!tid || !comm[0])
		return 0;
	t = tasks_get(ts, tid, CC_NEVER);
	if (!t)
		return -ENOMEM;
	if (!t->comm[0])
		task_set_comm(t, comm);
	if (!t->tgid)
		task_set_tgid(ts, t, tgid);
	if (!t->timeline)
		t->alive = CC_MAX(t->alive, at);
	return 0;
}

static void fill_side(struct side *s, const struct cc_rec_extra *r)
{
	*s = (struct side){
		.ustack = r->ustack,
		.kstack = r->kstack,
		.waker_ustack = r->waker_ustack,
		.waker_kstack = r->waker_kstack,
		.uaddr = r->uaddr,
		.fd_id = r->fd_id,
		.op = r->args[1],
		.val = r->args[2],
		.lost = s->lost,
		.throttled_ns = r->h.flags & CC_EX_THROTTLED ? r->throttled_ns : 0,
		.ran_ns = r->ran_ns,
		.occupant_ns = r->occupant_ns,
		.owner = r->owner,
		.owner_tgid = r->owner_tgid,
		.occupant_tid = r->occupant_tid,
		.occupant_tgid = r->occupant_tgid,
		.fd = r->fd,
		.fd_dev = r->fd_dev,
		.sock_ports = r->sock_ports,
		.srtt_us = r->srtt_us,
		.retrans = r->retrans,
		.fd_kind = (uint8_t)CC_MIN(r->fd_kind, CC_FD_SHM),
		.flags = r->h.flags,
		.told = true,
		.futex = r->args[0] != 0 && r->uaddr != 0,
	};
}

int tasks_extra(struct tasks *ts, const struct cc_rec_extra *r)
{
	struct task *t = tasks_get(ts, r->tid, r->h.ts);
	struct episode *ep;
	uint32_t side, waker = 0, waker_tgid = 0;

	if (!t)
		return -ENOMEM;
	ep = by_seq(t, r->seq, r->h.ts);
	if (ep && !ep->side)
		ep->side = side_new(ts);
	else if (!ep && !t->extra_side)
		t->extra_side = side_new(ts);
	side = ep ? ep->side : t->extra_side;
	if (!side)
		return -ENOMEM;
	if (!ts->sides.p[side].told && r->ustack)
		ts->stacks_user++;
	fill_side(&ts->sides.p[side], r);
	if (ep) {
		waker = ep_task_wake(ep) ? ep->waker_tid : 0;
		waker_tgid = ep->waker_tgid;
	} else {
		t->extra_seq = r->seq;
		memcpy(t->extra_comm, r->waker_comm, sizeof(t->extra_comm));
	}
	if (name_task(ts, waker, waker_tgid, r->waker_comm, r->h.ts) ||
	    name_task(ts, r->owner, r->owner_tgid, r->owner_comm, r->h.ts) ||
	    name_task(ts, r->occupant_tid, r->occupant_tgid, r->occupant_comm, r->h.ts))
		return -ENOMEM;
	return 0;
}

/* The task whose state this is: another one when its start time is not the one known. */
static struct task *task_of_open(struct tasks *ts, const struct cc_rec_open_task *r)
{
	struct task *t = tasks_get(ts, r->tid, CC_NEVER);

	if (!t || !t->start || r->start <= t->start)
		return t; /* a tid's next task starts later */
	return tasks_reborn(ts, t, CC_MIN(r->start, r->out ? r->out : r->h.ts));
}

static int fill_open(struct tasks *ts, struct open_state *o, const struct cc_rec_open_task *r)
{
	uint32_t side = o->ep.side ? o->ep.side : side_new(ts);

	if (!side)
		return -ENOMEM;
	*o = (struct open_state){
		.now = r->h.ts,
		.out = r->out,
		.wake = r->wake,
		.last_in = r->last_in,
		.lost = r->lost,
		.seq = r->seq,
		.ep = { .out = r->out,
			.wake = r->wake,
			.in = CC_NEVER,
			.seq = r->seq,
			.key = r->key,
			.side = side,
			.syscall = (int16_t)r->h.aux,
			.kind = (uint8_t)kind_of(r->state, 0) },
	};
	if (ep_kind(&o->ep) == EP_RUNNABLE)
		o->wake = o->ep.wake = o->out;
	ts->sides.p[side] = (struct side){
		.ustack = r->ustack,
		.kstack = r->kstack,
		.uaddr = r->uaddr,
		.fd_id = r->fd_id,
		.op = r->args[1],
		.val = r->args[2],
		.lost = r->lost,
		.owner = r->owner,
		.owner_tgid = r->owner_tgid,
		.fd = r->fd,
		.fd_kind = (uint8_t)CC_MIN(r->fd_kind, CC_FD_SHM),
		.sock_ports = r->sock_ports,
		.srtt_us = r->srtt_us,
		.retrans = r->retrans,
		.flags = r->owner ? CC_EX_OWNER : 0,
		.told = true,
		.futex = r->args[0] != 0 && r->uaddr != 0,
	};
	return 0;
}

int tasks_open(struct tasks *ts, const struct cc_rec_open_task *r)
{
	struct task *t;
	cc_ns from;

	if (!r->tid || r->out > r->h.ts || r->wake > r->h.ts || r->last_in > r->h.ts ||
	    (r->wake && r->wake < r->out))
		return -EINVAL;
	t = task_of_open(ts, r);
	if (!t)
		return -ENOMEM;
	if (!t->timeline && r->out && kind_of(r->state, 0) < EP_RUNNABLE)
		t->slept_since = r->out;
	t->timeline = true;
	t->flags |= r->h.flags & (CC_TF_TRACED | CC_TF_KTHREAD | CC_TF_FOLLOWED);
	t->start = t->start ? t->start : r->start;
	t->cgroup = r->cgroup ? r->cgroup : t->cgroup;
	task_set_tgid(ts, t, r->tgid);
	task_set_comm(t, r->comm);
	t->alive = CC_MAX(t->alive, r->h.ts);
	from = r->out ? r->out : r->last_in ? r->last_in : r->h.ts;
	if (!t->cut && (!t->eps.cnt || from <= t->eps.p[0].out))
		t->known_from = CC_MIN(t->known_from, from);
	if (r->lost && note_late(ts, t, t->eps.cnt ? t->eps.p[t->eps.cnt - 1].in : 0, from))
		return -ENOMEM;
	if (t->eps.cnt && r->h.ts <= t->eps.p[t->eps.cnt - 1].in)
		return 0; /* an episode that came before tells more */
	return fill_open(ts, &t->open, r);
}
