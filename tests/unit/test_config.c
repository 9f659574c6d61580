/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "columns.h"
#include "ui_util.h"

static struct config parsed(const char *text)
{
	struct config c;
	struct cc_err err;
	config_init(&c);
	cr_assert_eq(config_parse(text, &c, &err), 0, "%s: %s", text, err.msg);
	return c;
}

Test(config, every_setting_is_read)
{
	struct config c = parsed("# mine\n\n theme = okabe-ito \ninterval=2s\n"
				 "columns = lat held conf\nsort = age ascending\n"
				 "key.page-down = PgDn ^F J\nkey.pause = S-Tab\nkey.prev-pane =\n");
	cr_expect_str_eq(c.theme, "okabe-ito");
	cr_expect_eq(c.interval_ns, CC_S(2));
	cr_expect_eq(c.columns, COLUMNS_ALWAYS | 1u << COL_HELD | 1u << COL_CONF);
	cr_expect_eq(c.sort, SORT_AGE);
	cr_expect(c.ascending);
	cr_expect_eq(keymap_find(&c.keys, SCREEN_REQUESTS, 'J'), ACT_PAGE_DOWN);
	cr_expect_eq(keymap_find(&c.keys, SCREEN_REQUESTS, TK_BACKTAB), ACT_PAUSE);
	cr_expect_eq(keymap_find(&c.keys, SCREEN_REQUESTS, ' '), ACT_NONE);
	cr_expect_eq(c.keys.keys[ACT_PREV_PANE][0], 0);
}

