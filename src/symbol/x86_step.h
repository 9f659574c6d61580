/* SPDX-License-Identifier: Apache-2.0 */
/* x86_step: what one instruction of x86-64 does to the stack pointer, and where it goes next. What
 * it does not know ends the way. Source: Intel SDM 2, appendix A. */
#ifndef CC_X86_STEP_H
#define CC_X86_STEP_H

#include "base.h"

#define X86_INSN_MAX 15

enum x86_kind {
	X86_UNKNOWN, /* not decoded, or it sets the stack pointer in a way that is not followed */
	X86_PLAIN,
	X86_MOVE,   /* sp += by */
	X86_POP,    /* reg = what lies at sp; sp += 8 */
	X86_SET_FP, /* the frame pointer = sp */
	X86_TO_FP,  /* sp = the frame pointer + by */
	X86_LEAVE,  /* sp = the frame pointer; pops that */
	X86_CALL,   /* of a function that returns, as a rule */
	X86_JUMP,   /* to */
	X86_BRANCH, /* to, or on */
	X86_RETURN, /* or on to a function that returns in its place */
	X86_STOP,   /* goes nowhere, or where is not known */
};

struct x86_step {
	uint8_t kind, len;
	uint8_t reg; /* X86_POP, as instructions number them */
	bool has_to; /* X86_CALL: it says where */
	int32_t by;  /* X86_MOVE, X86_TO_FP */
	int32_t to;  /* X86_JUMP, X86_BRANCH, X86_CALL: from the end of the instruction */
};

/* Decodes what stands at @code, @len bytes. */
struct x86_step x86_step(const uint8_t *code, size_t len);

#endif
