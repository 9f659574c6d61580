/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (1u << 20)

struct chunk {
	struct chunk *next;
	uint64_t seq; /* from 1, in its chain */
	cc_ns to; /* the latest ts of its records */
	size_t used;
	unsigned char data[CHUNK_BYTES];
};

struct chain {
	struct chunk *first, *last;
	size_t cnt;
	uint64_t seq; /* of the last chunk made */
};

struct history {
	struct chain lasting, passing;
	size_t max_chunks;
	cc_ns max_age;
	bool held;
	cc_ns newest; /* watermark of the last TICK */
};

struct history *history_new(uint64_t max_bytes, cc_ns max_age)
{
	struct history *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->max_chunks = (size_t)CC_MAX(max_bytes / sizeof(struct chunk), 2u);
	h->max_age = max_age;
	return h;
}

static void chain_drop_first(struct chain *c)
{
	struct chunk *k = c->first;
	c->first = k->next;
	if (!c->first)
		c->last = NULL;
	c->cnt--;
	free(k);
}

void history_free(struct history *h)
{
	if (!h)
		return;
	while (h->lasting.first)
		chain_drop_first(&h->lasting);
	while (h->passing.first)
		chain_drop_first(&h->passing);
	free(h);
}

/* What records that come later lean on. */
static bool is_lasting(unsigned int kind)
{
	const unsigned int kinds = 1u << CC_REC_STACK | 1u << CC_REC_TASK | 1u << CC_REC_MODULE |
				   1u << CC_REC_NAME | 1u << CC_REC_TARGET | 1u << CC_REC_OPTION |
				   1u << CC_REC_LISTEN;
	return kind < 32 && kinds >> kind & 1u;
}

static int chain_put(struct chain *c, const struct cc_rec *rec, size_t len)
{
	if (len > CHUNK_BYTES)
		return -EINVAL;
	if (!c->last || c->last->used + len > CHUNK_BYTES) {
		struct chunk *k = malloc(sizeof(*k));
		if (!k)
			return -ENOMEM;
		*k = (struct chunk){ .to = rec->ts, .seq = ++c->seq };
		if (c->last)
			c->last->next = k;
		else
			c->first = k;
		c->last = k;
		c->cnt++;
	}
	struct chunk *k = c->last;
	memcpy(k->data + k->used, rec, len);
	k->used += len;
	k->to = CC_MAX(k->to, rec->ts);
	return 0;
}

static void evict(struct history *h, cc_ns now)
{
	struct chain *p = &h->passing;
	while (!h->held && p->first != p->last && p->first->to + h->max_age < now)
		chain_drop_first(p);
	/* a target that names without end must not push out what happened */
	while (h->lasting.cnt > CC_MAX(h->max_chunks / 2, 1u))
		chain_drop_first(&h->lasting);
	while (p->first != p->last && p->cnt + h->lasting.cnt > h->max_chunks)
		chain_drop_first(p);
}

int history_put(struct history *h, const struct cc_rec *rec, size_t len)
{
	int err = chain_put(is_lasting(rec->kind) ? &h->lasting : &h->passing, rec, len);
	if (!err && rec->kind == CC_REC_TICK) {
		h->newest = ((const struct cc_rec_tick *)rec)->drained_to;
		evict(h, rec->ts);
	}
	return err;
}

void history_hold(struct history *h, bool hold) { h->held = hold; }

static const struct chunk *chunk_at(const struct chain *c, struct history_at *at)
{
	const struct chunk *k = c->first;
	while (k && k->seq < at->seq)
		k = k->next;
	if (k && k->seq != at->seq) { /* the first time, or dropped meanwhile */
		at->seq = k->seq;
		at->off = 0;
	}
	return k;
}

const struct cc_rec *history_next(const struct history *h, struct history_at *at)
{
	for (;;) {
		const struct chain *c = at->passing ? &h->passing : &h->lasting;
		const struct chunk *k = chunk_at(c, at);
		if (k && at->off < k->used) {
			const struct cc_rec *rec = (const void *)(k->data + at->off);
			at->off += rec->size;
			return rec;
		}
		if (k && k->next)
			*at = (struct history_at){ at->passing, k->next->seq, 0 };
		else if (!at->passing)
			*at = (struct history_at){ .passing = true };
		else
			return NULL;
	}
}

void history_kept(const struct history *h, struct history_kept *ret)
{
	struct history_at at = { .passing = true };
	const struct cc_rec *rec;
	*ret = (struct history_kept){ .to = h->newest,
				      .bytes = (h->lasting.cnt + h->passing.cnt) *
					       sizeof(struct chunk) };
	while ((rec = history_next(h, &at)) && rec->kind != CC_REC_TICK)
		;
	ret->from = rec ? ((const struct cc_rec_tick *)rec)->drained_to : 0;
}

static int chain_each(const struct chain *c, cc_record_fn *fn, void *ctx)
{
	for (const struct chunk *k = c->first; k; k = k->next)
		for (size_t off = 0; off < k->used;) {
			const struct cc_rec *rec = (const void *)(k->data + off);
			int err = fn(ctx, rec, rec->size);
			if (err < 0)
				return err;
			off += rec->size;
		}
	return 0;
}

int history_each(const struct history *h, cc_record_fn *fn, void *ctx)
{
	int err = chain_each(&h->lasting, fn, ctx);
	return err ? err : chain_each(&h->passing, fn, ctx);
}
