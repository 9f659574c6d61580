/* SPDX-License-Identifier: Apache-2.0 */
#include "keyset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 256

void keyset_init(struct keyset *s, size_t max_keys) { *s = (struct keyset){ .max = max_keys }; }

void keyset_done(struct keyset *s)
{
	free(s->slots);
	keyset_init(s, s->max);
}

/* The slot of @key, or the empty one where it belongs. There is always an empty one. */
static size_t slot_of(const uint64_t *slots, size_t cap, uint64_t key)
{
	size_t i = (size_t)mix64(key) & (cap - 1);

	while (slots[i] && slots[i] != key)
		i = (i + 1) & (cap - 1);
	return i;
}

bool keyset_has(const struct keyset *s, uint64_t key)
{
	return s->cap && s->slots[slot_of(s->slots, s->cap, key)] == key;
}

static int grow(struct keyset *s)
{
	size_t cap = s->cap ? s->cap * 2 : FIRST_CAP;
	uint64_t *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < s->cap; i++) {
		if (s->slots[i])
			slots[slot_of(slots, cap, s->slots[i])] = s->slots[i];
	}
	free(s->slots);
	s->slots = slots;
	s->cap = cap;
	return 0;
}

int keyset_add(struct keyset *s, uint64_t key)
{
	if (keyset_has(s, key))
		return 0;
	if (s->cnt >= s->max) {
		memset(s->slots, 0, s->cap * sizeof(*s->slots));
		s->cnt = 0;
	}
	if (s->cnt * 2 >= s->cap) {
		int err = grow(s);

		if (err)
			return err;
	}
	s->slots[slot_of(s->slots, s->cap, key)] = key;
	s->cnt++;
	return 1;
}
