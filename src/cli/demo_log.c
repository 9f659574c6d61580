// SPDX-License-Identifier: Apache-2.0
#include "demo_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const struct {
	const char *key, *title;
} causes[] = {
#define X(id, key, title) { key, title },
	DEMO_CAUSES(X)
#undef X
};

const char *demo_cause_key(unsigned int cause)
{
	return cause < ARRAY_SIZE(causes) ? causes[cause].key : "?";
}

const char *demo_cause_title(unsigned int cause)
{
	return cause < ARRAY_SIZE(causes) ? causes[cause].title : "";
}

bool demo_cause_here(const struct demo_shared *sh, unsigned int cause)
{
	return sh->journal.fd >= 0 || (cause != DEMO_LOCK && cause != DEMO_FSYNC);
}

void demo_log_req(struct demo_shared *sh, const struct demo_req *r)
{
	unsigned int i = atomic_fetch_add(&sh->req_cnt, 1);

	if (i >= DEMO_REQS_MAX)
		return;
	sh->req[i] = *r;
	atomic_store_explicit(&sh->req[i].ready, true, memory_order_release);
}

void demo_log_hold(struct demo_shared *sh, const struct demo_hold *h)
{
	unsigned int i = atomic_fetch_add(&sh->hold_cnt, 1);

	if (i >= DEMO_HOLDS_MAX)
		return;
	sh->hold[i] = *h;
	atomic_store_explicit(&sh->hold[i].ready, true, memory_order_release);
}

static cc_ns clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

cc_ns demo_now(void) { return clock_ns(CLOCK_MONOTONIC); }

void demo_sleep(cc_ns ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / CC_S(1)), .tv_nsec = (long)(ns % CC_S(1)) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

void demo_meter_open(struct demo_meter *m)
{
	m->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void demo_meter_close(struct demo_meter *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

struct demo_usage demo_meter_read(const struct demo_meter *m)
{
	struct demo_usage u = { .cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) };
	char buf[96];
	ssize_t n = m->fd < 0 ? 0 : pread(m->fd, buf, sizeof(buf) - 1, 0);

	if (n > 0) { /* "cpu runq slices" */
		char *end;

		buf[n] = '\0';
		(void)strtoull(buf, &end, 10);
		u.runq = strtoull(end, NULL, 10);
	}
	u.now = demo_now();
	return u;
}

cc_ns demo_off_ns(const struct demo_usage *a, const struct demo_usage *b)
{
	cc_ns wall = b->now - a->now, busy = b->cpu - a->cpu + b->runq - a->runq;

	return wall > busy ? wall - busy : 0;
}
