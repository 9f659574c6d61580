/* SPDX-License-Identifier: Apache-2.0 */
#include "targets.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define TARGETS_MAX 16000 /* the kernel's table has 16384 */

/* Start time of process @tgid in ns of CLOCK_BOOTTIME, to the clock tick; 0: no such process. */
static uint64_t proc_start(uint32_t tgid)
{
	char path[64], buf[1024];
	unsigned long long ticks = 0;
	snprintf(path, sizeof(path), "/proc/%u/stat", tgid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	size_t n = fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	buf[n] = 0;
	/* the name is in parentheses and may hold any byte: fields count from the last ')' */
	char *p = strrchr(buf, ')');
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (!p)
		return 0;
	ticks = strtoull(p, NULL, 10);
	return ticks * (CC_S(1) / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* The first word after "@key:" in /proc/@pid/status; 0: not there. */
static uint32_t proc_status(uint32_t pid, const char *key)
{
	char path[64], line[256];
	unsigned long v = 0;
	size_t len = strlen(key);
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, len) && line[len] == ':') {
			v = strtoul(line + len + 1, NULL, 10);
			break;
		}
	fclose(f);
	return (uint32_t)v;
}

struct loader_target *targets_find(struct loader *l, uint32_t tgid)
{
	for (size_t i = 0; i < l->target_cnt; i++)
		if (l->targets[i].tgid == tgid && !l->targets[i].gone)
			return &l->targets[i];
	return NULL;
}

static int targets_reserve(struct loader *l)
{
	if (l->target_cnt < l->target_cap)
		return 0;
	size_t cap = l->target_cap ? l->target_cap * 2 : 16;
	struct loader_target *t = realloc(l->targets, cap * sizeof(*t));
	if (!t)
		return -ENOMEM;
	l->targets = t;
	l->target_cap = cap;
	return 0;
}

int loader_target_add(struct loader *l, uint32_t tgid, uint32_t parent, uint32_t flags)
{
	struct cc_bpf_target v = { .flags = flags, .parent = parent };
	if (targets_find(l, tgid))
		return 1;
	if (l->target_cnt >= TARGETS_MAX)
		return -E2BIG;
	int err = targets_reserve(l);
	if (err)
		return err;
	/* the pidfd first: what it holds is the process whose start time is read after it */
	int pidfd = (int)syscall(SYS_pidfd_open, tgid, 0);
	uint64_t start = proc_start(tgid);
	if (!start) {
		if (pidfd >= 0)
			close(pidfd);
		return -ESRCH;
	}
	if (bpf_map_update_elem(bpf_map__fd(l->skel->maps.targets), &tgid, &v, BPF_ANY)) {
		err = errno == E2BIG ? -E2BIG : -errno;
		if (pidfd >= 0)
			close(pidfd);
		return err;
	}
	l->targets[l->target_cnt++] = (struct loader_target){
		.tgid = tgid,
		.pidfd = pidfd,
		.start = start,
		.parent = parent,
	};
	return 0;
}

static bool target_gone(const struct loader_target *t)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };
	if (t->pidfd >= 0)
		return poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
	return proc_start(t->tgid) != t->start;
}

size_t targets_alive(struct loader *l)
{
	size_t cnt = 0;
	for (size_t i = 0; i < l->target_cnt; i++) {
		struct loader_target *t = &l->targets[i];
		if (!t->gone && target_gone(t)) {
			t->gone = true;
			/* the exit program does this too, but not for what it never saw alive */
			bpf_map_delete_elem(bpf_map__fd(l->skel->maps.targets), &t->tgid);
		}
		cnt += !t->gone;
	}
	return cnt;
}

void targets_done(struct loader *l)
{
	for (size_t i = 0; i < l->target_cnt; i++)
		if (l->targets[i].pidfd >= 0)
			close(l->targets[i].pidfd);
	free(l->targets);
	l->targets = NULL;
	l->target_cnt = l->target_cap = 0;
}

/* ---- who is meant --------------------------------------------------------------------------- */

/* Calls @fn for each numeric entry of directory @path until it returns an error. */
static int each_number(const char *path, int (*fn)(struct loader *l, uint32_t n, const void *arg),
		       struct loader *l, const void *arg)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int err = 0;
	if (!d)
		return -ESRCH;
	while (err >= 0 && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			err = fn(l, (uint32_t)strtoul(e->d_name, NULL, 10), arg);
	closedir(d);
	return err < 0 ? err : 0;
}

