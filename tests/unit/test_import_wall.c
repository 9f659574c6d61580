/* SPDX-License-Identifier: Apache-2.0 */
/* What time of day an imported trace was: its own word, its file's, or none. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine.h"
#include "import.h"
#include "trace_stream.h"

#define END_S 1764584000 /* when the file was last written */

#define SWITCHES(at0, at1)                                                                       \
	"  app-10 [000] d..2 " at0 ": sched_switch: prev_comm=app prev_pid=10 prev_prio=120 "    \
	"prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n"                        \
	"  <idle>-0 [000] d.h3 " at1 ": sched_waking: comm=app pid=10 prio=120 target_cpu=000\n" \
	"  <idle>-0 [000] d..2 " at1 ": sched_switch: prev_comm=swapper/0 prev_pid=0 "           \
	"prev_prio=120 prev_state=R ==> next_comm=app next_pid=10 next_prio=120\n"

#define CAPTURED "# captured on    : Mon Dec  1 10:12:32 2025\n" /* 1764583952 in UTC */
#define SYNC                                                                           \
	"  app-10 [000] ...1 100.250000: tracing_mark_write: trace_event_clock_sync: " \
	"realtime_ts=1491850748338\n"

struct told {
	int64_t off;
	cc_ns last;
	char notes[4096];
};

static struct told import_text(const char *text, const char *path_told)
{
	const struct engine_opts eo = { 0 };
	struct told t = { 0 };
	const struct cc_rec *rec;
	struct cc_err err;
	struct import *im;
	struct engine *e;
	char path[64];

	temp_path(path);
	spill(path, (const uint8_t *)text, strlen(text));
	cr_assert_eq(utimensat(AT_FDCWD, path,
			       (struct timespec[2]){ { .tv_sec = END_S }, { .tv_sec = END_S } }, 0),
		     0);
	setenv("TZ", "UTC", 1);
	cr_assert_eq(import_open(open(path, O_RDONLY), path_told ? path_told : path, &err, &im), 0,
		     "%s", err.msg);
	cr_assert_eq(engine_new(&eo, &e), 0);
	while (import_next(im, &rec) == 1) {
		const struct cc_rec_name *note = (const void *)rec;

		cr_assert_eq(engine_feed(e, rec, rec->size), 0);
		if (rec->kind == CC_REC_NAME && rec->aux == CC_NAME_NOTE)
			strncat(strncat(t.notes, note->text, note->len[0]), "\n", 2);
	}
	t.off = engine_stats(e)->realtime_off_ns;
	t.last = engine_stats(e)->last_ns;
	import_free(im);
	engine_free(e);
	unlink(path);
	return t;
}

static int64_t end_of(const struct told *t) { return (int64_t)t->last + t->off; }

Test(import_wall, without_a_clock_the_end_is_when_the_file_was_written)
{
	struct told t = import_text(SWITCHES("100.000000", "101.500000"), NULL);

	cr_expect_eq(end_of(&t), END_S * (int64_t)CC_S(1));
	cr_expect(strstr(t.notes, "a guess, as if it had ended when its file was last written"));
	t = import_text(SWITCHES("0.000000", "1.500000"), NULL);
	cr_expect_eq(end_of(&t), END_S * (int64_t)CC_S(1), "also where times were moved from 0");
}

Test(import_wall, a_stream_has_no_file)
{
	struct told t = import_text(SWITCHES("100.000000", "101.500000"), "-");

	cr_expect_eq(t.off, 0);
	cr_expect(strstr(t.notes, "times of day count from 1970"));
	t = import_text(CAPTURED SWITCHES("100.000000", "101.500000"), "-");
	cr_expect_eq(end_of(&t), 1764583952 * (int64_t)CC_S(1));
}

Test(import_wall, a_header_is_better_than_the_file)
{
	struct told t = import_text(CAPTURED SWITCHES("100.000000", "101.500000"), NULL);

	cr_expect_eq(end_of(&t), 1764583952 * (int64_t)CC_S(1));
	cr_expect(strstr(t.notes, "captured on"));
	static const char *const bad[] = { "# captured on    : yesterday\n", "# captured on\n",
					   "# captured on    : \n",
					   "# captured on    : Mon Dec  1 10:12:32 1905\n",
					   "# captured on    : Mon Dec  1 10:12:32 2025 or so\n" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char text[2048];

		snprintf(text, sizeof(text), "%s%s", bad[i], SWITCHES("100.0", "101.5"));
		t = import_text(text, NULL);
		cr_expect_eq(end_of(&t), END_S * (int64_t)CC_S(1), "%s", bad[i]);
	}
}

Test(import_wall, a_clock_sync_is_best)
{
	struct told t = import_text(CAPTURED SYNC SWITCHES("100.300000", "101.500000"), NULL);

	cr_expect_eq(t.off, 1491850748338 * (int64_t)CC_MS(1) - (int64_t)CC_MS(100250));
	cr_expect(strstr(t.notes, "by the trace's clock_sync"));
	t = import_text(SYNC SYNC SWITCHES("100.300000", "101.500000") CAPTURED, NULL);
	cr_expect_eq(t.off, 1491850748338 * (int64_t)CC_MS(1) - (int64_t)CC_MS(100250));
	static const char *const bad[] = {
		"  app-10 [000] ...1 100.250000: tracing_mark_write: trace_event_clock_sync: "
		"realtime_ts=18446744073709551615\n",
		"  app-10 [000] ...1 100.250000: tracing_mark_write: trace_event_clock_sync: "
		"realtime_ts=5\n",
		"  app-10 [000] ...1 100.250000: tracing_mark_write: trace_event_clock_sync: "
		"realtime_ts=x\n",
		"realtime_ts=1491850748338\n",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char text[2048];

		snprintf(text, sizeof(text), "%s%s", bad[i], SWITCHES("100.3", "101.5"));
		t = import_text(text, NULL);
		cr_expect_eq(end_of(&t), END_S * (int64_t)CC_S(1), "%s", bad[i]);
	}
}
