/* SPDX-License-Identifier: Apache-2.0 */
#include "json_write.h"

#include <inttypes.h>

/* The FILE's lock is not taken for each character: nobody else writes to it meanwhile. */
static void put(FILE *out, const char *text, size_t len) { fwrite_unlocked(text, 1, len, out); }

static bool is_plain(unsigned char c) { return c >= 0x20 && c != '"' && c != '\\'; }

static void quoted(FILE *out, const char *s)
{
	putc_unlocked('"', out);
	for (;;) {
		size_t n = 0;

		while (is_plain((unsigned char)s[n]))
			n++;
		put(out, s, n);
		s += n;
		if (!*s)
			break;
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s++);
		else
			fprintf(out, "\\u%04x", (unsigned char)*s++);
	}
	putc_unlocked('"', out);
}

#define DIGITS_MAX 20 /* of 2^64 */

static void decimal(FILE *out, uint64_t v)
{
	char text[DIGITS_MAX], *at = text + sizeof(text);

	do
		*--at = (char)('0' + v % 10);
	while (v /= 10);
	put(out, at, (size_t)(text + sizeof(text) - at));
}

static void begin(struct json *j, const char *key)
{
	if (j->more)
		putc_unlocked(',', j->out);
	j->more = true;
	if (key) {
		quoted(j->out, key);
		putc_unlocked(':', j->out);
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin(j, key);
	putc_unlocked(bracket, j->out);
	j->more = false;
}

void json_close(struct json *j, char bracket)
{
	putc_unlocked(bracket, j->out);
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
	decimal(j->out, v);
}

void json_i64(struct json *j, const char *key, int64_t v)
{
	begin(j, key);
	if (v < 0)
		putc_unlocked('-', j->out);
	decimal(j->out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void json_bool(struct json *j, const char *key, bool v)
{
	begin(j, key);
	fputs_unlocked(v ? "true" : "false", j->out);
}

void json_null(struct json *j, const char *key)
{
	begin(j, key);
	fputs_unlocked("null", j->out);
}

void json_share(struct json *j, const char *key, double v)
{
	/* not %f: its point is the locale's */
	uint64_t millionths = v > 0 && v < 1e12 ? (uint64_t)(v * 1e6 + 0.5) : 0;

	begin(j, key);
	fprintf(j->out, "%" PRIu64 ".%06" PRIu64, millionths / 1000000, millionths % 1000000);
}
