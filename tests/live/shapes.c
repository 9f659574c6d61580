// SPDX-License-Identifier: Apache-2.0
/* shapes SHAPE SECONDS LOG: servers that pass a request from thread to thread in the ways that
 * servers do, and 8 clients of it. Prints the server's pid and waits for a line on stdin before the
 * clients start. LOG gets the server's truth, a line for each time that a thread worked on a
 * request: peer port, ordinal on the connection, tid, then in CLOCK_MONOTONIC ns: put in that
 * thread's queue (accepters: sent by the client), taken, done. What lies between was spent in
 * queues. */
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "shapes.h"

#define CLIENTS 8
#define ITEMS_MAX 65536
#define WORKERS_MAX 8
#define BATCH_MAX CLIENTS

struct stretch { /* of work */
	int tid;
	uint64_t put, taken, done;
};

struct item {
	int fd;
	uint16_t peer_port;
	uint32_t ordinal;
	uint32_t nap_us[STAGES];
	struct stretch at[STAGES];
	bool over;
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t some;
	uint32_t v[ITEMS_MAX], head, tail;
	int pipe[2];
	int event;              /* BY_EVENTFD */
	_Atomic(uint32_t) left; /* BY_FUTEX: to be taken */
};

struct connection {
	int fd;
	uint16_t peer_port;
	uint32_t ordinal;
	pthread_t thread;
};

static struct {
	const struct shape *shape;
	struct queue queue[STAGES], over; /* over: for the loop to answer */
	struct item items[ITEMS_MAX];
	uint32_t cnt;
	pthread_mutex_t cnt_lock, replied_lock;
	pthread_cond_t replied[ITEMS_MAX / 64]; /* of THREADS, by item */
	int event;                              /* of LOOP_ONLY */
	volatile bool stop;
} s;

static void nap(uint32_t us) { nanosleep(&(struct timespec){ .tv_nsec = us * 1000l }, NULL); }

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

/* ---- queues ---- */

static void queue_init(struct queue *q)
{
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->some, NULL);
	q->event = eventfd(0, EFD_SEMAPHORE);
	if (pipe(q->pipe) || q->event < 0)
		die("pipe");
}

