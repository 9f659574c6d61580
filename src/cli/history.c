/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"
#include "lasting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (1u << 20)

/* A record in a chunk: its number since the chunk's first one (two chains keep records, one order
 * counts), then the record as in a file, by what came before it in the chunk. */
#define LEAD sizeof(uint32_t)

struct chunk {
	struct chunk *next;
	uint64_t seq;      /* from 1, in its chain */
	uint64_t first_no; /* of its first record */
	cc_ns oldest, to;  /* the first and the latest ts of its records; oldest 0: none has one */
	cc_ns tick;        /* watermark of its first TICK; 0: it has none */
	size_t used;
	uint8_t data[CHUNK_BYTES];
};

struct chain {
	struct chunk *first, *last;
	size_t cnt;
	uint64_t seq; /* of the last chunk made */
	struct codec codec;
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

static bool fits(const struct chunk *k, size_t room, uint64_t no)
{
	return k && k->used + room <= CHUNK_BYTES && no - k->first_no <= UINT32_MAX;
}

static int chain_put(struct chain *c, const struct cc_rec *rec, uint64_t no)
{
	size_t room = LEAD + CODEC_MAX(rec->size);
	if (!fits(c->last, room, no)) {
		struct chunk *k = malloc(sizeof(*k));
		if (!k)
			return -ENOMEM;
		k->next = NULL;
		k->seq = ++c->seq;
		k->first_no = no;
		k->oldest = 0;
		k->to = rec->ts;
		k->tick = 0;
		k->used = 0;
		if (c->last)
			c->last->next = k;
		else
			c->first = k;
		c->last = k;
		c->cnt++;
		codec_reset(&c->codec);
	}
	struct chunk *k = c->last;
	uint32_t nth = (uint32_t)(no - k->first_no);
	memcpy(k->data + k->used, &nth, LEAD);
	k->used += LEAD + codec_put(&c->codec, rec, k->data + k->used + LEAD, NULL);
	k->to = CC_MAX(k->to, rec->ts);
	if (!k->oldest)
		k->oldest = rec->ts;
	if (rec->kind == CC_REC_TICK && !k->tick)
		k->tick = ((const struct cc_rec_tick *)rec)->drained_to;
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
	struct chain *c = rec_is_lasting(rec->kind) ? &h->lasting : &h->passing;
	if (!codec_can(rec, len)) /* a file could not have it either */
		return 0;
	int err = chain_put(c, rec, ++h->put_cnt);
	if (!err && rec->kind == CC_REC_TICK) {
		h->newest = ((const struct cc_rec_tick *)rec)->drained_to;
		evict(h, rec->ts);
	}
	return err;
}

void history_hold(struct history *h, bool hold) { h->held = hold; }

/* The chunk that a place is in, which is put right when its chunk is over or gone; NULL: no more.
 */
static const struct chunk *chunk_at(const struct chain *c, struct history_place *at)
{
	const struct chunk *k = c->first;
	while (k && k->seq < at->seq)
		k = k->next;
	if (k && k->seq == at->seq && at->off >= k->used)
		k = k->next;
	if (!k)
		return NULL;
	if (k->seq != at->seq) { /* the next one, or what was here was dropped */
		at->seq = k->seq;
		at->off = 0;
		codec_reset(&at->codec);
	}
	return at->off < k->used ? k : NULL;
}

const struct cc_rec *history_next(const struct history *h, struct history_at *at)
{
	const struct chain *const chains[] = { &h->lasting, &h->passing };
	const struct chunk *from = NULL;
	uint64_t first = 0;
	int best = 0;
	for (int i = 0; i < 2; i++) {
		const struct chunk *k = chunk_at(chains[i], &at->chain[i]);
		uint32_t nth;
		if (!k)
			continue;
		memcpy(&nth, k->data + at->chain[i].off, LEAD);
		if (!from || k->first_no + nth < first) {
			first = k->first_no + nth;
			from = k;
			best = i;
		}
	}
	if (!from)
		return NULL;
	struct history_place *p = &at->chain[best];
	struct codec_in in = { .p = from->data + p->off + LEAD, .end = from->data + from->used };
	const struct cc_rec *rec;
	int size = codec_get(&p->codec, &in, at->rec, sizeof(at->rec), &rec);
	p->off = (size_t)(in.p - from->data);
	if (size <= 0) { /* cannot be, and must not end the trace: on to the next chunk */
		p->off = from->used;
		return history_next(h, at);
	}
	return rec;
}

void history_kept(const struct history *h, struct history_kept *ret)
{
	*ret = (struct history_kept){
		.to = h->newest, .bytes = (h->lasting.cnt + h->passing.cnt) * sizeof(struct chunk)
	};
	for (const struct chunk *k = h->passing.first; k && !ret->from; k = k->next)
		ret->from = k->tick;
	for (const struct chunk *k = h->passing.first; k && !ret->oldest; k = k->next)
		ret->oldest = k->oldest;
}

/* How many records there are up to the last TICK at or before @since. */
static uint64_t count_before(const struct history *h, cc_ns since, struct history_at *at)
{
	const struct cc_rec *rec;
	uint64_t cnt = 0, before = 0;
	while (since && (rec = history_next(h, at))) {
		cnt++;
		if (rec->kind == CC_REC_TICK && rec->ts > since)
			break;
		if (rec->kind == CC_REC_TICK)
			before = cnt;
	}
	memset(at, 0, sizeof(*at));
	return before;
}

int history_each(const struct history *h, cc_ns since, cc_record_fn *fn, void *ctx)
{
	struct history_at *at = calloc(1, sizeof(*at));
	const struct cc_rec *rec;
	int err = at ? 0 : -ENOMEM;
	uint64_t before = at ? count_before(h, since, at) : 0;
	for (uint64_t i = 0; err >= 0 && (rec = history_next(h, at)); i++)
		if (i >= before || rec_is_lasting(rec->kind))
			err = fn(ctx, rec, rec->size);
	free(at);
	return CC_MIN(err, 0);
}
