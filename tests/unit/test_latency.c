/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and percentiles of a window against a naive count over all rows; and which requests the
 * engine shows when there are too many to work them all out. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "latency.h"
#include "snapshot.h"

enum { ROWS = 3000, RUNS = 30 };

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

static int by_latency(const void *a, const void *b)
{
	const cc_ns *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Sorted latencies of rows that ended in [lo, hi]. */
static uint32_t naive(const struct lat_row *rows, uint32_t cnt, cc_ns lo, cc_ns hi, cc_ns *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cnt; i++)
		if (rows[i].end >= lo && rows[i].end <= hi)
			out[n++] = rows[i].latency;
	if (n)
		qsort(out, n, sizeof(*out), by_latency);
	return n;
}

static cc_ns naive_percentile(const cc_ns *sorted, uint32_t n, unsigned int permille)
{
	uint32_t rank = (uint32_t)(((uint64_t)n * permille + 999) / 1000);

	return n ? sorted[rank ? rank - 1 : 0] : 0;
}

/* Rows of run r end about second r, some of them much later or earlier. */
static void fill(struct mem *mem, struct latencies *l, struct lat_row *all, uint64_t *seed)
{
	for (uint32_t r = 0; r < RUNS; r++) {
		struct lat_row some[ROWS / RUNS];

		for (uint32_t i = 0; i < ROWS / RUNS; i++) {
			cc_ns at = CC_S(100 + r) + next_random(seed) % CC_S(1);

			if (next_random(seed) % 20 == 0)
				at = CC_S(100) + next_random(seed) % CC_S(RUNS);
			some[i] = (struct lat_row){ next_random(seed) % 1000 * CC_US(3), at };
			if (next_random(seed) % 30 == 0)
				some[i].latency = next_random(seed) << next_random(seed) % 30;
		}
		memcpy(all + r * (ROWS / RUNS), some, sizeof(some));
		cr_assert_eq(latencies_add(mem, l, some, ROWS / RUNS), 0);
	}
}

static void compare(struct mem *mem, const struct latencies *l, const struct lat_row *all,
		    uint32_t cnt, cc_ns lo, cc_ns hi)
{
	static const unsigned int permille[] = { 0, 1, 500, 950, 990, 999, 1000 };
	cc_ns sorted[ROWS], line[60], width = (hi - lo + 59) / 60;
	uint32_t n = naive(all, cnt, lo, hi, sorted);
	struct lat_view v;

	cr_assert_eq(lat_view_open(mem, l, lo, hi, &v), 0);
	cr_expect_eq(v.cnt, n);
	for (size_t i = 0; i < ARRAY_SIZE(permille); i++)
		cr_expect_eq(lat_percentile(&v, permille[i]),
			     naive_percentile(sorted, n, permille[i]), "%u", permille[i]);
	cr_expect_eq(lat_longest(&v, 7), n >= 7 ? sorted[n - 7] : 0);
	lat_p99_line(&v, 60, line);
	for (unsigned int i = 0; i < 60 && width; i++) {
		cc_ns to = i == 59 ? hi : CC_MIN(lo + (i + 1) * width - 1, hi);
		uint32_t in = lo + i * width > hi ? 0 : naive(all, cnt, lo + i * width, to, sorted);

		cr_expect_eq(line[i], naive_percentile(sorted, in, 990), "slice %u", i);
	}
	lat_view_done(mem, &v);
}

Test(latency, as_a_naive_count)
{
	static struct lat_row all[ROWS];
	struct latencies l = { 0 };
	struct mem mem = { 0 };
	uint64_t seed = 7;
	uint32_t cnt = ROWS;

	fill(&mem, &l, all, &seed);
	compare(&mem, &l, all, cnt, 0, CC_S(1000));
	for (int i = 0; i < 40; i++) {
		cc_ns lo = CC_S(99) + next_random(&seed) % CC_S(RUNS);

		compare(&mem, &l, all, cnt, lo, lo + next_random(&seed) % CC_S(RUNS));
	}
	for (; cnt > ROWS / 2; cnt--) /* told again: taken back */
		latencies_del(&l, all[cnt - 1]);
	latencies_del(&l, (struct lat_row){ 1, 1 });
	compare(&mem, &l, all, cnt, CC_S(102), CC_S(109));
	compare(&mem, &l, all, cnt, CC_S(105), CC_S(105));
	latencies_evict(&mem, &l, CC_S(500));
	compare(&mem, &l, all, 0, 0, CC_S(1000));
	cr_expect_eq(latencies_oldest(&l), UINT64_MAX);
	latencies_done(&mem, &l);
	cr_expect_eq(mem.used, 0);
}

/* ---- which requests are shown ------------------------------------------------------------- */

static void feed(struct engine *e, const void *rec)
{
	const struct cc_rec *r = rec;

	cr_assert_eq(engine_feed(e, r, r->size), 0);
}

static void tell(struct engine *e, uint32_t ordinal, cc_ns end, cc_ns latency)
{
	struct cc_rec_req r = {
		.h = { .size = sizeof(r), .kind = CC_REC_REQ, .ts = end + 1 },
		.cookie = 0xabc,
		.ordinal = ordinal,
		.arrival = end - latency,
		.first_recv = end - latency,
		.last_recv = end - latency,
		.first_send = end,
		.last_send = end,
		.recv_cnt = 1,
		.send_cnt = 1,
		.recv_tid = 7,
		.send_tid = 7,
		.tgid = 7,
		.local_port = 80,
		.comm = "srv",
	};

	feed(e, &r);
}

static void tick(struct engine *e, cc_ns now)
{
	struct cc_rec_tick r = {
		.h = { .size = sizeof(r), .kind = CC_REC_TICK, .ts = now },
		.drained_to = now,
		.interval_ns = CC_S(1),
	};

	feed(e, &r);
}

