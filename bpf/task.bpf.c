// SPDX-License-Identifier: GPL-2.0-only
/* task: births, exec, names and deaths of traced tasks. */
#include "go.h"
#include "layout.h"
#include "pidns.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline struct cc_rec_task *task_reserve(__u64 now)
{
	struct cc_rec_task *r = bpf_ringbuf_reserve(&control, sizeof(*r), 0);

	if (!r) {
		cnt_add(CC_CNT_DROP_TASK, 1);
		rec_lost(CC_REC_TASK, sizeof(*r), now);
	}
	return r;
}

/* Tells that process @tgid, of task @p, is traced from now on. */
static __always_inline void target_tell(struct task_struct *p, __u32 parent, __u32 flags, __u64 now)
{
	struct cc_rec_target *r = bpf_ringbuf_reserve(&control, sizeof(*r), 0);

	if (!r) {
		cnt_add(CC_CNT_DROP_TASK, 1);
		rec_lost(CC_REC_TARGET, sizeof(*r), now);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	rec_init(&r->h, sizeof(*r), CC_REC_TARGET,
		 CC_TG_CAME | (flags & CC_TF_FOLLOWED ? CC_TG_FOLLOWED : 0), 0, now);
	r->tgid = p->tgid;
	r->parent = parent;
	r->start = p->start_boottime;
	BPF_CORE_READ_INTO(&r->comm, p, comm);
	control_commit(r, now);
}

/* A traced process forked: its child is traced too. */
static __always_inline void target_inherit(struct task_struct *parent, struct task_struct *child,
					   __u64 now)
{
	struct cc_bpf_target t = { .parent = parent->tgid };
	const struct cc_bpf_target *from = target_of(parent->tgid);

	if (!from)
		return;
	t.flags = from->flags;
	if (target_put(child->tgid, &t, BPF_ANY))
		cnt_add(CC_CNT_STORAGE_FAIL, 1);
	else
		target_tell(child, parent->tgid, t.flags, now);
}

/* Names that make a process a target when it takes them (--comm). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CC_BPF_COMMS_MAX);
	__type(key, char[CC_COMM_LEN]);
	__type(value, __u32);
} target_comms SEC(".maps");

__u32 target_comm_cnt;

/* @p, the current task, is called @comm from now on, which may make its process a target. Returns
 * its storage when it did. */
static __noinline struct task_state *target_by_name(struct task_struct *p, const char *comm,
						    __u64 now)
{
	char key[CC_COMM_LEN] = {};
	struct cc_bpf_target t = {};
	struct task_state *st;
	__u32 tgid = p->tgid;

	bpf_probe_read_kernel_str(&key, sizeof(key), comm);
	if (p->pid != p->tgid || is_target(tgid) || !bpf_map_lookup_elem(&target_comms, key))
		return NULL;
	if (target_put(tgid, &t, BPF_NOEXIST))
		return NULL;
	target_tell(p, 0, 0, now);
	st = task_make(p);
	if (st) {
		st->nr = -1;
		st->in = now;
	}
	return st;
}

/* Before the child can run: its first wait for a CPU begins here. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u64 now = bpf_ktime_get_ns();
	struct cc_rec_task *r;
	struct task_state *st;

	if (cfg.pid_nested)
		pidns_note(child);
	if (!task_find(parent) && !is_target(parent->tgid))
		return 0;
	if (child->tgid != parent->tgid) {
		target_inherit(parent, child, now);
		chain_fork(parent->tgid, child->tgid);
	}
	st = task_make(child);
	if (st) {
		st->waker_tid = parent->pid;
		st->waker_tgid = parent->tgid;
		st->nr = -1;
		st->wake = now;
		st->now = CC_EP_BORN;
		st->out = now;
	} else { /* the next iterator round tries again */
		cnt_add(CC_CNT_STORAGE_FAIL, 1);
	}
	r = task_reserve(now);
	if (!r)
		return 0;
	task_rec(r, child, CC_TASK_FORK, now);
	r->h.flags |= CC_TF_TRACED;
	r->parent = parent->pid;
	control_commit(r, now);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *p, int old_pid)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 tgid = p->tgid;
	struct cc_rec_task *r;

	if (!task_find(p) && !(target_comm_cnt && target_by_name(p, p->comm, now)))
		return 0;
	chain_forget(tgid);
	if (go_proc_cnt) /* what was known of the program is no more */
		go_proc_forget(tgid);
	r = task_reserve(now);
	if (!r)
		return 0;
	task_rec(r, p, CC_TASK_EXEC, now);
	r->h.flags |= CC_TF_TRACED;
	r->old_tid = (__u32)old_pid;
	control_commit(r, now);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *p)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 tgid = p->tgid;
	struct cc_rec_task *r;
	struct task_state *st = task_find(p);

	if (!st)
		return 0;
	task_short_flush(p, st, now);
	if (st->lost) /* no record of its own will carry it any more */
		rec_lost(CC_REC_EPISODE, 0, now);
	if (!p->signal->live.counter) {
		bpf_map_delete_elem(&targets, &tgid);
		chain_forget(tgid);
	}
	r = task_reserve(now);
	if (!r)
		return 0;
	task_rec(r, p, CC_TASK_EXIT, now);
	r->h.flags |= CC_TF_TRACED;
	r->exit_code = p->exit_code;
	control_commit(r, now);
	return 0;
}

/* pthread_setname_np() and prctl(PR_SET_NAME); exec has its own record. */
SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *p, const char *comm)
{
	__u64 now = bpf_ktime_get_ns();
	struct cc_rec_task *r;

	if (!task_find(p) &&
	    !(target_comm_cnt && p == bpf_get_current_task_btf() && target_by_name(p, comm, now)))
		return 0;
	r = task_reserve(now);
	if (!r)
		return 0;
	task_rec(r, p, CC_TASK_COMM, now);
	r->h.flags |= CC_TF_TRACED;
	bpf_probe_read_kernel_str(&r->comm, sizeof(r->comm), comm);
	control_commit(r, now);
	return 0;
}
