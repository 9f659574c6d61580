/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"
#include "lasting.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (1u << 20)

/* Before each record in a chunk: two chains keep them, one order counts. */
struct stored {
	uint64_t no; /* from 1 */
	struct cc_rec rec;
};
#define LEAD offsetof(struct stored, rec)

struct chunk {
	struct chunk *next;
	uint64_t seq; /* from 1, in its chain */
	cc_ns to;     /* the latest ts of its records */
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
	cc_ns newest;     /* watermark of the last TICK */
	uint64_t put_cnt; /* records so far */
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

static int chain_put(struct chain *c, const struct cc_rec *rec, size_t len, uint64_t no)
{
	size_t room = LEAD + len;
	if (room > CHUNK_BYTES)
		return -EINVAL;
	if (!c->last || c->last->used + room > CHUNK_BYTES) {
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
	memcpy(k->data + k->used, &no, sizeof(no));
	memcpy(k->data + k->used + LEAD, rec, len);
	k->used += room;
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
	struct chain *c = trace_is_lasting(rec->kind) ? &h->lasting : &h->passing;
	int err = chain_put(c, rec, len, ++h->put_cnt);
	if (!err && rec->kind == CC_REC_TICK) {
		h->newest = ((const struct cc_rec_tick *)rec)->drained_to;
		evict(h, rec->ts);
	}
	return err;
}

void history_hold(struct history *h, bool hold) { h->held = hold; }

/* The record of a chain at @seq and @off, which are put right when its chunk is over or gone. */
static const struct stored *stored_at(const struct chain *c, uint64_t *seq, size_t *off)
{
	const struct chunk *k = c->first;
	while (k && k->seq < *seq)
		k = k->next;
	if (k && k->seq == *seq && *off >= k->used)
		k = k->next;
	if (!k)
		return NULL;
	if (k->seq != *seq) { /* the next one, or what was here was dropped */
		*seq = k->seq;
		*off = 0;
	}
	return *off < k->used ? (const void *)(k->data + *off) : NULL;
}

const struct cc_rec *history_next(const struct history *h, struct history_at *at)
{
	const struct chain *const chains[] = { &h->lasting, &h->passing };
	const struct stored *best = NULL;
	int from = 0;
	for (int i = 0; i < 2; i++) {
		const struct stored *s = stored_at(chains[i], &at->chain[i].seq, &at->chain[i].off);
		if (s && (!best || s->no < best->no)) {
			best = s;
			from = i;
		}
	}
	if (!best)
		return NULL;
	at->chain[from].off += LEAD + best->rec.size;
	return &best->rec;
}

void history_kept(const struct history *h, struct history_kept *ret)
{
	struct history_at at = { .chain[0].seq = UINT64_MAX }; /* TICKs are none of those */
	const struct cc_rec *rec;
	*ret = (struct history_kept){
		.to = h->newest, .bytes = (h->lasting.cnt + h->passing.cnt) * sizeof(struct chunk)
	};
	while ((rec = history_next(h, &at)) && rec->kind != CC_REC_TICK)
		if (rec->ts && !ret->oldest)
			ret->oldest = rec->ts;
	ret->from = rec ? ((const struct cc_rec_tick *)rec)->drained_to : 0;
}

int history_each(const struct history *h, cc_record_fn *fn, void *ctx)
{
	struct history_at at = { 0 };
	const struct cc_rec *rec;
	while ((rec = history_next(h, &at))) {
		int err = fn(ctx, rec, rec->size);
		if (err < 0)
			return err;
	}
	return 0;
}
