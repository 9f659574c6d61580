// SPDX-License-Identifier: GPL-2.0-only
/*
 * sock: requests, found by socket tracepoints. Four programs feed the state machine of req_state.h,
 * one state per socket in socket storage, and write REQ, SOCKOP and LISTEN records.
 *
 * Every socket of the host comes by here, so each program first asks the socket's storage (a load
 * when there is none) and only then the target map.
 */
#include "sock.h"
#include "go.h"

char LICENSE[] SEC("license") = "GPL";

/* Set by user space when all four programs are attached: one that misses the answers, or the reads,
 * would see requests that never were. */
__u32 sock_on;

#define EAGAIN 11
#define MSG_PEEK 0x2
#define MSG_ERRQUEUE 0x2000

/* ---- records ------------------------------------------------------------------------------ */

/* Tells the request as it is. Not inlined: seven callers, and 224 bytes of stores. */
static __noinline int tell(struct req_state *s, __u32 end, __u64 now)
{
	struct cc_rec_req *r;

	if (!s)
		return 0;
	r = bpf_ringbuf_reserve(&control, sizeof(*r), 0);
	if (r) {
		rec_init(&r->h, sizeof(*r), CC_REC_REQ, 0, (__u16)end, now);
		req_fill(s, (__u16)end, r);
		control_commit(r, now);
	} else {
		cnt_add(CC_CNT_DROP_REQ, 1);
		rec_lost(CC_REC_REQ, sizeof(*r), now);
	}
	req_told(s);
	return 0;
}

struct sockop {
	__u64 now, bytes;
	__u32 tid, tgid;
	__u32 ordinal;
	__u16 op;
	__u8 flags;
};

static __always_inline struct cc_rec_sockop *sockop_new(__u64 now)
{
	struct cc_rec_sockop *r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);

	if (!r) {
		cnt_add(CC_CNT_DROP_SOCKOP, 1);
		rec_lost(CC_REC_SOCKOP, sizeof(*r), now);
	}
	return r;
}

/* An operation on @s that REQ does not tell. */
static __noinline int tell_op(const struct req_state *s, const struct sockop *o)
{
	struct cc_rec_sockop *r;
	__u8 flags;

	if (!s || !o)
		return 0;
	r = sockop_new(o->now);
	if (!r)
		return 0;
	flags = o->flags;
	r->link_cookie = 0;
	r->link_ordinal = 0;
	if (s->role == RQ_ROLE_UPSTREAM) {
		flags |= CC_SO_UPSTREAM;
		if (s->link_cookie) {
			flags |= CC_SO_LINKED;
			r->link_cookie = s->link_cookie;
			r->link_ordinal = s->link_ordinal;
		}
	}
	rec_init(&r->h, sizeof(*r), CC_REC_SOCKOP, flags, o->op, o->now);
	r->cookie = s->cookie;
	r->tid = o->tid;
	r->tgid = o->tgid;
	r->bytes = o->bytes;
	r->ordinal = o->ordinal;
	r->local_port = s->local_port;
	r->pad[0] = r->pad[1] = r->pad[2] = 0;
	req_copy_addr(&r->peer, &s->peer);
	events_commit(r, o->now);
	return 0;
}

/* Both votes named request @s: tells the reply's read once more, now with VOTE2. */
static __noinline int tell_vote(const struct req_task *t, const struct req_state *s,
				const struct req_op *op)
{
	struct cc_rec_sockop *r;

	if (!t || !s || !op)
		return 0;
	r = sockop_new(op->now);
	if (!r)
		return 0;
	rec_init(&r->h, sizeof(*r), CC_REC_SOCKOP, CC_SO_UPSTREAM | CC_SO_LINKED | CC_SO_VOTE2,
		 CC_OP_RECV, t->back_ts);
	r->cookie = s->up_cookie;
	r->tid = op->tid;
	r->tgid = op->tgid;
	r->bytes = 0;
	r->link_cookie = s->cookie;
	r->link_ordinal = s->ordinal;
	r->ordinal = 0;
	r->local_port = 0;
	r->pad[0] = r->pad[1] = r->pad[2] = 0;
	req_copy_addr(&r->peer, &s->up_peer);
	events_commit(r, op->now);
	return 0;
}

