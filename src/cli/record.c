/* SPDX-License-Identifier: Apache-2.0 */
/* record: the stream of a live target into a file, until --dur, --max-size, a signal or the
 * target's end; or, with --ring, only its last stretch, when there is a reason (flight.h). */
#include "cli.h"
#include "decode.h"
#include "flight.h"
#include "fmt.h"
#include "stop_signal.h"
#include "trace.h"
#include "tracing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct recording {
	const struct cli_opts *o;
	struct flight *flight; /* NULL: all goes to the file */
	bool tty;
	int stop_fd;
	cc_ns start;
	uint64_t events;
	struct engine_stats lost; /* only what engine_lost() looks at */
	const char *why;          /* it ended */
};

static cc_ns now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

static void on_record(void *ctx, const struct cc_rec *rec)
{
	struct recording *r = ctx;
	r->events++;
	r->lost.lost_cnt += decode_lost(rec);
	if (rec->kind == CC_REC_COUNTER && rec->aux < ARRAY_SIZE(r->lost.counter))
		r->lost.counter[rec->aux] = ((const struct cc_rec_counter *)rec)->value;
	if (r->flight)
		flight_see(r->flight, rec);
}

static void print_state(const struct recording *r, const struct collect *c, const char *end)
{
	char took[FMT_LEN], events[FMT_LEN], drops[FMT_LEN];
	fmt_dur(took, sizeof(took), now_ns() - r->start);
	fmt_group(events, sizeof(events), r->events);
	fmt_group(drops, sizeof(drops), engine_lost(&r->lost));
	fprintf(stderr, "%s, %s events, %s lost, %.1f MB%s", took, events, drops,
		(double)collect_recorded_bytes(c) / 1e6, end);
}

static int on_tick(void *ctx, struct collect *c, const struct cc_rec_tick *tick)
{
	(void)tick;
	struct recording *r = ctx;
	if (!r->tty)
		return 0;
	fprintf(stderr, "\r\033[K%s %s: ", r->flight ? "keeping for" : "recording to", r->o->out);
	print_state(r, c, r->flight ? "; Enter writes it, ^C ends" : "; ^C ends it");
	return 0;
}

static bool is_over(struct recording *r, const struct collect *c, cc_ns end)
{
	if (now_ns() >= end)
		r->why = "--dur is over";
	else if (stop_signal_came(r->stop_fd))
		r->why = "stopped";
	else if (r->o->max_size && collect_recorded_bytes(c) >= r->o->max_size)
		r->why = "--max-size is reached";
	return r->why != NULL;
}

static int record_until(struct recording *r, struct collect *c)
{
	cc_ns end = r->o->dur ? r->start + r->o->dur : UINT64_MAX;
	int err = 0;
	while (!err && !is_over(r, c, end)) {
		int n = collect_step(c, 50);
		if (n == -ENODATA) {
			r->why = "the target is gone"; /* what there is, is kept */
			break;
		}
		err = CC_MIN(n, 0);
		if (!err && r->flight)
			err = flight_turn(r->flight, c);
	}
	if (!err)
		err = collect_stop(c);
	return !err && r->flight ? flight_end(r->flight, c) : err;
}

static enum cli_exit check_opts(const struct cli_opts *o)
{
	if (o->trigger && !o->ring)
		return cli_fail(CLI_USAGE, "--trigger needs --ring T: how much to keep");
	if (o->ring && o->max_size)
		return cli_fail(CLI_USAGE, "--max-size is for a whole recording; what --ring keeps "
					   "is bounded by --memory");
	return CLI_OK;
}

static enum cli_exit open_all(struct recording *r, struct collect_opts *co)
{
	const struct cli_opts *o = r->o;
	const struct flight_opts fo = { o->ring, o->trigger, o->out, isatty(STDIN_FILENO) };
	/* first: what is opened next starts a thread, which must not get its signal */
	int err = o->ring ? flight_new(&fo, &r->flight) : 0;
	if (err)
		return cli_fail(CLI_FAILED, "cannot watch SIGUSR1: %s", strerror(-err));
	co->history_bytes = o->ring ? o->memory : 0;
	co->history_ns = o->ring;
	enum cli_exit bad = tracing_open(o, co);
	return bad || o->ring ? bad : recording_open(o->out, &co->writer);
}

static enum cli_exit tell_end(struct recording *r, struct collect *c, int err, int closed)
{
	const char *file = r->flight ? flight_path(r->flight) : r->o->out;
	if (r->tty)
		fputs("\r\033[K", stderr);
	if (closed || (err && r->flight && file[0]))
		return cli_fail(CLI_FAILED,
				"cannot write %s: %s; what was written before is readable", file,
				strerror(closed ? -closed : -err));
	if (err)
		return tracing_failed(err);
	if (r->flight)
		fprintf(stderr, "%u files written, ", flight_file_cnt(r->flight));
	else
		fprintf(stderr, "wrote %s: ", r->o->out);
	print_state(r, c, "");
	fprintf(stderr, "; %s\n", r->why);
	return CLI_OK;
}

int cmd_record(int argc, char **argv)
{
	struct cli_opts o;
	enum cli_exit bad = cli_parse(CLI_RECORD, argc, argv, 0, 0, &o);
	if (bad || o.help_shown)
		return bad;
	bad = check_opts(&o);
	if (bad)
		return bad;
	struct recording r = { .o = &o,
			       .tty = isatty(STDERR_FILENO),
			       .stop_fd = stop_signal_open() };
	if (r.stop_fd < 0)
		return cli_fail(CLI_FAILED, "cannot watch signals: %s", strerror(-r.stop_fd));
	struct collect_opts co = {
		.no_engine = true, .on_tick = on_tick, .on_record = on_record, .ctx = &r
	};
	struct collect *c = NULL;
	bad = open_all(&r, &co);
	if (bad)
		collect_opts_drop(&co);
	else if (collect_new(&co, &c))
		bad = cli_fail(CLI_FAILED, "out of memory");
	if (!bad) {
		tracing_go_first();
		r.start = now_ns();
		int err = record_until(&r, c);
		int closed = collect_close_recording(c);
		bad = tell_end(&r, c, err, closed);
	}
	collect_free(c);
	flight_free(r.flight);
	close(r.stop_fd);
	return bad;
}
