/* SPDX-License-Identifier: Apache-2.0 */
/* again: a recording told again and again, as if its servers ran on: later times, other
 * connections, other requests, the same names. For programs that need a long one. */
#ifndef AGAIN_H
#define AGAIN_H

#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define SEQS (1u << 16)
#define GROW 4096u

struct rec_vec {
	struct cc_rec **p;
	size_t cnt;
};

struct again {
	struct rec_vec in;
	cc_ns first, span; /* of the recording, made faster */
	double speed;
	uint32_t seqs[SEQS]; /* per tid: how many numbers of episodes a loop takes */
	uint64_t buf[1 << 13];
};

/* Reads @path. NULL, or what is wrong. */
static const char *again_load(struct again *s, const char *path, struct cc_err *err)
{
	struct trace_reader *r;
	const struct cc_rec *rec;
	cc_ns last = 0;
	size_t len;

	if (trace_reader_open(path, err, &r))
		return err->msg;
	while (trace_reader_next(r, &rec, &len) == 1) {
		struct cc_rec *copy = malloc(len);

		if (s->in.cnt % GROW == 0)
			s->in.p = realloc(s->in.p, (s->in.cnt + GROW) * sizeof(*s->in.p));
		if (!copy || !s->in.p)
			return "out of memory";
		memcpy(copy, rec, len);
		s->in.p[s->in.cnt++] = copy;
		if (rec->ts)
			s->first = s->first ? CC_MIN(s->first, rec->ts) : rec->ts;
		last = CC_MAX(last, rec->ts);
		if (rec->kind == CC_REC_EPISODE) {
			const struct cc_rec_episode *e = (const void *)rec;

			s->seqs[e->tid % SEQS] = CC_MAX(s->seqs[e->tid % SEQS], e->seq + 1);
		}
	}
	trace_reader_free(r);
	s->span = last - s->first;
	return NULL;
}

/* A time of the recording in loop @n. What is older than it keeps its age. */
static void shift(const struct again *s, uint64_t n, __u64 *t)
{
	if (!*t)
		return;
	if (*t < s->first)
		*t = CC_S(1000) + n * s->span - CC_MIN(s->first - *t, CC_S(900));
	else
		*t = CC_S(1000) + n * s->span + (cc_ns)((double)(*t - s->first) / s->speed);
}

#define SHIFT(field) shift(s, n, &(field))

static void shift_req(const struct again *s, uint64_t n, struct cc_rec_req *r)
{
	SHIFT(r->arrival);
	SHIFT(r->first_recv);
	SHIFT(r->last_recv);
	SHIFT(r->first_send);
	SHIFT(r->last_send);
	SHIFT(r->accepted);
	r->cookie += n << 32; /* other connections, other requests */
	r->up_cookie += r->up_cookie ? n << 32 : 0;
}

/* The record as loop @n has it, in s->buf. */
static const struct cc_rec *again_rec(struct again *s, const struct cc_rec *rec, uint64_t n)
{
	union {
		struct cc_rec h;
		struct cc_rec_episode ep;
		struct cc_rec_extra ex;
		struct cc_rec_sockop op;
		struct cc_rec_req req;
		struct cc_rec_task task;
		struct cc_rec_open_task open;
		struct cc_rec_loss loss;
		struct cc_rec_tick tick;
		struct cc_rec_wake wake;
		struct cc_rec_short sh;
	} *u = (void *)s->buf;

	memcpy(s->buf, rec, rec->size);
	SHIFT(u->h.ts);
	switch (rec->kind) {
	case CC_REC_EPISODE:
		SHIFT(u->ep.out);
		SHIFT(u->ep.wake);
		u->ep.seq += (uint32_t)n * s->seqs[u->ep.tid % SEQS];
		break;
	case CC_REC_EXTRA:
		u->ex.seq += (uint32_t)n * s->seqs[u->ex.tid % SEQS];
		break;
	case CC_REC_SOCKOP:
		u->op.cookie += n << 32;
		u->op.link_cookie += u->op.link_cookie ? n << 32 : 0;
		break;
	case CC_REC_REQ:
	case CC_REC_OPEN_REQ:
		shift_req(s, n, &u->req);
		break;
	case CC_REC_TASK: /* a tid is used again by another task in each loop */
		SHIFT(u->task.start);
		break;
	case CC_REC_OPEN_TASK:
		SHIFT(u->open.start);
		SHIFT(u->open.out);
		SHIFT(u->open.wake);
		SHIFT(u->open.last_in);
		u->open.seq += (uint32_t)n * s->seqs[u->open.tid % SEQS];
		break;
	case CC_REC_LOSS:
		SHIFT(u->loss.from);
		SHIFT(u->loss.to);
		break;
	case CC_REC_TICK:
		SHIFT(u->tick.drained_to);
		u->tick.interval_ns = (cc_ns)((double)u->tick.interval_ns / s->speed);
		break;
	case CC_REC_SHORT:
		SHIFT(u->sh.since);
		break;
	default:
		break;
	}
	return &u->h;
}

/* Told once in a server's life, however long that is. */
static inline bool again_lasting(const struct cc_rec *r)
{
	return r->kind == CC_REC_NAME || r->kind == CC_REC_STACK || r->kind == CC_REC_MODULE;
}

#endif
