/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * layout: what code lies where in a process, as user space has read it; the rules of unwinding are
 * kept by it (rule.h). It is believed as long as the process has as many pages of code as it had:
 * dlopen() and dlclose() change that number; a dlopen() that brings back the same number asks for
 * room first, and layout.bpf.c sees that.
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

/* What is known of where @cur's code lies; 0: nothing. *ret_pages: how much of it there is now. */
static __always_inline __u64 chain_layout(struct task_struct *cur, __u64 *ret_pages)
{
	struct mm_struct *mm = cur->mm;
	__u32 tgid = cur->tgid;
	struct cc_layout *l;

	*ret_pages = mm ? mm->exec_vm : 0;
	l = bpf_map_lookup_elem(&layouts, &tgid);
	return l && l->code_pages == *ret_pages ? l->id : 0;
}

/* A new process has its parent's mappings. */
static __always_inline void chain_fork(__u32 parent, __u32 child)
{
	struct cc_layout *l = bpf_map_lookup_elem(&layouts, &parent);

	if (l)
		bpf_map_update_elem(&layouts, &child, l, BPF_ANY);
}

static __always_inline void chain_forget(__u32 tgid) { bpf_map_delete_elem(&layouts, &tgid); }

#endif
