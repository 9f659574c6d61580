/* SPDX-License-Identifier: Apache-2.0 */
#include "past.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct past {
	struct engine_opts opts;
	const struct history *h;
	struct engine *e;
	struct history_at at, ahead; /* fed up to; looked at */
	cc_ns told, before; /* watermarks of the last TICK fed and of the one before; 0: none */
};

struct past *past_new(const struct engine_opts *o, const struct history *h)
{
	struct past *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->opts = *o;
	p->h = h;
	if (engine_new(o, &p->e)) {
		free(p);
		return NULL;
	}
	return p;
}

void past_free(struct past *p)
{
	if (!p)
		return;
	engine_free(p->e);
	free(p);
}

struct engine *past_engine(struct past *p) { return p->e; }

static cc_ns watermark_of(const struct cc_rec *rec)
{
	return rec->kind == CC_REC_TICK ? ((const struct cc_rec_tick *)rec)->drained_to : 0;
}

/* Watermark of the next TICK; 0: none is kept. */
static cc_ns next_tick(struct past *p)
{
	const struct cc_rec *rec;
	p->ahead = p->at;
	while ((rec = history_next(p->h, &p->ahead)))
		if (watermark_of(rec))
			return watermark_of(rec);
	return 0;
}

static int feed_to_tick(struct past *p)
{
	const struct cc_rec *rec;
	while ((rec = history_next(p->h, &p->at))) {
		int err = engine_feed(p->e, rec, rec->size);
		if (err && err != -EINVAL) /* malformed ones are counted, as they were live */
			return err;
		if (watermark_of(rec)) {
			p->before = p->told;
			p->told = watermark_of(rec);
			return 1;
		}
	}
	return 0;
}

static int begin_again(struct past *p)
{
	struct engine *e;
	int err = engine_new(&p->opts, &e);
	if (err)
		return err;
	engine_free(p->e);
	p->e = e;
	memset(&p->at, 0, sizeof(p->at));
	p->told = p->before = 0;
	return 0;
}

static cc_ns apart(cc_ns a, cc_ns b) { return a > b ? a - b : b - a; }

int past_go(struct past *p, cc_ns to)
{
	if (p->before && apart(p->before, to) < apart(p->told, to)) {
		int err = begin_again(p);
		if (err)
			return err;
	}
	cc_ns next = next_tick(p);
	if (!next || (p->told && (p->told >= to || apart(next, to) >= apart(p->told, to))))
		return 0;
	return feed_to_tick(p);
}
