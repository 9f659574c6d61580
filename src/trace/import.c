/* SPDX-License-Identifier: Apache-2.0 */
#include "import.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "look.h"
#include "map.h"
#include "note.h"
#include "sched_build.h"
#include "wall.h"

#define BUF_BYTES (2 * SCHED_LINE_BYTES)
#define FRAME_BYTES (48u << 10)
enum { ARCH_X86_64 = 62, ARCH_AARCH64 = 183 }; /* EM_*: whose syscall numbers these are */

struct import {
	int fd;
	bool html, in_html; /* a page; now within its trace */
	bool read_all, finished;
	struct sched_build *build;
	cc_ns shift; /* records have no time 0 */
	struct wall wall;
	/* lines */
	char *buf;
	size_t from, to; /* what is left of buf */
	bool skip;       /* the rest of a line that was too long */
	uint64_t strange, cut, perf_lines, ftrace_lines;
	uint16_t arch;
	/* the event whose stack is being read */
	struct sched_line held; /* its names lie in text[cur] */
	bool holding, arch_told;
	char text[2][SCHED_LINE_BYTES];
	unsigned int cur;
	struct sched_frame frames[SCHED_FRAMES];
	uint32_t frame_cnt;
	char frame_text[FRAME_BYTES];
	size_t frame_len;
	/* records */
	struct mem mem;
	VEC(uint8_t) out;
	size_t at;
};

static int take_record(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct import *im = ctx;

	if (vec_reserve(&im->mem, &im->out, im->out.cnt + len))
		return -ENOMEM;
	memcpy(im->out.p + im->out.cnt, rec, len);
	im->out.cnt += (uint32_t)len;
	return 0;
}

static void tell_wall(struct import *im)
{
	if (im->wall.from != WALL_UNKNOWN)
		sched_build_wall(im->build, im->wall.off_ns - (int64_t)im->shift);
}

int import_open(int fd, const char *path, struct cc_err *err, struct import **ret)
{
	struct import *im = calloc(1, sizeof(*im));
	struct look k = { 0 };
	int code = im ? 0 : -ENOMEM;

	if (im) {
		im->fd = fd;
		im->buf = malloc(BUF_BYTES);
		code = im->buf ? look_ahead(fd, im->buf, BUF_BYTES, &k) : -ENOMEM;
	} else {
		close(fd);
	}
	if (code)
		code = input_fail(err, code, path, strerror(-code));
	else if (!look_is_trace(&k))
		code = look_refuse(fd, &k, path, err);
	else if (sched_build_new(!k.waking, take_record, im, &im->build))
		code = input_fail(err, -ENOMEM, path, strerror(ENOMEM));
	if (code) {
		import_free(im);
		return code;
	}
	im->html = k.page;
	im->shift = k.starts_at_0 ? CC_S(1) : 0;
	im->arch = ARCH_X86_64;
	wall_begin(&im->wall, fd, path);
	tell_wall(im);
	*ret = im;
	return 0;
}

void import_free(struct import *im)
{
	if (!im)
		return;
	close(im->fd);
	sched_build_free(im->build);
	vec_done(&im->mem, &im->out);
	free(im->buf);
	free(im);
}

/* ---- notes -------------------------------------------------------------------------------- */

CC_PRINTF(2, 3) static int note(struct import *im, const char *fmt, ...)
{
	char text[NOTE_TEXT_MAX];
	union note n;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	const struct cc_rec *rec = note_make(&n, text, sched_build_counts(im->build)->last_ns);

	return take_record(im, rec, rec->size);
}

#define N(v) ((unsigned long long)(v))

static int note_wakes(struct import *im, const struct sched_counts *n)
{
	int err = 0;

	if (!n->wakings && !n->wakeups)
		err = note(
			im,
			"no wakes in this trace: who ended a wait is not known, nor when it ended "
			"and waiting for a CPU began");
	else if (!n->wakings)
		err = note(im, "no sched_waking in this trace: wakers are those of sched_wakeup, "
			       "which may "
			       "run on the woken task's CPU");
	if (!err && n->no_context)
		err = note(im,
			   "of %llu wakes it is not told whether an interrupt gave them: the waker "
			   "may "
			   "be a task that was interrupted",
			   N(n->no_context));
	return err;
}

