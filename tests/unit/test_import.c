/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of other tools: public traces whose answers are known, and what is refused. Their lines
 * are in test_import_line. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "import.h"
#include "paths.h"
#include "trace.h"

TestSuite(import, .timeout = 60);

#define DIR CC_SRC_DIR "/testdata/import/"

/* ---- whole traces ------------------------------------------------------------------------- */

struct told { /* what came out of one file */
	struct engine *e;
	uint32_t episodes, woken, task_woken;
	struct cc_rec_episode ep[64]; /* the first ones of the thread that is looked at */
	uint32_t ep_cnt;
	char notes[4096];
};

static void import_file(const char *path, uint32_t tid, struct told *t)
{
	const struct engine_opts eo = { 0 };
	const struct cc_rec *rec;
	struct cc_err err = { .msg = "" };
	struct import *im;
	int n;

	memset(t, 0, sizeof(*t));
	cr_assert_eq(import_open(open(path, O_RDONLY), path, &err, &im), 0, "%s", err.msg);
	cr_assert_eq(engine_new(&eo, &t->e), 0);
	while ((n = import_next(im, &rec)) == 1) {
		const struct cc_rec_episode *ep = (const void *)rec;
		const struct cc_rec_name *note = (const void *)rec;

		cr_assert_eq(engine_feed(t->e, rec, rec->size), 0);
		if (rec->kind == CC_REC_NAME && rec->aux == CC_NAME_NOTE)
			strncat(strncat(t->notes, note->text, note->len[0]), "\n", 2);
		if (rec->kind != CC_REC_EPISODE)
			continue;
		t->episodes++;
		t->woken += ep->wake != 0;
		t->task_woken += ep->wake && ep->waker_tid;
		if (ep->tid == tid && t->ep_cnt < ARRAY_SIZE(t->ep))
			t->ep[t->ep_cnt++] = *ep;
	}
	cr_assert_eq(n, 0);
	import_free(im);
}

/* The text as a file that is gone when it is closed. */
static void import_text(const char *text, uint32_t tid, struct told *t)
{
	char path[] = "/tmp/criticast-import-XXXXXX";
	int fd = mkstemp(path);

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	import_file(path, tid, t);
	unlink(path);
}

static const struct cc_request *only_request(const struct engine *e)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(e, &cnt);

	cr_assert_eq(cnt, 1, "%zu requests", cnt);
	cr_assert(r[0]->path_ok);
	cr_expect_eq(r[0]->path_sum_ns, r[0]->end - r[0]->start);
	return r[0];
}

/* "class ns, ..." of depth 0 */
static void path_text(const struct cc_request *r, char *buf, size_t cap)
{
	const struct cc_piece *path = path_of(r);
	size_t len = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < r->path_cnt; i++)
		if (path[i].depth == 0)
			len += (size_t)snprintf(buf + len, cap - len, "%s%s %llu", len ? ", " : "",
						wait_class_name(path[i].cls),
						(unsigned long long)(path[i].end - path[i].start));
}

static const struct cc_request *span(struct told *t, uint32_t tid, cc_ns lo, cc_ns hi)
{
	const struct engine_span s = { tid, lo, hi };

	cr_assert_eq(engine_finish_span(t->e, &s), 0);
	return only_request(t->e);
}

Test(import, a_missing_cpu_is_unknown_time)
{
	struct told t;
	char path[512];

	import_file(DIR "critical-path.ftrace", 3487, &t);
	const struct cc_request *r = span(&t, 3487, 26186336715000, 26186337902000);

	path_text(r, path, sizeof(path));
	cr_expect_str_eq(path, "blocked 104000, unknown 1063000, runq 20000");
	cr_expect_eq(path_of(r)[0].waker_tid, 3490);
	cr_expect_not_null(strstr(t.notes, "28 switches, 12 wakes"));
	cr_expect_not_null(strstr(t.notes, "no events of CPU 1,"));
	cr_expect_leq(r->confidence, 59);
	engine_free(t.e);
}

