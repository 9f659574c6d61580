// SPDX-License-Identifier: GPL-2.0-only
/*
 * iter: one OPEN_TASK for each traced task, when user space reads the iterator: at attach, at each
 * refresh and at stop. A traced task without storage (before attach, or its storage could not be
 * had at fork) gets it here. With iter_ctl.snap_left, sleeping tasks get a SNAP before their
 * OPEN_TASK.
 *
 * The kernel shows an element again when its output did not fit, so nothing here may count twice.
 */
#include "layout.h"
#include "look.h"
#include "snap.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cc_bpf_iter_ctl);
} iter_ctl SEC(".maps");

/* A sleepable program may be preempted: its buffer is not per CPU. User space reads one iterator at
 * a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct snap_buf);
} iter_buf SEC(".maps");

/*
 * State of a task that was there before us. It was put on a CPU at last_arrival and since then ran
 * what sum_exec_runtime grew: so it went off then. A probe that races with this writes later times,
 * and those win by order alone (see task.h).
 */
static __always_inline void task_seed(struct task_struct *p, struct task_state *st, __u64 off,
				      __u64 now)
{
	__u64 arrival = p->sched_info.last_arrival + off, out;
	__u64 queued = p->sched_info.last_queued;

	st->exec_in = p->se.prev_sum_exec_runtime;
	st->runs = (__u32)p->sched_info.pcount;
	if (p->on_cpu) {
		st->runs--;
		st->in = arrival && arrival < now ? arrival : now;
		return;
	}
	out = arrival + (p->se.sum_exec_runtime - p->se.prev_sum_exec_runtime);
	st->state = p->__state;
	st->now = CC_EP_SEEDED;
	if (!st->state) {
		st->now |= CC_EP_PREEMPT;
		if (queued)
			out = queued + off;
	}
	task_syscall(p, (struct pt_regs *)bpf_task_pt_regs(p), &st->nr, &st->key);
	st->out = off && out < now ? out : now;
}

static __always_inline void open_details(struct cc_rec_open_task *r, struct task_struct *p,
					 const struct task_state *st)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);
	struct owner_info o;
	struct fd_info f;

	if (st->nr >= 0) {
		r->args[0] = REGS_ARG0(regs);
		r->args[1] = REGS_ARG1(regs);
		r->args[2] = REGS_ARG2(regs);
		r->args[3] = REGS_ARG3(regs);
		r->args[4] = REGS_ARG4(regs);
		r->args[5] = REGS_ARG5(regs);
	}
	if (st->klock)
		r->uaddr = st->klock;
	else if (st->nr == SYS_FUTEX)
		r->uaddr = r->args[0];
	if (r->uaddr) {
		owner_look(&o, p, st, !(r->args[1] & FUTEX_PRIVATE), false);
		r->owner = o.tid;
		r->owner_tgid = o.tgid;
	}
	if (nr_has_fd(st->nr)) {
		fd_look(&f, p, (__u32)r->args[0], st->out);
		r->fd = f.kind ? (__s32)r->args[0] : -1;
		r->fd_kind = f.kind;
		r->fd_id = f.id;
		r->sock_ports = f.ports;
		r->srtt_us = f.srtt_us;
		r->retrans = f.retrans;
	}
}

static __always_inline void open_fill(struct cc_rec_open_task *r, struct task_struct *p,
				      const struct task_state *st, __u32 flags, __u64 now)
{
	bool off = task_off(st), early;
	__u64 wake = off ? task_wake(st, st->in, &early) : 0;

	__builtin_memset(r, 0, sizeof(*r));
	rec_init(&r->h, sizeof(*r), CC_REC_OPEN_TASK, (__u8)flags, (__u16)-2, now);
	r->tid = p->pid;
	r->tgid = p->tgid;
	r->start = p->start_boottime;
	r->state = p->__state;
	/* a racing wake of a task that still sleeps was that of an aborted sleep */
	r->wake = r->state && wake == st->out ? 0 : wake;
	r->seq = st->seq;
	r->parent = p->real_parent->tgid;
	r->fd = -1;
	r->lost = st->lost;
	r->cgroup = task_cgroup(p);
	BPF_CORE_READ_INTO(&r->comm, p, comm);
	if (!off) {
		r->last_in = st->in;
		r->h.ts = r->last_in > now ? r->last_in : now;
		return;
	}
	r->out = st->out;
	/* on another CPU it goes on meanwhile: what is told is of now or before */
	now = r->out > now ? r->out : now;
	r->h.ts = r->wake > now ? r->wake : now;
	r->key = st->key;
	r->h.aux = (__u16)st->nr;
	open_details(r, p, st);
}

