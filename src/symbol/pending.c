/* SPDX-License-Identifier: Apache-2.0 */
#include "pending.h"
#include "keyset.h"

#include <errno.h>
#include <stdlib.h>

#define SETS 1024
#define WAYS 4

struct slot {
	struct pending_keys k;
	uint64_t stamp; /* when it was made, in calls */
};

struct pending {
	uint64_t stamp, lost;
	struct slot v[SETS][WAYS];
};

int pending_new(struct pending **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void pending_free(struct pending *p) { free(p); }

static struct slot *set_of(struct pending *p, uint32_t kind, uint32_t tid, uint32_t seq)
{
	return p->v[hash_add(hash_add(kind, tid), seq) % SETS];
}

static struct slot *find(struct slot *set, uint32_t kind, uint32_t tid, uint32_t seq)
{
	for (size_t i = 0; i < WAYS; i++) {
		if (set[i].k.kind == kind && set[i].k.tid == tid && set[i].k.seq == seq)
			return &set[i];
	}
	return NULL;
}

struct pending_keys *pending_put(struct pending *p, enum pending_kind kind, uint32_t tid,
				 uint32_t seq)
{
	struct slot *set = set_of(p, kind, tid, seq), *s = find(set, kind, tid, seq);

	if (s)
		return &s->k;
	s = &set[0];
	for (size_t i = 0; i < WAYS; i++) {
		if (set[i].k.kind == PENDING_NONE) {
			s = &set[i];
			break;
		}
		if (set[i].stamp < s->stamp)
			s = &set[i];
	}
	p->lost += s->k.kind != PENDING_NONE;
	*s = (struct slot){ .k = { .tid = tid, .seq = seq, .kind = kind }, .stamp = ++p->stamp };
	return &s->k;
}

bool pending_take(struct pending *p, enum pending_kind kind, uint32_t tid, uint32_t seq,
		  struct pending_keys *ret)
{
	struct slot *s = find(set_of(p, kind, tid, seq), kind, tid, seq);

	if (!s)
		return false;
	*ret = s->k;
	s->k.kind = PENDING_NONE;
	return true;
}

uint64_t pending_lost(const struct pending *p) { return p->lost; }
