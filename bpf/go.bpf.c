// SPDX-License-Identifier: GPL-2.0-only
/* go: uprobes on the Go runtime: when goroutines park, are made ready, yield, are made and end.
 * Attached to one process each; entry side only, on instructions that the kernel emulates. */
#include "go_state.h"

char LICENSE[] SEC("license") = "GPL";

#define GO_DEAD 6 /* g.atomicstatus: also of one that is being made */

/* gopark(unlockf, lock, reason, ...) */
SEC("uprobe")
int go_gopark(struct pt_regs *ctx)
{
	struct go_here h;

	if (go_here(&h, ctx, CC_BPF_GO_AT_PARK))
		go_park(&h, ctx);
	return 0;
}

/* ready(gp, ...): by another goroutine, or by the scheduler when a timer fires */
SEC("uprobe")
int go_ready(struct pt_regs *ctx)
{
	struct go_here h;

	if (go_here(&h, ctx, CC_BPF_GO_AT_READY))
		go_wake(&h, GO_ARG0(ctx));
	return 0;
}

/* Gosched(), by the goroutine itself */
SEC("uprobe")
int go_gosched(struct pt_regs *ctx)
{
	struct go_here h;

	if (go_here(&h, ctx, CC_BPF_GO_AT_GOSCHED))
		go_yield(&h, h.g);
	return 0;
}

/* goschedImpl(gp, ...), gopreempt_m(gp), goschedguarded_m(gp), goyield_m(gp), preemptPark(gp), on
 * g0, whose stack never grows */
SEC("uprobe")
int go_sched(struct pt_regs *ctx)
{
	struct go_here h;

	if (go_here(&h, ctx, CC_BPF_GO_AT_SCHED))
		go_yield(&h, GO_ARG0(ctx));
	return 0;
}

/* isSystemGoroutine(gp, ...): newproc1 asks it of the goroutine it has just made, goexit0 of the
 * one that ends, which still is the thread's own. Both are dead then. */
SEC("uprobe")
int go_system(struct pt_regs *ctx)
{
	__u64 gp = GO_ARG0(ctx), curg;
	struct go_here h;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_SYSTEM) ||
	    (__u32)go_read(gp, h.go->at.g_atomicstatus) != GO_DEAD)
		return 0;
	curg = go_curg(&h, h.g);
	if (curg == gp)
		go_dead(&h, gp);
	else
		go_born(&h, curg, gp);
	return 0;
}

/* casgstatus(gp, old, new): tier full, in place of ready, isSystemGoroutine and those that yield.
 * Shows also when netpoll made one ready, and when exactly one runs. What waits without gopark
 * (garbage collector, stopped world) is no wait here, as in tier waits. */
#define CHANGE(from, to) ((from) << 8 | (to))
enum { G_RUNNABLE = 1, G_RUNNING = 2, G_WAITING = 4 };

SEC("uprobe")
int go_casgstatus(struct pt_regs *ctx)
{
	__u64 gp = GO_ARG0(ctx);
	struct go_here h;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_STATUS))
		return 0;
	switch (CHANGE(GO_ARG1(ctx) & 0xff, GO_ARG2(ctx) & 0xff)) {
	case CHANGE(G_WAITING, G_RUNNABLE):
		go_wake(&h, gp);
		break;
	case CHANGE(G_RUNNABLE, G_RUNNING):
		go_ends(h.st, h.now);
		go_runs_here(&h, gp);
		break;
	case CHANGE(G_RUNNING, G_RUNNABLE):
		go_yield(&h, gp);
		break;
	case CHANGE(GO_DEAD, G_RUNNABLE):
		go_born(&h, go_curg(&h, h.g), gp);
		break;
	case CHANGE(G_RUNNING, GO_DEAD):
		go_dead(&h, gp);
		break;
	}
	return 0;
}

#define SEMA_MUTEX_PROFILE 2 /* runtime/sema.go: semaMutexProfile */

/* semacquire1(addr, lifo, profile, ...): which mutex, wait group or semaphore a wait is for */
SEC("uprobe")
int go_semacquire1(struct pt_regs *ctx)
{
	struct cc_bpf_go_state *s;
	struct go_here h;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_SEMA))
		return 0;
	s = go_runs_here(&h, h.g);
	if (!s)
		return 0;
	s->sema = GO_ARG0(ctx);
	s->sema_mutex = (GO_ARG2(ctx) & SEMA_MUTEX_PROFILE) != 0;
	return 0;
}
