/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sock_seq: operations on TCP sockets, told by what its sequence numbers have grown. Whoever calls
 * holds the socket. What was written is met when a packet goes out, which may be later, by the
 * clock of acknowledgements and on somebody else's back: then the sender is whoever read the
 * request.
 */
#ifndef CC_BPF_SOCK_SEQ_H
#define CC_BPF_SOCK_SEQ_H

#include "sock_op.h"

#define SOCK_BY_SEQ (cfg.req_tier == CC_BPF_REQ_SEQ || cfg.req_tier == CC_BPF_REQ_SEQ_FN)

/* No event tells an arrival: it was no later than the last packet. */
static __always_inline void seq_arrival(struct req_state *s, struct tcp_sock *tp, __u64 now)
{
	struct tcp_sock___sock *t = (void *)tp;
	__u64 at;

	if (s->phase == RQ_READING || s->pend_first || !bpf_core_field_exists(t->tcp_mstamp))
		return;
	at = BPF_CORE_READ(t, tcp_mstamp) * 1000;
	if (at > now || at <= s->last_recv_op || at <= s->last_send)
		return;
	s->pend_first = s->pend_last = at;
	s->pend_seq = BPF_CORE_READ(tp, rcv_nxt);
}

/* Bytes were read from @sk by the current task. */
static __always_inline int seq_read(struct sock *sk)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct req_state *s;
	struct req_op op = {};
	__s32 grown;

	s = state_of(sk, cur->tgid, 0);
	if (!s || !(s->conn & RQ_C_TCP))
		return 0;
	op.copied_seq = BPF_CORE_READ(tp, copied_seq);
	grown = (__s32)(op.copied_seq - s->copied_seq);
	if (grown <= 0)
		return 0; /* only looked at */
	op.now = bpf_ktime_get_ns();
	op.bytes = (__u32)grown;
	op.write_seq = BPF_CORE_READ(tp, write_seq);
	op_who(&op, cur);
	op_go(&op);
	seq_arrival(s, tp, op.now);
	on_recv(s, &op, cur);
	s->copied_seq = op.copied_seq;
	return 0;
}

/* Bytes may have been written to @sk. @cur: the task that may have; NULL: not known. */
static __inline int seq_written(struct sock *sk, struct req_state *s, struct task_struct *cur)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct req_op op = {};
	__s32 grown;

	if (!s || !(s->conn & RQ_C_TCP))
		return 0;
	op.write_seq = BPF_CORE_READ(tp, write_seq);
	grown = (__s32)(op.write_seq - s->write_seq);
	if (grown <= 0)
		return 0; /* sent again, or an acknowledgement */
	op.now = bpf_ktime_get_ns();
	op.bytes = (__u32)grown;
	op.copied_seq = s->copied_seq;
	if (cur && (__u32)cur->tgid == s->owner) {
		op_who(&op, cur);
		op_go(&op);
	} else {
		op.tid = s->recv_tid;
		op.tgid = s->owner;
		op.proxy = CC_RQ_BY_PROXY; /* the current task has no part in it */
	}
	on_send(s, &op, sk, cur ? cur : bpf_get_current_task_btf());
	s->write_seq = op.write_seq;
	return 0;
}

/* The peer has closed its side: no read will tell. */
static __always_inline void seq_eof(struct sock *sk)
{
	struct req_state *s = sock_state(sk);

	if (s && (s->role == RQ_ROLE_SERVER || s->role == RQ_ROLE_UPSTREAM))
		s->conn |= RQ_C_EOF;
}

#endif
