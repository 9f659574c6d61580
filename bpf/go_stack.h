/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CC_BPF_GO_STACK_H
#define CC_BPF_GO_STACK_H

#include "go.h"

struct go_frame { /* where a stack begins */
	__u64 pc;
	__u64 ret; /* return address of a function that has made no frame yet; 0: it has */
	__u64 bp;
};

/* The key of the stack of the goroutine whose g is at @gp, in the current process, from @top on,
 * told if it is new; 0: not to be had. go_stack.bpf.c */
__u64 go_stack(__u64 gp, const struct go_frame *top, __u64 now);

/* The same of one that is parked: from where it goes on. */
static __always_inline __u64 go_stack_parked(const struct cc_bpf_go *go, __u64 gp, __u64 now)
{
	struct go_frame top = {};

	if (go->at.g_sched_bp == GO_NO_FIELD)
		return 0;
	top.pc = go_read(gp, go->at.g_sched_pc);
	top.bp = go_read(gp, go->at.g_sched_bp);
	return go_stack(gp, &top, now);
}

#endif
