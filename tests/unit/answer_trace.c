/* SPDX-License-Identifier: Apache-2.0 */
#include "answer_trace.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define FUTEX_LOCK_OP 128   /* FUTEX_WAIT | FUTEX_PRIVATE_FLAG */
#define FUTEX_COND_OP 0x189 /* FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME */
#define EARLIEST (-900)

void trace_put(struct trace *t, const void *rec, size_t len)
{
	struct cc_rec *copy = malloc(len);

	cr_assert(copy);
	cr_assert_lt(t->recs->cnt, ARRAY_SIZE(t->recs->rec));
	memcpy(copy, rec, len);
	copy->size = (uint16_t)len;
	t->recs->rec[t->recs->cnt++] = copy;
}
#define PUT(t, rec) trace_put((t), &(rec), sizeof(rec))

struct trace trace_new(void)
{
	struct trace t = { .recs = calloc(1, sizeof(*t.recs)) };
	struct cc_rec_counter arch = {
		.h = { .kind = CC_REC_OPTION, .aux = CC_OPT_ARCH, .ts = AT(EARLIEST) },
		.value = EM_X86_64,
	};
	struct cc_rec_target target = {
		.h = { .kind = CC_REC_TARGET, .ts = AT(EARLIEST) },
		.tgid = TGID,
	};

	cr_assert(t.recs);
	PUT(&t, arch);
	PUT(&t, target);
	return t;
}

void trace_done(struct trace *t)
{
	for (size_t i = 0; i < t->recs->cnt; i++)
		free(t->recs->rec[i]);
	free(t->recs);
	engine_free(t->e);
	*t = (struct trace){ 0 };
}

/* ---- records ------------------------------------------------------------------------------ */

static uint32_t tgid_of(const struct trace *t, int tid)
{
	return t->tgid[tid] ? t->tgid[tid] : TGID;
}

static struct cc_rec_open_task open_task(const struct trace *t, int tid, int at, uint8_t flags)
{
	return (struct cc_rec_open_task){
		.h = { .kind = CC_REC_OPEN_TASK,
		       .flags = CC_TF_TRACED | flags,
		       .aux = (uint16_t)NR_NONE,
		       .ts = AT(at) },
		.tid = TID(tid),
		.tgid = tgid_of(t, tid),
		.start = 1,
		.seq = t->seq[tid] + 1,
		.fd = -1,
	};
}

void trace_on(struct trace *t, int tid, int since)
{
	struct cc_rec_open_task o = open_task(t, tid, since, CC_TF_ATTACH);

	o.last_in = AT(since);
	PUT(t, o);
}

void trace_off(struct trace *t, int tid, int nr, int since)
{
	struct cc_rec_open_task o = open_task(t, tid, since, CC_TF_ATTACH);

	o.h.aux = (uint16_t)nr;
	o.out = AT(since);
	o.state = 1;
	PUT(t, o);
}

void trace_stop_on(struct trace *t, int tid, int at)
{
	struct cc_rec_open_task o = open_task(t, tid, at, CC_TF_STOP);

	o.last_in = AT(at);
	PUT(t, o);
}

void trace_stop_off_key(struct trace *t, int tid, int nr, uint32_t key, int since, int at)
{
	struct cc_rec_open_task o = open_task(t, tid, at, CC_TF_STOP);

	o.h.aux = (uint16_t)nr;
	o.out = AT(since);
	o.state = 1;
	o.key = key;
	o.uaddr = key;
	if (key) {
		o.args[0] = key;
		o.args[1] = FUTEX_LOCK_OP;
		o.args[2] = 2;
	}
	PUT(t, o);
}

void trace_refresh_woken(struct trace *t, int tid, int nr, int out, int wake, int at)
{
	struct cc_rec_open_task o = open_task(t, tid, at, 0);
	struct cc_rec_tick tick = {
		.h = { .kind = CC_REC_TICK, .ts = AT(at) },
		.drained_to = AT(at),
	};

	o.h.aux = (uint16_t)nr;
	o.out = AT(out);
	o.wake = AT(wake);
	o.state = 1;
	PUT(t, o);
	PUT(t, tick);
}

void trace_stop_off(struct trace *t, int tid, int nr, int since, int at)
{
	trace_stop_off_key(t, tid, nr, 0, since, at);
}

void trace_episode(struct trace *t, int tid, struct cc_rec_episode ep)
{
	ep.h.kind = CC_REC_EPISODE;
	ep.tid = TID(tid);
	ep.seq = ++t->seq[tid];
	PUT(t, ep);
}

void trace_extra(struct trace *t, int tid, struct cc_rec_extra ex)
{
	ex.h.kind = CC_REC_EXTRA;
	ex.tid = TID(tid);
	ex.seq = t->seq[tid];
	PUT(t, ex);
}

