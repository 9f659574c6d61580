/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "foreign.h"
#include "format.h"
#include "import.h"
#include "input.h"
#include "legacy.h"
#include "note.h"
#include "trace.h"

#define POLL_RECORDS 8192 /* per poll, in a stretch without TICKs: some milliseconds' worth */

struct trace_source {
	struct cc_source base;
	struct trace_reader *reader; /* version 3 or later */
	struct legacy *legacy;       /* or 1, 2: has its damage in the stream already */
	struct import *import;       /* or of another tool: so has this */
	bool damage_told;
};

/* The file's state is part of what was seen: it goes to the engine and the screen as a note. */
static int tell_damage(struct trace_source *s, cc_record_fn *fn, void *ctx)
{
	const char *text = s->reader ? trace_reader_damage(s->reader) : NULL;
	union note note;

	s->damage_told = true;
	if (!text)
		return -ENODATA;
	const struct cc_rec *rec = note_make(&note, text, trace_reader_info(s->reader)->last_ns);
	int err = fn(ctx, rec, rec->size);

	return err < 0 ? err : 1;
}

static int next_record(struct trace_source *s, const struct cc_rec **ret, size_t *len)
{
	int n = 1;

	if (s->reader)
		return trace_reader_next(s->reader, ret, len);
	if (s->import)
		n = import_next(s->import, ret);
	else
		n = (*ret = legacy_next(s->legacy)) != NULL;
	if (n == 1)
		*len = (*ret)->size;
	return n;
}

static int trace_source_poll(struct cc_source *base, int timeout_ms CC_UNUSED, cc_record_fn *fn,
			     void *ctx)
{
	struct trace_source *s = (struct trace_source *)base;
	int cnt = 0;

	while (cnt < POLL_RECORDS) {
		const struct cc_rec *rec;
		size_t len;
		int n = next_record(s, &rec, &len);

		if (n < 0)
			return n;
		if (n == 0) {
			if (cnt)
				break;
			return s->damage_told ? -ENODATA : tell_damage(s, fn, ctx);
		}
		int err = fn(ctx, rec, len);

		if (err < 0)
			return err;
		cnt++;
		if (rec->kind == CC_REC_TICK)
			break;
	}
	return cnt;
}

static void trace_source_free(struct cc_source *base)
{
	struct trace_source *s = (struct trace_source *)base;

	trace_reader_free(s->reader);
	legacy_free(s->legacy);
	import_free(s->import);
	free(s);
}

static const struct cc_source_ops trace_source_ops = {
	.poll = trace_source_poll,
	.free = trace_source_free,
};

static int open_kind(struct trace_source *s, int fd, const char *path, struct cc_err *err)
{
	char head[64];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	if (n >= 4 && !memcmp(head, TRACE_MAGIC, 4))
		return trace_reader_open_fd(fd, path, err, &s->reader);
	if (n > 0 && legacy_is(head, (size_t)n))
		return legacy_open_fd(fd, path, err, &s->legacy);
	return import_open(fd, path, err, &s->import);
}

int trace_source_new(const char *path, struct cc_err *err, struct cc_source **ret)
{
	const char *folder = foreign_folder(path);
	struct trace_source *s = calloc(1, sizeof(*s));
	int fd, code;

	if (!s || folder) {
		free(s);
		return input_fail(err, folder ? -EBADMSG : -ENOMEM, path,
				  folder ? folder : strerror(ENOMEM));
	}
	code = input_open(path, err, &fd);
	if (!code)
		code = open_kind(s, fd, path, err);
	if (code) {
		free(s);
		return code;
	}
	s->base.ops = &trace_source_ops;
	*ret = &s->base;
	return 0;
}

int trace_source_seek(struct cc_source *base, cc_ns to, uint64_t max_records, bool onward)
{
	struct trace_source *s = (struct trace_source *)base;

	if (!s->reader)
		return -EOPNOTSUPP;
	int n = trace_reader_seek(s->reader, to, max_records, onward);

	if (n == 0)
		s->damage_told = false;
	return n;
}

int trace_source_seek_rough(struct cc_source *base, cc_ns to, uint64_t max_records)
{
	struct trace_source *s = (struct trace_source *)base;

	return s->reader ? trace_reader_seek_rough(s->reader, to, max_records) : -EOPNOTSUPP;
}

int trace_source_again(const struct cc_source *base, struct cc_source **ret)
{
	const struct trace_source *s = (const struct trace_source *)base;

	if (!s->reader)
		return -EOPNOTSUPP;
	struct trace_source *more = calloc(1, sizeof(*more));
	int err = more ? trace_reader_again(s->reader, &more->reader) : -ENOMEM;

	if (err) {
		free(more);
		return err;
	}
	more->base.ops = &trace_source_ops;
	*ret = &more->base;
	return 0;
}

uint64_t trace_source_ahead(const struct cc_source *base, cc_ns to, uint64_t max_records,
			    bool onward)
{
	const struct trace_source *s = (const struct trace_source *)base;

	return s->reader ? trace_reader_ahead(s->reader, to, max_records, onward) : 0;
}

const char *trace_source_damage(const struct cc_source *base)
{
	const struct trace_source *s = (const struct trace_source *)base;

	if (s->reader)
		return trace_reader_damage(s->reader);
	return s->legacy ? legacy_damage(s->legacy) : NULL;
}

const struct trace_info *trace_source_info(const struct cc_source *base)
{
	const struct trace_source *s = (const struct trace_source *)base;

	return s->reader ? trace_reader_info(s->reader) : NULL;
}
