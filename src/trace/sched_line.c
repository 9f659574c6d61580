/* SPDX-License-Identifier: Apache-2.0 */
#include "sched_line.h"

#define TID_MAX (1u << 22)

/* ---- pieces of bodies --------------------------------------------------------------------- */

/* Letters of TASK_STATE_TO_CHAR_STR by release: include/linux/sched.h, fs/proc/array.c. A '+' or a
 * bare R means that it was preempted. Letters not known leave a sleep of an unknown kind. */
static void read_state(struct slice s, struct sched_line *l)
{
	l->state = 0;
	for (size_t i = 0; i < s.n; i++) {
		switch (s.p[i]) {
		case 'R':
		case '+':
		case '|':
			break;
		case 'S':
			l->state |= 1;
			break;
		case 'D':
		case 'I': /* TASK_IDLE: uninterruptible, not counted as load */
			l->state |= 2;
			break;
		case 'T':
			l->state |= 4;
			break;
		case 't':
			l->state |= 8;
			break;
		case 'X':
		case 'x':
		case 'Z':
			l->state |= SCHED_STATE_DEAD;
			break;
		default:
			l->state |= SCHED_STATE_UNKNOWN;
			break;
		}
	}
	l->preempt = !l->state || (s.n && s.p[s.n - 1] == '+');
}

/* "srv:4101 [120]": the comm may hold colons and brackets. Leaves what follows the ']'. */
static bool read_pair(struct slice *s, struct sched_task *ret)
{
	for (size_t i = 0; i < s->n; i++) {
		struct slice t = slice_from(*s, i), comm = { s->p, i };
		uint64_t tid, prio;

		if (!slice_eat(&t, ':') || !slice_number(&t, TID_MAX, &tid))
			continue;
		slice_skip_blanks(&t);
		if (!slice_eat(&t, '['))
			continue;
		slice_eat(&t, '-');
		if (!slice_number(&t, UINT32_MAX, &prio) || !slice_eat(&t, ']'))
			continue;
		*ret = (struct sched_task){ (uint32_t)tid, slice_trim(comm) };
		*s = t;
		return true;
	}
	return false;
}

/* "<@comm_key>COMM<@tid_key>N": a comm that holds the key itself gives way to the last one. */
static bool read_named(struct slice s, const char *comm_key, const char *tid_key,
		       struct sched_task *ret)
{
	ptrdiff_t comm = slice_find(s, comm_key, false), tid = slice_find(s, tid_key, true);
	size_t from = (size_t)comm + strlen(comm_key);
	uint64_t v;

	if (tid < 0 || !slice_value(s, tid_key, TID_MAX, &v))
		return false;
	ret->tid = (uint32_t)v;
	ret->comm = (struct slice){ s.p, 0 };
	if (comm >= 0 && from <= (size_t)tid)
		ret->comm = (struct slice){ s.p + from, (size_t)tid - from };
	return true;
}

/* ---- bodies ------------------------------------------------------------------------------- */

typedef bool body_fn(struct slice body, struct sched_line *l);

static bool body_switch(struct slice s, struct sched_line *l)
{
	ptrdiff_t arrow = slice_find(s, " ==> next_comm=", false);
	struct slice rest, state;

	if (arrow >= 0) {
		struct slice prev = { s.p, (size_t)arrow };
		ptrdiff_t at = slice_find(prev, " prev_state=", true);

		if (at < 0 || !read_named(prev, "prev_comm=", " prev_pid=", &l->a) ||
		    !read_named(slice_from(s, (size_t)arrow + 5),
				"next_comm=", " next_pid=", &l->b))
			return false;
		read_state(slice_from(prev, (size_t)at + 12), l);
		return true;
	}
	rest = s;
	if (!read_pair(&rest, &l->a))
		return false;
	state = slice_word(&rest);
	slice_skip_blanks(&rest);
	if (!state.n || !slice_starts(rest, "==>"))
		return false;
	read_state(state, l);
	rest = slice_trim(slice_from(rest, 3));
	return read_pair(&rest, &l->b);
}

/* A CPU in what follows the task: "target_cpu=003", "CPU:003", "[031]". */
static void read_target(struct slice s, struct sched_line *l)
{
	static const char *const keys[] = { "target_cpu=", "CPU:", "[" };
	uint64_t cpu;

	l->target = SCHED_NO_CPU;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (slice_value(s, keys[i], 8191, &cpu)) {
			l->target = (uint32_t)cpu;
			return;
		}
	}
}

static bool body_wake(struct slice s, struct sched_line *l)
{
	struct slice rest = s;

	if (slice_starts(s, "comm=")) {
		if (!read_named(s, "comm=", " pid=", &l->a))
			return false;
	} else {
		if (slice_starts(rest, "task "))
			rest = slice_from(rest, 5);
		if (!read_pair(&rest, &l->a))
			return false;
	}
	if (slice_find(rest, "success=0", false) >= 0)
		l->kind = SCHED_NOTHING; /* it was not asleep */
	read_target(rest, l);
	return true;
}

