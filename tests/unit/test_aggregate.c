/* SPDX-License-Identifier: Apache-2.0 */
/* Rows over hand-made requests: percentiles, waits, blame, slow against typical. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "aggregate.h"
#include "digest.h"

/* Names are the numbers of the pieces themselves. */
static cc_str name_site(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return (cc_str)p->ustack;
}
static cc_str name_resource(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return p->resource;
}
static cc_str name_waker(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return p->waker_tid;
}
static cc_str name_holder(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return p->holder_tid;
}
static cc_str name_kind(void *ctx, struct cc_reqid id)
{
	(void)ctx;
	return 8000 + id.ordinal % 2;
}
static cc_str name_process(void *ctx, uint32_t tid, uint32_t tgid)
{
	(void)ctx;
	(void)tid;
	return 100000 + tgid;
}
static cc_str name_task(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return p->tid;
}
static cc_str name_device(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return 9000 + p->cls;
}
static const struct agg_names names = { .site = name_site,
					.resource = name_resource,
					.waker = name_waker,
					.holder = name_holder,
					.kind = name_kind,
					.task = name_task,
					.device = name_device,
					.process = name_process };

/* A request that ended at @end ms with a lock and a cpu piece. */
struct sample {
	struct cc_request r;
	struct cc_piece p[4];
	struct cc_found found;
};

static struct sample *samples(uint32_t cnt, const struct cc_request **ret)
{
	struct sample *all = calloc(cnt, sizeof(*all));

	for (uint32_t i = 0; i < cnt; i++) {
		all[i].r = (struct cc_request){ .id = { 1, i + 1, CC_REQID_SOCK },
						.tgid = 42,
						.path = all[i].p,
						.path_ok = true,
						.confidence = 95 };
		ret[i] = &all[i].r;
	}
	return all;
}

static void lock_and_cpu(struct sample *s, unsigned int end, unsigned int lock, unsigned int cpu)
{
	struct cc_request *r = &s->r;

	r->end = CC_MS(end);
	r->start = CC_MS(end - lock - cpu);
	s->p[0] = (struct cc_piece){ .start = r->start,
				     .end = r->start + CC_MS(lock),
				     .tid = 5,
				     .tgid = 42,
				     .cls = WAIT_LOCK,
				     .confidence = 90,
				     .ustack = 7,
				     .resource = 3,
				     .holder_tid = 9,
				     .holder_tgid = 42 };
	s->p[1] = (struct cc_piece){ .start = r->start + CC_MS(lock),
				     .end = r->end,
				     .tid = 5,
				     .tgid = 42,
				     .cls = WAIT_CPU,
				     .confidence = 98 };
	r->path_cnt = 2;
	request_digest(r, &s->found);
}

Test(aggregate, percentiles_by_nearest_rank)
{
	const struct cc_request *r[200];
	struct sample *all = samples(200, r);
	struct agg_sorted s;
	struct agg_range range;

	for (unsigned int i = 0; i < 200; i++) /* 1..200 ms, shuffled: 7 and 200 share no factor */
		lock_and_cpu(&all[i], 1000, (i * 7) % 200 + 1, 0);
	cr_assert_eq(agg_sort(r, 200, &s), 0);
	cr_expect_eq(agg_percentile(&s, 500), CC_MS(100));
	cr_expect_eq(agg_percentile(&s, 950), CC_MS(190));
	cr_expect_eq(agg_percentile(&s, 990), CC_MS(198));
	cr_expect_eq(agg_percentile(&s, 1000), CC_MS(200));
	cr_expect_eq(agg_percentile(&s, 0), CC_MS(1));
	range = agg_slow(&s);
	cr_expect_eq(range.from, 189);
	cr_expect_eq(range.to, 200);
	range = agg_typical(&s);
	cr_expect_eq(range.from, 79);
	cr_expect_eq(range.to, 120);
	agg_sorted_done(&s);
	/* streams are in no percentile */
	for (unsigned int i = 0; i < 200; i++) {
		if (request_latency(r[i]) > CC_MS(100))
			all[i].r.rec.what = CC_RQ_STREAM;
	}
	cr_assert_eq(agg_sort(r, 200, &s), 0);
	cr_expect_eq(s.cnt, 100);
	cr_expect_eq(agg_percentile(&s, 1000), CC_MS(100));
	agg_sorted_done(&s);
	cr_assert_eq(agg_sort(r, 0, &s), 0);
	cr_expect_eq(agg_percentile(&s, 500), 0);
	range = agg_slow(&s);
	cr_expect_eq(range.to - range.from, 0);
	range = agg_typical(&s);
	cr_expect_eq(range.to - range.from, 0);
	agg_sorted_done(&s);
	free(all);
}

