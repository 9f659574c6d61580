/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "columns.h"
#include "text.h"
#include "ui_util.h"
#include "view.h"

static struct ui_test t;

static void setup(void)
{
	ui_test_init(&t, 120, 36, true);
	ui_test_snapshot(&t, 0);
}

static void teardown(void) { ui_test_done(&t); }

TestSuite(ui, .init = setup, .fini = teardown);

static bool shows(const char *what)
{
	char *text = ui_test_screen(&t);
	bool found = strstr(text, what) != NULL;
	free(text);
	return found;
}

static struct cc_reqid row_id(int i)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_row(&t.ui, i, &s);
	return r ? r->id : (struct cc_reqid){ 0 };
}

static int selected_row(void) { return t.ui.pos[SCREEN_REQUESTS].row; }

Test(ui, selection_follows_the_id_not_the_row)
{
	ui_test_keys(&t, "j");
	cr_assert(cc_reqid_eq(t.last.selected, FIXTURE_ID));
	cr_expect_eq(selected_row(), 1);
	/* a slower request comes in above */
	ui_test_snapshot(&t, SNAP_LATER);
	cr_expect(cc_reqid_eq(t.ui.want.selected, FIXTURE_ID));
	cr_expect_eq(selected_row(), 2);
	cr_expect(cc_reqid_eq(row_id(2), FIXTURE_ID));
}

Test(ui, selected_row_that_left_stays_pinned_and_dim)
{
	ui_test_keys(&t, "j<Enter>");
	ui_test_snapshot(&t, SNAP_LATER | SNAP_FORGOT);
	cr_expect(shows("cart_mutex"), "its path can still be read");
	cr_expect(shows("left the window"));
	ui_test_keys(&t, "<Esc>");
	cr_expect(shows("7f3a9c#3"));
	cr_expect(cc_reqid_eq(row_id(selected_row()), FIXTURE_ID));
	free(ui_test_screen(&t));
	cr_expect(canvas_at(&t.canvas, 5, t.canvas.cur_y)->st & CELL_DIM);
	/* many refreshes later too */
	for (int i = 0; i < 5; i++)
		ui_test_snapshot(&t, SNAP_FORGOT);
	cr_expect(shows("7f3a9c#3"));
	/* left alone it goes; the selection is where the user put it */
	ui_test_keys(&t, "j");
	struct cc_reqid next = t.ui.want.selected;
	cr_expect_not(shows("7f3a9c#3 "));
	cr_expect(cc_reqid_eq(row_id(selected_row()), next));
	/* and comes back as an ordinary row */
	ui_test_snapshot(&t, 0);
	cr_expect(shows("7f3a9c#3"));
	cr_expect(cc_reqid_eq(row_id(selected_row()), next));
}

Test(ui, follow_and_freeze)
{
	ui_test_keys(&t, "F");
	ui_test_snapshot(&t, SNAP_LATER);
	cr_expect_eq(selected_row(), 0);
	ui_test_keys(&t, "sa"); /* newest first: the new one leads */
	ui_test_keys(&t, "F");
	ui_test_snapshot(&t, 0);
	struct cc_reqid first = row_id(0), second = row_id(1);
	ui_test_keys(&t, "f");
	ui_test_snapshot(&t, SNAP_LATER);
	cr_expect(cc_reqid_eq(row_id(0), first) && cc_reqid_eq(row_id(1), second));
	cr_expect_eq(row_id((int)t.ui.order_cnt - 1).id, 0x7fbeef, "new ones come last");
	ui_test_keys(&t, "f");
	cr_expect_neq(row_id((int)t.ui.order_cnt - 1).id, 0x7fbeef);
}

