// SPDX-License-Identifier: GPL-2.0-only
/* go_chan: work that goes from goroutine to goroutine through a channel. A direct hand-off and what
 * is taken from a full buffer are exact: the runtime holds the channel's lock there. What is seen
 * before the lock is taken is marked as such. An item is known by a hash of its first bytes only.
 */
#include "go_here.h"

char LICENSE[] SEC("license") = "GPL";

#define ITEM_BYTES 32u
enum { ITEM_SENT = 1, ITEM_RECEIVED = 2 };
enum { ITEM_EXACT = 1, ITEM_PEEK = 2 };

struct chan {
	__u64 at, qcount, size;
	__u32 elem;
};

static __always_inline bool chan_read(const struct cc_bpf_go *go, __u64 at, struct chan *c)
{
	c->at = at;
	c->qcount = go_read(at, go->at.hchan_qcount);
	c->size = go_read(at, go->at.hchan_dataqsiz);
	c->elem = (__u32)go_read(at, go->at.hchan_elemsize) & 0xffff;
	return at && c->elem; /* an empty struct is a signal, not work */
}

/* 0: it cannot be read. */
static __always_inline __u64 item_hash(const struct cc_bpf_go *go, const struct chan *c, __u64 item)
{
	__u64 w[ITEM_BYTES / 8] = {}, h = go->seed;
	__u32 n = c->elem < ITEM_BYTES ? c->elem : ITEM_BYTES;

	if (!item || bpf_probe_read_user(w, n, (void *)item))
		return 0;
	for (__u32 i = 0; i < ITEM_BYTES / 8; i++)
		h = go_hash(h, w[i]);
	return h ? h : 1;
}

/* The item that the next receive takes from the buffer. */
static __always_inline __u64 head_hash(const struct cc_bpf_go *go, const struct chan *c)
{
	__u64 idx = go_read(c->at, go->at.hchan_recvx), buf = go_read(c->at, go->at.hchan_buf);

	return buf && idx < c->size ? item_hash(go, c, buf + idx * c->elem) : 0;
}

static __always_inline void item_send(const struct go_here *h, const struct chan *c, __u16 what,
				      __u8 how, __u64 item, __u64 peer)
{
	struct cc_rec_go_item *r;
	__u64 goid = go_current(h);

	if (!goid || (!item && !peer))
		return;
	r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);
	if (!r) {
		cnt_add(CC_CNT_DROP_GO, 1);
		rec_lost(CC_REC_GO_ITEM, sizeof(*r), h->now);
		return;
	}
	rec_init(&r->h, sizeof(*r), CC_REC_GO_ITEM, how, what, h->now);
	r->goid = goid;
	r->peer_goid = peer;
	r->channel = c->at;
	r->item = item;
	r->tgid = h->cur->tgid;
	r->tid = h->cur->pid;
	events_commit(r, h->now);
}

/* send(c, sg, ep, ...): the running goroutine gives *ep to sg.g, which waits. */
SEC("uprobe")
int go_send(struct pt_regs *ctx)
{
	struct go_here h;
	struct chan c;
	__u64 to;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_SEND) || !chan_read(h.go, GO_ARG0(ctx), &c))
		return 0;
	to = go_read(GO_ARG1(ctx), h.go->at.sudog_g);
	item_send(&h, &c, ITEM_SENT, ITEM_EXACT, item_hash(h.go, &c, GO_ARG2(ctx)),
		  go_read(to, h.go->at.g_goid));
	return 0;
}

/* recv(c, sg, ep, ...): the running goroutine takes from sg.g, which waits: its item, or with a
 * buffer, which is full then, the one at its head. */
SEC("uprobe")
int go_recv(struct pt_regs *ctx)
{
	struct go_here h;
	struct chan c;
	__u64 from, elem;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_RECV) || !chan_read(h.go, GO_ARG0(ctx), &c))
		return 0;
	if (c.size) {
		item_send(&h, &c, ITEM_RECEIVED, ITEM_EXACT, head_hash(h.go, &c), 0);
		return 0;
	}
	from = go_read(GO_ARG1(ctx), h.go->at.sudog_g);
	elem = go_read(GO_ARG1(ctx), h.go->at.sudog_elem);
	item_send(&h, &c, ITEM_RECEIVED, ITEM_EXACT, item_hash(h.go, &c, elem),
		  go_read(from, h.go->at.g_goid));
	return 0;
}

/* chansend(c, ep, ...): who an item in a buffer is from. */
SEC("uprobe")
int go_chansend(struct pt_regs *ctx)
{
	struct go_here h;
	struct chan c;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_CHANSEND) || !chan_read(h.go, GO_ARG0(ctx), &c) ||
	    !c.size)
		return 0;
	item_send(&h, &c, ITEM_SENT, 0, item_hash(h.go, &c, GO_ARG1(ctx)), 0);
	return 0;
}

/* chanrecv(c, ep, ...) */
SEC("uprobe")
int go_chanrecv(struct pt_regs *ctx)
{
	struct go_here h;
	struct chan c;

	if (!go_here(&h, ctx, CC_BPF_GO_AT_CHANRECV) || !chan_read(h.go, GO_ARG0(ctx), &c) ||
	    !c.size || !c.qcount)
		return 0;
	item_send(&h, &c, ITEM_RECEIVED, ITEM_PEEK, head_hash(h.go, &c), 0);
	return 0;
}
