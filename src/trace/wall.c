/* SPDX-License-Identifier: Apache-2.0 */
#include "wall.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sched_line.h"

#define TAIL_BYTES (256u << 10) /* the last event lies there, and much more */

/* The latest time among the last lines. 0: none has a time. */
static cc_ns last_event(int fd)
{
	struct stat st;
	char *buf = malloc(TAIL_BYTES);
	cc_ns last = 0;

	if (!buf || fstat(fd, &st) < 0) {
		free(buf);
		return 0;
	}
	off_t from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
	ssize_t n = pread(fd, buf, TAIL_BYTES, from);
	const char *end = buf + CC_MAX(n, 0), *p = buf;

	if (from) /* the first line there may be a part of one */
		p = memchr(buf, '\n', (size_t)(end - buf)) ?: end;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p)) ?: end;
		struct sched_line l;

		sched_line_parse(slice_of(p, nl), &l);
		last = CC_MAX(last, l.cur.comm.p ? l.ts : 0);
		p = nl + 1;
	}
	free(buf);
	return last;
}

/* The trace's end was at @ns since 1970. */
static bool ends_at(struct wall *w, int64_t ns, enum wall_from from)
{
	if (!w->last_ns || ns < (int64_t)w->last_ns || w->from >= from)
		return false;
	w->off_ns = ns - (int64_t)w->last_ns;
	w->from = from;
	return true;
}

void wall_begin(struct wall *w, int fd, const char *path)
{
	struct stat st;

	*w = (struct wall){ .last_ns = last_event(fd) };
	if (strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		ends_at(w, (int64_t)st.st_mtim.tv_sec * (int64_t)CC_S(1) + st.st_mtim.tv_nsec,
			WALL_WRITTEN);
}

/* "# captured on    : Tue Dec  1 10:12:32 2026", of perf script --header */
bool wall_comment(struct wall *w, struct slice line)
{
	char text[32];
	struct tm tm = { .tm_isdst = -1 };
	ptrdiff_t at = slice_find(line, "# captured on", false);

	if (at != 0)
		return false;
	at = slice_find(line, ": ", false);
	if (at < 0)
		return false;
	struct slice s = slice_trim(slice_from(line, (size_t)at + 2));

	if (s.n >= sizeof(text))
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	const char *end = strptime(text, "%a %b %d %H:%M:%S %Y", &tm);
	time_t sec = end && !*end ? mktime(&tm) : (time_t)-1;

	return sec > 0 && ends_at(w, (int64_t)sec * (int64_t)CC_S(1), WALL_CAPTURED);
}

/* "...: tracing_mark_write: trace_event_clock_sync: realtime_ts=1491850748338", milliseconds */
bool wall_event(struct wall *w, struct slice line)
{
	struct slice event, body;
	struct sched_line l = { 0 };
	uint64_t ms;

	if (w->from == WALL_SYNC ||
	    !slice_value(line, "clock_sync: realtime_ts=", UINT64_MAX, &ms) ||
	    !sched_head_parse(line, &l, &event, &body) || ms > (uint64_t)INT64_MAX / CC_MS(1) ||
	    ms * CC_MS(1) < l.ts)
		return false;
	w->off_ns = (int64_t)(ms * CC_MS(1)) - (int64_t)l.ts;
	w->from = WALL_SYNC;
	return true;
}