Test(config, an_error_names_its_line_and_changes_nothing)
{
	static const struct {
		char text[64];
		int line;
		char says[40];
	} bad[] = {
		{ "theme = x\ninterval = soon\n", 2, "interval 'soon'" },
		{ "interval = 90s", 1, "100ms to 60s" },
		{ "interval = 10ms", 1, "100ms to 60s" },
		{ "\n\nnonsense", 3, "key = value" },
		{ "= 3", 1, "key = value" },
		{ "colour = red", 1, "no setting 'colour'" },
		{ "key.nothing = x", 1, "no setting 'key.nothing'" },
		{ "key.pause = Ctrl-P", 1, "no key 'Ctrl-P'" },
		{ "key.pause = a A ^G ^E F11 F12", 1, "at most 5" },
		{ "columns = lat size", 1, "no column 'size'" },
		{ "sort = name", 1, "sort: wanted" },
		{ "sort = age up", 1, "sort: wanted" },
		{ "key.pause = j", 0, "key j is bound to down and to pause" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct config c, before;
		struct cc_err err;
		config_init(&c);
		before = c;
		cr_expect_eq(config_parse(bad[i].text, &c, &err), -EBADMSG, "%s", bad[i].text);
		cr_expect_eq(err.pos, bad[i].line, "%s: line %d", bad[i].text, err.pos);
		cr_expect(strstr(err.msg, bad[i].says), "%s: %s", bad[i].text, err.msg);
		cr_expect_eq(memcmp(&c, &before, sizeof(c)), 0, "%s", bad[i].text);
	}
}

Test(config, what_is_written_reads_the_same)
{
	const char *old = "# kept\n\ntheme = dark\nkey.help = ? F1\nsort = age\n";
	struct config c = parsed(old), again;
	struct cc_err err;
	strcpy(c.theme, "light");
	c.sort = SORT_LATENCY; /* as without a file: its line goes */
	c.columns &= ~(1u << COL_AGE);
	c.keys.keys[ACT_LEAP_ON][0] = 0;
	char *text = config_merge(old, &c);
	cr_assert(text);
	cr_expect_eq(strncmp(text, "# kept\n\ntheme = light\nkey.help = ? F1\ncolumns = ", 45), 0,
		     "%s", text);
	cr_expect_null(strstr(text, "sort"));
	cr_expect(strstr(text, "key.leap-on = \n"), "%s", text);
	config_init(&again);
	cr_assert_eq(config_parse(text, &again, &err), 0, "%s", err.msg);
	cr_expect_eq(memcmp(&again, &c, sizeof(c)), 0);
	char *twice = config_merge(text, &c);
	cr_expect_str_eq(twice, text);
	free(twice);
	free(text);
}

Test(config, every_key_can_be_written)
{
	struct keymap km;
	keymap_init(&km);
	for (enum action a = 1; a < ACT_CNT; a++) {
		char action[32];
		keymap_action_name(a, action);
		cr_expect_eq(keymap_action_find(action, strlen(action)), a, "%s", action);
		for (int i = 0; i < KEYMAP_KEYS && km.keys[a][i]; i++) {
			char name[16];
			keymap_key_typed(km.keys[a][i], name);
			cr_expect_eq(keymap_key_parse(name, strlen(name)), km.keys[a][i], "%s",
				     name);
			for (const char *p = name; *p; p++)
				cr_expect_lt((unsigned char)*p, 0x80, "%s", name);
		}
	}
	int key;
	enum action a, b;
	cr_expect_not(keymap_clash(&km, &key, &a, &b));
}

static void home(char dir[64])
{
	strcpy(dir, "/tmp/cc_config_XXXXXX");
	cr_assert(mkdtemp(dir));
	setenv("XDG_CONFIG_HOME", dir, 1);
}

Test(config, the_file_is_made_on_request_and_a_link_stays_one)
{
	char dir[64], path[PATH_MAX], target[PATH_MAX], cmd[PATH_MAX];
	struct config c, back;
	struct cc_err err;
	struct stat st;
	home(dir);
	config_init(&c);
	cr_assert_eq(config_load(&c, &err), 0, "no file is no error");
	cr_assert_eq(config_path(path, sizeof(path)), 0);
	cr_expect_neq(access(path, F_OK), 0, "reading makes no file");
	c.interval_ns = CC_S(5);
	cr_assert_eq(config_save(&c, &err), 0, "%s", err.msg);
	config_init(&back);
	cr_assert_eq(config_load(&back, &err), 0, "%s", err.msg);
	cr_expect_eq(back.interval_ns, CC_S(5));
	snprintf(target, sizeof(target), "%s/dotfile", dir);
	cr_assert_eq(rename(path, target), 0);
	cr_assert_eq(chmod(target, 0640), 0);
	cr_assert_eq(symlink(target, path), 0);
	c.interval_ns = CC_S(7);
	cr_assert_eq(config_save(&c, &err), 0, "%s", err.msg);
	cr_assert_eq(lstat(path, &st), 0);
	cr_expect(S_ISLNK(st.st_mode));
	cr_assert_eq(stat(target, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0640);
	cr_assert_eq(config_load(&back, &err), 0, "%s", err.msg);
	cr_expect_eq(back.interval_ns, CC_S(7));
	cr_assert_eq(unlink(target), 0);
	cr_expect_lt(config_save(&c, &err), 0, "a link to nothing is no file of ours");
	cr_expect(strstr(err.msg, path), "%s", err.msg);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	cr_expect_eq(system(cmd), 0);
}

Test(config, a_bad_file_is_named_with_its_line)
{
	char dir[64], path[PATH_MAX], cmd[PATH_MAX];
	struct config c;
	struct cc_err err;
	home(dir);
	config_init(&c);
	cr_assert_eq(config_save(&c, &err), 0, "%s", err.msg);
	cr_assert_eq(config_path(path, sizeof(path)), 0);
	FILE *f = fopen(path, "w");
	fputs("# one\nintervall = 2s\n", f);
	fclose(f);
	cr_expect_eq(config_load(&c, &err), -EBADMSG);
	cr_expect(strstr(err.msg, "config:2: no setting 'intervall'"), "%s", err.msg);
	f = fopen(path, "w");
	fwrite("theme = a\0b\n", 1, 12, f);
	fclose(f);
	cr_expect_lt(config_load(&c, &err), 0);
	cr_expect(strstr(err.msg, path), "%s", err.msg);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	cr_expect_eq(system(cmd), 0);
}

Test(config, the_screens_take_it_and_give_it_back)
{
	struct config c = parsed("columns = lat conf\nsort = confidence ascending\n"
				 "interval = 5s\ntheme = mono\nkey.pause = P\n"),
		      now;
	struct ui ui;
	struct tui_opts o = { .event_fd = -1, .live = true, .config = &c };
	unsetenv("NO_COLOR");
	cr_assert_eq(ui_init(&ui, &o), 0);
	cr_expect_eq(ui.want.sort, SORT_CONFIDENCE);
	cr_expect_eq(ui.want.interval_ns, CC_S(5));
	cr_expect_str_eq(ui.theme.name, "mono");
	cr_expect_eq(keymap_find(&ui.keys, SCREEN_REQUESTS, 'P'), ACT_PAUSE);
	ui_config(&ui, &now);
	cr_expect_eq(memcmp(&now, &c, sizeof(c)), 0);
	ui_done(&ui);
}

Test(config, columns_that_are_not_wanted_are_not_shown)
{
	struct ui_test t;
	ui_test_init(&t, 120, 36, true);
	ui_test_snapshot(&t, 0);
	char *screen = ui_test_screen(&t);
	cr_expect(strstr(screen, "RUNQ%") && strstr(screen, "MIX"));
	free(screen);
	t.ui.columns &= ~(1u << COL_RUNQ);
	screen = ui_test_screen(&t);
	cr_expect(!strstr(screen, "RUNQ%") && strstr(screen, "MIX"), "%s", screen);
	free(screen);
	ui_test_done(&t);
}
