// SPDX-License-Identifier: Apache-2.0
/* pool SECONDS LOG: a server whose worker pool is too small, and its clients. A dispatcher reads
 * the requests of 8 connections and passes them through a pipe to 2 workers, 10 ms each. Prints the
 * server's pid and waits for a line on stdin before the clients start. LOG gets the server's truth,
 * a line per request: peer port, ordinal on the connection, worker tid, received, taken, answered
 * in CLOCK_MONOTONIC ns. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 8
#define WORKERS 2
#define ITEMS_MAX 65536

struct item {
	int fd;
	uint16_t peer_port;
	uint32_t ordinal;
	int tid;
	uint64_t received, taken, answered;
};

struct server {
	int queue[2]; /* a pipe of item indexes */
	struct item *items;
	uint32_t cnt;
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

static void *work(void *arg)
{
	struct server *s = arg;
	uint32_t i;
	while (read(s->queue[0], &i, sizeof(i)) == sizeof(i)) {
		struct item *it = &s->items[i];
		it->taken = now_ns();
		it->tid = gettid();
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		if (write(it->fd, "done", 4) != 4)
			die("write");
		it->answered = now_ns();
	}
	return NULL;
}

struct connection {
	int fd;
	uint16_t peer_port;
	uint32_t ordinal;
};

/* Reads one request of @c and queues it. False: the client has closed. */
static bool dispatch(struct server *s, struct connection *c)
{
	char req[4];
	if (read(c->fd, req, sizeof(req)) != sizeof(req))
		return false;
	uint32_t i = s->cnt++;
	if (i == ITEMS_MAX)
		die("too many requests");
	s->items[i] = (struct item){ .fd = c->fd,
				     .peer_port = c->peer_port,
				     .ordinal = ++c->ordinal,
				     .received = now_ns() };
	if (write(s->queue[1], &i, sizeof(i)) != sizeof(i))
		die("queue");
	return true;
}

static int accept_all(int listen_fd, struct connection *conns)
{
	int ep = epoll_create1(0);
	for (int i = 0; i < CLIENTS; i++) {
		struct sockaddr_in a;
		socklen_t len = sizeof(a);
		conns[i].fd = accept(listen_fd, (struct sockaddr *)&a, &len);
		if (conns[i].fd < 0)
			die("accept");
		conns[i].peer_port = ntohs(a.sin_port);
		struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &conns[i] };
		epoll_ctl(ep, EPOLL_CTL_ADD, conns[i].fd, &ev);
	}
	return ep;
}

static void serve(int listen_fd, const char *log)
{
	static struct server s;
	static struct connection conns[CLIENTS];
	pthread_t workers[WORKERS];
	s.items = calloc(ITEMS_MAX, sizeof(*s.items));
	if (!s.items || pipe(s.queue))
		die("server");
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i], NULL, work, &s))
			die("worker");
	int ep = accept_all(listen_fd, conns);
	for (int open = CLIENTS; open > 0;) {
		struct epoll_event ev[CLIENTS];
		int n = epoll_wait(ep, ev, CLIENTS, -1);
		for (int i = 0; i < n; i++) {
			struct connection *c = ev[i].data.ptr;
			if (!dispatch(&s, c)) {
				close(c->fd);
				open--;
			}
		}
	}
	close(s.queue[1]);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	FILE *f = fopen(log, "w");
	if (!f)
		die(log);
	for (uint32_t i = 0; i < s.cnt; i++)
		fprintf(f, "%u %u %d %ju %ju %ju\n", s.items[i].peer_port, s.items[i].ordinal,
			s.items[i].tid, (uintmax_t)s.items[i].received, (uintmax_t)s.items[i].taken,
			(uintmax_t)s.items[i].answered);
	if (fclose(f))
		die(log);
}

struct client {
	struct sockaddr_in addr;
	uint64_t end;
};

static void *ask(void *arg)
{
	struct client *c = arg;
	char answer[4];
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&c->addr, sizeof(c->addr)) < 0)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	while (now_ns() < c->end) {
		if (write(fd, "work", 4) != 4 || read(fd, answer, 4) != 4)
			die("client");
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct client c = { .addr = { .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(c.addr);
	pthread_t clients[CLIENTS];
	int status, fd = socket(AF_INET, SOCK_STREAM, 0);
	if (argc != 3)
		return fprintf(stderr, "usage: pool SECONDS LOG\n"), 2;
	if (bind(fd, (struct sockaddr *)&c.addr, len) || listen(fd, CLIENTS) ||
	    getsockname(fd, (struct sockaddr *)&c.addr, &len))
		die("listen");
	pid_t server = fork();
	if (server == 0) {
		serve(fd, argv[2]);
		_exit(0);
	}
	close(fd);
	printf("%d\n", server);
	fflush(stdout);
	(void)getchar();
	c.end = now_ns() + (uint64_t)atoi(argv[1]) * 1000000000u;
	for (int i = 0; i < CLIENTS; i++)
		pthread_create(&clients[i], NULL, ask, &c);
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(clients[i], NULL);
	return waitpid(server, &status, 0) == server && status == 0 ? 0 : 1;
}
