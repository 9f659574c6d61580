/* SPDX-License-Identifier: Apache-2.0 */
/* resolver_int: the resolver's insides: stacks.c tells stacks, resolver.c all else. */
#ifndef CC_RESOLVER_INT_H
#define CC_RESOLVER_INT_H

#include "pending.h"
#include "resolver.h"
#include "teach.h"
#include "teller.h"

struct resolver {
	struct file_cache *files;
	struct procs *procs;
	struct unwinder *unwinder;
	struct pending *pending;
	struct teller teller;
	struct teach teach;
	struct keyset stacks; /* told before */
	struct resolver_health health;
	uint64_t unwound, unwound_full; /* of blocked tasks: CC_CNT_UNWOUND* */
};

/* The stacks of one record: their STACK, MODULE and NAME records; their keys wait in r->pending.
 * 0, -ENOMEM or what the taker returned. */
CC_NODISCARD int stacks_snap(struct resolver *r, const struct cc_rec_snap *s, size_t len);
CC_NODISCARD int stacks_chain(struct resolver *r, const struct cc_rec_chain *c, size_t len);

#endif
