/* SPDX-License-Identifier: Apache-2.0 */
#include "unwinder.h"

#include <string.h>

void unwind_in_of(const struct cfi_arch *arch, const struct cc_rec_snap *s, struct unwind_in *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < CFI_SNAP_REGS; i++) {
		if (arch->snap[i] >= 0)
			ret->regs[arch->snap[i]] = i < ARRAY_SIZE(s->regs) ? s->regs[i] : s->r15;
	}
	ret->arch = arch;
	ret->regs[CFI_FP] = s->bp;
	ret->regs[CFI_SP] = s->sp;
	ret->ip = s->ip;
	ret->sp = s->sp;
	ret->stack = (const uint8_t *)&s->data[s->kframe_cnt];
	ret->stack_len = s->byte_cnt;
}

void unwind_in_from_snap(const struct cc_rec_snap *s, struct unwind_in *ret)
{
	unwind_in_of(cfi_arch(CFI_MACHINE_HERE), s, ret);
}
