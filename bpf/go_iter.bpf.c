// SPDX-License-Identifier: GPL-2.0-only
/* go_iter: read by user space: the threads of a Go process, to see whether its offsets are right.
 */
#include "go.h"

char LICENSE[] SEC("license") = "GPL";

SEC("iter/task")
int go_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct cc_bpf_go_thread r = {};
	struct upid u = {};
	__u32 level;

	if (!t || !is_target(t->tgid))
		return 0;
	r.tp = THREAD_POINTER(t);
	r.tid = r.ns_tid = t->pid;
	level = BPF_CORE_READ(t, thread_pid, level);
	if (level) {
		bpf_probe_read_kernel(&u, bpf_core_type_size(struct upid),
				      &t->thread_pid->numbers[level & 31]);
		r.ns_tid = (__u32)u.nr;
	}
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}
