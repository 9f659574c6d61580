/* SPDX-License-Identifier: Apache-2.0 */
/* Of cases.c: an allocator's lock, a journal, messages of all kinds. */
#ifndef CASES_MORE_H
#define CASES_MORE_H

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "cases.h"

/* One arena, given back to the kernel at each free: the lock is kept over system calls. */
static void *allocates(void *arg)
{
	struct ctx *c = arg;
	bool victim = false;
	char name[16];
	nap(1000); /* until it has its name */
	prctl(PR_GET_NAME, name);
	victim = !strcmp(name, "victim");
	while (!c->stop) {
		char *p[4];
		unsigned long at = now();
		for (int i = 0; i < 4; i++) {
			p[i] = malloc(100000);
			p[i][0] = p[i][99999] = 1;
		}
		for (int i = 0; i < 4; i++)
			free(p[i]);
		c->victim_ns += victim ? now() - at : 0;
	}
	return NULL;
}

static void *reads_fd(void *arg)
{
	struct ctx *c = arg;
	char byte = 0;
	while (!c->stop && byte != 'x')
		VICTIM(c, (void)!read(c->fds[0], &byte, 1));
	return NULL;
}

static void *writes_fd(void *arg)
{
	struct ctx *c = arg;
	while (!c->stop) {
		nap(5000);
		(void)!write(c->fds[1], "o", 1);
	}
	(void)!write(c->fds[1], "x", 1);
	return NULL;
}

static void *takes_messages(void *arg)
{
	struct ctx *c = arg;
	struct {
		long type;
		char text[1];
	} m = { 1, { 0 } };
	while (!c->stop && m.text[0] != 'x')
		VICTIM(c, msgrcv(c->fds[0], &m, 1, 0, 0));
	return NULL;
}

static void *puts_messages(void *arg)
{
	struct ctx *c = arg;
	struct {
		long type;
		char text[1];
	} m = { 1, { 'o' } };
	while (!c->stop) {
		nap(5000);
		msgsnd(c->fds[0], &m, 1, 0);
	}
	m.text[0] = 'x';
	msgsnd(c->fds[0], &m, 1, 0);
	nap(50000); /* it is read by then */
	msgctl(c->fds[0], IPC_RMID, NULL);
	return NULL;
}

static void *waits_for_signal(void *arg)
{
	struct ctx *c = arg;
	sigset_t set;
	siginfo_t info;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	while (!c->stop)
		VICTIM(c, sigwaitinfo(&set, &info));
	return NULL;
}

static void *sends_signals(void *arg)
{
	struct ctx *c = arg;
	for (int after = 0; after < 20; after += c->stop) {
		nap(5000);
		kill(getpid(), SIGUSR2);
	}
	return NULL;
}

/* Two small writes and a read: the second is held back until the first is acknowledged, and that
 * waits for an answer to travel with. */
static void *writes_twice(void *arg)
{
	struct ctx *c = arg;
	char byte;
	for (int i = 0; !c->stop; i++) {
		if (write(c->fds[0], "a", 1) != 1 || write(c->fds[0], "b", 1) != 1)
			die("write");
		VICTIM(c, (void)!read(c->fds[0], &byte, 1));
	}
	shutdown(c->fds[0], SHUT_WR);
	return NULL;
}

static void *answers_two(void *arg)
{
	struct ctx *c = arg;
	char byte;
	for (int got = 0; read(c->fds[1], &byte, 1) == 1; got++)
		if (got % 2 && write(c->fds[1], "c", 1) != 1)
			die("write");
	return NULL;
}

static void *logs(void *arg)
{
	struct ctx *c = arg;
	int fd = open(c->file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	char line[4096];
	memset(line, 'x', sizeof(line));
	for (int i = 0; !c->stop; i++) {
		VICTIM(c, (void)!write(fd, line, sizeof(line)));
		if (i % 4 == 3 && ftruncate(fd, 0))
			die("truncate");
	}
	close(fd);
	return NULL;
}

/* New memory, where all there may be is taken by pages that are still to be written. */
static void *grows(void *arg)
{
	struct ctx *c = arg;
	while (!c->stop) {
		char *p =
			mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			die("mmap");
		VICTIM(c, memset(p, 1, MIB));
		munmap(p, MIB);
	}
	return NULL;
}

static void *dirties(void *arg)
{
	struct ctx *c = arg;
	static char page[64 * 1024];
	int fd = open(c->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		die(c->file);
	for (unsigned int i = 0; !c->stop; i++)
		if (pwrite(fd, page, sizeof(page), (off_t)(i % 512 * sizeof(page))) < 0)
			die("write");
	close(fd);
	return NULL;
}

/* A storm of small files made, synced and removed on the same file system. */
static void *syncs(void *arg)
{
	struct ctx *c = arg;
	char name[512];
	snprintf(name, sizeof(name), "%s.%d", c->file, gettid());
	while (!c->stop) {
		int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, name, sizeof(name)) < 0 || fsync(fd))
			die(name);
		close(fd);
		unlink(name);
	}
	return NULL;
}

/* Connected ends in c->fds, of what @kind says. */
static void connect_fds(struct ctx *c, int kind)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int ls;
	if (kind == AF_UNIX) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c->fds))
			die("socketpair");
		return;
	}
	ls = socket(AF_INET, SOCK_STREAM, 0);
	c->fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(ls, (void *)&a, len) || listen(ls, 1) || getsockname(ls, (void *)&a, &len) ||
	    connect(c->fds[0], (void *)&a, len) || (c->fds[1] = accept(ls, NULL, NULL)) < 0)
		die("connect");
}

/* What the whole process is to have before its threads begin. */
static void prepare(struct ctx *c, const char *name)
{
	sigset_t set;
	if (!strcmp(name, "malloc")) {
		mallopt(M_ARENA_MAX, 1);
		mallopt(M_MMAP_THRESHOLD, 1 << 25);
		mallopt(M_TRIM_THRESHOLD, 1);
		mallopt(M_TOP_PAD, 0);
	} else if (!strcmp(name, "unix")) {
		connect_fds(c, AF_UNIX);
	} else if (!strcmp(name, "nagle")) {
		connect_fds(c, AF_INET);
	} else if (!strcmp(name, "messages")) {
		c->fds[0] = msgget(IPC_PRIVATE, 0600);
	} else if (!strcmp(name, "signal")) {
		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		sigprocmask(SIG_BLOCK, &set, NULL);
	}
}

#endif
