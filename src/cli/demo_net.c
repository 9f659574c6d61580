// SPDX-License-Identifier: Apache-2.0
#include "demo_net.h"
#include "demo_log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static int fail_close(int fd)
{
	int err = -errno;
	close(fd);
	return err;
}

int demo_listen(uint16_t *ret_port)
{
	struct sockaddr_in a = loopback(0);
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return fail_close(fd);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void no_delay(int fd)
{
	int one = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int demo_connect(uint16_t port, int rcvbuf)
{
	struct sockaddr_in a = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (rcvbuf)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		return fail_close(fd);
	no_delay(fd);
	return fd;
}

int demo_accept(int listen_fd, uint16_t *ret_peer_port)
{
	struct sockaddr_in a = { 0 };
	socklen_t len = sizeof(a);
	int fd = accept4(listen_fd, (struct sockaddr *)&a, &len, SOCK_CLOEXEC);
	if (fd < 0)
		return -errno;
	no_delay(fd);
	if (ret_peer_port)
		*ret_peer_port = ntohs(a.sin_port);
	return fd;
}

bool demo_ask(int fd, uint32_t op, uint32_t answer)
{
	struct demo_msg m = { .op = op, .answer = answer, .sent = demo_now() };
	return send(fd, &m, sizeof(m), MSG_NOSIGNAL) == sizeof(m);
}

bool demo_take(int fd, struct demo_msg *ret)
{
	return recv(fd, ret, sizeof(*ret), MSG_WAITALL) == sizeof(*ret);
}

bool demo_answer(int fd, uint32_t bytes)
{
	static const char block[16384] = "{\"ok\":true}";
	while (bytes) {
		ssize_t n = send(fd, block, CC_MIN(bytes, sizeof(block)), MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		bytes -= (uint32_t)n;
	}
	return true;
}

bool demo_read_answer(int fd, uint32_t bytes, uint32_t chunk, cc_ns pause_ns)
{
	char buf[16384];
	while (bytes) {
		ssize_t n =
			recv(fd, buf, CC_MIN(CC_MIN(bytes, sizeof(buf)), chunk ? chunk : bytes), 0);
		if (n <= 0)
			return false;
		bytes -= (uint32_t)n;
		if (pause_ns && bytes)
			demo_sleep(pause_ns);
	}
	return true;
}
