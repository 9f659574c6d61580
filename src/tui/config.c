/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "columns.h"
#include "fmt.h"

#define KEY_PREFIX "key."

struct word {
	const char *s;
	size_t len;
};

static const char *const sort_names[] = {
	[SORT_LATENCY] = "latency",
	[SORT_AGE] = "age",
	[SORT_CONFIDENCE] = "confidence",
	[SORT_UNEXPLAINED] = "unexplained",
	[SORT_DOMINANT] = "dominant",
	[SORT_CPU] = "cpu",
	[SORT_RUNQ] = "runq",
};

#define X(id, name) name,
static const char *const column_names[COL_CNT] = { COLUMNS(X) };
#undef X

const char *config_sort_name(enum snap_sort s)
{
	return s < ARRAY_SIZE(sort_names) ? sort_names[s] : "";
}

const char *config_column_name(unsigned int col) { return col < COL_CNT ? column_names[col] : ""; }

void config_init(struct config *ret)
{
	*ret = (struct config){ .columns = COLUMNS_DEFAULT };
	keymap_init(&ret->keys);
}

/* ---- words ---- */

static bool is_word(struct word w, const char *s)
{
	return strlen(s) == w.len && !strncasecmp(w.s, s, w.len);
}

/* Takes the next word off *s; len 0: there is none. */
static struct word next_word(const char **s)
{
	struct word w = { *s + strspn(*s, " \t"), 0 };
	w.len = strcspn(w.s, " \t");
	*s = w.s + w.len;
	return w;
}

static int find_name(const char *const *names, size_t cnt, struct word w)
{
	for (size_t i = 0; i < cnt; i++)
		if (is_word(w, names[i]))
			return (int)i;
	return -1;
}

CC_PRINTF(2, 3) static int wrong(struct cc_err *err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

/* ---- the settings: one row each ---- */

static int theme_read(const char *v, struct config *c, struct cc_err *err)
{
	if (strlen(v) >= sizeof(c->theme))
		return wrong(err, "the name of the theme is too long");
	strcpy(c->theme, v);
	return 0;
}

static void theme_show(const struct config *c, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", c->theme);
}

static int interval_read(const char *v, struct config *c, struct cc_err *err)
{
	cc_ns ns;
	if (fmt_parse_duration(v, &ns) || ns < CC_MS(100) || ns > CC_S(60))
		return wrong(err, "interval '%.40s': wanted a time from 100ms to 60s", v);
	c->interval_ns = ns;
	return 0;
}

static void interval_show(const struct config *c, char *buf, size_t cap)
{
	buf[0] = '\0';
	if (c->interval_ns)
		snprintf(buf, cap, "%llums", (unsigned long long)(c->interval_ns / CC_MS(1)));
}

static int columns_read(const char *v, struct config *c, struct cc_err *err)
{
	uint32_t set = COLUMNS_ALWAYS;
	for (struct word w; (w = next_word(&v)).len;) {
		int i = find_name(column_names, COL_CNT, w);
		if (i < 0)
			return wrong(
				err,
				"no column '%.*s': there are req lat cpu runq mix dominant share "
				"woken held unexplained conf age label conn",
				(int)CC_MIN(w.len, 40), w.s);
		set |= 1u << i;
	}
	c->columns = set;
	return 0;
}

static void columns_show(const struct config *c, char *buf, size_t cap)
{
	size_t n = 0;
	buf[0] = '\0';
	for (unsigned int i = 0; c->columns != COLUMNS_DEFAULT && i < COL_CNT; i++)
		if (c->columns & 1u << i)
			n += fmt_text(buf + n, cap - n, "%s%s", n ? " " : "", column_names[i]);
}

static int sort_read(const char *v, struct config *c, struct cc_err *err)
{
	struct word name = next_word(&v), how = next_word(&v);
	int i = find_name(sort_names, ARRAY_SIZE(sort_names), name);
	bool up = is_word(how, "ascending");
	if (i < 0 || next_word(&v).len || (how.len && !up && !is_word(how, "descending")))
		return wrong(err, "sort: wanted latency, age, confidence, unexplained, dominant, "
				  "cpu or runq, "
				  "then ascending or descending");
	c->sort = (enum snap_sort)i;
	c->ascending = up;
	return 0;
}

static void sort_show(const struct config *c, char *buf, size_t cap)
{
	buf[0] = '\0';
	if (c->sort != SORT_LATENCY || c->ascending)
		snprintf(buf, cap, "%s%s", config_sort_name(c->sort),
			 c->ascending ? " ascending" : "");
}

static const struct setting {
	const char *name;
	int (*read)(const char *value, struct config *c, struct cc_err *err);
	void (*show)(const struct config *c, char *buf, size_t cap); /* "": as without a file */
} settings[] = {
	{ "theme", theme_read, theme_show },
	{ "interval", interval_read, interval_show },
	{ "columns", columns_read, columns_show },
	{ "sort", sort_read, sort_show },
};

static int key_read(enum action a, const char *v, struct config *c, struct cc_err *err)
{
	int keys[KEYMAP_KEYS] = { 0 }, cnt = 0;
	for (struct word w; (w = next_word(&v)).len;) {
		int key = keymap_key_parse(w.s, w.len);
		if (!key)
			return wrong(err,
				     "no key '%.*s': a character, ^A, F1, Space, Tab, S-Tab, "
				     "Enter, Esc, "
				     "Up, Down, Left, Right, PgUp, PgDn, Home, End, Del, Bksp",
				     (int)CC_MIN(w.len, 20), w.s);
		if (cnt == KEYMAP_KEYS)
			return wrong(err, "at most %d keys for one action", KEYMAP_KEYS);
		keys[cnt++] = key;
	}
	memcpy(c->keys.keys[a], keys, sizeof(keys));
	return 0;
}

static void key_show(enum action a, const struct config *c, char *buf, size_t cap)
{
	size_t n = 0;
	buf[0] = '\0';
	for (int i = 0; i < KEYMAP_KEYS && c->keys.keys[a][i]; i++) {
		char name[16];
		keymap_key_typed(c->keys.keys[a][i], name);
		n += fmt_text(buf + n, cap - n, "%s%s", n ? " " : "", name);
	}
}

/* Which action "key.page-up" is about; ACT_NONE: none. */
static enum action key_action(struct word name)
{
	size_t lead = strlen(KEY_PREFIX);
	if (name.len <= lead || strncasecmp(name.s, KEY_PREFIX, lead) != 0)
		return ACT_NONE;
	return keymap_action_find(name.s + lead, name.len - lead);
}

/* ---- lines ---- */

/* A line without its end, comment or blank when name.len is 0; @value has no blanks around it. */
static int split_line(const char *line, size_t len, struct word *name, char *value, size_t cap)
{
	while (len && isspace((unsigned char)line[len - 1]))
		len--;
	while (len && isspace((unsigned char)*line))
		line++, len--;
	*name = (struct word){ line, 0 };
	*value = '\0';
	if (!len || *line == '#')
		return 0;
	const char *eq = memchr(line, '=', len);
	if (!eq)
		return -EINVAL;
	name->len = (size_t)(eq - line);
	while (name->len && isspace((unsigned char)line[name->len - 1]))
		name->len--;
	const char *v = eq + 1;
	while (v < line + len && isspace((unsigned char)*v))
		v++;
	size_t n = (size_t)(line + len - v);
	if (!name->len || n >= cap)
		return -EINVAL;
	memcpy(value, v, n);
	value[n] = '\0';
	return 0;
}

static int read_line(const char *line, size_t len, struct config *c, struct cc_err *err)
{
	char value[512];
	struct word name;
	if (split_line(line, len, &name, value, sizeof(value)))
		return wrong(err, "wanted key = value");
	if (!name.len)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (is_word(name, settings[i].name))
			return settings[i].read(value, c, err);
	enum action a = key_action(name);
	if (a != ACT_NONE)
		return key_read(a, value, c, err);
	return wrong(err,
		     "no setting '%.*s': there are theme, interval, columns, sort and key.ACTION "
		     "(top --help-keys lists the actions)",
		     (int)CC_MIN(name.len, 40), name.s);
}

int config_parse(const char *text, struct config *c, struct cc_err *err)
{
	struct config mine = *c;
	enum action a, b;
	int key;
	*err = (struct cc_err){ .pos = 0 };
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		err->pos++;
		int e = read_line(line, len, &mine, err);
		if (e)
			return e;
		line += len + (line[len] == '\n');
	}
	if (keymap_clash(&mine.keys, &key, &a, &b)) {
		char name[16], first[32], second[32];
		keymap_key_typed(key, name);
		keymap_action_name(a, first);
		keymap_action_name(b, second);
		err->pos = 0;
		return wrong(err, "the key %s is bound to %s and to %s on one screen", name, first,
			     second);
	}
	*c = mine;
	return 0;
}

