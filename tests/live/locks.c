// SPDX-License-Identifier: Apache-2.0
/* locks KIND THREADS PROCESSES SECONDS LOG: threads, of several processes where a kind is made for
 * that, that take one lock of a kind again and again. LOG gets the truth, a line per acquisition:
 * tid requested acquired released shared, in CLOCK_MONOTONIC ns; shared: others may have it too at
 * the same time. Prints the pids of its processes in a line and waits for a line on stdin. Kinds:
 * the table at the end. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define THREADS_MAX 32
#define PROCESSES_MAX 4
#define TAKES_MAX 30000
#define FAR \
	(256u << 20) /* how far apart processes have their mappings, where those are to differ */

struct take {
	uint64_t requested, acquired, released;
	bool shared;
};

struct mcs { /* a waiter's own word, or the thread that is told by a signal */
	_Atomic(struct mcs *) next;
	atomic_uint locked;
	pid_t tid;
};

struct shm {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	pthread_rwlock_t rwlock;
	sem_t sem;
	pthread_barrier_t barrier;
	atomic_uint word, seq;
	_Atomic(struct mcs *) tail;
	int ends[2]; /* of what the token lies in: to take it from, to give it to */
	bool busy;
	int readers;
	int sysv;
	atomic_bool go, stop;
	struct worker {
		pid_t tid;
		atomic_uint cnt;
		struct take takes[TAKES_MAX];
	} workers[THREADS_MAX * PROCESSES_MAX];
};

struct lock {
	struct shm *s;
	int fd, sigfd; /* of this thread */
	struct mcs node;
	bool shared;
};

static const char *lock_file;

