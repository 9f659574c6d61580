// SPDX-License-Identifier: GPL-2.0-only
/* sched: every time off the CPU of a traced task becomes an EPISODE; slow ones get an EXTRA and
 * stacks. sched_waking must be attached before sched_switch. */
#include "extra.h"
#include "go_run.h"
#include "snap_keep.h"
#include "unseen.h"

char LICENSE[] SEC("license") = "GPL";

enum { TIER_LATE = 1, TIER_WAKING = 2, TIER_EAGER = 3 };

/* @prev, which has this CPU until @now, came to it by a switch that was not shown: who was noted
 * had it until then at most. */
static __noinline int occupant_unseen(struct cpu_state *c, struct task_struct *prev, __u64 now)
{
	struct occupant *o = &c->hist[c->idx & (OCCUPANTS - 1)];
	__u64 came = prev->sched_info.last_arrival + c->clock_off;

	if (!o->task || !prev->pid || came <= o->from || came > now)
		came = now;
	o->to = came;
	c->idx++;
	o = &c->hist[c->idx & (OCCUPANTS - 1)];
	o->from = came;
	o->task = (__u64)prev;
	o->tid = prev->pid;
	o->tgid = prev->tgid;
	return 0;
}

/* Notes that @prev had this CPU until @now, and @next has it from then on: the run-queue culprit of
 * someone later. */
static __always_inline void occupant_next(struct cpu_state *c, struct task_struct *prev,
					  struct task_struct *next, __u64 now)
{
	struct occupant *o = &c->hist[c->idx & (OCCUPANTS - 1)];

	if (o->task != (__u64)prev)
		occupant_unseen(c, prev, now);
	else if (prev->pid) /* the idle task has no arrival */
		c->clock_off = o->from - prev->sched_info.last_arrival;
	c->hist[c->idx & (OCCUPANTS - 1)].to = now;
	c->idx++;
	o = &c->hist[c->idx & (OCCUPANTS - 1)];
	o->from = now;
	o->to = 0;
	o->task = (__u64)next;
	o->tid = next->pid;
	o->tgid = next->tgid;
}

/* The rest of a switch-out that only slow waits will need, but that is only true now. */
static __always_inline void out_details(struct task_struct *p, struct task_state *st,
					struct pt_regs *regs)
{
	st->klock = 0;
	st->owner_word = 0;
	if (st->nr == SYS_FUTEX)
		st->owner_word = futex_owner(regs);
	else if (st->state & TASK_UNINTERRUPTIBLE)
		klock_owner(p, st);
	if (cfg.stack_tier == TIER_EAGER)
		snap_keep_user(p, st->out);
}

/* Folds a time of @ns that no EPISODE tells: it becomes UNKNOWN(lost), never CPU. */
static __always_inline void fold_lost(struct task_state *st, __u64 ns)
{
	__u64 cnt = CC_LOST_CNT(st->lost) + 1;

	st->seq++;
	ns += CC_LOST_NS(st->lost);
	st->lost = CC_LOST(cnt < CC_LOST_CNT_MAX ? cnt : CC_LOST_CNT_MAX,
			   ns < CC_LOST_NS_MAX ? ns : CC_LOST_NS_MAX);
}

static __always_inline bool sum_short(struct task_state *st, __u64 now)
{
	if (!cfg.min_block_ns || now - st->out >= cfg.min_block_ns)
		return false;
	if (!st->short_cnt)
		st->short_since = st->out;
	st->short_cnt++;
	st->short_ns += now - st->out;
	return true;
}

static __always_inline void episode_send(struct task_struct *p, struct task_state *st, __u64 wake,
					 __u8 flags, __u64 now)
{
	struct cc_rec_episode *e = events_reserve(sizeof(*e));

	if (!e) {
		cnt_add(CC_CNT_DROP_EPISODE, 1);
		fold_lost(st, now - st->out);
		return;
	}
	st->seq++;
	if (wake)
		flags |= (__u8)(st->waker_ctx << CC_EP_CTX_SHIFT);
	rec_init(&e->h, sizeof(*e), CC_REC_EPISODE, flags, (__u16)st->nr, now);
	e->tid = p->pid;
	e->seq = st->seq - 1;
	e->out = st->out;
	e->wake = wake;
	e->state = st->state;
	e->waker_tid = wake ? st->waker_tid : 0;
	e->waker_tgid = wake ? st->waker_tgid : 0;
	e->key = st->key;
	e->lost = st->lost;
	st->lost = 0;
	events_commit(e, now);
}