Test(ui, sort_acts_at_once_and_tells_the_owner)
{
	const struct snapshot *s;
	ui_test_keys(&t, "su");
	cr_expect_eq(t.last.sort, SORT_UNEXPLAINED);
	cr_expect(t.last.changed & TUI_CH_QUERY);
	for (int i = 1; i < (int)t.ui.order_cnt; i++)
		cr_expect_geq(ui_row(&t.ui, i - 1, &s)->unexplained_ns,
			      ui_row(&t.ui, i, &s)->unexplained_ns);
	ui_test_keys(&t, "sr"); /* by the share in the run queue: the one behind backup */
	cr_expect_eq(row_id(0).id, 0x7f39e0);
	ui_test_keys(&t, "sp");
	cr_expect_eq(t.last.sort, SORT_CPU);
	for (int i = 1; i < (int)t.ui.order_cnt; i++) {
		const struct snap_request *a = ui_row(&t.ui, i - 1, &s);
		const struct snap_request *b = ui_row(&t.ui, i, &s);
		cr_expect_geq(snap_group_share(a->class_ns, 'C', a->latency_ns),
			      snap_group_share(b->class_ns, 'C', b->latency_ns));
	}
	ui_test_keys(&t, "slI");
	cr_expect(t.last.ascending);
	for (int i = 1; i < (int)t.ui.order_cnt; i++)
		cr_expect_leq(ui_row(&t.ui, i - 1, &s)->latency_ns,
			      ui_row(&t.ui, i, &s)->latency_ns);
	ui_test_keys(&t, "<<");
	cr_expect_eq(t.last.sort, SORT_RUNQ);
	ui_test_keys(&t, ">");
	cr_expect_eq(t.last.sort, SORT_LATENCY);
}

Test(ui, filter_and_sort_do_not_reset_each_other)
{
	ui_test_keys(&t, "sc\\lat>20ms<Enter>");
	cr_expect_str_eq(t.last.filter, "lat>20ms");
	cr_expect_eq(t.last.sort, SORT_CONFIDENCE);
	ui_test_keys(&t, "sa");
	cr_expect_str_eq(t.last.filter, "lat>20ms");
	/* Esc leaves what was, ^U clears, ^W takes a word, Up brings the last one back */
	ui_test_keys(&t, "\\ conf=H<Esc>");
	cr_expect_str_eq(t.last.filter, "lat>20ms");
	ui_test_keys(&t, "\\<^U><Enter>");
	cr_expect_str_eq(t.last.filter, "");
	ui_test_keys(&t, "\\<Up> port=80 x<^W><Bksp><Enter>");
	cr_expect_str_eq(t.last.filter, "lat>20ms port=80");
	ui_test_keys(&t, "c");
	cr_expect_str_eq(t.last.filter, "");
}

Test(ui, a_bad_filter_is_not_taken_and_told)
{
	unsigned int before = t.cmd_cnt;
	ui_test_keys(&t, "\\wait=lok<Enter>");
	cr_expect_eq(t.cmd_cnt, before);
	cr_expect(shows("^ "));
	cr_expect(shows("lok"));
	ui_test_keys(&t, "<^U>wait=lock<Enter>");
	cr_expect_str_eq(t.last.filter, "wait=lock");
}

Test(ui, filter_by_row)
{
	ui_test_keys(&t, "jo");
	cr_expect_str_eq(t.last.filter, "wait=lock");
	ui_test_keys(&t, "cx");
	cr_expect_str_eq(t.last.filter, "!wait=lock");
	ui_test_keys(&t, "c2tt<Enter>");
	cr_expect_str_eq(t.last.filter, "resource=cart_mutex");
	cr_expect_eq(ui_screen(&t.ui), SCREEN_REQUESTS);
	ui_test_keys(&t, "c2ttt<Enter>");
	cr_expect_str_eq(t.last.filter, "port=8080 wait=lock", "the victims of a row of blame");
	ui_test_keys(&t, "c2x");
	cr_expect_str_eq(t.last.filter, "!wait=lock");
	ui_test_keys(&t, "c3<Enter>");
	cr_expect_str_eq(t.last.filter, "tid=4245");
}

Test(ui, search_moves_the_selection)
{
	ui_test_keys(&t, "/backup<Enter>");
	cr_expect(shows("not found: backup"), "the occupant is on Path, not in the row");
	ui_test_keys(&t, "/CPU5<Enter>");
	cr_expect_eq(t.ui.want.selected.id, 0x7f39e0);
	ui_test_keys(&t, "/10.0.0.7<Enter>");
	struct cc_reqid first = t.ui.want.selected;
	ui_test_keys(&t, "n");
	cr_expect_not(cc_reqid_eq(t.ui.want.selected, first));
	ui_test_keys(&t, "N");
	cr_expect(cc_reqid_eq(t.ui.want.selected, first));
}

