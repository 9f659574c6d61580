/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of lines. A comm may hold anything, also what looks like a header's other parts: the
 * first place from which all the rest fits counts. */
#include "event.h"
#include "sched_line.h"

#define TID_MAX (1u << 22) /* PID_MAX_LIMIT; more is no tid */
#define CPU_MAX 8191
#define SECONDS_MAX ((uint64_t)1 << 32)

/* "26186.336630:" */
static bool read_time(struct slice *s, cc_ns *ret)
{
	uint64_t sec, fraction = 0, unit = CC_S(1);
	struct slice t = *s;

	if (!slice_number(&t, SECONDS_MAX, &sec) || !slice_eat(&t, '.') || !t.n || !is_digit(*t.p))
		return false;
	for (; t.n && is_digit(*t.p); t = slice_from(t, 1)) {
		if (unit > 1) {
			unit /= 10;
			fraction += unit * (uint64_t)(*t.p - '0');
		}
	}
	if (!slice_eat(&t, ':'))
		return false;
	*ret = CC_S(sec) + fraction;
	*s = t;
	return true;
}

/* "[003]" */
static bool read_cpu(struct slice *s, uint32_t *ret)
{
	struct slice t = *s;
	uint64_t v;

	if (!slice_eat(&t, '[') || t.n < 4 || !slice_number(&t, CPU_MAX, &v) || !slice_eat(&t, ']'))
		return false;
	*ret = (uint32_t)v;
	*s = t;
	return true;
}

/* "( 4100)" or "(-----)": left as it is when it is not one. */
static void read_tgid(struct slice *s, uint32_t *ret)
{
	struct slice t = *s;
	uint64_t v = 0;

	if (!slice_eat(&t, '('))
		return;
	slice_skip_blanks(&t);
	if (!slice_number(&t, TID_MAX, &v))
		while (slice_eat(&t, '-'))
			;
	if (!slice_eat(&t, ')'))
		return;
	slice_skip_blanks(&t);
	*ret = (uint32_t)v;
	*s = t;
}

/* "d.h3": irqs off, need-resched, hardirq/softirq, preempt depth; one more in front of the third
 * where the kernel has lazy rescheduling and counts (PREEMPT_RT: 6 or 7 in all). */
static int8_t context(struct slice flags)
{
	switch (flags.n < 6 ? flags.p[2] : flags.p[3]) {
	case 's':
		return CC_CTX_SOFTIRQ;
	case 'h':
	case 'H':
	case 'z':
	case 'Z':
		return CC_CTX_HARDIRQ;
	default:
		return CC_CTX_TASK;
	}
}

static void read_flags(struct slice *s, struct sched_line *l)
{
	struct slice t = *s, word = slice_word(&t);

	if (word.n < 4 || word.n > 8 || (is_digit(*word.p) && word.p[word.n - 1] == ':'))
		return;
	l->ctx = context(word);
	*s = t;
	slice_skip_blanks(s);
}

/* "1dN.2.", the latency form of ftrace and `trace-cmd report -l`: a CPU and flags in one. */
static bool read_latency(struct slice *s, struct sched_line *l)
{
	struct slice t = *s, word = slice_word(&t);
	uint64_t cpu;

	if (!slice_number(&word, CPU_MAX, &cpu) || word.n < 4 || word.n > 8 ||
	    word.p[word.n - 1] == ':')
		return false;
	l->cpu = (uint32_t)cpu;
	l->ctx = context(word);
	*s = t;
	return true;
}

/* From the '-' before the tid on. */
static bool ftrace_rest(struct slice s, struct sched_line *l, struct slice *rest)
{
	uint64_t tid;

	if (!slice_eat(&s, '-') || !slice_number(&s, TID_MAX, &tid))
		return false;
	slice_skip_blanks(&s);
	read_tgid(&s, &l->tgid);
	if (!read_cpu(&s, &l->cpu) && !read_latency(&s, l))
		return false;
	slice_skip_blanks(&s);
	if (!read_time(&s, &l->ts)) {
		read_flags(&s, l);
		if (!read_time(&s, &l->ts))
			return false;
	}
	l->cur.tid = (uint32_t)tid;
	*rest = s;
	return true;
}

