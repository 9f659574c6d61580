/* SPDX-License-Identifier: Apache-2.0 */
/* probe-stats: runs, cost and skipped runs of every kernel program over --dur, the rings and the
 * counters. */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#if HAVE_BPF
#include "loader.h"
#include "resolver.h"
#include "stop_signal.h"
#include "tracing.h"

#include <time.h>
#include <unistd.h>

#define PROGS_MAX 64
#define POLL_MS 100
#define DUR_USUAL CC_S(5)

static cc_ns now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

static int drop_record(void *ctx, const struct cc_rec *rec, size_t len)
{
	(void)ctx;
	(void)rec;
	(void)len;
	return 0;
}

static void print_programs(const struct loader_prog_stats *p, int cnt, cc_ns dur)
{
	printf("%-26s %12s %8s %8s %8s %6s\n", "program", "runs", "runs/s", "ns/run", "skipped",
	       "insns");
	for (int i = 0; i < cnt; i++) {
		double secs = (double)dur / 1e9;
		if (!p[i].attached) {
			printf("%-26s %12s\n", p[i].name, "not loaded");
			continue;
		}
		printf("%-26s %12" PRIu64 " %8.0f %8.0f %8" PRIu64 " %6u\n", p[i].name,
		       p[i].run_cnt, (double)p[i].run_cnt / secs,
		       p[i].run_cnt ? (double)p[i].run_time_ns / (double)p[i].run_cnt : 0,
		       p[i].recursion_misses, p[i].insn_cnt);
	}
}

static void print_rings(const struct loader_stats *s, cc_ns dur)
{
	static const struct {
		int cnt;
		const char *name;
	} rows[] = {
		{ CC_CNT_SCHED_EVENTS, "waits seen" },
		{ CC_CNT_DROP_EPISODE, "waits folded (ring full)" },
		{ CC_CNT_DROP_EXTRA, "EXTRA dropped" },
		{ CC_CNT_DROP_SNAP, "stacks dropped (ring full)" },
		{ CC_CNT_SNAP_BUDGET, "stacks left out (budget)" },
		{ CC_CNT_DROP_SOCKOP, "SOCKOP dropped" },
		{ CC_CNT_DROP_GO, "Go records dropped" },
		{ CC_CNT_GO_EPISODES, "waits of goroutines" },
		{ CC_CNT_GO_HITS, "hits of Go probes" },
		{ CC_CNT_DROP_REQ, "REQ dropped" },
		{ CC_CNT_DROP_TASK, "TASK dropped" },
		{ CC_CNT_CLAMPED, "times clamped" },
		{ CC_CNT_WAKE_RUNNING, "wakes of running tasks" },
		{ CC_CNT_UNSEEN, "switches not shown" },
		{ CC_CNT_STORAGE_FAIL, "storage failures" },
	};
	printf("\nring                       %" PRIu64 " bytes, fullest %" PRIu64 " (%.1f %%)\n",
	       s->ring_bytes, s->ring_fill_max,
	       100.0 * (double)s->ring_fill_max / (double)s->ring_bytes);
	printf("records                    %" PRIu64 " (%.0f/s)\n", s->records,
	       (double)s->records * 1e9 / (double)dur);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		printf("%-26s %" PRIu64 "\n", rows[i].name, s->counters[rows[i].cnt]);
}

/* Drains for @dur, until a signal or until the targets have exited. */
static int drain_for(struct cc_source *s, cc_ns dur, int stop_fd)
{
	cc_ns end = now_ns() + dur;
	while (now_ns() < end && !stop_signal_came(stop_fd)) {
		int n = s->ops->poll(s, POLL_MS, drop_record, NULL);
		if (n == -ENODATA)
			return 0;
		if (n < 0)
			return n;
	}
	return 0;
}

static enum cli_exit measure(struct cc_source *s, cc_ns dur, int stop_fd)
{
	struct loader_prog_stats p[PROGS_MAX];
	struct loader_stats st = { 0 };
	cc_ns start = now_ns();
	int cnt = 0, err = drain_for(s, dur, stop_fd);
	if (!err)
		err = loader_stats(s, &st);
	if (!err) {
		cnt = loader_prog_stats(s, p, PROGS_MAX);
		err = cnt < 0 ? cnt : 0;
	}
	if (err)
		return cli_fail(CLI_FAILED, "reading the programs' counts: %s", strerror(-err));
	dur = now_ns() - start;
	print_programs(p, cnt, dur);
	print_rings(&st, dur);
	return CLI_OK;
}

int cmd_probe_stats(int argc, char **argv)
{
	struct cli_opts o;
	struct collect_opts c = { 0 };
	enum cli_exit ret = cli_parse(CLI_PROBE_STATS, argc, argv, 0, 0, &o);
	if (ret || o.help_shown)
		return ret;
	o.count_runs = true;
	ret = tracing_open(&o, &c);
	if (ret)
		return ret;
	resolver_free(c.resolver); /* only counts are wanted */
	int fd = stop_signal_open();
	if (fd < 0) {
		ret = tracing_failed(fd);
	} else {
		ret = measure(c.source, o.dur ? o.dur : DUR_USUAL, fd);
		close(fd);
	}
	cc_source_free(c.source);
	return cli_finish_stdout(ret);
}

#else /* built with BPF=0 */

int cmd_probe_stats(int argc, char **argv)
{
	struct cli_opts o;
	enum cli_exit bad = cli_parse(CLI_PROBE_STATS, argc, argv, 0, 0, &o);
	if (bad || o.help_shown)
		return bad;
	return cli_fail(CLI_CANNOT_TRACE, "built without live tracing (BPF=0); build with `make`");
}

#endif
