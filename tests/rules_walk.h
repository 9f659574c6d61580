/* SPDX-License-Identifier: Apache-2.0 */
/* rules_walk: a stack followed as the kernel side would, by the rules that its unwinding gave. */
#ifndef CC_TEST_RULES_WALK_H
#define CC_TEST_RULES_WALK_H

#include "../bpf/chain_walk.h"
#include "unwinder.h"

/* What would be in the kernel's cache after this one chain. */
static inline const struct cc_rule *rules_at(const struct unwind_out *o, uint64_t ip)
{
	uint64_t exact = CC_RULE_EXACT;

	for (unsigned int i = 0; i < o->cnt; i++) {
		if ((o->ip[i] | exact) == ip && o->rules[i].what & CC_RULE_KNOWN)
			return &o->rules[i];
		exact = o->rules[i].what & CC_RULE_SIGNAL ? CC_RULE_EXACT : 0;
	}
	return NULL;
}

/* How the walk differs from what the unwinder found; NULL: it does not. *no_rule: frames that no
 * rule could say. */
static inline const char *rules_differ(const struct cc_rec_snap *s, const struct unwind_out *o,
				       unsigned int *no_rule)
{
	struct chain_at at = { .ip = s->ip, .sp = s->sp, .fp = s->bp, .exact = CC_RULE_EXACT };
	const struct chain_stack stack = { .bytes = (const uint8_t *)&s->data[s->kframe_cnt],
					   .sp = s->sp,
					   .len = s->byte_cnt };
	const struct cc_rule *r = rules_at(o, at.ip | at.exact);
	int end = CHAIN_ON;
	bool guessed = false;
	unsigned int i;

	*no_rule = 0;
	for (i = 0; i < o->cnt; i++)
		*no_rule += !(o->rules[i].what & CC_RULE_KNOWN);
	for (i = 0; i < CC_STACK_MAX && end == CHAIN_ON && r; i++) {
		if (i >= o->cnt)
			return "it goes on where the unwinder ended";
		if (at.ip != o->ip[i])
			return "another frame";
		guessed |= (r->what & CC_RULE_GUESSED) != 0;
		end = chain_step(&at, &stack, r);
		r = rules_at(o, at.ip | at.exact);
	}
	if (end == CHAIN_FULL || end == CHAIN_PART) {
		if (i != o->cnt)
			return "it ends too early";
		if ((end == CHAIN_FULL) != (o->end == UNWIND_START))
			return "it is not as complete";
		if (guessed != o->guessed)
			return "it is not as sure";
	} else if (o->end == UNWIND_START && !*no_rule) {
		return "it has a rule for each frame and does not find the end";
	}
	return NULL;
}

#endif
