/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of other tools: every form of line, and public traces whose answers are known. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "foreign.h"
#include "import.h"
#include "sched_line.h"
#include "trace.h"

TestSuite(import, .timeout = 60);

#define DIR CC_SRC_DIR "/testdata/import/"

/* ---- lines -------------------------------------------------------------------------------- */

struct line_case {
	char text[240];
	enum sched_kind kind;
	uint64_t ts;
	uint32_t cpu, cur, tgid, a, b, state;
	char comm_a[24], comm_b[24];
	int ctx;
	bool preempt;
};

#define NO_CPU SCHED_NO_CPU
#define SW "sched_switch: prev_comm="

ParameterizedTestParameters(import, line)
{
	static struct line_case cases[] = {
		{ "            srv-4101  [002] d..3  100.000001: " SW
		  "srv prev_pid=4101 prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 "
		  "next_prio=120",
		  SCHED_SWITCH, 100000001000, 2, 4101, 0, 4101, 0, 1, "srv", "swapper/2",
		  CC_CTX_TASK, false },
		{ "            srv-4101  ( 4100) [002] d..3  100.000002: sched_waking: comm=srv "
		  "pid=4102 prio=120 target_cpu=001",
		  SCHED_WAKING, 100000002000, 2, 4101, 4100, 4102, 0, 0, "srv", "", CC_CTX_TASK,
		  false },
		{ "          <idle>-0    (-----) [001] dNh5  100.000003: sched_wakeup: comm=srv "
		  "pid=4102 prio=120 success=1 target_cpu=001",
		  SCHED_WAKEUP, 100000003000, 1, 0, 0, 4102, 0, 0, "srv", "", CC_CTX_HARDIRQ,
		  false },
		{ "            srv-4102  [001]  100.000005: sched_wakeup: comm=db pid=4200 "
		  "prio=120 target_cpu=000",
		  SCHED_WAKEUP, 100000005000, 1, 4102, 0, 4200, 0, 0, "db", "", -1, false },
		{ "     ksoftirqd/3-40   [003] d...213  100.000006: sched_waking: comm=db pid=4200 "
		  "prio=120 target_cpu=000",
		  SCHED_WAKING, 100000006000, 3, 40, 0, 4200, 0, 0, "db", "", CC_CTX_TASK, false },
		{ "     srv-40   [003] dN.s213  100.000006: sched_waking: comm=db pid=4200 "
		  "prio=120 target_cpu=000",
		  SCHED_WAKING, 100000006000, 3, 40, 0, 4200, 0, 0, "db", "", CC_CTX_SOFTIRQ,
		  false },
		{ "     Web Worker 7-4300 [000] d..3  100.000007: " SW
		  "Web Worker 7 prev_pid=4300 prev_prio=120 prev_state=D ==> "
		  "next_comm=kworker/0:2H next_pid=55 next_prio=100",
		  SCHED_SWITCH, 100000007000, 0, 4300, 0, 4300, 55, 2, "Web Worker 7",
		  "kworker/0:2H", CC_CTX_TASK, false },
		{ "        [io 0-1]-4301 [000] d..3  100.000008: " SW
		  "[io 0-1] prev_pid=4301 prev_prio=120 prev_state=R+ ==> next_comm=a b next_pid=3 "
		  "next_pid=4302 next_prio=120",
		  SCHED_SWITCH, 100000008000, 0, 4301, 0, 4301, 4302, 0, "[io 0-1]",
		  "a b next_pid=3", CC_CTX_TASK, true },
		{ "   srv-4101  [002] d..3  100.000009: " SW
		  "srv prev_pid=4101 prev_prio=120 prev_state=D|K ==> next_comm=swapper/2 "
		  "next_pid=0 next_prio=120",
		  SCHED_SWITCH, 100000009000, 2, 4101, 0, 4101, 0, 2 | SCHED_STATE_UNKNOWN, "srv",
		  "swapper/2", CC_CTX_TASK, false },
		{ "            srv-4101  [002]   100.000010: sched_switch:         srv:4101 [120] "
		  "S ==> kworker/2:0:77 [120]",
		  SCHED_SWITCH, 100000010000, 2, 4101, 0, 4101, 77, 1, "srv", "kworker/2:0", -1,
		  false },
		{ "            srv-4102  [001]   100.000011: sched_wakeup:         srv:4101 "
		  "[120]<CANT FIND FIELD success> CPU:002",
		  SCHED_WAKEUP, 100000011000, 1, 4102, 0, 4101, 0, 0, "srv", "", -1, false },
		{ "srv  4101 [002]   100.000012: sched:" SW
		  "srv prev_pid=4101 prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 "
		  "next_prio=120",
		  SCHED_SWITCH, 100000012000, 2, 4101, 0, 4101, 0, 1, "srv", "swapper/2", -1,
		  false },
		{ "srv  4100/4101 [002]   100.000013456:          1 sched:sched_waking: comm=srv "
		  "pid=4102 prio=120 target_cpu=001",
		  SCHED_WAKING, 100000013456, 2, 4101, 4100, 4102, 0, 0, "srv", "", -1, false },
		{ "srv  4101 100.000014: sched:sched_wakeup: comm=srv pid=4102 prio=120 success=1 "
		  "target_cpu=001",
		  SCHED_WAKEUP, 100000014000, NO_CPU, 4101, 0, 4102, 0, 0, "srv", "", -1, false },
		{ "srv  4100/4101 [002]   100.000015: sched:sched_wakeup/call-graph=no/: comm=srv "
		  "pid=4102 prio=120 target_cpu=001",
		  SCHED_WAKEUP, 100000015000, 2, 4101, 4100, 4102, 0, 0, "srv", "", -1, false },
		{ ":4999  4999/4999 [002]   100.000016: sched:sched_switch: srv:4101 [120] S ==> "
		  "swapper/2:0 [120]",
		  SCHED_SWITCH, 100000016000, 2, 4999, 4999, 4101, 0, 1, "srv", "swapper/2", -1,
		  false },
		{ "srv 129378 [006] 100.000018: sched:sched_wakeup_new:", SCHED_BODY_NEXT,
		  100000018000, 6, 129378, 0, 0, 0, 0, "", "", -1, false },
		{ "            srv-4101  [002] d..3  100.000019: sched_wakeup: comm=srv pid=4102 "
		  "prio=120 success=1 target_cpu=001\\n\\",
		  SCHED_WAKEUP, 100000019000, 2, 4101, 0, 4102, 0, 0, "srv", "", CC_CTX_TASK,
		  false },
		{ "   srv-41  [002] d..3  100.000019: sched_wakeup: comm=srv pid=4102 prio=120 "
		  "success=0 target_cpu=001",
		  SCHED_NOTHING, 100000019000, 2, 41, 0, 4102, 0, 0, "srv", "", CC_CTX_TASK,
		  false },
		{ "          <idle>-0    [002] d..3  100.000020: sched_blocked_reason: pid=4101 "
		  "iowait=1 caller=io_schedule+0x1/0x2",
		  SCHED_REASON, 100000020000, 2, 0, 0, 4101, 0, 0, "", "", CC_CTX_TASK, false },
		/* trace-cmd report: as it is, -l, --ts-diff, -t, of an instance */
		{ "       trace-cmd-6973  [002] d..2. 259445.106979: sched_waking:         "
		  "comm=srv "
		  "pid=41 prio=120 target_cpu=001",
		  SCHED_WAKING, 259445106979000, 2, 6973, 0, 41, 0, 0, "srv", "", CC_CTX_TASK,
		  false },
		{ "             srv-41      1dNs2. 259445.107000: sched_waking:         db:42 "
		  "[120]<CANT FIND FIELD success> CPU:000",
		  SCHED_WAKING, 259445107000000, 1, 41, 0, 42, 0, 0, "db", "", CC_CTX_SOFTIRQ,
		  false },
		{ "          <idle>-0      12..... 259445.107010: sched_switch:         "
		  "swapper/0:0 "
		  "[120] R ==> db:42 [120]",
		  SCHED_SWITCH, 259445107010000, 12, 0, 0, 0, 42, 0, "swapper/0", "db", CC_CTX_TASK,
		  true },
		{ "             srv-41    [001] 259445.107020: (+12)  sched_switch:         srv:41 "
		  "[120] S ==> swapper/1:0 [120]",
		  SCHED_SWITCH, 259445107020000, 1, 41, 0, 41, 0, 1, "srv", "swapper/1", -1,
		  false },
		{ "             srv-41    [001] d..2. 259445.107040123: sched_switch:         "
		  "prev_comm=srv prev_pid=41 prev_prio=120 prev_state=S ==> next_comm=swapper/1 "
		  "next_pid=0 next_prio=120",
		  SCHED_SWITCH, 259445107040123, 1, 41, 0, 41, 0, 1, "srv", "swapper/1",
		  CC_CTX_TASK, false },
		{ "net.dat:          kworker/u8:1-7     [001] d.h2. 259445.107045: "
		  "sched_wakeup_new: "
		  "    db:43 [120] CPU:002",
		  SCHED_WAKEUP_NEW, 259445107045000, 1, 7, 0, 43, 0, 0, "db", "", CC_CTX_HARDIRQ,
		  false },
		{ "CPU:3 [LOST 123 EVENTS]", SCHED_LOST, 0, 3, 0, 0, 0, 0, 0, "", "", -1, false },
		{ "CPU:3 [123 EVENTS DROPPED]", SCHED_LOST, 0, 3, 0, 0, 0, 0, 0, "", "", -1,
		  false },
		{ "\xef\xbb\xbf"
		  "6\t0/0\t\t[000] 0.0:\t\t\t1 sched:sched_switch: comm1:0 [0] S ==> comm2:1 [1]",
		  SCHED_SWITCH, 0, 0, 0, 0, 0, 1, 1, "comm1", "comm2", -1, false },
		{ "    2/2\t\t[000] 1.5:\t\t\t1 sched_switch: :7 [0] Z ==> k/[2]:1 [1]",
		  SCHED_SWITCH, 1500000000, 0, 2, 2, 7, 1, SCHED_STATE_DEAD, "", "k/[2]", -1,
		  false },
		{ "   swapper     0/0     [009] 0.0:    1     sched:sched_wakeup: task fio:243615 "
		  "[120] success=1 [031] ffffffff8bad311d ttwu_do_wakeup ([kernel.kallsyms])",
		  SCHED_WAKEUP, 0, 9, 0, 0, 243615, 0, 0, "fio", "", -1, false },
		{ "	    7f81ee50c5d7 ioctl+0x7 (/lib/libc-2.27.so)", SCHED_FRAME, 0, NO_CPU, 0,
		  0, 0, 0, 0, "", "", -1, false },
		{ "# tracer: nop", SCHED_NOTHING, 0, NO_CPU, 0, 0, 0, 0, 0, "", "", -1, false },
		{ "hello, this is no trace", SCHED_STRANGE, 0, NO_CPU, 0, 0, 0, 0, 0, "", "", -1,
		  false },
		{ "x-1 [000] 1.0: sched_switch: garbage", SCHED_STRANGE, 1000000000, 0, 1, 0, 0, 0,
		  0, "", "", -1, false },
		{ "init-1 [000] .... 1.0: sched_process_fork: comm=init pid=1 child_comm=init "
		  "child_pid=9",
		  SCHED_FORK, 1000000000, 0, 1, 0, 1, 9, 0, "init", "init", CC_CTX_TASK, false },
		{ "init 1 [000] 1.0: sched:sched_process_exit: comm=a b pid=9 prio=120", SCHED_EXIT,
		  1000000000, 0, 1, 0, 9, 0, 0, "a b", "", -1, false },
	};
	return cr_make_param_array(struct line_case, cases, ARRAY_SIZE(cases));
}

