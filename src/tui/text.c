/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "confidence.h"
#include "fmt.h"

static struct text CC_PRINTF(1, 2) textf(const char *fmt, ...)
{
	struct text t;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(t.s, sizeof(t.s), fmt, ap);
	va_end(ap);
	return t;
}

struct text text_ms(cc_ns ns)
{
	struct text t = { 0 };
	fmt_ms(t.s, sizeof(t.s), ns);
	return t;
}

struct text text_ms_in(cc_ns ns, int w)
{
	static const struct {
		double ns;
		int digits;
		char unit;
	} units[] = {
		{ 1e9, 1, 's' },
		{ 1e9, 0, 's' },
		{ 3600e9, 0, 'h' },
		{ 24 * 3600e9, 0, 'd' },
		{ 365 * 24 * 3600e9, 0, 'y' },
	};
	struct text t = text_ms(ns);
	for (size_t i = 0; i < ARRAY_SIZE(units) && (int)strlen(t.s) > w; i++)
		t = textf("%.*f%c", units[i].digits, (double)ns / units[i].ns, units[i].unit);
	return t;
}

struct text text_dur(cc_ns ns)
{
	uint64_t s = ns / 1000000000u;
	if (ns < 1000)
		return textf("%uns", (unsigned int)ns);
	if (ns < CC_MS(1))
		return textf("%.0fus", (double)ns / 1e3);
	if (ns < CC_S(1))
		return textf(ns < CC_MS(100) ? "%.1fms" : "%.0fms", (double)ns / 1e6);
	if (s < 60)
		return textf(s < 10 ? "%.2fs" : "%.1fs", (double)ns / 1e9);
	if (s < 3600)
		return textf("%um%02us", (unsigned int)(s / 60), (unsigned int)(s % 60));
	if (s < 1000 * 3600)
		return textf("%uh%02um", (unsigned int)(s / 3600), (unsigned int)(s / 60 % 60));
	return textf("%" PRIu64 "d", s / 86400);
}

struct text text_age(cc_ns ns)
{
	uint64_t s = ns / 1000000000u;
	return s < 100           ? textf("%us", (unsigned int)s)
	       : s < 100 * 60    ? textf("%um", (unsigned int)(s / 60))
	       : s < 1000 * 3600 ? textf("%uh", (unsigned int)(s / 3600))
				 : textf("old");
}

struct text text_delta(int64_t ns)
{
	return textf("%c%s", ns < 0 ? '-' : '+', text_dur((cc_ns)(ns < 0 ? -ns : ns)).s);
}

struct text text_bytes(uint64_t n)
{
	static const char units[] = "kMGTPE";
	double v = (double)n;
	if (n < 1000)
		return textf("%uB", (unsigned int)n);
	size_t i = 0;
	for (v /= 1000; v >= 999.5 && units[i + 1]; i++)
		v /= 1000;
	return textf(v < 9.95 ? "%.1f%c" : "%.0f%c", v, units[i]);
}

struct text text_count(uint64_t n)
{
	struct text t = { 0 };
	fmt_group(t.s, sizeof(t.s), n);
	return t;
}

struct text text_count_in(uint64_t n, int w)
{
	struct text t = text_count(n);
	double v = (double)n;
	bool fits = (int)strlen(t.s) <= w;
	for (const char *unit = "kMGTPE"; !fits && *unit;
	     unit++, fits = v < 10000 && (int)strlen(t.s) <= w)
		t = textf("%.0f%c", v /= 1000, *unit);
	return t;
}

struct text text_percent(double share)
{
	double p = share * 100;
	if (!(p > 0))
		return textf("0");
	if (p < 0.1)
		return textf("<0.1");
	return textf(p < 0.95 ? "%.1f" : "%.0f", p);
}

