/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of other tools' traces: every form of header and body. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "event.h"
#include "sched_line.h"

TestSuite(import_line, .timeout = 60);

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

ParameterizedTestParameters(import_line, forms)
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

ParameterizedTest(struct line_case *c, import_line, forms)
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
Test(import_line, names_before_the_task)
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

Test(import_line, syscall_forms)
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