/* ---- writing ---- */

/* What stands for setting @name in @c: false, there is none of this name. */
static bool value_of(const struct config *c, struct word name, char *buf, size_t cap)
{
	enum action a = key_action(name);
	if (a != ACT_NONE) {
		key_show(a, c, buf, cap);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (is_word(name, settings[i].name)) {
			settings[i].show(c, buf, cap);
			return true;
		}
	return false;
}

/* The same; false also when it is as without a file. */
static bool value_set(const struct config *c, struct word name, char *buf, size_t cap)
{
	char was[512];
	struct config none;
	config_init(&none);
	return value_of(&none, name, was, sizeof(was)) && value_of(c, name, buf, cap) &&
	       strcmp(buf, was) != 0;
}

/* Lines of @old, with the values of @c; a setting that is as without a file goes. */
static void merge_lines(const char *old, const struct config *c, FILE *out)
{
	for (const char *line = old; *line;) {
		size_t len = strcspn(line, "\n");
		char value[512], now[512];
		struct word name;
		int err = split_line(line, len, &name, value, sizeof(value));
		if (!err && name.len && value_of(c, name, now, sizeof(now))) {
			if (value_set(c, name, now, sizeof(now)))
				fprintf(out, "%.*s = %s\n", (int)name.len, name.s, now);
		} else {
			fprintf(out, "%.*s\n", (int)len, line);
		}
		line += len + (line[len] == '\n');
	}
}

static bool has_line(const char *text, const char *setting)
{
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		char value[512];
		struct word name;
		if (!split_line(line, len, &name, value, sizeof(value)) && is_word(name, setting))
			return true;
		line += len + (line[len] == '\n');
	}
	return false;
}

static void add_line(const char *old, const struct config *c, const char *name, FILE *out)
{
	char value[512];
	if (!has_line(old, name) &&
	    value_set(c, (struct word){ name, strlen(name) }, value, sizeof(value)))
		fprintf(out, "%s = %s\n", name, value);
}

static void add_lines(const char *old, const struct config *c, FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		add_line(old, c, settings[i].name, out);
	for (enum action a = 1; a < ACT_CNT; a++) {
		char name[64], action[32];
		keymap_action_name(a, action);
		snprintf(name, sizeof(name), KEY_PREFIX "%s", action);
		add_line(old, c, name, out);
	}
}

char *config_merge(const char *old, const struct config *c)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	merge_lines(old, c, out);
	add_lines(old, c, out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