static int note_gaps(struct import *im, const struct sched_counts *n)
{
	char cpus[64];
	uint32_t cnt = sched_build_silent_cpus(im->build, cpus, sizeof(cpus));
	int err = 0;

	if (cnt)
		err = note(
			im,
			"no events of CPU %s, though tasks were woken onto %s: what ran there is "
			"not known",
			cpus, cnt == 1 ? "it" : "them");
	if (!err && n->lost_marks)
		err = note(im, "the trace says that %llu events were lost, in %llu places",
			   N(n->lost), N(n->lost_marks));
	if (!err && n->unseen)
		err = note(im,
			   "tasks must have run unseen %llu times, as events are missing: that "
			   "time is "
			   "unknown",
			   N(n->unseen));
	if (!err && n->backwards)
		err = note(im, "%llu events are not in order of time", N(n->backwards));
	return err;
}

static int note_form(struct import *im, const struct sched_counts *n)
{
	int err = 0;

	if (!n->syscalls)
		err = note(im, "no syscalls in this trace: waits are told apart by state only, as "
			       "blocked or disk");
	if (!err && im->strange)
		err = note(im, "%llu lines were not understood", N(im->strange));
	if (!err && im->cut)
		err = note(im, "%llu lines were longer than %u bytes and were cut", N(im->cut),
			   SCHED_LINE_BYTES);
	if (!err && n->no_room)
		err = note(im, "%llu tasks or stacks were left out: there are too many",
			   N(n->no_room));
	if (!err && im->shift)
		err = note(im, "the trace begins at time 0: times are 1 s later than in the file");
	return err;
}

static int note_wall(struct import *im)
{
	static const char *const words[] = {
		[WALL_UNKNOWN] = "no wall clock in this trace: times of day count from 1970",
		[WALL_WRITTEN] = "no wall clock in this trace: times of day are a guess, as if it "
				 "had ended when its file was last written (touch -d sets that)",
		[WALL_CAPTURED] = "times of day are by the header's \"captured on\": right to a "
				  "second or so, and in this machine's time zone",
		[WALL_SYNC] = "times of day are by the trace's clock_sync",
	};

	return note(im, "%s", words[im->wall.from]);
}

static int tell_end(struct import *im)
{
	const struct sched_counts *n = sched_build_counts(im->build);
	int err = note(im, "imported from %s text: %llu switches, %llu wakes, %llu stacks",
		       im->perf_lines > im->ftrace_lines ? "perf script" : "ftrace", N(n->switches),
		       N(n->wakings ? n->wakings : n->wakeups), N(n->stacks));

	err = err ?: note_wakes(im, n) ?: note_gaps(im, n) ?: note_form(im, n) ?: note_wall(im);
	return err ?: sched_build_finish(im->build);
}

/* ---- lines -------------------------------------------------------------------------------- */

static int tell_arch(struct import *im)
{
	struct cc_rec_counter r = { .h = { .size = sizeof(r),
					   .kind = CC_REC_OPTION,
					   .cpu = UINT16_MAX,
					   .aux = CC_OPT_ARCH },
				    .value = im->arch };

	im->arch_told = true;
	return take_record(im, &r.h, sizeof(r));
}

/* Sends the held event with its stack. */
static int let_go(struct import *im)
{
	if (!im->holding)
		return 0;
	im->holding = false;
	if (im->held.kind == SCHED_BODY_NEXT) {
		im->strange++;
		return 0;
	}
	if (!im->arch_told) {
		int err = tell_arch(im);

		if (err)
			return err;
	}
	return sched_build_event(im->build, &im->held, im->frames, im->frame_cnt);
}

static struct slice keep_text(struct import *im, struct slice s)
{
	struct slice copy = { im->frame_text + im->frame_len, s.n };

	if (s.n > sizeof(im->frame_text) - im->frame_len)
		return (struct slice){ im->frame_text, 0 };
	memcpy(im->frame_text + im->frame_len, s.p, s.n);
	im->frame_len += s.n;
	return copy;
}

/* A frame without an address is known by its name: a number of its own stands for it. */
static uint64_t address_of(const struct sched_line *l)
{
	uint64_t h = 1;

	for (size_t i = 0; i < l->text.n; i++)
		h = map_mix2(h, (unsigned char)l->text.p[i]);
	return l->addr ? l->addr : h >> 17;
}

static void add_frame(struct import *im, const struct sched_line *l)
{
	if (!im->holding || im->frame_cnt == SCHED_FRAMES)
		return;
	im->frames[im->frame_cnt++] = (struct sched_frame){
		.addr = address_of(l),
		.text = keep_text(im, l->text),
		.module = keep_text(im, l->module),
	};
}

