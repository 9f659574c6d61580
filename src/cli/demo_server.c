// SPDX-License-Identifier: Apache-2.0
/* The server process of the demo, and the two small ones beside it: the upstream and the hog. */
#include "demo_proc.h"
#include "demo_shop.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct demo_req demo_req_begin(const struct demo_conn *c, const struct demo_msg *m)
{
	return (struct demo_req){ .cause = (uint8_t)c->cause,
				  .local_port = c->sh->port[c->cause],
				  .peer_port = c->peer_port,
				  .ordinal = c->ordinal,
				  .tid = (uint32_t)gettid(),
				  .sent = m->sent,
				  .start = demo_now() };
}

static void *serve_connection(void *arg)
{
	struct demo_conn *c = arg;
	const struct demo_service *s = &demo_services[c->cause];
	struct demo_msg m;
	pthread_setname_np(pthread_self(), s->thread_name);
	demo_meter_open(&c->meter);
	if (s->begin)
		s->begin(c);
	c->runq_seen = demo_meter_read(&c->meter).runq;
	while (demo_take(c->fd, &m)) {
		c->ordinal++;
		struct demo_req r = demo_req_begin(c, &m);
		struct demo_usage begun = demo_meter_read(&c->meter);
		c->woken_ns = CC_MIN(begun.runq - c->runq_seen, r.start - r.sent);
		if (!s->handle(c, &m, &r))
			break;
		struct demo_usage done = demo_meter_read(&c->meter);
		r.end = done.now;
		r.cpu_ns = done.cpu - begun.cpu;
		r.runq_ns = done.runq - begun.runq;
		demo_log_req(c->sh, &r);
	}
	demo_meter_close(&c->meter);
	if (c->upstream_fd >= 0)
		close(c->upstream_fd);
	close(c->fd);
	free(c);
	return NULL;
}

/* Runs @fn in a thread of its own that nobody waits for. */
static bool start_thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	if (pthread_create(&t, NULL, fn, arg))
		return false;
	pthread_detach(t);
	return true;
}

static void *accept_connections(void *arg)
{
	const struct demo_port *p = arg;
	pthread_setname_np(pthread_self(), "accept");
	for (;;) {
		struct demo_conn *c = calloc(1, sizeof(*c));
		if (!c)
			return NULL;
		c->sh = p->sh;
		c->cause = p->cause;
		c->upstream_fd = -1;
		c->fd = demo_accept(p->listen_fd, &c->peer_port);
		c->seed = c->peer_port;
		if (c->fd < 0) {
			free(c);
			demo_sleep(CC_MS(10)); /* out of descriptors, or the client gave up */
		} else if (!start_thread(serve_connection, c)) {
			close(c->fd);
			free(c);
		}
	}
}

_Noreturn void demo_server_run(struct demo_shared *sh, const int *listen_fds)
{
	struct demo_port ports[DEMO_CAUSE_CNT];
	if (sh->journal.fd >= 0 && demo_journal_use(&sh->journal))
		_exit(1);
	for (int i = 0; i < DEMO_CAUSE_CNT; i++) {
		ports[i] = (struct demo_port){ .sh = sh, .listen_fd = listen_fds[i], .cause = i };
		void *(*fn)(void *) = demo_services[i].handle ? accept_connections
				      : i == DEMO_POOL        ? demo_pool_run
							      : demo_loop_run;
		if (!start_thread(fn, &ports[i]))
			_exit(1);
	}
	for (;;)
		pause();
}

static void *serve_stock(void *arg)
{
	int *fd = arg;
	struct demo_msg m;
	while (demo_take(*fd, &m)) {
		demo_sleep(CC_MS(8));
		if (!demo_answer(*fd, m.answer))
			break;
	}
	close(*fd);
	free(fd);
	return NULL;
}

_Noreturn void demo_upstream_run(int listen_fd)
{
	for (;;) {
		int *fd = malloc(sizeof(*fd));
		if (!fd)
			_exit(1);
		*fd = demo_accept(listen_fd, NULL);
		if (*fd < 0 || !start_thread(serve_stock, fd)) {
			if (*fd >= 0)
				close(*fd);
			free(fd);
			demo_sleep(CC_MS(10));
		}
	}
}

/* Spins, and notes when it really had the CPU: a jump of its clock is time that others had it. */
static void hog_cpu(struct demo_shared *sh)
{
	struct demo_hold h = { .cause = DEMO_HOG, .tid = (uint32_t)gettid(), .start = demo_now() };
	cc_ns last = h.start;
	while (atomic_load_explicit(&sh->hog_on, memory_order_relaxed)) {
		cc_ns now = demo_now();
		if (now - last > CC_US(20) || last - h.start > CC_MS(20)) {
			h.end = last;
			demo_log_hold(sh, &h);
			h.start = now;
		}
		last = now;
	}
	h.end = last;
	demo_log_hold(sh, &h);
}

_Noreturn void demo_hog_run(struct demo_shared *sh)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(sh->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (;;) {
		if (atomic_load(&sh->hog_on))
			hog_cpu(sh);
		else
			demo_sleep(CC_MS(5));
	}
}
