// SPDX-License-Identifier: Apache-2.0
/* Who listens where, against sockets of this process. */
#if HAVE_BPF
#include "listen.h"
#include "loader_int.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int listen_on(int family, uint16_t *port)
{
	struct sockaddr_in6 a = { .sin6_family = (sa_family_t)family };
	socklen_t len = sizeof(a);
	int fd = socket(family, SOCK_STREAM, 0);

	if (family == AF_INET)
		len = sizeof(struct sockaddr_in);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&a, &len)) {
		close(fd);
		return -1;
	}
	*port = ntohs(a.sin6_port); /* at the same place for both families */
	return fd;
}

static const struct listen_server *find(const struct listen_server *l, size_t cnt, pid_t pid,
					uint16_t port)
{
	for (size_t i = 0; i < cnt; i++)
		if (l[i].pid == (uint32_t)pid && l[i].port == port)
			return &l[i];
	return NULL;
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

Test(listen, finds_this_process_and_its_child)
{
	struct listen_server *l = NULL;
	const struct listen_server *s;
	uint16_t port, port6;
	size_t cnt = 0;
	int fd = listen_on(AF_INET, &port), fd6 = listen_on(AF_INET6, &port6);
	int client, server;
	pid_t child;

	cr_assert_geq(fd, 0);
	client = connect_to(port);
	server = accept(fd, NULL, NULL);
	cr_assert_geq(server, 0);
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	cr_assert_eq(listen_list(&l, &cnt, NULL), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	s = find(l, cnt, getpid(), port);
	cr_assert_neq(s, NULL);
	cr_expect_eq(s->conns, 1);
	cr_expect_neq(s->netns, 0);
	cr_expect_eq(strlen(s->comm) > 0, true);
	s = find(l, cnt, child, port);
	cr_assert_neq(s, NULL, "a child has the socket too");
	cr_expect_eq(s->parent, (uint32_t)getpid());
	cr_expect(fd6 < 0 || find(l, cnt, getpid(), port6) != NULL, "IPv6");
	for (size_t i = 1; i < cnt; i++)
		cr_expect(l[i - 1].port < l[i].port ||
			  (l[i - 1].port == l[i].port && l[i - 1].pid < l[i].pid));
	free(l);
	close(client);
	close(server);
	close(fd);
	if (fd6 >= 0)
		close(fd6);
}

Test(listen, ports_to_processes)
{
	struct cc_err err = { 0 };
	uint32_t *pids = NULL, ports[2];
	size_t cnt = 0;
	uint16_t port;
	int fd = listen_on(AF_INET, &port);

	ports[0] = ports[1] = port;
	cr_assert_eq(sock_find_ports(ports, 2, &err, &pids, &cnt), 0);
	cr_expect_eq(cnt, 1, "once, though asked twice");
	cr_expect_eq(pids[0], (uint32_t)getpid());
	free(pids);
	pids = NULL;
	close(fd);
	cr_expect_eq(sock_find_ports(ports, 1, &err, &pids, &cnt), -ESRCH);
	cr_expect_eq(pids, NULL, "untouched");
	cr_expect(strstr(err.msg, "nothing listens") || strstr(err.msg, "no process"));
}
#endif
