/* SPDX-License-Identifier: Apache-2.0 */
/* identity: what its files share. */
#ifndef CC_IDENTITY_H
#define CC_IDENTITY_H

#include "engine_priv.h"

#define HOPS_MAX 8      /* hand-offs through tasks that never touched the request */
#define STEPS_MAX 256   /* segments of one request */
#define LOOKS_MAX 20000 /* waits looked at for one request: beyond, no hand-off is inferred */

enum link_kind { LINK_TOUCH, LINK_BORN, LINK_WOKEN, LINK_ITEM };

struct link { /* @task held the request up to the moment asked for, since @from */
	uint32_t task;
	enum link_kind kind;
	cc_ns from;
	uint64_t evidence; /* WOKEN, ITEM: beside what the kind says */
};

struct chain { /* nearest first; the last one touched the request */
	struct link v[HOPS_MAX + 2];
	uint32_t cnt;
};

struct finder {
	struct engine *e;
	struct req *r;
	cc_ns first; /* before it nobody held it */
	uint32_t looks;
	uint32_t cur; /* task that holds it right before t, and touched it */
	cc_ns t;
};

static inline struct task *task_at(const struct finder *f, uint32_t i)
{
	return &f->e->tasks.v.p[i];
}

static inline uint32_t index_of(const struct finder *f, const struct task *t)
{
	return (uint32_t)(t - f->e->tasks.v.p);
}

static inline bool is_ours(const struct finder *f, const struct sock_touch *s)
{
	return touch_is_server(s) && cc_reqid_eq(touch_id(s), f->r->pub.id);
}

/* The earliest wait of @t that ended in (lo, at] by a task that held the request: how that one did
 * is added to @c. */
bool chain_handed(struct finder *f, const struct task *t, cc_ns lo, cc_ns at, uint32_t hops,
		  cc_ns *ret_wake, struct chain *c);

/* @t was born before @at, the child of a task that held the request then. */
bool chain_born(struct finder *f, const struct task *t, cc_ns at, uint32_t hops, struct chain *c);

/* Goroutine @t received a holder's item in (lo, at] and has it still: how that one held is added to
 * @c. *ret_got: when. */
bool chain_item(struct finder *f, const struct task *t, cc_ns lo, cc_ns at, uint32_t hops,
		struct link *l, struct chain *c);

/* What is said of a hand-over by the wake that ended @ep. */
uint64_t chain_wake_evidence(const struct episode *ep);

/* A task between two holders that was woken for other requests too: whose work was it? */
bool chain_executor(const struct finder *f, const struct task *t, cc_ns from, cc_ns to);

/* Adds @s to the request's segments, no part of it before f->first. */
CC_NODISCARD int identity_add(struct finder *f, struct ident_seg s);

/* ---- late.c: requests that were read before tracing began ---------------------------------- */

bool late_is(const struct cc_rec_req *q);

/* Adds who had it and until when, or why that is not known: all of [first, t). */
CC_NODISCARD int late_find(struct finder *f);

/* f->cur, which operates on it at f->t, has done nothing else since it was first seen. */
bool late_had_it(struct finder *f);

/* Who will read one that lies unread, UINT32_MAX: not known. Adds to @evidence. */
uint32_t late_reader(const struct finder *f, uint64_t *evidence);

/* Forgets, keeps what tasks held @r, by its segments from e->segs.p[@first] on. */
void identity_forget(struct engine *e, struct req *r);
CC_NODISCARD int identity_keep(struct engine *e, struct req *r, uint32_t first);

#endif
