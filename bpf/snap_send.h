/* SPDX-License-Identifier: GPL-2.0-only */
/* snap_send: takes the stacks of the current task and sends them at once; the budget of all SNAPs.
 */
#ifndef CC_BPF_SNAP_SEND_H
#define CC_BPF_SNAP_SEND_H

#include "snap.h"

#define SNAP_WINDOW_NS 20000000ull

/* One per context that may interrupt another: resume (preemption off), waking (irqs off), the timer
 * of samples. */
enum { SNAP_SLOT_RESUME, SNAP_SLOT_WAKING, SNAP_SLOT_SAMPLE, SNAP_SLOT_CNT };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SNAP_SLOT_CNT);
	__type(key, __u32);
	__type(value, struct snap_buf);
} snap_bufs __weak SEC(".maps");

/* A storm of slow waits must not flood the ring nor the unwinder: waits longer than 20 x
 * --stack-min have four times the budget of the others, and none is sent into a half full ring. */
static __always_inline bool snap_allowed(struct cpu_state *c, __u64 waited, __u64 now)
{
	__u32 max = cfg.snap_burst;

	if (now - c->snap_since >= SNAP_WINDOW_NS) {
		c->snap_since = now;
		c->snap_cnt = 0;
	}
	if (waited >= 20 * cfg.stack_min_ns)
		max *= 4;
	if (c->snap_cnt >= max ||
	    bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > 2 * cfg.events_quarter) {
		cnt_add(CC_CNT_SNAP_BUDGET, 1);
		return false;
	}
	c->snap_cnt++;
	return true;
}

/* Reads the user stack from s->sp up into b->room[at...]. The current mm must be that of the stack.
 * Returns the bytes read, a multiple of 8. */
static __always_inline __u32 snap_user_bytes(const struct cc_rec_snap *s, struct snap_buf *b,
					     __u32 at)
{
	__u64 sp = s->sp, top = s->stack_top;
	__u32 want = cfg.snap_bytes, got = 0;

	if (at > SNAP_BYTES_AT)
		return 0;
	if (top && top - sp < want)
		want = (__u32)(top - sp) & ~7u;
	if (want > CC_SNAP_MAX)
		want = CC_SNAP_MAX;
	if (!bpf_probe_read_user(b->room + at, want, (void *)sp))
		return want;
	for (int i = 0; i <= (int)(CC_SNAP_MAX / SNAP_PAGE); i++) { /* a part is not there */
		__u32 step = SNAP_PAGE - ((__u32)(sp + got) & (SNAP_PAGE - 1));

		if (got >= want || got > CC_SNAP_MAX)
			break;
		if (step > want - got)
			step = want - got;
		if (step > SNAP_PAGE)
			break;
		if (bpf_probe_read_user(b->room + at + got, step, (void *)(sp + got)))
			break;
		got += step;
	}
	return got & ~7u;
}

struct snap_who {
	__u32 tid, seq; /* of the EPISODE */
	__u32 kind;     /* CC_SNAP_* */
	bool user;      /* with the user stack of @current */
};

/* Sends the stacks of @cur, which is the current task. @ctx is the program's. */
static __noinline int snap_current(void *ctx, struct task_struct *cur, __u32 slot,
				   struct snap_who *who, __u64 now)
{
	struct snap_buf *b = bpf_map_lookup_elem(&snap_bufs, &slot);
	__u32 frames_at = sizeof(struct cc_rec_snap), bytes = 0, size;
	struct cc_rec_snap *s;
	long frames;

	if (!b)
		return 0;
	s = (struct cc_rec_snap *)b->room;
	__builtin_memset(s, 0, sizeof(*s));
	frames = bpf_get_stack(ctx, b->room + frames_at, SNAP_FRAME_BYTES, 0);
	if (frames < 0)
		frames = 0;
	if (frames > SNAP_FRAME_BYTES)
		frames = SNAP_FRAME_BYTES;
	s->owner_tid = cur->pid;
	if (who->user) {
		snap_regs(s, cur, (struct pt_regs *)bpf_task_pt_regs(cur));
		bytes = snap_user_bytes(s, b, frames_at + (__u32)frames);
	}
	size = frames_at + (__u32)frames + bytes;
	rec_init(&s->h, (__u16)size, CC_REC_SNAP, 0, (__u16)who->kind, now);
	s->tid = who->tid;
	s->seq = who->seq;
	s->kframe_cnt = (__u32)frames / 8;
	s->byte_cnt = bytes;
	if (size > sizeof(*b))
		return 0;
	if (bpf_ringbuf_output(&events, b, size, BPF_RB_NO_WAKEUP))
		cnt_add(CC_CNT_DROP_SNAP, 1);
	return 0;
}

#endif
