// SPDX-License-Identifier: Apache-2.0
/* The two servers with an event loop: one hands its items to a pool that is too small, the other
 * does everything itself. */
#include "demo_shop.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define POOL_WORKERS 2
#define QUEUE_MAX 256 /* a power of two, above the number of the load's connections */

/* ---- connections of an event loop ---- */

struct loop {
	int epoll_fd;
	const struct demo_port *port;
	const char *name;
	bool (*on_request)(void *ctx, struct demo_conn *c, const struct demo_msg *m);
	void *ctx;
};

static bool watch(int epoll_fd, int fd, void *what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = what };
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0;
}

static void accept_one(struct loop *l)
{
	struct demo_conn *c = calloc(1, sizeof(*c));
	if (!c)
		return;
	c->sh = l->port->sh;
	c->cause = l->port->cause;
	c->fd = demo_accept(l->port->listen_fd, &c->peer_port);
	if (c->fd >= 0 && watch(l->epoll_fd, c->fd, c))
		return;
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

/* Requests are as small as one segment, so a readable connection has a whole one. A client closes
 * only after its answer came, so nobody else knows the connection then. */
static void serve_ready(struct loop *l, struct demo_conn *c)
{
	struct demo_msg m;
	if (demo_take(c->fd, &m)) {
		c->ordinal++;
		if (l->on_request(l->ctx, c, &m))
			return;
	}
	close(c->fd);
	free(c);
}

static void run_loop(struct loop *l)
{
	pthread_setname_np(pthread_self(), l->name);
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0 || !watch(l->epoll_fd, l->port->listen_fd, NULL))
		return;
	for (;;) {
		struct epoll_event ev[32];
		int n = epoll_wait(l->epoll_fd, ev, ARRAY_SIZE(ev), -1);
		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr)
				serve_ready(l, ev[i].data.ptr);
			else
				accept_one(l);
		}
	}
}

/* ---- the pool ---- */

struct item {
	struct demo_conn *conn;
	struct demo_msg msg;
	struct demo_req req;
};

struct pool {
	pthread_mutex_t mutex;
	pthread_cond_t not_empty;
	unsigned int head, tail; /* items [head, tail) */
	struct item queue[QUEUE_MAX];
};

static DEMO_SITE bool pool_submit(void *ctx, struct demo_conn *c, const struct demo_msg *m)
{
	struct pool *p = ctx;
	struct demo_req r = demo_req_begin(c, m);
	pthread_mutex_lock(&p->mutex);
	bool room = p->tail - p->head < QUEUE_MAX;
	if (room) {
		r.wait_start = demo_now();
		p->queue[p->tail++ % QUEUE_MAX] = (struct item){ c, *m, r };
		pthread_cond_signal(&p->not_empty);
	}
	pthread_mutex_unlock(&p->mutex);
	return room;
}

static DEMO_SITE struct item pool_take(struct pool *p)
{
	pthread_mutex_lock(&p->mutex);
	while (p->head == p->tail)
		pthread_cond_wait(&p->not_empty, &p->mutex);
	struct item it = p->queue[p->head++ % QUEUE_MAX];
	pthread_mutex_unlock(&p->mutex);
	return it;
}

/* The end is noted before the answer goes out: from then on the client may send again. */
static DEMO_SITE void image_store(struct item *it)
{
	struct demo_req *r = &it->req;
	struct demo_hold h = { .cause = DEMO_POOL,
			       .peer_port = r->peer_port,
			       .ordinal = r->ordinal,
			       .tid = (uint32_t)gettid(),
			       .start = demo_now() };
	struct demo_shared *sh = it->conn->sh;
	r->tid = h.tid;
	r->wait_end = h.start;
	r->wait_ns = r->wait_end - r->wait_start;
	r->judged = true;
	demo_sleep(CC_MS(10));
	demo_answer(it->conn->fd, it->msg.answer);
	r->end = h.end = demo_now();
	demo_log_hold(sh, &h);
	demo_log_req(sh, r);
}

static void *image_worker(void *arg)
{
	struct pool *p = arg;
	pthread_setname_np(pthread_self(), "image");
	while (true) {
		struct item it = pool_take(p);
		image_store(&it);
	}
	return NULL;
}

void *demo_pool_run(void *arg)
{
	struct pool *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	pthread_mutex_init(&p->mutex, NULL);
	pthread_cond_init(&p->not_empty, NULL);
	for (int i = 0; i < POOL_WORKERS; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, image_worker, p))
			return NULL; /* a started worker may still use the pool */
		pthread_detach(t);
	}
	struct loop l = { .port = arg, .name = "upload", .on_request = pool_submit, .ctx = p };
	run_loop(&l);
	return NULL;
}

/* ---- the loop that does everything itself ---- */

struct chat {
	struct demo_meter meter;
	cc_ns slow_start, slow_end; /* the latest slow operation */
	cc_ns slow_runq;            /* at its end, woken but still without a CPU */
};

static DEMO_SITE void chat_export(struct chat *chat, struct demo_conn *c, const struct demo_msg *m,
				  struct demo_req *r)
{
	struct demo_hold h = { .cause = DEMO_HOL,
			       .peer_port = c->peer_port,
			       .ordinal = c->ordinal,
			       .tid = r->tid,
			       .start = r->start };
	struct demo_usage begun = demo_meter_read(&chat->meter);
	demo_sleep(CC_MS(25));
	demo_answer(c->fd, m->answer);
	struct demo_usage done = demo_meter_read(&chat->meter);
	h.end = done.now;
	chat->slow_start = h.start;
	chat->slow_end = h.end;
	chat->slow_runq = done.runq - begun.runq;
	demo_log_hold(c->sh, &h);
}

static DEMO_SITE void chat_send(const struct chat *chat, struct demo_conn *c,
				const struct demo_msg *m, struct demo_req *r)
{
	r->wait_start = CC_MAX(r->sent, chat->slow_start);
	r->wait_end = CC_MIN(r->start, chat->slow_end);
	r->wait_ns = r->wait_end > r->wait_start ? r->wait_end - r->wait_start : 0;
	r->runq_ns = CC_MIN(chat->slow_runq, r->wait_ns); /* the loop was kept, not by itself */
	r->wait_ns -= r->runq_ns;
	r->judged = r->wait_ns > 0;
	demo_answer(c->fd, m->answer);
}

static bool chat_request(void *ctx, struct demo_conn *c, const struct demo_msg *m)
{
	struct demo_req r = demo_req_begin(c, m);
	if (m->op == DEMO_OP_CULPRIT)
		chat_export(ctx, c, m, &r);
	else
		chat_send(ctx, c, m, &r);
	r.end = demo_now();
	demo_log_req(c->sh, &r);
	return true;
}

void *demo_loop_run(void *arg)
{
	struct chat chat = { 0 };
	demo_meter_open(&chat.meter);
	struct loop l = { .port = arg, .name = "chat", .on_request = chat_request, .ctx = &chat };
	run_loop(&l);
	demo_meter_close(&chat.meter);
	return NULL;
}
