/* SPDX-License-Identifier: Apache-2.0 */
/* analyze: a report on a recording: text, JSON or the requests' stories as Markdown. */
#include <string.h>

#include "cli.h"
#include "formats.h"
#include "offline.h"
#include "report.h"

#define TOP_DEFAULT 20    /* requests in a report */
#define PIECES_MOST 65536 /* of a request, unless only it is asked for */

int cmd_analyze(int argc, char **argv)
{
	struct cli_opts o;
	enum cli_exit code = cli_parse(CLI_ANALYZE, argc, argv, 1, 1, &o);
	struct snapshot *s;
	int err;

	if (code || o.help_shown)
		return code;
	bool json = strcmp(o.format, "json") == 0, md = strcmp(o.format, "md") == 0;

	if (!json && !md && strcmp(o.format, "text") != 0)
		return cli_fail(CLI_USAGE, "--format '%s': wanted text, json or md", o.format);
	code = offline_snapshot(&o, o.top_n == UINT32_MAX ? TOP_DEFAULT : o.top_n, PIECES_MOST,
				json || md || o.request ? 0 : REPORT_SMALL_PART, &s);
	if (code)
		return code;
	err = json ? format_write(FORMAT_JSON, s, stdout)
	      : md ? format_write(FORMAT_MARKDOWN, s, stdout)
		   : report_text(s, o.request != NULL, stdout);
	snapshot_free(s);
	(void)err; /* of stdout: told by what follows */
	return cli_finish_stdout(CLI_OK);
}
