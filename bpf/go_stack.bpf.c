// SPDX-License-Identifier: GPL-2.0-only
/*
 * go_stack: the stack of a goroutine of the current process. Go code keeps frame
 * pointers, so their chain is all there is to follow. A stack is told once, as a STACK record
 * without names, which user space adds. A global function, so that the verifier follows the loop
 * only once.
 */
#include "go_stack.h"

char LICENSE[] SEC("license") = "GPL";

#define WINDOW_WORDS 128
#define PAGE 4096

/* The record is built in the thread's own storage: a uprobe may be preempted, so a CPU's buffer
 * would be another's in the middle of it. */
struct go_stack_buf {
	__u64 head[sizeof(struct cc_rec_stack) / 8];
	__u64 ip[CC_STACK_MAX];
	__u64 window[WINDOW_WORDS]; /* a part of the stack: one read for several frames */
	__u64 key;                  /* so far */
	__u32 cnt;
	__u32 full; /* the start of the goroutine was reached */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct go_stack_buf);
} go_stack_bufs SEC(".maps");

/* Keys told. One that was pushed out is told again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u8);
} go_stacks SEC(".maps");

/* A part of the stack from @at on to the window, whose bounds are in *from and *to. */
static __always_inline bool go_window(struct go_stack_buf *b, const struct go_frame *top, __u64 at,
				      __u64 *from, __u64 *to)
{
	__u64 len = top->hi - at;

	if (len > sizeof(b->window))
		len = sizeof(b->window);
	if (len < 16)
		return false;
	if (bpf_probe_read_user(b->window, (__u32)len, (void *)at)) {
		/* where the stack ends may not be known; it goes on to the end of its page */
		len = PAGE - (at & (PAGE - 1));
		if (len > sizeof(b->window) || len < 16 ||
		    bpf_probe_read_user(b->window, (__u32)len, (void *)at))
			return false;
	}
	*from = at;
	*to = at + len;
	return true;
}

static __always_inline bool go_on_stack(const struct go_frame *top, __u64 at)
{
	return at >= top->lo && at < top->hi && !(at & 7);
}

/* Follows the frames from top->bp. What it finds lies in @b and not in registers, so that the
 * verifier need not tell every length from the others. */
static __always_inline void go_frames(struct go_stack_buf *b, const struct go_frame *top)
{
	__u64 from = 0, to = 0, bp = top->bp, next, ret;
	__u32 first = 1;

	if (go_on_stack(top, top->sp)) {
		if (!go_window(b, top, top->sp, &from, &to))
			return;
		b->ip[1] = b->window[0];
		b->key = go_hash(b->key, b->ip[1]);
		b->cnt = first = 2;
	}
	for (__u32 i = first; i < CC_STACK_MAX; i++) {
		__u64 at;

		if (!go_on_stack(top, bp))
			break;
		if ((bp < from || bp + 16 > to) && !go_window(b, top, bp, &from, &to))
			break;
		at = (bp - from) / 8;
		if (at >= WINDOW_WORDS - 1)
			break;
		next = b->window[at];
		ret = b->window[at + 1];
		b->ip[i] = ret;
		b->key = go_hash(b->key, ret);
		b->cnt = i + 1;
		b->full = !next; /* the frame that returns to runtime.goexit */
		if (next <= bp)
			break;
		bp = next;
	}
}

__noinline __u64 go_stack(const struct go_frame *top, __u64 now)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct go_stack_buf *b;
	struct cc_rec_stack *r;
	__u32 size, cnt;
	__u8 one = 1;
	__u64 key;

	if (!top || !top->pc)
		return 0;
	b = bpf_task_storage_get(&go_stack_bufs, cur, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!b) {
		cnt_add(CC_CNT_STORAGE_FAIL, 1);
		return 0;
	}
	b->ip[0] = top->pc;
	b->key = go_hash(go_hash(top->seed, cur->tgid), top->pc);
	b->cnt = 1;
	b->full = 0;
	go_frames(b, top);
	key = b->key ? b->key : 1;
	if (key == top->told || bpf_map_lookup_elem(&go_stacks, &key))
		return key;
	cnt = b->cnt;
	if (cnt > CC_STACK_MAX)
		return 0;
	size = sizeof(*r) + cnt * 8;
	r = (struct cc_rec_stack *)b->head;
	rec_init(&r->h, (__u16)size, CC_REC_STACK, b->full ? CC_ST_COMPLETE : 0, (__u16)cnt, now);
	r->key = key;
	r->tgid = cur->tgid;
	r->gen = 0;
	if (events_output(b, size)) {
		cnt_add(CC_CNT_DROP_SNAP, 1);
		return 0;
	}
	bpf_map_update_elem(&go_stacks, &key, &one, BPF_ANY);
	return key;
}
