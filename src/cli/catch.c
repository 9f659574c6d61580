/* SPDX-License-Identifier: Apache-2.0 */
/* catch: waits for a request that takes too long and tells its story. A request that is told on is
 * looked at one TICK after its end: by then the engine knows what others did for it. One that hangs
 * is told when the waiting is over: on ^C, at --timeout, when the target is gone. */
#include "cli.h"
#include "collect.h"
#include "filter.h"
#include "fmt.h"
#include "json.h"
#include "markdown.h"
#include "pick.h"
#include "stop_signal.h"
#include "tracing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REFRESH CC_MS(250) /* between TICKs: how late an answer comes, at most twice this */

struct hunt {
	const struct cli_opts *o;
	const struct filter *filter;
	cc_ns looked_to;  /* finished requests that ended before it were looked at */
	cc_ns settled_to; /* the watermark one TICK ago: what ended before it is known well */
	uint32_t caught;
	uint64_t seen;  /* finished requests */
	uint64_t apart; /* ... and what is none, or several at once: neither counted nor told */
	cc_ns slowest_ns;
	struct cc_reqid slowest;
	cc_ns began, told; /* wall time: of the start, of the last line of progress */
	bool progress;
};

static cc_ns wall_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

static bool all_caught(const struct hunt *h) { return h->caught >= h->o->count; }

/* ---- what is said meanwhile and at the end, on stderr ---- */

static void text_so_far(const struct hunt *h, char *buf, size_t cap)
{
	char slowest[FMT_LEN], id[FMT_LEN];
	size_t n = fmt_group(buf, cap, h->seen);
	n += fmt_text(buf + n, cap - n, " request%s seen", h->seen == 1 ? "" : "s");
	if (h->seen) {
		fmt_dur(slowest, sizeof(slowest), h->slowest_ns);
		fmt_reqid(id, sizeof(id), h->slowest);
		n += fmt_text(buf + n, cap - n, ", the slowest %s (%s)", slowest, id);
	}
	if (h->apart) {
		n += fmt_text(buf + n, cap - n, "; left out: ");
		n += fmt_group(buf + n, cap - n, h->apart);
		fmt_text(buf + n, cap - n, " streams, pushes, set-ups and busy periods");
	}
}

static void clear_progress(struct hunt *h)
{
	if (h->told)
		fputs("\r\033[K", stderr);
	h->told = 0;
}

static void tell_progress(struct hunt *h)
{
	char slow[FMT_LEN], so_far[224];
	cc_ns now = wall_ns();
	if (!h->progress || (h->told && now - h->told < CC_S(1)))
		return;
	fmt_dur(slow, sizeof(slow), h->o->slow);
	text_so_far(h, so_far, sizeof(so_far));
	fprintf(stderr, "\r\033[Kwaiting for a request of %s or more: %llu s, %s, ^C ends it", slow,
		(unsigned long long)((now - h->began) / CC_S(1)), so_far);
	h->told = now;
}

/* ---- stories ---- */

/* Prints request @id when the filter takes it. 0 or -errno. */
static int tell(struct hunt *h, struct collect *c, struct cc_reqid id)
{
	struct cc_query q = {
		.only = id, .filter = h->filter, .all_in_flight = true, .max_pieces = UINT32_MAX
	};
	struct snapshot *s;
	int err = collect_snapshot(c, &q, &s);
	if (err)
		return err;
	const struct snap_request *r = snapshot_find(s, id);
	if (r) {
		clear_progress(h);
		err = h->o->json ? json_request_line(s, r, stdout) : markdown_request(s, r, stdout);
		if (!err && fflush(stdout))
			err = -errno;
		h->caught++;
	}
	snapshot_free(s);
	return err;
}

