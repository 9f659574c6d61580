/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of cases.c share: the case that runs, clocks, naps. */
#ifndef CASES_H
#define CASES_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB (1ul << 20)

struct ctx {
	const char *file;
	volatile bool go, stop;
	unsigned long victim_ns;
	pthread_mutex_t *lock; /* in shared memory */
	char *map;
	size_t map_len;
	int fds[2];
};

static void die(const char *what)
{
	fprintf(stderr, "cases: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

static void nap(unsigned int us)
{
	const struct timespec t = { us / 1000000, us % 1000000 * 1000l };
	nanosleep(&t, NULL);
}

static void burn(unsigned int us)
{
	unsigned long end = now() + us * 1000ul;
	while (now() < end)
		;
}

static void on_one_cpu(void)
{
	cpu_set_t set, old;
	sched_getaffinity(0, sizeof(old), &old);
	CPU_ZERO(&set);
	for (int i = CPU_SETSIZE - 1; i >= 0; i--)
		if (CPU_ISSET(i, &old)) {
			CPU_SET(i, &set);
			break;
		}
	if (sched_setaffinity(0, sizeof(set), &set))
		die("affinity");
}

/* The victim's operation: what is between is counted. */
#define VICTIM(c, op)                          \
	do {                                   \
		unsigned long at_ = now();     \
		op;                            \
		(c)->victim_ns += now() - at_; \
	} while (0)

#endif
