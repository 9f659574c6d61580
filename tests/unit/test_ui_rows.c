/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of Waits and Threads, and what is about the room there is for rows. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "ui_util.h"
#include "view.h"

static struct ui_test t;

static void setup(void)
{
	ui_test_init(&t, 120, 36, true);
	ui_test_snapshot(&t, 0);
}

static void teardown(void) { ui_test_done(&t); }

TestSuite(ui_rows, .init = setup, .fini = teardown);

static bool shows(const char *what)
{
	char *text = ui_test_screen(&t);
	bool found = strstr(text, what) != NULL;
	free(text);
	return found;
}

/* Two of its threads have one name. */
static struct snapshot *ui_fixture_roles(void)
{
	struct snapshot *s = ui_fixture(0);
	struct snap_thread *th = (struct snap_thread *)s->threads;
	th[2].task = (struct snap_task){ .tid = 4246, .comm = th[0].task.comm };
	return s;
}

Test(ui_rows, rows_of_threads_and_waits_keep_the_selection_by_what_they_are)
{
	ui_test_keys(&t, "3j");
	struct snapshot *s = ui_fixture(0);
	struct snap_thread *th = (struct snap_thread *)s->threads, swap = th[0];
	th[0] = th[1];
	th[1] = swap;
	t.effects |= ui_snapshot(&t.ui, s);
	cr_expect_eq(t.ui.pos[SCREEN_THREADS].row, 0);
	ui_test_keys(&t, "2jj");
	s = ui_fixture(0);
	struct snap_wait *w = (struct snap_wait *)s->waits, first = w[2];
	w[2] = w[0];
	w[0] = first;
	ui_snapshot(&t.ui, s);
	cr_expect_eq(t.ui.pos[SCREEN_WAITS].row, 0);
}

Test(ui_rows, threads_and_waits_are_sorted_and_keep_their_selection)
{
	const struct snapshot *s = t.ui.snap;
	cr_assert_geq(s->thread_cnt, 2u);
	cr_assert_geq(s->wait_cnt, 3u);
	ui_test_keys(&t, "3j");
	uint32_t chosen = ui_thread(&t.ui, 1)->task.tid;
	static const char *const keys[] = { "st", "I", "sc", ">", "<<", "s<Up><Enter>" };
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
		ui_test_keys(&t, keys[k]);
		const struct snap_thread *th = ui_thread(&t.ui, t.ui.pos[SCREEN_THREADS].row);
		cr_assert(th);
		cr_expect_eq(th->task.tid, chosen, "%s", keys[k]);
	}
	ui_test_keys(&t, "st"); /* by tid, turned round above */
	for (int i = 1; i < (int)s->thread_cnt; i++) {
		const struct snap_task *a = &ui_thread(&t.ui, i - 1)->task;
		const struct snap_task *b = &ui_thread(&t.ui, i)->task;
		cr_expect_lt(a->goid ? a->goid : a->tid, b->goid ? b->goid : b->tid);
	}
	ui_test_keys(&t, "2s9");
	for (int i = 1; i < (int)s->wait_cnt; i++)
		cr_expect_geq(ui_wait(&t.ui, i - 1)->p99_ns, ui_wait(&t.ui, i)->p99_ns);
	cr_expect_eq(t.ui.want.sort, SORT_LATENCY, "that of Requests is its own");
}

Test(ui_rows, threads_by_role)
{
	struct snapshot *s = ui_fixture_roles();
	uint32_t threads = s->thread_cnt, outside = s->outside_cnt;
	ui_snapshot(&t.ui, s);
	ui_test_keys(&t, "3t");
	uint32_t roles = 0, below = 0, alone = 0;
	for (int i = 0; i < (int)t.ui.thread_rows; i++) {
		const struct thread_row *r = ui_thread_row(&t.ui, i);
		roles += r->cnt > 0;
		below += r->cnt;
		alone += !r->cnt && !r->in_role && !r->outside;
	}
	cr_expect_eq(below + alone, threads);
	cr_expect_gt(roles, 0u);
	cr_expect_gt(below, roles);
	cr_expect_eq(t.ui.thread_rows, roles + threads + outside);
	/* e folds the role of the selected row, whose row is selected then; t folds all */
	ui_test_keys(&t, "g");
	while (!ui_thread_row(&t.ui, t.ui.pos[SCREEN_THREADS].row)->in_role)
		ui_test_keys(&t, "j");
	uint32_t cnt = 0;
	ui_test_keys(&t, "e");
	const struct thread_row *r = ui_thread_row(&t.ui, t.ui.pos[SCREEN_THREADS].row);
	cr_expect(r->cnt && r->folded);
	cr_expect_eq(t.ui.thread_rows, roles + threads + outside - r->cnt);
	cnt = r->cnt;
	ui_snapshot(&t.ui, ui_fixture_roles());
	r = ui_thread_row(&t.ui, t.ui.pos[SCREEN_THREADS].row);
	cr_expect(r->cnt == cnt && r->folded, "it stays folded and selected");
	ui_test_keys(&t, "e");
	cr_expect_eq(t.ui.thread_rows, roles + threads + outside);
	ui_test_keys(&t, "t");
	cr_expect_eq(t.ui.thread_rows, roles + threads + outside - below, "all are folded");
	ui_test_keys(&t, "t");
	cr_expect_eq(t.ui.thread_rows, threads + outside, "each for itself");
	ui_test_keys(&t, "e");
	cr_expect(strstr(t.ui.status, "by role"), "%s", t.ui.status);
	ui_test_keys(&t, "t");
	char role[64], want[80];
	ui_test_keys(&t, "g");
	ui_role(&t.ui, 0, role, sizeof(role));
	snprintf(want, sizeof(want), "comm~%s", role);
	ui_test_keys(&t, "<Enter>");
	cr_expect_str_eq(t.ui.want.filter, want);
	cr_expect_eq(ui_screen(&t.ui), SCREEN_REQUESTS);
}

