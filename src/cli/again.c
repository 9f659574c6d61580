/* SPDX-License-Identifier: Apache-2.0 */
#include "again.h"
#include "tracing.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_comm(uint32_t pid, char comm[16])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool ok = fgets(comm, 16, f) != NULL;
	fclose(f);
	if (ok)
		comm[strcspn(comm, "\n")] = '\0';
	return ok;
}

/* "" when it may not be read. A program replaced on disk is still the same one by name. */
static void read_exe(uint32_t pid, char *exe, size_t cap)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	ssize_t n = readlink(path, exe, cap - 1);
	exe[n > 0 ? n : 0] = '\0';
	char *gone = strstr(exe, " (deleted)");
	if (gone)
		*gone = '\0';
}

/* Start time in clock ticks since boot, field 22 of proc(5) stat; 0: no such process. */
static uint64_t start_time(uint32_t pid)
{
	char path[64], line[1024];
	unsigned long long t = 0;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	char *end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	if (!end || sscanf(end + 1,
			   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
			   "%*d %*d %llu",
			   &t) != 1)
		return 0;
	return t;
}

void again_init(struct again *a, const struct cli_opts *o)
{
	*a = (struct again){ .opts = *o };
	if (!o->pid_cnt)
		return;
	if (!read_comm(o->pids[0], a->comm))
		a->comm[0] = '\0';
	read_exe(o->pids[0], a->exe, sizeof(a->exe));
	a->after = start_time(o->pids[0]);
}

static bool is_it(const struct again *a, uint32_t pid)
{
	char comm[16], exe[512];
	if (!a->comm[0] || !read_comm(pid, comm) || strcmp(comm, a->comm) != 0)
		return false;
	read_exe(pid, exe, sizeof(exe));
	return !strcmp(exe, a->exe) && start_time(pid) > a->after;
}

static void find_pids(struct again *a)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	a->opts.pid_cnt = 0;
	while (d && (e = readdir(d)) && a->opts.pid_cnt < ARRAY_SIZE(a->opts.pids)) {
		uint32_t pid = (uint32_t)strtoul(e->d_name, NULL, 10);
		if (isdigit((unsigned char)e->d_name[0]) && is_it(a, pid))
			a->opts.pids[a->opts.pid_cnt++] = pid;
	}
	if (d)
		closedir(d);
}

int again_open(void *again, struct collect_opts *ret)
{
	struct again *a = again;
	struct cc_err why;
	if (a->comm[0]) {
		find_pids(a);
		if (!a->opts.pid_cnt)
			return -ESRCH;
	}
	int err = tracing_try(&a->opts, ret, &why);
	if (err)
		collect_opts_drop(ret);
	return err;
}
