// SPDX-License-Identifier: GPL-2.0-only
/* sample: where traced tasks are while they run. A clock of the CPU's calls this at each beat, in
 * the interrupt of a timer; whoever runs is asked, and told if it is traced. Optional. */
#include "go_run.h"
#include "snap_send.h"

char LICENSE[] SEC("license") = "GPL";

SEC("perf_event")
int on_cpu_sample(void *ctx)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct task_state *st = task_find(cur);
	struct snap_who who = { .kind = CC_SNAP_SAMPLE, .user = true };
	__u64 now = bpf_ktime_get_ns();
	struct cc_rec_sample *r;

	if (!st || task_off(st))
		return 0;
	go_look(cur, st, now); /* one that runs for long is seen at least now */
	who.tid = cur->pid;
	snap_current(ctx, cur, SNAP_SLOT_SAMPLE, &who, now); /* user space puts its keys into r */
	r = events_reserve(sizeof(*r));
	if (!r) {
		rec_lost(CC_REC_SAMPLE, sizeof(*r), now);
		return 0;
	}
	__builtin_memset(r, 0, sizeof(*r));
	rec_init(&r->h, sizeof(*r), CC_REC_SAMPLE, 0, 0, now);
	r->tid = cur->pid;
	r->tgid = cur->tgid;
	r->ip = REGS_IP((struct pt_regs *)bpf_task_pt_regs(cur));
	events_commit(r, now);
	return 0;
}
