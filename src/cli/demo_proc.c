// SPDX-License-Identifier: Apache-2.0
#include "demo_proc.h"
#include "demo_net.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROLE_SERVER, ROLE_UPSTREAM, ROLE_HOG, ROLE_LOAD, ROLE_CNT };

struct demo {
	struct demo_opts opts;
	struct demo_shared *sh;
	struct demo_journal journal;
	int listen_fd[DEMO_CAUSE_CNT], upstream_fd;
	pid_t parent; /* of all, in a session of its own; leads the group of the others */
};

static int last_cpu(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 0;
	int cpu = 0;
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &set))
			cpu = i;
	}
	return cpu;
}

static int open_ports(struct demo *d)
{
	for (int i = 0; i < DEMO_CAUSE_CNT; i++) {
		int fd = demo_listen(&d->sh->port[i]);
		if (fd < 0)
			return fd;
		d->listen_fd[i] = fd;
	}
	int fd = demo_listen(&d->sh->upstream_port);
	if (fd < 0)
		return fd;
	d->upstream_fd = fd;
	return 0;
}

static atomic_int *role_pid(struct demo_shared *sh, int role)
{
	atomic_int *const pids[ROLE_CNT] = { &sh->server_pid, &sh->upstream_pid, &sh->hog_pid,
					     &sh->load_pid };
	return pids[role];
}

static _Noreturn void run_role(struct demo *d, int role)
{
	if (role == ROLE_SERVER)
		demo_server_run(d->sh, d->listen_fd);
	if (role == ROLE_UPSTREAM)
		demo_upstream_run(d->upstream_fd);
	if (role == ROLE_HOG)
		demo_hog_run(d->sh);
	demo_load_run(d->sh, &d->opts);
}

/* Each process has only the sockets of its role, so that ports belong to whom they seem to. */
static void keep_own_sockets(const struct demo *d, int role)
{
	for (int i = 0; i < DEMO_CAUSE_CNT && role != ROLE_SERVER; i++)
		close(d->listen_fd[i]);
	if (role != ROLE_UPSTREAM)
		close(d->upstream_fd);
}

/* Of a process that was just forked: ends with @parent, however that ends. */
static void become(const char *name, pid_t parent)
{
	sigset_t none;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1); /* it died before it could be told */
	prctl(PR_SET_NAME, name);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
}

static int spawn(struct demo *d, int role)
{
	static const char *const names[ROLE_CNT] = { "shop", "stock", "backup", "customers" };
	pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		become(names[role], parent);
		keep_own_sockets(d, role);
		run_role(d, role);
	}
	atomic_store(role_pid(d->sh, role), pid);
	return 0;
}

/* On a busy machine what the demo is to show drowns in waits for a CPU. So it goes first, where
 * that is allowed: by its nice value, and as a session where the kernel weighs those
 * (/proc/PID/autogroup, sched(7)). */
static void go_first(void)
{
	setpriority(PRIO_PROCESS, 0, -10);
	int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, "-10", 3) != 3)
		errno = 0; /* not allowed: then it shows less on a busy machine */
	close(fd);
}

/* The parent of all: starts them, and ends, and they with it, when one ends that should not. */
static _Noreturn void run_parent(struct demo *d)
{
	setsid();
	go_first();
	for (int role = 0; role < ROLE_CNT; role++) {
		if (spawn(d, role) < 0)
			_exit(1);
	}
	atomic_store(&d->sh->started, true);
	pid_t load = atomic_load(&d->sh->load_pid);
	while (waitpid(-1, NULL, 0) == load && atomic_load(&d->sh->load_done))
		;
	_exit(1);
}

static int start_parent(struct demo *d)
{
	pid_t self = getpid();
	d->parent = fork();
	if (d->parent < 0)
		return -errno;
	if (d->parent == 0) {
		become("demo", self);
		run_parent(d);
	}
	while (!atomic_load(&d->sh->started)) {
		if (!demo_alive(d))
			return -ECHILD;
		demo_sleep(CC_MS(1));
	}
	return 0;
}

static enum cli_exit start_all(struct demo *d)
{
	int rc = open_ports(d);
	if (rc)
		return cli_fail(CLI_FAILED, "demo: cannot listen on 127.0.0.1: %s", strerror(-rc));
	demo_journal_open(&d->journal);
	d->sh->journal = d->journal;
	if (d->journal.fd < 0)
		fprintf(stderr, "criticast: demo: no directory here whose syncs wait for a disk, "
				"so what needs one is left out: set TMPDIR to one that does\n");
	d->sh->cpu = last_cpu();
	rc = start_parent(d);
	if (rc)
		return cli_fail(CLI_FAILED, "demo: cannot start its processes: %s", strerror(-rc));
	return CLI_OK;
}

static void close_parent_fds(struct demo *d)
{
	for (int i = 0; i < DEMO_CAUSE_CNT; i++) {
		if (d->listen_fd[i] >= 0)
			close(d->listen_fd[i]);
		d->listen_fd[i] = -1;
	}
	if (d->upstream_fd >= 0)
		close(d->upstream_fd);
	d->upstream_fd = -1;
}

enum cli_exit demo_start(const struct demo_opts *o, struct demo **ret)
{
	struct demo *d = calloc(1, sizeof(*d));
	void *sh = !d ? MAP_FAILED
		      : mmap(NULL, sizeof(*d->sh), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sh == MAP_FAILED) {
		free(d);
		return cli_fail(CLI_FAILED, "demo: out of memory");
	}
	d->opts = *o;
	d->sh = sh;
	d->upstream_fd = -1;
	d->journal.fd = -1;
	memset(d->listen_fd, 0xff, sizeof(d->listen_fd));
	enum cli_exit code = start_all(d);
	close_parent_fds(d);
	if (code) {
		demo_stop(d);
		return code;
	}
	*ret = d;
	return CLI_OK;
}

void demo_stop(struct demo *d)
{
	if (!d)
		return;
	if (d->parent > 0) {
		kill(d->parent, SIGKILL); /* and so all others */
		waitpid(d->parent, NULL, 0);
	}
	demo_journal_close(&d->journal);
	munmap(d->sh, sizeof(*d->sh));
	free(d);
}

void demo_go(struct demo *d) { atomic_store(&d->sh->go, true); }

bool demo_alive(struct demo *d)
{
	if (d->parent > 0 && waitpid(d->parent, NULL, WNOHANG) == d->parent)
		d->parent = 0; /* reaped: the number may soon be another's */
	return d->parent > 0;
}

struct demo_shared *demo_log(struct demo *d) { return d->sh; }
