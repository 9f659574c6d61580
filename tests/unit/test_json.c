/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: exact bytes of what is a contract, whole numbers, and Markdown and text beside it. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>

#include "json.h"
#include "json_write.h"
#include "markdown.h"
#include "report.h"
#include "snap_fixture.h"

/* What @call writes to `out` becomes @text, which the caller frees. */
#define CAPTURE(text, f, call)                              \
	do {                                                \
		size_t len_;                                \
		FILE *out = open_memstream(&(text), &len_); \
		fixture_strings(f);                         \
		cr_assert_eq(call, 0);                      \
		fclose(out);                                \
	} while (0)

Test(json, request_bytes)
{
	struct snap_fixture *f = fixture_new();

	f->r.piece_cnt = 2;
	f->r.verdict = fx(f, "a \"quoted\" \\ verdict");
	f->r.up_peer = fx(f, "10.0.0.9:5432");
	f->r.rec.up_votes = 2;
	char *text = NULL;

	CAPTURE(text, f, json_request_line(&f->s, &f->r, out));

	cr_expect_str_eq(
		text,
		"{\"id\":\"fedcba9876543210#3\",\"state\":\"done\",\"peer\":\"10.0.0.7:51122\","
		"\"local_port\":8080,\"task\":{\"tid\":4245,\"goid\":0,\"comm\":\"nginx\"},"
		"\"recv_task\":{\"tid\":4245,\"goid\":0,\"comm\":\"nginx\"},"
		"\"start_ns\":9007199254740993,\"first_recv_ns\":9007199254790993,\"first_send_"
		"ns\":0,"
		"\"end_ns\":9007199466140993,\"latency_ns\":211400000,\"path_sum_ns\":211400000,"
		"\"unexplained_ns\":0,\"ambiguous_ns\":0,\"bytes_in\":0,\"bytes_out\":0,"
		"\"flags\":[\"resumed\",\"retold\"],"
		"\"upstream\":{\"peer\":\"10.0.0.9:5432\",\"votes\":2},\"upstream_hint\":null,"
		"\"confidence\":91,"
		"\"dominant\":{\"class\":\"lock\",\"share\":0.666982,\"site\":\"cart_add+0x41\","
		"\"resource\":\"cart_mutex\",\"ns\":141000000,"
		"\"root\":{\"class\":\"disk_fsync\",\"share\":0.581835,\"site\":\"cart_flush+"
		"0x9c\","
		"\"resource\":\"\",\"ns\":123000000}},"
		"\"verdict\":\"a \\\"quoted\\\" \\\\ "
		"verdict\",\"path_ok\":true,\"lost_inside\":false,"
		"\"path\":[{\"start_ns\":9007199254740993,\"end_ns\":9007199256840993,\"depth\":0,"
		"\"task\":{\"tid\":4245,\"goid\":0,\"comm\":\"nginx\"},\"class\":\"cpu\",\"open\":"
		"false,"
		"\"ended\":\"\",\"site\":\"\",\"resource\":\"\",\"holder\":null,\"occupant\":null,"
		"\"waker\":null,\"for_request\":\"\",\"by_request\":\"\",\"short_ns\":0,"
		"\"confidence\":98,\"reasons\":[],\"stack\":[],\"waker_stack\":[],\"kernel_stack\":"
		"[],"
		"\"waker_kernel_stack\":[],\"not_traced\":false},"
		"{\"start_ns\":9007199256840993,\"end_ns\":9007199397840993,\"depth\":0,"
		"\"task\":{\"tid\":4245,\"goid\":0,\"comm\":\"nginx\"},\"class\":\"lock\","
		"\"open\":false,\"ended\":\"wake\",\"site\":\"cart_add+0x41\","
		"\"resource\":\"cart_mutex\",\"holder\":{\"tid\":4249,\"pid\":4242,\"comm\":"
		"\"worker\"},"
		"\"occupant\":null,\"waker\":{\"tid\":4249,\"pid\":4242,\"comm\":\"worker\","
		"\"kind\":\"task\"},\"for_request\":\"\",\"by_request\":\"\",\"short_ns\":0,"
		"\"confidence\":98,\"reasons\":[],"
		"\"stack\":[\"__lll_lock_wait+0x2c\",\"cart_add+0x41\"],\"waker_stack\":[],"
		"\"kernel_stack\":[],\"waker_kernel_stack\":[],\"not_traced\":false}],"
		"\"pieces_left_out\":0}\n");
	free(text);
	fixture_free(f);
}

