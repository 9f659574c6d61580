// SPDX-License-Identifier: Apache-2.0
/* lockstorm THREADS SECONDS sleep|spin LOG: threads that take one glibc mutex again and again. A
 * glibc mutex lets whoever comes first take it (barging), so the waiter that a release wakes often
 * finds it taken. LOG gets the truth, a line per acquisition: tid requested acquired released, in
 * CLOCK_MONOTONIC ns. Prints its pid and waits for a line on stdin before the storm. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define THREADS_MAX 64
#define TAKES_MAX 200000

struct take {
	uint64_t requested, acquired, released;
};

struct worker {
	pthread_t thread;
	pid_t tid;
	unsigned int seed;
	size_t cnt;
	struct take *takes;
	const atomic_bool *stop;
	pthread_mutex_t *mutex;
	bool spin;
};

static void hold(struct worker *w)
{
	uint64_t ns = 200000 + (uint64_t)rand_r(&w->seed) % 800000;
	if (!w->spin) {
		sleep_ns(ns);
		return;
	}
	for (uint64_t end = now_ns() + ns / 4; now_ns() < end;)
		;
}

static void *storm(void *arg)
{
	struct worker *w = arg;
	w->tid = gettid();
	while (!atomic_load(w->stop) && w->cnt < TAKES_MAX) {
		struct take *t = &w->takes[w->cnt];
		t->requested = now_ns();
		pthread_mutex_lock(w->mutex);
		t->acquired = now_ns();
		hold(w);
		t->released = now_ns();
		pthread_mutex_unlock(w->mutex);
		w->cnt++;
		sleep_ns((uint64_t)rand_r(&w->seed) % 1000000);
	}
	return NULL;
}

static int write_log(const char *path, const struct worker *w, int n)
{
	FILE *f = fopen(path, "w");
	if (!f)
		return perror(path), 1;
	for (int i = 0; i < n; i++) {
		for (size_t k = 0; k < w[i].cnt; k++) {
			const struct take *t = &w[i].takes[k];
			fprintf(f, "%d %ju %ju %ju\n", w[i].tid, (uintmax_t)t->requested,
				(uintmax_t)t->acquired, (uintmax_t)t->released);
		}
	}
	return fclose(f) ? (perror(path), 1) : 0;
}

int main(int argc, char **argv)
{
	static struct worker w[THREADS_MAX];
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	atomic_bool stop = false;
	int n = argc == 5 ? atoi(argv[1]) : 0;
	if (n < 1 || n > THREADS_MAX) {
		fprintf(stderr, "usage: lockstorm THREADS SECONDS sleep|spin LOG\n");
		return 2;
	}
	printf("%d\n", getpid());
	fflush(stdout);
	(void)getchar();
	for (int i = 0; i < n; i++) {
		w[i] = (struct worker){ .seed = (unsigned int)i + 1,
					.takes = calloc(TAKES_MAX, sizeof(struct take)),
					.stop = &stop,
					.mutex = &mutex,
					.spin = !strcmp(argv[3], "spin") };
		if (!w[i].takes || pthread_create(&w[i].thread, NULL, storm, &w[i]))
			return perror("lockstorm"), 1;
	}
	struct timespec t = { .tv_sec = atoi(argv[2]) };
	nanosleep(&t, NULL);
	atomic_store(&stop, true);
	for (int i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	return write_log(argv[4], w, n);
}
