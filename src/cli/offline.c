/* SPDX-License-Identifier: Apache-2.0 */
#include "offline.h"
#include "collect.h"
#include "tracing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine.h"
#include "filter.h"
#include "fmt.h"
#include "trace.h"

static int feed(void *ctx, const struct cc_rec *rec, size_t len)
{
	return engine_stream(ctx, rec, len); /* malformed: counted, and told with the report */
}

/* "26186.336715", or "+20ms" after @first. Returns 0 or -EINVAL. */
static int parse_time(const char *s, cc_ns first, cc_ns *ret)
{
	char with_unit[64];

	if (*s == '+') {
		if (fmt_parse_duration(s + 1, ret))
			return -EINVAL;
		*ret += first;
		return 0;
	}
	int n = snprintf(with_unit, sizeof(with_unit), "%ss", s);

	return n < (int)sizeof(with_unit) ? fmt_parse_duration(with_unit, ret) : -EINVAL;
}

#define TIME_WANTED                                                                                \
	"--%s '%s': wanted seconds of the trace's clock, as 26186.3, or what is after its start, " \
	"as +5s"

/* --request TID, --from and --to make a span; what they leave open is all there is. */
static enum cli_exit finish(const struct cli_opts *o, struct cc_query *q, struct engine *e)
{
	const struct engine_stats *st = engine_stats(e);
	struct engine_span span = { .lo = 0, .hi = st->last_ns + 1 };
	int err;

	if (o->from && parse_time(o->from, st->first_ns, &span.lo))
		return cli_fail(CLI_USAGE, TIME_WANTED, "from", o->from);
	if (o->to && parse_time(o->to, st->first_ns, &span.hi))
		return cli_fail(CLI_USAGE, TIME_WANTED, "to", o->to);
	if (span.lo >= span.hi)
		return cli_fail(CLI_USAGE, "--from and --to leave no time within the trace");
	if (q->only.kind == CC_REQID_TID)
		span.tid = (uint32_t)q->only.id;
	if (o->from || o->to) {
		q->view_ns = span.hi;
		q->window_ns = span.hi - span.lo;
	}
	err = span.tid || o->from || o->to ? engine_finish_span(e, &span) : engine_finish(e);
	return err ? cli_fail(CLI_FAILED, "%s", strerror(-err)) : CLI_OK;
}

static int read_all(const char *path, struct engine *e, struct cc_source *src)
{
	int n;

	while ((n = src->ops->poll(src, 0, feed, e)) > 0)
		;
	if (n != -ENODATA)
		return n;
	const char *damage = trace_source_damage(src);

	if (damage)
		fprintf(stderr, "criticast: %s: %s\n", path, damage);
	return 0;
}

static enum cli_exit read_query(const struct cli_opts *o, struct cc_query *q, struct filter **f)
{
	if (o->request && fmt_parse_reqid(o->request, &q->only))
		return cli_fail(
			CLI_USAGE,
			"--request '%s' is no id; wanted <cookie>#<ordinal>, 0x<cookie> or a tid",
			o->request);
	if (o->min_confidence > 100)
		return cli_fail(CLI_USAGE, "--min-confidence %u: wanted 0..100", o->min_confidence);
	q->min_confidence = (uint8_t)o->min_confidence;
	enum cli_exit bad = filter_option(o, f);
	q->filter = *f;
	return bad;
}

static void tell_left_out(const struct snapshot *s)
{
	uint64_t pieces = 0;
	uint32_t rows = 0;

	for (uint32_t i = 0; i < s->request_cnt; i++) {
		pieces += s->requests[i].pieces_left_out;
		rows += s->requests[i].pieces_left_out != 0;
	}
	if (rows)
		fprintf(stderr,
			"criticast: %llu pieces of %u requests are left out, the deepest first; "
			"--request ID shows all of one, a larger --memory more\n",
			(unsigned long long)pieces, rows);
}

static enum cli_exit look(const struct cli_opts *o, const struct engine *e, struct cc_query *q,
			  struct snapshot **ret)
{
	struct snapshot *s;

	q->tz_off_s = collect_zone_offset(e);
	if (snapshot_build(e, q, &s))
		return cli_fail(CLI_FAILED, "out of memory");
	if (o->request && !s->request_cnt) {
		snapshot_free(s);
		return cli_fail(CLI_FAILED, "no request %s in %s%s", o->request, o->args[0],
				o->filter ? " that the filter takes" : "");
	}
	tell_left_out(s);
	*ret = s;
	return CLI_OK;
}

/* What is shown is kept beside the engine: as much again as its budget. */
static uint32_t pieces_in(uint64_t memory)
{
	return (uint32_t)CC_MIN(CC_MAX(memory / sizeof(struct snap_piece), 1), UINT32_MAX);
}

enum cli_exit offline_snapshot(const struct cli_opts *o, uint32_t top, uint32_t max_of_request,
			       uint32_t small_part, struct snapshot **ret)
{
	struct cc_query q = { .group = GROUP_SITE,
			      .all_in_flight = true,
			      .max_rows = top ? top : UINT32_MAX,
			      .max_pieces = pieces_in(o->memory),
			      .max_of_request = o->request ? 0 : max_of_request,
			      .small_part = small_part,
			      .lines = o->perfetto != NULL,
			      .slow_tables =
				      o->json_file || (o->format && !strcmp(o->format, "json")) };
	struct engine_opts eo = { .memory_bytes = o->memory };
	struct filter *f = NULL;
	struct cc_source *src;
	struct engine *e;
	struct cc_err why;
	enum cli_exit code = read_query(o, &q, &f);

	if (code)
		return code;
	if (trace_source_new(o->args[0], &why, &src)) {
		filter_free(f);
		return cli_fail(CLI_FAILED, "%s", why.msg);
	}
	int err = engine_new(&eo, &e);

	if (!err) {
		err = read_all(o->args[0], e, src);
		code = err ? cli_fail(CLI_FAILED, "cannot read %s: %s", o->args[0], strerror(-err))
			   : finish(o, &q, e);
		if (!code)
			code = look(o, e, &q, ret);
		engine_free(e);
	} else {
		code = cli_fail(CLI_FAILED, "out of memory");
	}
	cc_source_free(src);
	filter_free(f);
	return code;
}