/* 20 s of 5,000 requests each, of 100 to 150 us; every 1,000th takes 10 ms. */
static struct engine *busy(uint32_t paths_per_s)
{
	struct engine_opts o = { .window_ns = CC_S(10), .paths_per_s = paths_per_s };
	struct engine *e;
	uint32_t ordinal = 0;

	cr_assert_eq(engine_new(&o, &e), 0);
	for (cc_ns s = 100; s < 120; s++) {
		for (uint32_t i = 0; i < 5000; i++, ordinal++)
			tell(e, ordinal + 1, CC_S(s) + i * CC_US(200) + CC_US(190),
			     ordinal % 1000 == 999 ? CC_MS(10) : CC_US(100 + ordinal % 50));
		tick(e, CC_S(s + 1));
	}
	return e;
}

Test(latency, too_many_paths_are_those_of_the_slowest_and_of_a_sample)
{
	struct engine *e = busy(40);
	struct cc_query q = { .window_ns = CC_S(5) };
	const struct cc_request *const *r;
	uint32_t slow = 0, all = 0, one = 0;
	struct snapshot *s;
	size_t cnt;

	r = engine_requests(e, &cnt);
	cr_expect_lt(cnt, 3000, "%zu of 50000", cnt);
	for (size_t i = 0; i < cnt; i++) {
		cr_expect(r[i]->path_ok);
		slow += r[i]->end - r[i]->start == CC_MS(10);
		one += r[i]->weight == 1;
		all += r[i]->weight;
		cr_expect_leq(r[i]->weight, 5000 / 20);
	}
	cr_expect_eq(slow, 50, "every slow one: %u", slow);
	cr_expect_lt(one, cnt, "some stand for others");
	cr_expect_gt(all, 40000, "%u of 50000", all);
	cr_expect_lt(all, 60000, "%u of 50000", all);
	cr_assert_eq(snapshot_build(e, &q, &s), 0);
	cr_expect_eq(s->total_cnt, 25000, "all are counted");
	cr_expect_eq(s->match_cnt, 25000);
	cr_expect_eq(s->p50_ns, CC_US(124), "%llu", (unsigned long long)s->p50_ns);
	cr_expect_eq(s->max_ns, CC_MS(10));
	cr_expect_eq(s->requests[0].latency_ns, CC_MS(10));
	cr_expect_eq(s->requests[0].path_sum_ns, CC_MS(10));
	cr_expect_gt(s->stats.paths_left_out, 90000);
	snapshot_free(s);
	engine_free(e);
}

Test(latency, paths_of_all_when_they_are_few)
{
	struct engine *e = busy(0);
	size_t cnt;
	const struct cc_request *const *r = engine_requests(e, &cnt);

	cr_expect_eq(cnt, 50000);
	for (size_t i = 0; i < cnt; i++)
		cr_expect(r[i]->path_ok && r[i]->weight == 1);
	cr_expect_eq(engine_stats(e)->paths_left_out, 0);
	engine_free(e);
}

/* 3,000 threads of a stream without requests; every 100th lives ten times as long. */
static struct engine *threads(uint32_t paths_per_s)
{
	struct engine_opts o = { .paths_per_s = paths_per_s };
	struct engine *e;

	cr_assert_eq(engine_new(&o, &e), 0);
	for (uint32_t i = 0; i < 3000; i++) {
		cc_ns end = CC_S(101) + (i % 100 ? CC_US(i) : CC_S(9));
		struct cc_rec_episode a = {
			.h = { .size = sizeof(a),
			       .kind = CC_REC_EPISODE,
			       .aux = 202,
			       .ts = CC_S(100) + 1000 },
			.tid = 1000 + i,
			.seq = 1,
			.out = CC_S(100),
			.wake = CC_S(100) + 500,
			.state = 1,
		};
		struct cc_rec_episode b = a;

		b.h.ts = end;
		b.seq = 2;
		b.out = CC_S(101);
		b.wake = end;
		feed(e, &a);
		feed(e, &b);
	}
	cr_assert_eq(engine_finish(e), 0);
	return e;
}

Test(latency, of_too_many_threads_too_the_slowest_and_a_sample_have_paths)
{
	struct engine *e = threads(40);
	const struct cc_request *const *r;
	uint32_t slow = 0, all = 0;
	struct cc_query q = { 0 };
	struct snapshot *s;
	size_t cnt;

	r = engine_requests(e, &cnt);
	cr_expect_lt(cnt, 1000, "%zu of 3000", cnt);
	for (size_t i = 0; i < cnt; i++) {
		cr_expect(r[i]->path_ok);
		slow += r[i]->end - r[i]->start == CC_S(10);
		all += r[i]->weight;
	}
	cr_expect_eq(slow, 30, "every slow one: %u", slow);
	cr_expect_gt(all, 2500, "%u of 3000", all);
	cr_expect_lt(all, 3500, "%u of 3000", all);
	cr_expect_eq(engine_stats(e)->paths_left_out, 3000 - cnt);
	cr_assert_eq(snapshot_build(e, &q, &s), 0);
	cr_expect_eq(s->total_cnt, 3000, "all are counted");
	cr_expect_eq(s->max_ns, CC_S(10));
	snapshot_free(s);
	engine_free(e);

	e = threads(0);
	r = engine_requests(e, &cnt);
	cr_expect_eq(cnt, 3000);
	for (size_t i = 0; i < cnt; i++)
		cr_expect(r[i]->path_ok && r[i]->weight == 1);
	cr_expect_eq(engine_stats(e)->paths_left_out, 0);
	engine_free(e);
}
