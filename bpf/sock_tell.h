/* SPDX-License-Identifier: GPL-2.0-only */
/* sock_tell: REQ and SOCKOP records. */
#ifndef CC_BPF_SOCK_TELL_H
#define CC_BPF_SOCK_TELL_H

#include "sock.h"

/* Tells the request as it is. */
static __always_inline void tell_here(struct req_state *s, __u32 end, __u64 now)
{
	struct cc_rec_req *r = req_reserve();

	if (r) {
		rec_init(&r->h, sizeof(*r), CC_REC_REQ, 0, (__u16)end, now);
		req_fill(s, (__u16)end, r);
		req_commit(r, now);
	} else {
		cnt_add(CC_CNT_DROP_REQ, 1);
		rec_lost(CC_REC_REQ, sizeof(*r), now);
	}
	req_told(s);
}

/* The same, not inlined: seven callers, and 224 bytes of stores. */
static __noinline int tell(struct req_state *s, __u32 end, __u64 now)
{
	if (s)
		tell_here(s, end, now);
	return 0;
}

struct sockop {
	__u64 now, bytes;
	__u32 tid, tgid;
	__u32 ordinal;
	__u16 op;
	__u8 flags;
};

static __always_inline struct cc_rec_sockop *sockop_new(__u64 now)
{
	struct cc_rec_sockop *r = events_reserve(sizeof(*r));

	if (!r) {
		cnt_add(CC_CNT_DROP_SOCKOP, 1);
		rec_lost(CC_REC_SOCKOP, sizeof(*r), now);
	}
	return r;
}

/* An operation on @s that REQ does not tell. */
static __noinline int tell_op(const struct req_state *s, const struct sockop *o)
{
	struct cc_rec_sockop *r;
	__u8 flags;

	if (!s || !o)
		return 0;
	r = sockop_new(o->now);
	if (!r)
		return 0;
	flags = o->flags;
	r->link_cookie = 0;
	r->link_ordinal = 0;
	if (s->role == RQ_ROLE_UPSTREAM) {
		flags |= CC_SO_UPSTREAM;
		if (s->link_cookie) {
			flags |= CC_SO_LINKED;
			r->link_cookie = s->link_cookie;
			r->link_ordinal = s->link_ordinal;
		}
	}
	rec_init(&r->h, sizeof(*r), CC_REC_SOCKOP, flags, o->op, o->now);
	r->cookie = s->cookie;
	r->tid = o->tid;
	r->tgid = o->tgid;
	r->bytes = o->bytes;
	r->ordinal = o->ordinal;
	r->local_port = s->local_port;
	r->pad[0] = r->pad[1] = r->pad[2] = 0;
	req_copy_addr(&r->peer, &s->peer);
	events_commit(r, o->now);
	return 0;
}

/* Both votes named request @s: tells the reply's read once more, now with VOTE2. */
static __noinline int tell_vote(const struct req_task *t, const struct req_state *s,
				const struct req_op *op)
{
	struct cc_rec_sockop *r;

	if (!t || !s || !op)
		return 0;
	r = sockop_new(op->now);
	if (!r)
		return 0;
	rec_init(&r->h, sizeof(*r), CC_REC_SOCKOP, CC_SO_UPSTREAM | CC_SO_LINKED | CC_SO_VOTE2,
		 CC_OP_RECV, t->back_ts);
	r->cookie = s->up_cookie;
	r->tid = op->tid;
	r->tgid = op->tgid;
	r->bytes = 0;
	r->link_cookie = s->cookie;
	r->link_ordinal = s->ordinal;
	r->ordinal = 0;
	r->local_port = 0;
	r->pad[0] = r->pad[1] = r->pad[2] = 0;
	req_copy_addr(&r->peer, &s->up_peer);
	events_commit(r, op->now);
	return 0;
}

#endif