/* Requests of [from, to) by their end, latest first; @fn may end it with a value other than 0. */
static int each_finished(const struct engine *e, cc_ns from, cc_ns to,
			 int (*fn)(struct hunt *h, const struct cc_request *r), struct hunt *h)
{
	size_t cnt;
	const struct cc_request *const *v = engine_requests(e, &cnt);
	int err = 0;
	while (cnt && !err && v[cnt - 1]->end >= from) {
		const struct cc_request *r = v[--cnt];
		if (r->end < to && r->state != CC_RQS_IN_FLIGHT)
			err = fn(h, r);
	}
	return err;
}

static int count_one(struct hunt *h, const struct cc_request *r)
{
	cc_ns ns = r->end - r->start;
	if (r->rec.what & CC_RQ_UNTIMED) {
		h->apart++;
		return 0;
	}
	h->seen++;
	if (ns > h->slowest_ns) {
		h->slowest_ns = ns;
		h->slowest = r->id;
	}
	return 0;
}

struct prey { /* slow ones of one TICK, slowest first */
	struct cc_reqid id[64];
	cc_ns ns[64];
	uint32_t cnt;
};

static void prey_add(struct prey *p, const struct cc_request *r)
{
	cc_ns ns = r->end - r->start;
	uint32_t at = p->cnt;
	while (at && p->ns[at - 1] < ns)
		at--;
	if (at == ARRAY_SIZE(p->id))
		return;
	uint32_t move = CC_MIN(p->cnt, (uint32_t)ARRAY_SIZE(p->id) - 1) - at;
	memmove(&p->id[at + 1], &p->id[at], move * sizeof(p->id[0]));
	memmove(&p->ns[at + 1], &p->ns[at], move * sizeof(p->ns[0]));
	p->id[at] = r->id;
	p->ns[at] = ns;
	p->cnt = at + move + 1;
}

/* Tells the slow ones that ended in [from, to), or (to 0) those that are still going on. */
static int tell_slow(struct hunt *h, struct collect *c, cc_ns from, cc_ns to)
{
	struct prey prey = { .cnt = 0 };
	size_t cnt;
	const struct cc_request *const *v = engine_requests(collect_engine(c), &cnt);
	int err = 0;
	for (; cnt && v[cnt - 1]->end >= from; cnt--) {
		const struct cc_request *r = v[cnt - 1];
		bool hangs = r->state == CC_RQS_IN_FLIGHT;
		if (r->end - r->start >= h->o->slow && !(r->rec.what & CC_RQ_UNTIMED) &&
		    (to ? r->end < to && !hangs : hangs))
			prey_add(&prey, r);
	}
	for (uint32_t i = 0; i < prey.cnt && !err && !all_caught(h); i++)
		err = tell(h, c, prey.id[i]);
	return err;
}

/* Looks at what ended before @to. */
static int look(struct hunt *h, struct collect *c, cc_ns to)
{
	cc_ns from = h->looked_to;
	if (to <= from)
		return 0;
	h->looked_to = to;
	int err = each_finished(collect_engine(c), from, to, count_one, h);
	return err ? err : tell_slow(h, c, from, to);
}

static int on_tick(void *ctx, struct collect *c, const struct cc_rec_tick *tick)
{
	(void)tick;
	struct hunt *h = ctx;
	cc_ns settled = h->settled_to;
	h->settled_to = engine_stats(collect_engine(c))->watermark_ns;
	if (all_caught(h))
		return 0;
	int err = look(h, c, settled);
	if (!err && !all_caught(h))
		tell_progress(h);
	return err;
}

/* ---- the command ---- */

enum why_over { OVER_CAUGHT, OVER_SIGNAL, OVER_TIMEOUT, OVER_GONE };

static int hunt_until(struct hunt *h, struct collect *c, int stop_fd, enum why_over *ret)
{
	cc_ns end = h->o->timeout ? h->began + h->o->timeout : UINT64_MAX;
	*ret = OVER_CAUGHT;
	while (!all_caught(h)) {
		if (stop_signal_came(stop_fd) || wall_ns() >= end) {
			*ret = wall_ns() >= end ? OVER_TIMEOUT : OVER_SIGNAL;
			return h->o->replay ? 0 : collect_stop(c);
		}
		int n = collect_step(c, h->o->replay ? 0 : 20);
		if (n == -ENODATA) {
			*ret = OVER_GONE;
			return h->o->replay ? 0 : collect_stop(c);
		}
		if (n < 0)
			return n;
	}
	return 0;
}

