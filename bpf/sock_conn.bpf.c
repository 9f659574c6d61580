// SPDX-License-Identifier: GPL-2.0-only
/* sock_conn: TCP connections begin, listen and end, in all tiers. */
#include "sock_op.h"
#include "sock_seq.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline struct req_state *state_new(struct sock *sk, __u8 role)
{
	struct req_state *s = sock_state_make(sk);

	if (!s)
		return NULL;
	if (s->role != RQ_ROLE_NEW)
		__builtin_memset(s, 0, sizeof(*s)); /* the sock was disconnected, used again */
	sock_state_init(s, sk, role, 0);
	return s;
}

static __noinline int on_listen(struct sock *sk, __u32 tgid)
{
	struct req_state *s;

	if (!sock_target(tgid))
		return 0;
	s = state_new(sk, RQ_ROLE_LISTEN);
	if (!s)
		return 0;
	s->owner = tgid;
	sock_listen_add(sk);
	tell_listen(sk, s, 1);
	return 0;
}

static __noinline int on_connect(struct sock *sk)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct req_op op = { .now = bpf_ktime_get_ns() };
	struct req_state *s;
	struct req_task *t;

	op_who(&op, cur);
	if (!sock_target(op.tgid))
		return 0;
	s = state_new(sk, RQ_ROLE_UPSTREAM);
	if (!s)
		return 0;
	s->owner = op.tgid;
	t = task_state(&op, cur);
	if (t)
		link_call(t, s, 1);
	op_tell(s, &op, CC_OP_CONNECT, 0);
	return 0;
}

static __always_inline void server_end(struct sock *sk, struct req_state *s, __u16 why, __u64 now)
{
	struct req_op op = { .now = now, .tgid = s->owner };
	__u16 end = req_close(s, why, now);

	if (end)
		tell(s, end, now);
	/* The client gave up, or the server died, before the next request was read. What a server
	 * itself closes upon unread is the rest of a body or a client's goodbye. */
	if ((why == CC_END_EXIT || sk->sk_err) && sock_unread(sk, s)) {
		req_begin_unread(s, &op);
		tell(s, why, now);
	}
}

/* Does @cur close a socket of process @owner because that exits? A thread that was at work on it
 * closes it on its way out of the call, before it exits itself; and whose iterator happens to look
 * at the file when its process drops it closes it after that is gone. */
static __always_inline int is_exit(struct task_struct *cur, __u32 owner, __u16 why)
{
	if ((__u32)cur->tgid != owner)
		return why == CC_END_FIN && owner && !is_target(cur->tgid) && !is_target(owner);
	return (cur->flags & PF_EXITING) || (cur->signal->flags & SIGNAL_GROUP_EXIT);
}

static __noinline int on_end(struct sock *sk, struct req_state *s, int from, int to)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns();
	__u16 why = CC_END_FIN;

	if (!s || (s->conn & RQ_C_CLOSED))
		return 0;
	if (to == TCP_CLOSE && (from == TCP_ESTABLISHED || from == TCP_CLOSE_WAIT))
		why = CC_END_RST;
	if (is_exit(cur, s->owner, why))
		why = CC_END_EXIT;
	if (s->role == RQ_ROLE_SERVER) {
		server_end(sk, s, why, now);
	} else {
		struct sockop o = { .now = now, .tgid = s->owner, .op = CC_OP_CLOSE };

		if (cur->tgid == (int)s->owner)
			o.tid = cur->pid;
		s->conn |= RQ_C_CLOSED;
		tell_op(s, &o);
	}
	return 0;
}

static __noinline int on_close(struct sock *sk, int from, int to)
{
	struct req_state *s = sock_state(sk);

	if (!s)
		return 0;
	if (s->role == RQ_ROLE_LISTEN) {
		sock_listen_del(s);
		tell_listen(sk, s, 0);
		s->role = RQ_ROLE_OTHER;
	} else if (s->role == RQ_ROLE_SERVER || s->role == RQ_ROLE_UPSTREAM) {
		/* What was written and no event has told: no packet has carried it
		 * yet, or its reset came before the send was over. */
		if (!(s->conn & RQ_C_CLOSED) && (SOCK_BY_SEQ || s->role == RQ_ROLE_SERVER))
			seq_written(sk, s, NULL);
		on_end(sk, s, from, to);
	}
	if (SOCK_BY_CALLS && to == TCP_CLOSE)
		sock_state_drop(sk);
	return 0;
}

static __always_inline void on_established(struct sock *sk, int from)
{
	struct req_state *s;

	if (from == TCP_SYN_RECV && sock_port_listens(sk)) {
		state_new(sk, RQ_ROLE_SERVER);
	} else if (SOCK_BY_SEQ && from == TCP_SYN_SENT) {
		s = sock_state(sk); /* its numbers begin now */
		if (s)
			sock_state_seq(s, sk);
	}
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(cc_inet_sock_set_state, struct sock *sk, int from, int to)
{
	if (!sock_on || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	switch (to) {
	case TCP_ESTABLISHED:
		on_established(sk, from);
		break;
	case TCP_LISTEN:
		on_listen(sk, bpf_get_current_pid_tgid() >> 32);
		break;
	case TCP_SYN_SENT:
		on_connect(sk);
		break;
	case TCP_CLOSE_WAIT:
		if (SOCK_BY_SEQ)
			seq_eof(sk);
		break;
	case TCP_FIN_WAIT1:
	case TCP_LAST_ACK:
	case TCP_CLOSE:
		on_close(sk, from, to);
		break;
	}
	return 0;
}
