/* SPDX-License-Identifier: Apache-2.0 */
#include "keymap.h"

#include <string.h>

#define X(id, grp, where, text, ...)        \
	[ACT_##id] = { .action = ACT_##id,  \
		       .group = KEYS_##grp, \
		       .screens = where,    \
		       .help = text,        \
		       .keys = { __VA_ARGS__ } },
static const struct key_row rows[ACT_CNT] = { KEYMAP(X) };
#undef X

const struct key_row *keymap_row(enum action a) { return &rows[a < ACT_CNT ? a : ACT_NONE]; }

enum action keymap_find(enum screen s, int key)
{
	if (key == '\n')
		key = TK_ENTER;
	if (key == '\b')
		key = TK_BACKSPACE;
	for (enum action a = 1; a < ACT_CNT; a++)
		for (int i = 0; i < KEYMAP_KEYS && rows[a].keys[i]; i++)
			if (rows[a].keys[i] == key && rows[a].screens & 1u << s)
				return a;
	return ACT_NONE;
}

void keymap_key_name(int key, char buf[16])
{
	static const struct {
		int key;
		const char *name;
	} names[] = {
		{ ' ', "Space" },     { TK_TAB, "Tab" },       { TK_ENTER, "Enter" },
		{ TK_ESC, "Esc" },    { TK_UP, "↑" },          { TK_DOWN, "↓" },
		{ TK_LEFT, "←" },     { TK_RIGHT, "→" },       { TK_PGUP, "PgUp" },
		{ TK_PGDN, "PgDn" },  { TK_HOME, "Home" },     { TK_END, "End" },
		{ TK_DELETE, "Del" }, { TK_BACKTAB, "S-Tab" }, { TK_BACKSPACE, "Bksp" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].key == key) {
			snprintf(buf, 16, "%s", names[i].name);
			return;
		}
	if (key >= TK_F1 && key <= TK_F12)
		snprintf(buf, 16, "F%d", key - TK_F1 + 1);
	else if (key < 32)
		snprintf(buf, 16, "^%c", key + '@');
	else
		snprintf(buf, 16, "%c", key < 127 ? key : '?');
}

void keymap_keys(const struct key_row *row, char *buf, size_t cap)
{
	size_t n = 0;
	buf[0] = '\0';
	for (int i = 0; i < KEYMAP_KEYS && row->keys[i]; i++) {
		char name[16];
		keymap_key_name(row->keys[i], name);
		n += (size_t)snprintf(buf + n, cap - n, "%s%s", i ? " " : "", name);
		if (n >= cap)
			return;
	}
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
		[SCREEN_HELP] = "Help",
	};
	return s < SCREEN_CNT ? names[s] : "";
}

void keymap_list(FILE *out)
{
	for (enum key_group g = 0; g < KEYS_CNT; g++)
		for (enum action a = 1; a < ACT_CNT; a++) {
			char keys[64];
			if (rows[a].group != g)
				continue;
			keymap_keys(&rows[a], keys, sizeof(keys));
			fprintf(out, "%s\t%s\n", keys, rows[a].help);
		}
}