static bool body_fork(struct slice s, struct sched_line *l)
{
	ptrdiff_t child = slice_find(s, " child_comm=", true);
	uint64_t tid;

	if (child >= 0)
		return read_named((struct slice){ s.p, (size_t)child }, "comm=", " pid=", &l->a) &&
		       read_named(slice_from(s, (size_t)child),
				  " child_comm=", " child_pid=", &l->b);
	/* "comm=a pid=1 child_comm=b child_pid=2" as trace-cmd has it: "comm a:1 child b:2" */
	if (!slice_value(s, "child_pid=", TID_MAX, &tid) || !slice_value(s, " pid=", TID_MAX, &tid))
		return false;
	l->a.tid = (uint32_t)tid;
	slice_value(s, "child_pid=", TID_MAX, &tid);
	l->b.tid = (uint32_t)tid;
	return true;
}

static bool body_newtask(struct slice s, struct sched_line *l)
{
	ptrdiff_t flags = slice_find(s, " clone_flags=", true);

	l->a = l->cur;
	return read_named((struct slice){ s.p, flags < 0 ? s.n : (size_t)flags },
			  " comm=", "pid=", &l->b);
}

static bool body_exec(struct slice s, struct sched_line *l)
{
	uint64_t tid, old;

	if (!slice_value(s, " pid=", TID_MAX, &tid) || !slice_value(s, " old_pid=", TID_MAX, &old))
		return false;
	l->a.tid = (uint32_t)tid;
	l->b.tid = (uint32_t)old;
	return true;
}

static bool body_task(struct slice s, struct sched_line *l)
{
	return read_named(s, "comm=", " pid=", &l->a) || read_pair(&s, &l->a);
}

static bool body_rename(struct slice s, struct sched_line *l)
{
	ptrdiff_t end = slice_find(s, " oom_score_adj=", true);
	struct slice t = { s.p, end < 0 ? s.n : (size_t)end };
	ptrdiff_t at = slice_find(t, " newcomm=", true);
	uint64_t tid;

	if (at < 0 || !slice_value((struct slice){ s.p, (size_t)at }, "pid=", TID_MAX, &tid))
		return false;
	l->a = (struct sched_task){ (uint32_t)tid, slice_from(t, (size_t)at + 9) };
	return true;
}

static bool body_reason(struct slice s, struct sched_line *l)
{
	uint64_t tid, iowait;
	ptrdiff_t at = slice_find(s, "caller=", false);

	if (!slice_value(s, "pid=", TID_MAX, &tid) || !slice_value(s, "iowait=", 1, &iowait))
		return false;
	l->a.tid = (uint32_t)tid;
	l->iowait = iowait != 0;
	if (at >= 0)
		l->text = slice_trim(slice_from(s, (size_t)at + 7));
	return true;
}

static bool body_soft(struct slice s, struct sched_line *l)
{
	(void)s;
	l->soft = true;
	return true;
}

static bool body_none(struct slice s, struct sched_line *l)
{
	(void)s;
	(void)l;
	return true;
}

/* "NR 202 (7ffe, 80, 2)" */
static bool body_raw_syscall(struct slice s, struct sched_line *l)
{
	uint64_t nr;
	ptrdiff_t at = slice_find(s, "(", false);

	if (!slice_value(s, "NR ", 1023, &nr))
		return slice_starts(s, "NR -"); /* -1: none */
	l->nr = (int32_t)nr;
	s = slice_from(s, at < 0 ? s.n : (size_t)at + 1);
	while (l->arg_cnt < ARRAY_SIZE(l->args) && slice_hex(&s, &l->args[l->arg_cnt])) {
		l->arg_cnt++;
		slice_eat(&s, ',');
		slice_skip_blanks(&s);
	}
	return true;
}

/* "uaddr: 0x7ffe, op: 80": values after colons, in hex. */
static void read_args(struct slice s, struct sched_line *l)
{
	while (l->arg_cnt < ARRAY_SIZE(l->args)) {
		ptrdiff_t at = slice_find(s, ": ", false);

		if (at < 0)
			return;
		s = slice_from(s, (size_t)at + 2);
		if (!slice_hex(&s, &l->args[l->arg_cnt]))
			return;
		l->arg_cnt++;
	}
}

static const struct {
	const char *name;
	enum sched_kind kind;
	body_fn *read;
} events[] = {
	{ "sched_switch", SCHED_SWITCH, body_switch },
	{ "sched_waking", SCHED_WAKING, body_wake },
	{ "sched_wakeup", SCHED_WAKEUP, body_wake },
	{ "sched_wakeup_new", SCHED_WAKEUP_NEW, body_wake },
	{ "sched_process_fork", SCHED_FORK, body_fork },
	{ "task_newtask", SCHED_FORK, body_newtask },
	{ "sched_process_exec", SCHED_EXEC, body_exec },
	{ "sched_process_exit", SCHED_EXIT, body_task },
	{ "task_rename", SCHED_RENAME, body_rename },
	{ "sched_blocked_reason", SCHED_REASON, body_reason },
	{ "sys_enter", SCHED_SYS_ENTER, body_raw_syscall },
	{ "sys_exit", SCHED_SYS_EXIT, body_none },
	{ "irq_handler_entry", SCHED_IRQ_ENTER, body_none },
	{ "irq_handler_exit", SCHED_IRQ_EXIT, body_none },
	{ "softirq_entry", SCHED_IRQ_ENTER, body_soft },
	{ "softirq_exit", SCHED_IRQ_EXIT, body_soft },
};

