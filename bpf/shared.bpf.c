// SPDX-License-Identifier: GPL-2.0-only
/* shared: global functions, which the verifier checks once instead of at every call. They take and
 * return plain numbers; what is more goes through this CPU's cpu_state. */
#include "task.h"

char LICENSE[] SEC("license") = "GPL";

/* Only here: bpftool's linker before 1.2 refuses an object where two files declare the same one. */
extern struct task_struct *bpf_task_from_pid(int pid) __ksym __weak;
extern struct task_struct *bpf_task_from_vpid(int vpid) __ksym __weak;
extern void bpf_task_release(struct task_struct *p) __ksym __weak;

/* The thread that has tid @tid, in the current task's pid namespace (@local) or the initial one, as
 * tgid << 32 | tid there; 0: no such. Its name goes to this CPU's owner_comm. */
__noinline __u64 owner_by_tid(__u32 tid, __u32 local)
{
	struct cpu_state *c = this_cpu();
	struct task_struct *t;
	__u64 ret;

	if (!cfg.has_task_kfunc || !c)
		return 0;
	if (local)
		t = bpf_task_from_vpid((int)tid);
	else
		t = bpf_task_from_pid((int)tid);
	if (!t)
		return 0;
	ret = (__u64)t->tgid << 32 | (__u32)t->pid;
	BPF_CORE_READ_INTO(&c->owner_comm, t, comm);
	bpf_task_release(t);
	return ret;
}

/*
 * The slot in this CPU's history of the task, other than @tid, that had it longest within
 * [@from, @to); its time in occupied_ns; negative: none. The overlaps lie in the map, not on the
 * stack, so that the verifier forgets their values and need not follow 2^16 paths.
 */
__noinline int occupant_most(__u32 tid, __u64 from, __u64 to)
{
	struct cpu_state *c = this_cpu();
	__u64 best_ns = 0;
	int best = -1;

	if (!c)
		return -1;
	for (__u32 i = 0; i < OCCUPANTS; i++) {
		struct occupant *o = &c->hist[i];
		__u64 a = o->from > from ? o->from : from, b = o->to < to ? o->to : to;

		c->overlap[i] = b > a && o->tid && o->tid != tid ? b - a : 0;
	}
	for (__u32 i = 0; i < OCCUPANTS; i++) {
		__u64 sum = 0;

		for (__u32 j = 0; j < OCCUPANTS; j++)
			if (c->hist[j].tid == c->hist[i].tid)
				sum += c->overlap[j];
		if (sum > best_ns) {
			best_ns = sum;
			best = (int)i;
		}
	}
	c->occupied_ns = best_ns;
	return best;
}
