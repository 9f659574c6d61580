/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"
#include "load.h"
#include "rule.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

void rules_prepare(struct loader *l, uint32_t mode, bool sees_mmap)
{
	struct criticast *s = l->skel;
	((struct cc_bpf_config *)&s->rodata->cfg)->rule_cache = mode;
	l->rule_cache = mode;
	bpf_program__set_autoload(s->progs.vm_unmapped_area, sees_mmap);
	if (mode != RULES_OFF)
		return;
	bpf_map__set_max_entries(s->maps.rules, 1);
	bpf_map__set_max_entries(s->maps.chains_told, 1);
}

/* What cannot be written is not in the cache: its stacks come raw. */
static void put(const struct bpf_map *map, const void *key, const void *value)
{
	(void)bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY);
}

static void put_layout(void *ctx, uint32_t tgid, const struct cc_layout *layout)
{
	const struct loader *l = ctx;
	put(l->skel->maps.layouts, &tgid, layout);
}

static void put_rule(void *ctx, const struct cc_rule_key *k, const struct cc_rule *r)
{
	const struct loader *l = ctx;
	put(l->skel->maps.rules, k, r);
}

static void forget_chain(void *ctx, uint64_t key)
{
	const struct loader *l = ctx;
	(void)bpf_map_delete_elem(bpf_map__fd(l->skel->maps.chains_told), &key);
}

static uint32_t get_change(void *ctx, uint32_t tgid)
{
	const struct loader *l = ctx;
	struct {
		uint64_t pages;
		uint32_t change, pad;
	} seen = { .change = 1 }; /* bpf/layout.h */
	int fd = bpf_map__fd(l->skel->maps.code_seen);
	/* from now on it counts, if it did not */
	if (bpf_map_lookup_elem(fd, &tgid, &seen) &&
	    bpf_map_update_elem(fd, &tgid, &seen, BPF_NOEXIST))
		return 0;
	return seen.change;
}

bool loader_rule_cache(struct cc_source *s, struct cc_rule_cache *ret)
{
	struct loader *l = (struct loader *)s;
	*ret = (struct cc_rule_cache){
		.layout = put_layout,
		.rule = l->rule_cache == RULES_OFF ? NULL : put_rule,
		.forget = forget_chain,
		.change = get_change,
		.ctx = l,
	};
	/* keys of stacks have the number of the process, which is another there: see pidns.h */
	return !l->pidns;
}

const char *rules_note(const struct loader *l)
{
	if (l->rule_cache != RULES_OFF || l->stack_tier == LOADER_STACK_NONE ||
	    l->o.rules == LOADER_RULES_OFF)
		return NULL;
	return "stacks: this kernel refuses to unwind them itself: they are copied, which is "
	       "dearer";
}