/* ---- switches that were not shown, see unseen.h -----------------------------------------------
 */

/* @p is told to be off the CPU and leaves one now: tells the wait that ended unseen. What it was
 * about is no more to be seen, so it has no EXTRA. */
static __noinline int came_unseen(struct task_struct *p, struct task_state *st, struct cpu_state *c,
				  __u64 now)
{
	struct unseen u = { .out = st->out,
			    .in = st->in,
			    .now = now,
			    .noted = p->sched_info.last_arrival + c->clock_off,
			    .runs = st->runs,
			    .runs_now = (__u32)p->sched_info.pcount };
	bool early;
	__u64 in;

	u.wake = task_wake(st, st->in, &early);
	in = unseen_in(&u);
	cnt_add(CC_CNT_UNSEEN, 1);
	if (in) {
		cnt_add(CC_CNT_SCHED_EVENTS, 1);
		task_short_flush(p, st, in);
		episode_send(p, st, u.wake, (__u8)st->now | (early ? CC_EP_EARLY_WAKE : 0), in);
	} else {
		fold_lost(st, now - st->out);
		in = now - 1;
	}
	st->exec_in += st->ran_ns; /* as it was off */
	st->prev_in = st->in;
	st->in = in;
	return 0;
}

/* How @t went to sleep last: that is over, and only the load average still has it. */
static __always_inline __u32 slept_as(struct task_struct *t)
{
	return BPF_CORE_READ_BITFIELD(t, sched_contributes_to_load) ? TASK_UNINTERRUPTIBLE
								    : TASK_INTERRUPTIBLE;
}

/* @p is told to be on a CPU and comes to one now: finds the wait that began unseen. Its registers
 * are still those of then. Says whether it has. */
static __noinline int left_unseen(struct task_struct *p, struct task_state *st, struct cpu_state *c,
				  __u64 now)
{
	struct unseen u = { .in = st->in,
			    .now = now,
			    .wake = st->wake,
			    .noted = p->sched_info.last_queued + c->clock_off,
			    .ran = p->se.sum_exec_runtime - st->exec_in,
			    .runs = st->runs,
			    .runs_now = (__u32)p->sched_info.pcount };
	bool preempt;
	__u64 out = unseen_out(&u, &preempt);

	cnt_add(CC_CNT_UNSEEN, 1);
	if (!out) {
		fold_lost(st, now - st->in);
		return 0;
	}
	st->out = out;
	st->runs = u.runs_now;
	st->ran_ns = u.ran;
	st->state = 0;
	st->now = CC_EP_PREEMPT;
	if (!preempt) {
		st->now = CC_EP_CLAMPED; /* it left a little later, as interrupts took their part */
		st->state = slept_as(p);
	}
	st->klock = 0;
	st->owner_word = 0;
	st->thr_rq = 0;
	task_syscall(p, (struct pt_regs *)bpf_task_pt_regs(p), &st->nr, &st->key);
	return 1;
}

static __always_inline void task_out(struct task_struct *p, struct cpu_state *c, __u32 state,
				     bool preempt, __u64 now)
{
	struct task_state *st = task_find(p);
	struct pt_regs *regs;

	if (!st)
		return;
	if (task_off(st)) /* so it was switched in meanwhile */
		came_unseen(p, st, c, now);
	go_look(p, st, now);
	regs = (struct pt_regs *)bpf_task_pt_regs(p);
	st->out = now;
	st->runs = (__u32)p->sched_info.pcount;
	st->state = state;
	st->ran_ns = p->se.sum_exec_runtime - st->exec_in;
	task_syscall(p, regs, &st->nr, &st->key);
	if (preempt || !state) {
		st->now = CC_EP_PREEMPT;
		throttle_clock(p, c, now, &st->thr_rq, &st->thr_ns);
		return;
	}
	st->now = 0;
	out_details(p, st, regs);
}

