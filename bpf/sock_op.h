/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sock_op: what an operation on a socket does to its request, whichever tier has seen it.
 *
 * Every socket of the host comes by here, so each program first asks the socket's state (a load
 * when there is none) and only then the target map.
 */
#ifndef CC_BPF_SOCK_OP_H
#define CC_BPF_SOCK_OP_H

#include "sock_tell.h"

#include "go_run.h"

#define EAGAIN 11
#define MSG_PEEK 0x2
#define MSG_ERRQUEUE 0x2000
#define PF_IO_WORKER 0x00000010

/* Set by user space when all programs of the tier are attached: one that misses the answers, or the
 * reads, would see requests that never were. */
__u32 sock_on __weak;

/* ---- finding the state -------------------------------------------------------------------- */

/* A socket that a target works on and we know nothing of: from before attach, or passed to it. */
static __noinline struct req_state *state_late(struct sock *sk, int sending)
{
	struct req_state *s = sock_state_make(sk);

	if (s)
		sock_state_init(s, sk, sock_role(sk, sending), 1);
	return s;
}

/* The state of @sk when @tgid is a target and @sk is of a kind we follow; else NULL. */
static __always_inline struct req_state *state_of(struct sock *sk, __u32 tgid, int sending)
{
	struct req_state *s = sock_state(sk);

	if (!s) {
		if (!sock_family_ours(sk) || !sock_target(tgid))
			return NULL;
		s = state_late(sk, sending);
		if (!s)
			return NULL;
	}
	if ((s->role != RQ_ROLE_SERVER && s->role != RQ_ROLE_UPSTREAM) || (s->conn & RQ_C_CLOSED))
		return NULL;
	if (s->owner != tgid) {
		if (!sock_target(tgid))
			return NULL;
		s->owner = tgid;
	}
	return s;
}

/* ---- who works ---------------------------------------------------------------------------- */

/* The thread that owns the ring which @cur, a thread of io_uring, works for: its number is in the
 * name the kernel gave it, "iou-sqp-1234" or "iou-wrk-1234". */
static __noinline __u32 ring_owner(struct task_struct *cur)
{
	char comm[CC_COMM_LEN];
	__u32 tid = 0;

	BPF_CORE_READ_INTO(&comm, cur, comm);
	if (*(__u32 *)comm != 0x2d756f69) /* "iou-" */
		return 0;
	for (int i = 8; i < CC_COMM_LEN; i++) {
		__u32 digit = (__u32)comm[i] - '0';

		if (digit > 9)
			break;
		tid = tid * 10 + digit;
	}
	return tid;
}

static __always_inline void op_who(struct req_op *op, struct task_struct *cur)
{
	op->tid = cur->pid;
	op->tgid = cur->tgid;
	op->proxy = 0;
	if (cur->flags & PF_IO_WORKER) {
		__u32 owner = ring_owner(cur);

		op->tid = owner ? owner : op->tid;
		op->proxy = CC_RQ_BY_PROXY;
	}
}

static __always_inline void op_comm(struct req_state *s, const struct req_op *op,
				    struct task_struct *cur)
{
	__u64 comm[CC_COMM_LEN / 8];

	if (op->proxy) { /* the process's: the worker's says nothing */
		BPF_CORE_READ_INTO(&s->comm, cur, group_leader, comm);
		return;
	}
	comm[0] = *(__u64 *)cur->comm; /* the kernel fills it up with zeros */
	comm[1] = *(__u64 *)(cur->comm + 8);
	__builtin_memcpy(s->comm, comm, sizeof(s->comm));
}