Test(ui_rows, the_blocker_of_a_thread_is_selected)
{
	ui_test_keys(&t, "3gB"); /* the holder of the hang's lock, which has no row */
	cr_expect_eq(t.ui.pos[SCREEN_THREADS].row, 0);
	cr_expect(strstr(t.ui.status, "worker/4250"), "%s", t.ui.status);
	struct snapshot *s = ui_fixture(0);
	((struct snap_thread *)s->threads)[1].task.tid = 4250;
	ui_snapshot(&t.ui, s);
	ui_test_keys(&t, "B");
	const struct snap_thread *th = ui_thread(&t.ui, t.ui.pos[SCREEN_THREADS].row);
	cr_assert(th);
	cr_expect_eq(th->task.tid, 4250u);
	ui_test_keys(&t, "<Esc>");
	cr_expect_eq(t.ui.pos[SCREEN_THREADS].row, 0, "Esc goes back to who was blocked");
	ui_test_keys(&t, "<Esc>");
	cr_expect(strstr(t.ui.status, "q quits"), "once");
	/* one that lies in a folded role is unfolded */
	s = ui_fixture(0);
	((struct snap_thread *)s->threads)[1].task.tid = 4250;
	((struct snap_thread *)s->threads)[2].task =
		(struct snap_task){ .tid = 4246, .comm = s->threads[1].task.comm };
	ui_snapshot(&t.ui, s);
	ui_test_keys(&t, "ttgB");
	th = ui_thread(&t.ui, t.ui.pos[SCREEN_THREADS].row);
	cr_assert(th, "its row is shown");
	cr_expect_eq(th->task.tid, 4250u);
	ui_test_keys(&t, "tGB");
	cr_expect_eq(t.ui.pos[SCREEN_THREADS].row, (int)t.ui.thread_rows - 1, "of nobody's");
}

Test(ui_rows, rows_of_waits_and_threads_are_followed_and_marked)
{
	static const struct {
		char open;
		enum screen screen;
	} cases[] = { { '2', SCREEN_WAITS }, { '3', SCREEN_THREADS } };
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		enum screen s = cases[i].screen;
		ui_test_keys(&t, (char[]){ cases[i].open, 'g', 'j', 'm', 'k', '\0' });
		cr_expect(ui_row_marked(&t.ui, s, 1));
		cr_expect(!ui_row_marked(&t.ui, s, 0));
		cr_expect(shows("*"));
		ui_test_keys(&t, ")");
		cr_expect_eq(t.ui.pos[s].row, 1, "to the mark");
		ui_test_keys(&t, "s2<Esc>I"); /* in another order the mark is on the same thing */
		uint64_t key = t.ui.row_marks[i].key;
		for (int row = 0; row < view_of(s)->rows(&t.ui); row++)
			cr_expect_eq(ui_row_marked(&t.ui, s, row),
				     view_of(s)->key(&t.ui, row) == key);
		ui_test_keys(&t, "GF");
		cr_expect_eq(t.ui.pos[s].row, 0, "follow selects the first row");
		cr_expect(shows("follow"));
		ui_test_keys(&t, "I");
		ui_test_snapshot(&t, SNAP_LATER);
		cr_expect_eq(t.ui.pos[s].row, 0, "and keeps it there");
		ui_test_keys(&t, "j");
		cr_expect(!(t.ui.follow & 1u << s), "moving ends it");
	}
	ui_test_keys(&t, "1");
	cr_expect(!(t.ui.follow & 1u << SCREEN_REQUESTS), "each screen has its own");
	ui_test_keys(&t, "2)m");
	cr_expect_eq(t.ui.row_mark_cnt, 1, "the same key takes it away");
}

Test(ui_rows, a_menu_longer_than_the_screen_shows_the_selected_item)
{
	ui_test_keys(&t, "3");
	ui_test_size(&t, 60, UI_MIN_H);
	ui_test_keys(&t, "sk"); /* round to the end */
	cr_expect_eq(t.ui.menu_row, menu_items(&t.ui) - 1);
	cr_expect(shows("thread id"), "the last one");
	cr_expect_lt(t.canvas.cur_y, UI_MIN_H);
	ui_test_keys(&t, "j");
	cr_expect(shows("work: requests"), "the first one");
}

Test(ui_rows, texts_without_room_are_moved)
{
	static const struct {
		char keys[8], cut[40], moved[40];
	} cases[] = {
		{ "1", "upstream 10.0…:5432", "upstream …0.20:5432" },
		{ "4", "", "" }, /* where a probe is */
	};
	ui_test_size(&t, 80, 24);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ui_test_keys(&t, cases[i].keys);
		char *before = ui_test_screen(&t);
		ui_test_keys(&t, "LL");
		char *after = ui_test_screen(&t);
		cr_expect(strcmp(before, after), "%s", cases[i].keys);
		cr_expect(!cases[i].moved[0] || strstr(before, cases[i].cut), "%s", before);
		cr_expect(strstr(after, cases[i].moved), "%s", after);
		ui_test_keys(&t, "HHH");
		cr_expect_eq(t.ui.pan, 0);
		free(after);
		free(before);
	}
}