/* Is the wait that just ended worth an EXTRA? Also when the run before it hid time: on the CPU by
 * the wall, but not by the scheduler's account (steal, interrupts). A thread that waits for
 * goroutines to run does so in nobody's time; once woken it may keep one waiting. */
static __always_inline bool is_slow(const struct task_state *st, __u64 wake, __u64 now)
{
	__u64 wall = st->out - st->in, since = st->go_none && wake ? wake : st->out;

	if (now - since >= cfg.stack_min_ns)
		return true;
	return st->in && wall > st->ran_ns && wall - st->ran_ns >= cfg.stolen_min_ns;
}

static __always_inline void slow_in(struct task_struct *p, struct task_state *st,
				    struct cpu_state *c, __u64 wake, __u64 now)
{
	__u64 blocked = (wake ? wake : now) - st->out;
	bool snap = !(st->now & CC_EP_PREEMPT) && !st->go_none && blocked >= cfg.stack_min_ns;

	if (cfg.stack_tier == TIER_LATE) { /* told on resume, see stack.bpf.c */
		st->now |= ST_SLOW | (snap ? ST_SNAP : 0);
		c->slow = 1;
		return;
	}
	if (snap && (cfg.stack_tier == TIER_WAKING || cfg.stack_tier == TIER_EAGER) &&
	    snap_allowed(c, blocked, now)) {
		snap_send_kept(p, st->seq - 1, st->out, now);
		snap_spent(c, true);
	}
	extra_send(p, st, c, false);
}

/* When a task whose wake was not shown to us was queued, by the scheduler's own note; the waker is
 * not known. 0: no such note within the wait. */
static __always_inline __u64 wake_unseen(struct task_struct *p, struct task_state *st,
					 struct cpu_state *c, __u64 now)
{
	__u64 queued = p->sched_info.last_queued + c->clock_off;

	if (!p->sched_info.last_queued || queued <= st->out || queued > now)
		return 0;
	st->waker_tid = 0;
	st->waker_tgid = 0;
	st->waker_ctx = CC_CTX_UNKNOWN;
	st->wake_timer = 0;
	st->wake = queued;
	return queued;
}

static __always_inline void task_in(struct task_struct *p, struct cpu_state *c, __u64 now)
{
	struct task_state *st = task_find(p);
	__u64 wake, ran_from = p->se.sum_exec_runtime;
	bool early, slow;
	__u8 flags;

	if (!st)
		return;
	/* it went off unseen, or before attach */
	if (!task_off(st) && !(st->in && left_unseen(p, st, c, now))) {
		st->exec_in = ran_from;
		st->in = now;
		return;
	}
	st->exec_in = ran_from;
	wake = task_wake(st, st->in, &early);
	if (!wake && !(st->now & CC_EP_PREEMPT))
		wake = wake_unseen(p, st, c, now);
	flags = (__u8)st->now | (early ? CC_EP_EARLY_WAKE : 0);
	if (now < st->out || wake > now) { /* clocks of two CPUs may differ by some ns */
		now = now < st->out ? st->out : now;
		wake = wake > now ? now : wake;
		flags |= CC_EP_CLAMPED;
		cnt_add(CC_CNT_CLAMPED, 1);
	}
	cnt_add(CC_CNT_SCHED_EVENTS, 1);
	slow = is_slow(st, wake, now);
	if (!sum_short(st, now)) {
		task_short_flush(p, st, now);
		episode_send(p, st, wake, flags, now);
	} else {
		slow = false;
	}
	st->prev_in = st->in;
	st->in = now;
	if (slow)
		slow_in(p, st, c, wake, now);
}

SEC("tp_btf/sched_switch")
int sched_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct cpu_state *c = this_cpu();
	__u64 now = bpf_ktime_get_ns();
	__u32 state;

	if (!c)
		return 0;
	/* on kernels before 5.18 the task's own state, which a racing wake may have changed */
	if (cfg.has_prev_state)
		state = (__u32)ctx[3];
	else
		state = prev->__state;
	occupant_next(c, prev, next, now);
	c->slow = 0;
	if (prev->pid)
		task_out(prev, c, state, ctx[0], now);
	if (next->pid)
		task_in(next, c, now);
	return 0;
}