Test(aggregate, as_long_as_another_the_earlier_end_then_the_smaller_id_comes_first)
{
	const struct cc_request *r[4], *in[4];
	struct sample *all = samples(4, r);
	struct agg_sorted s;

	for (int i = 0; i < 4; i++) {
		lock_and_cpu(&all[i], i == 3 ? 900 : 1000, 5, 0);
		in[i] = r[3 - i];
	}
	all[2].r.id.id = 0;
	cr_assert_eq(agg_sort(in, 4, &s), 0);
	cr_expect_eq(s.r[0], r[3], "it ended first");
	cr_expect_eq(s.r[1], r[2], "of a smaller cookie");
	cr_expect_eq(s.r[2], r[0], "the first of its connection");
	cr_expect_eq(s.r[3], r[1]);
	agg_sorted_done(&s);
	free(all);
}

Test(aggregate, slow_against_typical)
{
	const struct cc_request *r[100];
	struct sample *all = samples(100, r);
	struct snap_slow_typical rows[WAIT_CLASS_CNT];
	struct agg_sorted s;
	cc_ns mix[9];

	for (unsigned int i = 0; i < 100; i++) {
		if (i % 20 == 3)
			lock_and_cpu(&all[i], 1000, 141, 9); /* 5 slow ones */
		else
			lock_and_cpu(&all[i], 1000, 1, 10);
	}
	cr_assert_eq(agg_sort(r, 100, &s), 0);
	cr_expect_eq(agg_percentile(&s, 950), CC_MS(11));
	/* every one at the p95 is slow: ties make it all of them here */
	cr_expect_eq(agg_slow(&s).from, 0);
	all[40].r.start -= CC_MS(50); /* the 95th is slow now too */
	all[40].p[0].start -= CC_MS(50);
	request_digest(&all[40].r, &all[40].found);
	agg_sorted_done(&s);
	cr_assert_eq(agg_sort(r, 100, &s), 0);
	cr_expect_eq(agg_slow(&s).from, 94);
	cr_expect_eq(agg_slow_typical(&s, rows), 2);
	cr_expect_eq(rows[0].cls, WAIT_LOCK);
	cr_expect_eq(rows[0].slow_ns, (5 * CC_MS(141) + CC_MS(51)) / 6);
	cr_expect_eq(rows[0].typical_ns, CC_MS(1));
	cr_expect_eq(rows[1].cls, WAIT_CPU);
	cr_expect_eq(rows[1].slow_ns, (5 * CC_MS(9) + CC_MS(10)) / 6);
	cr_expect_eq(rows[1].typical_ns, CC_MS(10));
	agg_mix(&s, agg_slow(&s), mix);
	cr_expect_eq(mix[0], 5 * CC_MS(9) + CC_MS(10), "C is first of WAIT_GROUPS");
	cr_expect_eq(mix[2], 5 * CC_MS(141) + CC_MS(51), "L is third");
	cr_expect_eq(mix[1] + mix[3] + mix[4] + mix[5] + mix[6] + mix[7] + mix[8], 0);
	agg_sorted_done(&s);
	free(all);
}