/* The stacks of @p, which sleeps and so keeps them as they are. Sleepable: faults pages in. */
static __noinline int open_snap(struct seq_file *seq, struct task_struct *p, __u32 seq_nr,
				__u64 now)
{
	__u32 zero = 0, at = sizeof(struct cc_rec_snap), want, got = 0, size;
	struct snap_buf *b = bpf_map_lookup_elem(&iter_buf, &zero);
	struct cc_rec_snap *s;
	long frames;

	if (!b)
		return 0;
	s = (struct cc_rec_snap *)b->room;
	__builtin_memset(s, 0, sizeof(*s));
	frames = bpf_get_task_stack(p, b->room + at, SNAP_FRAME_BYTES, 0);
	if (frames < 0)
		frames = 0;
	if (frames > SNAP_FRAME_BYTES)
		frames = SNAP_FRAME_BYTES;
	snap_regs(s, p, (struct pt_regs *)bpf_task_pt_regs(p));
	s->layout = code_look(s, p);
	want = cfg.snap_bytes;
	if (s->stack_top && s->stack_top - s->sp < want)
		want = (__u32)(s->stack_top - s->sp) & ~7u;
	if (want > CC_SNAP_MAX)
		want = CC_SNAP_MAX;
	at += (__u32)frames;
	for (int i = 0; i <= (int)(CC_SNAP_MAX / SNAP_PAGE); i++) { /* it reads all or nothing */
		__u32 step = SNAP_PAGE - ((__u32)(s->sp + got) & (SNAP_PAGE - 1));

		if (got >= want || got > CC_SNAP_MAX || at > SNAP_BYTES_AT)
			break;
		if (step > want - got)
			step = want - got;
		if (step > SNAP_PAGE ||
		    bpf_copy_from_user_task(b->room + at + got, step, (void *)(s->sp + got), p, 0))
			break;
		got += step;
	}
	size = at + (got & ~7u);
	rec_init(&s->h, (__u16)size, CC_REC_SNAP, 0, CC_SNAP_OPEN, now);
	s->tid = p->pid;
	s->seq = seq_nr;
	s->kframe_cnt = (__u32)frames / 8;
	s->byte_cnt = got & ~7u;
	if (size > sizeof(*b))
		return 0;
	bpf_seq_write(seq, b, size);
	return 0;
}

/* A glibc mutex that @p sleeps on since before us: nobody looked at its owner when it went to
 * sleep. Sleepable. */
static __always_inline void open_owner(struct task_struct *p, struct task_state *st)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);
	__u32 op = (__u32)REGS_ARG1(regs) & FUTEX_CMD_MASK, w[5];

	if (!(st->now & CC_EP_SEEDED) || st->nr != SYS_FUTEX || st->owner_word || !p->__state ||
	    (op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET) || (__u32)REGS_ARG2(regs) != 2)
		return;
	if (!bpf_copy_from_user_task(w, sizeof(w), (void *)REGS_ARG0(regs), p, 0))
		st->owner_word = mutex_owner(w);
}

/* Finds or makes the storage of a traced task; NULL: not ours. */
static __always_inline struct task_state *open_state(struct task_struct *p, __u32 *flags, __u64 now)
{
	const struct cc_bpf_target *t = target_of(p->tgid);
	struct cpu_state *c = this_cpu();
	struct task_state *st;

	if (!t || p->exit_state)
		return NULL;
	*flags |= CC_TF_TRACED | t->flags;
	st = task_make(p);
	if (!st) {
		cnt_add(CC_CNT_STORAGE_FAIL, 1);
		return NULL;
	}
	if (!st->in && !st->out)
		task_seed(p, st, c ? c->clock_off : 0, now);
	return st;
}

static __always_inline int open_task_one(struct bpf_iter__task *ctx, bool sleepable)
{
	__u32 zero = 0, flags;
	struct cc_bpf_iter_ctl *ctl = bpf_map_lookup_elem(&iter_ctl, &zero);
	struct task_struct *p = ctx->task;
	__u64 now = bpf_ktime_get_ns();
	struct cc_rec_open_task r;
	struct task_state *st;

	if (!p || !ctl)
		return 0;
	flags = ctl->flags;
	st = open_state(p, &flags, now);
	if (!st)
		return 0;
	task_short_flush(p, st, now);
	if (sleepable)
		open_owner(p, st);
	open_fill(&r, p, st, flags, now);
	if (sleepable && ctl->snap_left && r.out && r.state && p->mm &&
	    now - r.out >= ctl->snap_min_ns) {
		ctl->snap_left--;
		open_snap(ctx->meta->seq, p, r.seq, now);
	}
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

SEC("iter.s/task")
int open_task_sleepable(struct bpf_iter__task *ctx) { return open_task_one(ctx, true); }

SEC("iter/task")
int open_task(struct bpf_iter__task *ctx) { return open_task_one(ctx, false); }
