/* SPDX-License-Identifier: Apache-2.0 */
#include "procs.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define PROC_MAX 512 /* beyond it the least recently used one is forgotten */
#define BUCKETS 256
#define READ_AGAIN CC_S(10)
#define BACKOFF_MIN CC_MS(100)
#define BACKOFF_MAX CC_S(5)
#define READ_SHARE 500 /* reading takes at most 1/500 of the time */
#define DYING_TICKS 3

struct node {
	struct node *next;
	struct proc proc;
};

struct procs {
	struct node *buckets[BUCKETS];
	size_t cnt;
	uint32_t epochs; /* given out */
};

static cc_ns now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

int procs_new(struct procs **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

/* Where the node of @tgid hangs, or would hang. */
static struct node **place_of(struct procs *p, uint32_t tgid)
{
	struct node **at = &p->buckets[tgid % BUCKETS];

	while (*at && (*at)->proc.tgid != tgid)
		at = &(*at)->next;
	return at;
}

static void drop(struct procs *p, struct node **at)
{
	struct node *n = *at;

	*at = n->next;
	maps_done(&n->proc.maps);
	perf_map_free(n->proc.jit);
	free(n);
	p->cnt--;
}

void procs_free(struct procs *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < BUCKETS; i++) {
		while (p->buckets[i])
			drop(p, &p->buckets[i]);
	}
	free(p);
}

static void drop_oldest(struct procs *p)
{
	struct node **oldest = NULL;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct node **at = &p->buckets[i]; *at; at = &(*at)->next) {
			if (!oldest || (*at)->proc.used_at < (*oldest)->proc.used_at)
				oldest = at;
		}
	}
	if (oldest)
		drop(p, oldest);
}

static struct proc *add(struct procs *p, uint32_t tgid)
{
	struct node *n = calloc(1, sizeof(*n)), **at;

	if (!n)
		return NULL;
	if (p->cnt >= PROC_MAX)
		drop_oldest(p);
	n->proc.tgid = tgid;
	n->proc.epoch = ++p->epochs;
	n->proc.backoff = BACKOFF_MIN;
	maps_init(&n->proc.maps, tgid);
	at = place_of(p, tgid);
	*at = n;
	p->cnt++;
	return &n->proc;
}

static void read_maps(struct procs *p, struct proc *proc)
{
	uint64_t layout = proc->layout.id;
	cc_ns begin = now(), end;
	bool changed = false;
	int err = maps_refresh(&proc->maps, &changed);

	end = now();
	if (changed)
		proc->epoch = ++p->epochs;
	if (!err)
		maps_layout(&proc->maps, &proc->layout);
	proc->backoff =
		proc->layout.id != layout ? BACKOFF_MIN : CC_MIN(proc->backoff * 2, BACKOFF_MAX);
	proc->next_read = end + CC_MAX(proc->backoff, (end - begin) * READ_SHARE);
	if (!err)
		proc->read_at = end;
}

struct proc *procs_get(struct procs *p, uint32_t tgid)
{
	struct node *n = *place_of(p, tgid);
	struct proc *proc = n ? &n->proc : add(p, tgid);

	if (!proc)
		return NULL;
	proc->used_at = now();
	if (proc->used_at >= proc->next_read &&
	    (!proc->read_at || proc->used_at - proc->read_at > READ_AGAIN) && !proc->dying) {
		proc->backoff = BACKOFF_MIN / 2;
		read_maps(p, proc);
	}
	return proc;
}

bool procs_reread(struct procs *p, struct proc *proc)
{
	if (now() < proc->next_read)
		return false;
	read_maps(p, proc);
	return true;
}

int procs_jit(struct proc *proc, uint64_t addr, const char **ret_name, uint64_t *ret_off)
{
	int err = proc->jit ? 0 : perf_map_new(proc->tgid, &proc->jit);

	return err ? err : perf_map_find(proc->jit, addr, now(), ret_name, ret_off);
}

struct proc *procs_find(struct procs *p, uint32_t tgid, uint32_t epoch)
{
	struct node *n = *place_of(p, tgid);

	return n && n->proc.epoch == epoch ? &n->proc : NULL;
}

void procs_reborn(struct procs *p, uint32_t tgid, cc_ns when)
{
	struct node **at = place_of(p, tgid);
	struct proc *proc;

	if (!*at)
		return; /* nothing old is remembered */
	drop(p, at);
	proc = add(p, tgid);
	if (proc)
		proc->born = when;
}

void procs_exited(struct procs *p, uint32_t tgid)
{
	struct node *n = *place_of(p, tgid);

	if (n)
		n->proc.dying = DYING_TICKS;
}

void procs_tick(struct procs *p)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct node **at = &p->buckets[i]; *at;) {
			struct proc *proc = &(*at)->proc;

			if (proc->dying && !--proc->dying)
				drop(p, at);
			else
				at = &(*at)->next;
		}
	}
}

size_t procs_cnt(const struct procs *p) { return p->cnt; }

size_t procs_mem(const struct procs *p)
{
	size_t sum = sizeof(*p);

	for (size_t i = 0; i < BUCKETS; i++) {
		for (const struct node *n = p->buckets[i]; n; n = n->next)
			sum += sizeof(*n) + n->proc.maps.cnt * sizeof(struct mapping) +
			       perf_map_mem(n->proc.jit);
	}
	return sum;
}
