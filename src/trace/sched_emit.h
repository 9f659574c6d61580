/* SPDX-License-Identifier: Apache-2.0 */
/* sched_emit: what sched_build knows of a task, as records. It decides nothing. */
#ifndef CC_TRACE_SCHED_EMIT_H
#define CC_TRACE_SCHED_EMIT_H

#include "map.h"
#include "sched_build.h"

#define SCHED_WAKES_MAX 8 /* of one wait; more are counted */

struct sched_wake {
	cc_ns ts; /* 0: none */
	uint32_t waker, waker_tgid;
	uint8_t ctx;             /* CC_CTX_* */
	uint64_t ustack, kstack; /* of the waker */
};

enum sched_where {
	SCHED_UNKNOWN, /* not seen yet */
	SCHED_RUNNING, /* since .since on .cpu */
	SCHED_LEFT,    /* was running since .since, then another one ran on that CPU */
	SCHED_OFF,     /* since .since */
};

struct sched_thread {
	uint32_t tid, tgid;
	char comm[CC_COMM_LEN];
	bool named; /* its comm was told */
	enum sched_where where;
	uint32_t cpu;
	cc_ns since;
	/* its wait, when OFF */
	uint32_t state;
	uint8_t flags; /* CC_EP_* */
	struct sched_wake wake[SCHED_WAKES_MAX];
	uint32_t wake_cnt;
	uint64_t ustack, kstack;
	int32_t wait_nr; /* syscall it waits in */
	uint64_t wait_args[6];
	/* beside it */
	struct sched_wake early; /* woken while it ran */
	uint64_t lost;           /* CC_LOST() before its next wait */
	uint32_t seq;            /* of the last episode told */
	int32_t nr;              /* syscall it is in; -1: none, -2: not known */
	uint64_t args[6];
	bool exiting;
};

struct sched_emit {
	struct mem mem;
	cc_record_fn *fn;
	void *ctx;
	struct map stacks, names; /* keys told already */
	struct sched_counts *counts;
	int64_t wall_off; /* wall clock - the records' times, for TICKs; 0: not known */
};

void sched_emit_done(struct sched_emit *e);

/* Each returns 0, -ENOMEM, or what the callback returned. */
int sched_emit_option(struct sched_emit *e, unsigned int option, uint64_t value);
int sched_emit_name(struct sched_emit *e, const struct sched_thread *t, cc_ns ts);
int sched_emit_task(struct sched_emit *e, const struct sched_thread *t, unsigned int what,
		    uint32_t other, cc_ns ts);
/* The wait of @t, which ended at @in; then its further wakes. Clears what the next wait has anew.
 */
int sched_emit_episode(struct sched_emit *e, struct sched_thread *t, cc_ns in);
/* A kernel frame that became known after the last wait of @t was told. */
int sched_emit_reason(struct sched_emit *e, const struct sched_thread *t, uint64_t kstack);
/* What @t does at @now. */
int sched_emit_open(struct sched_emit *e, const struct sched_thread *t, cc_ns now, bool last);
int sched_emit_loss(struct sched_emit *e, cc_ns from, cc_ns to, uint64_t cnt);
int sched_emit_tick(struct sched_emit *e, cc_ns ts, bool last);
/* The frames with @kernel, as a stack of process @tgid. *ret_key: 0 if there are none. */
int sched_emit_stack(struct sched_emit *e, uint32_t tgid, bool kernel, const struct sched_frame *f,
		     uint32_t cnt, uint64_t *ret_key);

bool sched_frame_is_kernel(const struct sched_frame *f);

#endif
