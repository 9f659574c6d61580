/* SPDX-License-Identifier: Apache-2.0 */
/* slice: a stretch of text that is not terminated, and taking words and numbers off its front. */
#ifndef CC_TRACE_SLICE_H
#define CC_TRACE_SLICE_H

#include <string.h>

#include "base.h"

struct slice {
	const char *p;
	size_t n;
};

static inline struct slice slice_of(const char *p, const char *end)
{
	return (struct slice){ p, end > p ? (size_t)(end - p) : 0 };
}

static inline bool slice_is(struct slice s, const char *text)
{
	return s.n == strlen(text) && !memcmp(s.p, text, s.n);
}

static inline bool slice_starts(struct slice s, const char *text)
{
	size_t n = strlen(text);

	return s.n >= n && !memcmp(s.p, text, n);
}

static inline struct slice slice_from(struct slice s, size_t n)
{
	n = CC_MIN(n, s.n);
	return (struct slice){ s.p + n, s.n - n };
}

static inline bool is_blank(char c) { return c == ' ' || c == '\t'; }
static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

static inline struct slice slice_trim(struct slice s)
{
	while (s.n && is_blank(*s.p))
		s.p++, s.n--;
	while (s.n && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

static inline void slice_skip_blanks(struct slice *s)
{
	while (s->n && is_blank(*s->p))
		s->p++, s->n--;
}

/* Takes @c off the front. */
static inline bool slice_eat(struct slice *s, char c)
{
	if (!s->n || *s->p != c)
		return false;
	*s = slice_from(*s, 1);
	return true;
}

/* The word up to a blank; empty at the end. */
static inline struct slice slice_word(struct slice *s)
{
	size_t n = 0;

	slice_skip_blanks(s);
	while (n < s->n && !is_blank(s->p[n]))
		n++;
	struct slice word = { s->p, n };

	*s = slice_from(*s, n);
	return word;
}

/* A decimal number of at most 19 digits off the front. */
static inline bool slice_number(struct slice *s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;
	size_t n = 0;

	while (n < s->n && is_digit(s->p[n]) && n < 19)
		v = 10 * v + (uint64_t)(s->p[n++] - '0');
	if (!n || v > max || (n < s->n && is_digit(s->p[n])))
		return false;
	*s = slice_from(*s, n);
	*ret = v;
	return true;
}

/* A hexadecimal number of at most 16 digits, with or without 0x. */
static inline bool slice_hex(struct slice *s, uint64_t *ret)
{
	struct slice t = slice_from(*s, slice_starts(*s, "0x") ? 2 : 0);
	uint64_t v = 0;
	size_t n = 0;

	for (; n < t.n && n < 16; n++) {
		char c = t.p[n];

		if (is_digit(c))
			v = v << 4 | (uint64_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			v = v << 4 | (uint64_t)((c | 32) - 'a' + 10);
		else
			break;
	}
	if (!n)
		return false;
	*s = slice_from(t, n);
	*ret = v;
	return true;
}

/* Where @text begins in @s: the first, or with @last the last place. -1: nowhere. */
static inline ptrdiff_t slice_find(struct slice s, const char *text, bool last)
{
	size_t n = strlen(text);
	ptrdiff_t at = -1;

	for (const char *p = s.p, *end = s.p + s.n; (size_t)(end - p) >= n;) {
		p = memmem(p, (size_t)(end - p), text, n);
		if (!p)
			break;
		at = p - s.p;
		if (!last)
			break;
		p++;
	}
	return at;
}

/* The decimal number that follows @key in @s. */
static inline bool slice_value(struct slice s, const char *key, uint64_t max, uint64_t *ret)
{
	ptrdiff_t at = slice_find(s, key, true);
	struct slice t;

	if (at < 0)
		return false;
	t = slice_from(s, (size_t)at + strlen(key));
	slice_skip_blanks(&t);
	return slice_number(&t, max, ret);
}

#endif
