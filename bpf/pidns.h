/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pidns: what tasks are called where user space lives. Programs and records know the numbers of the
 * initial pid namespace. When user space runs in another, it gets the numbers there from this map,
 * and tells those on.
 */
#ifndef CC_BPF_PIDNS_H
#define CC_BPF_PIDNS_H

#include "maps.h"

/* By tid; threads that have no number there are not in it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} pids_local __weak SEC(".maps");

/* The namespace of user space: by the first run of the iterator. */
__u64 pidns_ours __weak;
__u32 pidns_level __weak;

/* The number of @t in our namespace; 0: it has none. */
static __always_inline __u32 pidns_nr(struct task_struct *t)
{
	struct pid *pid = BPF_CORE_READ(t, thread_pid);
	struct upid u = {};

	if (!pid || BPF_CORE_READ(pid, level) < pidns_level)
		return 0;
	bpf_probe_read_kernel(&u, bpf_core_type_size(struct upid), &pid->numbers[pidns_level & 31]);
	return (__u64)u.ns == pidns_ours ? (__u32)u.nr : 0;
}

static __always_inline __u32 pidns_note(struct task_struct *t)
{
	__u32 tid = t->pid, nr = pidns_nr(t);

	if (nr)
		bpf_map_update_elem(&pids_local, &tid, &nr, BPF_ANY);
	return nr;
}

#endif
