// SPDX-License-Identifier: Apache-2.0
/* ours KIND LOG: a server that reads lines "MICROSECONDS\n", works that long and answers "ok\n", in
 * one of the ways in KINDS. Says its port; at SIGTERM LOG gets its truth, a line per request: peer
 * port, ordinal on the connection, ns of CLOCK_MONOTONIC when it had the request and when the
 * answer was out. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX 65536
#define CONNS_MAX 64
#define WORKERS 3
#define ANSWER_LEN (sizeof(answer) - 1)
#define LINE_MAX_LEN 64

struct row {
	uint16_t port;
	uint32_t ordinal;
	uint64_t had, out;
};

struct conn {
	int fd;
	uint16_t port;
	uint32_t ordinal;
	int pipe[2];             /* splice: the way in and out */
	char line[LINE_MAX_LEN]; /* of the request at work */
	struct row *row;
};

static char answer[] = "ok\n";
static struct row rows[ROWS_MAX];
static atomic_uint row_cnt;

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct row *begin(struct conn *c)
{
	unsigned int i = atomic_fetch_add(&row_cnt, 1);

	if (i >= ROWS_MAX)
		die("too many requests");
	rows[i] = (struct row){ .port = c->port, .ordinal = ++c->ordinal, .had = now_ns() };
	return &rows[i];
}

static void work(const char *line)
{
	long us = atol(line);
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };

	if (us > 0)
		nanosleep(&t, NULL);
}

static struct conn *conn_new(int listener)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	int one = 1;

	c->fd = accept(listener, (struct sockaddr *)&a, &len);
	if (c->fd < 0 || pipe(c->pipe))
		die("accept");
	c->port = ntohs(a.sin_port);
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return c;
}

/* ---- how it reads and answers: each returns false when the client has gone ----------------------
 */

static bool get_read(struct conn *c) { return read(c->fd, c->line, LINE_MAX_LEN - 1) > 0; }

static void put_write(struct conn *c)
{
	if (write(c->fd, answer, ANSWER_LEN) < 0)
		die("write");
}

static bool get_readv(struct conn *c)
{
	struct iovec v[2] = { { c->line, 1 }, { c->line + 1, LINE_MAX_LEN - 2 } };

	return readv(c->fd, v, 2) > 0;
}

static void put_writev(struct conn *c)
{
	struct iovec v[2] = { { answer, 1 }, { answer + 1, ANSWER_LEN - 1 } };

	if (writev(c->fd, v, 2) < 0)
		die("writev");
}

static bool get_splice(struct conn *c)
{
	ssize_t n = splice(c->fd, NULL, c->pipe[1], NULL, LINE_MAX_LEN - 1, 0);

	return n > 0 && read(c->pipe[0], c->line, (size_t)n) == n;
}

static void put_splice(struct conn *c)
{
	size_t n = ANSWER_LEN;

	if (write(c->pipe[1], answer, n) < 0 || splice(c->pipe[0], NULL, c->fd, NULL, n, 0) < 0)
		die("splice");
}

static void put_sendfile(struct conn *c)
{
	static int file = -1;
	off_t at = 0;

	if (file < 0) {
		file = memfd_create("answer", 0);
		if (write(file, answer, ANSWER_LEN) < 0)
			die("memfd");
	}
	if (sendfile(c->fd, file, &at, ANSWER_LEN) < 0)
		die("sendfile");
}

struct way {
	bool (*get)(struct conn *c);
	void (*put)(struct conn *c);
};

static bool serve_one(const struct way *w, struct conn *c)
{
	memset(c->line, 0, sizeof(c->line));
	if (!w->get(c))
		return false;
	c->row = begin(c);
	work(c->line);
	w->put(c);
	c->row->out = now_ns();
	return true;
}

/* ---- a thread for each connection
 * ---------------------------------------------------------------- */

static const struct way *conn_way;

static void *conn_thread(void *arg)
{
	struct conn *c = arg;

	while (serve_one(conn_way, c))
		;
	close(c->fd);
	return NULL;
}

static void by_threads(int listener, const struct way *w)
{
	conn_way = w;
	for (;;) {
		pthread_t t;

		if (pthread_create(&t, NULL, conn_thread, conn_new(listener)))
			die("thread");
	}
}

