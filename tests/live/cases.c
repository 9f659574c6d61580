/* SPDX-License-Identifier: Apache-2.0 */
/* cases NAME FILE SECONDS: small reproductions of waits that were slow in the field, one each. A
 * thread called "victim" does an operation again and again, others are the cause. Prints its pid,
 * waits for a line, runs, and prints the ns that the victim's operations took by its own clock. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "cases_more.h"

/* ---- locks ---- */

static void *lock_victim(void *arg)
{
	struct ctx *c = arg;
	while (!c->stop) {
		VICTIM(c, pthread_mutex_lock(c->lock));
		pthread_mutex_unlock(c->lock);
		nap(500);
	}
	return NULL;
}

static void *lock_and_sync(void *arg)
{
	struct ctx *c = arg;
	static char page[64 * 1024];
	int fd = open(c->file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die(c->file);
	while (!c->stop) {
		pthread_mutex_lock(c->lock);
		unsigned long end = now() + 5000000;
		do {
			if (pwrite(fd, page, sizeof(page), 0) < 0 || fsync(fd))
				die("write");
		} while (now() < end);
		pthread_mutex_unlock(c->lock);
		nap(200);
	}
	close(fd);
	return NULL;
}

static void *lock_for_ever(void *arg)
{
	struct ctx *c = arg;
	pthread_mutex_lock(c->lock);
	while (!c->stop)
		nap(10000);
	return NULL;
}

static void *lock_late(void *arg)
{
	struct ctx *c = arg;
	nap(50000);
	pthread_mutex_lock(c->lock);
	return NULL;
}

/* A logger whose pipe nobody reads: the lock is never let go. */
static void *lock_in_full_pipe(void *arg)
{
	struct ctx *c = arg;
	static char lines[256 * 1024];
	pthread_mutex_lock(c->lock);
	if (write(c->fds[1], lines, sizeof(lines)) < 0 && errno != EPIPE)
		die("pipe");
	return NULL;
}

static void realtime(int prio)
{
	struct sched_param p = { .sched_priority = prio };
	on_one_cpu();
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &p))
		exit(77); /* not allowed here */
}

static void *high(void *arg)
{
	realtime(30);
	return lock_victim(arg);
}

static void *mid(void *arg)
{
	struct ctx *c = arg;
	realtime(20);
	while (!c->stop) {
		burn(8000);
		nap(8000);
	}
	return NULL;
}

static void *low(void *arg)
{
	struct ctx *c = arg;
	realtime(10);
	while (!c->stop) {
		pthread_mutex_lock(c->lock);
		burn(2000);
		pthread_mutex_unlock(c->lock);
		nap(300);
	}
	return NULL;
}

/* ---- memory ---- */

static void *reads_map(void *arg)
{
	struct ctx *c = arg;
	unsigned char *there = malloc(c->map_len / 4096);
	while (!c->stop) {
		VICTIM(c, mincore(c->map, 64 * 4096, there));
		nap(100);
	}
	free(there);
	return NULL;
}

static void *protects_map(void *arg)
{
	struct ctx *c = arg;
	while (!c->stop) {
		mprotect(c->map, c->map_len, PROT_READ);
		mprotect(c->map, c->map_len, PROT_READ | PROT_WRITE);
	}
	return NULL;
}

