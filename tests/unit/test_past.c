/* SPDX-License-Identifier: Apache-2.0 */
/* Looking back is looking at what was: at each refresh of a stream the picture is kept, and what
 * the history gives for that time later is the same, byte by byte. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"
#include "json.h"
#include "past.h"
#include "trace.h"

#define TICKS 12

struct live {
	struct engine *e;
	struct history *h;
	char *picture[TICKS];
	cc_ns at[TICKS];
	int cnt;
};

static char *picture_of(struct engine *e)
{
	struct cc_query q = { .window_ns = CC_S(60), .all_in_flight = true };
	struct snapshot *s;
	char *text = NULL;
	size_t len;
	cr_assert_eq(snapshot_build(e, &q, &s), 0);
	FILE *out = open_memstream(&text, &len);
	cr_assert(out);
	cr_assert_eq(json_snapshot_line(s, out), 0);
	fclose(out);
	snapshot_free(s);
	return text;
}

static int take(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct live *l = ctx;
	cr_assert_eq(history_put(l->h, rec, len), 0);
	int err = engine_feed(l->e, rec, len);
	cr_assert(err == 0 || err == -EINVAL);
	if (rec->kind == CC_REC_TICK && l->cnt < TICKS) {
		l->at[l->cnt] = engine_stats(l->e)->watermark_ns;
		l->picture[l->cnt++] = picture_of(l->e);
	}
	return 0;
}

static void go(struct past *p, cc_ns to)
{
	int more;
	while ((more = past_go(p, to)) > 0)
		;
	cr_assert_eq(more, 0);
}

Test(past, is_what_was, .timeout = 120)
{
	struct engine_opts o = { .window_ns = CC_S(120) };
	struct live l = { 0 };
	struct cc_source *src;
	struct cc_err why;
	int n = 0;
	cr_assert_eq(engine_new(&o, &l.e), 0);
	cr_assert((l.h = history_new(64 << 20, CC_S(120))));
	cr_assert_eq(trace_source_new(CC_SRC_DIR "/testdata/demo.criticast", &why, &src), 0, "%s",
		     why.msg);
	while (n >= 0 && l.cnt < TICKS)
		n = src->ops->poll(src, 0, take, &l);
	cc_source_free(src);
	cr_assert_geq(l.cnt, TICKS);

	struct past *p = past_new(&o, l.h);
	static const int order[] = { 4, 3, 2, 7, 8, 0, 9, 9, 1 };
	cr_assert(p);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		int k = order[i];
		/* a little off: the nearest refresh is what is shown */
		go(p, l.at[k] + (i % 3 == 1 ? CC_MS(100) : 0) - (i % 3 == 2 ? CC_MS(100) : 0));
		char *now = picture_of(past_engine(p));
		cr_expect(!strcmp(now, l.picture[k]), "refresh %d is another one", k);
		free(now);
	}
	go(p, 1); /* before all that is kept: the first */
	char *first = picture_of(past_engine(p));
	cr_expect(!strcmp(first, l.picture[0]));
	free(first);
	past_free(p);
	for (int i = 0; i < l.cnt; i++)
		free(l.picture[i]);
	history_free(l.h);
	engine_free(l.e);
}

static int put_tick(struct history *h, cc_ns at)
{
	struct cc_rec_tick t = { .h = { .size = sizeof(t), .kind = CC_REC_TICK, .ts = at },
				 .drained_to = at };
	return history_put(h, &t.h, sizeof(t));
}

static int put_bulk(struct history *h, cc_ns at)
{
	struct cc_rec_episode e = { .h = { .size = sizeof(e), .kind = CC_REC_EPISODE, .ts = at } };
	for (unsigned int i = 0; i < 20000; i++) {
		e.tid = i * 2654435761u; /* no two alike: they do not get small */
		e.waker_tid = e.tid ^ 0x5a5a5a5a;
		e.out = at - e.tid;
		if (history_put(h, &e.h, sizeof(e)))
			return -1;
	}
	return 0;
}

Test(past, history_is_held_while_somebody_looks)
{
	struct history *h = history_new(64 << 20, CC_S(10));
	struct history_kept kept;
	cr_assert(h);
	for (unsigned int s = 1; s <= 40; s++)
		cr_assert_eq(put_bulk(h, CC_S(s)) || put_tick(h, CC_S(s)), 0);
	history_kept(h, &kept);
	cr_expect_eq(kept.to, CC_S(40));
	cr_expect(kept.from >= CC_S(20) && kept.from <= CC_S(31), "%llu",
		  (unsigned long long)kept.from);
	history_hold(h, true);
	cc_ns from = kept.from;
	for (unsigned int s = 41; s <= 60; s++)
		cr_assert_eq(put_bulk(h, CC_S(s)) || put_tick(h, CC_S(s)), 0);
	history_kept(h, &kept);
	cr_expect_eq(kept.from, from);
	/* a place that was dropped goes on at the oldest kept, not into freed memory */
	static struct history_at at;
	const struct cc_rec *rec = history_next(h, &at);
	cr_assert(rec);
	history_hold(h, false);
	cr_assert_eq(put_tick(h, CC_S(100)), 0);
	rec = history_next(h, &at);
	cr_assert(rec);
	cr_expect_gt(rec->ts, CC_S(40));
	history_free(h);
}

struct kept_from {
	uint32_t lasting, ticks, other;
	cc_ns first_tick, first_other;
};

static int note_kept(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct kept_from *k = ctx;
	(void)len;
	k->lasting += rec->kind == CC_REC_NAME;
	k->ticks += rec->kind == CC_REC_TICK;
	k->other += rec->kind == CC_REC_EPISODE;
	if (rec->kind == CC_REC_TICK && !k->first_tick)
		k->first_tick = rec->ts;
	if (rec->kind == CC_REC_EPISODE && !k->first_other)
		k->first_other = rec->ts;
	return 0;
}

/* What is kept is whole chunks; what is written is what was asked for, and all names. */
Test(past, history_is_cut_where_it_is_asked_for)
{
	struct history *h = history_new(64 << 20, CC_S(1000));
	cr_assert(h);
	for (unsigned int s = 1; s <= 20; s++) {
		struct cc_rec_name n = {
			.h = { sizeof(n), CC_REC_NAME, 0, 0, CC_NAME_FILE, CC_S(s) }, .id = s
		};
		struct cc_rec_episode e = { .h = { sizeof(e), CC_REC_EPISODE, 0, 0, 0,
						   CC_S(s) - 1000 } };
		cr_assert_eq(history_put(h, &n.h, sizeof(n)), 0);
		cr_assert_eq(history_put(h, &e.h, sizeof(e)), 0);
		cr_assert_eq(put_tick(h, CC_S(s)), 0);
	}
	static const struct {
		cc_ns since;
		uint32_t kept; /* seconds */
	} rows[] = { { 0, 20 },           { 1, 20 },           { CC_S(1), 19 }, { CC_S(17), 3 },
		     { CC_MS(17900), 3 }, { CC_S(20) - 1, 1 }, { CC_S(20), 0 }, { CC_S(99), 0 } };
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kept_from k = { 0 };
		cr_assert_eq(history_each(h, rows[i].since, note_kept, &k), 0);
		cr_expect_eq(k.lasting, 20, "names are told for good");
		cr_expect_eq(k.ticks, rows[i].kept, "%zu: %u", i, k.ticks);
		cr_expect_eq(k.other, rows[i].kept, "%zu: %u", i, k.other);
		cr_expect(!rows[i].kept || k.first_other == CC_S(21 - rows[i].kept) - 1000);
	}
	history_free(h);
}
