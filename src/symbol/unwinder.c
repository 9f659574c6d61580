/* SPDX-License-Identifier: Apache-2.0 */
#include "unwinder.h"

#include <string.h>

void unwind_in_from_snap(const struct cc_rec_snap *s, struct unwind_in *ret)
{
	/* DWARF: rax rdx rcx rbx rsi rdi rbp rsp r8 .. r15; SNAP: rax rbx rcx rdx rsi rdi r8 .. */
	static const uint8_t order[6] = { 0, 3, 2, 1, 4, 5 };

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		ret->regs[i] = s->regs[order[i]];
	ret->regs[6] = s->bp;
	ret->regs[7] = s->sp;
	for (size_t i = 0; i < 7; i++)
		ret->regs[8 + i] = s->regs[6 + i];
	ret->regs[15] = s->r15;
	ret->ip = s->ip;
	ret->sp = s->sp;
	ret->stack = (const uint8_t *)&s->data[s->kframe_cnt];
	ret->stack_len = s->byte_cnt;
}
