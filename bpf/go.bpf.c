// SPDX-License-Identifier: GPL-2.0-only
/* go: uprobes on the Go runtime: when goroutines park, are made ready, yield, are made and end.
 * Attached to one process each; entry side only, on instructions that the kernel emulates. */
#include "go_state.h"

char LICENSE[] SEC("license") = "GPL";

/* gopark(unlockf, lock, reason, ...) */
SEC("uprobe")
int go_gopark(struct pt_regs *ctx)
{
	struct go_here h;

	if (go_here(&h, ctx, CC_BPF_GO_AT_PARK))
		go_park(&h, ctx);
	return 0;
}

/* A goroutine that has not run yet has not even so many bytes on its stack. */
#define NEW_BYTES 64

/* runqput(p, gp, next), where the above cannot be probed each: gp was made by the running
 * goroutine, or ready by it, or by the scheduler when a timer fired; or it gave its thread up to
 * another one. */
SEC("uprobe")
int go_runnable(struct pt_regs *ctx)
{
	__u64 gp = GO_ARG1(ctx);
	struct cc_bpf_go_state *s;
	struct go_words g;
	struct go_here h;
	__u64 goid;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_RUNNABLE))
		return 0;
	goid = go_current(&h, &g);
	if (!go_read_words(&g, gp, GO_G_BYTES))
		return 0;
	s = go_state(h.cur->tgid, gp);
	if (go_word(&g, gp, h.go->at.g_stack + 8, GO_G_BYTES) -
		    go_word(&g, gp, h.go->at.g_sched_sp, GO_G_BYTES) <=
	    NEW_BYTES)
		go_born(&h, s, gp, goid);
	else if (!s || s->goid != go_word(&g, gp, h.go->at.g_goid, GO_G_BYTES))
		return 0;
	else if (s->state == CC_BPF_GO_PARKED)
		go_wake(&h, s, goid, gp, NULL, &g);
	else if (s->state == CC_BPF_GO_RUNS)
		go_yield(&h, gp);
	return 0;
}

/* newproc() is about to call runqput(p, gp, next): the running goroutine made gp. */
SEC("uprobe")
int go_made(struct pt_regs *ctx)
{
	__u64 gp = GO_ARG1(ctx);
	struct go_words g;
	struct go_here h;

	if (go_here(&h, ctx, CC_BPF_GO_AT_MADE))
		go_born(&h, go_state(h.cur->tgid, gp), gp, go_current(&h, &g));
	return 0;
}

/* ready(gp, ...), or what ends in it: by the running goroutine, or by the scheduler when a timer
 * fired */
SEC("uprobe")
int go_ready(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), gp = GO_ARG0(ctx), goid;
	struct go_given x = {};
	struct cc_bpf_go_state *s;
	struct go_words g;
	struct go_here h;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_READY))
		return 0;
	if (CC_BPF_GO_COOKIE_NOP(cookie))
		cnt_add(CC_BPF_CNT_GO_NOPS, 1);
	if (CC_BPF_GO_COOKIE_BY(cookie) == CC_BPF_GO_BY_SEND) {
		x.chan = gp;
		x.sg = GO_ARG1(ctx);
		gp = go_read(x.sg, h.go->at.sudog_g);
	} else if (CC_BPF_GO_COOKIE_BY(cookie) == CC_BPF_GO_BY_SUDOG) {
		gp = go_read(gp, h.go->at.sudog_g);
	}
	goid = go_current(&h, &g);
	s = go_state(h.cur->tgid, gp);
	if (s && go_read_words(&g, gp, GO_G_BYTES) &&
	    s->goid == go_word(&g, gp, h.go->at.g_goid, GO_G_BYTES))
		go_wake(&h, s, goid, gp, x.chan ? &x : NULL, &g);
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

/* gdestroy(gp), until 1.22 goexit0(gp): on the stack of the scheduler of the thread that gp ran on
 */
SEC("uprobe")
int go_end(struct pt_regs *ctx)
{
	struct go_here h;

	if (go_here(&h, ctx, CC_BPF_GO_AT_END))
		go_dead(&h, GO_ARG0(ctx));
	return 0;
}

/* corostart(), by a coroutine, which comes by no queue: it was made at some time, and runs since
 * now. */
SEC("uprobe")
int go_coro(struct pt_regs *ctx)
{
	struct go_here h;

	if (go_here(&h, ctx, CC_BPF_GO_AT_CORO)) {
		go_born(&h, go_state(h.cur->tgid, h.g), h.g, 0);
		go_runs_here(&h, h.g);
	}
	return 0;
}

/* casgstatus(gp, old, new): tier full, in place of runqput and of those that yield or end. Shows
 * also when netpoll made one ready, and when exactly one runs. What waits without gopark
 * (garbage collector, stopped world) is no wait here, as in tier waits. */
#define GO_DEAD 6 /* also of one that is being made */
#define CHANGE(from, to) ((from) << 8 | (to))
enum { G_RUNNABLE = 1, G_RUNNING = 2, G_WAITING = 4 };

SEC("uprobe")
int go_casgstatus(struct pt_regs *ctx)
{
	__u64 gp = GO_ARG0(ctx);
	struct cc_bpf_go_state *s;
	struct go_words g;
	struct go_here h;
	__u64 goid;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_STATUS))
		return 0;
	s = go_state(h.cur->tgid, gp);
	switch (CHANGE(GO_ARG1(ctx) & 0xff, GO_ARG2(ctx) & 0xff)) {
	case CHANGE(G_WAITING, G_RUNNABLE):
		goid = go_current(&h, &g);
		if (s && go_read_words(&g, gp, GO_G_BYTES))
			go_wake(&h, s, goid, gp, NULL, &g);
		break;
	case CHANGE(G_RUNNABLE, G_RUNNING):
		go_ends(h.st, h.now);
		go_runs_here(&h, gp);
		break;
	case CHANGE(G_RUNNING, G_RUNNABLE):
		go_yield(&h, gp);
		break;
	case CHANGE(GO_DEAD, G_RUNNABLE):
		go_born(&h, s, gp, go_current(&h, &g));
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
