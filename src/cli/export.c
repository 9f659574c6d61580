/* SPDX-License-Identifier: Apache-2.0 */
/* export: a recording for other tools: pprof, folded stacks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "folded.h"
#include "offline.h"
#include "pprof.h"

typedef int write_fn(const struct snapshot *s, FILE *out);

static enum cli_exit write_out(const struct snapshot *s, const char *path, write_fn *write)
{
	bool to_stdout = strcmp(path, "-") == 0;
	FILE *f = to_stdout ? stdout : fopen(path, "we");

	if (!f)
		return cli_fail(CLI_FAILED, "cannot write %s: %s", path, strerror(errno));
	int err = write(s, f);

	if (to_stdout)
		return err == -ENOMEM ? cli_fail(CLI_FAILED, "out of memory")
				      : cli_finish_stdout(CLI_OK);
	errno = 0;
	if (fclose(f) && (!err || err == -EIO))
		err = errno ? -errno : -EIO;
	return err ? cli_fail(CLI_FAILED, "cannot write %s: %s", path, strerror(-err)) : CLI_OK;
}

int cmd_export(int argc, char **argv)
{
	struct cli_opts o;
	enum cli_exit code = cli_parse(CLI_EXPORT, argc, argv, 1, 1, &o);
	struct snapshot *s;

	if (code || o.help_shown)
		return code;
	if (!o.pprof && !o.folded)
		return cli_fail(CLI_USAGE, "export needs --pprof FILE or --folded FILE");
	code = offline_snapshot(&o, 0, &s);
	if (code)
		return code;
	if (!s->request_cnt)
		fprintf(stderr, "criticast: no request matches: what is written is empty\n");
	if (o.pprof)
		code = write_out(s, o.pprof, pprof_write);
	if (!code && o.folded)
		code = write_out(s, o.folded, folded_write);
	snapshot_free(s);
	return code;
}
