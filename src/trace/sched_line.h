/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_line: one line of a scheduler trace as text, of perf script, ftrace, trace-cmd report or
 * systrace, as one event. It knows forms, not what they mean together: sched_build does.
 *
 *   ftrace   comm-tid [( tgid)] [cpu] [flags] sec.fraction: event: body
 *   perf     comm [pid/]tid [[cpu]] sec.fraction: [period] [system:]event[/modifiers/]: body
 *
 * Lines are hostile: nothing is read beyond them and no name in them is trusted.
 */
#ifndef CC_TRACE_SCHED_LINE_H
#define CC_TRACE_SCHED_LINE_H

#include "slice.h"

enum sched_kind {
	SCHED_NOTHING, /* blank, a comment, an event that is of no use here */
	SCHED_STRANGE, /* not understood */
	SCHED_SWITCH,  /* a goes, in state, b comes */
	SCHED_WAKING,
	SCHED_WAKEUP,     /* of a */
	SCHED_WAKEUP_NEW, /* of a */
	SCHED_FORK,       /* a made b */
	SCHED_EXEC,       /* a; its thread was b */
	SCHED_EXIT,       /* a */
	SCHED_RENAME,     /* a */
	SCHED_SYS_ENTER,
	SCHED_SYS_EXIT,
	SCHED_REASON, /* a was blocked in text; iowait */
	SCHED_IRQ_ENTER,
	SCHED_IRQ_EXIT, /* soft tells which */
	SCHED_LOST,     /* cnt events of cpu */
	SCHED_FRAME,    /* of the stack of the event before: addr, text, module */
	SCHED_BODY_NEXT /* the body is on the next line */
};

#define SCHED_LINE_BYTES (64u << 10) /* more of a line is cut off */
#define SCHED_NO_CPU UINT32_MAX
#define SCHED_STATE_UNKNOWN 0x8000u /* asleep, but how is not known */
#define SCHED_STATE_DEAD 0x10u

struct sched_task {
	uint32_t tid;
	struct slice comm; /* empty: not known */
};

struct sched_line {
	enum sched_kind kind;
	/* the header */
	cc_ns ts;
	uint32_t cpu, tgid; /* SCHED_NO_CPU, 0: not told */
	struct sched_task cur;
	int8_t ctx; /* CC_CTX_*; -1: the form has no flags */
	bool perf;  /* form of the header */
	/* the body */
	struct sched_task a, b;
	uint32_t state;  /* as task->__state */
	uint32_t target; /* CPU of a wake */
	int32_t nr;      /* syscall; -2: not known by name */
	uint32_t arg_cnt;
	uint64_t args[6];
	struct slice text, module;
	uint64_t addr, cnt;
	bool preempt, iowait, soft;
};

/* Reads @line, which has no newline. */
void sched_line_parse(struct slice line, struct sched_line *ret);

/* Reads the body of @l, whose kind was SCHED_BODY_NEXT, from the line after it. */
void sched_line_body(struct slice line, struct sched_line *l);

/* ---- between the parts of the parser ---- */

/* Reads the header of @line into @ret. False: it has none. *ret_event: name, system and modifiers
 * taken off; *ret_body: what follows it. */
bool sched_head_parse(struct slice line, struct sched_line *ret, struct slice *ret_event,
		      struct slice *ret_body);

/* Number of the syscall @name ("futex") on x86-64; -2: none that the classes know. */
int32_t sched_syscall_nr(struct slice name);

#endif
