/* SPDX-License-Identifier: Apache-2.0 */
/* seek FILE MEGABYTES: a recording as long as that, made of FILE told again and again (removed
 * afterwards), opened and sought in as `top --replay` does it: from the command to the picture.
 * CPU is that of this process, all its threads; wall time is what a user waits. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../tests/oracle/again.h"
#include "session.h"

#define SEEKS 20
#define WAIT_MS 60000

static double now_s(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fail(const char *what)
{
	fprintf(stderr, "seek: %s\n", what);
	return 1;
}

static struct again story = { .speed = 1 };

static int make_long(const char *from, uint64_t bytes, const char *to)
{
	struct trace_writer *w;
	struct cc_err err;
	const char *wrong = again_load(&story, from, &err);

	if (wrong || trace_writer_open(to, &err, &w))
		return fail(wrong ? wrong : err.msg);
	for (uint64_t n = 0; trace_writer_bytes(w) < bytes; n++)
		for (size_t i = 0; i < story.in.cnt; i++) {
			const struct cc_rec *r = again_rec(&story, story.in.p[i], n);

			if ((n && again_lasting(r)) || trace_writer_put(w, r, r->size) == 0)
				continue;
			trace_writer_free(w);
			return fail("cannot write the long recording");
		}
	return trace_writer_close(w) ? fail("cannot write the long recording") : 0;
}

struct took {
	double wall, cpu;
};

static struct took since(struct took began)
{
	return (struct took){ now_s(CLOCK_MONOTONIC) - began.wall,
			      now_s(CLOCK_PROCESS_CPUTIME_ID) - began.cpu };
}

struct picture {
	bool came, whole; /* else a first look */
	uint32_t requests;
};

/* Waits for a picture of @at or later, with @whole for one of all that belongs to its window. */
static struct picture wait_for(struct session *s, cc_ns at, bool whole)
{
	struct pollfd p = { .fd = session_event_fd(s), .events = POLLIN };
	struct picture ret = { 0 };

	while (!ret.came && poll(&p, 1, WAIT_MS) > 0) {
		uint64_t clear;

		if (read(p.fd, &clear, sizeof(clear)) < 0)
			break;
		struct snapshot *snap = session_tui_ops.take(s);

		if (snap && snap->now_ns >= at && !(whole && snap->runtime.filling))
			ret = (struct picture){ true, !snap->runtime.filling, snap->request_cnt };
		session_tui_ops.give_back(s, snap);
	}
	return ret;
}

static int by_wall(const void *a, const void *b)
{
	const struct took *x = a, *y = b;

	return (x->wall > y->wall) - (x->wall < y->wall);
}

static int by_cpu(const void *a, const void *b)
{
	const struct took *x = a, *y = b;

	return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static void report(const char *what, struct took *all, size_t cnt)
{
	size_t within = 0;

	qsort(all, cnt, sizeof(*all), by_wall);
	while (within < cnt && all[within].wall <= 0.1)
		within++;
	printf("%s: wall ms p50 %.1f max %.1f, %zu within 100", what, all[cnt / 2].wall * 1e3,
	       all[cnt - 1].wall * 1e3, within);
	qsort(all, cnt, sizeof(*all), by_cpu);
	printf("; CPU ms p50 %.1f max %.1f (%zu seeks)\n", all[cnt / 2].cpu * 1e3,
	       all[cnt - 1].cpu * 1e3, cnt);
}

/* Not where one telling of the recording ends and the next begins: all connections of before stay
 * open there, as they never do. */
static cc_ns somewhere(const struct trace_info *info, uint64_t seed)
{
	uint64_t loops = CC_MAX((info->last_ns - info->first_ns) / story.span, 1);

	return info->first_ns + (seed >> 32) % loops * story.span + story.span / 3 +
	       seed % (story.span / 3 * 2);
}

static int seek_in(const char *path)
{
	struct took began = since((struct took){ 0 }), all[SEEKS], whole[SEEKS];
	struct session_opts o = { .replay_path = path, .window_ns = CC_S(60) };
	struct cc_source *src;
	struct session *s;
	struct cc_err err;
	uint32_t empty = 0;
	uint64_t seed = 88172645463325252ull;
	int bad = 0;

	o.collect.engine = (struct engine_opts){ .memory_bytes = 256 << 20,
						 .window_ns = CC_S(120),
						 .paths_per_s = ENGINE_PATHS_PER_S };
	if (trace_source_new(path, &err, &src))
		return fail(err.msg);
	const struct trace_info info = *trace_source_info(src);

	o.collect.source = src;
	if (session_start(&o, &s))
		return fail("no session");
	bad = !wait_for(s, 1, false).came;
	struct took open = since(began);

	printf("open: wall ms %.1f; CPU ms %.1f (%.0f MB, %llu records)\n", open.wall * 1e3,
	       open.cpu * 1e3, (double)info.file_bytes / 1e6, (unsigned long long)info.rec_cnt);
	struct tui_cmd c = { .changed = TUI_CH_SEEK, .paused = true, .speed = 1 };

	for (size_t i = 0; i < SEEKS && !bad; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		c.view_ns = somewhere(&info, seed);
		c.seek_cnt++;
		began = since((struct took){ 0 });
		session_tui_ops.command(s, &c);
		struct picture p = wait_for(s, c.view_ns, false);

		all[i] = since(began);
		empty += !p.requests;
		if (p.came && !p.whole)
			p = wait_for(s, c.view_ns, true);
		bad = !p.came;
		whole[i] = since(began);
	}
	if (!bad) {
		report("seek, first look", all, SEEKS);
		report("seek, all of it", whole, SEEKS);
	}
	if (empty)
		printf("seek: %u of %d pictures had no request\n", empty, SEEKS);
	bad |= session_stop(s) != 0;
	session_free(s);
	return bad ? fail("a picture did not come") : 0;
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/criticast-seek-XXXXXX";
	int fd;

	if (argc < 3)
		return fail("seek FILE MEGABYTES");
	fd = mkstemp(path);
	if (fd < 0)
		return fail("no file in /tmp");
	close(fd);
	int bad = make_long(argv[1], strtoull(argv[2], NULL, 10) * 1000000, path);

	bad = bad || seek_in(path);
	unlink(path);
	return bad;
}
