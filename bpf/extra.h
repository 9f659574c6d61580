/* SPDX-License-Identifier: GPL-2.0-only */
/* extra: what EXTRA tells beyond the EPISODE: the file, the lock's owner, who had the CPU,
 * throttling. All of it is looked up when a slow wait ends, save what is only true while it begins.
 */
#ifndef CC_BPF_EXTRA_H
#define CC_BPF_EXTRA_H

#include "snap.h"

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

extern struct task_struct *bpf_task_from_vpid(int vpid) __ksym __weak;
extern void bpf_task_release(struct task_struct *p) __ksym __weak;

/* When a TCP segment of a socket was sent again, the last RETRANS of them: rare, so kept for all.
 */
#define RETRANS 8
struct retrans {
	__u64 ts[RETRANS];
	__u32 cnt, pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64); /* struct sock * */
	__type(value, struct retrans);
} retrans __weak SEC(".maps");

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

/* The kernel lock that @p sleeps on in D state, and the task that owned it. Since 6.17 the kernel
 * says which (hung_task_set_blocker: kind in the low bits, 0 mutex, 1 semaphore, 2 rwsem reader, 3
 * rwsem writer); before, only mmap_lock can be guessed: it has waiters and the task waits for no
 * I/O. A reader's hold has no owner that could be trusted. */