/* sys_enter_NAME, sys_exit_NAME, and sys_NAME(...) or sys_NAME -> 0x0 as ftrace prints these. */
static void read_syscall(struct slice event, struct slice body, struct sched_line *l)
{
	if (slice_starts(event, "sys_enter_")) {
		l->kind = SCHED_SYS_ENTER;
		l->nr = sched_syscall_nr(slice_from(event, 10));
		read_args(body, l);
	} else if (slice_starts(event, "sys_exit_") || slice_starts(body, "->")) {
		l->kind = SCHED_SYS_EXIT;
	} else if (slice_starts(body, "(")) {
		l->kind = SCHED_SYS_ENTER;
		l->nr = sched_syscall_nr(slice_from(event, 4));
		read_args(body, l);
	}
}

static void read_body(struct slice event, struct slice body, struct sched_line *l)
{
	l->kind = SCHED_NOTHING;
	l->nr = -2;
	if (slice_starts(event, "sys_") && !slice_is(event, "sys_enter") &&
	    !slice_is(event, "sys_exit")) {
		read_syscall(event, body, l);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (!slice_is(event, events[i].name))
			continue;
		l->kind = events[i].kind;
		if (!events[i].read(body, l))
			l->kind = SCHED_STRANGE;
		return;
	}
}

/* ---- lines -------------------------------------------------------------------------------- */

/* "CPU:3 [LOST 123 EVENTS]", "CPU:3 [123 EVENTS DROPPED]"; perf has it as an event. */
static bool read_lost(struct slice line, struct sched_line *l)
{
	uint64_t cpu, cnt = 0;

	if (!slice_starts(line, "CPU:") || !slice_value(line, "CPU:", 8191, &cpu))
		return false;
	if (!slice_value(line, "[LOST ", UINT64_MAX, &cnt) &&
	    slice_find(line, "DROPPED", false) >= 0)
		slice_value(line, "[", UINT64_MAX, &cnt);
	if (!cnt && slice_find(line, "LOST", false) < 0 && slice_find(line, "DROPPED", false) < 0)
		return false;
	l->kind = SCHED_LOST;
	l->cpu = (uint32_t)cpu;
	l->cnt = CC_MAX(cnt, 1);
	return true;
}

/* "\t    7f81ee50c5d7 ioctl+0x7 (/lib/libc-2.27.so)"; some tools write a word for the address. */
static bool read_frame(struct slice line, struct sched_line *l)
{
	struct slice s = slice_trim(line), word = slice_word(&s);
	ptrdiff_t at = slice_find(s, " (", true);

	if (!is_blank(*line.p) || at < 0 || s.p[s.n - 1] != ')')
		return false;
	if (!slice_hex(&word, &l->addr) || word.n) {
		if (*line.p != '\t' || memchr(line.p, ':', line.n))
			return false;
		l->addr = 0;
	}
	l->text = slice_trim((struct slice){ s.p, (size_t)at });
	l->module = slice_of(s.p + at + 2, s.p + s.n - 1);
	l->kind = SCHED_FRAME;
	return true;
}

/* What a page or a table put around the line. */
static struct slice unwrap(struct slice line)
{
	if (slice_starts(line, "\xef\xbb\xbf"))
		line = slice_from(line, 3);
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (line.n >= 3 && !memcmp(line.p + line.n - 3, "\\n\\", 3))
		line.n -= 3;
	if (line.n >= 2 && *line.p == '"' && line.p[line.n - 1] == '"')
		line = slice_of(line.p + 1, line.p + line.n - 1);
	return line;
}

void sched_line_parse(struct slice line, struct sched_line *ret)
{
	struct slice event, body;

	*ret = (struct sched_line){ .cpu = SCHED_NO_CPU, .ctx = -1, .target = SCHED_NO_CPU };
	line = unwrap(line);
	body = slice_trim(line);
	if (!body.n || *body.p == '#')
		return;
	if (read_lost(body, ret) || read_frame(line, ret))
		return;
	if (!sched_head_parse(line, ret, &event, &body)) {
		ret->kind = SCHED_STRANGE;
		return;
	}
	if (slice_is(event, "PERF_RECORD_LOST")) {
		ret->kind = SCHED_LOST;
		if (!slice_value(body, "lost ", UINT64_MAX, &ret->cnt))
			ret->cnt = 1;
		return;
	}
	read_body(event, body, ret);
	if (ret->kind == SCHED_STRANGE && !body.n) {
		ret->kind = SCHED_BODY_NEXT;
		ret->text = event;
	}
}

void sched_line_body(struct slice line, struct sched_line *l)
{
	read_body(l->text, slice_trim(unwrap(line)), l);
}