Test(import, syscalls_and_interrupt_context)
{
	struct told t;
	uint32_t seen = 0;

	import_file(DIR "syscalls.ftrace", 3977, &t);
	for (uint32_t i = 0; i < t.ep_cnt; i++) {
		if (t.ep[i].out != 395705939000)
			continue;
		seen++;
		cr_expect_eq(t.ep[i].wake, 395707867000); /* 1.928 ms */
		cr_expect_eq(t.ep[i].waker_tid, 184);
		cr_expect_eq(t.ep[i].h.flags & CC_EP_CTX_MASK, CC_CTX_TASK << CC_EP_CTX_SHIFT);
		cr_expect_eq(t.ep[i].h.aux, 23, "select");
	}
	engine_free(t.e);
	import_file(DIR "syscalls.ftrace", 3962, &t);
	for (uint32_t i = 0; i < t.ep_cnt; i++) {
		if (t.ep[i].out != 395706026000)
			continue;
		seen++;
		cr_expect_eq(t.ep[i].wake, 395707959000); /* 1.933 ms */
		cr_expect_eq(t.ep[i].waker_tid, 3977);
		cr_expect_eq(t.ep[i].h.flags & CC_EP_CTX_MASK, CC_CTX_SOFTIRQ << CC_EP_CTX_SHIFT);
	}
	cr_expect_eq(seen, 2);
	cr_expect_not_null(strstr(t.notes, "60 switches, 30 wakes"));
	cr_expect_null(strstr(t.notes, "no syscalls"));
	engine_free(t.e);
}

/* Waits read by eye from the public files: who slept, when, and who ended it in which context. */
struct wait_case {
	char file[32];
	uint32_t tid, waker;
	uint64_t out, wake, in; /* us */
	int ctx;
};

ParameterizedTestParameters(import, one_wait)
{
	static struct wait_case cases[] = {
		{ "android-sched.ftrace", 12954, 23337, 365761624258, 365761624526, 365761624582,
		  CC_CTX_TASK },
		{ "android-sched.ftrace", 12954, 0, 365761624682, 365761624758, 365761624893,
		  CC_CTX_IDLE },
		{ "android-sched-irq.ftrace", 1338, 2418, 108255644, 108258361, 108258363,
		  CC_CTX_HARDIRQ },
		{ "android-sched-irq.ftrace", 2101, 1603, 108258062, 108258883, 108258938,
		  CC_CTX_TASK },
		{ "android.systrace", 14582, 14585, 50260647756, 50260648784, 50260648804,
		  CC_CTX_TASK },
		{ "android.systrace", 11043, 0, 50260648275, 50260663310, 50260663322,
		  CC_CTX_IDLE },
		{ "syscalls.ftrace", 3977, 184, 395705939, 395707867, 0, CC_CTX_TASK },
	};
	return cr_make_param_array(struct wait_case, cases, ARRAY_SIZE(cases));
}

ParameterizedTest(struct wait_case *c, import, one_wait)
{
	struct told t;
	char path[256];
	uint32_t seen = 0;

	snprintf(path, sizeof(path), DIR "%s", c->file);
	import_file(path, c->tid, &t);
	for (uint32_t i = 0; i < t.ep_cnt; i++) {
		const struct cc_rec_episode *ep = &t.ep[i];

		if (ep->out != CC_US(c->out))
			continue;
		seen++;
		cr_expect_eq(ep->wake, CC_US(c->wake));
		cr_expect(!c->in || ep->h.ts == CC_US(c->in));
		cr_expect_eq(ep->waker_tid, c->waker, "woken by %u", ep->waker_tid);
		cr_expect_eq((ep->h.flags & CC_EP_CTX_MASK) >> CC_EP_CTX_SHIFT, c->ctx);
	}
	cr_expect_eq(seen, 1);
	engine_free(t.e);
}

struct count_case {
	char file[64], expect[64], note[64];
	uint32_t waits; /* ended ones, also those of tasks first seen as they were woken */
};

