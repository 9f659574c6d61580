/* SPDX-License-Identifier: Apache-2.0 */
/* decode: is this a record that can be read without harm? Sizes and lengths only: what the fields
 * say is judged by who uses them. */
#ifndef CC_DECODE_H
#define CC_DECODE_H

#include "base.h"
#include "event.h"

/* Later than any clock that can be: times beyond are a damaged record. Leaves room for sums. */
#define CC_TIME_MAX (1ull << 62)

struct decode_buf { /* room for the longest record, aligned */
	uint64_t words[(UINT16_MAX + 1) / sizeof(uint64_t)];
};

/* Checks a record of @len bytes: known kind, at least that kind's size, every length within.
 * Sets *ret to a readable form of it: the record itself, or, when it is not aligned or shorter than
 * this build's struct, a copy in @buf with zeros for what is missing.
 * Returns 0; -EINVAL: malformed; -ENOTSUP: a kind that this build does not know. */
CC_NODISCARD int decode(const struct cc_rec *rec, size_t len, struct decode_buf *buf,
			const struct cc_rec **ret);

/* Bytes of a record that decode() gave: its own, or all that this build reads of its kind. */
size_t decode_size(const struct cc_rec *r);

/* How many events a record that decode() gave says are missing before it. */
uint64_t decode_lost(const struct cc_rec *r);

/* What lies at an address may change: dlclose() and dlopen(), exec. A MODULE and the names of its
 * frames have the number of the generation of their process's mappings since which it was so; a
 * STACK has that in which it was taken (the newest of its frames' will do), and means those with
 * the highest number that is not above its own. Here that number of @m. */
static inline __u64 cc_module_gen(const struct cc_rec_module *m)
{
	__u64 gen = 0, at = sizeof(*m) + ((__u64)m->path_len + 7) / 8 * 8;

	if (at + sizeof(gen) <= m->h.size)
		__builtin_memcpy(&gen, (const char *)m + at, sizeof(gen));
	return gen;
}

#endif
