/* SPDX-License-Identifier: Apache-2.0 */
/* go_trace: goroutines for an answer_trace. A goroutine is a number (goid), 1 2 ...; threads are T0
 * T1 ..., on the CPU from the first moment; channels and mutexes are small numbers. */
#ifndef GO_TRACE_H
#define GO_TRACE_H

#include "answer_trace.h"

enum { NOBODY = 0, CH_A = 0xa000, CH_B = 0xb000, CH_C = 0xc000, MU = 0xd000 };

/* A trace whose threads T0 .. T3 run on their CPUs over [0, end). */
struct trace go_trace(int end);

void go_got(struct trace *t, int g, int tid, int at);
void go_left(struct trace *t, int g, int tid, int at);

struct go_wait_args {
	enum wait_class cls;
	int g, tid, out, wake, waker, in, in_tid;
	uint64_t object;
};
/* Waited over [out, wake), ran again on in_tid at in; waker NOBODY and wake NEVER: netpoll, timer.
 */
void go_waits(struct trace *t, struct go_wait_args a);
/* The same with stack @key. */
void go_waits_in(struct trace *t, struct go_wait_args a, uint64_t key);
#define GO_WAITS(t, ...) go_waits((t), (struct go_wait_args){ __VA_ARGS__ })
/* Parked since out, seen at @at. */
void go_parked(struct trace *t, int g, enum wait_class cls, int tid, int out, uint64_t object,
	       int at);
/* An IO wait over [out, in) on the socket of request or upstream @socket. */
void go_io(struct trace *t, int g, int tid, int out, int in, int in_tid, uint64_t socket);

/* Made by @parent at @born, first run on @tid at @in. */
void go_born(struct trace *t, int g, int parent, int born, int in, int tid);
void go_dead(struct trace *t, int g, int at);
void go_named(struct trace *t, int g, uint64_t pc, const char *name);
/* Stack @key is one frame, of that name. */
void go_stack(struct trace *t, uint64_t key, const char *name);

/* Items: given to one that waits, taken from one that waits, put into a buffer, taken out of it. */
void go_gives(struct trace *t, int from, int to, uint64_t ch, uint64_t item, int at);
void go_takes(struct trace *t, int by, int from, uint64_t ch, uint64_t item, int at);
void go_puts(struct trace *t, int from, uint64_t ch, uint64_t item, int at);
void go_peeks(struct trace *t, int by, uint64_t ch, uint64_t item, int at);
/* into and out of a place in the buffer */
void go_puts_at(struct trace *t, int from, uint64_t ch, uint64_t place, int at);
void go_takes_at(struct trace *t, int by, uint64_t ch, uint64_t place, int at);

/* A TICK that has drained everything before @at. */
void go_tick(struct trace *t, int at);

/* What the engine says goroutine @g worked for right before @at: "R", "Q", "-", "R?" (ambiguous).
 */
void assert_served(struct trace *t, int g, int at, const char *want);
uint64_t go_evidence(struct trace *t, int g, int at);

#endif
