/* SPDX-License-Identifier: Apache-2.0 */
#include "teach.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define TAUGHT_MAX (1u << 16)
#define SETS 8192 /* twice as many chains as the kernel remembers to have told */
#define WAYS 16
#define CHAINS ((size_t)SETS * WAYS)

struct chain_slot {
	uint64_t key, stack; /* key 0: empty */
};

int teach_init(struct teach *t, const struct cc_rule_cache *cache)
{
	*t = (struct teach){ .on = cache && cache->rule };
	keyset_init(&t->taught, TAUGHT_MAX);
	if (!t->on)
		return 0;
	t->cache = *cache;
	t->chains = calloc(CHAINS, sizeof(*t->chains));
	return t->chains ? 0 : -ENOMEM;
}

void teach_done(struct teach *t)
{
	keyset_done(&t->taught);
	free(t->chains);
}

static cc_ns now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

static void give_layout(struct teach *t, struct proc *proc)
{
	t->cache.layout(t->cache.ctx, proc->tgid, &proc->now.layout);
	proc->given = proc->now.layout;
	proc->given_at = now();
}

static bool is_given(const struct proc *proc)
{
	return proc->given.id == proc->now.layout.id &&
	       proc->given.change == proc->now.layout.change;
}

void teach_layout(struct teach *t, struct proc *proc, const struct cc_rec_snap *s)
{
	const struct cc_layout *l = &proc->now.layout;

	if (!t->on || !l->id || s->layout == l->id || s->change != l->change ||
	    s->code_pages != l->code_pages)
		return;
	/* one that was taken before it was told says nothing */
	if (!is_given(proc) || s->h.ts > proc->given_at)
		give_layout(t, proc);
}

struct maps *teach_maps(struct teach *t, struct proc *proc, uint64_t layout)
{
	if (layout != proc->now.layout.id && proc->now.layout.id && !is_given(proc))
		give_layout(t, proc);
	return procs_layout(proc, layout);
}

void teach_rules(struct teach *t, const struct proc *proc, const struct unwind_out *o,
		 uint64_t miss)
{
	struct cc_rule_key k = { .layout = proc->now.layout.id };
	uint64_t exact = CC_RULE_EXACT;

	if (!t->on || proc->given.id != k.layout)
		return;
	for (unsigned int i = 0; i < o->cnt; i++) {
		uint64_t known;

		k.ip = o->ip[i] | exact;
		known = hash_add(k.layout, k.ip);
		exact = o->rules[i].what & CC_RULE_SIGNAL ? CC_RULE_EXACT : 0;
		if (o->rules[i].what & CC_RULE_KNOWN &&
		    (keyset_add(&t->taught, known ? known : 1) == 1 || k.ip == miss))
			t->cache.rule(t->cache.ctx, &k, &o->rules[i]);
	}
}

void teach_beyond(struct teach *t, struct proc *proc, struct unwinder *u, uint64_t miss)
{
	const struct cc_rule_key k = { .layout = proc->now.layout.id, .ip = miss };
	struct cc_rule rule;

	if (!t->on || !miss || proc->given.id != k.layout || !u->ops->rule)
		return;
	if (u->ops->rule(u, &proc->now.maps, miss & ~CC_RULE_EXACT, miss & CC_RULE_EXACT, &rule))
		t->cache.rule(t->cache.ctx, &k, &rule);
}

static struct chain_slot *set_of(const struct teach *t, uint64_t key)
{
	return &t->chains[mix64(key) % SETS * WAYS];
}

static struct chain_slot *find(struct chain_slot *set, uint64_t key)
{
	for (size_t i = 0; i < WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
	}
	return NULL;
}

void teach_chain(struct teach *t, uint64_t key, uint64_t stack)
{
	struct chain_slot *set, *s;

	if (!t->on || !key)
		return;
	set = set_of(t, key);
	s = find(set, key);
	if (!s)
		s = find(set, 0);
	if (!s)
		s = &set[stack % WAYS]; /* whoever is there is told again when it is missed */
	*s = (struct chain_slot){ key, stack };
}

uint64_t teach_stack(struct teach *t, uint64_t key)
{
	struct chain_slot *s = t->on && key ? find(set_of(t, key), key) : NULL;

	if (s)
		return s->stack;
	if (t->on && key)
		t->cache.forget(t->cache.ctx, key);
	return 0;
}

size_t teach_mem(const struct teach *t)
{
	return t->taught.cap * sizeof(uint64_t) + (t->on ? CHAINS * sizeof(*t->chains) : 0);
}