Test(aggregate, confidence_shares)
{
	const struct cc_request *r[4];
	struct sample *all = samples(4, r);
	double share[3];

	all[1].r.confidence = 89;
	all[2].r.confidence = 59;
	agg_conf_share(r, 4, share);
	cr_expect_eq(share[0], 0.5);
	cr_expect_eq(share[1], 0.25);
	cr_expect_eq(share[2], 0.25);
	agg_conf_share(r, 0, share);
	cr_expect_eq(share[0], 0);
	free(all);
}

Test(aggregate, waits_by_class_and_site)
{
	const struct cc_request *r[100];
	struct sample *all = samples(100, r);
	struct agg_waits_opts o = { .group = GROUP_SITE, .max_rows = 10 };
	struct snap_wait *w;
	uint32_t cnt;

	for (unsigned int i = 0; i < 100; i++)
		lock_and_cpu(&all[i], 1000, i + 1, 2);
	for (unsigned int i = 0; i < 10; i++) { /* 1..10 ms at another place, by another holder */
		all[i].p[0].ustack = 8;
		all[i].p[0].holder_tid = 10 + i;
	}
	cr_assert_eq(agg_waits(r, 100, &o, &names, &w, &cnt), 0);
	cr_assert_eq(cnt, 3);
	cr_expect_eq(w[0].cls, WAIT_LOCK);
	cr_expect_eq(w[0].site, 7);
	cr_expect_eq(w[0].resource, 3);
	cr_expect_eq(w[0].holder, 9);
	cr_expect_eq(w[0].waker, 0);
	cr_expect_eq(w[0].total_ns, CC_MS(5050 - 55));
	cr_expect_eq(w[0].requests, 90);
	cr_expect_eq(w[0].p50_ns, CC_MS(55));
	cr_expect_eq(w[0].p99_ns, CC_MS(100));
	cr_expect_eq(w[0].what_if_ns, w[0].total_ns);
	cr_expect_eq(w[0].confidence, 90);
	cr_expect_float_eq(w[0].share, 4995.0 / 5250.0, 1e-9);
	cr_expect_eq(w[1].cls, WAIT_CPU);
	cr_expect_eq(w[1].total_ns, CC_MS(200));
	cr_expect_eq(w[1].confidence, 98);
	cr_expect_eq(w[2].site, 8);
	cr_expect_eq(w[2].total_ns, CC_MS(55));
	cr_expect_eq(w[2].holder, 0, "no holder has more than half of it");
	cr_expect_eq(w[2].resource, 3);
	free(w);
	o.group = GROUP_CLASS;
	o.max_rows = 1;
	cr_assert_eq(agg_waits(r, 100, &o, &names, &w, &cnt), 0);
	cr_expect_eq(cnt, 1);
	cr_expect_eq(w[0].total_ns, CC_MS(5050));
	cr_expect_eq(w[0].site, 7, "most of the class's time");
	free(w);
	o.group = GROUP_HOLDER;
	o.max_rows = 100;
	cr_assert_eq(agg_waits(r, 100, &o, &names, &w, &cnt), 0);
	cr_expect_eq(cnt, 12); /* holder 9, ten others, none (cpu) */
	free(w);
	free(all);
}

