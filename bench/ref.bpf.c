// SPDX-License-Identifier: GPL-2.0-only
/* ref: what scheduler tracing costs at the least. Two pairs of programs on sched_switch and
 * sched_waking: empty ones, and b', the bare 64-byte record per time off the CPU. criticast's own
 * cost is told as a multiple of b', in the same run. */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

const volatile int target_tgid;

struct waiting {
	__u64 out, wake;
	__u32 waker_tid, state;
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct waiting);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} ring SEC(".maps");

struct bare { /* as long as criticast's EPISODE */
	__u64 out, wake, in;
	__u32 tid, tgid, waker_tid, state;
	__u64 pad[3];
};

__u64 dropped;

SEC("tp_btf/sched_switch")
int BPF_PROG(empty_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(empty_waking, struct task_struct *p) { return 0; }

static __always_inline void emit(struct task_struct *next, struct waiting *w)
{
	struct bare *b = bpf_ringbuf_reserve(&ring, sizeof(*b), 0);

	if (!b) {
		__sync_fetch_and_add(&dropped, 1);
		return;
	}
	__builtin_memset(b, 0, sizeof(*b));
	b->out = w->out;
	b->wake = w->wake;
	b->in = bpf_ktime_get_ns();
	b->tid = next->pid;
	b->tgid = next->tgid;
	b->waker_tid = w->waker_tid;
	b->state = w->state;
	bpf_ringbuf_submit(b, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(bare_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct waiting *w;

	if (prev->tgid == target_tgid) {
		w = bpf_task_storage_get(&tasks, prev, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (w) {
			w->out = bpf_ktime_get_ns();
			w->wake = 0;
			w->state = prev_state;
		}
	}
	if (next->tgid == target_tgid) {
		w = bpf_task_storage_get(&tasks, next, NULL, 0);
		if (w && w->out)
			emit(next, w);
	}
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(bare_waking, struct task_struct *p)
{
	struct waiting *w;

	if (p->tgid != target_tgid)
		return 0;
	w = bpf_task_storage_get(&tasks, p, NULL, 0);
	if (w && !w->wake) {
		w->wake = bpf_ktime_get_ns();
		w->waker_tid = bpf_get_current_pid_tgid();
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