static long futex(atomic_uint *p, int op, unsigned int val)
{
	return syscall(SYS_futex, p, op, val, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* ---- kinds ---- */

static void mutex_take(struct lock *l)
{
	if (pthread_mutex_lock(&l->s->mutex) == EOWNERDEAD)
		pthread_mutex_consistent(&l->s->mutex);
}
static void mutex_give(struct lock *l) { pthread_mutex_unlock(&l->s->mutex); }

static void timed_take(struct lock *l)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 30;
	if (pthread_mutex_timedlock(&l->s->mutex, &t))
		abort();
}

static void rw_take(struct lock *l)
{
	if (l->shared)
		pthread_rwlock_rdlock(&l->s->rwlock);
	else
		pthread_rwlock_wrlock(&l->s->rwlock);
}
static void rw_give(struct lock *l) { pthread_rwlock_unlock(&l->s->rwlock); }

static void sem_take(struct lock *l)
{
	while (sem_wait(&l->s->sem))
		;
}
static void sem_give(struct lock *l) { sem_post(&l->s->sem); }

static void sysv(struct lock *l, short by)
{
	struct sembuf b = { .sem_op = by };

	while (semop(l->s->sysv, &b, 1))
		;
}
static void sysv_take(struct lock *l) { sysv(l, -1); }
static void sysv_give(struct lock *l) { sysv(l, 1); }

static void flock_take(struct lock *l)
{
	while (flock(l->fd, l->shared ? LOCK_SH : LOCK_EX))
		;
}
static void flock_give(struct lock *l) { flock(l->fd, LOCK_UN); }

static void ofd(struct lock *l, short type)
{
	struct flock f = { .l_type = type, .l_len = 1 };

	while (fcntl(l->fd, F_OFD_SETLKW, &f))
		;
}
static void ofd_take(struct lock *l) { ofd(l, l->shared ? F_RDLCK : F_WRLCK); }
static void ofd_give(struct lock *l) { ofd(l, F_UNLCK); }

/* One word, 2: somebody waits; nothing says who has it. As in Go, Rust and glibc's own. */
static void word_take(struct lock *l, int op)
{
	unsigned int none = 0;

	if (atomic_compare_exchange_strong(&l->s->word, &none, 1))
		return;
	while (atomic_exchange(&l->s->word, 2))
		futex(&l->s->word, op, 2);
}
static void word_give(struct lock *l, int op)
{
	if (atomic_exchange(&l->s->word, 0) == 2)
		futex(&l->s->word, op, 1);
}
static void plain_take(struct lock *l) { word_take(l, FUTEX_WAIT_PRIVATE); }
static void rust_take(struct lock *l) { word_take(l, FUTEX_WAIT_BITSET_PRIVATE); }
static void plain_give(struct lock *l) { word_give(l, FUTEX_WAKE_PRIVATE); }
static void across_take(struct lock *l) { word_take(l, FUTEX_WAIT); }
static void across_give(struct lock *l) { word_give(l, FUTEX_WAKE); }

/* Each waiter waits on a word of its own, which who was before it clears: strictly in turn. */
static void mcs_take(struct lock *l)
{
	struct mcs *before;

	atomic_store(&l->node.next, NULL);
	atomic_store(&l->node.locked, 1);
	before = atomic_exchange(&l->s->tail, &l->node);
	if (!before)
		return;
	atomic_store(&before->next, &l->node);
	while (atomic_load(&l->node.locked))
		futex(&l->node.locked, FUTEX_WAIT_PRIVATE, 1);
}
static void mcs_give(struct lock *l)
{
	struct mcs *me = &l->node, *next;

	if (atomic_compare_exchange_strong(&l->s->tail, &me, NULL))
		return;
	while (!(next = atomic_load(&l->node.next)))
		;
	atomic_store(&next->locked, 0);
	futex(&next->locked, FUTEX_WAKE_PRIVATE, 1);
}

/* A flag beneath a mutex, and a condition for those who find it set. */
static void cond_take(struct lock *l)
{
	pthread_mutex_lock(&l->s->mutex);
	while (l->s->busy)
		pthread_cond_wait(&l->s->cond, &l->s->mutex);
	l->s->busy = true;
	pthread_mutex_unlock(&l->s->mutex);
}
static void cond_free(struct lock *l)
{
	pthread_mutex_lock(&l->s->mutex);
	l->s->busy = false;
	pthread_mutex_unlock(&l->s->mutex);
}
static void cond_give(struct lock *l)
{
	cond_free(l);
	pthread_cond_signal(&l->s->cond);
}
/* Readers and writers over a condition, who comes first first. */
static void cond_rw_take(struct lock *l)
{
	pthread_mutex_lock(&l->s->mutex);
	while (l->s->busy || (!l->shared && l->s->readers))
		pthread_cond_wait(&l->s->cond, &l->s->mutex);
	l->s->busy = !l->shared;
	l->s->readers += l->shared;
	pthread_mutex_unlock(&l->s->mutex);
}
static void cond_rw_give(struct lock *l)
{
	pthread_mutex_lock(&l->s->mutex);
	l->s->busy = false;
	l->s->readers -= l->shared;
	if (!l->s->readers)
		pthread_cond_broadcast(&l->s->cond);
	pthread_mutex_unlock(&l->s->mutex);
}

static void all_give(struct lock *l)
{
	cond_free(l);
	pthread_cond_broadcast(&l->s->cond);
}

/* The same over futexes of our own: one of those that wait is woken, the others are moved over to
 * the lock beneath, whose release wakes them, as musl does it. */
static void requeue_take(struct lock *l)
{
	plain_take(l);
	while (l->s->busy) {
		unsigned int seq = atomic_load(&l->s->seq);

		plain_give(l);
		futex(&l->s->seq, FUTEX_WAIT_PRIVATE, seq);
		while (atomic_exchange(&l->s->word, 2)) /* others may have been moved there */
			futex(&l->s->word, FUTEX_WAIT_PRIVATE, 2);
	}
	l->s->busy = true;
	plain_give(l);
}
static void requeue_give(struct lock *l)
{
	plain_take(l);
	l->s->busy = false;
	atomic_fetch_add(&l->s->seq, 1);
	atomic_store(&l->s->word, 2);
	syscall(SYS_futex, &l->s->seq, FUTEX_CMP_REQUEUE_PRIVATE, 1, INT_MAX, &l->s->word,
		atomic_load(&l->s->seq));
	plain_give(l);
}

/* A token that lies somewhere: who reads it has it. */
static void token_take(struct lock *l)
{
	uint64_t token;

	while (read(l->s->ends[0], &token, sizeof(token)) != sizeof(token))
		;
}
static void token_give(struct lock *l)
{
	uint64_t token = 1;

	if (write(l->s->ends[1], &token, sizeof(token)) != sizeof(token))
		abort();
}
/* All that poll hear of it, one gets it. */
static void poll_take(struct lock *l)
{
	struct pollfd p = { l->s->ends[0], POLLIN, 0 };
	uint64_t token;

	do
		poll(&p, 1, -1);
	while (read(p.fd, &token, sizeof(token)) != sizeof(token));
}
static void mq_take(struct lock *l)
{
	uint64_t token;

	while (mq_receive(l->s->ends[0], (char *)&token, sizeof(token), NULL) != sizeof(token))
		;
}
static void mq_give(struct lock *l)
{
	uint64_t token = 1;

	if (mq_send(l->s->ends[1], (const char *)&token, sizeof(token), 0))
		abort();
}

/* In turn, as mcs, and told by a signal to that very thread. */
static bool turn_begins(struct lock *l)
{
	struct mcs *before;

	l->node.tid = gettid();
	atomic_store(&l->node.next, NULL);
	before = atomic_exchange(&l->s->tail, &l->node);
	if (before)
		atomic_store(&before->next, &l->node);
	return !before;
}
static void sigwait_take(struct lock *l)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (!turn_begins(l))
		sigwait(&set, &sig);
}
static void signalfd_take(struct lock *l)
{
	struct signalfd_siginfo si;

	if (turn_begins(l))
		return;
	while (read(l->sigfd, &si, sizeof(si)) != sizeof(si))
		;
}
static void signal_give(struct lock *l)
{
	struct mcs *me = &l->node, *next;

	if (atomic_compare_exchange_strong(&l->s->tail, &me, NULL))
		return;
	while (!(next = atomic_load(&l->node.next)))
		;
	tgkill(getpid(), next->tid, SIGUSR1);
}

