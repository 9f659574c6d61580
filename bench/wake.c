// SPDX-License-Identifier: Apache-2.0
/* wake SECONDS: one thread wakes another, 5000 times a second, each on a CPU of its own. Prints its
 * pid, waits for a line, and prints how many, and the 50th, 99th and 99.9th percentile of the ns
 * from the write to the end of the read that waited for it. */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS 200000

static int wire[2];

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void on_cpu(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set); /* a machine of one has no choice */
}

static void *waker(void *secs)
{
	uint64_t end = now_ns() + (uint64_t)(strtod(secs, NULL) * 1e9), at;
	on_cpu(0);
	do {
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
		at = now_ns();
		if (write(wire[1], &at, sizeof(at)) != sizeof(at))
			break;
	} while (at < end);
	close(wire[1]);
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	pthread_t t;
	if (argc != 2 || pipe(wire))
		return fprintf(stderr, "usage: wake SECONDS\n"), 2;
	size_t cap = (size_t)(strtod(argv[1], NULL) * (1e9 / NAP_NS)) + 2, n = 0;
	uint64_t *took = calloc(cap, sizeof(*took)), at;
	printf("%d\n", (int)getpid());
	fflush(stdout);
	if (!took || getchar() == EOF || pthread_create(&t, NULL, waker, argv[1]))
		return 1;
	on_cpu(1);
	while (n < cap && read(wire[0], &at, sizeof(at)) == sizeof(at))
		took[n++] = now_ns() - at;
	pthread_join(t, NULL);
	qsort(took, n, sizeof(*took), by_size);
	printf("%zu", n);
	for (size_t i = 0, per[] = { 500, 990, 999 }; i < 3; i++)
		printf(" %llu", (unsigned long long)(n ? took[n * per[i] / 1000] : 0));
	puts("");
	return 0;
}
