/* SPDX-License-Identifier: Apache-2.0 */
#include "filter_term.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "confidence.h"
#include "fmt.h"
#include "sanitize.h"

static const struct {
	const char *name;
	enum filter_type type;
} keys[FILTER_KEY_CNT] = {
#define X(id, name, type, help) [FK_##id] = { name, type },
	FILTER_KEYS(X)
#undef X
};

const char *filter_key_name(unsigned int key) { return key < FILTER_KEY_CNT ? keys[key].name : ""; }

enum filter_type filter_key_type(unsigned int key)
{
	return key < FILTER_KEY_CNT ? keys[key].type : FILTER_NS;
}

/* ---- parsing ---- */

struct parser {
	const char *text, *p;
	struct cc_err *err;
};

/* Sets the error at @at. Some of the text may be in it: sanitized. */
static int fail(struct parser *ps, const char *at, const char *what, const char *quoted)
{
	char clean[64];

	sanitize_text(quoted, strlen(quoted), clean, sizeof(clean));
	ps->err->pos = (int)(at - ps->text);
	fmt_text(ps->err->msg, sizeof(ps->err->msg), *clean ? "%s '%s'" : "%s", what, clean);
	return -EINVAL;
}

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int parse_key(struct parser *ps, struct term *t)
{
	const char *at = ps->p;
	char name[32];
	size_t n = 0;

	while (name_char(*ps->p) && n + 1 < sizeof(name))
		name[n++] = *ps->p++;
	name[n] = '\0';
	if (!n)
		return fail(ps, at, "a term starts with a key, like lat>20ms", "");
	for (unsigned int k = 0; k < FILTER_KEY_CNT; k++) {
		if (strcasecmp(name, keys[k].name) == 0) {
			t->key = (uint16_t)k;
			return 0;
		}
	}
	int cls = wait_class_parse(name);

	if (cls < 0)
		return fail(ps, at, "no such key", name);
	t->key = (uint16_t)(KEY_CLASS_BASE + cls);
	return 0;
}

static int parse_op(struct parser *ps, struct term *t)
{
	static const struct {
		char text[3];
		uint8_t op;
	} ops[] = { { "!=", OP_NE },      { ">=", OP_GE }, { "<=", OP_LE }, { "=", OP_EQ },
		    { "~", OP_CONTAINS }, { ">", OP_GT },  { "<", OP_LT } };
	enum filter_type type = filter_key_type(t->key);
	bool ordered = type == FILTER_NS || type == FILTER_NUM || type == FILTER_CONF;

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		size_t len = strlen(ops[i].text);

		if (strncmp(ps->p, ops[i].text, len) != 0)
			continue;
		t->op = ops[i].op;
		if (t->op >= OP_GT && !ordered)
			return fail(ps, ps->p, "this key has no order; use = or ~", "");
		if (t->op == OP_CONTAINS && (ordered || type == FILTER_TIME || type == FILTER_ID))
			return fail(ps, ps->p, "~ is for text; use = > <", "");
		if (t->op == OP_NE && type == FILTER_TIME)
			return fail(ps, ps->p, "use = here, or ! before the key", "");
		ps->p += len;
		return 0;
	}
	return fail(ps, ps->p, "wanted one of = != ~ > >= < <=", "");
}

static int parse_value(struct parser *ps, struct term *t)
{
	const char *at = ps->p;
	bool quoted = *ps->p == '"';
	size_t n = 0;

	ps->p += quoted;
	while (*ps->p && (quoted ? *ps->p != '"' : *ps->p != ' ' && *ps->p != '|')) {
		if (n + 1 == sizeof(t->text))
			return fail(ps, at, "this value is too long", "");
		t->text[n++] = *ps->p++;
	}
	t->text[n] = '\0';
	if (quoted && *ps->p != '"')
		return fail(ps, at, "the quote is not closed", "");
	ps->p += quoted;
	if (!n)
		return fail(ps, at, "a value is missing", "");
	if (*ps->p && *ps->p != ' ' && *ps->p != '|')
		return fail(ps, ps->p, "wanted a space or | after the quote", "");
	return 0;
}

/* Digits at *s as a number of at most @max. False: none, or too large. */
static bool take_number(const char **s, uint64_t max, uint64_t *ret)
{
	const char *p = *s;
	uint64_t n = 0;

	for (; *p >= '0' && *p <= '9'; p++) {
		n = 10 * n + (uint64_t)(*p - '0');
		if (n > max)
			return false;
	}
	if (p == *s)
		return false;
	*s = p;
	*ret = n;
	return true;
}

/* "12:04" is that minute, "12:04:31" that second, "12:04:31.250" that moment. */
static bool value_time(struct term *t)
{
	const char *s = t->text;
	uint64_t h, m, sec = 0, unit = 60 * CC_S(1), fraction = 0;

	if (!take_number(&s, 23, &h) || *s++ != ':' || !take_number(&s, 59, &m))
		return false;
	if (*s == ':') {
		s++;
		if (!take_number(&s, 60, &sec))
			return false;
		unit = CC_S(1);
		if (*s == '.') {
			for (s++; *s >= '0' && *s <= '9' && unit > 1; s++) {
				unit /= 10;
				fraction += (uint64_t)(*s - '0') * unit;
			}
		}
	}
	t->lo = CC_S(3600 * h + 60 * m + sec) + fraction;
	t->hi = t->lo + unit - 1;
	return *s == '\0';
}

