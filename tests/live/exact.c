/* SPDX-License-Identifier: Apache-2.0 */
/* exact FILE: of every request of a recording, the pieces of depth 0 follow each other from its
 * start to its end, and those of depth d + 1 fill the piece of depth d before them. Read as
 * `analyze` reads it. Prints one line, and the first few that do not; exit 1 when there are some.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine.h"
#include "exact.h"
#include "trace.h"

#define TOLD 5u

static bool is_exact(const struct cc_request *r, const struct cc_piece *p)
{
	return r->path_cnt == 0 || exact_pieces(p, r->path_cnt, r->start, r->end);
}

static int feed(void *ctx, const struct cc_rec *rec, size_t len)
{
	int err = engine_feed(ctx, rec, len);

	return err == -EINVAL ? 0 : err; /* malformed: counted */
}

static int read_all(const char *path, struct engine *e)
{
	struct cc_source *src;
	struct cc_err why;
	int n = trace_source_new(path, &why, &src);

	if (n) {
		fprintf(stderr, "exact: %s\n", why.msg);
		return n;
	}
	while ((n = src->ops->poll(src, 0, feed, e)) > 0)
		;
	cc_source_free(src);
	return n == -ENODATA ? engine_finish(e) : n;
}

static size_t judge(const struct engine *e, size_t *cnt, size_t *pieces)
{
	const struct cc_request *const *r = engine_requests(e, cnt);
	struct path_buf buf = { 0 };
	size_t bad = 0;

	for (size_t i = 0; i < *cnt; i++) {
		*pieces += r[i]->path_cnt;
		if (is_exact(r[i], request_path(r[i], &buf)))
			continue;
		if (bad++ < TOLD)
			printf("inexact: %" PRIx64 "#%u, %" PRIu64 "..%" PRIu64 "\n", r[i]->id.id,
			       r[i]->id.ordinal, r[i]->start, r[i]->end);
	}
	path_buf_done(&buf);
	return bad;
}

int main(int argc, char **argv)
{
	struct engine *e;
	size_t cnt = 0, pieces = 0, bad;
	int err = engine_new(&(struct engine_opts){ 0 }, &e);

	if (argc != 2 || err)
		return 2;
	err = read_all(argv[1], e);
	bad = err ? 0 : judge(e, &cnt, &pieces);
	if (err)
		fprintf(stderr, "exact: %s: %s\n", argv[1], strerror(-err));
	else
		printf("%zu of %zu requests are exact, %zu pieces\n", cnt - bad, cnt, pieces);
	engine_free(e);
	return err ? 2 : bad != 0;
}
