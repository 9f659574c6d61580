// SPDX-License-Identifier: Apache-2.0
/* hang: a server, a thread per connection, whose requests may never end. Prints "PID PORT". The
 * first byte of a request says what its handler does: 'e' answers, 'm' locks a mutex that the
 * main thread keeps, 'p' reads a pipe that nobody writes. The functions are named so that a stack
 * says which. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static void *handle(void *arg)
{
	struct connection *c = arg;
	char kind;
	while (read(c->fd, &kind, 1) == 1) {
		if (kind == 'm')
			wait_for_kept_mutex(c->s);
		else if (kind == 'p')
			wait_for_dry_pipe(c->s);
		if (write(c->fd, "done", 4) != 4)
			break;
	}
	close(c->fd);
	free(c);
	return NULL;
}

int main(void)
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