/* No lock: what is waited for is whoever is still at work. */
static void barrier_take(struct lock *l) { pthread_barrier_wait(&l->s->barrier); }
static void nothing_give(struct lock *l) { (void)l; }

enum how {
	ROBUST = 1,
	PI = 2,
	WRITERS_FIRST = 4,
	SHARED = 8,
	APART = 16,
	READERS = 32,
	TWO = 64,
	PIPE = 128,
	EVENTFD = 256,
	UNIX = 512,
	MQ = 1024,
	ALL = 2048, /* all have it at a time, and nobody is ever without */
};

static const struct kind {
	const char *name;
	void (*take)(struct lock *l), (*give)(struct lock *l);
	int how;
} kinds[] = {
	{ "mutex", mutex_take, mutex_give, 0 },
	{ "timed", timed_take, mutex_give, 0 },
	{ "pi", mutex_take, mutex_give, PI },
	{ "robust", mutex_take, mutex_give, ROBUST },
	{ "shared", mutex_take, mutex_give, SHARED },
	{ "shared-apart", mutex_take, mutex_give, SHARED | APART },
	{ "shared-pi", mutex_take, mutex_give, SHARED | PI | APART },
	{ "shared-robust", mutex_take, mutex_give, SHARED | ROBUST | APART },
	{ "rw", rw_take, rw_give, READERS },
	{ "rw-writers", rw_take, rw_give, READERS | WRITERS_FIRST },
	{ "rw-shared", rw_take, rw_give, READERS | SHARED | APART },
	{ "sem", sem_take, sem_give, 0 },
	{ "sem-two", sem_take, sem_give, TWO },
	{ "sem-shared", sem_take, sem_give, SHARED | APART },
	{ "sysv", sysv_take, sysv_give, SHARED },
	{ "flock", flock_take, flock_give, SHARED | READERS },
	{ "ofd", ofd_take, ofd_give, SHARED | READERS },
	{ "word", plain_take, plain_give, 0 },
	{ "rust", rust_take, plain_give, 0 },
	{ "word-shared", across_take, across_give, SHARED },
	{ "word-apart", across_take, across_give, SHARED | APART },
	{ "mcs", mcs_take, mcs_give, 0 },
	{ "cond", cond_take, cond_give, 0 },
	{ "broadcast", cond_take, all_give, 0 },
	{ "cond-rw", cond_rw_take, cond_rw_give, READERS },
	{ "requeue", requeue_take, requeue_give, 0 },
	{ "pipe", token_take, token_give, PIPE | SHARED },
	{ "eventfd", token_take, token_give, EVENTFD | SHARED },
	{ "poll", poll_take, token_give, EVENTFD | SHARED },
	{ "unix", token_take, token_give, UNIX | SHARED },
	{ "mq", mq_take, mq_give, MQ | SHARED },
	{ "sigwait", sigwait_take, signal_give, 0 },
	{ "signalfd", signalfd_take, signal_give, 0 },
	{ "barrier", barrier_take, nothing_give, ALL },
	{ "barrier-apart", barrier_take, nothing_give, ALL | SHARED | APART },
};