/* ---- workers that get ready connections from a queue
 * --------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct conn *ready[CONNS_MAX];
	unsigned int head, tail;
	int ep;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER };

static void watch(struct conn *c, int op)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.ptr = c };

	if (epoll_ctl(pool.ep, op, c->fd, &ev))
		die("epoll_ctl");
}

static void *pool_worker(void *arg)
{
	for (;;) {
		struct conn *c;

		pthread_mutex_lock(&pool.lock);
		while (pool.head == pool.tail)
			pthread_cond_wait(&pool.some, &pool.lock);
		c = pool.ready[pool.head++ % CONNS_MAX];
		pthread_mutex_unlock(&pool.lock);
		if (serve_one(arg, c))
			watch(c, EPOLL_CTL_MOD);
		else
			close(c->fd);
	}
	return NULL;
}

static void by_pool(int listener, const struct way *w)
{
	struct epoll_event ev[CONNS_MAX] = { { .events = EPOLLIN } };

	pool.ep = epoll_create1(0);
	epoll_ctl(pool.ep, EPOLL_CTL_ADD, listener, &ev[0]);
	for (int i = 0; i < WORKERS; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, pool_worker, (void *)w))
			die("thread");
	}
	for (;;) {
		int n = epoll_wait(pool.ep, ev, CONNS_MAX, -1);

		for (int i = 0; i < n; i++) {
			if (!ev[i].data.ptr) {
				watch(conn_new(listener), EPOLL_CTL_ADD);
				continue;
			}
			pthread_mutex_lock(&pool.lock);
			pool.ready[pool.tail++ % CONNS_MAX] = ev[i].data.ptr;
			pthread_cond_signal(&pool.some);
			pthread_mutex_unlock(&pool.lock);
		}
	}
}

/* ---- io_uring: one thread, or the kernel's own (SQPOLL, IOSQE_ASYNC)
 * --------------------------------------------- */

static struct {
	int fd;
	bool polled;
	uint8_t sqe_flags;
	char *base;
	struct io_uring_params p;
	struct io_uring_sqe *sqes;
} ring;

static _Atomic(uint32_t) *ring_u32(uint32_t off) { return (_Atomic(uint32_t) *)(ring.base + off); }

static void ring_open(bool polled)
{
	size_t len;

	ring.polled = polled;
	ring.p.flags = polled ? IORING_SETUP_SQPOLL : 0;
	ring.p.sq_thread_idle = 1000;
	ring.fd = (int)syscall(SYS_io_uring_setup, CONNS_MAX * 2, &ring.p);
	if (ring.fd < 0 || !(ring.p.features & IORING_FEAT_SINGLE_MMAP))
		die("io_uring");
	len = ring.p.cq_off.cqes + ring.p.cq_entries * sizeof(struct io_uring_cqe);
	if (len < ring.p.sq_off.array + ring.p.sq_entries * sizeof(uint32_t))
		len = ring.p.sq_off.array + ring.p.sq_entries * sizeof(uint32_t);
	ring.base =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	ring.sqes = mmap(NULL, ring.p.sq_entries * sizeof(*ring.sqes), PROT_READ | PROT_WRITE,
			 MAP_SHARED, ring.fd, IORING_OFF_SQES);
	if (ring.base == MAP_FAILED || ring.sqes == MAP_FAILED)
		die("mmap");
}

static void ring_put(uint8_t op, struct conn *c, int fd, const void *buf, uint32_t len)
{
	uint32_t tail = *ring_u32(ring.p.sq_off.tail), i = tail & (ring.p.sq_entries - 1);

	ring.sqes[i] = (struct io_uring_sqe){
		.opcode = op,
		.flags = ring.sqe_flags,
		.fd = fd,
		.addr = (uint64_t)(uintptr_t)buf,
		.len = len,
		.user_data = (uint64_t)(uintptr_t)c,
		.poll32_events = op == IORING_OP_POLL_ADD ? EPOLLIN : 0,
	};
	((uint32_t *)(ring.base + ring.p.sq_off.array))[i] = i;
	atomic_store(ring_u32(ring.p.sq_off.tail), tail + 1);
}

