/* SPDX-License-Identifier: Apache-2.0 */
/* From a row to what is behind it: ports, the path and its parts, the request in the way. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ui_util.h"

static struct ui_test t;

static void setup(void)
{
	ui_test_init(&t, 120, 36, true);
	ui_test_snapshot(&t, 0);
}

static void teardown(void) { ui_test_done(&t); }

TestSuite(ui_path, .init = setup, .fini = teardown);

static bool shows(const char *what)
{
	char *text = ui_test_screen(&t);
	bool found = strstr(text, what) != NULL;
	free(text);
	return found;
}

Test(ui_path, blocker_is_found_by_its_id)
{
	ui_test_keys(&t, "/7f3e11<Enter>B");
	cr_expect(cc_reqid_eq(t.ui.want.selected, FIXTURE_ID));
	cr_expect(shows("blocked by 7f3a9c#3"));
	ui_test_keys(&t, "<Esc>");
	cr_expect_eq(t.ui.want.selected.id, 0x7f3e11, "Esc goes back");
	ui_test_keys(&t, "<Enter>jB");
	cr_expect(shows("no other request was in the way"));
	ui_test_keys(&t, "kB");
	cr_expect(cc_reqid_eq(t.ui.want.selected, FIXTURE_ID));
	cr_expect_eq(ui_screen(&t.ui), SCREEN_PATH);
	cr_expect(shows("path 211.4 = latency"));
	ui_test_keys(&t, "<Left>");
	cr_expect_eq(t.ui.want.selected.id, 0x7f3e11);
	ui_test_keys(&t, "<Left>");
	cr_expect_eq(ui_screen(&t.ui), SCREEN_REQUESTS);
	ui_test_keys(&t, "gB");
	cr_expect(shows("no other request was in the way"));
}

Test(ui_path, a_blocker_that_is_no_row_is_asked_for)
{
	ui_test_snapshot(&t, SNAP_FORGOT);
	ui_test_keys(&t, "/7f3e11<Enter><Enter>B");
	cr_expect(cc_reqid_eq(t.last.also, FIXTURE_ID));
	cr_expect_eq(t.ui.want.selected.id, 0x7f3e11);
	ui_test_snapshot(&t, SNAP_FORGOT); /* was under way */
	ui_test_snapshot(&t, 0);
	cr_expect(cc_reqid_eq(t.ui.want.selected, FIXTURE_ID));
	ui_test_keys(&t, "<Esc>");
	cr_expect_eq(t.ui.want.selected.id, 0x7f3e11);
	ui_test_snapshot(&t, SNAP_FORGOT);
	ui_test_keys(&t, "B");
	for (int i = 0; i < 3; i++)
		ui_test_snapshot(&t, SNAP_FORGOT);
	cr_expect(shows("no longer known"));
	cr_expect_eq(t.ui.want.selected.id, 0x7f3e11);
}

Test(ui_path, one_row_for_each_port)
{
	ui_test_keys(&t, "t");
	cr_expect(t.last.by_port);
	cr_expect_eq(t.ui.order_cnt, 2);
	cr_expect(shows("itself in disk fsync for 123.0 ms"), "each row has its sentence");
	ui_test_keys(&t, "j");
	cr_expect_eq(t.ui.want.selected.id, 0x7f39e0);
	ui_test_snapshot(&t, SNAP_LATER);
	cr_expect_eq(t.ui.pos[SCREEN_REQUESTS].row, 1, "the selection stays on the port");
	ui_test_keys(&t, "k<Enter>");
	cr_expect(shows("path 211.4 = latency 211.4"));
	ui_test_snapshot(&t, SNAP_LATER);
	cr_expect(shows("path 211.4 = latency 211.4"));
	ui_test_keys(&t, "<Esc>o");
	cr_expect_str_eq(t.last.filter, "port=8080");
	ui_test_keys(&t, "<Esc>");
	cr_expect_not(t.last.by_port);
	cr_expect(shows("7f3d00#12"));
}

Test(ui_path, zoom_and_fold)
{
	ui_test_keys(&t, "j<Enter>z");
	cr_expect(shows("zoomed into lock 141.0 ms"));
	cr_expect_not(shows("upstream  "));
	ui_test_keys(&t, "z");
	cr_expect(shows("this is all"));
	ui_test_keys(&t, "jz");
	cr_expect(shows("nothing is nested"));
	ui_test_keys(&t, "<Esc>");
	cr_expect_eq(ui_screen(&t.ui), SCREEN_PATH);
	cr_expect_not(shows("zoomed into"));
	cr_expect_eq(t.ui.piece, 1);
	ui_test_keys(&t, "<Esc>");
	cr_expect_eq(ui_screen(&t.ui), SCREEN_REQUESTS);
}