/* ---- finding the state -------------------------------------------------------------------- */

/* A socket that a target works on and we know nothing of: from before attach, or passed to it. */
static __noinline struct req_state *state_late(struct sock *sk, int sending)
{
	struct req_state *s;

	s = bpf_sk_storage_get(&socks, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s) {
		cnt_add(CC_CNT_STORAGE_FAIL, 1);
		return NULL;
	}
	sock_state_init(s, sk, sock_role(sk, sending), 1);
	return s;
}

/* The state of @sk when @tgid is a target and @sk is of a kind we follow; else NULL. */
static __always_inline struct req_state *state_of(struct sock *sk, __u32 tgid, int sending)
{
	struct req_state *s = bpf_sk_storage_get(&socks, sk, NULL, 0);

	if (!s) {
		if (!sock_family_ours(sk) || !sock_target(tgid))
			return NULL;
		s = state_late(sk, sending);
		if (!s)
			return NULL;
	}
	if (s->role != RQ_ROLE_SERVER && s->role != RQ_ROLE_UPSTREAM)
		return NULL;
	if (s->owner != tgid) {
		if (!sock_target(tgid))
			return NULL;
		s->owner = tgid;
	}
	return s;
}

static __always_inline struct req_task *task_state(void)
{
	return bpf_task_storage_get(&sock_tasks, bpf_get_current_task_btf(), NULL,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void op_init(struct req_op *op, struct sock *sk, const struct req_state *s,
				    __u64 pid_tgid, int bytes)
{
	struct tcp_sock *tp;

	op->now = bpf_ktime_get_ns();
	op->bytes = bytes;
	op->tid = (__u32)pid_tgid;
	op->tgid = pid_tgid >> 32;
	op->copied_seq = op->write_seq = op->left = 0;
	if (s->conn & RQ_C_TCP) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (tp) {
			op->copied_seq = tp->copied_seq;
			op->write_seq = tp->write_seq;
		}
		return;
	}
	op->left = ((struct sock___sock *)sk)->sk_receive_queue.qlen;
	if (s->conn & RQ_C_UDP)
		op->left += BPF_CORE_READ((struct udp_sock___sock *)sk, reader_queue.qlen);
}

static __always_inline void op_tell(const struct req_state *s, const struct req_op *op, __u16 what,
				    __u32 ordinal)
{
	struct sockop o = { .now = op->now,
			    .bytes = op->bytes,
			    .tid = op->tid,
			    .tgid = op->tgid,
			    .ordinal = ordinal,
			    .op = what };

	tell_op(s, &o);
}

/* ---- the programs ------------------------------------------------------------------------- */

/* Data for a unix socket of no state: the accepted end of a target's listener? */
static __noinline struct req_state *unix_accepted(struct sock *sk)
{
	struct req_state *s;
	__u64 addr = unix_addr(sk);

	if (!addr || !bpf_map_lookup_elem(&listen_unix, &addr))
		return NULL;
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED)
		return NULL; /* the listener itself */
	s = bpf_sk_storage_get(&socks, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (s && s->role == RQ_ROLE_NEW)
		sock_state_init(s, sk, RQ_ROLE_SERVER, 0);
	return s;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(cc_sk_data_ready, struct sock *sk)
{
	__u32 rcv_nxt = 0, write_seq = 0;
	struct req_state *s;
	struct tcp_sock *tp;
	__u64 now;

	if (!sock_on)
		return 0;
	s = bpf_sk_storage_get(&socks, sk, NULL, 0);
	if (!s) {
		if (sk->__sk_common.skc_family != AF_UNIX)
			return 0;
		s = unix_accepted(sk);
		if (!s)
			return 0;
	}
	if (s->role != RQ_ROLE_SERVER && s->role != RQ_ROLE_UPSTREAM)
		return 0;
	now = bpf_ktime_get_ns();
	if (s->conn & RQ_C_TCP) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (tp) {
			rcv_nxt = tp->rcv_nxt;
			write_seq = tp->write_seq;
		}
	} else if (!((struct sock___sock *)sk)->sk_receive_queue.qlen) {
		return 0; /* already read by another CPU */
	}
	if (s->role == RQ_ROLE_UPSTREAM && !s->pend_first) {
		struct sockop o = { .now = now, .op = CC_OP_DATA, .tgid = s->owner };

		tell_op(s, &o);
	}
	req_data(s, now, rcv_nxt, write_seq, !sk->sk_socket);
	return 0;
}

static __always_inline int comm_is_postgres(const char comm[CC_COMM_LEN])
{
	__u64 head;

	__builtin_memcpy(&head, comm, sizeof(head));
	return head == 0x7365726774736f70ull; /* "postgres", as clang 14 inlines no memcmp */
}

static __always_inline void server_recv(struct req_state *s, struct req_op *op)
{
	__u16 end = req_recv_ends(s, op);
	struct req_task *t;

	if (end)
		tell(s, end, op->now);
	if (req_recv(s, op)) {
		op_tell(s, op, CC_OP_RECV, s->ordinal);
	} else {
		bpf_get_current_comm(s->comm, sizeof(s->comm));
		if (s->ordinal == 1 && comm_is_postgres(s->comm))
			s->conn |= RQ_C_PG;
	}
	t = task_state();
	if (t)
		link_server_recv(t, s);
}

static __always_inline void upstream_recv(struct req_state *s, const struct req_op *op)
{
	struct req_task *t = task_state();
	__u32 flags;

	req_take(s, op, &flags);
	op_tell(s, op, CC_OP_RECV, 0);
	if (t)
		link_reply(t, s, op->now);
}

static __always_inline void sock_eof(struct req_state *s, const struct req_op *op)
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

SEC("tp_btf/sock_recv_length")
int BPF_PROG(cc_sock_recv_length, struct sock *sk, int ret, int flags)
{
	__u64 pid_tgid;
	struct req_state *s;
	struct req_op op;

	if (!sock_on || ret < 0 || (flags & (MSG_PEEK | MSG_ERRQUEUE)))
		return 0;
	pid_tgid = bpf_get_current_pid_tgid();
	s = state_of(sk, pid_tgid >> 32, 0);
	if (!s || (s->conn & RQ_C_CLOSED))
		return 0;
	op_init(&op, sk, s, pid_tgid, ret);
	go_look_current(op.now);
	if (ret == 0 && !(s->conn & RQ_C_UDP)) {
		if (sk->sk_shutdown & RCV_SHUTDOWN) /* else a read into no room */
			sock_eof(s, &op);
		return 0;
	}
	if (s->role == RQ_ROLE_UPSTREAM)
		upstream_recv(s, &op);
	else
		server_recv(s, &op);
	return 0;
}

static __always_inline void server_send(struct req_state *s, struct req_op *op, struct sock *sk)
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
		bpf_get_current_comm(s->comm, sizeof(s->comm));
	/* A part only, and the rest when there is room: servers that trust the short count never
	 * meet -EAGAIN. */
	if ((s->conn & RQ_C_TCP) &&
	    (((struct socket___sock *)sk->sk_socket)->flags & SOCK_NOSPACE_BIT)) {
		req_eagain(s, op->now);
		op_tell(s, op, CC_OP_EAGAIN, s->ordinal);
	}
	t = task_state();
	if (t && link_server_send(t, s))
		tell_vote(t, s, op);
	end = req_send_tells(s);
	if (end)
		tell(s, end, op->now);
}

