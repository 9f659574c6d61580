/* SPDX-License-Identifier: Apache-2.0 */
/* import: another tool's trace, or an older file, as a recording. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "out_file.h"
#include "sanitize.h"
#include "source.h"
#include "trace.h"

struct copy {
	struct trace_writer *writer;
	uint64_t records, episodes;
};

/* What the file lacks, for whoever reads the result. */
static void print_note(const struct cc_rec *rec)
{
	const struct cc_rec_name *n = (const void *)rec;
	char clean[1024];

	if (rec->kind != CC_REC_NAME || rec->aux != CC_NAME_NOTE ||
	    rec->size < sizeof(*n) + n->len[0])
		return;
	sanitize_text(n->text, n->len[0], clean, sizeof(clean));
	fprintf(stderr, "note: %s\n", clean);
}

static int take(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct copy *c = ctx;

	c->records++;
	c->episodes += rec->kind == CC_REC_EPISODE;
	print_note(rec);
	return trace_writer_put(c->writer, rec, len);
}

static int copy_all(struct cc_source *src, struct copy *c)
{
	int n;

	while ((n = src->ops->poll(src, 0, take, c)) > 0)
		;
	return n == -ENODATA ? 0 : n;
}

int cmd_import(int argc, char **argv)
{
	struct cli_opts o;
	enum cli_exit code = cli_parse(CLI_IMPORT, argc, argv, 1, 1, &o);
	struct copy c = { 0 };
	struct cc_source *src;
	struct cc_err why;

	if (code || o.help_shown)
		return code;
	if (trace_source_new(o.args[0], &why, &src))
		return cli_fail(CLI_FAILED, "%s", why.msg);
	if (out_file_is(o.out, o.args[0])) {
		cc_source_free(src);
		return cli_fail(CLI_USAGE, "cannot write %s: it is the file that is read", o.out);
	}
	if (trace_writer_open(o.out, &why, &c.writer)) {
		cc_source_free(src);
		return cli_fail(CLI_FAILED, "%s", why.msg);
	}
	int err = copy_all(src, &c), closed = trace_writer_close(c.writer);

	cc_source_free(src);
	if (closed)
		return cli_fail(CLI_FAILED, "cannot write %s: %s", o.out, strerror(-closed));
	if (err)
		return cli_fail(CLI_FAILED, "cannot read %s: %s", o.args[0], strerror(-err));
	fprintf(stderr, "wrote %s: %llu records, %llu waits\n", o.out,
		(unsigned long long)c.records, (unsigned long long)c.episodes);
	return CLI_OK;
}