static struct cc_rec_episode episode(int nr, int out, int wake, int in)
{
	return (struct cc_rec_episode){
		.h = { .aux = (uint16_t)nr, .ts = AT(in) },
		.out = AT(out),
		.wake = AT(wake),
		.state = 1,
	};
}

void trace_wait(struct trace *t, int tid, int nr, int out, int wake, int in, int waker)
{
	struct cc_rec_episode ep = episode(nr, out, wake, in);

	if (wake != NEVER) {
		ep.waker_tid = TID(waker);
		ep.waker_tgid = tgid_of(t, waker);
	}
	trace_episode(t, tid, ep);
}

void trace_irq_wait(struct trace *t, int tid, int nr, int out, int wake, int ctx, int current)
{
	struct cc_rec_episode ep = episode(nr, out, wake, wake);

	ep.h.flags = (uint8_t)(ctx << CC_EP_CTX_SHIFT);
	if (ctx != CC_CTX_IDLE) {
		ep.waker_tid = TID(current);
		ep.waker_tgid = TGID;
	}
	trace_episode(t, tid, ep);
}

static void futex_wait(struct trace *t, int tid, uint32_t key, int out, int wake, int in, int waker,
		       int owner, uint64_t op)
{
	struct cc_rec_episode ep = episode(NR_FUTEX, out, wake, in);
	struct cc_rec_extra ex = {
		.h = { .aux = NR_FUTEX, .flags = owner ? CC_EX_OWNER : 0, .ts = AT(in) },
		.args = { key, op, op == FUTEX_LOCK_OP ? 2 : 0 },
		.uaddr = key,
		.owner = owner ? TID(owner) : 0,
		.fd = -1,
	};

	ep.key = key;
	ep.waker_tid = TID(waker);
	ep.waker_tgid = TGID;
	trace_episode(t, tid, ep);
	trace_extra(t, tid, ex);
}

void trace_lock_wait(struct trace *t, int tid, uint32_t key, int out, int wake, int waker)
{
	futex_wait(t, tid, key, out, wake, wake, waker, 0, FUTEX_LOCK_OP);
}

void trace_cond_wait(struct trace *t, int tid, uint32_t key, int out, int wake, int waker)
{
	futex_wait(t, tid, key, out, wake, wake, waker, 0, FUTEX_COND_OP);
}

void trace_owned_wait(struct trace *t, int tid, uint32_t key, int out, int wake, int in, int waker,
		      int owner)
{
	futex_wait(t, tid, key, out, wake, in, waker, owner, FUTEX_LOCK_OP);
}

void trace_episode_cpu(struct trace *t, int tid, int out, int in, uint16_t cpu)
{
	struct cc_rec_episode ep = episode(NR_NONE, out, NEVER, in);

	ep.state = 0;
	ep.h.flags = CC_EP_PREEMPT;
	ep.h.cpu = cpu;
	trace_episode(t, tid, ep);
}

void trace_lost_wait(struct trace *t, int tid, int nr, int out, int in, unsigned int cnt, int ns)
{
	struct cc_rec_episode ep = episode(nr, out, in, in);

	ep.h.flags = CC_CTX_IDLE << CC_EP_CTX_SHIFT;
	ep.lost = CC_LOST(cnt, (cc_ns)ns * UNIT);
	t->seq[tid] += cnt;
	trace_episode(t, tid, ep);
}

static void put_task(struct trace *t, uint16_t what, int tid, int at, int parent, int old_tid)
{
	struct cc_rec_task r = {
		.h = { .kind = CC_REC_TASK, .aux = what, .flags = CC_TF_TRACED, .ts = AT(at) },
		.tid = TID(tid),
		.tgid = tgid_of(t, tid),
		.start = what == CC_TASK_FORK ? AT(at) : 1,
		.parent = what == CC_TASK_FORK ? TID(parent) : 0,
		.old_tid = what == CC_TASK_EXEC ? TID(old_tid) : 0,
	};

	PUT(t, r);
}

void trace_fork(struct trace *t, int tid, int parent, int forked, int in)
{
	struct cc_rec_episode ep = episode(NR_UNKNOWN, forked, forked, in);

	put_task(t, CC_TASK_FORK, tid, forked, parent, 0);
	t->seq[tid] = 0;
	ep.state = 0;
	ep.h.flags = CC_EP_BORN;
	ep.waker_tid = TID(parent);
	ep.waker_tgid = tgid_of(t, parent);
	trace_episode(t, tid, ep);
}

void trace_exit(struct trace *t, int tid, int at) { put_task(t, CC_TASK_EXIT, tid, at, 0, 0); }

