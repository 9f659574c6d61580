/* SPDX-License-Identifier: Apache-2.0 */
/* soak FILE HOURS [EVENTS/S]: a recording fed again and again, as if its servers ran for HOURS at
 * that rate, through an engine as `top` has it. Memory must stay within the budget and flat, and
 * the table at the end must be that of a fresh engine which saw the last minutes only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "again.h"
#include "snapshot.h"

#define WINDOW CC_S(60)
#define BUDGET (256ull << 20)

static void die(const char *what)
{
	fprintf(stderr, "soak: %s\n", what);
	exit(2);
}

static struct engine *fresh(void)
{
	struct engine_opts o = { .memory_bytes = BUDGET,
				 .window_ns = 2 * WINDOW,
				 .paths_per_s = ENGINE_PATHS_PER_S };
	struct engine *e;

	if (engine_new(&o, &e))
		die("out of memory");
	return e;
}

/* @first: of the loops that this engine sees. */
static void feed_loop(struct again *s, struct engine *e, uint64_t n, bool first)
{
	for (size_t i = 0; i < s->in.cnt; i++) {
		const struct cc_rec *r;

		if (!first && again_lasting(s->in.p[i]))
			continue;
		r = again_rec(s, s->in.p[i], n);
		if (engine_feed(e, r, r->size))
			die("a record was refused");
	}
}

static size_t rss_kib(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%*u %lu", &pages) != 1)
		die("no /proc/self/statm");
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static struct snapshot *table(const struct engine *e)
{
	struct cc_query q = { .window_ns = WINDOW };
	struct snapshot *s;

	if (snapshot_build(e, &q, &s))
		die("out of memory");
	return s;
}

/* Rows, percentiles and waits of both are the same. Returns how many things differ. */
static int compare(const struct snapshot *a, const struct snapshot *b)
{
	int bad = 0;

	bad += a->total_cnt != b->total_cnt || a->request_cnt != b->request_cnt;
	bad += a->p50_ns != b->p50_ns || a->p95_ns != b->p95_ns || a->p99_ns != b->p99_ns ||
	       a->max_ns != b->max_ns;
	bad += memcmp(a->p99_line, b->p99_line, sizeof(a->p99_line)) != 0;
	if (bad)
		printf("counts differ: %u and %u requests, %u and %u rows, p50 %llu and %llu, p99 "
		       "%llu "
		       "and %llu\n",
		       a->total_cnt, b->total_cnt, a->request_cnt, b->request_cnt,
		       (unsigned long long)a->p50_ns, (unsigned long long)b->p50_ns,
		       (unsigned long long)a->p99_ns, (unsigned long long)b->p99_ns);
	for (uint32_t i = 0; i < a->request_cnt && !bad; i++) {
		const struct snap_request *x = &a->requests[i], *y = &b->requests[i];

		bad += !cc_reqid_eq(x->id, y->id) || x->latency_ns != y->latency_ns ||
		       x->path_sum_ns != y->path_sum_ns || x->path_ok != y->path_ok ||
		       x->confidence != y->confidence || x->dominant.cls != y->dominant.cls ||
		       memcmp(x->class_ns, y->class_ns, sizeof(x->class_ns));
		if (bad)
			printf("row %u differs: %s and %s\n", i, snapshot_str(a, x->id_text),
			       snapshot_str(b, y->id_text));
	}
	bad += a->wait_cnt != b->wait_cnt;
	for (uint32_t i = 0; i < a->wait_cnt && !bad; i++)
		bad += a->waits[i].cls != b->waits[i].cls ||
		       a->waits[i].total_ns != b->waits[i].total_ns ||
		       a->waits[i].requests != b->waits[i].requests;
	return bad;
}

int main(int argc, char **argv)
{
	static struct again s;
	double hours = argc > 2 ? atof(argv[2]) : 0, rate = argc > 3 ? atof(argv[3]) : 10000;
	size_t warm = 0, most = 0, used = 0;
	struct engine *e, *other;
	int failed = 0;

	if (hours <= 0 || rate <= 0)
		die("soak FILE HOURS [EVENTS/S]");
	struct cc_err err;
	const char *wrong = again_load(&s, argv[1], &err);

	if (wrong)
		die(wrong);
	s.speed = rate * (double)s.span / 1e9 / (double)s.in.cnt;
	s.span = (cc_ns)((double)s.span / s.speed) + 1;
	uint64_t loops = (uint64_t)(hours * 3600e9 / (double)s.span) + 1;
	uint64_t hour = (uint64_t)CC_S(3600) / s.span + 1;
	uint64_t recent = 3 * WINDOW / s.span + 1; /* a window, and what it may lean on */

	if (loops < 3 * recent)
		die("so few HOURS are not more than the window");
	e = fresh();
	for (uint64_t n = 0; n < loops; n++) {
		feed_loop(&s, e, n, n == 0);
		used = CC_MAX(used, engine_stats(e)->memory_bytes);
		if (n == 2 * recent)
			warm = rss_kib();
		if (n / hour != (n + 1) / hour)
			fprintf(stderr, "hour %llu: %llu events, %zu of %llu KiB, RSS %zu KiB\n",
				(unsigned long long)((n + 1) / hour),
				(unsigned long long)engine_stats(e)->events, used >> 10,
				BUDGET >> 10, rss_kib());
	}
	most = rss_kib();
	other = fresh();
	for (uint64_t n = loops - recent; n < loops; n++)
		feed_loop(&s, other, n, n == loops - recent);

	struct snapshot *a = table(e), *b = table(other);
	int differ = compare(a, b);

	printf("%.1f h of %.0f events/s: %llu events, %u requests in the window, %u rows; memory "
	       "%zu of %llu KiB, RSS %zu KiB after %llu loops, %zu KiB at the end\n",
	       hours, rate, (unsigned long long)engine_stats(e)->events, a->total_cnt,
	       a->request_cnt, used >> 10, BUDGET >> 10, warm, (unsigned long long)(2 * recent),
	       most);
	failed += used > BUDGET + BUDGET / 16;
	failed += most > warm + warm / 8;
	failed += a->request_cnt == 0;
	failed += differ != 0;
	printf("%s: memory within the budget, RSS flat, the same table as of the last minutes "
	       "(%d differ)\n%d passed, %d failed\n",
	       failed ? "FAILED" : "ok", differ, 4 - failed, failed);
	snapshot_free(a);
	snapshot_free(b);
	engine_free(e);
	engine_free(other);
	return failed != 0;
}
