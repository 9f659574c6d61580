/* SPDX-License-Identifier: GPL-2.0-only */
/* snap_keep: the kept form of a SNAP (see snap.h), for the tiers without sched_exit_tp. */
#ifndef CC_BPF_SNAP_KEEP_H
#define CC_BPF_SNAP_KEEP_H

#include "snap_send.h"

struct task_snap { /* of the wait that began at out */
	__u64 out;
	__u32 off; /* where the record begins */
	__u32 bytes;
	struct snap_buf buf;
};

/* Only created in the waking and eager tiers. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_snap);
} snaps __weak SEC(".maps");

/* Keeps the user stack of @p, which sleeps or goes to sleep; its mm is the current one. */
static __noinline int snap_keep_user(struct task_struct *p, __u64 out)
{
	struct task_snap *k;
	struct cc_rec_snap *s;

	k = bpf_task_storage_get(&snaps, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!k) {
		cnt_add(CC_CNT_STORAGE_FAIL, 1);
		return 0;
	}
	k->out = out;
	k->off = SNAP_FRAME_BYTES;
	s = (struct cc_rec_snap *)(k->buf.room + SNAP_FRAME_BYTES);
	__builtin_memset(s, 0, sizeof(*s));
	snap_regs(s, p, (struct pt_regs *)bpf_task_pt_regs(p));
	s->layout = code_look(s, p);
	s->byte_cnt = snap_user_bytes(s, &k->buf, SNAP_BYTES_AT);
	k->bytes = s->byte_cnt;
	return 0;
}

/* Puts the kernel frames of the sleeping @p before what snap_keep_user() took, or keeps them alone.
 */
static __noinline int snap_keep_kernel(struct task_struct *p, __u64 out)
{
	__u32 slot = SNAP_SLOT_WAKING;
	struct snap_buf *tmp = bpf_map_lookup_elem(&snap_bufs, &slot);
	struct cc_rec_snap head = {};
	struct task_snap *k;
	long frames;
	__u32 off;

	k = bpf_task_storage_get(&snaps, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!k || !tmp)
		return 0;
	if (k->out == out && k->off == SNAP_FRAME_BYTES) {
		head = *(struct cc_rec_snap *)(k->buf.room + SNAP_FRAME_BYTES);
	} else {
		k->out = out;
		k->bytes = 0;
		head.owner_tid = p->pid;
	}
	frames = bpf_get_task_stack(p, tmp->room, SNAP_FRAME_BYTES, 0);
	if (frames <= 0)
		return 0;
	if (frames > SNAP_FRAME_BYTES)
		frames = SNAP_FRAME_BYTES;
	head.kframe_cnt = (__u32)frames / 8;
	off = SNAP_FRAME_BYTES - (__u32)frames;
	barrier_var(off); /* else it becomes a subtraction from the pointer, which is refused */
	if (off > SNAP_FRAME_BYTES)
		return 0;
	k->off = off;
	bpf_probe_read_kernel(k->buf.room + off, sizeof(head), &head);
	bpf_probe_read_kernel(k->buf.room + off + sizeof(head), (__u32)frames, tmp->room);
	return 0;
}

/* Sends what was kept of the wait [out, now) of @p. */
static __noinline int snap_send_kept(struct task_struct *p, __u32 seq, __u64 out, __u64 now)
{
	struct task_snap *k = bpf_task_storage_get(&snaps, p, 0, 0);
	struct cc_rec_snap *s;
	__u32 off, size;

	if (!k || k->out != out)
		return 0;
	off = k->off;
	if (off > SNAP_FRAME_BYTES)
		return 0;
	s = (struct cc_rec_snap *)(k->buf.room + off);
	size = SNAP_BYTES_AT - off + k->bytes;
	rec_init(&s->h, (__u16)size, CC_REC_SNAP, 0, CC_SNAP_BLOCKED, now);
	s->tid = p->pid;
	s->seq = seq;
	if (size > SNAP_BYTES_AT + CC_SNAP_MAX)
		return 0;
	if (s->owner_tgid)
		cnt_add(CC_CNT_SNAPS, 1);
	if (events_output(s, size))
		cnt_add(CC_CNT_DROP_SNAP, 1);
	else
		cnt_add(CC_CNT_STACK_BYTES, size + 8);
	return 0;
}

#endif