/* @n workers may go on, those that do not wait under the queue's lock. */
static void let_go(struct queue *q, uint32_t n)
{
	if (s.shape->how == BY_EVENTFD && eventfd_write(q->event, n))
		die("eventfd");
	if (s.shape->how == BY_FUTEX) {
		atomic_fetch_add(&q->left, n);
		syscall(SYS_futex, &q->left, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
	}
}

/* The other side of it. */
static void wait_for_one(struct queue *q)
{
	eventfd_t one;

	if (s.shape->how == BY_EVENTFD && eventfd_read(q->event, &one))
		die("eventfd");
	while (s.shape->how == BY_FUTEX) {
		uint32_t n = atomic_load(&q->left);

		if (n && atomic_compare_exchange_strong(&q->left, &n, n - 1))
			break;
		if (!n)
			syscall(SYS_futex, &q->left, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	}
}

static void put(uint32_t stage, uint32_t i)
{
	struct queue *q = &s.queue[stage];
	s.items[i].at[stage].put = now_ns();
	if (s.shape->how == BY_PIPE) {
		if (write(q->pipe[1], &i, sizeof(i)) != sizeof(i))
			die("queue");
		return;
	}
	pthread_mutex_lock(&q->lock);
	q->v[q->tail++ % ITEMS_MAX] = i;
	if (s.shape->how == BY_SIGNAL)
		pthread_cond_signal(&q->some);
	else if (s.shape->how == BY_BROADCAST)
		pthread_cond_broadcast(&q->some);
	pthread_mutex_unlock(&q->lock);
	let_go(q, 1);
}

/* Takes at most @max items. 0: the server ends. */
static uint32_t take(struct queue *q, uint32_t *v, uint32_t max)
{
	uint32_t n = 0;
	if (s.shape->how == BY_PIPE)
		return read(q->pipe[0], v, sizeof(*v)) == sizeof(*v);
	wait_for_one(q);
	pthread_mutex_lock(&q->lock);
	while (q->head == q->tail && !s.stop) {
		if (s.shape->how == BY_POLLING) {
			pthread_mutex_unlock(&q->lock);
			nap(1000);
			pthread_mutex_lock(&q->lock);
		} else {
			pthread_cond_wait(&q->some, &q->lock);
		}
	}
	for (; n < max && q->head != q->tail; n++)
		v[n] = q->v[(s.shape->lifo ? --q->tail : q->head++) % ITEMS_MAX];
	pthread_mutex_unlock(&q->lock);
	return n;
}

static void end_queue(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	s.stop = true;
	pthread_cond_broadcast(&q->some);
	pthread_mutex_unlock(&q->lock);
	let_go(q, WORKERS_MAX);
	close(q->pipe[1]);
}

/* ---- workers ---- */

static void answer(struct item *it)
{
	if (write(it->fd, "done", 4) != 4)
		die("write");
}

static pthread_mutex_t *replied_lock(void)
{
	return s.shape->monitor ? &s.queue[0].lock : &s.replied_lock;
}

static pthread_cond_t *replied(uint32_t i)
{
	return s.shape->monitor ? &s.queue[0].some : &s.replied[i % (ITEMS_MAX / 64)];
}

/* The last worker is done with it. */
static void finish(uint32_t i)
{
	struct item *it = &s.items[i];
	uint64_t one = 1;
	switch (s.shape->front) {
	case ACCEPTERS:
	case LOOP_AND_WORKERS:
		answer(it);
		break;
	case LOOP_ONLY:
		pthread_mutex_lock(&s.over.lock);
		s.over.v[s.over.tail++ % ITEMS_MAX] = i;
		pthread_mutex_unlock(&s.over.lock);
		if (write(s.event, &one, sizeof(one)) != sizeof(one))
			die("eventfd");
		break;
	case THREADS:
		pthread_mutex_lock(replied_lock());
		it->over = true;
		if (s.shape->monitor)
			pthread_cond_broadcast(replied(i));
		else
			pthread_cond_signal(replied(i));
		pthread_mutex_unlock(replied_lock());
		break;
	}
}

static void *work(void *arg)
{
	uint32_t stage = (uint32_t)(uintptr_t)arg, v[BATCH_MAX], n;
	while ((n = take(&s.queue[stage], v, s.shape->batch ? BATCH_MAX : 1))) {
		uint64_t taken = now_ns(), done;
		if (s.items[v[0]].nap_us[stage])
			nap(s.items[v[0]].nap_us[stage]);
		done = now_ns();
		for (uint32_t i = 0; i < n; i++) {
			struct stretch *at = &s.items[v[i]].at[stage];
			at->tid = gettid();
			at->taken = taken;
			at->done = done;
			if (stage + 1 < STAGES && s.shape->workers[stage + 1])
				put(stage + 1, v[i]);
			else
				finish(v[i]);
		}
	}
	return NULL;
}

/* ---- the front ---- */

static uint32_t item_new(struct connection *c)
{
	uint32_t i;
	pthread_mutex_lock(&s.cnt_lock);
	i = s.cnt++;
	pthread_mutex_unlock(&s.cnt_lock);
	if (i >= ITEMS_MAX)
		die("too many requests");
	struct item *it = &s.items[i];
	it->fd = c->fd;
	it->peer_port = c->peer_port;
	it->ordinal = ++c->ordinal;
	uint32_t mix = (i * 2654435761u) >> 16; /* a hash: the same in every run */
	bool slow = !s.shape->slow_one_in || mix % s.shape->slow_one_in == 0;
	for (int k = 0; k < STAGES; k++)
		it->nap_us[k] =
			slow ? s.shape->nap_us[k] / 2 + (s.shape->nap_us[k] * (mix % 64)) / 64 : 0;
	return i;
}

/* Reads one request of @c and queues it. Its number, or UINT32_MAX: the client has closed. */
static uint32_t receive(struct connection *c)
{
	uint64_t sent;
	uint32_t i;
	if (read(c->fd, &sent, sizeof(sent)) != sizeof(sent))
		return UINT32_MAX;
	i = item_new(c);
	put(0, i);
	return i;
}

static void *serve_connection(void *arg)
{
	struct connection *c = arg;
	uint32_t i;
	while ((i = receive(c)) != UINT32_MAX) {
		pthread_mutex_lock(replied_lock());
		while (!s.items[i].over)
			pthread_cond_wait(replied(i), replied_lock());
		pthread_mutex_unlock(replied_lock());
		answer(&s.items[i]);
	}
	return NULL;
}

static void answer_all_over(void)
{
	uint64_t ignored;
	uint32_t i;
	if (read(s.event, &ignored, sizeof(ignored)) != sizeof(ignored))
		die("eventfd");
	for (;;) {
		pthread_mutex_lock(&s.over.lock);
		i = s.over.head != s.over.tail ? s.over.v[s.over.head++ % ITEMS_MAX] : UINT32_MAX;
		pthread_mutex_unlock(&s.over.lock);
		if (i == UINT32_MAX)
			break;
		answer(&s.items[i]);
	}
}

static void watch(int ep, int fd, void *ptr)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = ptr };
	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		die("epoll");
}

