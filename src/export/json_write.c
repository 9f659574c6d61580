/* SPDX-License-Identifier: Apache-2.0 */
#include "json_write.h"

#include <inttypes.h>

static void quoted(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void begin(struct json *j, const char *key)
{
	if (j->more)
		fputc(',', j->out);
	j->more = true;
	if (key) {
		quoted(j->out, key);
		fputc(':', j->out);
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	fputc(bracket, j->out);
	j->more = false;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->out);
	j->more = true;
}

void json_str(struct json *j, const char *key, const char *text)
{
	begin(j, key);
	quoted(j->out, text);
}

void json_u64(struct json *j, const char *key, uint64_t v)
{
	begin(j, key);
	fprintf(j->out, "%" PRIu64, v);
}

void json_i64(struct json *j, const char *key, int64_t v)
{
	begin(j, key);
	fprintf(j->out, "%" PRId64, v);
}

void json_bool(struct json *j, const char *key, bool v)
{
	begin(j, key);
	fputs(v ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	fputs("null", j->out);
}

void json_share(struct json *j, const char *key, double v)
{
	/* not %f: its point is the locale's */
	uint64_t millionths = v > 0 && v < 1e12 ? (uint64_t)(v * 1e6 + 0.5) : 0;

	begin(j, key);
	fprintf(j->out, "%" PRIu64 ".%06" PRIu64, millionths / 1000000, millionths % 1000000);
}