void trace_exec(struct trace *t, int tid, int old_tid, int at)
{
	put_task(t, CC_TASK_EXEC, tid, at, 0, old_tid);
	t->seq[tid] = t->seq[old_tid];
}

void trace_wake(struct trace *t, int tid, int at, int waker)
{
	struct cc_rec_wake w = {
		.h = { .kind = CC_REC_WAKE, .ts = AT(at) },
		.tid = TID(tid),
		.waker_tid = TID(waker),
		.waker_tgid = tgid_of(t, waker),
	};

	PUT(t, w);
}

/* ---- sockets ------------------------------------------------------------------------------ */

static struct cc_addr loopback(uint16_t port)
{
	return (struct cc_addr){ .family = 2, .port = port, .ip = { 127, 0, 0, 1 } };
}

void trace_sockop(struct trace *t, struct cc_rec_sockop op)
{
	op.h.kind = CC_REC_SOCKOP;
	PUT(t, op);
}

void trace_message(struct trace *t, int from, int sent, int to, int arrived, unsigned int conn)
{
	struct cc_rec_sockop send = {
		.h = { .aux = CC_OP_SEND, .flags = CC_SO_UPSTREAM, .ts = AT(sent) },
		.cookie = 0x100 + conn,
		.tid = TID(from),
		.tgid = TGID,
		.bytes = 100,
		.local_port = (uint16_t)(5000 + conn),
		.peer = loopback((uint16_t)(6000 + conn)),
	};
	struct cc_rec_sockop recv = send;

	recv.h.aux = CC_OP_RECV;
	recv.h.ts = AT(arrived);
	recv.cookie = 0x200 + conn;
	recv.tid = TID(to);
	recv.local_port = (uint16_t)(6000 + conn);
	recv.peer = loopback((uint16_t)(5000 + conn));
	trace_sockop(t, send);
	trace_sockop(t, recv);
}

void trace_upstream(struct trace *t, int id, int tid, int sent, int received)
{
	trace_upstream_at(t, id, tid, sent, received, 7000, loopback(5432));
}

void trace_upstream_at(struct trace *t, int id, int tid, int sent, int received,
		       uint16_t local_port, struct cc_addr peer)
{
	struct cc_rec_sockop op = {
		.h = { .aux = CC_OP_SEND, .flags = CC_SO_UPSTREAM | CC_SO_LINKED, .ts = AT(sent) },
		.cookie = 0x300 + (uint64_t)id,
		.tid = TID(tid),
		.tgid = TGID,
		.bytes = 100,
		.link_cookie = SOCKET(id),
		.link_ordinal = 1,
		.local_port = local_port,
		.peer = peer,
	};

	trace_sockop(t, op);
	op.h.aux = CC_OP_RECV;
	op.h.flags |= CC_SO_VOTE2;
	op.h.ts = AT(received);
	trace_sockop(t, op);
}

void trace_recv_wait(struct trace *t, int tid, int out, int in, unsigned int conn)
{
	struct cc_rec_extra ex = {
		.h = { .aux = NR_RECVFROM, .ts = AT(in) },
		.fd = 5,
		.fd_kind = CC_FD_SOCK_TCP,
		.fd_id = 0x200 + conn,
		.sock_ports = (6000 + conn) << 16 | (5000 + conn),
	};

	trace_irq_wait(t, tid, NR_RECVFROM, out, in, CC_CTX_IDLE, 0);
	trace_extra(t, tid, ex);
}

struct cc_rec_req trace_req(int id, int arrival, int recv, int recv_tid, int sent, int send_tid)
{
	return (struct cc_rec_req){
		.h = { .kind = CC_REC_REQ, .aux = CC_END_NEXT, .ts = AT(sent) },
		.cookie = SOCKET(id),
		.ordinal = 1,
		.arrival = AT(arrival),
		.first_recv = AT(recv),
		.last_recv = AT(recv),
		.first_send = AT(sent),
		.last_send = AT(sent),
		.accepted = AT(EARLIEST),
		.bytes_in = 100,
		.bytes_out = 100,
		.recv_cnt = 1,
		.send_cnt = 1,
		.recv_tid = TID(recv_tid),
		.send_tid = TID(send_tid),
		.tgid = TGID,
		.local_port = 8080,
		.peer = loopback(40000),
	};
}

void trace_put_req(struct trace *t, struct cc_rec_req r) { PUT(t, r); }

void trace_request(struct trace *t, int id, int arrival, int recv, int recv_tid, int sent,
		   int send_tid)
{
	trace_put_req(t, trace_req(id, arrival, recv, recv_tid, sent, send_tid));
}
