/* SPDX-License-Identifier: Apache-2.0 */
#include "top.h"
#include "again.h"
#include "collect.h"
#include "filter.h"
#include "json.h"
#include "keymap.h"
#include "out_file.h"
#include "pick.h"
#include "session.h"
#include "stop_signal.h"
#include "theme.h"
#include "trace.h"
#include "tracing.h"
#include "tui.h"
#include "urgent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- plain output: one table or object a TICK, in one thread ---- */

#define PIECES_MOST 16384 /* of all rows of an object: some four megabytes of JSON */

struct plain {
	struct cc_query query;
	bool json, live;
	uint32_t left; /* refreshes to print; 0: no end */
	bool done, ticked;
};

static int print_snapshot(struct plain *p, struct collect *c)
{
	struct snapshot *s;
	int err = collect_snapshot(c, &p->query, &s);
	if (err)
		return err;
	s->runtime.live = p->live;
	errno = 0;
	err = p->json ? json_snapshot_line(s, stdout) : tui_batch_print(s, stdout);
	if ((err == -EIO || (!err && fflush(stdout))) && errno)
		err = -errno;
	snapshot_free(s);
	p->ticked = true;
	p->done = p->left && --p->left == 0;
	return err;
}

static int plain_tick(void *ctx, struct collect *c, const struct cc_rec_tick *tick)
{
	(void)tick;
	struct plain *p = ctx;
	return p->done ? 0 : print_snapshot(p, c);
}

static int plain_loop(struct plain *p, struct collect *c, int stop_fd)
{
	while (!p->done) {
		if (stop_signal_came(stop_fd)) {
			if (!p->live)
				return 0;
			break;
		}
		int n = collect_step(c, p->live ? 50 : 0);
		if (n == -ENODATA)
			break;
		if (n < 0)
			return n;
	}
	if (p->done)
		return 0;
	int err = p->live ? collect_stop(c) : 0;
	bool whole = !engine_stats(collect_engine(c))->has_sockets;
	if (err || (p->ticked && !whole))
		return err;
	err = collect_finish(
		c); /* no requests, or an import: what threads did is told at the end */
	return err ? err : print_snapshot(p, c);
}

static enum cli_exit plain_run(const struct cli_opts *o, const struct collect_opts *given,
			       const struct filter *f, int stop_fd)
{
	uint32_t rows = o->top_n == UINT32_MAX ? 0 : o->top_n ? o->top_n : UINT32_MAX;
	struct plain p = { .query = { .window_ns = o->window,
				      .filter = f,
				      .max_rows = rows,
				      .max_pieces = PIECES_MOST },
			   .json = o->json,
			   .live = !o->replay,
			   .left = o->iterations };
	struct collect_opts co = *given;
	struct collect *c;
	co.on_tick = plain_tick;
	co.ctx = &p;
	int err = collect_new(&co, &c);
	if (err)
		return tracing_failed(err);
	err = plain_loop(&p, c, stop_fd);
	int closed = collect_close_recording(c);
	collect_free(c);
	if (closed)
		return cli_fail(CLI_FAILED, "cannot write %s: %s", o->record, strerror(-closed));
	if (err && !ferror(stdout))
		return tracing_failed(err);
	if (err && err != -EPIPE) /* of a write before the last: no longer known below */
		return cli_fail(CLI_FAILED, "cannot write to stdout: %s", strerror(-err));
	return cli_finish_stdout(CLI_OK);
}

/* ---- the terminal UI ---- */

static enum cli_exit ui_failed(int err)
{
	const char *term = getenv("TERM");
	switch (-err) {
	case ENOTTY:
		return cli_fail(CLI_FAILED,
				"top needs a terminal; use -b for plain text or --json");
	case EINVAL:
		return cli_fail(
			CLI_FAILED,
			"a terminal of the kind '%s' (TERM) cannot show the screens, or is not "
			"known here; -b writes plain text",
			term ? term : "");
	case EINTR:
	case EIO:
		return CLI_FAILED; /* ended from outside, or nobody is there to read a line */
	default:
		return cli_fail(CLI_FAILED, "%s", strerror(-err));
	}
}

static enum cli_exit script_failed(const struct cli_opts *o, int err, const struct cc_err *why)
{
	char line[16] = "";
	if (why->pos > 0)
		snprintf(line, sizeof(line), ":%d", why->pos);
	return cli_fail(err == -EBADMSG ? CLI_USAGE : CLI_FAILED, "%s%s: %s", o->script, line,
			why->msg);
}

/* What was asked for just before the end is told below the screen; of a terminal that is gone
 * nobody waits for it: the process that saves goes on by itself. */
static void finish_save(struct session *s, int ui)
{
	char msg[200];
	if (ui)
		return;
	int err = session_finish_save(s, msg, sizeof(msg));
	if (*msg)
		fprintf(stderr, "criticast: %s\n", msg);
	(void)err; /* told */
}

