// SPDX-License-Identifier: Apache-2.0
/* http_load PORT PATH CONNECTIONS: keeps so many connections to 127.0.0.1 open and, for each line
 * with a number on stdin, makes so many requests on them, the next on each as soon as it has its
 * answer. Then prints how many there were and the ns they took. Answers must carry their length. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNS_MAX 256
#define HEAD_MAX 4096

struct conn {
	int fd;
	size_t head_len;  /* of what there is of the answer's head */
	uint64_t missing; /* bytes of the body */
	bool in_body;
	char head[HEAD_MAX + 1];
};

static struct conn conns[CONNS_MAX];
static char request[512];
static size_t request_len;

static void die(const char *what)
{
	fprintf(stderr, "http_load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void ask(const struct conn *c)
{
	if (write(c->fd, request, request_len) != (ssize_t)request_len)
		die("write");
}

/* Takes the head's end out of what was read: the rest is body. */
static void head_ends(struct conn *c)
{
	c->head[c->head_len] = 0;
	char *end = strstr(c->head, "\r\n\r\n"), *line = c->head;
	if (!end) {
		if (c->head_len == HEAD_MAX)
			die("a head that long");
		return;
	}
	uint64_t len = UINT64_MAX;
	while ((line = strchr(line, '\n')) && line < end)
		if (!strncasecmp(++line, "Content-Length:", 15))
			len = strtoull(line + 15, NULL, 10);
	if (len == UINT64_MAX || strncmp(c->head, "HTTP/1.1 200", 12))
		die("not an answer of known length");
	size_t body = c->head_len - (size_t)(end + 4 - c->head);
	c->missing = len - (body < len ? body : len);
	c->in_body = true;
}

/* Reads what is there; says whether the answer is whole. */
static bool answer(struct conn *c)
{
	static char sink[1 << 16];
	ssize_t n = c->in_body ? read(c->fd, sink, sizeof(sink))
			       : read(c->fd, c->head + c->head_len, HEAD_MAX - c->head_len);
	if (n <= 0)
		die("read");
	if (c->in_body) {
		c->missing -= (uint64_t)n;
	} else {
		c->head_len += (size_t)n;
		head_ends(c);
	}
	if (!c->in_body || c->missing)
		return false;
	c->in_body = false;
	c->head_len = 0;
	return true;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Exactly @want requests on @cnt connections. */
static void load(int ep, unsigned int cnt, uint64_t want)
{
	uint64_t asked = 0, done = 0;
	for (unsigned int i = 0; i < cnt && asked < want; i++, asked++)
		ask(&conns[i]);
	while (done < want) {
		struct epoll_event ev[CONNS_MAX];
		int n = epoll_wait(ep, ev, CONNS_MAX, 10000);
		if (n <= 0)
			die("no answer");
		for (int i = 0; i < n; i++) {
			struct conn *c = ev[i].data.ptr;
			if (!answer(c))
				continue;
			done++;
			if (asked < want) {
				ask(c);
				asked++;
			}
		}
	}
}

static void open_conn(int ep, struct conn *c, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };
	int one = 1;
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&a, sizeof(a)) ||
	    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev))
		die("connect");
}

int main(int argc, char **argv)
{
	unsigned int cnt = argc == 4 ? (unsigned int)atoi(argv[3]) : 0;
	char line[64];
	if (!cnt || cnt > CONNS_MAX) {
		fputs("usage: http_load PORT PATH CONNECTIONS (256 at most)\n", stderr);
		return 2;
	}
	int len = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
			   argv[2]);
	if (len < 0 || (size_t)len >= sizeof(request))
		return 2;
	request_len = (size_t)len;
	int ep = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned int i = 0; i < cnt; i++)
		open_conn(ep, &conns[i], (uint16_t)atoi(argv[1]));
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t want = strtoull(line, NULL, 10), start = now_ns();
		load(ep, cnt, want);
		printf("%llu %llu\n", (unsigned long long)want,
		       (unsigned long long)(now_ns() - start));
		fflush(stdout);
	}
	return 0;
}