static const struct kind *kind;

/* Where the token lies that is taken and given. */
static int put_token(int how, int *ends)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = sizeof(uint64_t) };
	char name[32];

	if (how & PIPE)
		return pipe(ends);
	if (how & UNIX)
		return socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
	if (how & EVENTFD)
		return (ends[0] = ends[1] = eventfd(
				0, EFD_SEMAPHORE | EFD_NONBLOCK * (kind->take == poll_take))) < 0;
	snprintf(name, sizeof(name), "/locks%d", getpid());
	ends[0] = ends[1] = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attr);
	return ends[0] < 0 || mq_unlink(name);
}

static int init(struct shm *s, unsigned int cnt)
{
	pthread_barrierattr_t b;
	pthread_mutexattr_t m;
	pthread_rwlockattr_t r;
	int across = kind->how & SHARED ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE;

	pthread_mutexattr_init(&m);
	pthread_mutexattr_setpshared(&m, across);
	if (kind->how & PI)
		pthread_mutexattr_setprotocol(&m, PTHREAD_PRIO_INHERIT);
	if (kind->how & ROBUST)
		pthread_mutexattr_setrobust(&m, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&s->mutex, &m);
	pthread_cond_init(&s->cond, NULL);
	pthread_rwlockattr_init(&r);
	pthread_rwlockattr_setpshared(&r, across);
	if (kind->how & WRITERS_FIRST)
		pthread_rwlockattr_setkind_np(&r, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&s->rwlock, &r);
	sem_init(&s->sem, kind->how & SHARED, kind->how & TWO ? 2 : 1);
	s->sysv = semget(IPC_PRIVATE, 1, 0600);
	semctl(s->sysv, 0, SETVAL, 1);
	pthread_barrierattr_init(&b);
	pthread_barrierattr_setpshared(&b, across);
	pthread_barrier_init(&s->barrier, &b, cnt);
	if (!(kind->how & (PIPE | EVENTFD | UNIX | MQ)))
		return 0;
	if (put_token(kind->how, s->ends))
		return -1;
	(kind->give)(&(struct lock){ .s = s });
	return 0;
}

/* ---- the storm ---- */

struct job {
	struct shm *s;
	unsigned int number;
};

