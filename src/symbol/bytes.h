/* SPDX-License-Identifier: Apache-2.0 */
/* bytes: reading DWARF's numbers from bytes that may be cut off or hostile. Little endian. */
#ifndef CC_BYTES_H
#define CC_BYTES_H

#include "base.h"

#include <string.h>

struct bytes {
	const uint8_t *p, *end;
	bool bad; /* sticky: something was cut off or too large; what is read then is 0 */
};

static inline size_t bytes_left(const struct bytes *b)
{
	return b->bad ? 0 : (size_t)(b->end - b->p);
}

static inline uint64_t take(struct bytes *b, size_t n) /* n <= 8 */
{
	uint64_t v = 0;

	if (bytes_left(b) < n) {
		b->bad = true;
		return 0;
	}
	memcpy(&v, b->p, n);
	b->p += n;
	return v;
}

static inline int64_t take_signed(struct bytes *b, size_t n) /* n: 1, 2, 4, 8 */
{
	unsigned int shift = 64 - 8 * (unsigned int)n;

	return (int64_t)(take(b, n) << shift) >> shift;
}

/* *ret_shift: bits read. */
static inline uint64_t take_leb(struct bytes *b, unsigned int *ret_shift, uint8_t *ret_last)
{
	uint64_t v = 0;

	for (*ret_shift = 0; *ret_shift < 70; *ret_shift += 7) {
		*ret_last = (uint8_t)take(b, 1);
		if (*ret_shift < 64)
			v |= (uint64_t)(*ret_last & 0x7f) << *ret_shift;
		if (!(*ret_last & 0x80)) {
			*ret_shift += 7;
			return v;
		}
	}
	b->bad = true;
	return 0;
}

static inline uint64_t take_uleb(struct bytes *b)
{
	unsigned int shift;
	uint8_t last;

	return take_leb(b, &shift, &last);
}

static inline int64_t take_sleb(struct bytes *b)
{
	unsigned int shift;
	uint8_t last;
	uint64_t v = take_leb(b, &shift, &last);

	if (shift < 64 && last & 0x40)
		v |= UINT64_MAX << shift;
	return (int64_t)v;
}

/* Moves over @n bytes and returns where they begin; NULL if there are not so many. */
static inline const uint8_t *take_block(struct bytes *b, uint64_t n)
{
	const uint8_t *p = b->p;

	if (bytes_left(b) < n) {
		b->bad = true;
		return NULL;
	}
	b->p += n;
	return p;
}

#endif