static void expect_keys(const cJSON *o, const char *const *keys)
{
	for (; *keys; keys++)
		cr_expect_not_null(cJSON_GetObjectItemCaseSensitive(o, *keys), "no \"%s\"", *keys);
}

Test(json, snapshot_has_every_key_and_parses)
{
	static const char *const top[] = {
		"schema", "now_ns",          "window_ns", "trace",   "summary", "requests", "waits",
		"blame",  "slow_vs_typical", "counters",  "threads", "runtime", NULL
	};
	static const char *const trace[] = { "format", "events", "lost",    "start_ns",
					     "end_ns", "target", "targets", NULL };
	static const char *const summary[] = { "requests", "in_flight", "p50_ns",
					       "p99_ns",   "max_ns",    NULL };
	static const char *const waits[] = { "class",  "site",     "resource",   "waker",
					     "holder", "total_ns", "requests",   "p50_ns",
					     "p99_ns", "share",    "confidence", NULL };
	static const char *const blame[] = { "victim", "culprit", "class", "total_ns", NULL };
	static const char *const slow[] = { "class", "slow_ns", "typical_ns", NULL };
	static const char *const counters[] = { "ring_drops",      "lost_ns",        "stacks_user",
						"stacks_complete", "short_cnt",      "short_ns",
						"dropped",         "stacks_skipped", NULL };
	static const char *const runtime[] = { "cpu_share", "rss_bytes", NULL };
	struct snap_fixture *f = fixture_new();

	f->s.waits = &f->wait;
	f->s.blame = &f->blame;
	f->s.slow = f->slow;
	f->s.wait_cnt = f->s.blame_cnt = f->s.slow_cnt = 1;
	f->s.stats.counter[CC_CNT_DROP_EPISODE] = 3;
	f->s.stats.counter[CC_CNT_DROP_SNAP] = 4;
	f->s.stats.counter[CC_CNT_CLAMPED] = 100;
	f->s.stats.counter[CC_CNT_SNAP_BUDGET] = 5;
	f->s.realtime_off_ns = -5;
	f->s.runtime.cpu_share = 0.0042;
	f->s.runtime.live = true;
	char *text = NULL;

	CAPTURE(text, f, json_snapshot_line(&f->s, out));
	cJSON *o = cJSON_Parse(text);

	cr_assert_not_null(o);
	cr_expect_eq(text[strlen(text) - 1], '\n');
	cr_expect_null(strchr(text, '\n') + 1 == text + strlen(text) ? NULL : text, "one line");
	expect_keys(o, top);
	expect_keys(cJSON_GetObjectItem(o, "trace"), trace);
	expect_keys(cJSON_GetObjectItem(o, "summary"), summary);
	expect_keys(cJSON_GetArrayItem(cJSON_GetObjectItem(o, "waits"), 0), waits);
	expect_keys(cJSON_GetArrayItem(cJSON_GetObjectItem(o, "blame"), 0), blame);
	expect_keys(cJSON_GetArrayItem(cJSON_GetObjectItem(o, "slow_vs_typical"), 0), slow);
	expect_keys(cJSON_GetObjectItem(o, "counters"), counters);
	expect_keys(cJSON_GetObjectItem(o, "runtime"), runtime);
	cr_expect_eq(cJSON_GetArraySize(cJSON_GetObjectItem(o, "requests")), 1);
	cr_expect_not_null(strstr(text, "\"ring_drops\":7,"));
	cr_expect_not_null(strstr(text, "\"stacks_skipped\":5,\"dropped\":{\"episode\":3,"));
	cr_expect_not_null(strstr(text, "\"runtime\":{\"cpu_share\":0.004200,\"rss_bytes\":0}}\n"));
	cr_expect_not_null(strstr(text, "\"realtime_off_ns\":-5"));
	cJSON_Delete(o);
	free(text);
	f->s.runtime.live = false;
	CAPTURE(text, f, json_snapshot_line(&f->s, out));
	cr_expect_null(strstr(text, "runtime"), "a file's bytes depend on the file alone");
	free(text);
	fixture_free(f);
}

Test(json, reasons_are_what_lowered_the_confidence)
{
	struct snap_fixture *f = fixture_new();
	char *text = NULL;

	CAPTURE(text, f, json_request_line(&f->s, &f->r, out));

	cr_expect_not_null(strstr(text, "\"reasons\":[\"woken from an interrupt: "));
	cr_expect_null(strstr(text, "scheduler events of this task"));
	free(text);
	fixture_free(f);
}

