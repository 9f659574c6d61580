/* SPDX-License-Identifier: GPL-2.0-only */
/* look: what a wait was about, beyond its system call: the lock and its owner, the file. What is
 * only true while the wait begins is read then; the rest only when a slow wait is told. */
#ifndef CC_BPF_LOOK_H
#define CC_BPF_LOOK_H

#include "look_file.h"
#include "throttle.h"

#define RWSEM_FLAG_WAITERS 2
#define RWSEM_READER_OWNED 1
#define LOCK_FLAG_BITS 7ull

__u64 owner_by_tid(__u32 tid, __u32 local); /* shared.bpf.c */

/* ---- what is only true at the switch-out ------------------------------------------------------
 */

/* @w: a glibc mutex: lock word, count, owner, nusers, kind. */
static __always_inline __u32 mutex_owner(const __u32 w[5])
{
	/* kind: type 0..3, robust 0x10, PI 0x20, protect 0x40, shared 0x80, elision 0x300 */
	return w[4] & ~0x3f3u ? 0 : w[2];
}

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
	return mutex_owner(w);
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

/* ---- what can be looked up at the end -------------------------------------------------------- */

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
