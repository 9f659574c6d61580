// SPDX-License-Identifier: GPL-2.0-only
/*
 * sock_iter: what no event tells about sockets, by walking the open files of the targets. Seeding:
 * sockets that were there before us. Refresh: requests that still run, as OPEN_REQ, and those that
 * went quiet, as REQ; these records are what user space reads from the iterator.
 *
 * Not iter/bpf_sk_storage_map: some kernels refuse it (EPERM at load on a 6.18 that takes this
 * one).
 */
#include "sock.h"

char LICENSE[] SEC("license") = "GPL";

/* Set by user space between runs. */
__u32 sock_walk_mode; /* SOCK_WALK_* */
__u32 sock_walk_run;  /* number of this run: a socket may have several descriptors */
__u64 sock_jiffy_ns;  /* length of a jiffy */

/* ---- seeding ------------------------------------------------------------------------------ */

static __always_inline void seed_listener(struct sock *sk, __u32 tgid)
{
	struct req_state *s;

	if (sk->__sk_common.skc_state != TCP_LISTEN)
		return;
	s = sock_state_make(sk);
	if (!s || s->role != RQ_ROLE_NEW)
		return; /* inherited: several processes have it */
	sock_state_init(s, sk, RQ_ROLE_LISTEN, 1);
	s->owner = tgid;
	if (s->conn & RQ_C_UNIX)
		unix_listen_add(unix_addr(sk));
	else
		sock_listen_add(sk);
	tell_listen(sk, s, 1);
}

/* Was a request running at attach, or lying unread? It was if data came after the last byte was
 * sent: jiffies tell which was later, so an answer within the same jiffy (4 ms) counts as given. */
static __always_inline void seed_in_flight(struct sock *sk, struct req_state *s, __u32 tgid)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct req_op op = { .now = bpf_ktime_get_ns(), .tgid = tgid };
	__u64 ago, got, given;
	__u32 recvd, unread;

	if (!tp)
		return;
	got = BPF_CORE_READ((struct tcp_sock___sock *)tp, bytes_received);
	given = BPF_CORE_READ((struct tcp_sock___sock *)tp, bytes_sent);
	recvd = BPF_CORE_READ((struct inet_connection_sock___sock *)tp, icsk_ack.lrcvtime);
	if (!got)
		return;
	/* a new connection has both times set: only its byte counts tell */
	if (given && (__s32)(recvd - BPF_CORE_READ((struct tcp_sock___sock *)tp, lsndtime)) <= 0)
		return;
	ago = (__u32)((__u32)bpf_jiffies64() - recvd) * sock_jiffy_ns;
	if (ago >= op.now)
		return;
	unread = tp->rcv_nxt - tp->copied_seq;
	if (unread && !given && got > unread) /* one runs, since before now; another waits */
		req_seed(s, &op, op.now);
	if (unread)
		req_seed_unread(s, op.now - ago);
	else
		req_seed(s, &op, op.now - ago);
}

static __always_inline void seed_connection(struct sock *sk, __u32 tgid)
{
	__u8 state = sk->__sk_common.skc_state, role;
	struct req_state *s;

	if (state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT)
		return;
	if (sk->sk_type == SOCK_DGRAM)
		return; /* its first operation tells which end it is */
	s = sock_state_make(sk);
	if (!s)
		return;
	if (s->role == RQ_ROLE_UPSTREAM && (s->conn & RQ_C_TCP) && sock_port_listens(sk)) {
		/* worked on before it was known that its process listens: all anew */
		sock_state_drop(sk);
		s = sock_state_make(sk);
	}
	if (s && s->conn & RQ_C_LATE && s->owner != tgid)
		s->conn |= RQ_C_SHARED;
	if (!s || s->role != RQ_ROLE_NEW)
		return;
	role = sock_role(sk, 0);
	sock_state_init(s, sk, role, 1);
	s->owner = tgid;
	if (role == RQ_ROLE_SERVER && (s->conn & RQ_C_TCP))
		seed_in_flight(sk, s, tgid);
}

/* ---- refresh ------------------------------------------------------------------------------ */

static __always_inline int send_blocked(struct sock *sk, const struct req_state *s)
{
	struct socket___sock *so;

	if (!s->eagain_since)
		return 0;
	if (s->conn & RQ_C_UNIX)
		return 1; /* the flag is not taken back there */
	so = (void *)BPF_CORE_READ(sk, sk_socket);
	return so && (BPF_CORE_READ(so, flags) & SOCK_NOSPACE_BIT);
}

/* A request under way, or over but not told. */
static __always_inline void refresh_request(struct seq_file *seq, struct sock *sk,
					    struct req_state *s, int stop)
{
	int blocked = send_blocked(sk, s);
	__u64 now = bpf_ktime_get_ns();
	struct cc_rec_req r = {};
	__u16 end;

	if (stop && s->phase == RQ_RESP && !blocked)
		end = CC_END_STOP;
	else
		end = req_quiet(s, now, blocked);
	rec_init(&r.h, sizeof(r), end ? CC_REC_REQ : CC_REC_OPEN_REQ, 0, end, now);
	req_fill(s, end, &r);
	/* The socket works on meanwhile: what was read in the middle of a change is told next time.
	 */
	if (r.ordinal != s->ordinal || r.last_send != s->last_send || s->told)
		return;
	if (bpf_seq_write(seq, &r, sizeof(r)))
		return; /* no room: the kernel shows this file once more */
	s->walk_run = sock_walk_run;
	if (end)
		req_told(s);
}

/* One that arrived and was not read yet: a server that hangs does not get further. */
static __always_inline void refresh_unread(struct seq_file *seq, struct req_state *s)
{
	struct cc_rec_req r = {};

	rec_init(&r.h, sizeof(r), CC_REC_OPEN_REQ, 0, CC_END_NONE, bpf_ktime_get_ns());
	if (req_fill_unread(s, &r) && !bpf_seq_write(seq, &r, sizeof(r)))
		s->walk_run = sock_walk_run;
}

static __always_inline void refresh_socket(struct seq_file *seq, struct sock *sk)
{
	struct req_state *s = sock_state(sk);

	if (!s || s->role != RQ_ROLE_SERVER || s->walk_run == sock_walk_run)
		return;
	if (s->phase != RQ_IDLE && !s->told)
		refresh_request(seq, sk, s, sock_walk_mode == SOCK_WALK_STOP);
	else if (!(s->conn & RQ_C_CLOSED) && sock_unread(sk, s))
		refresh_unread(seq, s);
}

SEC("iter/task_file")
int cc_sock_walk(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket *so;
	struct sock *sk;

	if (!task || !file || !sock_target(task->tgid))
		return 0;
	so = bpf_sock_from_file(file);
	if (!so)
		return 0;
	sk = so->sk;
	if (!sk || !sock_family_ours(sk))
		return 0;
	if (sock_walk_mode == SOCK_WALK_LISTENERS)
		seed_listener(sk, task->tgid);
	else if (sock_walk_mode == SOCK_WALK_CONNECTIONS)
		seed_connection(sk, task->tgid);
	else
		refresh_socket(ctx->meta->seq, sk);
	return 0;
}
