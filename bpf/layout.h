/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * layout: what code lies where in a process, as user space has read it; the rules of unwinding are
 * kept by it (rule.h). It is believed until the process is seen with another number of pages of
 * code: dlopen() and dlclose() change it; a dlopen() that brings back the same number asks for room
 * first, and layout.bpf.c looks then.
 */
#ifndef CC_BPF_LAYOUT_H
#define CC_BPF_LAYOUT_H

#include "maps.h"

#include "rule.h"

/* Of processes, by tgid. A child has its parent's; exec ends it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct cc_layout);
} layouts __weak SEC(".maps");

struct code_seen {
	__u64 pages;  /* of code, when it was looked at last; 0: only user space did */
	__u32 change; /* how often that was another number; never 0 */
	__u32 pad;
};

/* Of processes whose stacks were taken. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct code_seen);
} code_seen __weak SEC(".maps");

/* Counts a change of @p's code since the last look. Two CPUs may count one twice: then the mappings
 * are read once more. */
static __always_inline __u32 code_change(struct code_seen *c, __u64 pages)
{
	if (c->pages != pages) {
		if (c->pages)
			__sync_fetch_and_add(&c->change, 1);
		c->pages = pages;
	}
	return c->change;
}

/* What is known of where @p's code lies; 0: nothing. Says in @s how it is now. */
static __always_inline __u64 code_look(struct cc_rec_snap *s, struct task_struct *p)
{
	struct mm_struct *mm = p->mm;
	struct code_seen first = { .change = 1 }, *c;
	__u32 tgid = p->tgid;
	struct cc_layout *l;

	s->code_pages = first.pages = mm ? mm->exec_vm : 0;
	c = bpf_map_lookup_elem(&code_seen, &tgid);
	if (c)
		s->change = code_change(c, s->code_pages);
	else if (!bpf_map_update_elem(&code_seen, &tgid, &first, BPF_NOEXIST))
		s->change = first.change;
	l = bpf_map_lookup_elem(&layouts, &tgid);
	return l && l->code_pages == s->code_pages && l->change == s->change ? l->id : 0;
}

/* A new process has its parent's mappings. */
static __always_inline void chain_fork(__u32 parent, __u32 child)
{
	struct cc_layout *l = bpf_map_lookup_elem(&layouts, &parent);
	struct code_seen *c = bpf_map_lookup_elem(&code_seen, &parent);

	if (l)
		bpf_map_update_elem(&layouts, &child, l, BPF_ANY);
	if (c)
		bpf_map_update_elem(&code_seen, &child, c, BPF_ANY);
}

static __always_inline void chain_forget(__u32 tgid)
{
	bpf_map_delete_elem(&layouts, &tgid);
	bpf_map_delete_elem(&code_seen, &tgid);
}

#endif