Test(json, numbers_of_any_size_and_locale)
{
	struct snap_fixture *f = fixture_new();
	struct json j = { 0 };

	setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed, a comma is its point */
	char *text = NULL;

	CAPTURE(text, f, ({
			j.out = out;
			json_open(&j, NULL, '[');
			json_u64(&j, NULL, UINT64_MAX);
			json_i64(&j, NULL, INT64_MIN);
			json_share(&j, NULL, 0.5);
			json_share(&j, NULL, 1);
			json_share(&j, NULL, -1);
			json_share(&j, NULL, 0.0 / 0.0);
			json_share(&j, NULL, 12.3456789);
			json_str(&j, NULL, "\x01\n\"");
			json_bool(&j, NULL, false);
			json_null(&j, NULL);
			json_close(&j, ']');
			0;
		}));

	cr_expect_str_eq(text, "[18446744073709551615,-9223372036854775808,0.500000,1.000000,"
			       "0.000000,0.000000,12.345679,\"\\u0001\\u000a\\\"\",false,null]");
	free(text);
	fixture_free(f);
}

Test(markdown, story)
{
	struct snap_fixture *f = fixture_new();

	f->r.verdict = fx(f, "lock 141.0 of 211.4 ms (67%): cart_mutex");
	f->s.realtime_off_ns = 1700000000000000000ll - 9007199254740993ll;
	f->r.waker_text = fx(f, "worker/4249");
	f->r.holder_text = fx(f, "worker/4250");
	char *text = NULL;

	CAPTURE(text, f, markdown_request(&f->s, &f->r, out));

	cr_expect_not_null(strstr(text, "## Request fedcba9876543210\\#3: 211.4 ms\n"));
	cr_expect_not_null(strstr(text, "**lock 141.0 of 211.4 ms (67%): cart\\_mutex**\n"));
	cr_expect_not_null(strstr(text, "2023-11-14 22:13:20.000 UTC"));
	cr_expect_not_null(strstr(text, "| 2.1 | 141.0 | lock | nginx/4245 | cart\\_add+0x41 | "
					"cart\\_mutex, held by worker/4249 | worker/4249 |\n"));
	cr_expect_not_null(strstr(text, "| 20.1 | 123.0 | &rarr; disk fsync | worker/4249 |"));
	cr_expect_not_null(strstr(text, "Path 211.4 ms of latency 211.4 ms."));
	cr_expect_not_null(strstr(text,
				  "- its longest wait, lock, was ended by worker/4249; held by "
				  "worker/4250\n"),
			   "%s", text);
	cr_expect_not_null(
		strstr(text, "    cart_add+0x41                            app cart.c:88\n"));
	cr_expect_not_null(strstr(text, "The root cause:\n\n    io_schedule+0x46"));
	free(text);
	fixture_free(f);
}

Test(markdown, names_cannot_break_out)
{
	struct snap_fixture *f = fixture_new();

	f->p[1].resource = fx(f, "a|b <script> `x` [l](u) *b* # & !");
	char *text = NULL;

	CAPTURE(text, f, markdown_request(&f->s, &f->r, out));

	cr_expect_not_null(
		strstr(text, "a\\|b \\<script\\> \\`x\\` \\[l\\](u) \\*b\\* \\# \\& \\!"));
	free(text);
	fixture_free(f);
}

Test(report, text)
{
	struct snap_fixture *f = fixture_new();

	f->s.p50_ns = f->s.max_ns = f->r.latency_ns;
	f->s.stats.lost_cnt = 12;
	f->s.stats.lost_ns = CC_MS(3);
	char *text = NULL;

	CAPTURE(text, f, report_text(&f->s, false, out));

	cr_expect_not_null(strstr(text, "lost        12 events, 3.0 ms of waits in them\n"));
	cr_expect_not_null(strstr(text, "latency ms  p50 211.4"));
	cr_expect_not_null(strstr(text, "path 211.4 = latency 211.4 ms, unexplained 0.0"));
	cr_expect_not_null(strstr(text, "held by worker/4249"));
	cr_expect_null(strstr(text, "io_schedule"));
	free(text);
	CAPTURE(text, f, report_text(&f->s, true, out));
	cr_expect_not_null(strstr(text, "io_schedule"));
	cr_expect_not_null(strstr(text, "app cart.c:88"));
	free(text);
	fixture_free(f);
}
