/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "theme.h"

static const char *const shipped[] = { "dark",          "light",     "mono",
				       "high-contrast", "okabe-ito", "tritan" };

#define X(id, key, text) text,
static const bool is_text[ROLE_CNT] = { THEME_ROLES(X) };
#undef X
#define X(id, key, text) key,
static const char *const keys[ROLE_CNT] = { THEME_ROLES(X) };
#undef X

static struct theme load(const char *name)
{
	struct theme t;
	struct cc_err err;
	char path[512];
	snprintf(path, sizeof(path), "%s/themes/%s.theme", CC_SRC_DIR, name);
	cr_assert_eq(theme_load(path, &t, &err), 0, "%s: %s", name, err.msg);
	return t;
}

/* What a terminal of 256 colours really shows: that is all that curses can ask it for. */
static uint32_t shown(colour c) { return theme_rgb(theme_palette(c, 256)); }

Test(theme, contrast_of_shipped_themes)
{
	for (size_t i = 0; i < ARRAY_SIZE(shipped); i++) {
		struct theme t = load(shipped[i]);
		double least = !strcmp(shipped[i], "high-contrast") ? 7 : 4.5;
		for (int r = 0; r < ROLE_CNT; r++) {
			colour fg = t.role[r].fg;
			if (!is_text[r] || fg == COLOUR_NONE)
				continue; /* the terminal's own colours are the user's choice */
			cr_assert_neq(t.main_bg, COLOUR_NONE, "%s sets %s without main_bg",
				      shipped[i], keys[r]);
			double got = theme_contrast(shown(fg), shown(t.main_bg));
			cr_expect(got >= least, "%s %s %.2f", shipped[i], keys[r], got);
			got = theme_contrast(shown(fg), shown(t.selected.bg));
			cr_expect(got >= 4.5, "%s %s on the selected row: %.2f", shipped[i],
				  keys[r], got);
		}
		const struct look *badges[] = { &t.role[ROLE_PAUSE], &t.role[ROLE_REPLAY] };
		for (int b = 0; b < 2; b++)
			cr_expect(badges[b]->bg == COLOUR_NONE ||
				  theme_contrast(shown(badges[b]->fg), shown(badges[b]->bg)) >=
					  4.5);
	}
}

/* No colour can have more than 4.58 on black and on white at once. */
Test(theme, default_reads_on_black_and_on_white)
{
	struct theme t;
	struct cc_err err;
	cr_assert_eq(theme_load("default", &t, &err), 0);
	cr_expect_eq(t.main_bg, COLOUR_NONE);
	for (int r = 0; r < ROLE_CNT; r++) {
		colour fg = t.role[r].fg;
		if (!is_text[r] || fg == COLOUR_NONE)
			continue;
		cr_expect(theme_contrast(shown(fg), 0) >= 4.2, "%s", keys[r]);
		cr_expect(theme_contrast(shown(fg), 0xffffff) >= 4.2, "%s", keys[r]);
	}
}

Test(theme, mono_has_no_colour_and_is_the_same_built_in)
{
	struct theme t, file = load("mono");
	struct cc_err err;
	cr_assert_eq(theme_load("mono", &t, &err), 0);
	for (int r = 0; r < ROLE_CNT; r++) {
		cr_expect(t.role[r].fg == COLOUR_NONE && t.role[r].bg == COLOUR_NONE);
		cr_expect(!memcmp(&t.role[r], &file.role[r], sizeof(t.role[r])), "%s", keys[r]);
	}
	cr_expect(t.selected.attr & ATTR_REVERSE);
	cr_expect(file.selected.attr & ATTR_REVERSE);
}

Test(theme, shipped_ones_are_there_without_their_files)
{
	static const char *const names[] = { "dark",      "light",  "mono", "high-contrast",
					     "okabe-ito", "tritan", NULL };
	setenv("XDG_CONFIG_HOME", "/proc/none", 1);
	setenv("XDG_DATA_DIRS", "/proc/none", 1);
	size_t cnt;
	char **all = theme_names(&cnt);
	cr_expect_eq(cnt, ARRAY_SIZE(names), "these, and the default");
	theme_names_free(all);
	for (int i = 0; names[i]; i++) {
		struct theme t = { 0 }, file = load(names[i]);
		struct cc_err err;
		cr_expect_eq(theme_load(names[i], &t, &err), 0, "%s", names[i]);
		cr_expect(!memcmp(t.role, file.role, sizeof(t.role)), "%s", names[i]);
	}
}