ParameterizedTestParameters(import, counts)
{
	static struct count_case cases[] = {
		{ "critical-path.ftrace", "28 switches, 12 wakes", "no events of CPU 1,", 12 },
		{ "syscalls.ftrace", "60 switches, 30 wakes", "", 31 },
		{ "android-sched.ftrace", "82 switches, 57 wakes", "no sched_waking", 63 },
		{ "android-sched-irq.ftrace", "67 switches, 45 wakes", "no sched_waking", 63 },
		{ "android.systrace", "58 switches, 33 wakes", "no sched_waking", 38 },
		{ "blocked.systrace", "4 switches, 0 wakes, 2 stacks", "no wakes", 0 },
		{ "blocked-reason.systrace", "10 switches, 0 wakes, 3 stacks", "begins at time 0",
		  1 },
		{ "unknown-name.systrace", "1 switches, 0 wakes", "no wakes", 0 },
		{ "rtapp.report", "200 switches, 0 wakes", "no wakes", 106 },
		{ "edge-lines.txt", "9 switches, 5 wakes", "246 events were lost, in 2 places", 6 },
		/* tid 0, which some of these have as a thread, is the idle task */
		{ "perfview/mixed_switches.perf.data.dump", "4 switches, 0 wakes, 4 stacks",
		  "run unseen 2 times", 0 },
		{ "perfview/one_complete_switch.perf.data.dump", "2 switches, 0 wakes, 2 stacks",
		  "run unseen 1 times", 0 },
		{ "perfview/one_complete_switch_format2.perf.data.dump",
		  "2 switches, 0 wakes, 2 stacks", "begins at time 0", 0 },
		{ "perfview/one_incomplete_switch.perf.data.dump", "1 switches, 0 wakes, 1 stacks",
		  "no wakes", 0 },
		{ "perfview/one_induced_switch.perf.data.dump", "1 switches, 0 wakes, 1 stacks",
		  "no wakes", 0 },
		{ "perfview/notimeblocked_induced.perf.data.dump", "2 switches, 0 wakes, 1 stacks",
		  "no wakes", 0 },
		{ "perfview/one_wakeup.perf.data.dump", "0 switches, 2 wakes",
		  "no events of CPU 31,", 1 },
	};
	return cr_make_param_array(struct count_case, cases, ARRAY_SIZE(cases));
}

ParameterizedTest(struct count_case *c, import, counts)
{
	struct told t;
	char path[256];

	snprintf(path, sizeof(path), DIR "%s", c->file);
	import_file(path, 0, &t);
	cr_expect_eq(engine_finish(t.e), 0);
	cr_expect_not_null(strstr(t.notes, c->expect), "%s: %s", c->file, t.notes);
	cr_expect_not_null(strstr(t.notes, c->note), "%s: %s", c->file, t.notes);
	cr_expect_eq(engine_stats(t.e)->malformed, 0);
	cr_expect_eq(t.episodes, c->waits, "%s: %u waits", c->file, t.episodes);
	if (strstr(c->note, "no wakes") || strstr(c->expect, " 0 wakes"))
		cr_expect_eq(t.woken, 0, "a wake was invented");
	engine_free(t.e);
}

/* A page that has the trace in it, of the older form and of the newer, says what the text says. */
Test(import, systrace_as_a_page)
{
	static const char *const form[2][3] = {
		{ "<!DOCTYPE html>\n<html><script>\nvar linuxPerfData = \"\\\n", "\\n\\\n",
		  "\\n\";\n</script></html>\n" },
		{ "<!DOCTYPE html>\n<html><script class=\"trace-data\" "
		  "type=\"application/text\">\n",
		  "\n", "</script>\n<script>x-1 [000] 1.0: sched_switch: no</script></html>\n" },
	};
	struct told plain, page;
	char *line = NULL, *text;
	size_t cap = 0, len;

	import_file(DIR "android.systrace", 0, &plain);
	for (int i = 0; i < 2; i++) {
		FILE *in = fopen(DIR "android.systrace", "r"), *out = open_memstream(&text, &len);
		ssize_t n;

		fputs(form[i][0], out);
		while ((n = getline(&line, &cap, in)) > 0) {
			n -= n >= 4 && !memcmp(line + n - 4, "\\n\\\n", 4) ? 4 : 1;
			fprintf(out, "%.*s%s", (int)n, line, form[i][1]);
		}
		fputs(form[i][2], out);
		fclose(in);
		fclose(out);
		import_text(text, 0, &page);
		cr_expect_eq(page.episodes, plain.episodes);
		cr_expect_eq(page.woken, plain.woken);
		cr_expect_str_eq(page.notes, plain.notes);
		engine_free(page.e);
		free(text);
	}
	engine_free(plain.e);
	free(line);
}