static void serve_in_loop(struct connection *conns)
{
	int ep = epoll_create1(0);
	watch(ep, s.event, NULL);
	for (int i = 0; i < CLIENTS; i++)
		watch(ep, conns[i].fd, &conns[i]);
	for (int open = CLIENTS; open > 0;) {
		struct epoll_event ev[CLIENTS + 1];
		int n = epoll_wait(ep, ev, CLIENTS + 1, -1);
		for (int i = 0; i < n; i++) {
			struct connection *c = ev[i].data.ptr;
			if (!c) {
				answer_all_over();
			} else if (receive(c) == UINT32_MAX) {
				close(c->fd);
				open--;
			}
		}
	}
}

static void accept_all(int listen_fd, struct connection *conns)
{
	for (int i = 0; i < CLIENTS; i++) {
		struct sockaddr_in a;
		socklen_t len = sizeof(a);
		conns[i].fd = accept(listen_fd, (struct sockaddr *)&a, &len);
		if (conns[i].fd < 0)
			die("accept");
		conns[i].peer_port = ntohs(a.sin_port);
	}
}

/* ---- workers that accept ---- */

static void serve_accepted(int fd, const struct sockaddr_in *peer)
{
	struct connection c = { .fd = fd, .peer_port = ntohs(peer->sin_port) };
	uint64_t sent;
	if (read(fd, &sent, sizeof(sent)) == sizeof(sent)) {
		uint32_t i = item_new(&c);
		struct stretch *at = &s.items[i].at[0];
		*at = (struct stretch){ .tid = gettid(), .put = sent, .taken = now_ns() };
		nap(s.items[i].nap_us[0]);
		at->done = now_ns();
		finish(i);
	}
	close(fd);
}

static void *accept_all_day(void *arg)
{
	int fd = (int)(intptr_t)arg, ep = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		die("epoll");
	while (!s.stop && epoll_wait(ep, &ev, 1, 20) >= 0) {
		struct sockaddr_in peer;
		socklen_t len = sizeof(peer);
		int c = accept4(fd, (struct sockaddr *)&peer, &len, 0);
		if (c >= 0) /* else another one has it */
			serve_accepted(c, &peer);
	}
	return NULL;
}

static void write_log(const char *log)
{
	FILE *f = fopen(log, "w");
	if (!f)
		die(log);
	for (uint32_t i = 0; i < s.cnt; i++) {
		const struct item *it = &s.items[i];
		for (int k = 0; k < STAGES && it->at[k].tid; k++)
			fprintf(f, "%u %u %d %ju %ju %ju\n", it->peer_port, it->ordinal,
				it->at[k].tid, (uintmax_t)it->at[k].put, (uintmax_t)it->at[k].taken,
				(uintmax_t)it->at[k].done);
	}
	if (fclose(f))
		die(log);
}

