/* SPDX-License-Identifier: Apache-2.0 */
/* export: a recording for other tools, in as many formats at once as are asked for. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "formats.h"
#include "offline.h"
#include "otlp_send.h"
#include "out_file.h"

/* Which option takes the file of which format. */
static const struct {
	size_t field;
	enum export_format format;
} outputs[] = {
	{ offsetof(struct cli_opts, pprof), FORMAT_PPROF },
	{ offsetof(struct cli_opts, folded), FORMAT_FOLDED },
	{ offsetof(struct cli_opts, folded_wakers), FORMAT_FOLDED_WAKERS },
	{ offsetof(struct cli_opts, perfetto), FORMAT_PERFETTO },
	{ offsetof(struct cli_opts, otlp), FORMAT_OTLP },
	{ offsetof(struct cli_opts, otlp_profiles), FORMAT_OTLP_PROFILES },
	{ offsetof(struct cli_opts, csv), FORMAT_CSV },
	{ offsetof(struct cli_opts, csv_requests), FORMAT_CSV_REQUESTS },
	{ offsetof(struct cli_opts, json_file), FORMAT_JSON },
};

static const char *path_of(const struct cli_opts *o, size_t i)
{
	return *(const char *const *)((const char *)o + outputs[i].field);
}

static bool is_otlp(enum export_format f) { return f == FORMAT_OTLP || f == FORMAT_OTLP_PROFILES; }

static enum cli_exit write_file(const struct snapshot *s, enum export_format format,
				const char *path)
{
	struct out_file f;
	int err = out_file_open(&f, path);

	if (!err)
		err = out_file_close(&f, format_write(format, s, f.f));
	return err ? cli_fail(CLI_FAILED, "cannot write %s: %s", path, strerror(-err)) : CLI_OK;
}

static enum cli_exit write_out(const struct snapshot *s, enum export_format format,
			       const char *path)
{
	if (is_otlp(format) && otlp_is_url(path))
		return otlp_send(s, format, path);
	if (strcmp(path, "-") != 0)
		return write_file(s, format, path);
	errno = 0;
	int err = format_write(format, s, stdout);

	if (err == -ENOMEM)
		return cli_fail(CLI_FAILED, "out of memory");
	if (err && errno && errno != EPIPE) /* of a write before the last: no longer known below */
		return cli_fail(CLI_FAILED, "cannot write to stdout: %s", strerror(errno));
	return cli_finish_stdout(CLI_OK);
}

/* Something to write, and stdout for one at most. */
static enum cli_exit check_outputs(const struct cli_opts *o)
{
	unsigned int cnt = 0, to_stdout = 0;

	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
		const char *path = path_of(o, i);

		if (path && out_file_is(path, o->args[0]))
			return cli_fail(CLI_USAGE, "cannot write %s: it is the file that is read",
					path);
		cnt += path != NULL;
		to_stdout += path && strcmp(path, "-") == 0;
	}
	if (!cnt)
		return cli_fail(
			CLI_USAGE,
			"export needs a format, as --pprof FILE; see criticast export --help");
	if (to_stdout > 1)
		return cli_fail(CLI_USAGE, "stdout (-) can take one format only");
	return CLI_OK;
}

int cmd_export(int argc, char **argv)
{
	struct cli_opts o;
	enum cli_exit code = cli_parse(CLI_EXPORT, argc, argv, 1, 1, &o);
	struct snapshot *s;

	if (code || o.help_shown)
		return code;
	code = check_outputs(&o);
	if (!code)
		code = offline_snapshot(&o, o.top_n == UINT32_MAX ? 0 : o.top_n, 0, 0, &s);
	if (code)
		return code;
	if (!s->request_cnt)
		fprintf(stderr, "criticast: no request matches: what is written is empty\n");
	for (size_t i = 0; i < ARRAY_SIZE(outputs) && !code; i++) {
		if (path_of(&o, i))
			code = write_out(s, outputs[i].format, path_of(&o, i));
	}
	snapshot_free(s);
	return code;
}
