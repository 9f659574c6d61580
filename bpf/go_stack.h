/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CC_BPF_GO_STACK_H
#define CC_BPF_GO_STACK_H

#include "go.h"

#define GO_STACK_WINDOW_NS 20000000ull

struct go_frame {     /* where a stack begins */
	__u64 lo, hi; /* it lies between them */
	__u64 pc;
	__u64 bp;
	__u64 sp;   /* where a function that has made no frame yet has its return address; 0: it has
		     */
	__u64 seed; /* of keys */
	__u64 told; /* a key that was told; 0: none is known */
};

/* May the stack of a wait that is over after @waited, or will last at least so long, be walked? A
 * busy server has more waits than anybody wants to see the stacks of: those longer than 20 x
 * --stack-min have sixteen times the budget of the others. */
static __always_inline bool go_stack_allowed(__u64 waited, __u64 now)
{
	__u32 max = cfg.go_stack_burst;
	struct cpu_state *c;

	if (!cfg.stack_tier || waited < cfg.stack_min_ns)
		return false;
	c = this_cpu();
	if (!c)
		return false;
	if (now - c->go_stack_since >= GO_STACK_WINDOW_NS) {
		c->go_stack_since = now;
		c->go_stack_cnt = 0;
	}
	if (waited >= 20 * cfg.stack_min_ns)
		max *= 16;
	if (c->go_stack_cnt >= max) {
		cnt_add(CC_CNT_SNAP_BUDGET, 1);
		return false;
	}
	c->go_stack_cnt++;
	return true;
}

/* The key of the stack of a goroutine of the current process, from @top on, told if it is new; 0:
 * not to be had. go_stack.bpf.c */
__u64 go_stack(const struct go_frame *top, __u64 now);

/* Of the goroutine whose g is in @b, which waits: from where it goes on. */
static __always_inline __u64 go_stack_parked(const struct cc_bpf_go *go, __u64 gp,
					     const struct go_words *b, __u64 now)
{
	struct go_frame top = { .seed = go->seed };

	if (go->at.g_sched_bp == GO_NO_FIELD)
		return 0;
	top.lo = go_word(b, gp, go->at.g_stack, GO_G_BYTES);
	top.hi = go_word(b, gp, go->at.g_stack + 8, GO_G_BYTES);
	top.pc = go_word(b, gp, go->at.g_sched_pc, GO_G_BYTES);
	top.bp = go_word(b, gp, go->at.g_sched_bp, GO_G_BYTES);
	return go_stack(&top, now);
}

#endif
