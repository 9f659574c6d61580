// SPDX-License-Identifier: Apache-2.0
/* paced FILE SECONDS: threads whose waits end by a timer or a device, beside threads that burn the
 * CPU in user and in kernel mode, so that the interrupts meet somebody. Each thread has the name of
 * what it does: "sleep", "syncs" (FILE), "timerfd", "epoll", "condwait" (with a timeout that
 * always comes), "burn-user", "burn-kernel"; "handed" waits for "hands", as a control. Prints its
 * pid and waits for a line on stdin before they start. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PACE_NS 3000000

struct load {
	atomic_bool stop;
	const char *file;
	sem_t handed;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void nap(void) { nanosleep(&(struct timespec){ .tv_nsec = PACE_NS }, NULL); }

static void *sleeps(void *arg)
{
	struct load *l = arg;
	while (!l->stop)
		nap();
	return NULL;
}

static void *syncs(void *arg)
{
	struct load *l = arg;
	static const char block[4096];
	int fd = open(l->file, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	if (fd < 0)
		die(l->file);
	while (!l->stop) {
		if (write(fd, block, sizeof(block)) != sizeof(block) || fsync(fd))
			die("fsync");
		nap();
	}
	close(fd);
	return NULL;
}

static void *timerfd(void *arg)
{
	struct load *l = arg;
	const struct itimerspec every = { { .tv_nsec = PACE_NS }, { .tv_nsec = PACE_NS } };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t cnt;
	if (fd < 0 || timerfd_settime(fd, 0, &every, NULL))
		die("timerfd");
	while (!l->stop)
		if (read(fd, &cnt, sizeof(cnt)) != sizeof(cnt))
			die("read");
	return NULL;
}

static void *epolls(void *arg)
{
	struct load *l = arg;
	struct epoll_event ev;
	int ep = epoll_create1(0);
	while (!l->stop)
		epoll_wait(ep, &ev, 1, PACE_NS / 1000000);
	return NULL;
}

static void *condwait(void *arg)
{
	struct load *l = arg;
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	while (!l->stop) {
		struct timespec t;
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += PACE_NS;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		pthread_mutex_lock(&m);
		pthread_cond_timedwait(&c, &m, &t);
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

static void *hands(void *arg)
{
	struct load *l = arg;
	while (!l->stop) {
		nap();
		sem_post(&l->handed);
	}
	return NULL;
}

static void *handed(void *arg)
{
	struct load *l = arg;
	while (!l->stop)
		sem_wait(&l->handed);
	return NULL;
}

static void *burn_user(void *arg)
{
	struct load *l = arg;
	while (!l->stop)
		;
	return NULL;
}

static void *burn_kernel(void *arg)
{
	static char pages[1 << 20];
	struct load *l = arg;
	int fd = open("/dev/zero", O_RDONLY);
	while (!l->stop)
		if (read(fd, pages, sizeof(pages)) < 0)
			die("/dev/zero");
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void *(*fn)(void *);
	} jobs[] = {
		{ "sleep", sleeps }, { "syncs", syncs },         { "timerfd", timerfd },
		{ "epoll", epolls }, { "condwait", condwait },   { "handed", handed },
		{ "hands", hands },  { "burn-user", burn_user }, { "burn-kernel", burn_kernel },
	};
	pthread_t threads[sizeof(jobs) / sizeof(*jobs)];
	static struct load l;
	if (argc != 3)
		return fprintf(stderr, "usage: paced FILE SECONDS\n"), 2;
	l.file = argv[1];
	sem_init(&l.handed, 0, 0);
	printf("%d\n", getpid());
	fflush(stdout);
	(void)getchar();
	for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
		if (pthread_create(&threads[i], NULL, jobs[i].fn, &l))
			die("thread");
		pthread_setname_np(threads[i], jobs[i].name);
	}
	sleep((unsigned int)atoi(argv[2]));
	l.stop = true;
	sem_post(&l.handed); /* it may have taken the last one before it could know */
	for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++)
		pthread_join(threads[i], NULL);
	return 0;
}
