/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a server that knows: lines with "CRITICAST_GT " and a JSON object. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "eval.h"

#define MARK "CRITICAST_GT "
#define LINE_MAX_BYTES 65536

static const struct {
	const char *name;
	enum eval_mech mech;
} sites[] = {
#define X(id, name, mech) { name, EVAL_##mech },
	EVAL_SITES(X)
#undef X
};

static int64_t digits(const char **s, int cnt)
{
	int64_t v = 0;

	for (int i = 0; i < cnt; i++, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return -1;
		v = v * 10 + (**s - '0');
	}
	return v;
}

/* RFC 3339 with up to nine digits of a second, as Go writes it. 0: not such a time. */
static uint64_t parse_time(const char *s)
{
	struct tm tm = { 0 };
	int64_t part[6], ns = 0, scale = 100000000, off = 0;
	static const char marks[] = "--T::";

	for (int i = 0; i < 6; i++) {
		part[i] = digits(&s, i ? 2 : 4);
		if (part[i] < 0 || (i < 5 && *s++ != marks[i]))
			return 0;
	}
	if (*s == '.')
		for (s++; isdigit((unsigned char)*s); s++, scale /= 10)
			ns += (*s - '0') * scale;
	if (*s == '+' || *s == '-') {
		int64_t sign = *s++ == '-' ? -1 : 1, h = digits(&s, 2), m;

		if (h < 0 || *s++ != ':' || (m = digits(&s, 2)) < 0)
			return 0;
		off = sign * (h * 3600 + m * 60);
	} else if (*s++ != 'Z') {
		return 0;
	}
	tm.tm_year = (int)part[0] - 1900;
	tm.tm_mon = (int)part[1] - 1;
	tm.tm_mday = (int)part[2];
	tm.tm_hour = (int)part[3];
	tm.tm_min = (int)part[4];
	tm.tm_sec = (int)part[5];
	int64_t sec = (int64_t)timegm(&tm) - off;

	return *s || sec <= 0 ? 0 : (uint64_t)sec * 1000000000u + (uint64_t)ns;
}

/* ---- tokens: each text once ---- */

struct token_map { /* open addressing; index in tokens[], 0: free */
	uint32_t *slots;
	size_t cap;
};

static uint64_t hash_text(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return h ^ h >> 29;
}

static uint32_t *slot_of(const struct token_map *m, const struct eval_log *l, const char *text)
{
	for (size_t i = hash_text(text);; i++) {
		uint32_t *s = &m->slots[i & (m->cap - 1)];

		if (!*s || !strcmp(l->tokens[*s], text))
			return s;
	}
}

static int grow_map(struct token_map *m, const struct eval_log *l)
{
	struct token_map bigger = { .cap = m->cap ? 2 * m->cap : 1024 };

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (uint32_t i = 1; i < l->token_cnt; i++)
		*slot_of(&bigger, l, l->tokens[i]) = i;
	free(m->slots);
	*m = bigger;
	return 0;
}

static int grow(void *slot, size_t *cap, size_t need, size_t size)
{
	size_t to = *cap ? *cap : 256;
	void *p;

	while (to < need)
		to *= 2;
	p = to > *cap ? realloc(*(void **)slot, to * size) : *(void **)slot;
	if (!p)
		return -ENOMEM;
	*(void **)slot = p;
	*cap = to;
	return 0;
}

static int token_of(struct eval_log *l, struct token_map *m, const char *text, uint32_t *ret)
{
	uint32_t *slot;

	if (2 * (l->token_cnt + 2) > m->cap && grow_map(m, l))
		return -ENOMEM;
	slot = slot_of(m, l, text);
	if (!*slot) {
		if (!l->token_cnt)
			l->token_cnt = 1;
		if (grow(&l->tokens, &l->token_cap, l->token_cnt + 1, sizeof(*l->tokens)))
			return -ENOMEM;
		l->tokens[0] = NULL;
		l->tokens[l->token_cnt] = strdup(text);
		if (!l->tokens[l->token_cnt])
			return -ENOMEM;
		*slot = (uint32_t)l->token_cnt++;
	}
	*ret = *slot;
	return 0;
}

