/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CC_BPF_GO_STACK_H
#define CC_BPF_GO_STACK_H

#include "go.h"

/* The key of the stack of the parked goroutine whose g is at @gp, in the current process, told if
 * it is new; 0: not to be had. go_stack.bpf.c */
__u64 go_stack(__u64 gp, __u64 now);

#endif