/* What the thread has done before, for links; a ring's worker does what several have asked for. */
static __always_inline struct req_task *task_state(const struct req_op *op, struct task_struct *cur)
{
	if (op->proxy)
		return NULL;
	return bpf_task_storage_get(&sock_tasks, cur, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Which goroutine works. */
static __always_inline void op_go(const struct req_op *op)
{
	if (go_proc_cnt) /* a call is not for nothing */
		go_look_current(op->now);
}

/* ---- a socket's past ---------------------------------------------------------------------- */

static __always_inline void op_tell(const struct req_state *s, const struct req_op *op, __u16 what,
				    __u32 ordinal)
{
	struct sockop o = { .now = op->now,
			    .bytes = op->bytes,
			    .tid = op->tid,
			    .tgid = op->tgid,
			    .ordinal = ordinal,
			    .op = what,
			    .flags = op->proxy ? CC_SO_BY_PROXY : 0 };

	tell_op(s, &o);
}

static __always_inline int comm_is_postgres(const char comm[CC_COMM_LEN])
{
	__u64 head;

	__builtin_memcpy(&head, comm, sizeof(head));
	return head == 0x7365726774736f70ull; /* "postgres", as clang 14 inlines no memcmp */
}

/* ---- recv --------------------------------------------------------------------------------- */

static __always_inline void server_recv(struct req_state *s, struct req_op *op,
					struct task_struct *cur)
{
	__u16 end = req_recv_ends(s, op);
	struct req_task *t;

	if (end)
		tell_here(s, end, op->now); /* nearly every request is told here */
	if (req_recv(s, op)) {
		op_tell(s, op, CC_OP_RECV, s->ordinal);
	} else {
		op_comm(s, op, cur);
		if (s->ordinal == 1 && comm_is_postgres(s->comm))
			s->conn |= RQ_C_PG;
	}
	t = task_state(op, cur);
	if (t)
		link_server_recv(t, s);
}

static __always_inline void upstream_recv(struct req_state *s, const struct req_op *op,
					  struct task_struct *cur)
{
	struct req_task *t = task_state(op, cur);
	__u32 flags;

	req_take(s, op, &flags);
	op_tell(s, op, CC_OP_RECV, 0);
	if (t)
		link_reply(t, s, op->now);
}

/* @op received something. @cur: the current task. */
static __always_inline void on_recv(struct req_state *s, struct req_op *op, struct task_struct *cur)
{
	if (s->role == RQ_ROLE_UPSTREAM)
		upstream_recv(s, op, cur);
	else
		server_recv(s, op, cur);
}

/* @op met the end of what the peer sends. */
static __always_inline void on_eof(struct req_state *s, const struct req_op *op)
{
	__u16 end;

	if (s->role == RQ_ROLE_UPSTREAM) {
		op_tell(s, op, CC_OP_EOF, 0);
		return;
	}
	end = req_eof(s, op);
	if (end)
		tell(s, end, op->now);
}

/* ---- send --------------------------------------------------------------------------------- */

static __always_inline void server_send(struct req_state *s, struct req_op *op,
					struct task_struct *cur)
{
	struct req_task *t;
	__u16 end;

	if (req_owed(s, op)) { /* the REQ before this one has told it, but not who */
		op_tell(s, op, CC_OP_SEND, s->ordinal - 1);
		s->conn &= ~(__u32)RQ_C_OWED;
		return;
	}
	end = req_send_ends(s, op);
	if (end)
		tell(s, end, op->now);
	if (req_send(s, op))
		op_tell(s, op, CC_OP_SEND, s->ordinal);
	if (!s->recv_cnt && s->send_cnt == 1)
		op_comm(s, op, cur);
	/* A part only, and the rest when there is room: servers that trust the short count never
	 * meet -EAGAIN. */
	if (op->full) {
		req_eagain(s, op->now);
		op_tell(s, op, CC_OP_EAGAIN, s->ordinal);
	}
	t = task_state(op, cur);
	if (t && link_server_send(t, s))
		tell_vote(t, s, op);
	end = req_send_tells(s);
	if (end)
		tell(s, end, op->now);
}

static __always_inline void upstream_send(struct req_state *s, const struct req_op *op,
					  struct sock *sk, struct task_struct *cur)
{
	struct req_task *t = task_state(op, cur);

	if (!s->local_port && !(s->conn & RQ_C_UNIX))
		s->local_port = BPF_CORE_READ(sk, __sk_common.skc_num); /* 0 while it connected */
	if (t)
		link_call(t, s, 0);
	op_tell(s, op, CC_OP_SEND, 0);
}

/* @op sent something. @cur: the current task. */
static __always_inline void on_send(struct req_state *s, struct req_op *op, struct sock *sk,
				    struct task_struct *cur)
{
	if (s->role == RQ_ROLE_UPSTREAM)
		upstream_send(s, op, sk, cur);
	else
		server_send(s, op, cur);
}

/* A send that found no room. */
static __always_inline void on_eagain(struct req_state *s, const struct req_op *op)
{
	if (s->role == RQ_ROLE_SERVER)
		req_eagain(s, op->now);
	op_tell(s, op, CC_OP_EAGAIN, s->role == RQ_ROLE_SERVER ? s->ordinal : 0);
}

#endif
