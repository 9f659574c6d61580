/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the engine is: synthetic streams in memory and in a file, and recordings, fed on one
 * core, only kept and indexed, and with paths. Times are of this process's CPU, of the fastest of
 * three runs after a first one: an engine that runs for long reuses its memory, and on a virtual
 * machine the kernel's first touch of a page costs more than a hundred episodes; what else runs
 * there can only take caches away. Figures beside their budgets, no gate. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "trace.h"

#define NR_FUTEX 202
#define NR_EPOLL_WAIT 232
#define NR_FSYNC 74
#define TGID 1000u
#define REFRESH CC_MS(1000)

struct stream {
	unsigned char *bytes;
	size_t len, cap;
	size_t episodes, requests;
	uint32_t *seq; /* by tid - TGID */
	cc_ns now;
	uint64_t random;
};

static uint64_t rnd(struct stream *s, uint64_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random % below;
}

static void put(struct stream *s, const void *rec, size_t len)
{
	if (s->len + len > s->cap) {
		s->cap = s->cap ? s->cap * 2 : 1 << 20;
		s->bytes = realloc(s->bytes, s->cap);
		if (!s->bytes)
			abort();
	}
	memcpy(s->bytes + s->len, rec, len);
	s->len += len;
}

static void begin(struct stream *s, uint32_t threads)
{
	*s = (struct stream){ .now = CC_S(100), .random = 88172645463325252ull };
	s->seq = calloc(threads, sizeof(*s->seq));
	if (!s->seq)
		abort();
	for (uint32_t i = 0; i < threads; i++) {
		struct cc_rec_open_task o = {
			.h = { .size = sizeof(o),
			       .kind = CC_REC_OPEN_TASK,
			       .flags = CC_TF_TRACED | CC_TF_ATTACH,
			       .ts = s->now },
			.tid = TGID + i,
			.tgid = TGID,
			.last_in = s->now - 1,
			.fd = -1,
			.start = 1,
		};

		put(s, &o, sizeof(o));
	}
}

static void episode(struct stream *s, uint32_t i, int nr, cc_ns out, cc_ns wake, cc_ns in,
		    uint32_t waker, uint32_t key)
{
	struct cc_rec_episode e = {
		.h = { .size = sizeof(e), .kind = CC_REC_EPISODE, .aux = (uint16_t)nr, .ts = in },
		.tid = TGID + i,
		.seq = s->seq[i]++,
		.out = out,
		.wake = wake,
		.state = 1,
		.key = key,
	};

	if (waker != UINT32_MAX) {
		e.waker_tid = TGID + waker;
		e.waker_tgid = TGID;
	} else {
		e.h.flags = CC_CTX_SOFTIRQ << CC_EP_CTX_SHIFT;
	}
	put(s, &e, sizeof(e));
	s->episodes++;
}

static void tick(struct stream *s)
{
	struct cc_rec_tick t = {
		.h = { .size = sizeof(t), .kind = CC_REC_TICK, .ts = s->now },
		.drained_to = s->now - CC_MS(10),
		.interval_ns = REFRESH,
	};

	put(s, &t, sizeof(t));
}

/* Pairs of threads that wake each other over one futex each. */
static void storm(struct stream *s, size_t cnt)
{
	enum { THREADS = 8 };
	cc_ns off[THREADS];

	begin(s, THREADS);
	for (int i = 0; i < THREADS; i++)
		off[i] = s->now;
	while (s->episodes < cnt) {
		for (uint32_t i = 0; i < THREADS; i++) {
			cc_ns wake = s->now += 200 + rnd(s, 300);

			episode(s, i, NR_FUTEX, off[i], wake, wake + 500 + rnd(s, 2000), i ^ 1,
				0x1000 + (i / 2) * 64);
			off[i] = wake + 3000;
		}
		s->now += 3000;
	}
}

/* Ten thousand threads that wait for each other at random. */
static void crowd(struct stream *s, size_t cnt)
{
	enum { THREADS = 10000 };
	cc_ns *in = calloc(THREADS, sizeof(*in));

	begin(s, THREADS);
	if (!in)
		abort();
	for (uint32_t i = 0; i < THREADS; i++)
		in[i] = s->now;
	while (s->episodes < cnt) {
		uint32_t i = (uint32_t)rnd(s, THREADS), waker = (uint32_t)rnd(s, THREADS);
		cc_ns out = in[i] + 1000 + rnd(s, 1000), wake;

		s->now += 100;
		wake = CC_MAX(s->now, out + 1);
		in[i] = wake + rnd(s, 500);
		episode(s, i, rnd(s, 4) ? NR_EPOLL_WAIT : NR_FUTEX, out, wake, in[i], waker,
			0x2000 + (uint32_t)rnd(s, 64) * 64);
	}
	free(in);
}

