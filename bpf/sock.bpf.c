// SPDX-License-Identifier: GPL-2.0-only
/*
 * sock: requests, tier 1: the kernel tells what each recv and send on a socket moved, and when data
 * came. Connections begin and end in sock_conn.bpf.c.
 */
#define LOOK_BY_CAST
#include "fd.h" /* first: as by the above */

#include "sock_op.h"

#include "go_file.h"
#include "look_file.h"

char LICENSE[] SEC("license") = "GPL";

/* @sk as what it is; NULL: cannot be. It is TCP's. The verifier makes a move of the newer cast,
 * where the other one is a call. */
static __always_inline struct tcp_sock *sock_tcp(struct sock *sk)
{
	if (cfg.has_cast_kfunc)
		return bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	return (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
}

/* Data for a unix socket of no state: the accepted end of a target's listener? */
static __noinline struct req_state *unix_accepted(struct sock *sk)
{
	struct req_state *s;
	__u64 addr = unix_addr(sk);

	if (!addr || !bpf_map_lookup_elem(&listen_unix, &addr))
		return NULL;
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED)
		return NULL; /* the listener itself */
	s = sock_state_make(sk);
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
	s = sock_state(sk);
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
		tp = sock_tcp(sk);
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

static __always_inline void op_init(struct req_op *op, struct sock *sk, const struct req_state *s,
				    struct task_struct *cur, int bytes)
{
	struct tcp_sock *tp;

	op->now = bpf_ktime_get_ns();
	op->bytes = bytes > 0 ? bytes : 0;
	op_who(op, cur);
	op->copied_seq = op->write_seq = op->left = op->full = 0;
	if (s->conn & RQ_C_TCP) {
		tp = sock_tcp(sk);
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

SEC("tp_btf/sock_recv_length")
int BPF_PROG(cc_sock_recv_length, struct sock *sk, int ret, int flags)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct req_state *s;
	struct req_op op;

	if (!sock_on || ret < 0 || (flags & (MSG_PEEK | MSG_ERRQUEUE)))
		return 0;
	s = state_of(sk, cur->tgid, 0);
	if (!s)
		return 0;
	op_init(&op, sk, s, cur, ret);
	op_go(&op);
	if (ret > 0 || (s->conn & RQ_C_UDP))
		on_recv(s, &op, cur);
	else if (sk->sk_shutdown & RCV_SHUTDOWN) /* else a read into no room */
		on_eof(s, &op);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(cc_sock_send_length, struct sock *sk, int ret, int flags)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct req_state *s;
	struct req_op op;

	if (!sock_on || (ret <= 0 && ret != -EAGAIN))
		return 0;
	s = state_of(sk, cur->tgid, 1);
	if (!s)
		return 0;
	op_init(&op, sk, s, cur, ret);
	op_go(&op);
	if (ret < 0) {
		on_eagain(s, &op);
		return 0;
	}
	if (s->conn & RQ_C_TCP)
		op.full = (((struct socket___sock *)sk->sk_socket)->flags & SOCK_NOSPACE_BIT) != 0;
	on_send(s, &op, sk, cur);
	return 0;
}

/* ---- sockets that goroutines wait for: here, as only one file may cast ------------------------
 */

/* A connection's goroutine mostly waits for the same socket again: then its cookie is all that is
 * looked at. */
static __always_inline bool is_same_socket(struct task_struct *cur, const struct cc_bpf_go_state *s)
{
	struct file *f = fd_file(cur, (__u32)s->fd);
	struct socket *so = f ? (struct socket *)LOOK(f, private_data) : NULL;
	struct sock *sk = so ? LOOK(so, sk) : NULL;

	return sk && (__u64)LOOK(sk, __sk_common.skc_cookie.counter) == s->fd_id;
}

static __always_inline bool is_served(struct task_struct *cur, struct cc_bpf_go *go, __u32 port)
{
	struct sock_port k = { .port = (__u16)port };

	if (port == go->port)
		return true;
	k.netns = BPF_CORE_READ(cur, nsproxy, net_ns, ns.inum);
	if (!bpf_map_lookup_elem(&listen_ports, &k))
		return false;
	go->port = port;
	return true;
}

__noinline int go_file(struct cc_bpf_go_state *s, struct cc_bpf_go *go, __u64 now)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct fd_info x;

	if (!s || !go)
		return 0;
	if (s->fd_id && s->fd_kind >= CC_FD_SOCK_TCP && s->fd_kind <= CC_FD_SOCK_OTHER &&
	    is_same_socket(cur, s))
		return s->served;
	fd_look(&x, cur, (__u32)s->fd, now);
	s->fd_id = x.id;
	s->fd_kind = x.kind;
	s->sock_ports = x.ports;
	s->served = x.kind == CC_FD_SOCK_TCP && is_served(cur, go, x.ports >> 16);
	return s->served;
}
