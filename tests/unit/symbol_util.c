/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol_util.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t read_stack(pid_t tgid, uint64_t sp, void *buf, size_t max)
{
	/* by pages, because the mapping may end within max */
	size_t done = 0;

	while (done < max) {
		size_t n = CC_MIN(max - done, 4096 - (sp + done) % 4096);
		struct iovec local = { (char *)buf + done, n },
			     remote = { (void *)(uintptr_t)(sp + done), n };

		if (process_vm_readv(tgid, &local, 1, &remote, 1, 0) != (ssize_t)n)
			break;
		done += n;
	}
	return done;
}

int snap_take(pid_t tgid, pid_t tid, size_t max_bytes, struct cc_rec_snap *ret)
{
	int status, err = 0;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0))
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || waitpid(tid, &status, __WALL) != tid)
		err = -errno;
	if (!err)
		err = snap_again(tgid, tid, max_bytes, ret);
	if (err)
		snap_release(tid);
	return err;
}

int snap_again(pid_t tgid, pid_t tid, size_t max_bytes, struct cc_rec_snap *ret)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, tid, 0, &r))
		return -errno;
	memset(ret, 0, sizeof(*ret));
	ret->h.kind = CC_REC_SNAP;
	ret->tid = ret->owner_tid = (uint32_t)tid;
	ret->owner_tgid = (uint32_t)tgid;
	ret->ip = r.rip;
	ret->sp = r.rsp;
	ret->bp = r.rbp;
	memcpy(ret->regs,
	       (uint64_t[]){ r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11,
			     r.r12, r.r13, r.r14 },
	       sizeof(ret->regs));
	ret->r15 = r.r15;
	ret->byte_cnt =
		(uint32_t)read_stack(tgid, r.rsp, ret->data, CC_MIN(max_bytes, CC_SNAP_MAX));
	ret->h.size = (uint16_t)(sizeof(*ret) + (ret->byte_cnt + 7u) / 8 * 8);
	return 0;
}

void snap_release(pid_t tid) { ptrace(PTRACE_DETACH, tid, 0, 0); }

int wait_sleeping(pid_t tgid, pid_t tid)
{
	char path[64], buf[512];
	int still = 0; /* D: a page that is read takes less, a vfork() does not */

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", tgid, tid);
	for (int i = 0; i < 5000; i++) {
		FILE *f = fopen(path, "r");
		size_t n = f ? fread(buf, 1, sizeof(buf) - 1, f) : 0;
		const char *p;

		if (f)
			fclose(f);
		buf[n] = '\0';
		p = strrchr(buf, ')');
		still = p && p[1] == ' ' && p[2] == 'D' ? still + 1 : 0;
		if ((p && p[1] == ' ' && p[2] == 'S') || still == 50)
			return 0;
		usleep(1000);
	}
	return -ETIMEDOUT;
}

size_t thread_list(pid_t tgid, pid_t *tids, size_t max)
{
	char path[64];
	size_t cnt = 0;
	struct dirent *e;

	snprintf(path, sizeof(path), "/proc/%d/task", tgid);
	DIR *d = opendir(path);

	while (d && cnt < max && (e = readdir(d))) {
		if (atoi(e->d_name) > 0)
			tids[cnt++] = atoi(e->d_name);
	}
	if (d)
		closedir(d);
	return cnt;
}