struct text text_clock(const struct snapshot *s, cc_ns ns, bool ms)
{
	int64_t real = (int64_t)ns + s->realtime_off_ns;
	time_t sec = (time_t)(real / 1000000000);
	struct tm tm;
	if (!localtime_r(&sec, &tm))
		return textf("--:--:--");
	if (ms)
		return textf("%02d:%02d:%02d.%03d", tm.tm_hour, tm.tm_min, tm.tm_sec,
			     (int)(real / 1000000 % 1000));
	return textf("%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
}

struct text text_hms(cc_ns ns)
{
	uint64_t s = ns / 1000000000u;
	return textf("%02" PRIu64 ":%02u:%02u", s / 3600, (unsigned int)(s / 60 % 60),
		     (unsigned int)(s % 60));
}

struct text text_conf(unsigned int confidence)
{
	confidence = CC_MIN(confidence, 100);
	return textf("%c%s%u", confidence_letter(confidence), confidence < 100 ? " " : "",
		     confidence);
}

/* Appends to a string that may be full already. */
static void CC_PRINTF(3, 4) append(char *buf, size_t cap, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf + n, cap - n, fmt, ap);
	va_end(ap);
}

/* How the wait ended: its waker and the waker's place, a timeout, or not yet. */
static void note_end(const struct snapshot *s, const struct snap_piece *p, char *buf, size_t cap)
{
	const char *sep = *buf ? ", " : "", *at = snapshot_str(s, p->waker_site);
	if (p->p.flags & CC_PC_OPEN) {
		append(buf, cap, "%sstill waiting", sep);
		return;
	}
	if (p->p.ended == CC_ENDED_TIMEOUT || p->p.ended == CC_ENDED_SIGNAL) {
		append(buf, cap, "%s%s", sep, snap_ended_name(p->p.ended));
		return;
	}
	if (p->p.waker_kind == CC_WAKER_NONE)
		return;
	bool holder = p->holder.tid && p->holder.tid == p->waker.tid;
	append(buf, cap, holder ? "%sreleased" : "%sby %s", sep, snap_waker_text(s, p).s);
	if (*at)
		append(buf, cap, holder ? " at %s" : " %s", at);
	if (p->p.flags & CC_PC_NOT_TRACED)
		append(buf, cap, " (not traced)");
}

void text_note(const struct snapshot *s, const struct snap_piece *p, char *buf, size_t cap)
{
	char letter = wait_class_letter(p->p.cls);
	const char *by = snapshot_str(s, p->by_request), *whose = snapshot_str(s, p->for_request);
	const char *work = snap_kernel_work(s, p);
	snprintf(buf, cap, "%s", snapshot_str(s, p->resource));
	if (*work)
		append(buf, cap, "%s%s", *buf ? ", " : "", work);
	if (*work && p->site)
		append(buf, cap, " in %s", snapshot_str(s, p->site));
	if (p->holder.tid)
		append(buf, cap, "%sheld by %s", *buf ? ", " : "", snap_task_text(s, &p->holder).s);
	if (p->occupant.tid)
		append(buf, cap, "%sbehind %s %sms", *buf ? ", " : "",
		       snap_task_text(s, &p->occupant).s, text_ms(p->p.occupant_ns).s);
	if (*by)
		append(buf, cap, "%srequest %s", *buf ? ", " : "", by);
	if (letter != 'C' && letter != 'R')
		note_end(s, p, buf, cap);
	append(buf, cap, "%s", snap_net_text(&p->p).s);
	if (*whose)
		append(buf, cap, "%sfor %s", *buf ? ", " : "", whose);
	if (!*buf && (p->p.cls == WAIT_CPU || letter == '?'))
		append(buf, cap, "%s", snapshot_str(s, p->site));
}

void group_sums(const cc_ns class_ns[WAIT_CLASS_CNT], cc_ns ret[9])
{
	memset(ret, 0, 9 * sizeof(*ret));
	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++) {
		const char *at = strchr(WAIT_GROUPS, wait_class_letter(c));
		ret[at ? at - WAIT_GROUPS : 8] += class_ns[c];
	}
}

bool text_has(const char *hay, const char *needle) { return *needle && strcasestr(hay, needle); }

uint64_t text_drops(const struct snapshot *s) { return engine_lost(&s->stats); }