Test(ui, the_filter_acts_while_it_is_typed)
{
	ui_test_keys(&t, "\\lat>20ms");
	cr_expect_str_eq(t.last.filter, "lat>20ms");
	cr_expect_str_eq(t.ui.history[0], "", "not kept yet");
	cr_expect(shows("18 204 of 18 204"));
	ui_test_keys(&t, "<Esc>");
	cr_expect_str_eq(t.last.filter, "");
}

Test(ui, setup_changes_at_once_and_saves_on_request)
{
	char dir[] = "/tmp/cc-setup-XXXXXX", path[300];
	cr_assert(mkdtemp(dir));
	setenv("XDG_CONFIG_HOME", dir, 1);
	ui_test_keys(&t, "S");
	cr_expect(shows("[x]"));
	ui_test_keys(&t, "j<Enter>"); /* 2 s */
	cr_expect_eq(t.last.interval_ns, CC_S(2));
	ui_test_keys(&t, "G<Enter>");
	cr_expect_not(t.ui.columns & 1u << COL_CONN);
	ui_test_keys(&t, "gjjjjj<Enter>");
	cr_expect(shows("says nothing"), "a row needs its name");
	snprintf(path, sizeof(path), "%s/criticast/config", dir);
	cr_expect_neq(access(path, F_OK), 0, "nothing is written by itself");
	ui_test_keys(&t, "w");
	cr_expect(shows("saved in"));
	cr_expect_eq(access(path, F_OK), 0);
	unlink(path);
	snprintf(path, sizeof(path), "%s/criticast", dir);
	rmdir(path);
	rmdir(dir);
	ui_test_keys(&t, "<Esc>");
	cr_expect_not(shows("CONN"));
}

Test(ui, mouse_acts_only_when_it_is_on)
{
	cr_expect_eq(ui_mouse(&t.ui, TK_CLICK, 10, 9), 0);
	ui_test_keys(&t, "M");
	cr_expect(t.effects & UI_MOUSE);
	struct layout l;
	view_layout(&t.ui, &l);
	ui_mouse(&t.ui, TK_CLICK, 10, l.body_y + 3);
	cr_expect_eq(selected_row(), 3);
	ui_mouse(&t.ui, TK_WHEEL_DOWN, 10, l.body_y);
	cr_expect_eq(selected_row(), 6);
	ui_mouse(&t.ui, TK_CLICK, 10, l.body_y + 6);
	cr_expect_eq(ui_screen(&t.ui), SCREEN_PATH, "a second click opens");
	ui_test_keys(&t, "<Esc>");
	ui_mouse(&t.ui, TK_CLICK, 15, l.tabs_y);
	cr_expect_eq(ui_screen(&t.ui), SCREEN_WAITS);
	ui_mouse(&t.ui, TK_CLICK, 2, l.tabs_y);
	cr_expect_eq(ui_screen(&t.ui), SCREEN_REQUESTS);
}

Test(ui, save_asks_what)
{
	ui_test_keys(&t, "jwr");
	cr_expect_eq(t.save_cnt, 1);
	cr_expect_eq(t.saved.what, TUI_SAVE_REQUEST);
	cr_expect(cc_reqid_eq(t.saved.id, FIXTURE_ID));
	cr_expect(shows("saved as test.pb.gz"));
	ui_test_keys(&t, "w<Down><Enter>");
	cr_expect_eq(t.saved.what, TUI_SAVE_FILTERED);
	ui_test_keys(&t, "wa");
	cr_expect_eq(t.saved.what, TUI_SAVE_WINDOW);
	ui_test_keys(&t, "w<Esc>");
	cr_expect_eq(t.save_cnt, 3);
	cr_expect_eq(t.saved.form, TUI_SAVE_USUAL);
	ui_test_keys(&t, "w");
	cr_expect(shows("as pprof, text and recording"));
	ui_test_keys(&t, "t");
	cr_expect(shows("as Perfetto trace"));
	ui_test_keys(&t, "<Enter>"); /* on that row */
	cr_expect(shows("as folded stacks"));
	cr_expect_eq(t.save_cnt, 3);
	ui_test_keys(&t, "a");
	cr_expect_eq(t.saved.what, TUI_SAVE_WINDOW);
	cr_expect_eq(t.saved.form, TUI_SAVE_FOLDED);
	ui_test_keys(&t, "wtttt");
	cr_expect(shows("as pprof, text and recording"));
}

