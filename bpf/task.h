/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * task: what we keep of each traced task and each CPU between two events.
 *
 * A task has storage if and only if it is traced: it gets it at fork, by the task iterator, or when
 * its process becomes a target. So "is it ours?" costs one look at the task itself.
 *
 * Whether a task is off the CPU, and whether the pending wake counts, follows from the order of
 * three times alone, so nothing has to be cleared and a lost event heals at the next one:
 *	out > in			off the CPU since out
 *	wake >= out (off)		woken, waits for a CPU
 *	in <= wake < out		woken while it was going to sleep: a racing wake (or of an
 *					aborted sleep: then the real one comes and replaces it)
 *	wake < in			old
 */
#ifndef CC_BPF_TASK_H
#define CC_BPF_TASK_H

#include "maps.h"

#include "arch.h"

/* task_state.now: what the time off the CPU is. The low byte is CC_EP_* of the coming EPISODE. */
#define ST_SLOW 0x100 /* its EXTRA is to be told on resume */
#define ST_SNAP 0x200 /* and a stack was or is to be taken */

struct task_state {
	__u64 out, wake, in;
	__u64 prev_in; /* in of the run before out */
	__u64 lost;    /* CC_LOST(): folded, not told yet */
	__u64 exec_in; /* sum_exec_runtime at in */
	__u64 ran_ns;  /* what it ran in [prev_in, out) */
	__u32 seq;     /* of the next EPISODE */
	__u32 state;   /* task->__state at out */
	__u32 waker_tid, waker_tgid;
	__u32 key;
	__s16 nr;
	__u16 now;        /* CC_EP_* | ST_* */
	__u32 waker_ctx;  /* CC_CTX_* */
	__u32 wake_timer; /* 1: given by the timer of the wait itself */
	__u64 owner_word; /* futex: tid of the owner as user space writes it; klock: task pointer */
	__u64 klock;      /* address of the rwsem; 0: none */
	__u64 thr_rq;     /* cfs_rq at the start of the run-queue part, or THR_MOVED ... */
	__u64 thr_ns;     /* ... and its throttled clock then; moved: for how long until then */
	__u64 migrated;   /* last moved to another CPU while queued */
	__u64 short_since, short_ns;
	__u32 short_cnt;
	__u32 go_none;      /* a Go thread, switched out without a goroutine, and none since */
	__u32 go_slot;      /* of its process in go_known, if that is so there */
	__u32 runs;         /* times it had been put on a CPU by out */
	__u64 goid;         /* of the goroutine it was last told to run; 0: none */
	__u64 go_run, go_g; /* the one it runs and its g; 0: none, or not seen yet */
	__u64 go_last;      /* when that was last seen */
	__u64 go_free;      /* since when it runs none, or another one */
	__u64 go_g0, go_m;  /* its scheduler's g, and its m */
	char waker_comm[CC_COMM_LEN]; /* valid when the wait was slow at the wake */
};

#define THR_MOVED 1 /* no address */

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks __weak SEC(".maps");

/* The state of @p; NULL: it is not traced. Every switch and wake of the host asks. */
static __always_inline struct task_state *task_find(struct task_struct *p)
{
	return target_maybe(p->tgid) ? bpf_task_storage_get(&tasks, p, 0, 0) : NULL;
}

/* The same, made when there is none. */
static __always_inline struct task_state *task_make(struct task_struct *p)
{
	target_note(p->tgid);
	return bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#define OCCUPANTS 16

struct occupant {
	__u64 from, to; /* to 0: until now */
	__u64 task;     /* read only by probe_read, and only believed when its pid still is tid */
	__u32 tid, tgid;
};

struct shm_place {   /* of a shared futex: the same in all processes that have it */
	__u64 inode; /* 0: not known */
	__u32 dev, page;
};

struct cpu_state {
	__u64 clock_off;  /* CLOCK_MONOTONIC - rq clock */
	__u64 slow;       /* the task just switched in has an EXTRA to tell: look at its storage */
	__u64 hrtimer_fn; /* the expired timer's function while it runs; 0: none */
	__u64 timer_fn;
	__u64 in_irq;     /* a device's interrupt handler runs */
	__u64 snap_since; /* budget window */
	__u64 go_stack_since;
	__u32 snap_cnt;
	__u32 go_stack_cnt; /* the same of goroutines */
	__u32 idx;
	struct occupant hist[OCCUPANTS];
	__u64 overlap[OCCUPANTS];     /* scratch of occupant_most() */
	__u64 occupied_ns;            /* by occupant_most() */
	char owner_comm[CC_COMM_LEN]; /* by owner_by_tid() */
	struct shm_place shm;         /* of the wait that is told now: late tier */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_state);
} cpus __weak SEC(".maps");

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

static __always_inline struct cpu_state *this_cpu(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

static __always_inline bool task_off(const struct task_state *st) { return st->out > st->in; }

/* The wake that ended the wait that began at st->out, after a run from @last_in; 0: none seen.
 * *early: it came while going to sleep. */
static __always_inline __u64 task_wake(const struct task_state *st, __u64 last_in, bool *early)
{
	__u64 wake = st->wake;

	*early = false;
	if ((st->now & CC_EP_PREEMPT) || wake < last_in || !wake)
		return 0;
	if (wake < st->out) {
		*early = true;
		return st->out;
	}
	return wake;
}

/* Fills in a TASK record of @t. */
static __always_inline void task_rec(struct cc_rec_task *r, struct task_struct *t, __u16 what,
				     __u64 now)
{
	__u32 level = BPF_CORE_READ(t, thread_pid, level);
	struct upid u = {};

	__builtin_memset(r, 0, sizeof(*r));
	rec_init(&r->h, sizeof(*r), CC_REC_TASK, 0, what, now);
	r->h.flags = (t->flags & PF_KTHREAD ? CC_TF_KTHREAD : 0);
	r->tid = t->pid;
	r->tgid = t->tgid;
	r->start = t->start_boottime;
	if (level) {
		bpf_probe_read_kernel(&u, bpf_core_type_size(struct upid),
				      &t->thread_pid->numbers[level & 31]);
		r->ns_tid = (__u32)u.nr;
	}
	r->cgroup = task_cgroup(t);
	BPF_CORE_READ_INTO(&r->comm, t, comm);
}

/* Tells the waits below --min-block that were only summed. */
static __always_inline void task_short_flush(struct task_struct *p, struct task_state *st,
					     __u64 now)
{
	struct cc_rec_short *r;

	if (!st->short_cnt)
		return;
	r = events_reserve(sizeof(*r));
	if (!r) /* stays summed: the next flush tells it */
		return;
	rec_init(&r->h, sizeof(*r), CC_REC_SHORT, 0, 0, now);
	r->tid = p->pid;
	r->cnt = st->short_cnt;
	r->since = st->short_since;
	r->ns = st->short_ns;
	st->short_cnt = 0;
	st->short_ns = 0;
	events_commit(r, now);
}

/* The number and key argument of the system call @p sleeps in. */
static __always_inline void task_syscall(struct task_struct *p, struct pt_regs *regs, __s16 *ret_nr,
					 __u32 *ret_key)
{
	long nr = REGS_NR(regs);

	*ret_key = 0;
	*ret_nr = -1;
	if (nr < 0)
		return;
	if (p->thread_info.status & TS_COMPAT) { /* other numbers, other arguments */
		*ret_nr = -2;
		return;
	}
	*ret_nr = (__s16)nr;
	if (nr == SYS_FUTEX || nr_has_fd(nr))
		*ret_key = (__u32)REGS_ARG0(regs);
}

#endif
