// SPDX-License-Identifier: GPL-2.0-only
/* pidns: read by user space: the tasks of its pid namespace, under both their numbers. */
#include "pidns.h"

char LICENSE[] SEC("license") = "GPL";

SEC("iter/task")
int cc_pid_walk(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task, *cur = bpf_get_current_task_btf();
	struct pid *pid = BPF_CORE_READ(cur, thread_pid);
	struct cc_bpf_pid r = {};
	struct upid u = {};

	if (!t)
		return 0;
	if (!pidns_ours && pid) { /* the reader's */
		pidns_level = BPF_CORE_READ(pid, level);
		bpf_probe_read_kernel(&u, bpf_core_type_size(struct upid),
				      &pid->numbers[pidns_level & 31]);
		pidns_ours = (__u64)u.ns;
	}
	r.local = pidns_note(t);
	r.global = t->pid;
	if (r.local)
		bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}