static bool value_conf(struct term *t)
{
	const char *s = t->text;

	if (s[0] && !s[1]) {
		switch (s[0]) {
		case 'H':
		case 'h':
			t->lo = CC_CONF_HIGH;
			t->hi = 100;
			return true;
		case 'M':
		case 'm':
			t->lo = CC_CONF_MEDIUM;
			t->hi = CC_CONF_HIGH - 1;
			return true;
		case 'L':
		case 'l':
			t->lo = 0;
			t->hi = CC_CONF_MEDIUM - 1;
			return true;
		}
	}
	if (!take_number(&s, 100, &t->lo) || *s)
		return false;
	t->hi = t->lo;
	return true;
}

/* A group's word stands for all its classes ("net"), also where a class has the same ("lock"). */
static bool value_wait(struct term *t)
{
	const char *groups = WAIT_GROUPS;

	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++) {
		const char *group = wait_group_name(wait_class_letter(c));
		bool in = t->op == OP_CONTAINS
				  ? strcasestr(wait_class_name(c), t->text) != NULL ||
					    strcasestr(wait_class_json(c), t->text) != NULL
				  : strchr(groups, wait_class_letter(c)) &&
					    !strcasecmp(group, t->text);

		if (in)
			t->lo |= 1ull << c;
	}
	int cls = t->op == OP_CONTAINS ? -1 : wait_class_parse(t->text);

	if (cls >= 0)
		t->lo |= 1ull << cls;
	return t->lo != 0;
}

static bool value_num(struct term *t)
{
	const char *s = t->text;

	if (!take_number(&s, UINT32_MAX, &t->lo) || *s)
		return false;
	t->hi = t->lo;
	return true;
}

static int read_value(struct parser *ps, const char *at, struct term *t)
{
	switch (filter_key_type(t->key)) {
	case FILTER_TEXT:
		return 0;
	case FILTER_NS:
		if (fmt_parse_duration(t->text, &t->lo))
			return fail(ps, at, "not a duration like 20ms", t->text);
		t->hi = t->lo;
		return 0;
	case FILTER_NUM:
		if (!value_num(t))
			return fail(ps, at, "not a number", t->text);
		return t->key == FK_PORT && t->lo > UINT16_MAX
			       ? fail(ps, at, "no port, which end at 65535:", t->text)
			       : 0;
	case FILTER_CONF:
		return value_conf(t) ? 0 : fail(ps, at, "not H, M, L or 0..100", t->text);
	case FILTER_WAIT:
		return value_wait(t) ? 0 : fail(ps, at, "no such wait class", t->text);
	case FILTER_TIME:
		return value_time(t) ? 0 : fail(ps, at, "not a time like 12:04:31", t->text);
	case FILTER_ID:
		return fmt_parse_reqid(t->text, &t->id) ? fail(ps, at, "not a request id", t->text)
							: 0;
	}
	return -EINVAL;
}

static int parse_term(struct parser *ps, struct term *t)
{
	if (*ps->p == '!') {
		t->negated = true;
		ps->p++;
	}
	int err = parse_key(ps, t);

	if (!err)
		err = parse_op(ps, t);
	const char *at = ps->p;

	if (!err)
		err = parse_value(ps, t);
	return err ? err : read_value(ps, at, t);
}

static int parse_all(struct parser *ps, struct filter *f)
{
	const char *bar = NULL; /* a | that still needs its right side */

	for (;;) {
		while (*ps->p == ' ')
			ps->p++;
		if (*ps->p == '|') {
			if (!f->cnt || bar)
				return fail(ps, ps->p, "| needs a term before it", "");
			bar = ps->p++;
			continue;
		}
		if (!*ps->p)
			return bar ? fail(ps, bar, "| needs a term after it", "") : 0;
		if (f->cnt == FILTER_TERMS)
			return fail(ps, ps->p, "too many terms", "");
		struct term *t = &f->terms[f->cnt];

		t->starts_or = bar != NULL;
		bar = NULL;
		int err = parse_term(ps, t);

		if (err)
			return err;
		f->cnt++;
	}
}

int filter_parse(const char *text, struct cc_err *err, struct filter **ret)
{
	size_t len = strlen(text);
	struct filter *f = calloc(1, sizeof(*f) + len + 1);
	struct parser ps = { text, text, err };

	if (!f) {
		*err = (struct cc_err){ -1, "out of memory" };
		return -ENOMEM;
	}
	memcpy(f->text, text, len + 1);
	int code = parse_all(&ps, f);

	if (code) {
		filter_free(f);
		return code;
	}
	*ret = f;
	return 0;
}

void filter_free(struct filter *f) { free(f); }

const char *filter_text(const struct filter *f) { return f->text; }