/* From the pid on. */
static bool perf_rest(struct slice s, struct sched_line *l, struct slice *rest)
{
	uint64_t pid, tid;

	slice_eat(&s, '-'); /* -1: of a process that perf did not know */
	if (!slice_number(&s, TID_MAX, &pid))
		return false;
	tid = pid;
	if (slice_eat(&s, '/')) {
		slice_eat(&s, '-');
		if (!slice_number(&s, TID_MAX, &tid))
			return false;
		l->tgid = (uint32_t)pid;
	}
	if (!s.n || !is_blank(*s.p))
		return false;
	slice_skip_blanks(&s);
	read_cpu(&s, &l->cpu);
	slice_skip_blanks(&s);
	if (!read_time(&s, &l->ts))
		return false;
	l->cur.tid = (uint32_t)tid;
	*rest = s;
	return true;
}

typedef bool rest_fn(struct slice s, struct sched_line *l, struct slice *rest);

/* @begins: what is right before a tid. */
static bool read_head(struct slice line, struct sched_line *l, struct slice *rest, bool perf)
{
	rest_fn *read = perf ? perf_rest : ftrace_rest;

	for (size_t i = 1; i + 8 < line.n; i++) {
		const char *p = line.p + i;
		bool may = perf ? is_blank(p[-1]) && (is_digit(*p) || *p == '-')
				: *p == '-' && is_digit(p[1]);

		if (!may)
			continue;
		l->cpu = SCHED_NO_CPU;
		l->tgid = 0;
		l->ctx = -1;
		if (!read(slice_from(line, i), l, rest))
			continue;
		l->cur.comm = slice_trim(slice_of(line.p, p));
		if (l->cur.comm.n >= CC_COMM_LEN) /* the name of a file or instance before it */
			l->cur.comm = slice_trim(
				slice_from(l->cur.comm, l->cur.comm.n - (CC_COMM_LEN - 1)));
		l->perf = perf;
		if (slice_is(l->cur.comm, "<...>") || slice_starts(l->cur.comm, ":"))
			l->cur.comm.n = 0;
		return true;
	}
	return false;
}

/* A period, or "(+12)": the time since the event before. */
static bool is_number(struct slice s)
{
	uint64_t v;
	bool since = slice_starts(s, "(+");

	s = slice_from(s, since ? 2 : 0);
	return slice_number(&s, UINT64_MAX, &v) && (since ? slice_is(s, ")") : !s.n);
}

/* The event's name, without a system, a number before it or modifiers after it. */
static bool read_event(struct slice *s, struct slice *ret)
{
	struct slice t = *s, name = slice_word(&t);
	const char *cut;

	if (is_number(name))
		name = slice_word(&t);
	*s = t;
	/* "sys_futex(uaddr: ...)" has no colon of its own, nor has "sys_futex -> 0x0" */
	cut = memchr(name.p, '(', name.n);
	if (cut && slice_starts(name, "sys_")) {
		*s = slice_of(cut, t.p + t.n);
		name.n = (size_t)(cut - name.p);
	}
	cut = memchr(name.p, '/', name.n);
	if (cut)
		name.n = (size_t)(cut - name.p);
	while (name.n && name.p[name.n - 1] == ':')
		name.n--;
	cut = memchr(name.p, ':', name.n);
	if (cut)
		name = slice_from(name, (size_t)(cut + 1 - name.p));
	*ret = name;
	return name.n > 0;
}

bool sched_head_parse(struct slice line, struct sched_line *ret, struct slice *ret_event,
		      struct slice *ret_body)
{
	struct slice rest;

	if (!read_head(line, ret, &rest, false) && !read_head(line, ret, &rest, true))
		return false;
	if (!read_event(&rest, ret_event))
		return false;
	*ret_body = slice_trim(rest);
	return true;
}