/* ---- wakes ------------------------------------------------------------------------------------
 */

#define ENTRY_CODE_MAX 256             /* bytes; asm_exc_page_fault has far less */
#define KSOFTIRQ 0x71726974666f736bull /* "ksoftirq", the first 8 bytes of ksoftirqd's name */

/* Is a page fault of user code going on, and not an interrupt of it? Told by the outermost function
 * of the kernel: few wakes leave it open, so that the price of a stack does not matter. */
static __noinline int is_page_fault(void *ctx)
{
	__u64 ip = 0, fn = cfg.fn[CC_BPF_FN_asm_exc_page_fault];
	__u32 slot = SNAP_SLOT_WAKING, at;
	struct snap_buf *b = bpf_map_lookup_elem(&snap_bufs, &slot);
	long bytes;

	if (!b || !fn)
		return 0;
	bytes = bpf_get_stack(ctx, b->room, SNAP_FRAME_BYTES, 0);
	if (bytes < (long)sizeof(ip))
		return 0;
	at = (__u32)bytes - sizeof(ip);
	if (at > SNAP_FRAME_BYTES)
		return 0;
	bpf_probe_read_kernel(&ip, sizeof(ip), b->room + at);
	return ip >= fn && ip < fn + ENTRY_CODE_MAX;
}

/*
 * Was the wake given by an interrupt, on top of @cur, who is not to blame? Timers and devices are
 * known by their tracepoints. Else, what interrupts kernel code runs on a stack of its own, so the
 * program's context lies off the task's: softirqs as a rule, seldom an IPI. That costs nothing,
 * while a program at entry and exit of softirqs would run for every packet of the host. What
 * interrupts user code runs on the task's own stack (arch/x86/include/asm/irq_stack.h:
 * run_irq_on_irqstack_cond), and so does its softirq. But then no syscall is going on, and from
 * user code a task wakes others only when it exits, or, kernel locks and pages only, from a page
 * fault. CC_CTX_TASK: no interrupt.
 */
static __always_inline __u32 interrupt_context(__u64 *ctx, struct task_struct *cur,
					       const struct cpu_state *c,
					       const struct task_state *wakee)
{
	struct pt_regs *regs;

	if (c->hrtimer_fn || c->in_irq)
		return CC_CTX_HARDIRQ;
	if ((__u64)ctx - (__u64)cur->stack >= THREAD_SIZE)
		return CC_CTX_SOFTIRQ;
	if (cur->flags & (PF_KTHREAD | PF_EXITING))
		return CC_CTX_TASK;
	regs = (struct pt_regs *)bpf_task_pt_regs(cur);
	if (REGS_NR(regs) >= 0)
		return CC_CTX_TASK;
	if (wakee->state & TASK_UNINTERRUPTIBLE && is_page_fault(ctx))
		return CC_CTX_TASK;
	return CC_CTX_IRQ;
}

static __always_inline __u32 waker_context(__u64 *ctx, struct task_struct *cur,
					   const struct cpu_state *c,
					   const struct task_state *wakee)
{
	__u32 context;

	if (!cur->pid)
		return CC_CTX_IDLE;
	if (cur->flags & PF_KTHREAD && *(__u64 *)cur->comm == KSOFTIRQ)
		return CC_CTX_KSOFTIRQD;
	context = interrupt_context(ctx, cur, c, wakee);
	return context == CC_CTX_TASK && cur->flags & PF_KTHREAD ? CC_CTX_KTHREAD : context;
}

/* Has the running timer function woken its own sleeper, so that the wait timed out? */
static __always_inline bool by_wait_timer(const struct cpu_state *c)
{
	return (c->hrtimer_fn && c->hrtimer_fn == cfg.fn[CC_BPF_FN_hrtimer_wakeup]) ||
	       (c->timer_fn && c->timer_fn == cfg.fn[CC_BPF_FN_process_timeout]);
}

/* A second wake of a wait: the run between was not seen. Tells it, so that time is not blamed. */
static __always_inline void wake_send(struct task_struct *p, struct task_state *st,
				      struct task_struct *cur, __u32 context, __u64 now)
{
	struct cc_rec_wake *w = events_reserve(sizeof(*w));

