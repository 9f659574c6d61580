/* SPDX-License-Identifier: Apache-2.0 */
#include "radix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)

struct item {
	uint64_t key;
	uint64_t at; /* which element it is */
};

static uint64_t key_of(const uint8_t *v, size_t i, size_t size)
{
	uint64_t key;

	memcpy(&key, v + i * size, sizeof(key));
	return key;
}

/* Sets the bits in which keys differ in *ret_bits. Returns true if the order is right already: a
 * linker often writes it so. */
static bool is_sorted(const uint8_t *v, size_t cnt, size_t size, uint64_t *ret_bits)
{
	uint64_t first = cnt ? key_of(v, 0, size) : 0, last = first;
	bool sorted = true;

	*ret_bits = 0;
	for (size_t i = 1; i < cnt; i++) {
		uint64_t key = key_of(v, i, size);

		sorted &= key >= last;
		*ret_bits |= key ^ first;
		last = key;
	}
	return sorted;
}

static void by_digit(const struct item *from, struct item *to, size_t cnt, unsigned int shift)
{
	uint32_t place[DIGITS] = { 0 }, sum = 0;

	for (size_t i = 0; i < cnt; i++)
		place[from[i].key >> shift & (DIGITS - 1)]++;
	for (size_t d = 0; d < DIGITS; d++) {
		uint32_t n = place[d];

		place[d] = sum;
		sum += n;
	}
	for (size_t i = 0; i < cnt; i++)
		to[place[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
}

int radix_sort(void *v, size_t cnt, size_t size)
{
	struct item *items, *from, *to;
	uint8_t *out, *in = v;
	uint64_t bits;

	if (is_sorted(in, cnt, size, &bits))
		return 0;
	items = reallocarray(NULL, cnt, 2 * sizeof(*items));
	out = reallocarray(NULL, cnt, size);
	if (!items || !out) {
		free(items);
		free(out);
		return -ENOMEM;
	}
	from = items;
	to = items + cnt;
	for (size_t i = 0; i < cnt; i++)
		from[i] = (struct item){ key_of(in, i, size), i };
	for (unsigned int shift = 0; shift < 64; shift += DIGIT_BITS) {
		struct item *sorted = to;

		if (!(bits >> shift & (DIGITS - 1)))
			continue;
		by_digit(from, to, cnt, shift);
		to = from;
		from = sorted;
	}
	for (size_t i = 0; i < cnt; i++)
		memcpy(out + i * size, in + from[i].at * size, size);
	memcpy(in, out, cnt * size);
	free(items);
	free(out);
	return 0;
}
