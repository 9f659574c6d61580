/* SPDX-License-Identifier: Apache-2.0 */
/* Time on the screens: pause, seek, go to, what is worth a look. */
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

TestSuite(ui_time, .init = setup, .fini = teardown);

static bool shows(const char *what)
{
	char *text = ui_test_screen(&t);
	bool found = strstr(text, what) != NULL;
	free(text);
	return found;
}

Test(ui_time, pause_holds_the_picture_until_told_otherwise)
{
	char *before, *after;
	ui_test_keys(&t, "j ");
	cr_expect(t.last.paused);
	cr_expect_eq(t.last.view_ns, CC_S(5000));
	cr_expect(t.last.changed & TUI_CH_PAUSE);
	before = ui_test_screen(&t);
	t.effects = 0;
	ui_test_snapshot(&t, SNAP_LATER);
	cr_expect_eq(t.effects, 0, "no frame for a snapshot that is not shown");
	after = ui_test_screen(&t);
	cr_expect_str_eq(before, after);
	ui_test_snapshot(&t, SNAP_LATER | SNAP_PAUSED); /* an answer to a command */
	cr_expect(shows("7fbeef#1"));
	ui_test_keys(&t, "p");
	cr_expect_not(t.last.paused);
	cr_expect_eq(t.last.view_ns, 0);
	free(before);
	free(after);
}

Test(ui_time, seeking_a_live_trace_pauses_it)
{
	ui_test_keys(&t, "[[");
	cr_expect(t.last.paused);
	cr_expect_eq(t.last.view_ns, CC_S(4980), "two seeks add up before any answer came");
	cr_expect_eq(t.last.seek_cnt, 2);
	ui_test_keys(&t, "]},");
	cr_expect_eq(t.last.view_ns, CC_S(4999), "not beyond the end; then one refresh back");
	ui_test_keys(&t, "0");
	cr_expect_eq(t.last.view_ns, CC_S(5000 - 131));
	cr_expect(!strstr(t.ui.status, "oldest"), "%s", t.ui.status);
	ui_test_keys(&t, "[");
	cr_expect(strstr(t.ui.status, "oldest that is kept"), "no more is kept: %s", t.ui.status);
	ui_test_keys(&t, "$");
	cr_expect_not(t.last.paused);
	cr_expect_eq(t.last.view_ns, 0);
	ui_test_keys(&t, "++");
	cr_expect_eq(t.last.interval_ns, CC_MS(200));
	ui_test_keys(&t, "------------");
	cr_expect_eq(t.last.interval_ns, CC_S(60));
}

Test(ui_time, replay_speed_and_seek)
{
	ui_test_done(&t);
	ui_test_init(&t, 120, 36, false);
	ui_test_snapshot(&t, 0);
	ui_test_keys(&t, "++");
	cr_expect_float_eq(t.last.speed, 4, 0.001);
	ui_test_keys(&t, "{");
	cr_expect_not(t.last.paused, "a replay plays on from there");
	cr_expect_eq(t.last.view_ns, CC_S(4940));
	ui_test_keys(&t, "p");
	cr_expect(t.last.paused);
	cr_expect_eq(t.last.view_ns, CC_S(4940));
}

Test(ui_time, go_to_a_time)
{
	cc_ns ns = 7;
	static const char *const bad[] = { "",     "12", "12:60",   "24:00", "+",        "+5x",
					   "101%", "-",  "1:2:3:4", "%",     "12:04:61", "abc" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_expect_eq(ui_parse_time(&t.ui, bad[i], &ns), -EINVAL, "%s", bad[i]);
	cr_expect_eq(ns, 7);
	cr_expect_eq(ui_parse_time(&t.ui, "-30s", &ns), 0);
	cr_expect_eq(ns, CC_S(4970));
	cr_expect_eq(ui_parse_time(&t.ui, "+250ms", &ns), 0);
	cr_expect_eq(ns, CC_S(5000) + CC_MS(250));
	cr_expect_eq(ui_parse_time(&t.ui, "-1m", &ns), 0);
	cr_expect_eq(ns, CC_S(4940));
	cr_expect_eq(ui_parse_time(&t.ui, "50%", &ns), 0);
	cr_expect_eq(ns, CC_S(5000 - 131) + CC_MS(65500));
	/* the fixture's clock is 22:13:20.250 UTC at 5000 s */
	cr_expect_eq(ui_parse_time(&t.ui, "22:13:10", &ns), 0);
	cr_expect_eq(ns, CC_S(4990) - CC_MS(250));
	ui_test_keys(&t, "b-10s<Enter>");
	cr_expect_eq(t.last.view_ns, CC_S(4990));
	ui_test_keys(&t, "blat>?<Enter>");
	cr_expect(shows("not a time"));
	/* words of a log line are terms */
	ui_test_keys(&t, "<^U>10.0.0.7:51122 2023-11-14T22:13:10.123Z<Enter>");
	cr_expect_str_eq(t.last.filter, "peer=10.0.0.7:51122 at=22:13:10");
	cr_expect_eq(t.ui.prompt.kind, PROMPT_NONE);
	ui_test_keys(&t, "bpeer=10.0.0.9:1 at=22:12:00<Enter>");
	cr_expect_str_eq(t.last.filter, "peer=10.0.0.9:1 at=22:12:00");
	cr_expect_eq(t.last.view_ns, CC_S(4922) - CC_MS(250), "before the window: goes there");
	cr_expect(t.last.paused);
}

Test(ui_time, moments_worth_a_look)
{
	/* in the pause: the request marked, the loss, and where p99 was highest */
	ui_test_snapshot(&t, SNAP_LOSS);
	ui_test_keys(&t, "jjm "); /* ended 9 s ago */
	unsigned int seeks = t.last.seek_cnt;
	ui_test_keys(&t, "(");
	cr_expect_eq(t.last.view_ns, CC_S(4992), "the mark, with one refresh more");
	ui_test_keys(&t, "(");
	cr_expect_eq(t.last.view_ns, CC_S(4990), "the end of the loss");
	int peaks = 0; /* of the fixture's line, in slices 35 to 41 */
	while (!shows("no mark, loss or worst moment before") && peaks < 10) {
		cr_expect(!peaks || (t.last.view_ns >= CC_S(4975) && t.last.view_ns <= CC_S(4984)));
		ui_test_keys(&t, "(");
		peaks++;
	}
	cr_expect(peaks > 1 && peaks < 10);
	cr_expect_eq(t.last.seek_cnt, seeks + 2 + (unsigned int)peaks - 1);
	ui_test_keys(&t, "))))))))))");
	cr_expect_eq(t.last.view_ns, CC_S(4992));
}
