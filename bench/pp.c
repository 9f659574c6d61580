// SPDX-License-Identifier: Apache-2.0
/* pp SECONDS [PAIRS]: the scheduler storm: pairs of threads that hand a turn to each other through
 * a mutex and a condition variable, each pair on one CPU. Prints its pid, waits for a line on
 * stdin, runs, prints "<hand-offs> <on-CPU ns of this process> <ns>", and ends with stdin. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PAIRS_MAX 64

struct pair {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int turn;
	bool go, stop;
	uint64_t handoffs;
} __attribute__((aligned(128)));

struct player {
	struct pair *pair;
	int me;
};

static void *play(void *arg)
{
	const struct player *a = arg;
	struct pair *p = a->pair;
	pthread_mutex_lock(&p->mutex);
	while (!p->go)
		pthread_cond_wait(&p->changed, &p->mutex);
	pthread_mutex_unlock(&p->mutex);
	for (;;) {
		pthread_mutex_lock(&p->mutex);
		while (p->turn != a->me && !p->stop)
			pthread_cond_wait(&p->changed, &p->mutex);
		if (p->stop) {
			pthread_mutex_unlock(&p->mutex);
			return NULL;
		}
		p->turn = !a->me;
		p->handoffs++;
		pthread_cond_signal(&p->changed);
		pthread_mutex_unlock(&p->mutex);
	}
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t handoffs(struct pair *p, int n)
{
	uint64_t sum = 0;
	for (int i = 0; i < n; i++) {
		pthread_mutex_lock(&p[i].mutex);
		sum += p[i].handoffs;
		pthread_mutex_unlock(&p[i].mutex);
	}
	return sum;
}

static void tell(struct pair *p, int n, bool stop)
{
	for (int i = 0; i < n; i++) {
		pthread_mutex_lock(&p[i].mutex);
		p[i].go = true;
		p[i].stop = stop;
		pthread_cond_broadcast(&p[i].changed);
		pthread_mutex_unlock(&p[i].mutex);
	}
}

int main(int argc, char **argv)
{
	static struct pair pairs[PAIRS_MAX];
	static struct player players[2 * PAIRS_MAX];
	pthread_t threads[2 * PAIRS_MAX];
	double secs = argc > 1 ? atof(argv[1]) : 2;
	int n = argc > 2 ? atoi(argv[2]) : 4;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (n < 1 || n > PAIRS_MAX || secs <= 0)
		return fprintf(stderr, "usage: pp SECONDS [PAIRS]\n"), 2;
	for (int i = 0; i < 2 * n; i++) {
		pthread_attr_t attr;
		cpu_set_t set;
		if (i % 2 == 0) {
			pthread_mutex_init(&pairs[i / 2].mutex, NULL);
			pthread_cond_init(&pairs[i / 2].changed, NULL);
		}
		players[i] = (struct player){ &pairs[i / 2], i % 2 };
		CPU_ZERO(&set);
		CPU_SET(i / 2 % (int)cpus, &set);
		pthread_attr_init(&attr);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
		if (pthread_create(&threads[i], &attr, play, &players[i]))
			return perror("pp"), 1;
	}
	printf("%d\n", getpid());
	fflush(stdout);
	(void)getchar();
	uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), wall = clock_ns(CLOCK_MONOTONIC);
	tell(pairs, n, false);
	usleep((useconds_t)(secs * 1e6));
	uint64_t ops = handoffs(pairs, n);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = clock_ns(CLOCK_MONOTONIC) - wall;
	tell(pairs, n, true);
	for (int i = 0; i < 2 * n; i++)
		pthread_join(threads[i], NULL);
	printf("%ju %ju %ju\n", (uintmax_t)ops, (uintmax_t)cpu, (uintmax_t)wall);
	fflush(stdout);
	while (getchar() !=
	       EOF) /* a tracer ends with its target: that would be counted as its work */
		;
	return 0;
}
