// SPDX-License-Identifier: Apache-2.0
#include "pidns.h"

#include "iter.h"
#include "raw_stack.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define PIDS_MAX 65536
#define CACHE 4096 /* a power of two */

struct pidns_side {
	struct cc_bpf_pid *by_local; /* sorted */
	size_t cnt;
	struct cc_bpf_pid cache[CACHE]; /* by global; local 0: empty */
	union {
		struct cc_rec h;
		unsigned char room[UINT16_MAX];
	} copy;
};

/* ---- which records have numbers of tasks, and where ---- */

#define FIELDS_MAX 5
#define AT(type, field) (uint16_t)(offsetof(struct cc_rec_##type, field))

static const uint16_t fields[UINT8_MAX + 1][FIELDS_MAX] = {
	/* 0 ends a list: that is a header */
	[CC_REC_EPISODE] = { AT(episode, tid), AT(episode, waker_tid), AT(episode, waker_tgid) },
	[CC_REC_EXTRA] = { AT(extra, tid), AT(extra, owner), AT(extra, owner_tgid),
			   AT(extra, occupant_tid), AT(extra, occupant_tgid) },
	[CC_REC_SNAP] = { AT(snap, tid), AT(snap, owner_tid), AT(snap, owner_tgid) },
	[CC_REC_SAMPLE] = { AT(sample, tid), AT(sample, tgid) },
	[CC_REC_SOCKOP] = { AT(sockop, tid), AT(sockop, tgid) },
	[CC_REC_REQ] = { AT(req, recv_tid), AT(req, send_tid), AT(req, tgid) },
	[CC_REC_OPEN_REQ] = { AT(req, recv_tid), AT(req, send_tid), AT(req, tgid) },
	[CC_REC_LISTEN] = { AT(listen, tgid) },
	[CC_REC_TASK] = { AT(task, tid), AT(task, tgid), AT(task, parent), AT(task, old_tid) },
	[CC_REC_OPEN_TASK] = { AT(open_task, tid), AT(open_task, tgid), AT(open_task, parent),
			       AT(open_task, owner), AT(open_task, owner_tgid) },
	[CC_REC_WAKE] = { AT(wake, tid), AT(wake, waker_tid), AT(wake, waker_tgid) },
	[CC_REC_SHORT] = { AT(short, tid) },
	[CC_REC_TARGET] = { AT(target, tgid), AT(target, parent) },
	[CC_REC_GO_EPISODE] = { AT(go_episode, tgid), AT(go_episode, tid),
				AT(go_episode, waker_tid), AT(go_episode, in_tid) },
	[CC_REC_GO_TASK] = { AT(go_task, tgid), AT(go_task, tid) },
	[CC_REC_GO_ON] = { AT(go_on, tgid), AT(go_on, tid) },
	[CC_REC_GO_ITEM] = { AT(go_item, tgid), AT(go_item, tid) },
};

/* ---- numbers ---- */

static uint32_t local_of(struct loader *l, uint32_t global)
{
	struct cc_bpf_pid *c = &l->pidns->cache[global & (CACHE - 1)];
	uint32_t nr = 0;
	if (!global)
		return 0;
	if (c->local && c->global == global)
		return c->local;
	if (bpf_map_lookup_elem(bpf_map__fd(l->skel->maps.pids_local), &global, &nr) || !nr)
		nr = PIDNS_OUTSIDE + global;
	*c = (struct cc_bpf_pid){ .global = global, .local = nr };
	return nr;
}

static int by_local(const void *a, const void *b)
{
	const struct cc_bpf_pid *x = a, *y = b;
	return (x->local > y->local) - (x->local < y->local);
}

static uint32_t find_local(const struct pidns_side *p, uint32_t local)
{
	const struct cc_bpf_pid key = { .local = local };
	const struct cc_bpf_pid *found =
		p->cnt ? bsearch(&key, p->by_local, p->cnt, sizeof(key), by_local) : NULL;
	return found ? found->global : 0;
}

uint32_t pidns_global(struct loader *l, uint32_t local)
{
	if (!l->pidns || !local)
		return local;
	uint32_t global = find_local(l->pidns, local);
	if (!global && !pidns_learn(l))
		global = find_local(l->pidns, local);
	return global;
}

int pidns_learn(struct loader *l)
{
	struct rec_buf b = { 0 };
	if (!l->pidns)
		return 0;
	int err = iter_read(l->skel->progs.cc_pid_walk, -1, &b);
	if (err) {
		rec_buf_done(&b);
		return err;
	}
	free(l->pidns->by_local);
	l->pidns->by_local = (struct cc_bpf_pid *)(void *)b.data;
	l->pidns->cnt = b.len / sizeof(struct cc_bpf_pid);
	if (l->pidns->cnt)
		qsort(l->pidns->by_local, l->pidns->cnt, sizeof(struct cc_bpf_pid), by_local);
	return 0;
}

/* ---- records ---- */

const struct cc_rec *pidns_local(struct loader *l, const struct cc_rec *rec, size_t len)
{
	if (!l->pidns || !fields[rec->kind][0] || len > sizeof(l->pidns->copy))
		return rec;
	unsigned char *copy = l->pidns->copy.room;
	memcpy(copy, rec, len);
	if (rec->kind == CC_REC_TASK && rec->aux == CC_TASK_FORK) { /* maybe another's before */
		uint32_t tid;
		memcpy(&tid, copy + AT(task, tid), sizeof(tid));
		l->pidns->cache[tid & (CACHE - 1)].local = 0;
	}
	for (size_t i = 0; i < FIELDS_MAX && fields[rec->kind][i]; i++) {
		uint16_t at = fields[rec->kind][i];
		uint32_t nr;
		if (at + sizeof(nr) > len)
			break;
		memcpy(&nr, copy + at, sizeof(nr));
		nr = local_of(l, nr);
		memcpy(copy + at, &nr, sizeof(nr));
	}
	return &l->pidns->copy.h;
}

void pidns_forget(struct loader *l)
{
	if (l->pidns)
		memset(l->pidns->cache, 0, sizeof(l->pidns->cache));
}

/* ---- life ---- */

static bool in_initial(void)
{
	char ns[64] = "";
	ssize_t n = readlink("/proc/self/ns/pid", ns, sizeof(ns) - 1);
	/* PROC_PID_INIT_INO, include/linux/proc_ns.h: fixed since Linux 3.8 */
	return n < 0 || !strcmp(ns, "pid:[4026531836]");
}

/* Is what /proc calls us what we are called? */
static bool proc_is_ours(void)
{
	char self[32] = "";
	ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);
	return n > 0 && strtoul(self, NULL, 10) == (unsigned long)getpid();
}

int pidns_prepare(struct loader *l, struct cc_err *err)
{
	bool nested = !in_initial();
	if (!nested) {
		bpf_program__set_autoload(l->skel->progs.cc_pid_walk, false);
		return 0;
	}
	if (!proc_is_ours()) {
		loader_err(err, "/proc is that of another pid namespace; mount one's own: "
				"mount -t proc proc /proc");
		return -EOPNOTSUPP;
	}
	((struct cc_bpf_config *)&l->skel->rodata->cfg)->pid_nested = 1;
	if (bpf_map__set_max_entries(l->skel->maps.pids_local, PIDS_MAX))
		return -EINVAL;
	if (!l->pidns)
		l->pidns = calloc(1, sizeof(*l->pidns));
	return l->pidns ? 0 : -ENOMEM;
}

void pidns_done(struct loader *l)
{
	if (l->pidns)
		free(l->pidns->by_local);
	free(l->pidns);
	l->pidns = NULL;
}
