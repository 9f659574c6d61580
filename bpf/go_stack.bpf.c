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

/* Follows the frames from @bp, within @stack {lo, hi}, behind the @first that are known. What it
 * finds lies in @b and not in registers, so that the verifier need not tell every length from the
 * others. */
static __always_inline void go_frames(struct go_stack_buf *b, __u64 bp, const __u64 stack[2],
				      __u32 first)
{
	__u64 from = 0, to = 0, next, ret;

	for (__u32 i = first; i < CC_STACK_MAX; i++) {
		__u64 at;

		if (bp < stack[0] || bp >= stack[1] || bp & 7)
			break;
		if (bp < from || bp + 16 > to) {
			__u64 len = stack[1] - bp;

			if (len > sizeof(b->window))
				len = sizeof(b->window);
			if (len < 16 || bpf_probe_read_user(b->window, (__u32)len, (void *)bp))
				break;
			from = bp;
			to = bp + len;
		}
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

__noinline __u64 go_stack(__u64 gp, const struct go_frame *top, __u64 now)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	const struct cc_bpf_go *go = go_proc(cur->tgid);
	struct go_stack_buf *b;
	struct cc_rec_stack *r;
	__u64 stack[2] = {}, key;
	__u32 size, cnt;
	__u8 one = 1;

	if (!top)
		return 0;
	b = bpf_task_storage_get(&go_stack_bufs, cur, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!b)
		cnt_add(CC_CNT_STORAGE_FAIL, 1);
	if (!b || !go || !top->pc ||
	    bpf_probe_read_user(stack, sizeof(stack), (void *)(gp + go->at.g_stack)))
		return 0;
	b->ip[0] = top->pc;
	b->ip[1] = top->ret;
	b->key = go_hash(go_hash(go_hash(go->seed, cur->tgid), top->pc), top->ret);
	b->cnt = top->ret ? 2 : 1;
	b->full = 0;
	go_frames(b, top->bp, stack, b->cnt);
	key = b->key ? b->key : 1;
	if (bpf_map_lookup_elem(&go_stacks, &key))
		return key;
	cnt = b->cnt;
	if (cnt > CC_STACK_MAX)
		return 0;
	size = sizeof(*r) + cnt * 8;
	r = (struct cc_rec_stack *)b->head;
	rec_init(&r->h, (__u16)size, CC_REC_STACK, b->full ? CC_ST_COMPLETE : 0, (__u16)cnt, now);
	r->key = key;
	r->tgid = cur->tgid;
	r->pad = 0;
	if (bpf_ringbuf_output(&events, b, size, BPF_RB_NO_WAKEUP)) {
		cnt_add(CC_CNT_DROP_SNAP, 1);
		return 0;
	}
	bpf_map_update_elem(&go_stacks, &key, &one, BPF_ANY);
	return key;
}