static bool same(struct slice s, const char *text)
{
	return s.n == strlen(text) && (!s.n || !memcmp(s.p, text, s.n));
}

ParameterizedTest(struct line_case *c, import, line)
{
	struct sched_line l;

	sched_line_parse((struct slice){ c->text, strlen(c->text) }, &l);
	cr_expect_eq(l.kind, c->kind, "%s: kind %d", c->text, l.kind);
	cr_expect_eq(l.ts, c->ts, "%s: ts %llu", c->text, (unsigned long long)l.ts);
	cr_expect_eq(l.cpu, c->cpu, "%s: cpu %u", c->text, l.cpu);
	cr_expect_eq(l.cur.tid, c->cur, "%s: tid %u", c->text, l.cur.tid);
	cr_expect_eq(l.tgid, c->tgid, "%s: tgid %u", c->text, l.tgid);
	cr_expect_eq(l.a.tid, c->a, "%s: a %u", c->text, l.a.tid);
	cr_expect_eq(l.b.tid, c->b, "%s: b %u", c->text, l.b.tid);
	cr_expect(same(l.a.comm, c->comm_a), "%s: a '%.*s'", c->text, (int)l.a.comm.n, l.a.comm.p);
	cr_expect(same(l.b.comm, c->comm_b), "%s: b '%.*s'", c->text, (int)l.b.comm.n, l.b.comm.p);
	cr_expect_eq(l.state, c->state, "%s: state %x", c->text, l.state);
	cr_expect_eq(l.preempt, c->preempt, "%s", c->text);
	cr_expect_eq(l.ctx, c->ctx, "%s: ctx %d", c->text, l.ctx);
}

