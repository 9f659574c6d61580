/* SPDX-License-Identifier: Apache-2.0 */
#include "keymap.h"

#include <string.h>
#include <strings.h>

#include "canvas.h"

#define X(id, grp, where, text, ...)        \
	[ACT_##id] = { .action = ACT_##id,  \
		       .group = KEYS_##grp, \
		       .screens = where,    \
		       .name = #id,         \
		       .help = text,        \
		       .keys = { __VA_ARGS__ } },
static const struct key_row rows[ACT_CNT] = { KEYMAP(X) };
#undef X

const struct key_row *keymap_row(enum action a) { return &rows[a < ACT_CNT ? a : ACT_NONE]; }

void keymap_init(struct keymap *ret)
{
	for (enum action a = 0; a < ACT_CNT; a++)
		for (int i = 0; i < KEYMAP_KEYS; i++)
			ret->keys[a][i] = rows[a].keys[i];
}

enum action keymap_find(const struct keymap *km, enum screen s, int key)
{
	if (key == '\n')
		key = TK_ENTER;
	if (key == '\b')
		key = TK_BACKSPACE;
	for (enum action a = 1; a < ACT_CNT; a++)
		for (int i = 0; i < KEYMAP_KEYS && km->keys[a][i]; i++)
			if (km->keys[a][i] == key && rows[a].screens & 1u << s)
				return a;
	return ACT_NONE;
}

bool keymap_clash(const struct keymap *km, int *ret_key, enum action *ret_a, enum action *ret_b)
{
	for (enum action a = 1; a < ACT_CNT; a++)
		for (int i = 0; i < KEYMAP_KEYS && km->keys[a][i]; i++)
			for (int s = 0; s < SCREEN_CNT; s++) {
				enum action first = keymap_find(km, (enum screen)s, km->keys[a][i]);
				if (first == a || !(rows[a].screens & 1u << s))
					continue;
				*ret_key = km->keys[a][i];
				*ret_a = first;
				*ret_b = a;
				return true;
			}
	return false;
}

static const struct {
	int key;
	const char *name;
	const char *typed; /* as it is written where arrows cannot be typed; NULL: the same */
} key_names[] = {
	{ ' ', "Space", NULL },     { TK_TAB, "Tab", NULL },       { TK_ENTER, "Enter", NULL },
	{ TK_ESC, "Esc", NULL },    { TK_UP, "↑", "Up" },          { TK_DOWN, "↓", "Down" },
	{ TK_LEFT, "←", "Left" },   { TK_RIGHT, "→", "Right" },    { TK_PGUP, "PgUp", NULL },
	{ TK_PGDN, "PgDn", NULL },  { TK_HOME, "Home", NULL },     { TK_END, "End", NULL },
	{ TK_DELETE, "Del", NULL }, { TK_BACKTAB, "S-Tab", NULL }, { TK_BACKSPACE, "Bksp", NULL },
};

void keymap_key_name(int key, char buf[16])
{
	for (size_t i = 0; i < ARRAY_SIZE(key_names); i++)
		if (key_names[i].key == key) {
			snprintf(buf, 16, "%s", key_names[i].name);
			return;
		}
	if (key >= TK_F1 && key <= TK_F12)
		snprintf(buf, 16, "F%d", key - TK_F1 + 1);
	else if (key < 32)
		snprintf(buf, 16, "^%c", key + '@');
	else
		snprintf(buf, 16, "%c", key < 127 ? key : '?');
}

void keymap_key_typed(int key, char buf[16])
{
	for (size_t i = 0; i < ARRAY_SIZE(key_names); i++)
		if (key_names[i].key == key && key_names[i].typed) {
			snprintf(buf, 16, "%s", key_names[i].typed);
			return;
		}
	keymap_key_name(key, buf);
}

static bool same_text(const char *name, const char *s, size_t len)
{
	return name && strlen(name) == len && !strncasecmp(name, s, len);
}

int keymap_key_parse(const char *s, size_t len)
{
	char f[16];
	for (size_t i = 0; i < ARRAY_SIZE(key_names); i++)
		if (same_text(key_names[i].name, s, len) || same_text(key_names[i].typed, s, len))
			return key_names[i].key;
	for (int key = TK_F1; key <= TK_F12; key++) {
		keymap_key_name(key, f);
		if (same_text(f, s, len))
			return key;
	}
	if (len == 2 && s[0] == '^' &&
	    ((s[1] > '@' && s[1] <= '_') || (s[1] >= 'a' && s[1] <= 'z')))
		return TK_CTRL(s[1]);
	return len == 1 && s[0] > ' ' && s[0] < 127 ? s[0] : 0;
}

int keymap_next_key(const char **s)
{
	const char *at = *s, *end = *at == '<' && at[1] != '<' ? strchr(at, '>') : NULL;
	int key = end ? keymap_key_parse(at + 1, (size_t)(end - at - 1)) : (int)canvas_decode(s);
	if (end && key)
		*s = end + 1;
	else if (!end && key == '<' && **s == '<')
		(*s)++;
	else if (!end && key == '<') {
		*s = at;
		return 0;
	}
	return key;
}

void keymap_keys(const struct keymap *km, enum action a, char *buf, size_t cap)
{
	size_t n = 0;
	buf[0] = '\0';
	for (int i = 0; i < KEYMAP_KEYS && km->keys[a][i]; i++) {
		char name[16];
		keymap_key_name(km->keys[a][i], name);
		n += (size_t)snprintf(buf + n, cap - n, "%s%s", i ? " " : "", name);
		if (n >= cap)
			return;
	}
}

void keymap_action_name(enum action a, char buf[32])
{
	size_t n = 0;
	for (const char *s = rows[a].name; s && *s && n < 31; s++)
		buf[n++] = *s == '_' ? '-' : (char)(*s | 0x20);
	buf[n] = '\0';
}

enum action keymap_action_find(const char *name, size_t len)
{
	for (enum action a = 1; a < ACT_CNT; a++) {
		char mine[32];
		keymap_action_name(a, mine);
		if (same_text(mine, name, len))
			return a;
	}
	return ACT_NONE;
}

const char *key_group_title(enum key_group g)
{
#define X(id, title) title,
	static const char *const titles[KEYS_CNT] = { KEY_GROUPS(X) };
#undef X
	return g < KEYS_CNT ? titles[g] : "";
}

const char *screen_name(enum screen s)
{
	static const char *const names[SCREEN_CNT] = {
		[SCREEN_REQUESTS] = "Requests",
		[SCREEN_WAITS] = "Waits",
		[SCREEN_THREADS] = "Threads",
		[SCREEN_HEALTH] = "Health",
		[SCREEN_PATH] = "Path",
		[SCREEN_STACKS] = "Stacks",
		[SCREEN_CONFIDENCE] = "Confidence",
		[SCREEN_SETUP] = "Setup",
		[SCREEN_HELP] = "Help",
	};
	return s < SCREEN_CNT ? names[s] : "";
}

void keymap_list(FILE *out)
{
	struct keymap km;
	keymap_init(&km);
	for (enum key_group g = 0; g < KEYS_CNT; g++)
		for (enum action a = 1; a < ACT_CNT; a++) {
			char keys[64], name[32];
			if (rows[a].group != g)
				continue;
			keymap_keys(&km, a, keys, sizeof(keys));
			keymap_action_name(a, name);
			fprintf(out, "%s\t%s\t%s\n", keys, rows[a].help, name);
		}
}