static void *maps_small(void *arg)
{
	struct ctx *c = arg;
	while (!c->stop) {
		void *p;
		VICTIM(c, p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
		munmap(p, 4096);
		nap(100);
	}
	return NULL;
}

static void *forks(void *arg)
{
	struct ctx *c = arg;
	while (!c->stop) {
		pid_t pid = fork();
		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		nap(1000);
	}
	return NULL;
}

static void *faults(void *arg)
{
	struct ctx *c = arg;
	int fd = open(c->file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static char page[MIB];
	if (fd < 0)
		die(c->file);
	memset(page, 'x', sizeof(page));
	for (int i = 0; i < 32; i++)
		if (write(fd, page, sizeof(page)) != sizeof(page))
			die("write");
	fsync(fd);
	volatile char *m = mmap(NULL, 32 * MIB, PROT_READ, MAP_SHARED, fd, 0);
	madvise((void *)m, 32 * MIB, MADV_RANDOM);
	while (!c->stop) {
		madvise((void *)m, 32 * MIB, MADV_DONTNEED);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		for (size_t i = 0; i < 32 * MIB && !c->stop; i += 64 * 4096)
			VICTIM(c, (void)m[i]);
	}
	close(fd);
	return NULL;
}

/* ---- others ---- */

static void *polls(void *arg)
{
	struct ctx *c = arg;
	while (!c->stop)
		VICTIM(c, nap(3000));
	return NULL;
}

static void *asks_silence(void *arg)
{
	struct ctx *c = arg;
	struct timeval wait = { 0, 100000 };
	struct sockaddr_in to = { .sin_family = AF_INET };
	socklen_t len = sizeof(to);
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	char buf[16];
	/* port 53 of nobody: the answers are lost on the way */
	to.sin_addr.s_addr = htonl(0xc0000201);
	to.sin_port = htons(53);
	if (connect(s, (void *)&to, len))
		to.sin_addr.s_addr = 0;
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	while (!c->stop) {
		ssize_t n = 0;
		if (to.sin_addr.s_addr)
			send(s, "where", 5, 0);
		VICTIM(c, n = recv(s, buf, sizeof(buf), 0));
		if (n > 0)
			die("an answer");
	}
	return NULL;
}

static void *locks_file(void *arg)
{
	struct ctx *c = arg;
	int fd = open(c->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	while (!c->stop) {
		VICTIM(c, flock(fd, LOCK_EX));
		flock(fd, LOCK_UN);
		nap(500);
	}
	return NULL;
}

static void *waits_for_child(void *arg)
{
	struct ctx *c = arg;
	while (!c->stop) {
		pid_t pid = fork();
		if (!pid) {
			nap(5000);
			_exit(0);
		}
		VICTIM(c, waitpid(pid, NULL, 0));
	}
	return NULL;
}

static void *works(void *arg)
{
	struct ctx *c = arg;
	while (!c->stop)
		VICTIM(c, burn(2000));
	return NULL;
}

static void *works_on_one_cpu(void *arg)
{
	struct ctx *c = arg;
	on_one_cpu();
	while (!c->stop) {
		nap(1000);
		VICTIM(c, burn(1000));
	}
	return NULL;
}

/* What another process does: @fn in a child until it is killed. */
static pid_t in_child(const char *name, void (*fn)(struct ctx *), struct ctx *c)
{
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		while (!c->go)
			nap(1000);
		fn(c);
		_exit(0);
	}
	return pid;
}

static void file_holder(struct ctx *c)
{
	int fd = open(c->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (;;) {
		flock(fd, LOCK_EX);
		nap(5000);
		flock(fd, LOCK_UN);
		nap(300);
	}
}

static void shared_holder(struct ctx *c)
{
	for (;;) {
		pthread_mutex_lock(c->lock);
		nap(5000);
		pthread_mutex_unlock(c->lock);
		nap(300);
	}
}

static void hogger(struct ctx *c)
{
	(void)c;
	on_one_cpu();
	if (setpriority(PRIO_PROCESS, 0, -15)) /* before all else that runs on this machine */
		exit(77);
	for (;;)
		;
}

struct job {
	const char *name;
	void *(*fn)(void *);
};

static const struct {
	const char *name;
	struct job jobs[4];
	size_t map_mib;
	const char *child;
	void (*child_fn)(struct ctx *);
	bool stuck; /* some thread never ends */
} cases[] = {
	{ .name = "fsync-lock",
	  .jobs = { { "victim", lock_victim }, { "holder", lock_and_sync } } },
	{ .name = "shared-lock",
	  .jobs = { { "victim", lock_victim } },
	  .child = "sharer",
	  .child_fn = shared_holder },
	{ .name = "hung-lock",
	  .jobs = { { "holder", lock_for_ever }, { "victim", lock_late } },
	  .stuck = true },
	{ .name = "logger-lock",
	  .jobs = { { "logger", lock_in_full_pipe }, { "victim", lock_late } },
	  .stuck = true },
	{ .name = "inversion", .jobs = { { "victim", high }, { "mid", mid }, { "low", low } } },
	{ .name = "mprotect",
	  .jobs = { { "victim", reads_map }, { "writer", protects_map } },
	  .map_mib = 64 },
	{ .name = "smaps", .jobs = { { "victim", maps_small } }, .map_mib = 512 },
	{ .name = "fork",
	  .jobs = { { "victim", maps_small }, { "forker", forks } },
	  .map_mib = 256 },
	{ .name = "pagefault", .jobs = { { "victim", faults } } },
	{ .name = "polling", .jobs = { { "victim", polls } } },
	{ .name = "udp-timeout", .jobs = { { "victim", asks_silence } } },
	{ .name = "flock",
	  .jobs = { { "victim", locks_file } },
	  .child = "file-holder",
	  .child_fn = file_holder },
	{ .name = "malloc",
	  .jobs = { { "victim", allocates },
		    { "allocator", allocates },
		    { "allocator", allocates },
		    { "allocator", allocates } } },
	{ .name = "journal",
	  .jobs = { { "victim", logs }, { "syncer", syncs }, { "syncer", syncs } } },
	{ .name = "reclaim", .jobs = { { "victim", grows }, { "dirtier", dirties } } },
	{ .name = "pipe", .jobs = { { "victim", reads_fd }, { "writer", writes_fd } } },
	{ .name = "unix", .jobs = { { "victim", reads_fd }, { "writer", writes_fd } } },
	{ .name = "messages",
	  .jobs = { { "victim", takes_messages }, { "sender", puts_messages } } },
	{ .name = "signal",
	  .jobs = { { "victim", waits_for_signal }, { "sender", sends_signals } } },
	{ .name = "nagle", .jobs = { { "victim", writes_twice }, { "server", answers_two } } },
	{ .name = "child", .jobs = { { "victim", waits_for_child } } },
	{ .name = "quota", .jobs = { { "victim", works } } },
	{ .name = "stopped", .jobs = { { "victim", works } } },
	{ .name = "runq",
	  .jobs = { { "victim", works_on_one_cpu } },
	  .child = "hogger",
	  .child_fn = hogger },
};

static void *shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static struct ctx *context(const char *file, size_t map_mib)
{
	struct ctx *c = shared(sizeof(*c));
	pthread_mutexattr_t attr;
	c->file = file;
	c->lock = shared(4096);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(c->lock, &attr);
	if (map_mib) {
		c->map_len = map_mib * MIB;
		c->map = mmap(NULL, c->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);
		if (c->map == MAP_FAILED)
			die("mmap");
		madvise(c->map, c->map_len, MADV_NOHUGEPAGE);
		for (size_t i = 0; i < c->map_len; i += 4096)
			c->map[i] = 1;
	}
	if (pipe2(c->fds, O_CLOEXEC))
		die("pipe");
	return c;
}

int main(int argc, char **argv)
{
	size_t at = 0;
	if (argc != 4)
		return fprintf(stderr, "usage: cases NAME FILE SECONDS\n"), 2;
	while (at < sizeof(cases) / sizeof(*cases) && strcmp(cases[at].name, argv[1]))
		at++;
	if (at == sizeof(cases) / sizeof(*cases))
		return fprintf(stderr, "cases: no %s\n", argv[1]), 2;
	struct ctx *c = context(argv[2], cases[at].map_mib);
	pid_t child = cases[at].child ? in_child(cases[at].child, cases[at].child_fn, c) : 0;
	pthread_t threads[4];
	size_t cnt = 0;
	prepare(c, argv[1]);
	printf("%d %d\n", getpid(), child);
	fflush(stdout);
	(void)getchar();
	c->go = true;
	for (; cnt < 4 && cases[at].jobs[cnt].fn; cnt++) {
		const struct job *j = &cases[at].jobs[cnt];
		if (pthread_create(&threads[cnt], NULL, j->fn, c))
			die("thread");
		pthread_setname_np(threads[cnt], j->name);
	}
	nap((unsigned int)(atof(argv[3]) * 1e6));
	if (cases[at].stuck) { /* until it is killed */
		puts("0");
		fflush(stdout);
		pause();
	}
	c->stop = true;
	for (size_t i = 0; i < cnt; i++)
		pthread_join(threads[i], NULL);
	printf("%lu\n", c->victim_ns);
	if (child > 0)
		kill(child, SIGKILL);
	return 0;
}