Test(ui, saving_goes_on_beside_the_keys)
{
	t.save_fd = 7;
	ui_test_keys(&t, "jwa");
	cr_expect(shows("saving"));
	cr_expect_eq(t.ui.save_fd, 7, "the loop waits for it");
	ui_test_keys(&t, "k");
	cr_expect_eq(selected_row(), 0);
	cr_expect_eq(ui_saved(&t.ui), UI_DRAW);
	cr_expect_eq(t.ui.save_fd, -1);
	cr_expect(shows("saved as test.pb.gz, later"));
	cr_expect(!t.ui.status_bad);
	t.save_end = -ENOSPC;
	ui_test_keys(&t, "wa");
	ui_saved(&t.ui);
	cr_expect(t.ui.status_bad);
}

Test(ui, copy_gives_the_story)
{
	ui_test_keys(&t, "jy");
	cr_expect(t.effects & UI_COPY);
	cr_assert_not_null(t.ui.clip);
	cr_expect(strstr(t.ui.clip, "root cause is the disk"));
	cr_expect(strstr(t.ui.clip, "disk fsync"));
	t.effects = 0;
	ui_test_keys(&t, "Y");
	cr_expect_not(t.effects & UI_COPY, "no JSON without an owner that can");
	ui_test_keys(&t, "2y"); /* no request here: the text of the screen */
	cr_expect(t.effects & UI_COPY);
	cr_expect(strstr(t.ui.clip, "slow against typical"));
}

Test(ui, escape_never_quits_and_q_quits_at_the_top)
{
	ui_test_keys(&t, "j<Enter><Enter><Esc><Esc><Esc><Esc><Left><Bksp>");
	cr_expect_not(t.effects & UI_QUIT);
	cr_expect_eq(ui_screen(&t.ui), SCREEN_REQUESTS);
	ui_test_keys(&t, "<Enter>q");
	cr_expect_not(t.effects & UI_QUIT);
	ui_test_keys(&t, "q");
	cr_expect(t.effects & UI_QUIT);
	static const char *const quits[] = { "Q", "<F10>", "<^C>", "<Enter><Enter>Q", "\\abc<^C>" };
	for (size_t i = 0; i < ARRAY_SIZE(quits); i++) {
		t.effects = 0;
		ui_test_keys(&t, quits[i]);
		cr_expect(t.effects & UI_QUIT, "%s", quits[i]);
	}
}

