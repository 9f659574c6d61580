/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * req_link: which request an upstream call is for. Pure, as req_state.h.
 *
 * Two votes name it. Forward: the server request the thread last received from when it connects or
 * first sends. Backward: the server request it next sends on after it read the reply. Alone each is
 * a guess (an event loop serves others meanwhile); together they were always right when measured on
 * servers that go on with a request as soon as they have read it. Others (haproxy) read from
 * several first: which of these a call is for is not known then, and it has no forward vote.
 */
#ifndef CC_REQ_LINK_H
#define CC_REQ_LINK_H

#include "req_state.h"

struct req_task {          /* per thread */
	__u64 srv_cookie;  /* server socket last received from; 0: none */
	__u64 call_cookie; /* request of the latest call started here */
	__u64 call_up;     /* its upstream socket */
	__u64 back_up;     /* upstream socket whose reply was read last; 0: none, or voted */
	__u64 back_cookie; /* the forward vote of that call */
	__u64 back_ts;     /* when the reply was read */
	__u32 srv_ordinal, call_ordinal, back_ordinal;
	__u32 back_call; /* number of that call on its socket */
	__u32 back_cnt;  /* calls for back_* whose replies were read since the last vote */
	__u32 srv_turn;  /* LINK_* */
	struct cc_addr call_peer, back_peer;
};

enum {                   /* req_task.srv_turn */
       LINK_READ = 1,    /* read since its last call or answer */
       LINK_SEVERAL = 2, /* from more than one, with neither between; until it reads anew */
};

/* link_ordinal beside link_cookie 0: of one of several; not to be guessed when it sends, either */
#define LINK_UNKNOWN 0xffffffffu

static __always_inline void link_server_recv(struct req_task *t, const struct req_state *s)
{
	if (!(t->srv_turn & LINK_READ))
		t->srv_turn = LINK_READ;
	else if (t->srv_cookie != s->cookie)
		t->srv_turn |= LINK_SEVERAL;
	t->srv_cookie = s->cookie;
	t->srv_ordinal = s->ordinal;
}

static __always_inline void link_forward(struct req_task *t, struct req_state *u)
{
	if (t->srv_turn & LINK_SEVERAL) {
		u->link_cookie = 0;
		u->link_ordinal = LINK_UNKNOWN;
		return;
	}
	u->link_cookie = t->srv_cookie;
	u->link_ordinal = t->srv_ordinal;
	t->call_cookie = t->srv_cookie;
	t->call_ordinal = t->srv_ordinal;
	t->call_up = u->cookie;
	req_copy_addr(&t->call_peer, &u->peer);
}

/* The thread connects (@connecting) or sends upstream on @u. */
static __always_inline void link_call(struct req_task *t, struct req_state *u, int connecting)
{
	if (!connecting && (u->conn & RQ_C_CALLING))
		return; /* a further piece of the same call */
	t->srv_turn &= ~(__u32)LINK_READ;
	if (!(u->conn & RQ_C_FRESH) || (!u->link_cookie && u->link_ordinal != LINK_UNKNOWN))
		link_forward(t, u);
	if (connecting) {
		u->conn |= RQ_C_FRESH;
	} else {
		u->conn &= ~(__u32)RQ_C_FRESH;
		u->conn |= RQ_C_CALLING;
		u->ordinal++;
	}
}

/* The thread read from upstream socket @u. */
static __always_inline void link_reply(struct req_task *t, struct req_state *u, __u64 now)
{
	u->conn &= ~(__u32)RQ_C_CALLING;
	if (!t->back_up || t->back_cookie != u->link_cookie || t->back_ordinal != u->link_ordinal)
		t->back_cnt = 1;
	else if (t->back_up != u->cookie || t->back_call != u->ordinal)
		t->back_cnt++;
	t->back_up = u->cookie;
	t->back_call = u->ordinal;
	t->back_cookie = u->link_cookie;
	t->back_ordinal = u->link_ordinal;
	t->back_ts = now;
	req_copy_addr(&t->back_peer, &u->peer);
}

/* The thread sent on server socket @s. Returns 1 when both votes name its request, for a call that
 * was not counted yet. */
static __always_inline int link_server_send(struct req_task *t, struct req_state *s)
{
	int agreed, counted;

	t->srv_turn &= ~(__u32)LINK_READ;
	if (!t->back_up) {
		if (!s->up_votes && t->call_cookie == s->cookie && t->call_ordinal == s->ordinal) {
			s->up_votes = 1;
			s->up_cookie = t->call_up;
			req_copy_addr(&s->up_peer, &t->call_peer);
		}
		return 0;
	}
	agreed = t->back_cookie == s->cookie && t->back_ordinal == s->ordinal;
	/* the reply may be read and passed on in many pieces */
	counted = s->up_votes == 2 && s->up_cookie == t->back_up && s->up_call == t->back_call;
	if (agreed || !s->up_votes) {
		s->up_votes = agreed ? 2 : 1;
		s->up_cookie = t->back_up;
		s->up_call = t->back_call;
		req_copy_addr(&s->up_peer, &t->back_peer);
	}
	if (agreed && !counted)
		s->up_calls += t->back_cnt;
	t->back_up = 0;
	return agreed && !counted;
}

#endif
