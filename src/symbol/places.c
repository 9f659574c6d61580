/* SPDX-License-Identifier: Apache-2.0 */
#include "places.h"
#include "dwarf_place.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define QUEUE_MAX 4096
#define OPEN_MAX 128     /* files with their debug information */
#define FDS_MAX OPEN_MAX /* not more: a file that was closed would not be handed over again */

struct question {
	struct place_file_id file;
	int fd; /* owned; -1: the file was asked about before */
	uint32_t tgid, since;
	uint64_t ip, vaddr;
	unsigned int back;
	bool named;
};

struct places {
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* of all from here to files */
	pthread_cond_t asked, answered;
	bool stop;
	struct question *queue; /* a ring */
	size_t first, cnt;
	bool busy; /* the thread is at a question */
	struct place *done;
	size_t done_cnt, done_cap;
	struct places_health health;
	/* the asking thread's */
	struct place_file_id known[FDS_MAX]; /* files whose descriptor was handed over */
	size_t known_cnt;
	/* the answering thread's */
	struct dwarf_place *files[OPEN_MAX]; /* most recently used first */
	size_t file_cnt;
};

static bool same_id(const struct place_file_id *a, const struct place_file_id *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->sec == b->sec && a->nsec == b->nsec;
}

/* The file of @q, moved to the front. NULL: it has no debug information, or is not known any more.
 */
static struct dwarf_place *file_of(struct places *p, struct question *q)
{
	struct dwarf_place *f = NULL;
	size_t i = 0;

	while (i < p->file_cnt && !same_id(dwarf_place_id(p->files[i]), &q->file))
		i++;
	if (i < p->file_cnt) {
		f = p->files[i];
		if (q->fd >= 0)
			close(q->fd);
	} else if (q->fd >= 0) {
		if (dwarf_place_new(&q->file, q->fd, &f))
			return NULL;
		if (p->file_cnt == OPEN_MAX)
			dwarf_place_free(p->files[--p->file_cnt]);
		i = p->file_cnt++;
	} else {
		return NULL;
	}
	memmove(&p->files[1], &p->files[0], i * sizeof(*p->files));
	p->files[0] = f;
	return f;
}

static void keep_answer(struct places *p, const struct place *a)
{
	if (p->done_cnt == p->done_cap) {
		size_t cap = p->done_cap ? p->done_cap * 2 : 16;
		struct place *v = realloc(p->done, cap * sizeof(*v));

		if (!v)
			return;
		p->done = v;
		p->done_cap = cap;
	}
	p->done[p->done_cnt++] = *a;
	p->health.answered++;
}

static void *answer(void *ctx)
{
	struct places *p = ctx;
	struct place *a = calloc(1, sizeof(*a));

	setpriority(PRIO_PROCESS, (id_t)gettid(), 19); /* never before the target */
	pthread_mutex_lock(&p->lock);
	while (a && !p->stop) {
		if (!p->cnt) {
			pthread_cond_wait(&p->asked, &p->lock);
			continue;
		}
		struct question q = p->queue[p->first];

		p->first = (p->first + 1) % QUEUE_MAX;
		p->cnt--;
		p->busy = true;
		pthread_mutex_unlock(&p->lock);
		struct dwarf_place *f = file_of(p, &q);
		bool found = f && dwarf_place_find(f, q.vaddr, q.back, q.named, a);

		a->tgid = q.tgid;
		a->since = q.since;
		a->ip = q.ip;
		a->back = q.back;
		a->named = q.named;
		pthread_mutex_lock(&p->lock);
		if (found)
			keep_answer(p, a);
		p->busy = false;
		pthread_cond_signal(&p->answered);
	}
	p->stop = true;
	pthread_mutex_unlock(&p->lock);
	free(a);
	return NULL;
}

/* What is sent to the process is for threads that wait for it: none of it comes to this one, but
 * for its own faults. */
static int start_thread(struct places *p)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
	sigset_t none, old;
	int err;

	sigfillset(&none);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		sigdelset(&none, own[i]);
	err = pthread_sigmask(SIG_BLOCK, &none, &old);
	if (err)
		return err;
	err = pthread_create(&p->thread, NULL, answer, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int places_new(struct places **ret)
{
	struct places *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;
	int err;

	if (!p)
		return -ENOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->asked, &attr);
	pthread_cond_init(&p->answered, &attr);
	pthread_condattr_destroy(&attr);
	p->queue = calloc(QUEUE_MAX, sizeof(*p->queue));
	err = p->queue ? start_thread(p) : ENOMEM;
	p->started = !err;
	if (err) {
		places_free(p);
		return -err;
	}
	*ret = p;
	return 0;
}

void places_free(struct places *p)
{
	if (!p)
		return;
	if (p->started) {
		pthread_mutex_lock(&p->lock);
		p->stop = true;
		pthread_cond_signal(&p->asked);
		pthread_mutex_unlock(&p->lock);
		pthread_join(p->thread, NULL);
	}
	for (; p->cnt; p->cnt--, p->first = (p->first + 1) % QUEUE_MAX)
		if (p->queue[p->first].fd >= 0)
			close(p->queue[p->first].fd);
	for (size_t i = 0; i < p->file_cnt; i++)
		dwarf_place_free(p->files[i]);
	pthread_cond_destroy(&p->asked);
	pthread_cond_destroy(&p->answered);
	pthread_mutex_destroy(&p->lock);
	free(p->queue);
	free(p->done);
	free(p);
}

/* A descriptor goes along with the first question about a file. */
static int fd_for(struct places *p, const struct elf_file *f, const struct place_file_id *id)
{
	for (size_t i = 0; i < p->known_cnt; i++) {
		if (same_id(&p->known[i], id))
			return -1;
	}
	if (p->known_cnt == FDS_MAX)
		p->known_cnt = 0; /* some will be handed over again */
	int fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 3);

	if (fd >= 0)
		p->known[p->known_cnt++] = *id;
	return fd;
}

void places_ask(struct places *p, const struct elf_file *f, uint32_t tgid, uint32_t since,
		uint64_t ip, uint64_t vaddr, unsigned int back, bool named)
{
	struct question q = {
		.file = { f->dev, f->ino, f->mtime.tv_sec, f->mtime.tv_nsec },
		.tgid = tgid,
		.since = since,
		.ip = ip,
		.vaddr = vaddr,
		.back = back,
		.named = named,
	};

	pthread_mutex_lock(&p->lock);
	p->health.asked++;
	if (p->cnt < QUEUE_MAX && !p->stop) {
		q.fd = fd_for(p, f, &q.file);
		p->queue[(p->first + p->cnt++) % QUEUE_MAX] = q;
		pthread_cond_signal(&p->asked);
	} else {
		p->health.dropped++;
	}
	pthread_mutex_unlock(&p->lock);
}

void places_wait(struct places *p, int ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000l;
	if (until.tv_nsec >= 1000000000l) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000l;
	}
	pthread_mutex_lock(&p->lock);
	while ((p->cnt || p->busy) && !p->stop) {
		if (pthread_cond_timedwait(&p->answered, &p->lock, &until))
			break;
	}
	pthread_mutex_unlock(&p->lock);
}

bool places_take(struct places *p, struct place *ret)
{
	bool got;

	pthread_mutex_lock(&p->lock);
	got = p->done_cnt;
	if (got)
		*ret = p->done[--p->done_cnt];
	pthread_mutex_unlock(&p->lock);
	return got;
}

void places_health(struct places *p, struct places_health *ret)
{
	pthread_mutex_lock(&p->lock);
	*ret = p->health;
	pthread_mutex_unlock(&p->lock);
}
