/* SPDX-License-Identifier: Apache-2.0 */
/* Screens as text, against tests/golden/tui/. UPDATE_GOLDEN=1 writes these files: read the diff. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ui_util.h"

struct golden {
	char name[24];
	unsigned int how;
	bool replay, ascii;
	char keys[32];
};

static const struct golden cases[] = {
	{ "requests", 0, false, false, "" },
	{ "requests-ascii", 0, false, true, "" },
	{ "path", 0, false, false, "j<Enter>" },
	{ "stacks", 0, false, false, "j<Enter><Enter>" },
	{ "stacks-user", 0, false, false, "j<Enter><Enter>K" },
	{ "confidence", 0, false, false, "jjjj<Enter><S-Tab>" },
	{ "waits", 0, false, false, "2" },
	{ "blame", 0, false, false, "2ttttt" },
	{ "threads", 0, false, false, "3" },
	{ "setup", 0, false, false, "S" },
	{ "ports", 0, false, false, "t" },
	{ "path-zoom", 0, false, false, "j<Enter>z" },
	{ "health", SNAP_LOSS, false, false, "4" },
	{ "help", 0, false, false, "?" },
	{ "help-search", 0, false, false, "?sort" },
	{ "sort-menu", 0, false, false, "s" },
	{ "save-menu", 0, false, false, "w" },
	{ "filter", 0, false, false, "\\wait=lok lat>20ms<Enter>" },
	{ "empty", SNAP_EMPTY, false, false, "" },
	{ "exited", SNAP_GONE | SNAP_ENDED, false, false, "" },
	{ "loss", SNAP_LOSS, false, false, "" },
	{ "paused", 0, false, false, "p" },
	{ "lag", SNAP_LAG, false, false, "" },
	{ "marks", SNAP_LOSS, false, false, "jjm " },
	{ "replay", 0, true, false, "p" },
	{ "replay-end", SNAP_ENDED, true, false, "" },
};

static char *read_all(const char *path)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = fopen(path, "re");
	if (!f)
		return NULL;
	ssize_t n = getdelim(&text, &len, '\0', f);
	fclose(f);
	if (n < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void compare(const char *name, int w, int h, const char *got)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/tests/golden/tui/%.30s-%dx%d.txt", CC_SRC_DIR, name, w, h);
	if (getenv("UPDATE_GOLDEN")) {
		FILE *f = fopen(path, "we");
		cr_assert(f, "%s", path);
		fputs(got, f);
		fclose(f);
	}
	char *want = read_all(path);
	cr_assert(want, "%s is missing: make it with UPDATE_GOLDEN=1", path);
	cr_expect(!strcmp(want, got), "%s differs; now it is:\n%s", path, got);
	free(want);
}

/* No line is longer than the screen, and there are as many as it has. */
static void check_shape(const struct ui_test *t, const char *text)
{
	int lines = 0;
	for (const char *s = text; *s; lines++) {
		size_t n = strcspn(s, "\n");
		char line[4096];
		snprintf(line, sizeof(line), "%.*s", (int)n, s);
		cr_expect(canvas_width(line) <= t->canvas.w, "%s", line);
		s += n + 1;
	}
	cr_expect_eq(lines, t->canvas.h);
}

static void golden_size(int w, int h)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ui_test t;
		ui_test_init(&t, w, h, !cases[i].replay);
		t.canvas.ascii = cases[i].ascii;
		ui_test_snapshot(&t, cases[i].how);
		ui_test_keys(&t, cases[i].keys);
		char *text = ui_test_screen(&t);
		check_shape(&t, text);
		compare(cases[i].name, w, h, text);
		free(text);
		ui_test_done(&t);
	}
}

Test(views, golden_120x36) { golden_size(120, 36); }
Test(views, golden_80x24) { golden_size(80, 24); }
Test(views, golden_40x10) { golden_size(40, 10); }

static bool shows(struct ui_test *t, const char *what)
{
	char *text = ui_test_screen(t);
	bool found = strstr(text, what) != NULL;
	free(text);
	return found;
}

/* Columns go in the order that the specification gives. */
Test(views, narrow_screens_drop_columns_in_order)
{
	static const char *const order[] = { " AGE", "HELD BY", "WOKEN BY", "CPU%", "MIX" };
	struct ui_test t;
	int gone_at[ARRAY_SIZE(order)] = { 0 };
	ui_test_init(&t, 160, 24, true);
	ui_test_snapshot(&t, 0);
	for (int w = 160; w >= 40; w--) {
		ui_test_size(&t, w, 24);
		for (size_t i = 0; i < ARRAY_SIZE(order); i++)
			if (!gone_at[i] && !shows(&t, order[i]))
				gone_at[i] = w;
		cr_expect(shows(&t, "LAT ms") && shows(&t, "DOMINANT") && shows(&t, "CONF"), "%d",
			  w);
	}
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		cr_expect(gone_at[i], "%s never goes", order[i]);
		cr_expect(!i || gone_at[i] < gone_at[i - 1], "%s before %s", order[i],
			  i ? order[i - 1] : "");
	}
	cr_expect_lt(gone_at[0], 126, "nearly all columns at 120");
	cr_expect_lt(gone_at[1], 120);
	ui_test_done(&t);
}

