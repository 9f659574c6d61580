/* SPDX-License-Identifier: Apache-2.0 */
/* trace [FILE]: speed and size of the .criticast file on a thread storm: 16 threads, short runs,
 * short waits; with FILE, what is in that recording instead. All times are of this process's CPU:
 * other load does not count. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"

enum { THREADS = 16, EPISODES = 4000000 };

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void make_storm(struct cc_rec_episode *all)
{
	uint64_t seed = 88172645463325252ull;
	cc_ns in[THREADS];
	uint32_t seq[THREADS] = { 0 };

	for (int i = 0; i < THREADS; i++)
		in[i] = CC_S(1000);
	for (int i = 0; i < EPISODES; i++) {
		uint32_t t = (uint32_t)(next_random(&seed) % THREADS);
		struct cc_rec_episode *e = &all[i];

		e->h = (struct cc_rec){ .size = sizeof(*e), .kind = CC_REC_EPISODE, .aux = 202 };
		e->h.cpu = (uint16_t)(next_random(&seed) % 8 == 0);
		e->tid = 4000 + t;
		e->seq = ++seq[t];
		e->out = in[t] + 500 + next_random(&seed) % 4000;
		e->wake = e->out + 1000 + next_random(&seed) % 16000;
		e->h.ts = in[t] = e->wake + 900 + next_random(&seed) % 3000;
		e->state = 1;
		e->waker_tid = 4000 + (uint32_t)((t + 1 + next_random(&seed) % 3) % THREADS);
		e->waker_tgid = 4000;
		e->key = 0x5000 + (uint32_t)(next_random(&seed) % 4) * 64;
	}
}

/* How fast FILE is read, and how long a file of nothing but its episodes is. */
static int read_file(const char *path)
{
	char only[] = "/tmp/criticast-bench-XXXXXX";
	int fd = mkstemp(only);
	uint64_t episodes = 0, total = 0, only_bytes;
	struct trace_reader *r;
	struct trace_writer *w;
	const struct cc_rec *rec;
	struct cc_err err;
	size_t len;

	if (fd < 0 || trace_reader_open(path, &err, &r) || trace_writer_open(only, &err, &w)) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	double start = now_s();

	while (trace_reader_next(r, &rec, &len) == 1)
		total++;
	double took = now_s() - start;

	if (trace_reader_seek(r, 0, 0, false))
		return 1;
	while (trace_reader_next(r, &rec, &len) == 1) {
		if (rec->kind != CC_REC_EPISODE)
			continue;
		episodes++;
		if (trace_writer_put(w, rec, len))
			return 1;
	}
	only_bytes = trace_writer_close(w) ? 0 : (uint64_t)lseek(fd, 0, SEEK_END);
	close(fd);
	unlink(only);
	printf("records %llu episodes %llu episode_bytes %llu file_bytes %llu read_s %.6f\n",
	       (unsigned long long)total, (unsigned long long)episodes,
	       (unsigned long long)only_bytes, (unsigned long long)trace_reader_info(r)->file_bytes,
	       took);
	trace_reader_free(r);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return read_file(argv[1]);
	struct cc_rec_episode *all = calloc(EPISODES, sizeof(*all));
	char path[] = "/tmp/criticast-bench-XXXXXX";
	int fd = mkstemp(path);
	struct trace_writer *w;
	struct trace_reader *r;
	struct cc_err err;
	uint64_t cnt = 0, sum = 0;

	if (!all || fd < 0 || trace_writer_open(path, &err, &w))
		return 1;
	close(fd);
	make_storm(all);
	double start = now_s();

	for (int i = 0; i < EPISODES; i++) {
		if (trace_writer_put(w, &all[i].h, sizeof(all[i])))
			return 1;
	}
	if (trace_writer_close(w))
		return 1;
	double wrote = now_s() - start;

	if (trace_reader_open(path, &err, &r))
		return 1;
	uint64_t bytes = trace_reader_info(r)->file_bytes;
	const struct cc_rec *rec;
	size_t len;

	start = now_s();
	while (trace_reader_next(r, &rec, &len) == 1) {
		cnt++;
		sum += rec->ts;
	}
	double read = now_s() - start;

	trace_reader_free(r);
	unlink(path);
	for (int i = 0; i < EPISODES; i++)
		sum -= all[i].h.ts;
	if (cnt != EPISODES || sum)
		return 1;
	double raw = EPISODES * sizeof(*all) / 1e6;

	printf("trace: %.2f bytes/episode, write %.2f M/s (%.0f MB/s), read %.2f M/s (%.0f MB/s)\n",
	       (double)bytes / EPISODES, EPISODES / wrote / 1e6, raw / wrote, EPISODES / read / 1e6,
	       raw / read);
	free(all);
	return 0;
}