static void serve_by_workers(int listen_fd)
{
	static struct connection conns[CLIENTS];
	accept_all(listen_fd, conns);
	if (s.shape->front != THREADS) {
		serve_in_loop(conns);
		return;
	}
	for (int i = 0; i < CLIENTS; i++)
		if (pthread_create(&conns[i].thread, NULL, serve_connection, &conns[i]))
			die("thread");
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(conns[i].thread, NULL);
}

/* @over: it ends when the clients do. */
static void serve(const int *listen_fd, int over, const char *log)
{
	pthread_t workers[STAGES][WORKERS_MAX];
	bool accepters = s.shape->front == ACCEPTERS;
	char end;
	s.event = eventfd(0, 0);
	queue_init(&s.over);
	for (uint32_t k = 0; k < STAGES; k++) {
		queue_init(&s.queue[k]);
		for (uint32_t i = 0; i < s.shape->workers[k]; i++)
			if (pthread_create(&workers[k][i], NULL, accepters ? accept_all_day : work,
					   (void *)(uintptr_t)(accepters ? listen_fd[i] : (int)k)))
				die("worker");
	}
	if (!accepters)
		serve_by_workers(listen_fd[0]);
	while (read(over, &end, 1) > 0)
		;
	for (uint32_t k = 0; k < STAGES; k++) {
		end_queue(&s.queue[k]);
		for (uint32_t i = 0; i < s.shape->workers[k]; i++)
			pthread_join(workers[k][i], NULL);
	}
	write_log(log);
}

/* ---- clients ---- */

#define ENOUGH 100 /* so many requests are answered, however slow the machine */

struct client {
	struct sockaddr_in addr;
	uint64_t end;
	atomic_uint answered;
};

static int connect_to(const struct client *c)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (const struct sockaddr *)&c->addr, sizeof(c->addr)) < 0)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void *ask(void *arg)
{
	struct client *c = arg;
	char reply[4];
	int fd = connect_to(c);
	while (now_ns() < c->end || c->answered < ENOUGH) {
		uint64_t sent = now_ns();
		if (write(fd, &sent, sizeof(sent)) != sizeof(sent) || read(fd, reply, 4) != 4)
			die("client");
		c->answered++;
		nap(1000);
		if (s.shape->front == ACCEPTERS) {
			close(fd);
			fd = connect_to(c);
		}
	}
	close(fd);
	return NULL;
}

static int listen_at(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int one = 1, type = s.shape->front == ACCEPTERS ? SOCK_STREAM | SOCK_NONBLOCK : SOCK_STREAM;
	int fd = socket(AF_INET, type, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)addr, len) || listen(fd, CLIENTS) ||
	    getsockname(fd, (struct sockaddr *)addr, &len))
		die("listen");
	return fd;
}

int main(int argc, char **argv)
{
	struct client c = { .addr = { .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	pthread_t clients[CLIENTS];
	int status, fd[WORKERS_MAX], over[2];
	for (size_t i = 0; argc == 4 && i < sizeof(shapes) / sizeof(*shapes); i++)
		if (!strcmp(shapes[i].name, argv[1]))
			s.shape = &shapes[i];
	if (!s.shape)
		return fprintf(stderr, "usage: shapes SHAPE SECONDS LOG\n"), 2;
	for (uint32_t i = 0; i < s.shape->workers[0]; i++)
		fd[i] = i && !s.shape->own_socket ? fd[0] : listen_at(&c.addr);
	if (pipe(over))
		die("pipe");
	pid_t server = fork();
	if (server == 0) {
		close(over[1]);
		serve(fd, over[0], argv[3]);
		_exit(0);
	}
	for (uint32_t i = 0; i < s.shape->workers[0]; i++)
		close(fd[i]);
	printf("%d\n", server);
	fflush(stdout);
	(void)getchar();
	c.end = now_ns() + (uint64_t)(atof(argv[2]) * 1e9);
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&clients[i], NULL, ask, &c);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	close(over[1]);
	return waitpid(server, &status, 0) == server && status == 0 ? 0 : 1;
}
