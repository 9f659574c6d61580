/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_build: the events of a scheduler trace, one after another, as records of event.h.
 *
 * Per task it keeps the one wait that is open; per CPU who runs on it. What contradicts them (a
 * task that leaves a CPU it never came to) means that events are missing: the time between is told
 * as lost, never as running or waiting. Nothing is invented: a wake that is not in the trace gives
 * a wait without a waker.
 */
#ifndef CC_TRACE_SCHED_BUILD_H
#define CC_TRACE_SCHED_BUILD_H

#include "event.h"
#include "sched_line.h"
#include "source.h"

struct sched_build;

#define SCHED_FRAMES 127 /* of one stack; more are cut off */

struct sched_frame {
	uint64_t addr;
	struct slice text, module; /* borrowed for the call */
};

/* What was met, for notes. */
struct sched_counts {
	uint64_t switches, wakings, wakeups, syscalls, forks;
	uint64_t lost, lost_marks; /* events lost, and lines that say so */
	uint64_t unseen;           /* times a task must have run unseen */
	uint64_t backwards;        /* events before the ones above them */
	uint64_t no_context; /* wakes of which the form does not say if an interrupt gave them */
	uint64_t no_room;    /* tasks or stacks beyond the bounds */
	uint64_t stacks;
	cc_ns first_ns, last_ns;
};

/* Records go to @fn. @wakeups: sched_wakeup is taken as the wake, for a trace without sched_waking.
 * Returns 0 or -ENOMEM. */
CC_NODISCARD int sched_build_new(bool wakeups, cc_record_fn *fn, void *ctx,
				 struct sched_build **ret);
void sched_build_free(struct sched_build *b); /* NULL is a no-op */

/* One event. @frames: its stack, kernel frames first. Returns 0, -ENOMEM, or what @fn returned. */
CC_NODISCARD int sched_build_event(struct sched_build *b, const struct sched_line *l,
				   const struct sched_frame *frames, uint32_t frame_cnt);

/* From now on TICKs tell the wall clock: @off is it - times of records. */
void sched_build_wall(struct sched_build *b, int64_t off);

/* The end: what is still going on, then the last TICK. */
CC_NODISCARD int sched_build_finish(struct sched_build *b);

const struct sched_counts *sched_build_counts(const struct sched_build *b);

/* CPUs that tasks were woken onto but that told nothing, as "1, 3-5". Returns how many. */
uint32_t sched_build_silent_cpus(const struct sched_build *b, char *buf, size_t cap);

#endif
