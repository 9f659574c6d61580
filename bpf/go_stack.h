/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CC_BPF_GO_STACK_H
#define CC_BPF_GO_STACK_H

#include "go.h"

struct go_frame {     /* where a stack begins */
	__u64 lo, hi; /* of the goroutine's stack */
	__u64 pc;
	__u64 bp;
	__u64 sp;   /* where a function that has made no frame yet has its return address; 0: it has
		     */
	__u64 seed; /* of keys */
};

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