/* Hands over what was put, and waits for something to be done. */
static void ring_wait(uint32_t put)
{
	uint32_t flags = IORING_ENTER_GETEVENTS;

	if (ring.polled && atomic_load(ring_u32(ring.p.sq_off.flags)) & IORING_SQ_NEED_WAKEUP)
		flags |= IORING_ENTER_SQ_WAKEUP;
	if (syscall(SYS_io_uring_enter, ring.fd, ring.polled ? 0 : put, 1, flags, NULL, 0) < 0 &&
	    errno != EINTR)
		die("io_uring_enter");
}

/* An operation of a connection is done: @res bytes. Returns how many new ones were put. */
static uint32_t ring_done(struct conn *c, int res)
{
	if (res <= 0) {
		close(c->fd);
		return 0;
	}
	if (c->row) { /* the answer is out */
		c->row->out = now_ns();
		c->row = NULL;
		memset(c->line, 0, sizeof(c->line));
		ring_put(IORING_OP_RECV, c, c->fd, c->line, LINE_MAX_LEN - 1);
	} else {
		c->row = begin(c);
		work(c->line);
		ring_put(IORING_OP_SEND, c, c->fd, answer, ANSWER_LEN);
	}
	return 1;
}

static void by_ring(int listener, bool polled)
{
	uint32_t put = 1;

	ring_open(polled);
	ring_put(IORING_OP_POLL_ADD, NULL, listener, NULL, 0);
	for (;;) {
		uint32_t head = *ring_u32(ring.p.cq_off.head);

		ring_wait(put);
		for (put = 0; head != atomic_load(ring_u32(ring.p.cq_off.tail)); head++) {
			const struct io_uring_cqe *done =
				(const struct io_uring_cqe *)(ring.base + ring.p.cq_off.cqes) +
				(head & (ring.p.cq_entries - 1));
			struct conn *c = (struct conn *)(uintptr_t)done->user_data;

			if (c) {
				put += ring_done(c, done->res);
				continue;
			}
			c = conn_new(listener);
			ring_put(IORING_OP_RECV, c, c->fd, c->line, LINE_MAX_LEN - 1);
			ring_put(IORING_OP_POLL_ADD, NULL, listener, NULL, 0);
			put += 2;
		}
		atomic_store(ring_u32(ring.p.cq_off.head), head);
	}
}

static void by_plain_ring(int listener, const struct way *w)
{
	(void)w;
	by_ring(listener, false);
}

/* The kernel's workers receive and send. */
static void by_async_ring(int listener, const struct way *w)
{
	(void)w;
	ring.sqe_flags = IOSQE_ASYNC;
	by_ring(listener, false);
}

static void by_polled_ring(int listener, const struct way *w)
{
	(void)w;
	by_ring(listener, true);
}

/* ---- main
 * ------------------------------------------------------------------------------------------ */

static const struct kind {
	const char *name;
	void (*serve)(int listener, const struct way *w);
	struct way way;
} kinds[] = {
	{ "threads", by_threads, { get_read, put_write } },
	{ "pool", by_pool, { get_read, put_write } },
	{ "writev", by_threads, { get_readv, put_writev } },
	{ "sendfile", by_threads, { get_read, put_sendfile } },
	{ "splice", by_threads, { get_splice, put_splice } },
	{ "uring", by_plain_ring, { 0 } },
	{ "uring-async", by_async_ring, { 0 } },
	{ "sqpoll", by_polled_ring, { 0 } },
};

static void *serve(void *arg)
{
	const struct kind *k = arg;
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&a, len) || listen(fd, CONNS_MAX) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		die("listen");
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	k->serve(fd, &k->way);
	return NULL;
}

static int write_log(const char *file)
{
	FILE *f = fopen(file, "w");

	if (!f)
		die(file);
	for (uint32_t i = 0; i < row_cnt; i++)
		fprintf(f, "%u %u %ju %ju\n", rows[i].port, rows[i].ordinal, (uintmax_t)rows[i].had,
			(uintmax_t)rows[i].out);
	return fclose(f) ? 1 : 0;
}

int main(int argc, char **argv)
{
	sigset_t end;
	pthread_t t;
	int sig;

	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; argc == 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name))
			continue;
		if (pthread_create(&t, NULL, serve, (void *)&kinds[i]) || sigwait(&end, &sig))
			die("thread");
		return write_log(argv[2]);
	}
	return fprintf(stderr,
		       "usage: ours threads|pool|writev|sendfile|splice|uring|uring-async|sqpoll "
		       "LOG\n"),
	       2;
}
