/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_run: runs unwind programs. Only cfi.c uses it. */
#ifndef CC_CFI_RUN_H
#define CC_CFI_RUN_H

#include "cfi.h"

#define CFI_DEPTH 8 /* of remember_state; compilers need 1 or 2 */

/* One rule while a program runs: an expression is still where the program has it. */
struct run_rule {
	uint8_t kind; /* enum cfi_kind */
	uint8_t from;
	int64_t off;
	struct bytes expr;
};

struct run_state {
	struct run_rule cfa; /* CFI_SAME: not set yet */
	struct run_rule regs[CFI_REGS];
	bool ra_signed;
};

struct cfi_run {
	const struct cfi_arch *arch;
	const struct cie *cie;
	uint64_t loc, stop; /* the rules wanted are those at stop */
	struct run_state now, initial;
	struct run_state saved[CFI_DEPTH];
	unsigned int depth;
};

/* Gives registers what the ABI says they are without any rule. */
void cfi_run_init(struct cfi_run *r, const struct cfi_arch *arch, const struct cie *cie,
		  uint64_t start, uint64_t stop);

/* Runs @program up to r->stop. Returns false if it is not well formed. */
bool cfi_run(struct cfi_run *r, struct bytes program);

#endif
