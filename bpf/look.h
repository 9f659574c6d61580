/* SPDX-License-Identifier: GPL-2.0-only */
/* look: what a wait was about, beyond its system call: the lock and its owner, the file,
 * throttling. What is only true while the wait begins is read then; the rest only when a slow wait
 * is told. */
#ifndef CC_BPF_LOOK_H
#define CC_BPF_LOOK_H

#include "task.h"

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define S_IFDIR 0040000
#define S_IFCHR 0020000
#define S_IFIFO 0010000

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define SOCK_STREAM 1
#define IPPROTO_TCP 6

#define RWSEM_FLAG_WAITERS 2
#define RWSEM_READER_OWNED 1
#define LOCK_FLAG_BITS 7ull

__u64 owner_by_tid(__u32 tid, __u32 local); /* shared.bpf.c */

/* ---- what is only true at the switch-out ------------------------------------------------------
 */

/*
 * The owner word of the lock behind a FUTEX_WAIT, as user space wrote it; 0: not known. Read while
 * the waiter goes to sleep; the release clears it. glibc (nptl/lowlevellock.h,
 * struct __pthread_mutex_s): the lock word is 2 = "locked, waiters", and the words after it are
 * count, owner, nusers, kind. Robust, PI and shared ones, and musl: the tid is in the lock word.
 * Whether that tid is a live thread is checked when the wait is told.
 */
static __always_inline __u32 futex_owner(struct pt_regs *regs)
{
	__u32 op = (__u32)REGS_ARG1(regs) & FUTEX_CMD_MASK, val = (__u32)REGS_ARG2(regs);
	__u32 w[5];

	if (op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2) {
		if (bpf_probe_read_user(w, 4, (void *)REGS_ARG0(regs)))
			return 0;
		return w[0] & FUTEX_TID_MASK;
	}
	if (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET)
		return 0;
	if (val & FUTEX_WAITERS)
		return val & FUTEX_TID_MASK;
	if (val != 2 || bpf_probe_read_user(w, sizeof(w), (void *)REGS_ARG0(regs)))
		return 0;
	/* kind: type 0..3, robust 0x10, PI 0x20, protect 0x40, shared 0x80, elision 0x300 */
	return w[4] & ~0x3f3u ? 0 : w[2];
}

/* Does mmap_lock explain the wait? It has waiters, and the task, in a page fault or a call that
 * changes mappings, waits for no I/O. */
static __always_inline bool waits_for_mmap_lock(struct task_struct *t, const struct task_state *st)
{
	if (!t->mm || !(nr_changes_mm(st->nr) || st->nr == -1))
		return false;
	if (BPF_CORE_READ_BITFIELD(t, in_iowait))
		return false;
	return t->mm->mmap_lock.count.counter & RWSEM_FLAG_WAITERS;
}

/*
 * The kernel lock that @t sleeps on in D state, and the task that owned it. Since 6.17 the kernel
 * says which (hung_task_set_blocker: kind in the low bits, 0 mutex, 1 semaphore, 2 rwsem reader, 3
 * rwsem writer), but not for killable waits; then, and before, only mmap_lock is known well enough.
 * A reader's hold has no owner that could be trusted.
 */
static __always_inline void klock_owner(struct task_struct *t, struct task_state *st)
{
	__u64 lock = 0, owner = 0, kind = 3;

	if (bpf_core_field_exists(t->blocker)) {
		kind = t->blocker & 3;
		lock = t->blocker & ~3ull;
		if (kind == 1)
			return;
	}
	if (lock && kind == 0) {
		owner = BPF_CORE_READ((struct mutex *)lock, owner.counter);
	} else {
		if (!lock && waits_for_mmap_lock(t, st))
			lock = (__u64)&t->mm->mmap_lock;
		if (lock)
			owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
		if (owner & RWSEM_READER_OWNED)
			owner = 0;
	}
	st->klock = lock;
	st->owner_word = owner & ~LOCK_FLAG_BITS;
}

/* Time for which @p's group of its CPU was throttled so far, and which group; same group only. */
static __always_inline void throttle_clock(struct task_struct *p, struct cpu_state *c, __u64 now,
					   __u64 *ret_rq, __u64 *ret_ns)
{
	struct cfs_rq *rq = p->se.cfs_rq;

	*ret_rq = 0;
	*ret_ns = 0;
	if (!bpf_core_field_exists(rq->throttled_clock_self_time))
		return;
	if (!rq)
		return;
	*ret_rq = (__u64)rq;
	*ret_ns = rq->throttled_clock_self_time;
	if (rq->throttled_clock_self) {
		__u64 since = rq->throttled_clock_self + c->clock_off;

		if (now > since)
			*ret_ns += now - since;
	}
}