static __always_inline void upstream_send(struct req_state *s, const struct req_op *op,
					  struct sock *sk)
{
	struct req_task *t = task_state();

	if (!s->local_port && !(s->conn & RQ_C_UNIX))
		s->local_port = sk->__sk_common.skc_num; /* 0 while it connected */
	if (t)
		link_call(t, s, 0);
	op_tell(s, op, CC_OP_SEND, 0);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(cc_sock_send_length, struct sock *sk, int ret, int flags)
{
	__u64 pid_tgid;
	struct req_state *s;
	struct req_op op;

	if (!sock_on || (ret <= 0 && ret != -EAGAIN))
		return 0;
	pid_tgid = bpf_get_current_pid_tgid();
	s = state_of(sk, pid_tgid >> 32, 1);
	if (!s || (s->conn & RQ_C_CLOSED))
		return 0;
	op_init(&op, sk, s, pid_tgid, ret > 0 ? ret : 0);
	go_look_current(op.now);
	if (ret > 0) {
		if (s->role == RQ_ROLE_UPSTREAM)
			upstream_send(s, &op, sk);
		else
			server_send(s, &op, sk);
		return 0;
	}
	if (s->role == RQ_ROLE_SERVER)
		req_eagain(s, op.now);
	op_tell(s, &op, CC_OP_EAGAIN, s->role == RQ_ROLE_SERVER ? s->ordinal : 0);
	return 0;
}

/* ---- connections -------------------------------------------------------------------------- */

static __always_inline struct req_state *state_new(struct sock *sk, __u8 role)
{
	struct req_state *s;

	s = bpf_sk_storage_get(&socks, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s) {
		cnt_add(CC_CNT_STORAGE_FAIL, 1);
		return NULL;
	}
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

static __noinline int on_connect(struct sock *sk, __u64 pid_tgid)
{
	struct sockop o = { .now = bpf_ktime_get_ns(),
			    .tid = (__u32)pid_tgid,
			    .tgid = pid_tgid >> 32,
			    .op = CC_OP_CONNECT };
	struct req_state *s;
	struct req_task *t;

	if (!sock_target(o.tgid))
		return 0;
	s = state_new(sk, RQ_ROLE_UPSTREAM);
	if (!s)
		return 0;
	s->owner = o.tgid;
	t = task_state();
	if (t)
		link_call(t, s, 1);
	tell_op(s, &o);
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

static __noinline int on_end(struct sock *sk, struct req_state *s, int from, int to)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns();
	__u16 why = CC_END_FIN;

	if (!s || (s->conn & RQ_C_CLOSED))
		return 0;
	if (to == TCP_CLOSE && (from == TCP_ESTABLISHED || from == TCP_CLOSE_WAIT))
		why = CC_END_RST;
	if ((cur->flags & PF_EXITING) && (__u32)cur->tgid == s->owner)
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

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(cc_inet_sock_set_state, struct sock *sk, int from, int to)
{
	struct req_state *s;

	if (!sock_on)
		return 0;
	if (to == TCP_ESTABLISHED) {
		if (from == TCP_SYN_RECV && sk->sk_protocol == IPPROTO_TCP && sock_port_listens(sk))
			state_new(sk, RQ_ROLE_SERVER);
		return 0;
	}
	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (to == TCP_LISTEN)
		return on_listen(sk, bpf_get_current_pid_tgid() >> 32);
	if (to == TCP_SYN_SENT)
		return on_connect(sk, bpf_get_current_pid_tgid());
	if (to != TCP_FIN_WAIT1 && to != TCP_LAST_ACK && to != TCP_CLOSE)
		return 0;
	s = bpf_sk_storage_get(&socks, sk, NULL, 0);
	if (!s)
		return 0;
	if (s->role == RQ_ROLE_LISTEN) {
		sock_listen_del(s);
		tell_listen(sk, s, 0);
		s->role = RQ_ROLE_OTHER;
		return 0;
	}
	if (s->role == RQ_ROLE_SERVER || s->role == RQ_ROLE_UPSTREAM)
		on_end(sk, s, from, to);
	return 0;
}
