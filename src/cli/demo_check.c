// SPDX-License-Identifier: Apache-2.0
#include "demo_check.h"
#include "collect.h"
#include "demo_compare.h"
#include "demo_proc.h"
#include "stop_signal.h"
#include "tracing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHECK_DUR CC_S(55)
#define SLOT_MIN CC_MS(500)
#define RING_BYTES (32ull << 20)
#define SETTLE CC_MS(300) /* before the load, and for the last answers after it */

static int step_for(struct collect *c, cc_ns ns)
{
	for (cc_ns end = demo_now() + ns; demo_now() < end;) {
		int n = collect_step(c, 50);
		if (n < 0)
			return n;
	}
	return 0;
}

static void show_progress(const struct demo_shared *log, bool tty, int *shown)
{
	int now = atomic_load(&log->driving);
	if (tty && now != *shown && now < DEMO_CAUSE_CNT)
		fprintf(stderr, "\r\033[K%d of %d: %s", now + 1, DEMO_CAUSE_CNT,
			demo_cause_title((unsigned int)now));
	*shown = now;
}

/* Traces one round of the load. Returns 0, -EINTR when the user ended it, -ENODATA when a process
 * of the demo died, or the tracer's error. */
static int trace_round(struct demo *demo, struct collect *c, int stop_fd)
{
	struct demo_shared *log = demo_log(demo);
	bool tty = isatty(STDERR_FILENO);
	int shown = -1, err = step_for(c, SETTLE);
	demo_go(demo);
	while (!err && !atomic_load(&log->load_done)) {
		show_progress(log, tty, &shown);
		int n = collect_step(c, 50);
		err = n < 0                       ? n
		      : stop_signal_came(stop_fd) ? -EINTR
		      : !demo_alive(demo)         ? -ENODATA
						  : 0;
	}
	if (tty)
		fputs("\r\033[K", stderr);
	err = err ? err : step_for(c, SETTLE);
	err = err ? err : collect_stop(c);
	return err ? err : collect_finish(c);
}

static double percent(uint32_t part, uint32_t whole) { return whole ? 100.0 * part / whole : 0; }

static void print_scores(const struct demo_shared *log, const struct snapshot *s,
			 const struct demo_score *score)
{
	printf("%-12s %-36s %8s %8s %8s %9s %8s %8s %6s\n", "cause", "expected", "requests",
	       "class", "culprit", "H right", "inexact", "unclear", "lost");
	for (unsigned int i = 0; i < DEMO_CAUSE_CNT; i++) {
		const struct demo_score *c = &score[i];
		if (!demo_cause_here(log, i)) {
			printf("%-12s %-36s skipped: cannot be made here\n", demo_cause_key(i),
			       demo_expectation(i));
			continue;
		}
		char high[16] = "-";
		if (c->high)
			snprintf(high, sizeof(high), "%.1f%%", percent(c->high_right, c->high));
		printf("%-12s %-36s %8u %7.1f%% %7.1f%% %9s %8u %8u %6u", demo_cause_key(i),
		       demo_expectation(i), c->requests, percent(c->class_right, c->requests),
		       percent(c->culprit_right, c->requests), high, c->inexact, c->unclear,
		       c->lost);
		if (c->missing)
			printf("  %u not found", c->missing);
		const struct snap_request *wrong =
			c->wrong_id.kind ? snapshot_find(s, c->wrong_id) : NULL;
		if (wrong)
			printf("  wrong: %s", snapshot_str(s, wrong->id_text));
		puts(demo_score_ok(c) ? "" : "  !");
	}
}

/* Records lost, by kind; prints those that are not 0. */
static uint64_t print_drops(const struct engine_stats *st)
{
	static const char *const kinds[] = { "EPISODE", "EXTRA", "REQ", "TASK", "SOCKOP", "SNAP" };
	uint64_t sum = 0;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		uint64_t n = st->counter[CC_CNT_DROP_EPISODE + i];
		sum += n;
		if (n)
			printf("%" PRIu64 " %s records dropped, ", n, kinds[i]);
	}
	return sum;
}

/* An object per line: ids and causes are of our own making, nothing in them needs escaping. */
static void print_verdict(void *snapshot, const struct demo_verdict *v)
{
	const struct snapshot *s = snapshot;
	printf("{\"id\":\"%s\",\"cause\":\"%s\",\"class_right\":%s,\"culprit_right\":%s}\n",
	       snapshot_str(s, v->row->id_text), demo_cause_key(v->cause),
	       v->class_right ? "true" : "false", v->culprit_right ? "true" : "false");
}

