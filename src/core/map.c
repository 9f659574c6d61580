/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include <errno.h>

#define FIRST_SLOTS 16

static struct map_slot *slot_of(const struct map *m, uint64_t key)
{
	uint32_t i = map_home(key) & (m->cap - 1);

	while (m->slots[i].val && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

static int map_grow(struct mem *mem, struct map *m)
{
	struct map bigger = { .cap = m->cap ? m->cap * 2 : FIRST_SLOTS, .cnt = m->cnt };

	if (!bigger.cap)
		return -ENOMEM;
	bigger.slots = mem_alloc(mem, bigger.cap * sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->cap; i++)
		if (m->slots[i].val)
			*slot_of(&bigger, m->slots[i].key) = m->slots[i];
	mem_free(mem, m->slots, m->cap * sizeof(*m->slots));
	*m = bigger;
	return 0;
}

int map_put(struct mem *mem, struct map *m, uint64_t key, uint32_t val)
{
	struct map_slot *s;

	if (m->cnt >= m->cap / 2) {
		int err = map_grow(mem, m);

		if (err)
			return err;
	}
	s = slot_of(m, key);
	if (!s->val)
		m->cnt++;
	*s = (struct map_slot){ .key = key, .val = val };
	return 0;
}

/* Moves later slots of the run back over the hole, so that no tombstones are needed. */
void map_del(struct map *m, uint64_t key)
{
	uint32_t mask = m->cap - 1, hole;

	if (!map_get(m, key))
		return;
	hole = (uint32_t)(slot_of(m, key) - m->slots);
	for (uint32_t i = (hole + 1) & mask; m->slots[i].val; i = (i + 1) & mask) {
		uint32_t home = map_home(m->slots[i].key) & mask;

		/* stays, when its home lies behind the hole */
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole].val = 0;
	m->cnt--;
}

void map_done(struct mem *mem, struct map *m)
{
	mem_free(mem, m->slots, m->cap * sizeof(*m->slots));
	*m = (struct map){ 0 };
}