/* In a page only what lies between the marks of its trace is one. */
static bool is_outside(struct import *im, struct slice line)
{
	if (!im->html)
		return false;
	if (look_has_mark(line)) {
		im->in_html = true;
		return true;
	}
	if (slice_find(line, "</script>", false) >= 0)
		im->in_html = false;
	return !im->in_html;
}

static void learn_arch(struct import *im, struct slice line)
{
	if (slice_starts(line, "# arch :") && slice_find(line, "aarch64", false) >= 0)
		im->arch = ARCH_AARCH64;
}

/* Lines of trace-cmd's own, and of stacks in its form ("=> schedule"), say nothing of use here. */
static bool is_known_noise(struct slice line)
{
	struct slice s = slice_trim(line);

	return slice_starts(s, "=>") || slice_starts(s, "cpus=") || slice_starts(s, "version =") ||
	       (slice_starts(s, "CPU ") && slice_find(s, " is empty", true) >= 0) ||
	       slice_starts(s, "\"line\"") || slice_starts(s, "<") || slice_is(s, "\\n\";");
}

static int take_line(struct import *im, struct slice line)
{
	struct slice copy = { im->text[!im->cur], CC_MIN(line.n, SCHED_LINE_BYTES) };
	struct sched_line l;
	int err;

	if (is_outside(im, line))
		return 0;
	if (im->holding && im->held.kind == SCHED_BODY_NEXT) {
		/* the names in the body must live as long as the event */
		sched_line_body(keep_text(im, line), &im->held);
		if (im->held.kind != SCHED_STRANGE)
			return 0;
		im->held.kind = SCHED_BODY_NEXT;
	}
	if (line.n && *line.p == '#') {
		learn_arch(im, line);
		if (wall_comment(&im->wall, line))
			tell_wall(im);
	}
	memcpy(im->text[!im->cur], line.p, copy.n);
	sched_line_parse(copy, &l);
	if (l.kind == SCHED_FRAME) {
		add_frame(im, &l);
		return 0;
	}
	if (l.kind == SCHED_NOTHING && wall_event(&im->wall, line))
		tell_wall(im);
	if (l.kind == SCHED_STRANGE) {
		im->strange += !is_known_noise(line);
		return 0;
	}
	err = let_go(im);
	if (!l.cur.comm.p && l.kind != SCHED_LOST)
		return err;
	im->perf_lines += l.perf;
	im->ftrace_lines += !l.perf;
	im->held = l;
	im->held.ts += l.cur.comm.p ? im->shift : 0;
	im->holding = true;
	im->cur = !im->cur;
	im->frame_cnt = 0;
	im->frame_len = 0;
	return err;
}

/* Moves what is left to the front and reads on. Returns 0 or -errno. */
static int refill(struct import *im)
{
	ssize_t n;

	memmove(im->buf, im->buf + im->from, im->to - im->from);
	im->to -= im->from;
	im->from = 0;
	do
		n = read(im->fd, im->buf + im->to, BUF_BYTES - im->to);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	im->to += (size_t)n;
	im->read_all = n == 0;
	return 0;
}

/* Takes one line. Returns 0, also when there is none any more (read_all), or -errno. */
static int next_line(struct import *im)
{
	const char *nl = memchr(im->buf + im->from, '\n', im->to - im->from);
	int err;

	while (!nl && !im->read_all && im->to - im->from < SCHED_LINE_BYTES) {
		size_t had = im->to - im->from;

		err = refill(im);
		if (err)
			return err;
		nl = memchr(im->buf + had, '\n', im->to - had);
	}
	struct slice line = slice_of(im->buf + im->from, nl ? nl : im->buf + im->to);
	bool skip = im->skip;

	im->skip = !nl && !im->read_all; /* the rest of it is still to come */
	im->cut += !skip && (line.n > SCHED_LINE_BYTES || im->skip);
	im->from = nl ? (size_t)(nl + 1 - im->buf) : im->to;
	return skip ? 0 : take_line(im, line);
}

int import_next(struct import *im, const struct cc_rec **ret)
{
	if (im->at == im->out.cnt)
		im->at = im->out.cnt = 0;
	while (im->at == im->out.cnt) {
		int err;

		if (im->finished)
			return 0;
		if (im->read_all && im->from == im->to) {
			im->finished = true;
			err = let_go(im) ?: tell_end(im);
		} else {
			err = next_line(im);
		}
		if (err)
			return err;
	}
	*ret = (const struct cc_rec *)(im->out.p + im->at);
	im->at += (*ret)->size;
	return 1;
}
