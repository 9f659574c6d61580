/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * throttle: for how long a task that waits for a CPU was kept from it by its group's quota. Each
 * group has a clock of that on each CPU; a task has that of the CPU it is queued on.
 */
#ifndef CC_BPF_THROTTLE_H
#define CC_BPF_THROTTLE_H

#include "task.h"

/* Time for which @p's group of its CPU was throttled so far, and which group; same group only. */
static __always_inline void throttle_clock(struct task_struct *p, struct cpu_state *c, __u64 now,
					   __u64 *ret_rq, __u64 *ret_ns)
{
	struct cfs_rq *rq = p->se.cfs_rq;

	*ret_rq = 0;
	*ret_ns = 0;
	if (!bpf_core_field_exists(rq->throttled_clock_self_time))
		return;
	if (!rq)
		return;
	*ret_rq = (__u64)rq;
	*ret_ns = rq->throttled_clock_self_time;
	if (rq->throttled_clock_self) {
		__u64 since = rq->throttled_clock_self + c->clock_off;

		if (now > since)
			*ret_ns += now - since;
	}
}

/* @p leaves the group of its CPU, and with it the clock of that one's throttling. */
static __always_inline void throttle_moved(struct task_struct *p, struct task_state *st, __u64 now)
{
	struct cpu_state *c = this_cpu();
	__u64 rq, ns;

	if (!c || st->thr_rq == THR_MOVED)
		return;
	throttle_clock(p, c, now, &rq, &ns);
	if (rq && rq == st->thr_rq && ns >= st->thr_ns) {
		st->thr_ns = ns - st->thr_ns;
		st->thr_rq = THR_MOVED;
	} else {
		st->thr_rq = 0; /* not known, which is not the same as for no time */
	}
}

#endif
