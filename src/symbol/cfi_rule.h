/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_rule: what the unwinder knows of an address, as a rule that the kernel side can follow. */
#ifndef CC_CFI_RULE_H
#define CC_CFI_RULE_H

#include "cfi.h"
#include "rule.h"

/* @ip: of the frame, as on the stack: expressions may ask for it (those of a PLT do). *ret is empty
 * (what == 0) if a rule cannot hold what @row says. */
void cfi_rule_of(const struct cfi *c, const struct cfi_row *row, uint64_t ip, struct cc_rule *ret);

/* Of Go code that has @size bytes on the stack. @on: its caller is to be found there. @flags:
 * GO_FUNC_*. */
void cfi_rule_of_go(uint32_t size, uint8_t flags, struct cc_rule *ret);

/* Of code that only a frame pointer leads through. */
void cfi_rule_of_fp(struct cc_rule *ret);

#endif
