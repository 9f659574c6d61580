/* SPDX-License-Identifier: Apache-2.0 */
#include "go_fixture.h"
#include "symbol_util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const go_kinds[GO_KINDS] = { "dwarf", "strip", "pie", "extpie", "extstatic" };

static void path_of(const char *kind, char *buf, size_t cap)
{
	snprintf(buf, cap, CC_GO_DIR "/waits-%s", kind);
}

void go_needed(void)
{
	char path[512];

	path_of(go_kinds[0], path, sizeof(path));
	if (!access(path, X_OK))
		return;
	cr_assert_neq(system("command -v go >/dev/null"), 0, "%s is missing: make test-build",
		      path);
	cr_skip("go is not installed");
}

int go_fd(const char *kind)
{
	char path[512];
	int fd;

	path_of(kind, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s", path);
	return fd;
}

struct go_bin *go_open(const char *kind)
{
	struct go_bin *b = NULL;
	struct cc_err err;

	cr_assert_eq(go_bin_open(go_fd(kind), NULL, &b, &err), 0, "%s: %s", kind, err.msg);
	return b;
}

struct go_proc go_start(const char *kind)
{
	int in[2], out[2];
	char path[512], line[8];
	struct go_proc p;

	path_of(kind, path, sizeof(path));
	cr_assert_eq(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	p.pid = fork();
	if (!p.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(path, path, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p.in = in[1];
	cr_assert_eq(read(out[0], line, sizeof(line)), 6, "%s did not start", path);
	close(out[0]);
	return p;
}

void go_stop(struct go_proc *p)
{
	close(p->in);
	kill(p->pid, SIGKILL);
	/* those of its threads that are traced too: it is not gone before they are */
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
		;
}

size_t go_sample(const struct go_proc *p, int64_t tls_off, struct go_sample *ret, size_t max)
{
	static _Alignas(8) uint8_t buf[SNAP_BUF_BYTES];
	pid_t tids[64];
	size_t cnt = thread_list(p->pid, tids, CC_MIN(max, 64)), n = 0;

	for (size_t i = 0; i < cnt; i++) {
		long fs;

		if (snap_take(p->pid, tids[i], 0, (struct cc_rec_snap *)buf))
			continue;
		errno = 0;
		fs = ptrace(PTRACE_PEEKUSER, tids[i], offsetof(struct user_regs_struct, fs_base),
			    NULL);
		if (errno)
			continue;
		ret[n] = (struct go_sample){ .tid = (uint32_t)tids[i] };
		if (!go_live_read_process((void *)&p->pid, (uint64_t)fs + (uint64_t)tls_off,
					  &ret[n].g, sizeof(ret[n].g)))
			ret[n].g = 0;
		n++;
	}
	return n;
}
