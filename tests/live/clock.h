/* SPDX-License-Identifier: Apache-2.0 */
/* clock: the time of logs that are a live test's truth, and a sleep of so many ns. */
#ifndef CC_TEST_CLOCK_H
#define CC_TEST_CLOCK_H

#include <errno.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void sleep_ns(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

#endif