static enum cli_exit judge(const struct cli_opts *o, const struct demo_shared *log,
			   struct snapshot *s)
{
	bool json = strcmp(o->format, "json") == 0;
	struct demo_score score[DEMO_CAUSE_CNT];
	struct demo_listener each = { .tell = json ? print_verdict : NULL, .arg = s };
	int err = demo_compare(log, s, each, score);
	if (err)
		return cli_fail(CLI_FAILED, "demo: cannot compare: %s",
				err == -EOVERFLOW ? "the run was too long for the demo's log"
						  : strerror(-err));
	if (json)
		return cli_finish_stdout(CLI_OK); /* of those who asked, to judge themselves */
	print_scores(log, s, score);
	uint32_t bad = 0, skipped = 0;
	for (unsigned int i = 0; i < DEMO_CAUSE_CNT; i++) {
		bool here = demo_cause_here(log, i);
		skipped += !here;
		bad += here && !demo_score_ok(&score[i]);
	}
	printf("%" PRIu64 " events, ", s->stats.events);
	uint64_t lost = print_drops(&s->stats);
	/* not lost by us: switches that the kernel ran no program for, shown as unknown time */
	printf("%" PRIu64 " lost or unseen, %" PRIu64 " evicted; ", engine_lost(&s->stats),
	       s->stats.evicted);
	if (!bad && !lost && skipped)
		printf("right, but for %u causes that could not be tried\n", skipped);
	else if (!bad && !lost)
		puts("every cause is right");
	else
		printf("%u causes below 95 %%, with too few requests or inexact sums (!)\n", bad);
	enum cli_exit code = cli_finish_stdout(CLI_OK);
	return code ? code : bad || lost ? CLI_FAILED : CLI_OK;
}

static enum cli_exit judge_collected(const struct cli_opts *o, const struct demo_shared *log,
				     struct collect *c)
{
	const struct cc_query all = { .max_rows = DEMO_REQS_MAX, .max_pieces = UINT32_MAX };
	struct snapshot *s;
	int err = collect_snapshot(c, &all, &s);
	if (err)
		return tracing_failed(err);
	enum cli_exit code = judge(o, log, s);
	snapshot_free(s);
	return code;
}

static enum cli_exit check_demo(struct cli_opts *o, struct demo *demo, int stop_fd)
{
	struct collect_opts co = { .engine = { .memory_bytes = o->memory } };
	struct collect *c;
	o->pids[0] = (uint32_t)atomic_load(&demo_log(demo)->server_pid);
	o->pid_cnt = 1;
	/* a machine too busy to drain in time must not hide what the answers are */
	o->ring_bytes = CC_MAX(o->ring_bytes, RING_BYTES);
	enum cli_exit code = tracing_open(o, &co);
	if (!code)
		code = recording_open(o->record, &co.writer);
	if (code) {
		collect_opts_drop(&co);
		return code;
	}
	int err = collect_new(&co, &c);
	if (err)
		return tracing_failed(err);
	err = trace_round(demo, c, stop_fd);
	int closed = collect_close_recording(c);
	if (err == -EINTR || err == -ENODATA)
		code = cli_fail(CLI_FAILED, "demo: %s: nothing is judged",
				err == -EINTR ? "interrupted" : "a process of the demo has ended");
	else
		code = err ? tracing_failed(err) : judge_collected(o, demo_log(demo), c);
	collect_free(c);
	if (closed)
		return cli_fail(CLI_FAILED, "cannot write %s: %s", o->record, strerror(-closed));
	return code;
}

enum cli_exit demo_check(struct cli_opts *o)
{
	cc_ns dur = o->dur ? o->dur : CHECK_DUR;
	const struct demo_opts d = { .slot_ns = dur / DEMO_CAUSE_CNT, .once = true };
	if (d.slot_ns < SLOT_MIN)
		return cli_fail(CLI_USAGE, "demo --check needs --dur 5s or more");
	if (strcmp(o->format, "text") != 0 && strcmp(o->format, "json") != 0)
		return cli_fail(CLI_USAGE, "--format '%s': wanted text or json", o->format);
	int stop_fd = stop_signal_open();
	if (stop_fd < 0)
		return cli_fail(CLI_FAILED, "cannot watch signals: %s", strerror(-stop_fd));
	struct demo *demo;
	enum cli_exit code = demo_start(&d, &demo);
	if (!code) {
		code = check_demo(o, demo, stop_fd);
		demo_stop(demo);
	}
	close(stop_fd);
	return code;
}