Test(ui, a_number_too_long_for_its_column_is_rounded_never_cut)
{
	static const struct {
		uint64_t n;
		int w;
		const char *want;
	} rows[] = {
		{ 99999, 6, "99 999" }, { 100251, 6, "100k" }, { 9999999, 6, "10000k" },
		{ 12345678, 6, "12M" }, { 1204, 8, "1 204" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		cr_expect_str_eq(text_count_in(rows[i].n, rows[i].w).s, rows[i].want);
}

/* A thousand refreshes in which rows come, go, move and are sorted anew: the selection is where the
 * user put it, on the screen, and nothing that is shown differs from what was asked for. */
Test(ui, selection_stays_through_a_thousand_refreshes)
{
	static const char *const sorts[] = { "sl", "sa", "sc", "su", "sd", "I", ">" };
	ui_test_keys(&t, "\\lat>20ms<Enter>j");
	for (int i = 0; i < 1000; i++) {
		unsigned int how = (i & 1 ? SNAP_LATER : 0u) | (i % 7 == 3 ? SNAP_FORGOT : 0u);
		ui_test_snapshot(&t, how);
		if (i % 5 == 0)
			ui_test_keys(&t, sorts[i / 5 % (int)ARRAY_SIZE(sorts)]);
		const struct list_pos *p = &t.ui.pos[SCREEN_REQUESTS];
		cr_assert(cc_reqid_eq(t.ui.want.selected, FIXTURE_ID), "refresh %d", i);
		cr_assert(cc_reqid_eq(row_id(p->row), FIXTURE_ID), "refresh %d", i);
		cr_assert(p->row >= p->top && p->row < p->top + 16, "refresh %d: on the screen", i);
		cr_assert_str_eq(t.ui.want.filter, "lat>20ms");
	}
}

Test(ui, tabs_and_views)
{
	ui_test_keys(&t, "<Tab><Tab>");
	cr_expect_eq(ui_screen(&t.ui), SCREEN_THREADS);
	ui_test_keys(&t, "<Tab><Tab>");
	cr_expect_eq(ui_screen(&t.ui), SCREEN_REQUESTS);
	ui_test_keys(&t, "<S-Tab>");
	cr_expect_eq(ui_screen(&t.ui), SCREEN_HEALTH);
	ui_test_keys(&t, "1<Enter><Tab>");
	cr_expect_eq(ui_screen(&t.ui), SCREEN_STACKS);
	ui_test_keys(&t, "<Tab><Tab>");
	cr_expect_eq(ui_screen(&t.ui), SCREEN_PATH);
	ui_test_keys(&t, "<Esc>");
	cr_expect_eq(ui_screen(&t.ui), SCREEN_REQUESTS);
}

Test(ui, max_frames_ends_it)
{
	t.ui.opts.max_frames = 3;
	t.effects = 0;
	ui_test_snapshot(&t, 0);
	cr_expect_not(t.effects & UI_QUIT);
	ui_test_snapshot(&t, 0);
	cr_expect(t.effects & UI_QUIT);
}

Test(ui, no_snapshot_yet)
{
	ui_test_done(&t);
	ui_test_init(&t, 80, 24, true);
	cr_expect(shows("Waiting for the first data"));
	ui_test_keys(&t, "jkGg<Enter>1234pB[]0$b50%<Enter><Esc>yYmn/x<Enter>sl?q");
	cr_expect_not(t.effects & UI_QUIT);
}

Test(ui, no_color_is_honoured)
{
	struct ui ui;
	struct tui_opts o = t.ui.opts;
	setenv("NO_COLOR", "1", 1);
	cr_assert_eq(ui_init(&ui, &o), 0);
	cr_expect_str_eq(ui.theme.name, "mono");
	ui_key(&ui, 'T');
	cr_expect_str_eq(ui.theme.name, "mono");
	ui_done(&ui);
	o.theme = "default"; /* asked for on the command line: goes before the environment */
	cr_assert_eq(ui_init(&ui, &o), 0);
	cr_expect_str_eq(ui.theme.name, "default");
	ui_done(&ui);
	o.theme = "no-such";
	unsetenv("NO_COLOR");
	cr_expect_eq(ui_init(&ui, &o), -ENOENT);
}

/* Random keys, sizes and snapshots: nothing crashes, no line is too long, the selection is shown
 * and never moves by itself. */
static uint32_t rnd(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static int random_key(uint32_t *seed)
{
	static const int odd[] = { 0,       0x1f600,  0x65e5,       0x10ffff,     TK_DELETE,
				   TK_F(5), TK_F(11), TK_CTRL('u'), TK_CTRL('w'), TK_CTRL('a'),
				   0x7f,    '\b',     0x85 };
	uint32_t r = rnd(seed) % 10;
	if (r < 6)
		return (int)(' ' + rnd(seed) % 95);
	if (r < 7)
		return odd[rnd(seed) % ARRAY_SIZE(odd)];
	if (r < 8)
		return rnd(seed) % 2 ? TK_ENTER : TK_ESC;
	return TK_UP + (int)(rnd(seed) % 12);
}

static void fuzz_step(uint32_t *seed)
{
	uint32_t r = rnd(seed) % 100;
	if (r < 2)
		ui_test_size(&t, 1 + (int)(rnd(seed) % 160), 1 + (int)(rnd(seed) % 50));
	else if (r < 5)
		ui_test_snapshot(&t, rnd(seed) % 128);
	else
		ui_key(&t.ui, random_key(seed));
	if (r % 4 == 0)
		ui_draw(&t.ui, &t.canvas);
}

Test(ui, random_keys_and_sizes, .timeout = 120)
{
	uint32_t seed = 20260101;
	for (int i = 0; i < 120000; i++) {
		const struct snapshot *s;
		fuzz_step(&seed);
		if (t.ui.want.selected.kind)
			cr_assert_not_null(ui_request(&t.ui, &s), "step %d: selection lost", i);
		/* asked for: a port's row, a blocker, a thread's time */
		bool asked = !t.ui.chosen || t.ui.want.by_port || t.ui.want.also.kind ||
			     t.ui.want.span_tid;
		if (i % 64 || t.ui.follow || asked)
			continue;
		struct cc_reqid before = t.ui.want.selected;
		ui_test_snapshot(&t, rnd(&seed) % 128);
		cr_assert(!before.kind || cc_reqid_eq(before, t.ui.want.selected), "step %d", i);
	}
}
