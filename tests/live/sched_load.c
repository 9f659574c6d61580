// SPDX-License-Identifier: Apache-2.0
/* sched_load CASE [ARGS]: loads whose scheduling is known. Prints its pid, waits for a line on
 * stdin, runs, and prints its own truth, "key value ..." a line, in CLOCK_MONOTONIC ns. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16
#define HOLDS_MAX 20000

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now(void) { return clock_ns(CLOCK_MONOTONIC); }

static void nap(long us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
	nanosleep(&t, NULL);
}

static void burn(uint64_t ns)
{
	uint64_t end = now() + ns;
	while (now() < end)
		;
}

static int tid(void) { return (int)syscall(SYS_gettid); }

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

struct shared {
	pthread_mutex_t lock, out; /* out: for stdout and holds */
	uint64_t end;
	int n;
	struct hold {
		int tid;
		uint64_t from, to;
	} holds[HOLDS_MAX];
	int hold_cnt;
};

static void said(struct shared *s, const char *key, uint64_t start)
{
	pthread_mutex_lock(&s->out);
	printf("%s %d %llu %llu %llu\n", key, tid(), (unsigned long long)start,
	       (unsigned long long)now(), (unsigned long long)clock_ns(CLOCK_THREAD_CPUTIME_ID));
	pthread_mutex_unlock(&s->out);
}

/* "thread TID START END CPU-NS" for each */
static void *mixed(void *arg)
{
	struct shared *s = arg;
	uint64_t start = now();
	for (int i = 0; now() < s->end; i++) {
		pthread_mutex_lock(&s->lock);
		burn(20000);
		pthread_mutex_unlock(&s->lock);
		if (i % 3 == 0)
			nap(300);
		burn(100000);
	}
	said(s, "thread", start);
	return NULL;
}

/* Sleepers that hold a mutex: "hold TID FROM TO", between lock and unlock. */
static void *holder(void *arg)
{
	struct shared *s = arg;
	while (now() < s->end) {
		pthread_mutex_lock(&s->lock);
		uint64_t from = now();
		nap(400);
		uint64_t to = now();
		if (s->hold_cnt < HOLDS_MAX)
			s->holds[s->hold_cnt++] = (struct hold){ tid(), from, to };
		pthread_mutex_unlock(&s->lock);
		burn(10000);
	}
	return NULL;
}

static void *short_waits(void *arg) /* many, for a ring that is too small */
{
	struct shared *s = arg;
	uint64_t start = now();
	while (now() < s->end) {
		for (int i = 0; i < 50; i++)
			sched_yield();
		nap(1);
		burn(5000);
	}
	said(s, "thread", start);
	return NULL;
}

static void run_threads(struct shared *s, int cnt, void *(*fn)(void *))
{
	pthread_t t[THREADS_MAX];
	for (int i = 0; i < cnt; i++)
		if (pthread_create(&t[i], NULL, fn, s))
			exit(1);
	for (int i = 0; i < cnt; i++)
		pthread_join(t[i], NULL);
}

/* Others on the machine must not come between: the hog is the strongest, then those it keeps out.
 */
static void pin_at(int nice)
{
	pin(0);
	if (setpriority(PRIO_PROCESS, (id_t)tid(), nice))
		fprintf(stderr, "nice %d: %s\n", nice, strerror(errno));
}

static void *hog(void *arg)
{
	struct shared *s = arg;
	pin_at(-16);
	said(s, "hog", now());
	/* "hold TID FROM TO": when it had the CPU; a step of more than 20 us is time it had not */
	for (uint64_t from = now(), last = from, t; last < s->end; last = t) {
		t = now();
		if (t - last < 20000 || s->hold_cnt >= HOLDS_MAX)
			continue;
		s->holds[s->hold_cnt++] = (struct hold){ tid(), from, last };
		from = t;
	}
	return NULL;
}

static void *tiny(void *arg) /* runs last before the victim, for some us */
{
	struct shared *s = arg;
	pin_at(-12);
	while (now() < s->end) {
		burn(20000);
		nap(700);
	}
	return NULL;
}

static void *victim(void *arg)
{
	struct shared *s = arg;
	pin_at(-12);
	said(s, "victim", now());
	while (now() < s->end) {
		burn(4000000); /* longer than its slice: it will be queued behind the hog */
		nap(200);
	}
	return NULL;
}

static void queued_behind_hog(struct shared *s)
{
	pthread_t t[4];
	void *(*fn[4])(void *) = { hog, tiny, tiny, victim };
	for (int i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, fn[i], s))
			exit(1);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void *born(void *arg)
{
	struct shared *s = arg;
	nap(2000);
	said(s, "born", 0);
	return NULL;
}

/* "child PID": forks a child that execs; and a thread that ends. */
static void births(struct shared *s)
{
	pid_t pid = fork();
	if (!pid) {
		nap(3000);
		execl("/bin/sleep", "sleep", "0.05", (char *)NULL);
		_exit(127);
	}
	printf("child %d\n", (int)pid);
	run_threads(s, 3, born);
	waitpid(pid, NULL, 0);
}

/* Blocks before anyone may have attached: "blocked TID AT". */
/* However long it takes to attach: for some refreshes more than that. */
static void *let_go(void *word)
{
	char line[16];
	if (fgets(line, sizeof(line), stdin))
		nap(4000000);
	syscall(SYS_futex, word, 129 /* WAKE | PRIVATE */, 1, NULL, NULL, 0);
	return NULL;
}

static void hang(void)
{
	int word = 1;
	pthread_t t;
	if (pthread_create(&t, NULL, let_go, &word))
		exit(1);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	setpriority(PRIO_PROCESS, 0,
		    -20); /* so that nothing comes between the clock and the block */
	nap(1000);
	uint64_t at = now();
	syscall(SYS_futex, &word, 128 /* WAIT | PRIVATE */, 1, NULL, NULL, 0);
	printf("blocked %d %llu\n", tid(), (unsigned long long)at);
}

int main(int argc, char **argv)
{
	static struct shared s = { .lock = PTHREAD_MUTEX_INITIALIZER,
				   .out = PTHREAD_MUTEX_INITIALIZER };
	const char *what = argc > 1 ? argv[1] : "";
	char line[16];
	if (!strcmp(what, "hang")) {
		hang();
		return 0;
	}
	printf("%d\n", (int)getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	s.end = now() + (argc > 2 ? strtoull(argv[2], NULL, 10) : 1000) * 1000000u;
	if (!strcmp(what, "mixed"))
		run_threads(&s, 6, mixed);
	else if (!strcmp(what, "holders"))
		run_threads(&s, 8, holder);
	else if (!strcmp(what, "short"))
		run_threads(&s, 4, short_waits);
	else if (!strcmp(what, "hog"))
		queued_behind_hog(&s);
	else if (!strcmp(what, "births"))
		births(&s);
	else if (!strcmp(what, "burn"))
		burn(s.end - now());
	else
		return 2;
	for (int i = 0; i < s.hold_cnt; i++)
		printf("hold %d %llu %llu\n", s.holds[i].tid, (unsigned long long)s.holds[i].from,
		       (unsigned long long)s.holds[i].to);
	return 0;
}
