// SPDX-License-Identifier: GPL-2.0-only
/* owner: the one file that calls kernel functions by BTF. bpftool's linker before 1.2 refuses an
 * object where two files declare the same one, so the others call this. */
#include "task.h"

char LICENSE[] SEC("license") = "GPL";

extern struct task_struct *bpf_task_from_pid(int pid) __ksym __weak;
extern struct task_struct *bpf_task_from_vpid(int vpid) __ksym __weak;
extern void bpf_task_release(struct task_struct *p) __ksym __weak;

/* The thread that has tid @tid, in the current task's pid namespace (@local) or the initial one, as
 * tgid << 32 | tid there; 0: no such. Its name goes to this CPU's owner_comm. A global function, so
 * scalars only: it is verified once, for all callers. */
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
