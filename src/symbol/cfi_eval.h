/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_eval: runs the expressions of unwind information. Over numbers, to unwind; or over what is
 * only known by the register it lies at, to see which simple rule an expression amounts to. Source:
 * DWARF 5, section 2.5. */
#ifndef CC_CFI_EVAL_H
#define CC_CFI_EVAL_H

#include "bytes.h"

/* What a value is relative to. */
enum cfi_base {
	CFI_NUMBER, /* it is v itself */
	CFI_ON_SP,  /* the stack pointer + v */
	CFI_ON_FP,
	CFI_AT_SP, /* what lies in memory at the stack pointer + v */
	CFI_AT_FP,
};

struct cfi_value {
	uint64_t v;
	enum cfi_base base;
};

struct cfi_machine { /* false of a function: not to be had, and so no result */
	bool (*reg)(void *ctx, unsigned int reg, struct cfi_value *ret);
	bool (*load)(void *ctx, struct cfi_value *v); /* replaces an address by what is there */
	void *ctx;
};

/* Runs @e, which finds @cfa on its stack if there is one (else NULL). No jumps, so it ends. Returns
 * false if it makes no sense or needs what is not to be had. */
bool cfi_eval(const struct cfi_machine *m, struct bytes e, const struct cfi_value *cfa,
	      struct cfi_value *ret);

#endif
