/* SPDX-License-Identifier: Apache-2.0 */
/* teach: keeps the kernel's cache of unwind rules (rule.h) as rich and as true as what is known
 * here, and remembers what stacks the kernel's keys stand for. Used by the resolver only. */
#ifndef CC_TEACH_H
#define CC_TEACH_H

#include "keyset.h"
#include "procs.h"
#include "unwinder.h"

struct teach {
	struct cc_rule_cache cache;
	bool on;
	struct keyset taught;      /* rules told, by layout and ip */
	struct chain_slot *chains; /* owned; what was told as which STACK */
};

/* @cache: NULL: there is none, and nothing here does anything. Returns 0 or -ENOMEM. */
CC_NODISCARD int teach_init(struct teach *t, const struct cc_rule_cache *cache);
void teach_done(struct teach *t);

/* Tells the kernel where @proc's code lies, if @s, which procs_view() found to be of now, shows
 * that it does not know. */
void teach_layout(struct teach *t, struct proc *proc, const struct cc_rec_snap *s);

/* The mappings of @proc in @layout, in which the kernel unwound. NULL: not known (any more); then
 * it is told the one of now. */
struct maps *teach_maps(struct teach *t, struct proc *proc, uint64_t layout);

/* After: what was learned. @miss: cc_rec_snap.miss, told again even if it was told before. */
void teach_rules(struct teach *t, const struct proc *proc, const struct unwind_out *o,
		 uint64_t miss);

/* The rule of a frame that @u could not get to, because it lies beyond the bytes that were taken,
 * and the kernel could: @miss. One frame more each time, and then it unwinds the whole of such
 * stacks. */
void teach_beyond(struct teach *t, struct proc *proc, struct unwinder *u, uint64_t miss);

/* The kernel has told the frames of @key, which are STACK @stack. */
void teach_chain(struct teach *t, uint64_t key, uint64_t stack);

/* The STACK that @key stands for. 0: not known (any more); its frames will come with the next one.
 */
uint64_t teach_stack(struct teach *t, uint64_t key);

size_t teach_mem(const struct teach *t); /* bytes */

#endif
