/* SPDX-License-Identifier: Apache-2.0 */
#include "glance.h"

#include <errno.h>
#include <stdlib.h>

#include "trace.h"

/* Records come a few drains late. What comes later than this is missing from the first look. */
#define LATE CC_MS(50)
#define PATHS 24 /* a screen of rows */

struct glance {
	struct cc_source *src;
	struct engine_opts opts;
	struct engine *e;
	cc_ns to;
	int64_t realtime_off; /* wall clock - monotonic */
};

int glance_new(struct cc_source *of, const struct engine_opts *o, struct glance **ret)
{
	struct glance *g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->opts = *o;
	g->opts.paths_per_s = PATHS;
	int err = trace_source_again(of, &g->src);
	if (err) {
		free(g);
		return err;
	}
	*ret = g;
	return 0;
}

void glance_free(struct glance *g)
{
	if (!g)
		return;
	cc_source_free(g->src);
	engine_free(g->e);
	free(g);
}

void glance_drop(struct glance *g) { engine_free(take_ptr(g->e)); }

struct engine *glance_engine(struct glance *g) { return g->e; }

static int feed(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct glance *g = ctx;
	if (rec->kind == CC_REC_TICK) { /* there is one only, at the end */
		const struct cc_rec_tick *t = (const struct cc_rec_tick *)rec;
		g->realtime_off = (int64_t)t->realtime_ns - (int64_t)rec->ts;
		return rec->ts > g->to ? -ECANCELED : 0;
	}
	if (rec->kind == CC_REC_EPISODE && rec->ts > g->to + LATE)
		return -ECANCELED;
	int err = engine_feed(g->e, rec, len);
	return err == -EINVAL ? 0 : err;
}

static int end_at(struct glance *g)
{
	struct cc_rec_tick t = {
		.h = { .size = sizeof(t), .kind = CC_REC_TICK, .cpu = UINT16_MAX, .ts = g->to },
		.drained_to = g->to,
		.realtime_ns = (uint64_t)((int64_t)g->to + g->realtime_off),
		.interval_ns = CC_S(1),
	};
	return engine_feed(g->e, &t.h, sizeof(t));
}

int glance_go(struct glance *g, cc_ns to, uint64_t records, int64_t realtime_off)
{
	glance_drop(g);
	g->to = to;
	g->realtime_off = realtime_off;
	int n = engine_new(&g->opts, &g->e);
	if (!n)
		n = trace_source_seek_rough(g->src, to, records);
	while (n >= 0)
		n = g->src->ops->poll(g->src, 0, feed, g);
	return n == -ECANCELED || n == -ENODATA ? end_at(g) : n;
}
