/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * chain: unwinds user stacks here, by rules that user space taught (rule.h): no raw stack goes
 * through the ring, and of a stack that was told before only its key does. One read of the stack,
 * then one look-up a frame. A frame without a rule, or anything unexpected, and the stack is sent
 * raw, as if there were no cache; user space teaches what was missing then.
 */
#ifndef CC_BPF_CHAIN_H
#define CC_BPF_CHAIN_H

#include "layout.h"

#include "chain_walk.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct cc_rule_key);
	__type(value, struct cc_rule);
} rules __weak SEC(".maps");

/* Keys of stacks whose frames were told. One that was pushed out is told again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u8);
} chains_told __weak SEC(".maps");

struct chain_buf {
	__u64 head[sizeof(struct cc_rec_snap) / 8]; /* whose registers the walk begins with */
	__u64 rec[sizeof(struct cc_rec_chain) / 8];
	__u64 ip[CC_STACK_MAX + CC_SNAP_KFRAMES]; /* behind rec: what is sent */
	__u64 kframes[CC_SNAP_KFRAMES];
	struct chain_at at; /* of the walk; here, so that the verifier need not follow values */
	__u64 hash;
	__u32 kcnt, ucnt, flags, end;
};

static __always_inline bool chain_known(__u64 key)
{
	return bpf_map_lookup_elem(&chains_told, &key) != NULL;
}

struct chain_walk { /* what one frame's step needs */
	struct chain_buf *b;
	const __u8 *stack;
	__u64 layout, sp;
	__u32 bytes, pad;
};

/* One frame. Returns 1 to end. */
static long chain_frame(__u32 i, struct chain_walk *w)
{
	const struct chain_stack s = { .bytes = w->stack, .sp = w->sp, .len = w->bytes };
	struct chain_buf *b = w->b;
	struct cc_rule_key key = { .layout = w->layout, .ip = b->at.ip | b->at.exact };
	struct cc_rule *r = bpf_map_lookup_elem(&rules, &key);

	if (!r || i >= CC_STACK_MAX) {
		((struct cc_rec_snap *)b->head)->miss = key.ip;
		return 1;
	}
	b->ip[i] = b->at.ip;
	b->hash = hash_add(b->hash, b->at.ip);
	b->ucnt = i + 1;
	if (r->what & CC_RULE_GUESSED)
		b->flags |= CC_ST_GUESSED;
	b->end = chain_step(&b->at, &s, r);
	return b->end != CHAIN_ON;
}

/* Follows the stack of b->head, of which @bytes lie at @stack, to its end. Returns its key, or 0.
 * By bpf_loop() (since 5.17): the verifier follows one step, and not all, which takes a second. */
static __noinline __u64 chain_user(struct chain_buf *b, const __u8 *stack, __u32 bytes)
{
	struct cc_rec_snap *head = (struct cc_rec_snap *)b->head;
	struct chain_walk w = {
		.b = b, .stack = stack, .layout = head->layout, .sp = head->sp, .bytes = bytes
	};

	b->at = (struct chain_at){
		.ip = head->ip, .sp = head->sp, .fp = head->bp, .exact = CC_RULE_EXACT
	};
	b->hash = 0;
	b->flags = 0;
	b->end = CHAIN_ON;
	bpf_loop(CC_STACK_MAX, chain_frame, &w, 0);
	if (b->end != CHAIN_FULL && b->end != CHAIN_PART)
		return 0;
	if (b->end == CHAIN_FULL && !(b->flags & CC_ST_GUESSED))
		b->flags |= CC_ST_COMPLETE;
	return chain_key(b->hash, head->layout, head->owner_tgid, b->flags);
}

static __always_inline __u64 chain_kernel(struct chain_buf *b)
{
	b->hash = 0;
	for (__u32 i = 0; i < CC_SNAP_KFRAMES; i++) {
		if (i >= b->kcnt)
			break;
		b->hash = hash_add(b->hash, b->kframes[i]);
	}
	return b->kcnt ? chain_key(b->hash, 0, 0, CC_ST_KERNEL) : 0;
}

/* Sends what chain_user() found, @ukey, if it was asked, and bpf_get_stack(). */
static __noinline int chain_send(struct chain_buf *b, __u64 ukey, __u64 now)
{
	struct cc_rec_snap *s = (struct cc_rec_snap *)b->head;
	struct cc_rec_chain *r = (struct cc_rec_chain *)b->rec;
	__u32 ucnt, kcnt, size;
	__u8 one = 1;
	__u64 key;

	r->ukey = ukey;
	r->kkey = chain_kernel(b);
	ucnt = !r->ukey || chain_known(r->ukey) ? 0 : b->ucnt;
	kcnt = !r->kkey || chain_known(r->kkey) ? 0 : b->kcnt;
	if (ucnt > CC_STACK_MAX || kcnt > CC_SNAP_KFRAMES)
		return 0;
	bpf_probe_read_kernel(&b->ip[ucnt], kcnt * 8, b->kframes);
	size = sizeof(*r) + (ucnt + kcnt) * 8;
	rec_init(&r->h, (__u16)size, CC_REC_CHAIN, r->ukey ? (__u8)b->flags : 0, s->h.aux, now);
	r->tid = s->tid;
	r->seq = s->seq;
	r->owner_tgid = r->ukey ? s->owner_tgid : 0;
	r->ucnt = (__u16)ucnt;
	r->kcnt = (__u16)kcnt;
	r->layout = s->layout;
	if (size > sizeof(b->rec) + sizeof(b->ip))
		return 0;
	if (events_output(b->rec, size)) {
		cnt_add(CC_CNT_DROP_SNAP, 1);
		return 0;
	}
	cnt_add(CC_CNT_STACK_BYTES, size + 8);
	key = r->ukey;
	if (ucnt)
		bpf_map_update_elem(&chains_told, &key, &one, BPF_ANY);
	key = r->kkey;
	if (kcnt)
		bpf_map_update_elem(&chains_told, &key, &one, BPF_ANY);
	return 0;
}

#endif
