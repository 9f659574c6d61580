/* SPDX-License-Identifier: Apache-2.0 */
/* eval: models of whose work a goroutine did, against the server's own word. */
#include "eval.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char *const mode_names[] = {
#define X(id, name, help) name,
	ENGINE_SERVE_MODES(X)
#undef X
};

const char *eval_mode_name(enum engine_serve mode)
{
	return mode < ENGINE_SERVE_CNT ? mode_names[mode] : "?";
}

int eval_mode_parse(const char *s)
{
	for (int i = 0; i < ENGINE_SERVE_CNT; i++)
		if (!strcmp(mode_names[i], s))
			return i;
	return -EINVAL;
}

static uint64_t count_tokens(const struct eval_log *l)
{
	uint64_t cnt = 0;

	for (size_t i = 0; i < l->cnt; i++)
		cnt += l->v[i].site == EVAL_AT_ENTRY;
	return cnt;
}

static int compare(struct eval_result *r, struct eval_live *live)
{
	struct eval_claim *claims = calloc(r->log->cnt + 1, sizeof(*claims));
	int err = claims ? 0 : -ENOMEM;

	r->tokens = count_tokens(r->log);
	for (int i = 0; i < ENGINE_SERVE_CNT && !err; i++) {
		if (!r->mode[i])
			continue;
		eval_alone(r->log, (enum engine_serve)i, claims);
		err = eval_score_claims(r->log, claims, &r->alone[i]);
		if (err || !live)
			continue;
		eval_live_claims(live, (enum engine_serve)i, claims);
		err = eval_score_claims(r->log, claims, &r->live[i]);
	}
	free(claims);
	if (!err && live) {
		r->traced = true;
		r->tokens_found = eval_live_found(live);
		eval_live_paths(live, &r->path);
	}
	return err;
}

static enum cli_exit read_log(const char *path, struct eval_log *ret)
{
	FILE *in = strcmp(path, "-") ? fopen(path, "r") : stdin;
	int err;

	if (!in)
		return cli_fail(CLI_FAILED, "cannot open %s: %s", path, strerror(errno));
	err = eval_log_read(in, ret);
	if (in != stdin)
		fclose(in);
	if (err)
		return cli_fail(CLI_FAILED, "cannot read %s: %s", path, strerror(-err));
	if (ret->cnt)
		return CLI_OK;
	eval_log_done(ret);
	return cli_fail(CLI_FAILED,
			"%s has no CRITICAST_GT lines; wanted the log of a server that writes "
			"them, as testdata/go/adversarial does with -gt-log",
			path);
}

static enum cli_exit report(const struct cli_opts *o, const struct eval_result *r)
{
	double least = o->min_precision / 10000.0;
	char line[200];
	const char *failed = o->min_precision ? eval_failure(r, least, line, sizeof(line)) : NULL;
	enum cli_exit code;

	if (!strcmp(o->format, "json"))
		eval_report_json(r, stdout);
	else
		eval_report_text(r, stdout);
	code = cli_finish_stdout(CLI_OK);
	return failed ? cli_fail(CLI_FAILED, "%s", failed) : code;
}

int cmd_eval(int argc, char **argv)
{
	struct cli_opts o;
	struct eval_log log;
	struct eval_live *live = NULL;
	struct eval_result *r;
	struct cc_err err;
	enum cli_exit code = cli_parse(CLI_EVAL, argc, argv, 0, 0, &o);
	int mode = ENGINE_SERVE_CNT;

	if (code || o.help_shown)
		return code;
	if (!o.gt_log)
		return cli_fail(CLI_USAGE, "eval wants --gt-log FILE");
	if (strcmp(o.mode, "all") != 0 && (mode = eval_mode_parse(o.mode)) < 0)
		return cli_fail(CLI_USAGE,
				"--mode '%s': wanted e1-lineage, e2-sudog, e3-suppress, e4-naive "
				"or all",
				o.mode);
	if (o.min_precision && mode != ENGINE_SERVE_CNT && mode != ENGINE_SERVE_FULL)
		return cli_fail(CLI_USAGE, "--min-precision judges e3-suppress, not --mode %s",
				o.mode);
	if (strcmp(o.format, "text") != 0 && strcmp(o.format, "json") != 0)
		return cli_fail(CLI_USAGE, "--format '%s': wanted text or json", o.format);
	code = read_log(o.gt_log, &log);
	if (code)
		return code;
	r = calloc(1, sizeof(*r));
	if (o.trace && eval_live_open(o.trace, &log, &err, &live)) {
		code = cli_fail(CLI_FAILED, "%s", err.msg);
	} else if (r) {
		r->log = &log;
		for (int i = 0; i < ENGINE_SERVE_CNT; i++)
			r->mode[i] = mode == ENGINE_SERVE_CNT || mode == i;
		code = compare(r, live) ? cli_fail(CLI_FAILED, "out of memory") : report(&o, r);
	} else {
		code = cli_fail(CLI_FAILED, "out of memory");
	}
	free(r);
	eval_live_free(live);
	eval_log_done(&log);
	return code;
}
