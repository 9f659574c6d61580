/* SPDX-License-Identifier: Apache-2.0 */
#include "targets.h"

#include "pidns.h"
#include "proc_stat.h"

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

/* ---- by tgid: slots hold an index + 1, twice as many as targets at least ----------------------
 */

static size_t first_slot(const struct loader *l, uint32_t tgid)
{
	return tgid * 2654435761u & (l->target_slot_cnt - 1);
}

static void slot_put(struct loader *l, size_t idx)
{
	size_t at = first_slot(l, l->targets[idx].tgid);
	while (l->target_slots[at])
		at = (at + 1) & (l->target_slot_cnt - 1);
	l->target_slots[at] = (uint32_t)idx + 1;
}

static void slots_refill(struct loader *l)
{
	memset(l->target_slots, 0, l->target_slot_cnt * sizeof(*l->target_slots));
	for (size_t i = 0; i < l->target_cnt; i++)
		slot_put(l, i);
}

struct loader_target *targets_find(struct loader *l, uint32_t tgid)
{
	if (!l->target_slot_cnt)
		return NULL;
	for (size_t at = first_slot(l, tgid); l->target_slots[at];
	     at = (at + 1) & (l->target_slot_cnt - 1)) {
		struct loader_target *t = &l->targets[l->target_slots[at] - 1];
		if (t->tgid == tgid && !t->gone)
			return t;
	}
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
	uint32_t *slots = realloc(l->target_slots, 2 * cap * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	l->target_slots = slots;
	l->target_slot_cnt = 2 * cap;
	l->target_cap = cap;
	slots_refill(l);
	return 0;
}

int loader_target_add(struct loader *l, const struct loader_target *want)
{
	struct cc_bpf_target v = { .flags = want->flags };
	uint32_t tgid = want->tgid, global;
	if (targets_find(l, tgid))
		return 1;
	if (l->target_cnt >= TARGETS_MAX)
		return -E2BIG;
	int err = targets_reserve(l);
	if (err)
		return err;
	/* the pidfd first: what it holds is the process whose start time is read after it */
	int pidfd = (int)syscall(SYS_pidfd_open, tgid, 0);
	uint64_t start = proc_stat(tgid, PROC_STAT_START);
	if (!start) {
		if (pidfd >= 0)
			close(pidfd);
		return -ESRCH;
	}
	global = pidns_global(l, tgid);
	v.parent = pidns_global(l, want->parent);
	if (global) /* before it is there, see target_of() */
		__atomic_fetch_or(&l->skel->bss->target_bits, 1ull << (global & 63),
				  __ATOMIC_RELAXED);
	if (!global ||
	    bpf_map_update_elem(bpf_map__fd(l->skel->maps.targets), &global, &v, BPF_ANY)) {
		err = global ? -errno : -ESRCH;
		if (pidfd >= 0)
			close(pidfd);
		return err;
	}
	struct loader_target *t = &l->targets[l->target_cnt++];
	*t = *want;
	t->global = global;
	t->pidfd = pidfd;
	t->start = start;
	slot_put(l, l->target_cnt - 1);
	return 0;
}

int targets_add_child(struct loader *l, uint32_t tgid, uint32_t parent)
{
	const struct loader_target *p = targets_find(l, parent);
	const struct loader_target t = {
		.tgid = tgid,
		.parent = parent,
		.flags = p ? p->flags : 0,
		.hop = p ? p->hop : 0,
	};
	return loader_target_add(l, &t);
}

static bool target_gone(const struct loader_target *t)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };
	if (t->pidfd >= 0)
		return poll(&p, 1, 0) > 0 && (p.revents & POLLIN);
	return proc_stat(t->tgid, PROC_STAT_START) != t->start;
}

/* Takes out who is gone and was told: a server that forks for each request has ever new ones. */
static void sweep(struct loader *l)
{
	size_t kept = 0;
	for (size_t i = 0; i < l->target_cnt; i++) {
		struct loader_target *t = &l->targets[i];
		if (t->gone && t->told) {
			if (t->pidfd >= 0)
				close(t->pidfd);
			continue;
		}
		l->targets[kept++] = *t;
	}
	l->target_cnt = kept;
	slots_refill(l);
}

size_t targets_alive(struct loader *l)
{
	size_t cnt = 0, gone = 0;
	for (size_t i = 0; i < l->target_cnt; i++) {
		struct loader_target *t = &l->targets[i];
		if (!t->gone && target_gone(t)) {
			t->gone = true;
			/* the exit program does this too, but not for what it never saw alive */
			bpf_map_delete_elem(bpf_map__fd(l->skel->maps.targets), &t->global);
		}
		gone += t->gone && t->told;
		cnt += !t->gone && !(t->flags & CC_TF_FOLLOWED); /* those go with the others */
	}
	if (gone)
		sweep(l);
	return cnt;
}

/* ---- children ------------------------------------------------------------------------------- */

int targets_each_number(const char *path, int (*fn)(void *ctx, uint32_t n), void *ctx)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int err = 0;
	if (!d)
		return -ESRCH;
	while (!err && (e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			err = fn(ctx, (uint32_t)strtoul(e->d_name, NULL, 10));
	closedir(d);
	return err;
}

struct parent {
	struct loader *l;
	uint32_t tgid;
};

/* Adds the children of thread @tid. */
static int add_children_of(void *ctx, uint32_t tid)
{
	const struct parent *p = ctx;
	char path[64];
	unsigned int child;
	int err = 0;
	snprintf(path, sizeof(path), "/proc/%u/task/%u/children", p->tgid, tid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0; /* the thread is gone, or CONFIG_PROC_CHILDREN is off */
	while (err >= 0 && fscanf(f, "%u", &child) == 1) {
		err = targets_add_child(p->l, child, p->tgid);
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
		struct parent p = { l, l->targets[i].tgid };
		char path[64];
		snprintf(path, sizeof(path), "/proc/%u/task", p.tgid);
		int err = l->targets[i].gone ? 0 : targets_each_number(path, add_children_of, &p);
		if (err < 0 && err != -ESRCH)
			return err;
	}
	return (int)(l->target_cnt - before);
}

void targets_done(struct loader *l)
{
	for (size_t i = 0; i < l->target_cnt; i++)
		if (l->targets[i].pidfd >= 0)
			close(l->targets[i].pidfd);
	free(l->targets);
	free(l->target_slots);
	for (uint32_t i = 0; i < l->cgroup_cnt; i++)
		free(l->cgroups[i]);
	free(l->cgroups);
	l->targets = NULL;
	l->target_slots = NULL;
	l->target_cnt = l->target_cap = l->target_slot_cnt = 0;
	l->cgroups = NULL;
	l->cgroup_cnt = 0;
}
