/* SPDX-License-Identifier: Apache-2.0 */
#include "look.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "foreign.h"
#include "input.h"
#include "sched_line.h"

#define LOOK_BYTES (16u << 20) /* how far */

static void look_at_lines(struct slice s, struct look *ret)
{
	while (s.n && !ret->headed) {
		const char *nl = memchr(s.p, '\n', s.n);
		struct slice line = { s.p, nl ? (size_t)(nl - s.p) : s.n };
		struct sched_line l;

		sched_line_parse((struct slice){ line.p, CC_MIN(line.n, SCHED_LINE_BYTES) }, &l);
		if (l.cur.comm.p) {
			ret->headed = true;
			ret->starts_at_0 = l.ts == 0;
		}
		s = slice_from(s, line.n + 1);
	}
}

bool look_has_mark(struct slice s)
{
	return slice_find(s, "linuxPerfData", false) >= 0 ||
	       slice_find(s, "class=\"trace-data\"", false) >= 0;
}

static bool is_page(struct slice s)
{
	s.n = CC_MIN(s.n, 64u);
	return slice_find(s, "<!DOCTYPE", false) >= 0 || slice_find(s, "<html", false) >= 0;
}

/* Reads ahead, from the start. */
int look_ahead(int fd, char *buf, size_t size, struct look *ret)
{
	static const size_t overlap = 32;
	uint64_t off = 0;

	*ret = (struct look){ 0 };
	while (off < LOOK_BYTES && !(ret->waking && ret->headed)) {
		ssize_t n = pread(fd, buf, size, (off_t)off);
		struct slice s = { buf, n > 0 ? (size_t)n : 0 };

		if (n < 0)
			return -errno;
		ret->waking |= slice_find(s, "sched_waking", false) >= 0;
		ret->sched |= ret->waking || slice_find(s, "sched_switch:", false) >= 0 ||
			      slice_find(s, "sched_wakeup", false) >= 0;
		ret->page |= off == 0 && is_page(s);
		ret->marked |= look_has_mark(s);
		look_at_lines(s, ret);
		if ((size_t)n <= overlap)
			break;
		off += (uint64_t)n - overlap;
	}
	return 0;
}

int look_refuse(int fd, const struct look *k, const char *path, struct cc_err *err)
{
	uint8_t head[4096];
	ssize_t n = pread(fd, head, sizeof(head), 0);
	const char *hint = n > 0 ? foreign_format(head, (size_t)n) : NULL;
	char why[160];

	if (n == 0)
		return input_fail(err, -EBADMSG, path, "it is empty");
	if (hint) {
		snprintf(why, sizeof(why), "%s", hint);
		return input_fail(err, -EBADMSG, path, why);
	}
	if (k->headed)
		return input_fail(err, -EBADMSG, path,
				  "no scheduler events in this trace; record with "
				  "perf record -e sched:sched_switch -e sched:sched_waking");
	return input_fail(
		err, -EBADMSG, path,
		"not a .criticast recording, nor text of perf script, ftrace or systrace");
}
