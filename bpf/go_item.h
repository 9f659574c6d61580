/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * go_item: work that goes from goroutine to goroutine through a channel. Whoever is woken from a
 * channel by a goroutine was given something by it, unless the channel was closed, or gave it
 * something, which the probe on recv says before. What goes through a buffer is followed by its
 * place there, where it is copied, beneath the channel's lock. So all is exact, and no item is
 * read.
 */
#ifndef CC_BPF_GO_ITEM_H
#define CC_BPF_GO_ITEM_H

#include "go_here.h"

enum { ITEM_SENT = 1, ITEM_RECEIVED = 2 };
enum { ITEM_EXACT = 1, ITEM_PLACE = 4 };

struct go_item { /* what went where */
	__u16 what;
	__u8 how;
	__u64 goid, peer; /* who did it; who waited for that, or 0 */
	__u64 chan;
	__u64 at; /* its place in the buffer; or the sudog of who waited */
};

static __noinline int go_item_send(const struct go_here *h, const struct go_item *x)
{
	struct cc_rec_go_item *r;

	if (!h || !x || !x->goid)
		return 0;
	r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);
	if (!r) {
		cnt_add(CC_CNT_DROP_GO, 1);
		rec_lost(CC_REC_GO_ITEM, sizeof(*r), h->now);
		return 0;
	}
	rec_init(&r->h, sizeof(*r), CC_REC_GO_ITEM, x->how, x->what, h->now);
	r->goid = x->goid;
	r->peer_goid = x->peer;
	r->channel = x->chan;
	r->item = go_hash(h->go->seed, x->at) | 1;
	r->tgid = h->cur->tgid;
	r->tid = h->cur->pid;
	events_commit(r, h->now);
	return 0;
}

/* Bytes of an item of the channel at @c; an empty struct is a signal, not work. */
static __always_inline __u32 go_elem_size(const struct cc_bpf_go *go, __u64 c)
{
	return (__u32)go_read(c, go->at.hchan_elemsize) & 0xffff;
}

/* @gp, whose wait @s is over, was woken by the running goroutine. */
static __always_inline void go_gave(const struct go_here *h, const struct cc_bpf_go_state *s,
				    __u64 gp)
{
	const struct cc_bpf_go *go = h->go;
	__u32 obj = go->obj[s->reason & (CC_BPF_GO_REASONS - 1)];
	struct go_item x = { .what = ITEM_SENT, .how = ITEM_EXACT };
	__u8 success = 0;
	__u64 sg;

	if ((obj != CC_BPF_GO_OBJ_CHAN && obj != CC_BPF_GO_OBJ_SELECT) || !s->waker_goid)
		return;
	if (h->st->go_recv == gp) { /* it was the one that gave */
		h->st->go_recv = 0;
		return;
	}
	sg = go_read(gp, go->at.g_param);
	if (!sg || go_read(sg, go->at.sudog_g) != gp)
		return;
	x.chan = go_read(sg, go->at.sudog_c);
	/* success stands behind isSelect in all versions since 1.16 */
	bpf_probe_read_user(&success, 1, (void *)(sg + go->at.sudog_isselect + 1));
	if (!success || !x.chan || !go_elem_size(go, x.chan))
		return;
	x.goid = s->waker_goid;
	x.peer = s->goid;
	x.at = sg;
	go_item_send(h, &x);
}

#endif
