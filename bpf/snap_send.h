/* SPDX-License-Identifier: GPL-2.0-only */
/* snap_send: takes the stacks of the current task and sends them at once; the budget of all SNAPs.
 */
#ifndef CC_BPF_SNAP_SEND_H
#define CC_BPF_SNAP_SEND_H

#include "chain.h"
#include "snap.h"

/* One per context that may interrupt another: resume (preemption off), waking (irqs off), the timer
 * of samples. */
enum { SNAP_SLOT_RESUME, SNAP_SLOT_WAKING, SNAP_SLOT_SAMPLE, SNAP_SLOT_CNT };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SNAP_SLOT_CNT);
	__type(key, __u32);
	__type(value, struct snap_buf);
} snap_bufs __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SNAP_SLOT_CNT);
	__type(key, __u32);
	__type(value, struct chain_buf);
} chain_bufs __weak SEC(".maps");

/* A storm of slow waits must not flood the ring nor the unwinder: waits longer than 20 x
 * --stack-min have four times the budget of the others, and none is sent into a half full ring. One
 * that goes raw takes as much of it as four that are unwound here: snap_spent(). */
#define SNAP_RAW 4

static __always_inline bool snap_allowed(struct cpu_state *c, __u64 waited, __u64 now)
{
	__u32 max = cfg.snap_burst * SNAP_RAW;

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

static __always_inline void snap_spent(struct cpu_state *c, bool raw)
{
	if (raw)
		c->snap_cnt += SNAP_RAW - 1;
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

/* Sends b->head with the kernel frames of @cb and the @bytes that lie in @b, raw. */
static __always_inline void snap_raw(struct chain_buf *cb, struct snap_buf *b, __u32 bytes,
				     __u64 now)
{
	__u32 kbytes = cb->kcnt * 8, off, size;
	struct cc_rec_snap *s = (struct cc_rec_snap *)cb->head;

	if (kbytes > SNAP_FRAME_BYTES || bytes > CC_SNAP_MAX)
		return;
	off = SNAP_FRAME_BYTES - kbytes;
	barrier_var(off); /* else it becomes a subtraction from the pointer, which is refused */
	if (off > SNAP_FRAME_BYTES)
		return;
	size = sizeof(*s) + kbytes + bytes;
	rec_init(&s->h, (__u16)size, CC_REC_SNAP, 0, s->h.aux, now);
	s->kframe_cnt = cb->kcnt;
	s->byte_cnt = bytes;
	bpf_probe_read_kernel(b->room + off, sizeof(*s), cb->head);
	bpf_probe_read_kernel(b->room + off + sizeof(*s), kbytes, cb->kframes);
	if (size > SNAP_BYTES_AT + CC_SNAP_MAX)
		return;
	if (events_output(b->room + off, size))
		cnt_add(CC_CNT_DROP_SNAP, 1);
	else
		cnt_add(CC_CNT_STACK_BYTES, size + 8);
}

/* Sends the stacks of @cur, which is the current task. @ctx is the program's. Returns true if they
 * go raw. */
static __noinline int snap_current(void *ctx, struct task_struct *cur, __u32 slot,
				   struct snap_who *who, __u64 now)
{
	struct snap_buf *b = bpf_map_lookup_elem(&snap_bufs, &slot);
	struct chain_buf *cb = bpf_map_lookup_elem(&chain_bufs, &slot);
	struct cc_rec_snap *s;
	__u32 bytes = 0;
	__u64 ukey = 0;
	long frames;

	if (!b || !cb)
		return 0;
	s = (struct cc_rec_snap *)cb->head;
	__builtin_memset(s, 0, sizeof(*s));
	s->h.aux = (__u16)who->kind;
	s->tid = who->tid;
	s->seq = who->seq;
	s->owner_tid = cur->pid;
	frames = bpf_get_stack(ctx, cb->kframes, SNAP_FRAME_BYTES, 0);
	cb->kcnt = frames > 0 && frames <= (long)SNAP_FRAME_BYTES ? (__u32)frames / 8 : 0;
	if (who->user) {
		snap_regs(s, cur, (struct pt_regs *)bpf_task_pt_regs(cur));
		bytes = snap_user_bytes(s, b, SNAP_BYTES_AT);
		s->layout = code_look(s, cur);
		if (s->layout && cfg.rule_cache)
			ukey = chain_user(cb, b->room + SNAP_BYTES_AT, bytes);
		if (who->kind != CC_SNAP_SAMPLE) /* they stand anywhere */
			cnt_add(ukey ? CC_CNT_CHAINS : CC_CNT_SNAPS, 1);
	}
	if (cfg.rule_cache == RULES_ON && (ukey || !who->user)) {
		chain_send(cb, ukey, now);
		return false;
	}
	s->chain = ukey;
	snap_raw(cb, b, bytes, now);
	return true;
}

#endif
