// SPDX-License-Identifier: Apache-2.0
/* hang: a server, a thread per connection, whose requests may never end; "hang alone": one thread
 * for its first two connections. Prints "PID PORT". The first byte of a request says what its
 * handler does: 'e' answers, 'm' locks a mutex that the main thread keeps, 'p' reads a pipe that
 * nobody writes. The functions are named so that a stack says which. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct server {
	pthread_mutex_t kept;
	int dry_pipe[2];
};

struct connection {
	struct server *s;
	int fd;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

__attribute__((noinline)) static void wait_for_kept_mutex(struct server *s)
{
	pthread_mutex_lock(&s->kept);
	pthread_mutex_unlock(&s->kept);
}

__attribute__((noinline)) static void wait_for_dry_pipe(struct server *s)
{
	char c;
	if (read(s->dry_pipe[0], &c, 1) != 1)
		die("pipe");
}

static int answer_one(struct connection *c)
{
	char kind;
	if (read(c->fd, &kind, 1) != 1)
		return -1;
	if (kind == 'm')
		wait_for_kept_mutex(c->s);
	else if (kind == 'p')
		wait_for_dry_pipe(c->s);
	return write(c->fd, "done", 4) == 4 ? 0 : -1;
}

static void serve_alone(struct server *s, int fd)
{
	struct connection c[2] = { { .s = s }, { .s = s } };
	struct pollfd p[2];
	for (int i = 0; i < 2; i++) {
		c[i].fd = accept(fd, NULL, NULL);
		p[i] = (struct pollfd){ .fd = c[i].fd, .events = POLLIN };
	}
	while (poll(p, 2, -1) > 0)
		for (int i = 0; i < 2; i++)
			if (p[i].revents && answer_one(&c[i]))
				return;
}

static void *handle(void *arg)
{
	struct connection *c = arg;
	while (!answer_one(c)) {
	}
	close(c->fd);
	free(c);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct server s = { .kept = PTHREAD_MUTEX_INITIALIZER };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (pipe(s.dry_pipe) || bind(fd, (struct sockaddr *)&a, len) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		die("listen");
	pthread_mutex_lock(&s.kept);
	printf("%d %d\n", getpid(), ntohs(a.sin_port));
	fflush(stdout);
	if (argc > 1 && !strcmp(argv[1], "alone")) {
		serve_alone(&s, fd);
		return 0;
	}
	for (;;) {
		pthread_t t;
		struct connection *c = malloc(sizeof(*c));
		*c = (struct connection){ .s = &s, .fd = accept(fd, NULL, NULL) };
		if (c->fd < 0)
			die("accept");
		if (pthread_create(&t, NULL, handle, c))
			die("thread");
		pthread_detach(t);
	}
}