struct server {
	cc_ns free_at, off_at; /* of a worker */
};

/* One request: received by the event loop, handed to a worker that takes a lock and syncs. */
static void request(struct stream *s, struct server *w, uint32_t workers, uint32_t ordinal,
		    cc_ns *loop_off)
{
	uint32_t i = 1 + (uint32_t)rnd(s, workers);
	cc_ns arrival = s->now += 20000 + rnd(s, 20000), recv = arrival + 3000, hand = recv + 2000;
	cc_ns t = CC_MAX(hand, w[i].off_at + 1);
	struct cc_rec_req r = {
		.h = { .size = sizeof(r), .kind = CC_REC_REQ, .aux = CC_END_NEXT },
		.cookie = 1 + ordinal % 64,
		.ordinal = 1 + ordinal / 64,
		.arrival = arrival,
		.first_recv = recv,
		.last_recv = recv,
		.accepted = CC_S(99),
		.recv_cnt = 1,
		.send_cnt = 1,
		.recv_tid = TGID,
		.send_tid = TGID + i,
		.tgid = TGID,
		.local_port = 8080,
	};
	struct cc_rec_extra x = {
		.h = { .size = sizeof(x), .kind = CC_REC_EXTRA, .aux = NR_FUTEX },
		.tid = TGID + i,
		.seq = s->seq[i],
		.args = { 0x4000 + i * 64, 0x189 },
		.uaddr = 0x4000 + i * 64,
		.fd = -1,
	};

	episode(s, 0, NR_EPOLL_WAIT, *loop_off, arrival, arrival + 1500, UINT32_MAX, 5);
	*loop_off = hand + 500;
	s->now = *loop_off;
	episode(s, i, NR_FUTEX, w[i].off_at, t, t + 4000, 0, 0x4000 + i * 64);
	x.h.ts = t + 4000;
	put(s, &x, sizeof(x));
	t += 4000;
	for (uint64_t n = 1 + rnd(s, 4); n > 0; n--) {
		cc_ns out = t + 5000, wake = out + 8000;
		bool lock = rnd(s, 2);

		episode(s, i, lock ? NR_FUTEX : NR_FSYNC, out, wake, wake + 2000,
			lock ? 1 + i % workers : UINT32_MAX, lock ? 0x8000 : 7);
		t = wake + 2000;
	}
	r.first_send = r.last_send = t + 4000;
	r.h.ts = r.last_send;
	w[i].off_at = r.last_send + 1000;
	put(s, &r, sizeof(r));
	s->requests++;
}

static void server_mix(struct stream *s, size_t cnt)
{
	enum { WORKERS = 32 };
	struct server w[WORKERS + 1];
	cc_ns loop_off, next_tick;

	begin(s, WORKERS + 1);
	loop_off = s->now + 10;
	next_tick = s->now + REFRESH;
	for (uint32_t i = 0; i <= WORKERS; i++)
		w[i].off_at = s->now + 10;
	for (uint32_t i = 0; s->episodes < cnt; i++) {
		request(s, w, WORKERS, i, &loop_off);
		if (s->now < next_tick)
			continue;
		tick(s);
		next_tick += REFRESH;
	}
}

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct result {
	double seconds;
	size_t episodes, memory, paths, pieces;
};

static void feed_bytes(const struct stream *s, struct engine *e)
{
	for (size_t off = 0; off < s->len;) {
		const struct cc_rec *rec = (const void *)(s->bytes + off);

		if (engine_stream(e, rec, rec->size))
			abort();
		off += rec->size;
	}
}

static void feed_file(const char *path, struct engine *e)
{
	const struct cc_rec *rec;
	struct trace_reader *t;
	struct cc_err why;
	size_t len;

	if (trace_reader_open(path, &why, &t)) {
		fprintf(stderr, "engine: %s\n", why.msg);
		exit(1);
	}
	while (trace_reader_next(t, &rec, &len) == 1)
		if (engine_stream(e, rec, len))
			abort();
	trace_reader_free(t);
}

/* @path: NULL, or the same in a file. */
static struct result run(const struct stream *s, const char *path, struct engine_opts o)
{
	struct result r = { .seconds = cpu_now() };
	const struct cc_request *const *reqs;
	struct engine *e;
	size_t cnt;

	if (engine_new(&o, &e))
		abort();
	if (path)
		feed_file(path, e);
	else
		feed_bytes(s, e);
	if (engine_finish(e))
		abort();
	r.seconds = cpu_now() - r.seconds;
	r.episodes = engine_stats(e)->episodes;
	r.memory = engine_stats(e)->memory_bytes;
	reqs = engine_requests(e, &cnt);
	for (size_t i = 0; i < cnt; i++) {
		r.paths += reqs[i]->path_ok;
		r.pieces += reqs[i]->path_cnt;
	}
	engine_free(e);
	return r;
}