/* ---- what can be looked up at the end -------------------------------------------------------- */

static __always_inline struct file *fd_file(struct task_struct *p, __u32 fd)
{
	struct fdtable *t = BPF_CORE_READ(p, files, fdt);
	struct file **fds, *f = NULL;

	if (!t || fd >= BPF_CORE_READ(t, max_fds))
		return NULL;
	fds = BPF_CORE_READ(t, fd);
	bpf_probe_read_kernel(&f, sizeof(f), fds + fd);
	return f;
}

static __always_inline __u32 anon_kind(struct file *f)
{
	__u64 poll = (__u64)BPF_CORE_READ(f, f_op, poll);

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
	struct socket *so = (struct socket *)BPF_CORE_READ(f, private_data);
	struct sock *sk = BPF_CORE_READ(so, sk);
	__u16 family, type, proto;
	__u64 key = (__u64)sk;
	struct retrans *r;

	x->kind = CC_FD_SOCK_OTHER;
	if (!sk)
		return;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	type = BPF_CORE_READ(sk, sk_type);
	proto = BPF_CORE_READ(sk, sk_protocol);
	x->id = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	if (family == AF_UNIX) {
		x->kind = CC_FD_SOCK_UNIX;
		return;
	}
	if (family != AF_INET && family != AF_INET6)
		return;
	x->kind = type == SOCK_STREAM ? CC_FD_SOCK_TCP : CC_FD_SOCK_UDP;
	x->ports = (__u32)BPF_CORE_READ(sk, __sk_common.skc_num) << 16 |
		   __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (x->kind != CC_FD_SOCK_TCP || proto != IPPROTO_TCP)
		return;
	x->srtt_us = BPF_CORE_READ((struct tcp_sock *)sk, srtt_us) >> 3;
	r = bpf_map_lookup_elem(&retrans, &key);
	if (r)
		for (int i = 0; i < RETRANS; i++)
			x->retrans += r->ts[i] >= since;
}

/* What file @fd of @p is; for a socket also what happened on it since @since. */
static __noinline int fd_look(struct fd_info *x, struct task_struct *p, __u32 fd, __u64 since)
{
	struct file *f = fd_file(p, fd);
	struct inode *in;
	__u16 mode;

	__builtin_memset(x, 0, sizeof(*x));
	if (!f)
		return 0;
	in = BPF_CORE_READ(f, f_inode);
	mode = BPF_CORE_READ(in, i_mode);
	x->id = BPF_CORE_READ(in, i_ino);
	x->dev = BPF_CORE_READ(in, i_sb, s_dev);
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

struct owner_info {
	__u32 tid, tgid;
	char comm[CC_COMM_LEN];
};

/*
 * Who owns the lock that @p sleeps on. A futex's owner word is a tid of p's pid namespace and may
 * be anything user space left there: it must be a live thread, of the same process unless the futex
 * is
 * @shared. @current: p is the current task, so that its namespace is the one to look in.
 */
static __noinline int owner_look(struct owner_info *o, struct task_struct *p,
				 const struct task_state *st, bool shared, bool current)
{
	__u32 level = BPF_CORE_READ(p, thread_pid, level);
	struct task_struct *t = (struct task_struct *)st->owner_word;
	struct cpu_state *c = this_cpu();
	__u64 found;

	__builtin_memset(o, 0, sizeof(*o));
	if (!st->owner_word)
		return 0;
	if (st->klock) {
		o->tid = BPF_CORE_READ(t, pid);
		o->tgid = BPF_CORE_READ(t, tgid);
		BPF_CORE_READ_INTO(&o->comm, t, comm);
		if (o->tid == (__u32)p->pid)
			o->tid = 0;
		return 0;
	}
	if (level && !current)
		return 0;
	found = owner_by_tid((__u32)st->owner_word, current);
	if (!found || ((found >> 32) != (__u32)p->tgid && !shared))
		return 0;
	o->tid = (__u32)found;
	o->tgid = (found >> 32) == (__u32)p->tgid ? 0 : (__u32)(found >> 32);
	if (c)
		__builtin_memcpy(o->comm, c->owner_comm, CC_COMM_LEN);
	return 0;
}

#endif
