/* SPDX-License-Identifier: Apache-2.0 */
#include "strpool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sanitize.h"

void strpool_init(struct strpool *p) { memset(p, 0, sizeof(*p)); }

void strpool_done(struct strpool *p)
{
	free(p->bytes);
	free(p->slots);
	strpool_init(p);
}

static uint32_t hash(const char *s, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3ull;
	return (uint32_t)(h ^ h >> 32);
}

static int reserve_bytes(struct strpool *p, size_t more)
{
	size_t want = p->len + more + 1, cap = p->cap ? p->cap : 4096;

	while (cap < want)
		cap *= 2;
	if (cap == p->cap)
		return 0;
	if (cap > UINT32_MAX / 2)
		return -ENOMEM;
	char *bytes = realloc(p->bytes, cap);

	if (!bytes)
		return -ENOMEM;
	if (!p->len)
		bytes[p->len++] = '\0';
	p->bytes = bytes;
	p->cap = (uint32_t)cap;
	return 0;
}

static int reserve_slots(struct strpool *p)
{
	if (p->slots && 2 * p->cnt < p->mask)
		return 0;
	uint32_t mask = p->slots ? 2 * p->mask + 1 : 255;
	uint32_t *slots = calloc((size_t)mask + 1, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t i = 0; p->slots && i <= p->mask; i++) {
		if (!p->slots[i])
			continue;
		const char *s = p->bytes + p->slots[i];
		uint32_t h = hash(s, strlen(s)) & mask;

		while (slots[h])
			h = (h + 1) & mask;
		slots[h] = p->slots[i];
	}
	free(p->slots);
	p->slots = slots;
	p->mask = mask;
	return 0;
}

uint32_t strpool_add(struct strpool *p, const char *text, size_t len)
{
	char clean[STRPOOL_TEXT_MAX];
	size_t n = text ? sanitize_text(text, len, clean, sizeof(clean)) : 0;

	if (!n || p->err)
		return 0;
	p->err = reserve_bytes(p, n + 1);
	if (!p->err)
		p->err = reserve_slots(p);
	if (p->err)
		return 0;
	uint32_t h = hash(clean, n) & p->mask;

	for (; p->slots[h]; h = (h + 1) & p->mask) {
		if (strcmp(p->bytes + p->slots[h], clean) == 0)
			return p->slots[h];
	}
	memcpy(p->bytes + p->len, clean, n + 1);
	p->slots[h] = p->len;
	p->len += (uint32_t)n + 1;
	p->cnt++;
	return p->slots[h];
}

uint32_t strpool_addf(struct strpool *p, const char *fmt, ...)
{
	char text[STRPOOL_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, ap);

	va_end(ap);
	return n > 0 ? strpool_add(p, text, CC_MIN((size_t)n, sizeof(text) - 1)) : 0;
}

const char *strpool_str(const struct strpool *p, uint32_t off)
{
	return off < p->len ? p->bytes + off : "";
}

char *strpool_take(struct strpool *p, uint32_t *ret_len)
{
	if (!p->err && !p->bytes)
		p->err = reserve_bytes(p, 0);
	if (p->err)
		return NULL;
	*ret_len = p->len;
	char *bytes = take_ptr(p->bytes);

	strpool_done(p);
	return bytes;
}