static void *storm(void *arg)
{
	struct job *j = arg;
	struct worker *w = &j->s->workers[j->number];
	struct lock l = { .s = j->s, .fd = open(lock_file, O_RDWR) };
	unsigned int seed = j->number + 1;
	char name[16];
	sigset_t set;

	snprintf(name, sizeof(name), "w%u", j->number);
	prctl(PR_SET_NAME, name);
	w->tid = gettid();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	l.sigfd = signalfd(-1, &set, SFD_CLOEXEC);
	while (!atomic_load(&l.s->go))
		sleep_ns(1000000);
	while (!atomic_load(&l.s->stop) && w->cnt < TAKES_MAX) {
		struct take *t = &w->takes[w->cnt];

		l.shared = kind->how & READERS && rand_r(&seed) % 10 < 7;
		t->shared = l.shared || kind->how & (TWO | ALL);
		t->requested = now_ns();
		kind->take(&l);
		t->acquired = now_ns();
		sleep_ns(300000 + (uint64_t)rand_r(&seed) % 2000000);
		t->released = now_ns();
		kind->give(&l);
		w->cnt++;
		if (!(kind->how & ALL))
			sleep_ns((uint64_t)rand_r(&seed) % 3000000);
	}
	return NULL;
}

static void run_threads(struct shm *s, int threads, int first)
{
	pthread_t thread[THREADS_MAX];
	struct job jobs[THREADS_MAX];

	for (int i = 0; i < threads; i++) {
		jobs[i] = (struct job){ s, (unsigned int)(first + i) };
		if (pthread_create(&thread[i], NULL, storm, &jobs[i]))
			_exit(1);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}

/* The same memory somewhere else. */
static struct shm *elsewhere(struct shm *s, int fd, unsigned int number)
{
	char *at = (char *)s + (size_t)(number + 1) * FAR;

	return mmap(at, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd,
		    0);
}

static int write_log(const char *path, const struct shm *s, int cnt)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return perror(path), 1;
	for (int i = 0; i < cnt; i++)
		for (unsigned int k = 0; k < s->workers[i].cnt; k++) {
			const struct take *t = &s->workers[i].takes[k];

			fprintf(f, "%d %ju %ju %ju %d\n", s->workers[i].tid,
				(uintmax_t)t->requested, (uintmax_t)t->acquired,
				(uintmax_t)t->released, t->shared);
		}
	return fclose(f) ? (perror(path), 1) : 0;
}

int main(int argc, char **argv)
{
	int threads = argc == 6 ? atoi(argv[2]) : 0, processes = argc == 6 ? atoi(argv[3]) : 0, fd;
	pid_t pids[PROCESSES_MAX];
	struct shm *s;

	for (size_t i = 0; argc == 6 && i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, argv[1]))
			kind = &kinds[i];
	if (!kind || threads < 1 || threads > THREADS_MAX || processes < 1 ||
	    processes > PROCESSES_MAX) {
		fprintf(stderr, "usage: locks KIND THREADS PROCESSES SECONDS LOG\n");
		return 2;
	}
	lock_file = argv[5];
	fd = memfd_create("locks", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, sizeof(*s)) || close(open(lock_file, O_CREAT | O_RDWR, 0600)))
		return perror("locks"), 1;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return perror("locks"), 1;
	if (init(s, (unsigned int)(threads * processes)))
		return perror("locks"), 1;
	for (int i = 0; i < processes; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (kind->how & APART)
				s = elsewhere(s, fd, (unsigned int)i);
			if (s == MAP_FAILED)
				_exit(1);
			run_threads(s, threads, i * threads);
			_exit(0);
		}
	}
	for (int i = 0; i < processes; i++)
		printf("%d%c", pids[i], i + 1 < processes ? ' ' : '\n');
	fflush(stdout);
	(void)getchar();
	atomic_store(&s->go, true);
	for (int left = atoi(argv[4]); left > 0; left--)
		sleep(1);
	atomic_store(&s->stop, true);
	if (kind->how & ALL)
		sleep_ns(100000000); /* then some wait for others that are gone */
	for (int i = 0; i < processes && kind->how & ALL; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < processes; i++)
		waitpid(pids[i], NULL, 0);
	semctl(s->sysv, 0, IPC_RMID);
	return write_log(argv[5], s, threads * processes);
}