static enum cli_exit ui_run(const struct cli_opts *o, const struct config *cfg,
			    struct collect_opts *co)
{
	struct cc_err why;
	enum cli_exit bad = CLI_OK;
	const char *theme = theme_first(o->theme, cfg->theme);
	if (!o->script && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		bad = ui_failed(-ENOTTY);
	else if (tui_check_theme(theme, &why))
		bad = cli_fail(CLI_USAGE, "theme %s: %s", theme, why.msg);
	if (bad) {
		collect_opts_drop(co);
		return bad;
	}
	sigset_t set;
	tui_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL); /* before the collector's thread is made */
	struct again again;
	again_init(&again, o);
	struct session_opts so = { .collect = *co,
				   .replay_path = o->replay,
				   .window_ns = o->window,
				   .filter = o->filter,
				   .ports = o->replay ? NULL : pick_ports,
				   .again = o->replay ? NULL : again_open,
				   .again_ctx = &again };
	const struct trace_info *file = o->replay ? trace_source_info(co->source) : NULL;
	cc_ns first_ns = file ? file->first_ns : 0, last_ns = file ? file->last_ns : 0;
	struct session *s;
	int err = session_start(&so, &s);
	if (err)
		return tracing_failed(err);
	const struct tui_opts to = { .ops = &session_tui_ops,
				     .ctx = s,
				     .event_fd = session_event_fd(s),
				     .live = !o->replay,
				     .replay_file = o->replay,
				     .config = cfg,
				     .theme = o->theme,
				     .ascii = o->ascii,
				     .interval_ns = o->interval,
				     .filter = o->filter,
				     .first_ns = first_ns,
				     .last_ns = last_ns,
				     .max_frames = o->iterations };
	ui_urgent();
	int ui = o->script ? tui_script(&to, o->script, &why) : tui_run(&to);
	err = session_stop(s);
	finish_save(s, ui);
	session_free(s);
	if (err)
		return tracing_failed(err);
	if (ui && o->script)
		return script_failed(o, ui, &why);
	return ui ? ui_failed(ui) : CLI_OK;
}

/* ---- both ---- */

/* What the user has set up for the screens; scripts that read plain text or JSON get the same
 * whoever runs them. */
static enum cli_exit read_config(struct cli_opts *o, struct config *cfg)
{
	struct cc_err why;
	config_init(cfg);
	if (!o->batch && !o->json && config_load(cfg, &why))
		return cli_fail(CLI_USAGE, "%s", why.msg);
	if (!o->interval)
		o->interval = cfg->interval_ns;
	return CLI_OK;
}

enum cli_exit top_run(const struct cli_opts *given)
{
	struct cli_opts opts = *given, *o = &opts;
	struct filter *f;
	struct config cfg;
	enum cli_exit code = read_config(o, &cfg);
	if (!code && !o->batch && !o->json && !o->script)
		code = pick_target(o, &cfg);
	if (!code && o->replay && o->record && out_file_is(o->record, o->replay))
		code = cli_fail(CLI_USAGE, "cannot write %s: it is the file that is read",
				o->record);
	if (!code)
		code = filter_option(o, &f);
	if (code)
		return code;
	struct collect_opts co = {
		/* twice the window: a view may go back by one; the same for a replay, so that it
		 * forgets what the live view forgot */
		.engine = { .memory_bytes = o->memory,
			    .window_ns = 2 * o->window,
			    .paths_per_s = ENGINE_PATHS_PER_S },
		.history_bytes = o->replay || o->batch || o->json ? 0 : o->memory / 4,
		.history_ns = 2 * o->window,
	};
	/* the kernel checks each program: a second, on a busy host many */
	if (!o->replay && !o->batch && !o->json && !o->script && isatty(STDERR_FILENO))
		fprintf(stderr, "criticast: loading probes into the kernel\n");
	/* before there is anything that a signal could leave half done */
	bool plain = o->json || o->batch;
	int stop_fd = plain ? stop_signal_open() : -1;
	if (plain && stop_fd < 0)
		code = cli_fail(CLI_FAILED, "cannot watch signals: %s", strerror(-stop_fd));
	if (!code)
		code = source_open(o, &co);
	if (!code)
		code = recording_open(o->record, &co.writer);
	if (code)
		collect_opts_drop(&co);
	else if (plain)
		code = plain_run(o, &co, f, stop_fd);
	else
		code = ui_run(o, &cfg, &co);
	if (stop_fd >= 0)
		close(stop_fd);
	filter_free(f);
	return code;
}

int cmd_top(int argc, char **argv)
{
	struct cli_opts o;
	enum cli_exit bad = cli_parse(CLI_TOP, argc, argv, 0, 0, &o);
	if (bad || o.help_shown)
		return bad;
	if (o.help_keys) {
		keymap_list(stdout);
		return cli_finish_stdout(CLI_OK);
	}
	return top_run(&o);
}
