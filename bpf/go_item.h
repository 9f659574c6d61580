/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * go_item: work that goes from goroutine to goroutine through a channel. Whoever is woken from a
 * channel by a goroutine was given something by it, unless the channel was closed, or gave it
 * something, which the reason of its wait says. What goes through a buffer is followed by its
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
	r = events_reserve(sizeof(*r));
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

/* A channel: where its buffer is, and how much of it. */
struct go_chan {
	__u64 at, end; /* the places in its buffer; both 0: none, an item goes from hand to hand */
	__u32 elem;    /* bytes of an item; 0: an empty struct, which is a signal, not work */
	__u32 recvx;   /* place of the next one to be taken */
};

static __always_inline bool go_chan_read(const struct cc_bpf_go *go, __u64 c, struct go_chan *ret)
{
	struct go_words w;
	__u64 cnt;

	if (!go_read_words(&w, c, GO_HCHAN_BYTES))
		return false;
	cnt = go_word(&w, c, go->at.hchan_dataqsiz, GO_HCHAN_BYTES);
	ret->elem = (__u32)go_word(&w, c, go->at.hchan_elemsize, GO_HCHAN_BYTES) & 0xffff;
	ret->recvx = (__u32)go_word(&w, c, go->at.hchan_recvx, GO_HCHAN_BYTES);
	ret->at = cnt && cnt < 1u << 30 ? go_word(&w, c, go->at.hchan_buf, GO_HCHAN_BYTES) : 0;
	ret->end = ret->at ? ret->at + cnt * ret->elem : 0;
	return true;
}

/* Is @pc in the runtime's recv()? */
static __always_inline bool go_in_recv(const struct cc_bpf_go *go, __u64 pc)
{
	return go->park_ip && pc - (go->park_ip + (__u64)go->recv_at) < go->recv_size;
}

/* Does the running goroutine, which makes another one ready, take from it? It is in recv() then, or
 * that called goready(), unless the compiler put that into it, which called systemstack(), which
 * noted where its caller goes on. */
static __always_inline bool go_takes(const struct go_here *h)
{
	const struct cc_bpf_go *go = h->go;
	__u64 g = h->st->go_g, sp;

	if (h->g == g)
		return go_in_recv(go, h->ip);
	sp = go_read(g, go->at.g_sched_sp);
	return go_in_recv(go, go_read(sp, 0)) ||
	       (go->at.g_sched_bp != GO_NO_FIELD &&
		go_in_recv(go, go_read(go_read(g, go->at.g_sched_bp), 8)));
}

struct go_given { /* for sure: runtime.send() is called */
	__u64 chan, sg;
};

/* The running goroutine gives @x to the one of @s, which waits for that; @w is room. */
static __always_inline void go_gives(const struct go_here *h, struct cc_bpf_go_state *s,
				     const struct go_given *x, struct go_words *w)
{
	struct go_item i = { .what = ITEM_SENT,
			     .how = ITEM_EXACT,
			     .goid = s->waker_goid,
			     .peer = s->goid,
			     .chan = x->chan,
			     .at = x->sg };

	s->object = x->chan;
	if (go_read_words(w, x->chan, GO_HCHAN_BYTES) &&
	    (__u16)go_word(w, x->chan, h->go->at.hchan_elemsize, GO_HCHAN_BYTES))
		go_item_send(h, &i);
}

/* @gp, which waited for channel s->object, 0: for several, was woken by the running goroutine, with
 * sudog @sg, which gave it an item, or takes its own (@takes); @w is room. */
static __always_inline void go_gave(const struct go_here *h, struct cc_bpf_go_state *s, __u64 gp,
				    __u64 sg, bool takes, struct go_words *w)
{
	const struct cc_bpf_go *go = h->go;
	struct go_item x = { .what = takes ? ITEM_RECEIVED : ITEM_SENT, .how = ITEM_EXACT };
	__u32 success = go->at.sudog_isselect + 1; /* it stands there in all versions since 1.16 */
	bool has_buffer, has_item, closed, known = s->object;
	__u64 v;

	if (!known) {
		if (!go_read_words(w, sg, GO_SUDOG_BYTES) ||
		    go_word(w, sg, go->at.sudog_g, GO_SUDOG_BYTES) != gp)
			return;
		s->object = go_word(w, sg, go->at.sudog_c, GO_SUDOG_BYTES);
		if (!(go_word(w, sg, success & ~7u, GO_SUDOG_BYTES) >> (success & 7) * 8 & 1))
			return;
	}
	x.chan = s->object;
	if (!go_read_words(w, x.chan, GO_HCHAN_BYTES))
		return;
	has_buffer = go_word(w, x.chan, go->at.hchan_dataqsiz, GO_HCHAN_BYTES) != 0;
	/* {u16 elemsize, u32 closed} in every version */
	v = go_word(w, x.chan, go->at.hchan_elemsize, GO_HCHAN_BYTES);
	has_item = (v & 0xffff) != 0;
	closed = v >> 32 != 0 || go->at.hchan_closed != go->at.hchan_elemsize + 4;
	if (!has_item || (takes && has_buffer)) /* go_pass() has told of the latter */
		return;
	/* by its closing, or just before that? */
	if (known && closed && !((__u8)go_read(sg, success)))
		return;
	x.goid = s->waker_goid;
	x.peer = s->goid;
	x.at = sg;
	go_item_send(h, &x);
}

#endif
