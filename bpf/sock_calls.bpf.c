// SPDX-License-Identifier: GPL-2.0-only
/*
 * sock_calls: requests, tier 3: by the ends of system calls. The last resort, and dear: every
 * system call of the host comes by. It does not see io_uring, nor arrivals before the last packet.
 */
#include "sock_seq.h"

#include "fd.h"

char LICENSE[] SEC("license") = "GPL";

enum { CALL_NONE, CALL_RECV, CALL_SEND };

/* What system call @nr does to the socket @ret_fd. */
static __always_inline int call_kind(long nr, struct pt_regs *regs, __u32 *ret_fd, __u32 *ret_flags)
{
	*ret_fd = (__u32)REGS_ARG0(regs);
	*ret_flags = 0;
	switch (nr) {
	case SYS_RECVFROM:
		*ret_flags = (__u32)REGS_ARG3(regs);
		return CALL_RECV;
	case SYS_RECVMSG:
		*ret_flags = (__u32)REGS_ARG2(regs);
		return CALL_RECV;
	case SYS_READ:
	case SYS_READV:
		return CALL_RECV;
	case SYS_WRITE:
	case SYS_WRITEV:
	case SYS_SENDTO:
	case SYS_SENDMSG:
	case SYS_SENDFILE:
		return CALL_SEND;
	}
	return CALL_NONE;
}

static __always_inline struct sock *fd_sock(struct task_struct *cur, __u32 fd)
{
	struct file *f = fd_file(cur, fd);
	struct socket *so;

	if (!f || (BPF_CORE_READ(f, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return NULL;
	so = BPF_CORE_READ(f, private_data);
	return so ? BPF_CORE_READ(so, sk) : NULL;
}

static __always_inline void op_init(struct req_op *op, struct sock *sk, const struct req_state *s,
				    struct task_struct *cur, long ret)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct socket___sock *so = (void *)BPF_CORE_READ(sk, sk_socket);

	__builtin_memset(op, 0, sizeof(*op));
	op->now = bpf_ktime_get_ns();
	op->bytes = ret > 0 ? (__u64)ret : 0;
	op_who(op, cur);
	if (s->conn & RQ_C_TCP) {
		op->copied_seq = BPF_CORE_READ(tp, copied_seq);
		op->write_seq = BPF_CORE_READ(tp, write_seq);
		op->full = so && (BPF_CORE_READ(so, flags) & SOCK_NOSPACE_BIT);
	} else {
		op->left = BPF_CORE_READ((struct sock___sock *)sk, sk_receive_queue.qlen);
	}
}

static __noinline int call_recv(struct sock *sk, struct task_struct *cur, long ret)
{
	struct req_state *s = state_of(sk, cur->tgid, 0);
	struct req_op op;

	if (!s)
		return 0;
	op_init(&op, sk, s, cur, ret);
	op_go(&op);
	if (s->conn & RQ_C_TCP)
		seq_arrival(s, (struct tcp_sock *)sk, op.now);
	if (ret > 0 || (s->conn & RQ_C_UDP))
		on_recv(s, &op, cur);
	else if (BPF_CORE_READ(sk, sk_shutdown) & RCV_SHUTDOWN)
		on_eof(s, &op);
	return 0;
}

static __noinline int call_send(struct sock *sk, struct task_struct *cur, long ret)
{
	struct req_state *s = state_of(sk, cur->tgid, 1);
	struct req_op op;

	if (!s)
		return 0;
	op_init(&op, sk, s, cur, ret);
	op_go(&op);
	if (ret > 0)
		on_send(s, &op, sk, cur);
	else
		on_eagain(s, &op);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(cc_sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	__u32 fd, flags;
	struct sock *sk;
	int kind;

	if (!sock_on || (cur->thread_info.status & TS_COMPAT))
		return 0;
	kind = call_kind(REGS_NR(regs), regs, &fd, &flags);
	if (!kind || (flags & (MSG_PEEK | MSG_ERRQUEUE)) || !sock_target(cur->tgid))
		return 0;
	if (kind == CALL_RECV ? ret < 0 : ret <= 0 && ret != -EAGAIN)
		return 0;
	sk = fd_sock(cur, fd);
	if (!sk)
		return 0;
	return kind == CALL_RECV ? call_recv(sk, cur, ret) : call_send(sk, cur, ret);
}
