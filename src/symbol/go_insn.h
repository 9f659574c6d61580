/* SPDX-License-Identifier: Apache-2.0 */
/* go_insn: the few x86-64 instructions that are in the Go runtime where probes may be: how long
 * each is, whether the kernel emulates a uprobe on it, whether it leaves the arguments where they
 * are. What it does not know it says it does not know. Sources: Intel SDM 2A;
 * arch/x86/kernel/uprobes.c. */
#ifndef CC_GO_INSN_H
#define CC_GO_INSN_H

#include "go_target.h"

struct go_op {
	uint8_t len;       /* bytes; 0: not known */
	uint8_t probe;     /* enum go_insn: what a probe on it costs */
	bool keeps_args;   /* writes none of AX BX CX DI SI R8 R9 R10 R11, R14 */
	bool stack_moves;  /* pushes, or moves the stack pointer */
	bool leaves;       /* jumps, returns, or calls by a register: what follows is not next */
	bool checks_stack; /* compares with the limit of the goroutine's stack */
};

/* Decodes what stands at @code, @len bytes. */
struct go_op go_insn_x86(const uint8_t *code, size_t len);

#endif
