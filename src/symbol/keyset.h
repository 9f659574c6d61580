/* SPDX-License-Identifier: Apache-2.0 */
/* keyset: a set of 64-bit keys with a bound on its memory, for "was this told before?". When it is
 * full it forgets everything: telling a thing twice is harmless, growing without end is not. */
#ifndef CC_KEYSET_H
#define CC_KEYSET_H

#include "base.h"
#include "rule.h" /* mix64(), hash_add() */

struct keyset {
	uint64_t *slots; /* open addressing; 0: empty */
	size_t cap;      /* slots, a power of two; 0: nothing allocated yet */
	size_t cnt;
	size_t max; /* keys */
};

void keyset_init(struct keyset *s, size_t max_keys);
void keyset_done(struct keyset *s);

bool keyset_has(const struct keyset *s, uint64_t key);

/* Returns 1 if @key (not 0) is new, 0 if it was there, -ENOMEM (the set is unchanged). */
CC_NODISCARD int keyset_add(struct keyset *s, uint64_t key);

#endif