Test(aggregate, waits_of_root_causes_and_doubtful_pieces)
{
	const struct cc_request *r[1];
	struct sample *all = samples(1, r);
	struct agg_waits_opts o = { .group = GROUP_CLASS, .root_causes = true, .max_rows = 10 };
	struct snap_wait *w;
	uint32_t cnt;

	lock_and_cpu(&all[0], 100, 50, 10);
	all[0].p[3] = all[0].p[1]; /* lock 50 { fsync 30, unknown 20 } cpu 10 */
	all[0].p[1] = all[0].p[2] = all[0].p[0];
	all[0].p[1].depth = all[0].p[2].depth = 1;
	all[0].p[1].end = all[0].p[2].start = all[0].p[0].start + CC_MS(30);
	all[0].p[1].cls = WAIT_FSYNC;
	all[0].p[1].confidence = 40;
	all[0].p[2].cls = WAIT_UNKNOWN;
	all[0].r.path_cnt = 4;
	cr_assert_eq(agg_waits(r, 1, &o, &names, &w, &cnt), 0);
	cr_assert_eq(cnt, 3);
	cr_expect_eq(w[0].cls, WAIT_FSYNC);
	cr_expect_eq(w[0].total_ns, CC_MS(30));
	cr_expect_eq(w[1].cls, WAIT_LOCK, "unknown does not replace its parent");
	cr_expect_eq(w[1].total_ns, CC_MS(20));
	free(w);
	o.min_confidence = 60;
	cr_assert_eq(agg_waits(r, 1, &o, &names, &w, &cnt), 0);
	cr_expect_eq(w[0].cls, WAIT_UNKNOWN);
	cr_expect_eq(w[0].total_ns, CC_MS(30));
	cr_expect_eq(w[0].site, 0);
	cr_expect_eq(w[0].confidence, 0);
	free(w);
	all[0].r.path_ok = false;
	cr_assert_eq(agg_waits(r, 1, &o, &names, &w, &cnt), 0);
	cr_expect_eq(cnt, 0);
	free(w);
	free(all);
}

Test(aggregate, blame)
{
	const struct cc_request *r[3];
	struct sample *all = samples(3, r);
	struct snap_blame *b;
	uint32_t cnt;

	for (unsigned int i = 0; i < 3; i++)
		lock_and_cpu(&all[i], 1000, 40, 2);
	/* 1: its holder served request #2 */
	all[0].p[0].for_request = (struct cc_reqid){ 1, 2, CC_REQID_SOCK };
	/* 2: behind request #3, in the queue */
	all[1].p[0].cls = WAIT_HOL;
	all[1].p[0].by_request = (struct cc_reqid){ 1, 3, CC_REQID_SOCK };
	/* 3: held by another process; its cpu time is nobody's */
	all[2].p[0].holder_tgid = 77;
	cr_assert_eq(agg_blame(r, 3, 10, &names, &b, &cnt), 0);
	cr_assert_eq(cnt, 3);
	for (uint32_t i = 0; i < cnt; i++)
		cr_expect_eq(b[i].total_ns, CC_MS(40));
	cr_expect_eq(b[0].victim, 8000);
	cr_expect_eq(b[0].culprit, 8001);
	cr_expect_eq(b[0].cls, WAIT_HOL);
	cr_expect_eq(b[1].victim, 8001);
	cr_expect_eq(b[1].culprit, 8000);
	cr_expect_eq(b[1].cls, WAIT_LOCK);
	cr_expect_eq(b[2].culprit, 100077);
	free(b);
	/* nested: what the holder did for #2 within the lock; the class stays the victim's */
	all[0].p[0].for_request = (struct cc_reqid){ 0 };
	all[0].p[3] = all[0].p[1];
	all[0].p[1] = all[0].p[2] = all[0].p[0];
	all[0].p[1].depth = all[0].p[2].depth = 1;
	all[0].p[1].end = all[0].p[2].start = all[0].p[0].start + CC_MS(30);
	all[0].p[1].for_request = (struct cc_reqid){ 1, 2, CC_REQID_SOCK };
	all[0].p[1].cls = WAIT_FSYNC;
	all[0].r.path_cnt = 4;
	cr_assert_eq(agg_blame(r, 1, 10, &names, &b, &cnt), 0);
	cr_assert_eq(cnt, 1);
	cr_expect_eq(b[0].total_ns, CC_MS(30));
	cr_expect_eq(b[0].cls, WAIT_LOCK);
	free(b);
	cr_assert_eq(agg_blame(r, 0, 10, &names, &b, &cnt), 0);
	cr_expect_eq(cnt, 0);
	free(b);
	free(all);
}
