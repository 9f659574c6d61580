/* SPDX-License-Identifier: Apache-2.0 */
/* sched_state: what sched_build keeps, between its parts. */
#ifndef CC_TRACE_SCHED_STATE_H
#define CC_TRACE_SCHED_STATE_H

#include "sched_emit.h"

#define SCHED_CPUS_MAX 8192
#define SCHED_NOBODY UINT32_MAX /* who runs on a CPU is not known */

struct sched_cpu {
	uint32_t cur;  /* tid; 0: idle */
	uint32_t soft; /* interrupts being served */
	uint32_t hard;
	cc_ns last_ns;
	cc_ns lost_from; /* events are missing from then to its next one */
	uint64_t lost;
	bool told, wanted; /* had events; had tasks woken onto it */
};

struct sched_build {
	struct sched_emit emit;
	struct sched_counts counts;
	VEC(struct sched_thread) threads;
	struct map by_tid;
	VEC(struct sched_cpu) cpus; /* up to the highest number met */
	bool wakeups;
	bool syscalls; /* some was told: then "none" means none */
	cc_ns next_tick;
	struct sched_thread none; /* stands for what there is no room for */
};

/* The thread @tid; a new one when it was not known. NULL: no memory. Pointers of before are then
 * not valid. */
struct sched_thread *sched_thread_of(struct sched_build *b, uint32_t tid);

/* The same, but NULL when it is not known. */
const struct sched_thread *sched_thread_peek(const struct sched_build *b, uint32_t tid);

/* Makes it one of which nothing is known. */
void sched_thread_forget(struct sched_thread *t);

/* NULL: it is not told which CPU. Those of the event that is taken in are there. */
static inline struct sched_cpu *sched_cpu_of(struct sched_build *b, uint32_t cpu)
{
	return cpu < b->cpus.cnt ? &b->cpus.p[cpu] : NULL;
}

/* SCHED_WAKING, SCHED_WAKEUP and SCHED_WAKEUP_NEW. The stacks are the waker's. */
CC_NODISCARD int sched_on_wake(struct sched_build *b, const struct sched_line *l,
			       const struct sched_frame *f, uint32_t cnt, uint64_t ustack,
			       uint64_t kstack);

#endif