/* What came last, and what hangs. */
static int last_look(struct hunt *h, struct collect *c, enum why_over why)
{
	if (why == OVER_CAUGHT)
		return 0;
	int err = collect_finish(c);
	if (!err)
		err = look(h, c, UINT64_MAX);
	if (!err && !all_caught(h))
		err = tell_slow(h, c, 0, 0);
	return err;
}

static enum cli_exit say_end(const struct hunt *h, enum why_over why)
{
	static const char *const words[] = {
		[OVER_CAUGHT] = "",
		[OVER_SIGNAL] = "interrupted",
		[OVER_TIMEOUT] = "the time is over",
		[OVER_GONE] = "the target is gone",
	};
	char slow[FMT_LEN], so_far[224];
	if (all_caught(h))
		return CLI_OK;
	const char *word = why == OVER_GONE && h->o->replay ? "end of the recording" : words[why];
	char found[32] = "no";
	if (h->caught)
		snprintf(found, sizeof(found), "only %u of %u", h->caught, h->o->count);
	fmt_dur(slow, sizeof(slow), h->o->slow);
	text_so_far(h, so_far, sizeof(so_far));
	cli_fail(CLI_FAILED, "%s: %s request%s took %s or more%s; %s", word, found,
		 h->caught ? "s" : "", slow, h->filter ? " and passed the filter" : "", so_far);
	return h->caught ? CLI_OK : CLI_FAILED;
}

static enum cli_exit hunt_run(struct hunt *h, struct collect *c, int stop_fd)
{
	enum why_over why = OVER_CAUGHT;
	int err = hunt_until(h, c, stop_fd, &why);
	if (!err)
		err = last_look(h, c, why);
	clear_progress(h);
	if (err && !ferror(stdout))
		return tracing_failed(err);
	return cli_finish_stdout(err ? CLI_OK : say_end(h, why));
}

int cmd_catch(int argc, char **argv)
{
	struct cli_opts o;
	struct filter *f;
	struct collect *c;
	enum cli_exit code = cli_parse(CLI_CATCH, argc, argv, 0, 0, &o);
	if (code || o.help_shown)
		return code;
	if (!o.count)
		return cli_fail(CLI_USAGE, "--count 0: wanted 1 or more");
	struct config cfg;
	config_init(&cfg);
	code = pick_target(&o, &cfg);
	if (!code)
		code = filter_option(&o, &f);
	if (code)
		return code;
	int stop_fd = stop_signal_open();
	if (stop_fd < 0) {
		filter_free(f);
		return cli_fail(CLI_FAILED, "cannot watch signals: %s", strerror(-stop_fd));
	}
	struct hunt h = { .o = &o, .filter = f, .progress = isatty(STDERR_FILENO) && !o.replay };
	/* a story needs what is at most as old as its request; more only costs time to search */
	struct collect_opts co = { .engine = { .memory_bytes = o.memory,
					       .window_ns = CC_MAX(CC_S(10), 2 * o.slow),
					       .paths_per_s = ENGINE_PATHS_PER_S },
				   .on_tick = on_tick,
				   .ctx = &h };
	o.interval = REFRESH;
	code = source_open(&o, &co);
	h.began = wall_ns();
	if (code) {
		collect_opts_drop(&co);
	} else if (collect_new(&co, &c)) {
		code = cli_fail(CLI_FAILED, "out of memory");
	} else {
		code = hunt_run(&h, c, stop_fd);
		collect_free(c);
	}
	close(stop_fd);
	filter_free(f);
	return code;
}