static __always_inline void klock_owner(struct task_struct *p, struct task_state *st)
{
	__u64 lock = 0, owner = 0;

	if (p->in_iowait)
		return;
	if (bpf_core_field_exists(p->blocker)) {
		__u64 kind = p->blocker & 3;

		lock = p->blocker & ~3ull;
		if (!lock || kind == 1)
			return;
		if (kind == 0)
			owner = BPF_CORE_READ((struct mutex *)lock, owner.counter);
		else
			owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
		if (kind && (owner & RWSEM_READER_OWNED))
			owner = 0;
	} else if (p->mm && (p->mm->mmap_lock.count.counter & RWSEM_FLAG_WAITERS)) {
		lock = (__u64)&p->mm->mmap_lock;
		owner = p->mm->mmap_lock.owner.counter;
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

/* The slot of the occupant of this CPU, other than @tid, that held most of [from, to); negative:
 * none. The overlaps lie in the map, not on the stack, so that the verifier forgets their values
 * and need not follow 2^16 paths. */
static __always_inline int occupant_most(struct cpu_state *c, __u32 tid, __u64 from, __u64 to,
					 __u64 *ret_ns)
{
	__u64 best_ns = 0;
	int best = -1;

	for (__u32 i = 0; i < OCCUPANTS; i++) {
		struct occupant *o = &c->hist[i];
		__u64 a = o->from > from ? o->from : from, b = o->to < to ? o->to : to;

		c->overlap[i] = b > a && o->tid && o->tid != tid ? b - a : 0;
	}
	for (__u32 i = 0; i < OCCUPANTS; i++) {
		__u64 sum = 0;

		for (__u32 j = 0; j < OCCUPANTS; j++)
			if (c->hist[j].tid == c->hist[i].tid)
				sum += c->overlap[j];
		if (sum > best_ns) {
			best_ns = sum;
			best = (int)i;
		}
	}
	*ret_ns = best_ns;
	return best;
}

static __noinline int extra_occupant(struct cc_rec_extra *x, struct cpu_state *c, __u64 from,
				     __u64 to)
{
	__u64 best_ns;
	int best;

	if (!x || !c)
		return 0;
	best = occupant_most(c, x->tid, from, to, &best_ns);
	if (best < 0 || best >= OCCUPANTS)
		return 0;
	struct occupant *o = &c->hist[best];
	struct task_struct *t = (struct task_struct *)o->task;

	x->occupant_tid = o->tid;
	x->occupant_tgid = o->tgid;
	x->occupant_ns = best_ns;
	if (BPF_CORE_READ(t, pid) == (int)o->tid) { /* else it is gone and its memory reused */
		BPF_CORE_READ_INTO(&x->occupant_comm, t, comm);
		x->occupant_cgroup = BPF_CORE_READ(t, cgroups, dfl_cgrp, kn, id);
	}
	return 0;
}

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

static __always_inline void extra_sock(struct cc_rec_extra *x, struct file *f, __u64 since)
{
	struct socket *so = (struct socket *)BPF_CORE_READ(f, private_data);
	struct sock *sk = BPF_CORE_READ(so, sk);
	__u16 family, type, proto;
	__u64 key = (__u64)sk;
	struct retrans *r;

	x->fd_kind = CC_FD_SOCK_OTHER;
	if (!sk)
		return;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	type = BPF_CORE_READ(sk, sk_type);
	proto = BPF_CORE_READ(sk, sk_protocol);
	x->fd_id = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	if (family == AF_UNIX) {
		x->fd_kind = CC_FD_SOCK_UNIX;
		return;
	}
	if (family != AF_INET && family != AF_INET6)
		return;
	x->fd_kind = type == SOCK_STREAM ? CC_FD_SOCK_TCP : CC_FD_SOCK_UDP;
	x->sock_ports = (__u32)BPF_CORE_READ(sk, __sk_common.skc_num) << 16 |
			__builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (x->fd_kind != CC_FD_SOCK_TCP || proto != IPPROTO_TCP)
		return;
	x->srtt_us = BPF_CORE_READ((struct tcp_sock *)sk, srtt_us) >> 3;
	r = bpf_map_lookup_elem(&retrans, &key);
	if (r)
		for (int i = 0; i < RETRANS; i++)
			x->retrans += r->ts[i] >= since;
}

static __noinline int extra_fd(struct cc_rec_extra *x, struct task_struct *p, __u32 fd, __u64 since)
{
	struct file *f = fd_file(p, fd);
	struct inode *in;
	__u16 mode;

	if (!x || !f)
		return 0;
	in = BPF_CORE_READ(f, f_inode);
	mode = BPF_CORE_READ(in, i_mode);
	x->fd = (__s32)fd;
	x->fd_id = BPF_CORE_READ(in, i_ino);
	x->fd_dev = BPF_CORE_READ(in, i_sb, s_dev);
	switch (mode & S_IFMT) {
	case S_IFREG:
		x->fd_kind = CC_FD_FILE;
		break;
	case S_IFDIR:
		x->fd_kind = CC_FD_DIR;
		break;
	case S_IFCHR:
		x->fd_kind = CC_FD_CHAR;
		break;
	case S_IFBLK:
		x->fd_kind = CC_FD_BLOCK;
		break;
	case S_IFIFO:
		x->fd_kind = CC_FD_PIPE;
		break;
	case S_IFSOCK:
		extra_sock(x, f, since);
		break;
	default: /* anonymous inodes have no type */
		x->fd_kind = anon_kind(f);
	}
	return 0;
}

/* Is the owner word the tid of a live thread that could hold @p's lock? Resolved in the pid
 * namespace of @p, which must be current. */
static __always_inline void extra_futex_owner(struct cc_rec_extra *x, struct task_struct *p,
					      __u32 word, bool shared)
{
	struct task_struct *t;

	if (!word || !cfg.has_task_kfunc)
		return;
	t = bpf_task_from_vpid((int)word);
	if (!t)
		return;
	if (t->tgid == p->tgid || shared) {
		x->owner = t->pid;
		x->owner_tgid = t->tgid == p->tgid ? 0 : t->tgid;
		x->h.flags |= CC_EX_OWNER;
		BPF_CORE_READ_INTO(&x->owner_comm, t, comm);
	}
	bpf_task_release(t);
}

static __always_inline void extra_owner(struct cc_rec_extra *x, struct task_struct *p,
					const struct task_state *st, struct pt_regs *regs,
					bool current)
{
	struct task_struct *t;

	if (st->klock) {
		t = (struct task_struct *)st->owner_word;
		x->uaddr = st->klock;
		if (!t || st->owner_word == (__u64)p)
			return;
		x->owner = BPF_CORE_READ(t, pid);
		x->owner_tgid = BPF_CORE_READ(t, tgid);
		x->h.flags |= x->owner ? CC_EX_OWNER : 0;
		BPF_CORE_READ_INTO(&x->owner_comm, t, comm);
		return;
	}
	if (st->nr != SYS_FUTEX)
		return;
	x->uaddr = REGS_ARG0(regs);
	if (current)
		extra_futex_owner(x, p, (__u32)st->owner_word, !(REGS_ARG1(regs) & 128));
}

static __always_inline void extra_runq(struct cc_rec_extra *x, struct task_struct *p,
				       const struct task_state *st, struct cpu_state *c, __u64 wake)
{
	__u64 from = st->now & CC_EP_PREEMPT ? st->out : wake, rq, ns;

	if (!from || from >= st->in)
		return;
	if (st->migrated > from) {
		x->h.flags |= CC_EX_MIGRATED;
		from = st->migrated; /* before, it was queued elsewhere */
	}
	if (st->in - from >= cfg.stack_min_ns / 2)
		extra_occupant(x, c, from, st->in);
	throttle_clock(p, c, st->in, &rq, &ns);
	if (rq && rq == st->thr_rq && ns >= st->thr_ns) {
		__u64 queued = st->in - (st->now & CC_EP_PREEMPT ? st->out : wake);

		x->throttled_ns = ns - st->thr_ns < queued ? ns - st->thr_ns : queued;
		x->h.flags |= CC_EX_THROTTLED;
	}
}

/* Tells the EXTRA of the wait [st->out, st->in) that just ended. @current: @p is the current task.
 */
static __noinline int extra_send(struct task_struct *p, struct task_state *st, struct cpu_state *c,
				 bool current)
{
	struct cc_rec_extra *x;
	struct pt_regs *regs;
	bool early;
	__u64 wake;

	if (!st || !c)
		return 0;
	x = bpf_ringbuf_reserve(&events, sizeof(*x), 0);
	if (!x) {
		cnt_add(CC_CNT_DROP_EXTRA, 1);
		return 0;
	}
	__builtin_memset(x, 0, sizeof(*x));
	wake = task_wake(st, st->prev_in, &early);
	rec_init(&x->h, sizeof(*x), CC_REC_EXTRA, CC_EX_EXEC, (__u16)st->nr, st->in);
	if (current)
		x->h.flags |= CC_EX_LATE;
	if (wake && st->wake_timer)
		x->h.flags |= CC_EX_TIMEOUT;
	if (p->thread_info.flags & TIF_SIGPENDING_MASK)
		x->h.flags |= CC_EX_SIGNAL;
	x->tid = p->pid;
	x->seq = st->seq - 1;
	x->fd = -1;
	x->ran_ns = st->ran_ns;
	regs = (struct pt_regs *)bpf_task_pt_regs(p);
	if (st->nr >= 0) {
		x->args[0] = REGS_ARG0(regs);
		x->args[1] = REGS_ARG1(regs);
		x->args[2] = REGS_ARG2(regs);
		x->args[3] = REGS_ARG3(regs);
		x->args[4] = REGS_ARG4(regs);
		x->args[5] = REGS_ARG5(regs);
		if (nr_has_fd(st->nr))
			extra_fd(x, p, (__u32)x->args[0], st->out);
	}
	if (!(st->now & CC_EP_PREEMPT)) {
		extra_owner(x, p, st, regs, current);
		if (wake && st->waker_tid)
			__builtin_memcpy(x->waker_comm, st->waker_comm, CC_COMM_LEN);
	}
	extra_runq(x, p, st, c, wake);
	events_commit(x, st->in);
	return 0;
}

#endif