Test(theme, reads_btop_grammar_and_ours)
{
	struct theme t = { 0 };
	struct cc_err err;
	cr_assert_eq(theme_parse("# a comment\n\n"
				 "theme[main_bg]=\"#1c\"\n"
				 "theme[main_fg]=\"#cc00Aa\"\n"
				 "theme[title]=\"1 22 255\"\n"
				 "theme[hi_fg]=\"\"\r\n"
				 "theme[graph_text]=\"#ffffff\"\n"
				 "theme[wait_net]=\"bright_cyan\"\n"
				 "theme[wait_disk]='@200'\n"
				 "attr[wait_lock]=\"bold underline\"\n"
				 "theme[wait_cpu]=#00ff00 # unquoted\n",
				 &t, &err),
		     0, "%s", err.msg);
	cr_expect_eq(t.main_bg, COLOUR_RGB | 0x1c1c1c);
	cr_expect_eq(t.role[ROLE_FG].fg, COLOUR_RGB | 0xcc00aa);
	cr_expect_eq(t.role[ROLE_TITLE].fg, COLOUR_RGB | 0x0116ff);
	cr_expect_eq(t.role[ROLE_HI].fg, COLOUR_NONE);
	cr_expect_eq(t.role[ROLE_NET].fg, 14);
	cr_expect_eq(t.role[ROLE_DISK].fg, 200);
	cr_expect_eq(t.role[ROLE_LOCK].attr, ATTR_BOLD | ATTR_UNDERLINE);
	cr_expect_eq(t.role[ROLE_CPU].fg, COLOUR_RGB | 0x00ff00);
}

Test(theme, bad_lines_are_named_and_change_nothing)
{
	static const char *const bad[] = {
		"theme[main_fg]=\"#12345\"",
		"theme[main_fg]=\"@256\"",
		"theme[main_fg]=\"pink\"",
		"attr[main_fg]=\"blink\"",
		"hello",
		"theme[main_fg=\"\"",
		"theme[main_fg]=\"#cc",
		"theme[main_fg]=\"1 2 256\"",
		"theme[]=\"\"",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct theme t = { .name = "same" }, before = t;
		struct cc_err err = { 0 };
		char text[256];
		snprintf(text, sizeof(text), "theme[title]=\"#11\"\n%s\n", bad[i]);
		cr_expect_eq(theme_parse(text, &t, &err), -EBADMSG, "%s", bad[i]);
		cr_expect_eq(err.pos, 2, "%s: line %d", bad[i], err.pos);
		cr_expect(!memcmp(&t, &before, sizeof(t)), "%s", bad[i]);
	}
}

Test(theme, missing_files_and_names)
{
	struct theme t;
	struct cc_err err;
	cr_expect_eq(theme_load("no-such-theme", &t, &err), -ENOENT);
	cr_expect_eq(theme_load("/no/such.theme", &t, &err), -ENOENT);
	cr_expect_eq(theme_load("/dev/zero/x.theme", &t, &err), -ENOTDIR);
	setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
	size_t cnt = 0;
	char **names = theme_names(&cnt);
	cr_assert_not_null(names);
	cr_expect_geq(cnt, 2);
	cr_expect_str_eq(names[0], "default");
	theme_names_free(names);
}

Test(theme, palette_uses_xterm_levels)
{
	cr_expect_eq(theme_rgb(16), 0x000000);
	cr_expect_eq(theme_rgb(21), 0x0000ff);
	cr_expect_eq(theme_rgb(67), 0x5f87af);
	cr_expect_eq(theme_rgb(231), 0xffffff);
	cr_expect_eq(theme_rgb(244), 0x808080);
	for (int i = 16; i < 256; i++)
		cr_expect_eq(theme_rgb(theme_palette(COLOUR_RGB | (colour)theme_rgb(i), 256)),
			     theme_rgb(i));
	cr_expect_eq(theme_palette(COLOUR_NONE, 8), COLOUR_NONE);
	for (int i = 0; i < 256; i++)
		cr_expect_lt(theme_palette(i, 8), 8);
	cr_expect_float_eq(theme_contrast(0, 0xffffff), 21, 0.01);
}
