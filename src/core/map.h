/* SPDX-License-Identifier: Apache-2.0 */
/* map: 64-bit keys to 32-bit numbers, open addressing. Where a key is itself a hash, the owner
 * checks what the number stands for and chains equal keys. */
#ifndef CC_MAP_H
#define CC_MAP_H

#include "mem.h"

struct map_slot {
	uint64_t key;
	uint32_t val; /* 0: free */
};
struct map { /* all zero is an empty map */
	struct map_slot *slots;
	uint32_t cap, cnt; /* cap: a power of two */
};

static inline uint64_t map_mix(uint64_t x) /* splitmix64's finalizer */
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline uint64_t map_mix2(uint64_t a, uint64_t b) { return map_mix(map_mix(a) + b); }

/* A key of two parts for a map that mixes it itself: far cheaper, no hash. */
static inline uint64_t map_join(uint64_t a, uint64_t b) { return a * 0x9e3779b97f4a7c15ull + b; }

/* Where to look for @key first: keys that are neighbours are so in memory, four by four, for what
 * comes next has the next number, as a rule. */
static inline uint32_t map_home(uint64_t key)
{
	return (uint32_t)map_mix(key >> 2) << 2 | (uint32_t)(key & 3);
}

/* The number kept for @key; 0: none. */
static inline uint32_t map_get(const struct map *m, uint64_t key)
{
	if (!m->cap)
		return 0;
	for (uint32_t i = map_home(key);; i++) {
		const struct map_slot *s = &m->slots[i & (m->cap - 1)];

		if (!s->val || s->key == key)
			return s->val;
	}
}

/* Fetches what map_get() of @key will look at. */
static inline void map_prefetch(const struct map *m, uint64_t key)
{
	if (m->cap)
		__builtin_prefetch(&m->slots[map_home(key) & (m->cap - 1)]);
}

/* Keeps @val (not 0) for @key, in place of what was kept. Returns 0 or -ENOMEM. */
CC_NODISCARD int map_put(struct mem *mem, struct map *m, uint64_t key, uint32_t val);
void map_del(struct map *m, uint64_t key); /* a key that is not kept is a no-op */
void map_done(struct mem *mem, struct map *m);

#endif