/* What stands before the task, of which file or instance it is, is not its name. */
Test(import, names_before_the_task)
{
	static const char *const lines[] = {
		"net.dat:          kworker/u8:1-7     [001] d.h2. 259445.107045: sched_wakeup: "
		"db:43 [120]",
		"inst: kworker/u8:1-7     [001] d.h2. 259445.107045: sched_wakeup: db:43 [120]",
	};
	struct sched_line l;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		sched_line_parse((struct slice){ lines[i], strlen(lines[i]) }, &l);
		cr_expect_lt(l.cur.comm.n, CC_COMM_LEN);
		cr_expect_eq(slice_find(l.cur.comm, "kworker/u8:1", true), l.cur.comm.n - 12, "%s",
			     lines[i]);
	}
	sched_line_parse((struct slice){ lines[0], strlen(lines[0]) }, &l);
	cr_expect(same(l.cur.comm, "kworker/u8:1"));
}

Test(import, syscall_forms)
{
	static const char *const enter[] = {
		"srv 1 [000] 1.0: raw_syscalls:sys_enter: NR 202 (7f00, 80, 2, 0, 0, 0)",
		"srv-1 [000] .... 1.0: sys_enter: NR 202 (7f00, 80, 2, 0, 0, 0)",
		"srv 1 [000] 1.0: syscalls:sys_enter_futex: uaddr: 0x7f00, op: 0x00000080, val: "
		"0x00000002",
		"srv-1 [000] .... 1.0: sys_futex(uaddr: 7f00, op: 80, val: 2)",
	};
	static const char *const leave[] = {
		"srv 1 [000] 1.0: raw_syscalls:sys_exit: NR 202 = 0",
		"srv 1 [000] 1.0: syscalls:sys_exit_futex: 0x0",
		"srv-1 [000] .... 1.0: sys_futex -> 0x0",
	};
	struct sched_line l;

	for (size_t i = 0; i < ARRAY_SIZE(enter); i++) {
		sched_line_parse((struct slice){ enter[i], strlen(enter[i]) }, &l);
		cr_expect_eq(l.kind, SCHED_SYS_ENTER, "%s", enter[i]);
		cr_expect_eq(l.nr, 202, "%s: %d", enter[i], l.nr);
		cr_expect(l.args[0] == 0x7f00 && l.args[1] == 0x80 && l.args[2] == 2, "%s",
			  enter[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(leave); i++) {
		sched_line_parse((struct slice){ leave[i], strlen(leave[i]) }, &l);
		cr_expect_eq(l.kind, SCHED_SYS_EXIT, "%s", leave[i]);
	}
}

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
	size_t len = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < r->path_cnt; i++)
		if (r->path[i].depth == 0)
			len += (size_t)snprintf(
				buf + len, cap - len, "%s%s %llu", len ? ", " : "",
				wait_class_name(r->path[i].cls),
				(unsigned long long)(r->path[i].end - r->path[i].start));
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
	cr_expect_eq(r->path[0].waker_tid, 3490);
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
	const struct cc_piece *wait = &r->path[r->path_cnt - 1];

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

	cr_assert(engine_stack(t.e, r->path[0].ustack, &s));
	cr_assert(engine_frame(t.e, s.tgid, s.ip[0], &f));
	cr_expect_eq(strncmp(f.text, "read+0x10", f.text_len), 0);
	cr_expect(r->path[r->path_cnt - 2].evidence & CC_EV_BIT(WAKER_IMPORT) ||
		  r->path[r->path_cnt - 3].evidence & CC_EV_BIT(WAKER_IMPORT));
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
