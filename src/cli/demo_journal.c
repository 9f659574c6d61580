// SPDX-License-Identifier: Apache-2.0
#include "demo_journal.h"
#include "demo_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* What is tried, in this order, until one is good. O_DIRECT leaves the CPU almost nothing to do. */
static const struct way {
	uint32_t bytes;
	bool direct;
} ways[] = { { 64 << 10, false },
	     { 1 << 20, false },
	     { 1 << 20, true },
	     { 4 << 20, true },
	     { 16 << 20, true } };

#define TRY_NS CC_MS(25)
#define TRY_MIN 3 /* syncs */
/* How many times longer than on a CPU a sync has to be off it: tracing and company cost some. */
#define RATIO_GOOD 5.0
#define RATIO_LEAST 2.5

void demo_run_at_once(bool on)
{
	sched_setscheduler(0, on ? SCHED_RR : SCHED_OTHER,
			   &(struct sched_param){ .sched_priority = on });
}

static void *map_block(uint32_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE); /* few pieces for the disk, where there are any */
	for (uint32_t at = 0; at < bytes; at += 4096)
		((char *)p)[at] = 'j';
	return p;
}

bool demo_journal_sync(const struct demo_journal *j)
{
	return j->fd >= 0 && j->block &&
	       pwrite(j->fd, j->block, j->bytes, 0) == (ssize_t)j->bytes && fsync(j->fd) == 0;
}

/* Time off the CPU, in times of that on it; 0: it does not work here. */
static double ratio_of(const struct demo_journal *j)
{
	struct demo_meter m;
	demo_meter_open(&m);
	bool ok = demo_journal_sync(j); /* the first one also finds room on the disk */
	struct demo_usage begun = demo_meter_read(&m), now = begun;
	for (int n = 0; ok && (n < TRY_MIN || now.now - begun.now < TRY_NS); n++) {
		ok = demo_journal_sync(j);
		now = demo_meter_read(&m);
	}
	demo_meter_close(&m);
	if (!ok || now.cpu == begun.cpu)
		return 0;
	return (double)demo_off_ns(&begun, &now) / (double)(now.cpu - begun.cpu);
}

/* Opens a file in @dir; it is unlinked at once, so that nothing can be left. */
static int open_unlinked(const char *dir, bool direct)
{
	char path[4096];
	if (snprintf(path, sizeof(path), "%s/cart.journal.XXXXXX", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	int fd = mkostemp(path, O_CLOEXEC | (direct ? O_DIRECT : 0));
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

/* Takes @w in @dir when it beats *best. */
static void try_way(const char *dir, const struct way *w, struct demo_journal *j, double *best)
{
	struct demo_journal mine = { .fd = open_unlinked(dir, w->direct), .bytes = w->bytes };
	if (mine.fd < 0)
		return;
	double ratio = demo_journal_use(&mine) ? 0 : ratio_of(&mine);
	if (ratio >= RATIO_LEAST && ratio > *best) {
		struct demo_journal worse = *j;
		*best = ratio;
		*j = mine;
		mine = worse;
	}
	demo_journal_close(&mine);
}

void demo_journal_open(struct demo_journal *j)
{
	const char *dirs[] = { getenv("TMPDIR"), "/var/tmp", "/tmp", "." };
	double best = 0;
	*j = (struct demo_journal){ .fd = -1 };
	demo_run_at_once(true);
	for (size_t d = 0; d < ARRAY_SIZE(dirs); d++)
		for (size_t i = 0; dirs[d] && i < ARRAY_SIZE(ways) && best < RATIO_GOOD; i++)
			try_way(dirs[d], &ways[i], j, &best);
	demo_run_at_once(false);
	if (j->block)
		munmap(j->block, j->bytes); /* of this process, which does not sync */
	j->block = NULL;
}

int demo_journal_use(struct demo_journal *j)
{
	j->block = map_block(j->bytes);
	return j->block ? 0 : -ENOMEM;
}

void demo_journal_close(struct demo_journal *j)
{
	if (j->block)
		munmap(j->block, j->bytes);
	if (j->fd >= 0)
		close(j->fd);
	*j = (struct demo_journal){ .fd = -1 };
}