static const struct engine_opts index_only = { .memory_bytes = 1ull << 30, .no_paths = true },
				live = { .memory_bytes = 1ull << 30,
					 .window_ns = CC_S(120),
					 .paths_per_s = ENGINE_PATHS_PER_S },
				every = { .memory_bytes = 1ull << 30 };

#define RUNS 3

static struct result warm_run(const struct stream *s, const char *path, struct engine_opts o)
{
	struct result best = run(s, path, o);

	for (int i = 0; i < RUNS; i++) {
		struct result r = run(s, path, o);

		if (!i || r.seconds < best.seconds)
			best = r;
	}
	return best;
}

static double rate(struct result r) { return (double)r.episodes / r.seconds / 1e6; }

static void bench_file(const char *name, const char *path)
{
	struct result load = warm_run(NULL, path, index_only);

	printf("%-12s file, load + index: %.1f M episodes/s\n", name, rate(load));
	printf("%-12s file, whole engine: %.1f M episodes/s\n", name,
	       rate(warm_run(NULL, path, live)));
}

static void bench_written(const char *name, const struct stream *s)
{
	char path[] = "/tmp/criticast-bench-XXXXXX";
	int fd = mkstemp(path);
	struct trace_writer *w;
	struct cc_err why;

	if (fd < 0 || trace_writer_open(path, &why, &w))
		abort();
	close(fd);
	for (size_t off = 0; off < s->len;) {
		const struct cc_rec *rec = (const void *)(s->bytes + off);

		if (trace_writer_put(w, rec, rec->size))
			abort();
		off += rec->size;
	}
	if (trace_writer_close(w))
		abort();
	bench_file(name, path);
	unlink(path);
}

struct load {
	const char *name;
	void (*make)(struct stream *, size_t);
	size_t episodes;
	bool only_waits; /* no request, no EXTRA: what is told of a wait by itself */
};

static void budget(const struct load *l, const char *what, double value, const char *unit,
		   double limit, bool at_least)
{
	bool met = at_least ? value >= limit : value <= limit;

	printf("%-12s %s %s: %.1f %s, budget %s %g\n", l->name, met ? "met    " : "NOT MET", what,
	       value, unit, at_least ? ">=" : "<=", limit);
}

static void bench(const struct load *l, const char *only)
{
	struct result load = { 0 }, whole = { 0 }, all = { 0 };
	struct stream s;

	l->make(&s, l->episodes);
	if (!only || !strcmp(only, "whole")) {
		whole = warm_run(&s, NULL, live);
		printf("%-12s whole engine: %.1f M episodes/s, %zu paths, %.0f bytes per episode\n",
		       l->name, rate(whole), whole.paths,
		       (double)whole.memory / (double)s.episodes);
	}
	if (!only || !strcmp(only, "index")) {
		load = warm_run(&s, NULL, index_only);
		printf("%-12s load + index: %.1f M episodes/s, %.0f bytes per episode\n", l->name,
		       rate(load), (double)load.memory / (double)s.episodes);
	}
	if (!only || !strcmp(only, "every")) {
		all = warm_run(&s, NULL, every);
		printf("%-12s every path:   %.1f M episodes/s, %.0f ns per path, %zu paths of %.1f "
		       "pieces\n",
		       l->name, rate(all),
		       all.paths ? (all.seconds - load.seconds) * 1e9 / (double)all.paths : 0,
		       all.paths, all.paths ? (double)all.pieces / (double)all.paths : 0);
	}
	if (!only || !strcmp(only, "file"))
		bench_written(l->name, &s);
	if (whole.seconds > 0)
		budget(l, "whole engine", rate(whole), "M episodes/s", 5, true);
	if (load.seconds > 0 && l->only_waits)
		budget(l, "load + index", rate(load), "M episodes/s", 20, true);
	if (all.seconds > 0 && load.seconds > 0 && !l->only_waits)
		budget(l, "a path", (all.seconds - load.seconds) * 1e6 / (double)all.paths, "us",
		       100, false);
	fflush(stdout);
	free(s.bytes);
	free(s.seq);
}

/* engine [LOAD [index|whole|every|file]]: only these; engine FILE: this recording */
int main(int argc, char **argv)
{
	static const struct load loads[] = {
		{ "server mix", server_mix, 600000, false },
		{ "storm", storm, 2000000, true },
		{ "10k threads", crowd, 600000, false },
	};

	/* freed memory stays with the process */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, INT32_MAX);
	if (argc == 2 && strchr(argv[1], '/')) {
		bench_file("recording", argv[1]);
		return 0;
	}
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		if (argc < 2 || !strcmp(argv[1], loads[i].name))
			bench(&loads[i], argc > 2 ? argv[2] : NULL);
	return 0;
}
