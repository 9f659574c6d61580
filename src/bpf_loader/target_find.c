/* SPDX-License-Identifier: Apache-2.0 */
#include "targets.h"

#include "cgroup.h"
#include "proc_stat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

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

uint32_t targets_tgid_of(uint32_t tid) { return proc_status(tid, "Tgid"); }

bool targets_is_self(uint32_t tgid) { return tgid == (uint32_t)getpid(); }

/* What pid @want of a container is here: the last number of a NSpid line is what the process itself
 * sees. */
struct inner {
	uint32_t want, pid, cnt;
};

static int note_inner(void *ctx, uint32_t pid)
{
	struct inner *in = ctx;
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		line[strcspn(line, "\n")] = 0;
		const char *last = strrchr(line, '\t');
		if (last && last > line + 6 && strtoul(last, NULL, 10) == in->want) {
			in->pid = in->pid ? in->pid : pid;
			in->cnt++;
		}
		break;
	}
	fclose(f);
	return 0;
}

static void no_such_pid(uint32_t pid, struct cc_err *err)
{
	struct inner in = { .want = pid };
	if (targets_each_number("/proc", note_inner, &in) || !in.cnt)
		loader_err(err, "pid %u: no such process; see `ps -e`", pid);
	else if (in.cnt == 1)
		loader_err(err,
			   "pid %u: no such process here; in a container that is pid %u of this "
			   "host: --pid %u",
			   pid, in.pid, in.pid);
	else
		loader_err(err,
			   "pid %u: no such process here, but in %u containers (pid %u of this "
			   "host is one); see `grep NSpid /proc/*/status`",
			   pid, in.cnt, in.pid);
}

static int add_tgid(struct loader *l, uint32_t tgid)
{
	const struct loader_target t = { .tgid = tgid };
	return loader_target_add(l, &t);
}

static int add_pid(struct loader *l, uint32_t pid, struct cc_err *err)
{
	uint32_t tgid = targets_tgid_of(pid);
	int ret = tgid ? add_tgid(l, tgid) : -ESRCH;
	if (ret == -ESRCH)
		no_such_pid(pid, err);
	else if (ret == -E2BIG)
		loader_err(err, "pid %u: more than %d processes to trace", pid, TARGETS_MAX);
	else if (ret < 0)
		loader_err(err, "pid %u: %s", pid, strerror(-ret));
	else if (!l->kernel_pid && proc_is_kernel(tgid))
		l->kernel_pid = pid;
	return ret < 0 ? ret : 0;
}

struct named {
	struct loader *l;
	const char *comm;
	bool found; /* also when it is a target already */
};

static int add_if_named(void *ctx, uint32_t pid)
{
	struct named *n = ctx;
	char path[64], comm[CC_COMM_LEN + 2] = "";
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(comm, sizeof(comm), f))
		comm[0] = 0;
	fclose(f);
	comm[strcspn(comm, "\n")] = 0;
	if (strcmp(comm, n->comm) || targets_is_self(pid))
		return 0;
	n->found = true;
	int err = add_tgid(n->l, pid);
	return err == -ESRCH || err > 0 ? 0 : err;
}

/* Whoever takes this name later is a target too: the programs see to that. */
static int want_name(struct loader *l, const char comm[CC_COMM_LEN])
{
	uint32_t one = 1;
	if (bpf_map_update_elem(bpf_map__fd(l->skel->maps.target_comms), comm, &one, BPF_ANY))
		return -errno;
	l->skel->bss->target_comm_cnt++;
	return 0;
}

static int add_named(struct loader *l, const char *comm, struct cc_err *err)
{
	char cut[CC_COMM_LEN]; /* the kernel keeps 15 bytes */
	struct named n = { .l = l, .comm = cut };
	memset(cut, 0, sizeof(cut));
	snprintf(cut, sizeof(cut), "%s", comm);
	int ret = want_name(l, cut);
	if (!ret)
		ret = targets_each_number("/proc", add_if_named, &n);
	if (ret < 0)
		loader_err(err, "--comm %s: %s", comm, strerror(-ret));
	else if (!n.found)
		loader_err(err, "--comm %s: no process of that name; see `ps -eo comm`", comm);
	return ret < 0 ? ret : n.found ? 0 : -ESRCH;
}

