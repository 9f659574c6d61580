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
	int err = engine_feed(ctx, rec, len);

	return err == -EINVAL ? 0 : err; /* malformed: counted, and told with the report */
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
	return engine_finish(e);
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
	*ret = s;
	return CLI_OK;
}

enum cli_exit offline_snapshot(const struct cli_opts *o, uint32_t top, struct snapshot **ret)
{
	struct cc_query q = { .group = GROUP_SITE,
			      .all_in_flight = true,
			      .max_rows = top ? top : UINT32_MAX,
			      .max_pieces = UINT32_MAX };
	struct engine_opts eo = { 0 };
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
			   : look(o, e, &q, ret);
		engine_free(e);
	} else {
		code = cli_fail(CLI_FAILED, "out of memory");
	}
	cc_source_free(src);
	filter_free(f);
	return code;
}