Test(import, blocked_reason_names_the_wait)
{
	struct told t;

	import_file(DIR "blocked.systrace", 2172, &t);
	const struct cc_request *r = span(&t, 2172, 21058854000, 21123840000);
	const struct cc_piece *wait = &path_of(r)[r->path_cnt - 1];

	cr_expect_eq(wait->cls, WAIT_FSYNC); /* __filemap_fdatawait_range */
	cr_expect(wait->flags & CC_PC_OPEN);
	engine_free(t.e);
}

/* Trace Compass, sched_only.xml: tid 1 preempted, running, preempted; tid 2 running, blocked,
 * running. */
Test(import, preempted_and_blocked)
{
	static const char text[] =
		"a-1 [000] d..3 0.000010: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 "
		"prev_state=R ==> next_comm=b next_pid=2 next_prio=120\n"
		"b-2 [000] d..3 0.000020: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 "
		"prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n"
		"a-1 [000] d..3 0.000030: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 "
		"prev_state=R ==> next_comm=b next_pid=2 next_prio=120\n"
		"b-2 [000] d..3 0.000040: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 "
		"prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n";
	struct told t;
	char path[512];

	import_text(text, 1, &t);
	path_text(span(&t, 1, 10000, 40000), path, sizeof(path));
	cr_expect_str_eq(path, "runq 10000, cpu 10000, runq 10000");
	engine_free(t.e);
	import_text(text, 2, &t);
	path_text(span(&t, 2, 10000, 40000), path, sizeof(path));
	cr_expect_str_eq(path, "cpu 10000, blocked 10000, cpu 10000");
	engine_free(t.e);
}

/* A CPU's events are lost: the thread that was on it, and is next seen elsewhere, did not run
 * through. */
Test(import, what_was_lost_is_not_cpu)
{
	static const char text[] =
		"b-2 [000] d..3 1.000000: sched_switch: prev_comm=b prev_pid=2 prev_prio=120 "
		"prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n"
		"CPU:0 [LOST 7 EVENTS]\n"
		"c-3 [000] d..3 1.000500: sched_switch: prev_comm=c prev_pid=3 prev_prio=120 "
		"prev_state=S ==> next_comm=d next_pid=4 next_prio=120\n"
		"e-5 [001] d..3 1.000600: sched_switch: prev_comm=e prev_pid=5 prev_prio=120 "
		"prev_state=S ==> next_comm=a next_pid=1 next_prio=120\n"
		"a-1 [001] d..3 1.000700: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 "
		"prev_state=S ==> next_comm=e next_pid=5 next_prio=120\n";
	struct told t;
	char path[512];

	import_text(text, 1, &t);
	path_text(span(&t, 1, CC_S(1), CC_S(1) + CC_US(700)), path, sizeof(path));
	cr_expect_str_eq(path, "unknown 600000, cpu 100000");
	cr_expect_eq(engine_stats(t.e)->lost_cnt, 8, "7 told, 1 found out");
	engine_free(t.e);
}

/* perf does not tell an interrupt from whom it interrupted, unless by the waker's stack. */
Test(import, perf_context_comes_from_the_stack)
{
	static const char text[] =
		"a 1/1 [000] 1.000000: sched:sched_switch: a:1 [120] S ==> b:2 [120]\n"
		"\tffffffff81000010 __schedule+0x10 ([kernel.kallsyms])\n"
		"\t    7f0000001000 read+0x10 (/lib/libc.so.6)\n\n"
		"b 2/2 [000] 1.000100: sched:sched_waking: comm=a pid=1 prio=120 target_cpu=000\n"
		"\tffffffff81000020 try_to_wake_up+0x10 ([kernel.kallsyms])\n"
		"\tffffffff81000030 __do_softirq+0x10 ([kernel.kallsyms])\n\n"
		"b 2/2 [000] 1.000200: sched:sched_switch: b:2 [120] R ==> a:1 [120]\n\n"
		"a 1/1 [000] 1.000300: sched:sched_switch: a:1 [120] S ==> b:2 [120]\n\n"
		"b 2/2 [000] 1.000400: sched:sched_waking: comm=a pid=1 prio=120 target_cpu=000\n\n"
		"b 2/2 [000] 1.000500: sched:sched_switch: b:2 [120] R ==> a:1 [120]\n";
	struct told t;

	import_text(text, 1, &t);
	cr_assert_eq(t.ep_cnt, 2);
	cr_expect_eq(t.ep[0].h.flags & CC_EP_CTX_MASK, CC_CTX_SOFTIRQ << CC_EP_CTX_SHIFT);
	cr_expect_eq(t.ep[1].h.flags & CC_EP_CTX_MASK, CC_CTX_TASK << CC_EP_CTX_SHIFT);
	cr_expect_not_null(strstr(t.notes, "of 1 wakes it is not told"));
	const struct cc_request *r = span(&t, 1, CC_S(1), CC_S(1) + CC_US(500));
	struct engine_stack s;
	struct engine_frame f;

	cr_assert(engine_stack(t.e, path_of(r)[0].ustack, &s));
	cr_assert(engine_frame(t.e, s.tgid, s.gen, s.ip[0], &f));
	cr_expect_eq(strncmp(f.text, "read+0x10", f.text_len), 0);
	cr_expect(path_of(r)[r->path_cnt - 2].evidence & CC_EV_BIT(WAKER_IMPORT) ||
		  path_of(r)[r->path_cnt - 3].evidence & CC_EV_BIT(WAKER_IMPORT));
	engine_free(t.e);
}

