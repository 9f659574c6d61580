/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ui_util.h"

Test(keymap, a_key_means_one_thing_per_screen)
{
	struct keymap km;
	keymap_init(&km);
	for (int s = 0; s < SCREEN_CNT; s++)
		for (enum action a = 1; a < ACT_CNT; a++) {
			const struct key_row *row = keymap_row(a);
			if (!(row->screens & 1u << s))
				continue;
			cr_expect(row->keys[0], "%s has no key", row->help);
			for (int i = 0; i < KEYMAP_KEYS && row->keys[i]; i++)
				cr_expect_eq(keymap_find(&km, (enum screen)s, row->keys[i]), a,
					     "key %x on %s is taken twice: %s", row->keys[i],
					     screen_name((enum screen)s), row->help);
		}
}

Test(keymap, every_f_key_has_a_letter)
{
	for (enum action a = 1; a < ACT_CNT; a++) {
		bool f = false, letter = false;
		const struct key_row *row = keymap_row(a);
		for (int i = 0; i < KEYMAP_KEYS && row->keys[i]; i++) {
			f |= row->keys[i] >= TK_F1 && row->keys[i] <= TK_F12;
			letter |= row->keys[i] < 128;
		}
		cr_expect(!f || letter, "%s", row->help);
	}
}

Test(keymap, the_keys_of_the_specification_are_bound)
{
	struct keymap km;
	keymap_init(&km);
	static const struct {
		enum screen s;
		const char *keys;
	} want[] = {
		{ SCREEN_REQUESTS, "jkgGl1234v/n\\oxcs<>IfFpZ ,.[]{}0$b-+wyYmTB?hqQ()" },
		{ SCREEN_WAITS, "jkt\\/wq" },
		{ SCREEN_PATH, "jklBvywHL" },
		{ SCREEN_STACKS, "jkKHLy" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		for (const char *k = want[i].keys; *k; k++)
			cr_expect_neq(keymap_find(&km, want[i].s, *k), ACT_NONE, "'%c'", *k);
	static const int special[] = { TK_UP,       TK_DOWN,      TK_PGUP,      TK_PGDN,
				       TK_HOME,     TK_END,       TK_ENTER,     TK_RIGHT,
				       TK_ESC,      TK_LEFT,      TK_BACKSPACE, TK_TAB,
				       TK_BACKTAB,  TK_F(1),      TK_F(3),      TK_F(4),
				       TK_F(6),     TK_F(7),      TK_F(8),      TK_F(9),
				       TK_F(10),    TK_CTRL('u'), TK_CTRL('d'), TK_CTRL('l'),
				       TK_CTRL('c') };
	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		cr_expect_neq(keymap_find(&km, SCREEN_REQUESTS, special[i]), ACT_NONE, "%x",
			      special[i]);
	cr_expect_eq(keymap_find(&km, SCREEN_REQUESTS, TK_ESC), ACT_BACK);
	cr_expect_eq(keymap_find(&km, SCREEN_REQUESTS, 'z'), ACT_NONE);
}

/* The screen tells of the key: another picture, a command or an effect beyond drawing. Some need
 * a state first, in which they make a difference. */
static const char *state_before(enum action a)
{
	switch ((int)a) {
	case ACT_UP:
	case ACT_TOP:
		return "jjj";
	case ACT_PAGE_UP:
	case ACT_HALF_UP:
		return "G";
	case ACT_NEXT_MATCH:
	case ACT_PREV_MATCH:
		return "/10.0<Enter>";
	case ACT_CLEAR_FILTER:
		return "\\lat>1ms<Enter>";
	case ACT_NEXT_MARK:
	case ACT_PREV_MARK:
		return "mjj";
	case ACT_PAN_LEFT:
		return "LL";
	case ACT_NEWEST:
		return "0";
	default:
		return "";
	}
}

static void open_screen(struct ui_test *t, enum screen s)
{
	static const char *const path[SCREEN_CNT] = {
		[SCREEN_REQUESTS] = "j",
		[SCREEN_WAITS] = "2",
		[SCREEN_THREADS] = "3",
		[SCREEN_HEALTH] = "4",
		[SCREEN_PATH] = "j<Enter>",
		[SCREEN_STACKS] = "j<Enter><Enter>",
		[SCREEN_CONFIDENCE] = "j<Enter><S-Tab>",
		[SCREEN_SETUP] = "S",
		[SCREEN_HELP] = "?",
	};
	ui_test_keys(t, path[s]);
	cr_assert_eq(ui_screen(&t->ui), s);
}

Test(keymap, every_key_does_something_somewhere)
{
	for (enum action a = 1; a < ACT_CNT; a++) {
		bool done = false;
		for (int s = 0; s < SCREEN_CNT && !done; s++) {
			struct ui_test t;
			if (!(keymap_row(a)->screens & 1u << s))
				continue;
			ui_test_init(&t, 120, 36, true);
			ui_test_snapshot(&t, 0);
			open_screen(&t, (enum screen)s);
			ui_test_keys(&t, state_before(a));
			char *before = ui_test_screen(&t);
			unsigned int cmds = t.cmd_cnt;
			unsigned int effects = ui_key(&t.ui, keymap_row(a)->keys[0]);
			char *after = ui_test_screen(&t);
			done = strcmp(before, after) != 0 || t.cmd_cnt != cmds ||
			       effects & ~(unsigned int)UI_DRAW;
			free(before);
			free(after);
			ui_test_done(&t);
		}
		cr_expect(done, "no effect: %s", keymap_row(a)->help);
	}
}

/* All of Help's lines, scrolled through. */
static char *all_help(struct ui_test *t)
{
	char *all = strdup("");
	for (int top = 0; top < 200; top += 20) {
		char *screen = ui_test_screen(t), *more = NULL;
		cr_assert(asprintf(&more, "%s%s", all, screen) > 0);
		free(all);
		free(screen);
		all = more;
		ui_test_keys(t, "<PgDn>");
	}
	return all;
}

Test(keymap, every_key_is_in_help_on_every_screen)
{
	struct keymap km;
	keymap_init(&km);
	for (int s = 0; s < SCREEN_HELP; s++) {
		struct ui_test t;
		ui_test_init(&t, 120, 36, true);
		ui_test_snapshot(&t, 0);
		open_screen(&t, (enum screen)s);
		ui_test_keys(&t, "?");
		char *all = all_help(&t);
		for (enum action a = 1; a < ACT_CNT; a++) {
			char keys[64], line[200];
			keymap_keys(&km, a, keys, sizeof(keys));
			snprintf(line, sizeof(line), "   %s ", keys);
			cr_expect(strstr(all, line), "'%s' is not in help", keys);
			cr_expect(strstr(all, keymap_row(a)->help), "%s", keymap_row(a)->help);
		}
		free(all);
		ui_test_done(&t);
	}
}

Test(keymap, list_has_a_line_for_every_key)
{
	struct keymap km;
	keymap_init(&km);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int lines = 0;
	keymap_list(f);
	fclose(f);
	for (enum action a = 1; a < ACT_CNT; a++) {
		char keys[64], line[300];
		keymap_keys(&km, a, keys, sizeof(keys));
		snprintf(line, sizeof(line), "%s\t%s\t", keys, keymap_row(a)->help);
		cr_expect(strstr(text, line), "%s", line);
	}
	for (const char *s = text; *s; s++)
		lines += *s == '\n';
	cr_expect_eq(lines, ACT_CNT - 1);
	free(text);
}
