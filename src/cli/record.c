/* SPDX-License-Identifier: Apache-2.0 */
/* record: the stream of a live target into a file, until --dur, a signal or the target's end. */
#include "cli.h"
#include "stop_signal.h"
#include "trace.h"
#include "tracing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct progress {
	bool tty;
	uint64_t ticks;
	const char *out;
};

static int on_tick(void *ctx, struct collect *c, const struct cc_rec_tick *tick)
{
	(void)c;
	(void)tick;
	struct progress *p = ctx;
	if (p->tty)
		fprintf(stderr, "\rrecording to %s, %llu s, ^C ends it ", p->out,
			(unsigned long long)++p->ticks);
	return 0;
}

static cc_ns now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

static int record_until(struct collect *c, cc_ns dur, int stop_fd)
{
	cc_ns end = dur ? now_ns() + dur : UINT64_MAX;
	while (now_ns() < end && !stop_signal_came(stop_fd)) {
		int n = collect_step(c, 50);
		if (n == -ENODATA)
			break; /* the target is gone: what there is, is kept */
		if (n < 0)
			return n;
	}
	return collect_stop(c);
}

int cmd_record(int argc, char **argv)
{
	struct cli_opts o;
	enum cli_exit bad = cli_parse(CLI_RECORD, argc, argv, 0, 0, &o);
	if (bad || o.help_shown)
		return bad;
	int stop_fd = stop_signal_open();
	if (stop_fd < 0)
		return cli_fail(CLI_FAILED, "cannot watch signals: %s", strerror(-stop_fd));
	struct progress p = { .tty = isatty(STDERR_FILENO), .out = o.out };
	struct collect_opts co = { .no_engine = true, .on_tick = on_tick, .ctx = &p };
	bad = tracing_open(&o, &co);
	if (bad)
		return bad;
	bad = recording_open(o.out, &co.writer);
	if (bad) {
		collect_opts_drop(&co);
		return bad;
	}
	struct collect *c;
	int err = collect_new(&co, &c);
	if (err)
		return cli_fail(CLI_FAILED, "out of memory");
	tracing_go_first();
	err = record_until(c, o.dur, stop_fd);
	int closed = collect_close_recording(c);
	collect_free(c);
	close(stop_fd);
	if (p.tty)
		fputc('\n', stderr);
	if (closed)
		return cli_fail(CLI_FAILED,
				"cannot write %s: %s; what was written before is readable", o.out,
				strerror(-closed));
	if (err)
		return tracing_failed(err);
	fprintf(stderr, "wrote %s\n", o.out);
	return CLI_OK;
}