/* ---- lines ---- */

static const char *text_of(const cJSON *o, const char *key)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

	return cJSON_IsString(v) ? v->valuestring : NULL;
}

/* A number, or a text of digits only, which no reader of JSON rounds. */
static bool number_of(const cJSON *o, const char *key, uint64_t *ret)
{
	const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
	char *end;

	if (cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble < 9e15) {
		*ret = (uint64_t)v->valuedouble;
		return true;
	}
	if (!cJSON_IsString(v) || !isdigit((unsigned char)*v->valuestring))
		return false;
	*ret = strtoull(v->valuestring, &end, 10);
	return !*end;
}

/* 1: a fact, 0: not readable; -ENOMEM. */
static int read_object(const cJSON *o, struct eval_log *l, struct token_map *m,
		       struct eval_fact *ret)
{
	const char *ts = text_of(o, "ts"), *token = text_of(o, "token"), *site = text_of(o, "site");
	const cJSON *goid = cJSON_GetObjectItemCaseSensitive(o, "goid");

	*ret = (struct eval_fact){ 0 };
	if (!ts || !token || !site || !*token || !cJSON_IsNumber(goid) || goid->valuedouble < 1 ||
	    goid->valuedouble > 9e15)
		return 0;
	ret->wall_ns = parse_time(ts);
	ret->goid = (uint64_t)goid->valuedouble;
	for (uint8_t i = 1; i < EVAL_SITE_CNT; i++)
		if (!strcmp(sites[i].name, site))
			ret->site = i;
	ret->mech = (uint8_t)sites[ret->site].mech;
	ret->has_extra = number_of(o, "extra", &ret->extra);
	if (!number_of(o, "mono_ns", &ret->mono_ns) || ret->mono_ns > INT64_MAX)
		ret->mono_ns = 0;
	if (!ret->wall_ns)
		return 0;
	return token_of(l, m, token, &ret->token) ? -ENOMEM : 1;
}

static int read_line(const char *line, struct eval_log *l, struct token_map *m)
{
	const char *at = strstr(line, MARK);
	struct eval_fact f;
	cJSON *o;
	int got;

	l->lines++;
	if (!at) {
		l->ignored++;
		return 0;
	}
	o = cJSON_Parse(at + strlen(MARK));
	got = cJSON_IsObject(o) ? read_object(o, l, m, &f) : 0;
	cJSON_Delete(o);
	l->bad += got == 0;
	if (got <= 0)
		return got;
	if (grow(&l->v, &l->cap, l->cnt + 1, sizeof(*l->v)))
		return -ENOMEM;
	f.line = l->lines;
	l->v[l->cnt++] = f;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct eval_fact *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

/* A wall clock may be set while the log is written: the other one is better, if it is there. */
static void put_in_order(struct eval_log *l)
{
	bool mono = true;

	for (size_t i = 0; i < l->cnt; i++)
		mono = mono && l->v[i].mono_ns;
	for (size_t i = 0; i < l->cnt; i++)
		l->v[i].at_ns = mono ? l->v[i].mono_ns : l->v[i].wall_ns;
	if (l->cnt)
		qsort(l->v, l->cnt, sizeof(*l->v), by_time);
}

int eval_log_read(FILE *in, struct eval_log *ret)
{
	struct eval_log l = { 0 };
	struct token_map m = { 0 };
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;
	int err = 0;

	errno = 0;
	while (!err && (len = getline(&line, &cap, in)) > 0) {
		if (len > LINE_MAX_BYTES || memchr(line, '\0', (size_t)len)) {
			l.lines++;
			l.bad++;
			continue;
		}
		err = read_line(line, &l, &m);
	}
	if (!err && ferror(in))
		err = errno ? -errno : -EIO;
	free(line);
	free(m.slots);
	if (err) {
		eval_log_done(&l);
		return err;
	}
	put_in_order(&l);
	*ret = l;
	return 0;
}

void eval_log_done(struct eval_log *l)
{
	for (size_t i = 1; i < l->token_cnt; i++)
		free(l->tokens[i]);
	free(l->tokens);
	free(l->v);
	*l = (struct eval_log){ 0 };
}