Test(views, too_small_is_one_line_and_comes_back)
{
	struct ui_test t;
	static const int sizes[][2] = { { 1, 1 }, { 39, 24 }, { 80, 9 }, { 5, 2 }, { 1, 50 } };
	ui_test_init(&t, 80, 24, true);
	ui_test_snapshot(&t, 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		ui_test_size(&t, sizes[i][0], sizes[i][1]);
		ui_test_keys(&t, "j<Enter>k<Esc>");
		char *text = ui_test_screen(&t);
		check_shape(&t, text);
		cr_expect_eq(text[0], 'T');
		free(text);
	}
	ui_test_size(&t, 40, 10);
	cr_expect(shows(&t, "DOMINANT"));
	ui_test_done(&t);
}

/* What a row says must be what the snapshot says. */
Test(views, facts_of_the_request_are_on_its_screens)
{
	struct ui_test t;
	ui_test_init(&t, 160, 40, true);
	ui_test_snapshot(&t, 0);
	ui_test_keys(&t, "j");
	static const char *const row[] = { "7f3a9c#3", "211.4",      "worker/4249",
					   "H 91",     "cart_mutex", "10.0.0.7:51122" };
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		cr_expect(shows(&t, row[i]), "%s", row[i]);
	ui_test_keys(&t, "<Enter>");
	static const char *const path[] = { "path 211.4 = latency 211.4",
					    "unexplained 0.0",
					    "└disk fsync",
					    "held by worker/4249",
					    "released at cart_flush+0x9c",
					    "root cause is the disk" };
	for (size_t i = 0; i < ARRAY_SIZE(path); i++)
		cr_expect(shows(&t, path[i]), "%s", path[i]);
	ui_test_keys(&t, "<Enter>");
	static const char *const stacks[] = { "BLOCKED  nginx/4245", "WOKEN BY  worker/4249",
					      "futex_wait+0x69",     "cart.c:88",
					      "> cart_add+0x41",     "could not unwind further" };
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++)
		cr_expect(shows(&t, stacks[i]), "%s", stacks[i]);
	ui_test_keys(&t, "K");
	cr_expect_not(shows(&t, "futex_wait+0x69"));
	ui_test_keys(&t, "<Tab>");
	static const char *const conf[] = { "woken from an interrupt",
					    "class from the syscall alone", "none", "exactly" };
	for (size_t i = 0; i < ARRAY_SIZE(conf); i++)
		cr_expect(shows(&t, conf[i]), "%s", conf[i]);
	ui_test_done(&t);
}

Test(views, a_sum_that_is_off_is_called_out)
{
	struct ui_test t;
	ui_test_init(&t, 120, 36, true);
	struct snapshot *s = ui_fixture(0);
	((struct snap_request *)s->requests)[0].path_sum_ns -= 1000000;
	ui_snapshot(&t.ui, s);
	ui_test_keys(&t, "<Enter>");
	cr_expect(shows(&t, "path 4999.0 ≠ latency 5000.0"));
	ui_test_done(&t);
}

/* The meaning is there without colours: every mark of the table is a character. */
Test(views, marks_are_characters)
{
	struct ui_test t;
	ui_test_init(&t, 120, 36, true);
	ui_test_snapshot(&t, 0);
	cr_expect(shows(&t, "5000.0…"));
	cr_expect(shows(&t, "61.7~"));
	ui_test_keys(&t, "m");
	cr_expect(shows(&t, " >*7f3d00#12"));
	ui_test_done(&t);
}

/* The terminal's cursor lies on the selected row, for screen readers. */
Test(views, cursor_is_on_the_selected_row)
{
	static const char *const screens[] = {
		"jj",     "2j", "3j", "4j", "j<Enter>j", "j<Enter><Enter>j", "j<Enter><S-Tab>j",
		"?<Down>"
	};
	for (size_t i = 0; i < ARRAY_SIZE(screens); i++) {
		struct ui_test t;
		ui_test_init(&t, 80, 24, true);
		ui_test_snapshot(&t, 0);
		ui_test_keys(&t, screens[i]);
		free(ui_test_screen(&t));
		cr_assert_geq(t.canvas.cur_y, 0, "%s", screens[i]);
		cr_expect(canvas_at(&t.canvas, t.canvas.cur_x, t.canvas.cur_y)->st & CELL_SEL, "%s",
			  screens[i]);
		ui_test_done(&t);
	}
}

Test(views, batch_table_is_plain_text)
{
	struct snapshot *s = ui_fixture(SNAP_LOSS);
	char *text = NULL;
	size_t len;
	setenv("TZ", "UTC", 1);
	FILE *f = open_memstream(&text, &len);
	cr_expect_eq(tui_batch_print(s, f), 0);
	fclose(f);
	cr_expect_null(strchr(text, '\x1b'));
	static const char *const has[] = {
		"7f3a9c#3", "lock > disk fsync", "worker/4249",        "61.7~",
		"5000.0+",  "lost 1204",         "slow requests: lock"
	};
	for (size_t i = 0; i < ARRAY_SIZE(has); i++)
		cr_expect(strstr(text, has[i]), "%s", has[i]);
	free(text);
	snapshot_free(s);
	FILE *full = fopen("/dev/full", "we");
	s = ui_fixture(0);
	setvbuf(full, NULL, _IONBF, 0);
	cr_expect_lt(tui_batch_print(s, full), 0);
	fclose(full);
	snapshot_free(s);
}
