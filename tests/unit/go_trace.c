/* SPDX-License-Identifier: Apache-2.0 */
#include "go_trace.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUT(t, rec) trace_put((t), &(rec), sizeof(rec))

struct trace go_trace(int end)
{
	struct trace t = trace_new();

	for (int tid = T0; tid <= T3; tid++) {
		trace_on(&t, tid, 0);
		trace_stop_on(&t, tid, end);
	}
	return t;
}

static void on(struct trace *t, int g, int tid, int at, uint16_t aux)
{
	struct cc_rec_go_on r = {
		.h = { .kind = CC_REC_GO_ON, .aux = aux, .ts = AT(at) },
		.goid = (uint64_t)g,
		.tgid = TGID,
		.tid = TID(tid),
	};

	PUT(t, r);
}

void go_got(struct trace *t, int g, int tid, int at) { on(t, g, tid, at, 1); }
void go_left(struct trace *t, int g, int tid, int at) { on(t, g, tid, at, 0); }

static struct cc_rec_go_episode episode(struct go_wait_args a)
{
	return (struct cc_rec_go_episode){
		.h = { .kind = CC_REC_GO_EPISODE, .ts = AT(a.in) },
		.goid = (uint64_t)a.g,
		.tgid = TGID,
		.tid = TID(a.tid),
		.out = AT(a.out),
		.wake = AT(a.wake),
		.waker_goid = (uint64_t)a.waker,
		.wait_class = a.cls,
		.object = a.object,
		.in_tid = TID(a.in_tid),
	};
}

void go_waits_in(struct trace *t, struct go_wait_args a, uint64_t key)
{
	struct cc_rec_go_episode r = episode(a);

	r.ustack = key;
	PUT(t, r);
}

void go_waits(struct trace *t, struct go_wait_args a) { go_waits_in(t, a, 0); }

void go_parked(struct trace *t, int g, enum wait_class cls, int tid, int out, uint64_t object,
	       int at)
{
	struct cc_rec_go_episode r = episode((struct go_wait_args){ .cls = cls,
								    .g = g,
								    .tid = tid,
								    .out = out,
								    .wake = NEVER,
								    .in = at,
								    .object = object });

	r.h.flags = CC_GE_OPEN;
	r.in_tid = 0;
	PUT(t, r);
}

void go_io(struct trace *t, int g, int tid, int out, int in, int in_tid, uint64_t socket)
{
	struct cc_rec_go_episode r = episode((struct go_wait_args){ .cls = WAIT_NET_RECV,
								    .g = g,
								    .tid = tid,
								    .out = out,
								    .wake = NEVER,
								    .in = in,
								    .in_tid = in_tid });

	r.fd_id = socket;
	r.fd_kind = CC_FD_SOCK_TCP;
	r.fd = 7;
	PUT(t, r);
}

void go_born(struct trace *t, int g, int parent, int born, int in, int tid)
{
	struct cc_rec_go_task b = {
		.h = { .kind = CC_REC_GO_TASK, .aux = 1, .ts = AT(in) },
		.goid = (uint64_t)g,
		.parent_goid = (uint64_t)parent,
		.tgid = TGID,
		.tid = TID(tid),
		.born = AT(born),
	};
	struct cc_rec_go_episode r = episode((struct go_wait_args){ .g = g,
								    .tid = tid,
								    .out = born,
								    .wake = born,
								    .waker = parent,
								    .in = in,
								    .in_tid = tid });

	r.h.flags = CC_GE_BORN;
	PUT(t, b);
	PUT(t, r);
}

void go_dead(struct trace *t, int g, int at)
{
	struct cc_rec_go_task r = {
		.h = { .kind = CC_REC_GO_TASK, .aux = 3, .ts = AT(at) },
		.goid = (uint64_t)g,
		.tgid = TGID,
	};

	PUT(t, r);
}

static void frame(struct trace *t, uint64_t pc, const char *name)
{
	struct {
		struct cc_rec_name n;
		char text[64];
	} n = {
		.n = { .h = { .kind = CC_REC_NAME, .aux = CC_NAME_FRAME, .ts = AT(0) },
		       .id = pc,
		       .tgid = TGID,
		       .len = { (uint16_t)strlen(name) } },
	};

	memcpy(n.text, name, strlen(name));
	trace_put(t, &n, sizeof(n));
}

void go_stack(struct trace *t, uint64_t key, const char *name)
{
	struct {
		struct cc_rec_stack s;
		uint64_t ip[1];
	} s = { .s = { .h = { .kind = CC_REC_STACK, .aux = 1, .ts = AT(0) },
		       .key = key,
		       .tgid = TGID },
		.ip = { key } };

	trace_put(t, &s, sizeof(s));
	frame(t, key, name);
}

void go_named(struct trace *t, int g, uint64_t pc, const char *name)
{
	struct cc_rec_go_task r = {
		.h = { .kind = CC_REC_GO_TASK, .aux = 2, .ts = AT(0) },
		.goid = (uint64_t)g,
		.tgid = TGID,
		.start_pc = pc,
	};

	PUT(t, r);
	frame(t, pc, name);
}

static void item(struct trace *t, uint16_t aux, uint8_t flags, int g, int peer, uint64_t ch,
		 uint64_t what, int at)
{
	struct cc_rec_go_item r = {
		.h = { .kind = CC_REC_GO_ITEM, .aux = aux, .flags = flags, .ts = AT(at) },
		.goid = (uint64_t)g,
		.peer_goid = (uint64_t)peer,
		.channel = ch,
		.item = what,
		.tgid = TGID,
	};

	PUT(t, r);
}

void go_gives(struct trace *t, int from, int to, uint64_t ch, uint64_t what, int at)
{
	item(t, 1, 1, from, to, ch, what, at);
}
void go_takes(struct trace *t, int by, int from, uint64_t ch, uint64_t what, int at)
{
	item(t, 2, 1, by, from, ch, what, at);
}
void go_puts(struct trace *t, int from, uint64_t ch, uint64_t what, int at)
{
	item(t, 1, 0, from, 0, ch, what, at);
}
void go_peeks(struct trace *t, int by, uint64_t ch, uint64_t what, int at)
{
	item(t, 2, 2, by, 0, ch, what, at);
}

void go_puts_at(struct trace *t, int from, uint64_t ch, uint64_t place, int at)
{
	item(t, 1, 4, from, 0, ch, place, at);
}
void go_takes_at(struct trace *t, int by, uint64_t ch, uint64_t place, int at)
{
	item(t, 2, 5, by, 0, ch, place, at);
}

void go_tick(struct trace *t, int at)
{
	struct cc_rec_tick r = {
		.h = { .kind = CC_REC_TICK, .ts = AT(at) },
		.drained_to = AT(at),
	};

	PUT(t, r);
}

void assert_served(struct trace *t, int g, int at, const char *want)
{
	struct engine_served s;
	char got[8] = "-";

	if (engine_go_served(trace_engine(t), TGID, (uint64_t)g, AT(at), ENGINE_SERVE_FULL, &s))
		snprintf(got, sizeof(got), "%c%s", s.id.id == SOCKET(Q) ? 'Q' : 'R',
			 s.ambiguous ? "?" : "");
	cr_assert_str_eq(got, want, "g%d before %d: got %s, want %s", g, at, got, want);
}

uint64_t go_evidence(struct trace *t, int g, int at)
{
	struct engine_served s;

	cr_assert(engine_go_served(trace_engine(t), TGID, (uint64_t)g, AT(at), ENGINE_SERVE_FULL,
				   &s));
	return s.evidence;
}
