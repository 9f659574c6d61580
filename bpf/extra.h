/* SPDX-License-Identifier: GPL-2.0-only */
/* extra: tells the EXTRA of a slow wait, and who had the CPU while its task was queued. */
#ifndef CC_BPF_EXTRA_H
#define CC_BPF_EXTRA_H

#include "look.h"
#include "snap.h"

int occupant_most(__u32 tid, __u64 from, __u64 to); /* shared.bpf.c */

static __noinline int extra_occupant(struct cc_rec_extra *x, struct cpu_state *c, __u64 from,
				     __u64 to)
{
	int best;

	if (!x || !c)
		return 0;
	best = occupant_most(x->tid, from, to);
	if (best < 0 || best >= OCCUPANTS)
		return 0;
	struct occupant *o = &c->hist[best];
	struct task_struct *t = (struct task_struct *)o->task;

	x->occupant_tid = o->tid;
	x->occupant_tgid = o->tgid;
	x->occupant_ns = c->occupied_ns;
	if (BPF_CORE_READ(t, pid) == (int)o->tid) { /* else it is gone and its memory reused */
		BPF_CORE_READ_INTO(&x->occupant_comm, t, comm);
		x->occupant_cgroup = BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id);
	}
	return 0;
}

static __always_inline void extra_owner(struct cc_rec_extra *x, struct task_struct *p,
					const struct task_state *st, struct pt_regs *regs,
					bool current)
{
	struct owner_info o;

	if (st->klock)
		x->uaddr = st->klock;
	else if (st->nr == SYS_FUTEX)
		x->uaddr = REGS_ARG0(regs);
	else
		return;
	owner_look(&o, p, st, !(REGS_ARG1(regs) & FUTEX_PRIVATE), current);
	if (!o.tid)
		return;
	x->owner = o.tid;
	x->owner_tgid = o.tgid;
	x->h.flags |= CC_EX_OWNER;
	__builtin_memcpy(x->owner_comm, o.comm, CC_COMM_LEN);
}

static __always_inline void extra_shm(struct cc_rec_extra *x, const struct cpu_state *c)
{
	if (!c->shm.inode)
		return;
	x->fd_kind = CC_FD_SHM;
	x->fd_id = c->shm.inode;
	x->fd_dev = c->shm.dev;
	x->sock_ports = c->shm.page;
}

static __always_inline void extra_fd(struct cc_rec_extra *x, struct task_struct *p, __u64 since)
{
	struct fd_info f;

	fd_look(&f, p, (__u32)x->args[0], since);
	if (!f.kind)
		return;
	x->fd = (__s32)x->args[0];
	x->fd_kind = f.kind;
	x->fd_id = f.id;
	x->fd_dev = f.dev;
	x->sock_ports = f.ports;
	x->srtt_us = f.srtt_us;
	x->retrans = f.retrans;
}

static __always_inline void extra_runq(struct cc_rec_extra *x, struct task_struct *p,
				       const struct task_state *st, struct cpu_state *c, __u64 wake)
{
	__u64 from = st->now & CC_EP_PREEMPT ? st->out : wake, queued, rq, ns;

	if (!from || from >= st->in)
		return;
	queued = st->in - from;
	if (st->migrated > from) {
		x->h.flags |= CC_EX_MIGRATED;
		from = st->migrated; /* before, it was queued elsewhere */
	}
	if (st->in - from >= cfg.stack_min_ns / 2)
		extra_occupant(x, c, from, st->in);
	throttle_clock(p, c, st->in, &rq, &ns);
	if (st->thr_rq == THR_MOVED)
		ns = st->thr_ns;
	else if (rq && rq == st->thr_rq && ns >= st->thr_ns)
		ns -= st->thr_ns;
	else
		return;
	x->throttled_ns = ns < queued ? ns : queued;
	x->h.flags |= CC_EX_THROTTLED;
}

/* A signal waits for @p that it takes. From the sets: the flag in thread_info has moved between
 * kernel versions, and BTF does not tell its bit. */
static __always_inline bool signal_pending(struct task_struct *p)
{
	return (p->pending.signal.sig[0] | p->signal->shared_pending.signal.sig[0]) &
	       ~p->blocked.sig[0];
}

/* Tells the EXTRA of the wait [st->out, st->in) that just ended. @current: @p is the current task.
 */
static __noinline int extra_send(struct task_struct *p, struct task_state *st, struct cpu_state *c,
				 bool current)
{
	struct cc_rec_extra *x;
	struct pt_regs *regs;
	bool early;
	__u64 wake;

	if (!st || !c)
		return 0;
	x = events_reserve(sizeof(*x));
	if (!x) {
		cnt_add(CC_CNT_DROP_EXTRA, 1);
		return 0;
	}
	__builtin_memset(x, 0, sizeof(*x));
	wake = task_wake(st, st->prev_in, &early);
	rec_init(&x->h, sizeof(*x), CC_REC_EXTRA, CC_EX_EXEC, (__u16)st->nr, st->in);
	if (current)
		x->h.flags |= CC_EX_LATE;
	if (wake && st->wake_timer)
		x->h.flags |= CC_EX_TIMEOUT;
	if (signal_pending(p))
		x->h.flags |= CC_EX_SIGNAL;
	x->tid = p->pid;
	x->seq = st->seq - 1;
	x->fd = -1;
	x->ran_ns = st->ran_ns;
	regs = (struct pt_regs *)bpf_task_pt_regs(p);
	if (st->nr >= 0) {
		x->args[0] = REGS_ARG0(regs);
		x->args[1] = REGS_ARG1(regs);
		x->args[2] = REGS_ARG2(regs);
		x->args[3] = REGS_ARG3(regs);
		x->args[4] = REGS_ARG4(regs);
		x->args[5] = REGS_ARG5(regs);
		if (nr_has_fd(st->nr) && !st->go_none)
			extra_fd(x, p, st->out);
	}
	if (!(st->now & CC_EP_PREEMPT)) {
		if (!st->go_none)
			extra_owner(x, p, st, regs, current);
		if (current)
			extra_shm(x, c);
		if (wake && st->waker_tid)
			__builtin_memcpy(x->waker_comm, st->waker_comm, CC_COMM_LEN);
	}
	extra_runq(x, p, st, c, wake);
	events_commit(x, st->in);
	return 0;
}

#endif