Test(import, hostile_names_stay_within_their_record)
{
	struct told t;
	struct engine_task task;

	import_file(DIR "hostile.bin", 4105, &t);
	cr_assert(engine_task(t.e, 4105, 0, &task));
	cr_expect_lt(strlen(task.comm), CC_COMM_LEN);
	engine_free(t.e);
}

/* ---- what is refused ---------------------------------------------------------------------- */

static void expect_refusal(const void *bytes, size_t len, const char *says)
{
	char path[] = "/tmp/criticast-import-XXXXXX";
	struct cc_source *src;
	struct cc_err err = { .msg = "" };
	int fd = mkstemp(path);

	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	close(fd);
	cr_expect_neq(trace_source_new(path, &err, &src), 0);
	cr_expect_not_null(strstr(err.msg, says), "'%s' does not say '%s'", err.msg, says);
	unlink(path);
}

Test(import, other_formats_are_named_with_their_converter)
{
	static const uint8_t perfetto[] = { 0x0a, 3, 0x08, 1, 0, 0x0a, 2, 0x10, 5 };

	expect_refusal("PERFILE2\0\0\0\0\0\0\0\0", 16, "perf script -i");
	expect_refusal("\x17\x08\x44tracing6\0", 12, "trace-cmd report");
	expect_refusal(perfetto, sizeof(perfetto), "traceconv systrace");
	expect_refusal("\xc1\x1f\xfc\xc1....", 8, "CTF");
	expect_refusal("/* CTF 1.8 */", 13, "CTF");
	expect_refusal("hello world, 12 lines\n", 22, "not a .criticast recording");
	expect_refusal("", 0, "it is empty");
}

struct refused_case {
	char file[64];
};

ParameterizedTestParameters(import, no_scheduler_events)
{
	static struct refused_case cases[] = {
		{ "cpu-clock.perf" },
		{ "trivial.html" },
		{ "bad-print.systrace" },
		{ "perfview/corner_case_process_names.perf.data.dump" },
		{ "perfview/disk_io_no_stacks.perf.data.dump" },
		{ "perfview/exec_process.perf.data.dump" },
		{ "perfview/ms_stack.perf.data.dump" },
		{ "perfview/no_stack_frames.perf.data.dump" },
		{ "perfview/no_stack_frames2.perf.data.dump" },
		{ "perfview/onegeneric.perf.data.dump" },
		{ "perfview/space_sep_command.perf.data.dump" },
		{ "perfview/two_small_generic.perf.data.dump" },
		{ "perfview/twodifferentlongstacks.perf.data.dump" },
		{ "perfview/twogenericsame.perf.data.dump" },
		{ "perfview/twogenericsamelongstacks.perf.data.dump" },
	};
	return cr_make_param_array(struct refused_case, cases, ARRAY_SIZE(cases));
}

ParameterizedTest(struct refused_case *c, import, no_scheduler_events)
{
	struct cc_source *src;
	struct cc_err err = { .msg = "" };
	char path[256];

	snprintf(path, sizeof(path), DIR "%s", c->file);
	cr_expect_neq(trace_source_new(path, &err, &src), 0);
	cr_expect_not_null(strstr(err.msg, "no scheduler events"), "%s", err.msg);
}