/* Adds the children of thread @tid of process *@arg. */
static int add_children_of(struct loader *l, uint32_t tid, const void *arg)
{
	const uint32_t *tgid = arg;
	char path[64];
	unsigned int child;
	int err = 0;
	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", *tgid, tid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0; /* the thread is gone, or CONFIG_PROC_CHILDREN is off */
	while (err >= 0 && fscanf(f, "%u", &child) == 1) {
		err = loader_target_add(l, child, *tgid, 0);
		if (err == -ESRCH)
			err = 0;
	}
	fclose(f);
	return err < 0 ? err : 0;
}

int targets_add_children(struct loader *l)
{
	size_t before = l->target_cnt;
	/* the table grows while it is walked: grandchildren come by themselves */
	for (size_t i = 0; i < l->target_cnt; i++) {
		uint32_t tgid = l->targets[i].tgid;
		char path[64];
		snprintf(path, sizeof(path), "/proc/%u/task", tgid);
		int err = l->targets[i].gone ? 0 : each_number(path, add_children_of, l, &tgid);
		if (err < 0 && err != -ESRCH)
			return err;
	}
	return (int)(l->target_cnt - before);
}

static int add_pid(struct loader *l, uint32_t pid, struct cc_err *err)
{
	uint32_t tgid = proc_status(pid, "Tgid");
	int ret = tgid ? loader_target_add(l, tgid, 0, 0) : -ESRCH;
	if (ret == -ESRCH)
		loader_err(err, "pid %u: no such process; see `ps -e`", pid);
	else if (ret == -E2BIG)
		loader_err(err, "pid %u: more than %d processes to trace", pid, TARGETS_MAX);
	else if (ret < 0)
		loader_err(err, "pid %u: %s", pid, strerror(-ret));
	return ret < 0 ? ret : 0;
}

static int add_if_named(struct loader *l, uint32_t pid, const void *arg)
{
	char path[64], comm[CC_COMM_LEN + 2] = "";
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(comm, sizeof(comm), f))
		comm[0] = 0;
	fclose(f);
	comm[strcspn(comm, "\n")] = 0;
	if (strcmp(comm, arg) || pid == (uint32_t)getpid())
		return 0;
	int err = loader_target_add(l, pid, 0, 0);
	return err == -ESRCH ? 0 : err;
}

static int add_named(struct loader *l, const char *comm, struct cc_err *err)
{
	char cut[CC_COMM_LEN]; /* the kernel keeps 15 bytes */
	size_t before = l->target_cnt;
	snprintf(cut, sizeof(cut), "%s", comm);
	int ret = each_number("/proc", add_if_named, l, cut);
	if (ret < 0)
		loader_err(err, "--comm %s: %s", comm, strerror(-ret));
	else if (l->target_cnt == before)
		loader_err(err, "--comm %s: no process of that name; see `ps -eo comm`", comm);
	return ret < 0 ? ret : l->target_cnt == before ? -ESRCH : 0;
}

static int add_listeners(struct loader *l, const struct loader_opts *o, struct cc_err *err)
{
	uint32_t *pids = NULL;
	size_t cnt = 0;
	int ret = sock_find_ports(o->ports, o->port_cnt, err, &pids, &cnt);
	for (size_t i = 0; !ret && i < cnt; i++)
		ret = add_pid(l, pids[i], err);
	free(pids);
	return ret;
}

/* The kernel programs know the pids of the initial pid namespace only, and so do the records. In a
 * container's own namespace a --pid would silently be another process. */
static bool in_initial_pid_ns(void)
{
	char ns[64] = "";
	ssize_t n = readlink("/proc/self/ns/pid", ns, sizeof(ns) - 1);
	/* PROC_PID_INIT_INO, include/linux/proc_ns.h: fixed since Linux 3.8 */
	return n < 0 || !strcmp(ns, "pid:[4026531836]");
}

int targets_add_asked(struct loader *l, const struct loader_opts *o, struct cc_err *err)
{
	int ret = 0;
	if (!in_initial_pid_ns()) {
		loader_err(err,
			   "cannot trace from inside a pid namespace (a container); run criticast "
			   "on the host, or the container with --pid=host");
		return -EOPNOTSUPP;
	}
	for (uint32_t i = 0; !ret && i < o->pid_cnt; i++)
		ret = add_pid(l, o->pids[i], err);
	if (!ret && o->port_cnt)
		ret = add_listeners(l, o, err);
	if (!ret && o->comm)
		ret = add_named(l, o->comm, err);
	if (ret)
		return ret;
	if (!l->target_cnt) {
		loader_err(err, "nothing to trace: name a process with --pid, --port or --comm");
		return -EINVAL;
	}
	ret = targets_add_children(l);
	if (ret < 0)
		loader_err(err, "children of the targets: %s", strerror(-ret));
	return ret < 0 ? ret : 0;
}
