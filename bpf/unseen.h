/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * unseen: switches that the kernel made and did not show. Some kernels hide those away from certain
 * threads (a guest's own init process), so that whoever runs next comes out of nowhere; and
 * programs that run already are skipped. The scheduler's own account of the task says what
 * happened: how often it was put on a CPU, when last, since when it is queued, for how long it ran.
 * Pure: run by unit tests too.
 *
 * What follows from it is told as if it had been seen; nothing is made of it when more than one
 * switch is missing, or when the account contradicts what was seen.
 */
#ifndef CC_BPF_UNSEEN_H
#define CC_BPF_UNSEEN_H

/* Interrupts and other guests' time are in no task's account: so much they may take of a run for
 * what is queued just after it to have been preempted. */
#define UNSEEN_SLACK_NS 50000ull

#include "event.h"

struct unseen {         /* of one task; times by CLOCK_MONOTONIC */
	__u64 out, in;  /* the last switches that were seen */
	__u64 now;      /* the switch at hand */
	__u64 wake;     /* the last wake; 0: none */
	__u64 noted;    /* by the scheduler: when it was put on its CPU last, or queued for it */
	__u64 ran;      /* its time on the CPU since in */
	__u32 runs;     /* times it had been put on a CPU by out */
	__u32 runs_now; /* and by now */
};

/* It was off, by what was seen, and leaves the CPU now: when it had come there. 0: not known. */
static inline __u64 unseen_in(const struct unseen *u)
{
	__u64 from = u->wake > u->out ? u->wake : u->out;

	if (u->runs_now != u->runs + 1 || u->noted >= u->now)
		return 0;
	return u->noted < from ? from : u->noted; /* clocks of two CPUs may differ by some ns */
}

/* It was on a CPU since in, by what was seen, and comes to one now: when it had left. 0: not known.
 * *ret_preempt: it could have gone on. */
static inline __u64 unseen_out(const struct unseen *u, _Bool *ret_preempt)
{
	__u64 left = u->in + u->ran; /* not later than it did */

	*ret_preempt = 0;
	if (u->runs_now != u->runs + 1 || left >= u->now)
		return 0;
	if (u->wake > left) /* only who goes to sleep is woken */
		return left;
	if (u->noted < left || u->noted >= u->now || u->noted - left > UNSEEN_SLACK_NS)
		return 0;
	*ret_preempt = 1; /* queued at once */
	return u->noted;
}

#endif