	if (!w) {
		rec_lost(CC_REC_WAKE, sizeof(*w), now);
		return;
	}
	rec_init(&w->h, sizeof(*w), CC_REC_WAKE, (__u8)context, 0, now);
	w->tid = p->pid;
	w->waker_tid = cur->pid;
	w->waker_tgid = cur->tgid;
	w->key = st->nr == SYS_FUTEX ? st->key : 0;
	events_commit(w, now);
}

/* Names a waker outside the targets, once. Kernel threads are among them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);   /* tid */
	__type(value, __u64); /* start time */
} named SEC(".maps");

static __noinline int name_waker(struct task_struct *t, __u64 now)
{
	__u32 tid = t->pid;
	__u64 start = t->start_boottime, *known;
	struct cc_rec_task *r;

	known = bpf_map_lookup_elem(&named, &tid);
	if (known && *known == start)
		return 0;
	r = bpf_ringbuf_reserve(&control, sizeof(*r), 0);
	if (!r) {
		cnt_add(CC_CNT_DROP_TASK, 1);
		rec_lost(CC_REC_TASK, sizeof(*r), now);
		return 0;
	}
	task_rec(r, t, CC_TASK_NAMED, now);
	control_commit(r, now);
	bpf_map_update_elem(&named, &tid, &start, BPF_ANY);
	return 0;
}

/* The wait was slow already: who wakes it deserves a stack, and its name. */
static __always_inline void slow_wake(__u64 *ctx, struct task_struct *p, struct task_state *st,
				      struct task_struct *cur, struct cpu_state *c, __u64 now)
{
	__u64 waited = now - st->out;
	struct snap_who who = { .tid = p->pid, .seq = st->seq, .kind = CC_SNAP_WAKER };
	bool same_mm = cur->mm && cur->mm == p->mm;

	BPF_CORE_READ_INTO(&st->waker_comm, cur, comm);
	if (cfg.stack_tier < TIER_LATE || cfg.stack_tier > TIER_EAGER)
		return;
	if (cfg.stack_tier == TIER_WAKING && same_mm)
		snap_keep_user(p, st->out);
	if (cfg.stack_tier != TIER_LATE)
		snap_keep_kernel(p, st->out);
	/* a timer of the wait itself needs no stack to be told */
	if (st->wake_timer || st->go_none || !snap_allowed(c, waited, now))
		return;
	who.user = is_target(cur->tgid);
	snap_spent(c, snap_current(ctx, cur, SNAP_SLOT_WAKING, &who, now));
}

SEC("tp_btf/sched_waking")
int sched_waking(__u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0], *cur;
	struct task_state *st = task_find(p);
	struct cpu_state *c;
	__u32 context;
	__u64 now;
	bool off;

	if (!st)
		return 0;
	cur = bpf_get_current_task_btf();
	if (p == cur) /* a task that wakes itself has not slept */
		return 0;
	c = this_cpu();
	if (!c)
		return 0;
	now = bpf_ktime_get_ns();
	off = task_off(st);
	if (!off)
		cnt_add(CC_CNT_WAKE_RUNNING, 1);
	else if (st->now & CC_EP_PREEMPT)
		return 0; /* preempted on its way to sleep: it was runnable all the time */
	context = waker_context(ctx, cur, c, st);
	if (off && st->wake >= st->out) {
		wake_send(p, st, cur, context, now);
		return 0;
	}
	st->waker_tid = cur->pid;
	st->waker_tgid = cur->tgid;
	st->waker_ctx = context;
	st->wake_timer = by_wait_timer(c);
	throttle_clock(p, c, now, &st->thr_rq, &st->thr_ns);
	if (off && now - st->out >= cfg.stack_min_ns) {
		/* whose doing this is: the goroutine may have come to run unseen, and end so */
		if (context == CC_CTX_TASK && !st->go_none)
			go_look_current(now);
		slow_wake(ctx, p, st, cur, c, now);
	}
	st->wake = now; /* last: the switch-out on another CPU may look at once */
	if (context == CC_CTX_KTHREAD || (context == CC_CTX_TASK && cur->tgid != p->tgid))
		name_waker(cur, now);
	return 0;
}
