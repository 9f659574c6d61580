/* SPDX-License-Identifier: GPL-2.0-only */
/* look_file: what a file descriptor is, and for a socket how it does. */
#ifndef CC_BPF_LOOK_FILE_H
#define CC_BPF_LOOK_FILE_H

#include "fd.h"
#include "task.h"

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define SOCK_STREAM 1
#define IPPROTO_TCP 6

static __always_inline __u32 anon_kind(struct file *f)
{
	const struct file_operations *op = LOOK(f, f_op);
	__u64 poll = (__u64)LOOK(op, poll);

	if (!poll)
		return CC_FD_OTHER;
	if (poll == cfg.fn[CC_BPF_FN_ep_eventpoll_poll])
		return CC_FD_EPOLL;
	if (poll == cfg.fn[CC_BPF_FN_eventfd_poll])
		return CC_FD_EVENTFD;
	if (poll == cfg.fn[CC_BPF_FN_timerfd_poll])
		return CC_FD_TIMERFD;
	if (poll == cfg.fn[CC_BPF_FN_signalfd_poll])
		return CC_FD_SIGNALFD;
	if (poll == cfg.fn[CC_BPF_FN_inotify_poll])
		return CC_FD_INOTIFY;
	if (poll == cfg.fn[CC_BPF_FN_io_uring_poll])
		return CC_FD_IO_URING;
	return CC_FD_OTHER;
}

struct fd_info {
	__u32 kind; /* CC_FD_* */
	__u32 dev;
	__u64 id;
	__u32 ports, srtt_us, retrans, pad;
};

static __always_inline void sock_look(struct fd_info *x, struct file *f, __u64 since)
{
	struct socket *so = (struct socket *)LOOK(f, private_data);
	struct sock *sk = LOOK(so, sk);
	__u16 family, type, proto;
	__u64 key = (__u64)sk;
	struct retrans *r;

	x->kind = CC_FD_SOCK_OTHER;
	if (!sk)
		return;
	family = LOOK(sk, __sk_common.skc_family);
	type = LOOK(sk, sk_type);
	proto = LOOK(sk, sk_protocol);
	x->id = LOOK(sk, __sk_common.skc_cookie.counter);
	if (family == AF_UNIX) {
		x->kind = CC_FD_SOCK_UNIX;
		return;
	}
	if (family != AF_INET && family != AF_INET6)
		return;
	x->kind = type == SOCK_STREAM ? CC_FD_SOCK_TCP : CC_FD_SOCK_UDP;
	x->ports = (__u32)LOOK(sk, __sk_common.skc_num) << 16 |
		   __builtin_bswap16(LOOK(sk, __sk_common.skc_dport));
	if (x->kind != CC_FD_SOCK_TCP || proto != IPPROTO_TCP)
		return;
	x->srtt_us = LOOK((struct tcp_sock *)sk, srtt_us) >> 3;
	r = bpf_map_lookup_elem(&retrans, &key);
	if (r)
		for (int i = 0; i < RETRANS; i++)
			x->retrans += r->ts[i] >= since;
}

/* What file @fd of @p is; for a socket also what happened on it since @since. */
static __noinline int fd_look(struct fd_info *x, struct task_struct *p, __u32 fd, __u64 since)
{
	struct file *f = fd_file(p, fd);
	struct super_block *sb;
	struct inode *in;
	__u16 mode;

	__builtin_memset(x, 0, sizeof(*x));
	if (!f)
		return 0;
	in = LOOK(f, f_inode);
	mode = LOOK(in, i_mode);
	x->id = LOOK(in, i_ino);
	sb = LOOK(in, i_sb);
	x->dev = LOOK(sb, s_dev);
	switch (mode & S_IFMT) {
	case S_IFREG:
		x->kind = CC_FD_FILE;
		break;
	case S_IFDIR:
		x->kind = CC_FD_DIR;
		break;
	case S_IFCHR:
		x->kind = CC_FD_CHAR;
		break;
	case S_IFBLK:
		x->kind = CC_FD_BLOCK;
		break;
	case S_IFIFO:
		x->kind = CC_FD_PIPE;
		break;
	case S_IFSOCK:
		sock_look(x, f, since);
		break;
	default: /* anonymous inodes have no type */
		x->kind = anon_kind(f);
	}
	return 0;
}

#endif
