/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol_util.h"

#include "../../bpf/chain_walk.h"

#include <criterion/criterion.h>
#include <string.h>

/* What would be in the kernel's cache after this one chain. */
static const struct cc_rule *rule_at(const struct unwind_out *o, uint64_t ip)
{
	uint64_t exact = CC_RULE_EXACT;

	for (unsigned int i = 0; i < o->cnt; i++) {
		if ((o->ip[i] | exact) == ip && o->rules[i].what & CC_RULE_KNOWN)
			return &o->rules[i];
		exact = o->rules[i].what & CC_RULE_SIGNAL ? CC_RULE_EXACT : 0;
	}
	return NULL;
}

unsigned int expect_rules(const struct cc_rec_snap *s, const struct unwind_out *o)
{
	struct chain_at at = { .ip = s->ip, .sp = s->sp, .fp = s->bp, .exact = CC_RULE_EXACT };
	const struct chain_stack stack = { .bytes = (const uint8_t *)&s->data[s->kframe_cnt],
					   .sp = s->sp,
					   .len = s->byte_cnt };
	unsigned int i, no_rule = 0;
	int end = CHAIN_ON;
	bool guessed = false, miss = false;

	for (i = 0; i < CC_STACK_MAX && end == CHAIN_ON && !miss; i++) {
		const struct cc_rule *r = rule_at(o, at.ip | at.exact);

		miss = !r;
		if (miss)
			break;
		guessed |= (r->what & CC_RULE_GUESSED) != 0;
		cr_assert_lt(i, o->cnt, "it goes on where the unwinder ended");
		cr_assert_eq(at.ip, o->ip[i], "frame %u", i);
		end = chain_step(&at, &stack, r);
	}
	for (unsigned int j = 0; j < o->cnt; j++)
		no_rule += !(o->rules[j].what & CC_RULE_KNOWN);
	if (!miss && (end == CHAIN_FULL || end == CHAIN_PART)) {
		cr_assert_eq(i, o->cnt);
		cr_assert_eq(end == CHAIN_FULL, o->end == UNWIND_START);
		cr_assert_eq(guessed, o->guessed);
	}
	if (o->end == UNWIND_START && !no_rule)
		cr_assert_eq(end, CHAIN_FULL, "every frame has a rule");
	return no_rule;
}