/* ---- cgroups -------------------------------------------------------------------------------- */

struct members {
	struct loader *l;
	bool found;
};

static int add_member(void *ctx, uint32_t pid)
{
	struct members *m = ctx;
	if (targets_is_self(pid))
		return 0;
	uint32_t tgid = targets_tgid_of(pid); /* a threaded cgroup lists threads */
	int err = tgid ? add_tgid(m->l, tgid) : -ESRCH;
	m->found |= err >= 0;
	return err == -ESRCH || err > 0 ? 0 : err;
}

/* Keeps @dir: who moves in later is a target too. */
static int keep_cgroup(struct loader *l, const char *dir)
{
	char **v = realloc(l->cgroups, (l->cgroup_cnt + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	l->cgroups = v;
	v[l->cgroup_cnt] = strdup(dir);
	return v[l->cgroup_cnt] ? (int)l->cgroup_cnt++ : -ENOMEM;
}

static int add_cgroup(struct loader *l, const char *option, const char *name, const char *dir,
		      struct cc_err *err)
{
	struct members m = { .l = l };
	int ret = cgroup_each(dir, add_member, &m);
	if (!ret && !m.found)
		ret = -ESRCH;
	if (!ret)
		ret = keep_cgroup(l, dir);
	if (ret == -ESRCH)
		loader_err(err, "%s %s: no process is in %s; start it first", option, name, dir);
	else if (ret < 0)
		loader_err(err, "%s %s: %s: %s", option, name, dir, strerror(-ret));
	return ret < 0 ? ret : 0;
}

static int add_cgroup_path(struct loader *l, const char *path, struct cc_err *err)
{
	char dir[PATH_MAX];
	int ret = cgroup_find(NULL, path, dir);
	if (!ret)
		return add_cgroup(l, "--cgroup", path, dir, err);
	loader_err(err, "--cgroup %s: %s; a process's own: `cat /proc/PID/cgroup`", path,
		   ret == -ENOENT ? "no such cgroup" : strerror(-ret));
	return ret == -ENOENT ? -ESRCH : ret;
}

static int add_unit(struct loader *l, const char *unit, struct cc_err *err)
{
	char dir[PATH_MAX];
	int ret = cgroup_find_unit(NULL, unit, dir);
	if (!ret)
		return add_cgroup(l, "--unit", unit, dir, err);
	loader_err(err, "--unit %s: %s; see `systemctl status %s`, or use --pid or --port", unit,
		   ret == -ENOENT ? "no cgroup of that name, so it does not run here"
				  : strerror(-ret),
		   unit);
	return ret == -ENOENT ? -ESRCH : ret;
}

int targets_add_later(struct loader *l)
{
	struct members m = { .l = l };
	size_t before = l->target_cnt;
	for (uint32_t i = 0; i < l->cgroup_cnt; i++) {
		int ret = cgroup_each(l->cgroups[i], add_member, &m);
		if (ret < 0 && ret != -ENOENT && ret != -E2BIG)
			return ret;
	}
	return (int)(l->target_cnt - before);
}

/* ---- all ------------------------------------------------------------------------------------ */

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

int targets_add_asked(struct loader *l, const struct loader_opts *o, struct cc_err *err)
{
	int ret = 0;
	for (uint32_t i = 0; !ret && i < o->pid_cnt; i++)
		ret = add_pid(l, o->pids[i], err);
	if (!ret && o->port_cnt)
		ret = add_listeners(l, o, err);
	for (uint32_t i = 0; !ret && i < o->comm_cnt; i++)
		ret = add_named(l, o->comms[i], err);
	for (uint32_t i = 0; !ret && i < o->cgroup_cnt; i++)
		ret = add_cgroup_path(l, o->cgroups[i], err);
	for (uint32_t i = 0; !ret && i < o->unit_cnt; i++)
		ret = add_unit(l, o->units[i], err);
	if (ret)
		return ret;
	if (!l->target_cnt) {
		loader_err(err, "nothing to trace: name a process with --pid, --port, --comm, "
				"--cgroup or --unit");
		return -EINVAL;
	}
	ret = targets_add_children(l);
	if (ret < 0)
		loader_err(err, "children of the targets: %s", strerror(-ret));
	return ret < 0 ? ret : 0;
}
