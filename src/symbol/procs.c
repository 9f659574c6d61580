/* SPDX-License-Identifier: Apache-2.0 */
#include "procs.h"
#include "keyset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROC_MAX 512 /* beyond it the least recently used one is forgotten */
#define BUCKETS 256
#define READ_AGAIN CC_S(10)
#define BACKOFF_MIN CC_MS(100)
#define BACKOFF_MAX CC_S(5)
#define READ_SHARE 500       /* reading takes at most 1/500 of the time */
#define CHANGE_SHARE 50      /* 1/50 where the kernel says that they have changed; */
#define CHANGE_AHEAD CC_S(1) /* so much of it may be spent at once */
#define READ_TRIES 3
#define DYING_TICKS 3
#define SEEN_MAX 65536u

struct node {
	struct node *next;
	struct proc proc;
};

struct procs {
	struct node *buckets[BUCKETS];
	size_t cnt;
	uint32_t epochs, gens; /* given out */
	struct keyset seen;    /* numbers of processes, which may come again; */
	bool many_seen;        /* too many to keep */
	struct cc_rule_cache kernel;
	cc_ns spent_until; /* reading what has changed is paid for, at its share of time */
};

static cc_ns clock_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

static cc_ns now(void) { return clock_now(CLOCK_MONOTONIC); }
static cc_ns cpu_now(void) { return clock_now(CLOCK_THREAD_CPUTIME_ID); }

int procs_new(const struct cc_rule_cache *kernel, struct procs **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	if (kernel)
		(*ret)->kernel = *kernel;
	keyset_init(&(*ret)->seen, SEEN_MAX);
	return 0;
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
	maps_done(&n->proc.now.maps);
	for (size_t i = 0; i < PROC_PAST; i++)
		maps_done(&n->proc.past[i].maps);
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
	keyset_done(&p->seen);
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
	/* what was told of another process of this number stays true of that one */
	p->many_seen |= p->seen.cnt == SEEN_MAX;
	if (p->many_seen || keyset_add(&p->seen, tgid + 1ull) != 1)
		n->proc.first_gen = ++p->gens;
	n->proc.backoff = BACKOFF_MIN;
	maps_init(&n->proc.now.maps, tgid);
	at = place_of(p, tgid);
	*at = n;
	p->cnt++;
	return &n->proc;
}

static uint32_t kernel_change(const struct procs *p, uint32_t tgid)
{
	return p->kernel.change ? p->kernel.change(p->kernel.ctx, tgid) : 0;
}

static void set_layout(struct proc *proc, uint32_t change)
{
	maps_layout(&proc->now.maps, &proc->now.layout);
	if (proc->jit_gen)
		proc->now.layout.id = hash_add(proc->now.layout.id, proc->jit_gen) | 1;
	proc->now.layout.change = change;
}

static void push_past(struct proc *proc, const struct proc_maps *old)
{
	maps_done(&proc->past[PROC_PAST - 1].maps);
	memmove(&proc->past[1], &proc->past[0], (PROC_PAST - 1) * sizeof(proc->past[0]));
	proc->past[0] = *old;
}

/* Reads them while the kernel counts no change. Returns 0 or -errno. */
static int read_once(struct procs *p, struct proc *proc)
{
	struct maps_news news = { .gen = proc->now.maps.cnt ? p->gens + 1 : proc->first_gen };
	uint32_t before = kernel_change(p, proc->tgid);
	struct proc_maps old = proc->now;
	int err = maps_renew(&proc->now.maps, &news);

	if (err)
		return err;
	old.maps = news.old;
	if (news.fresh && old.maps.cnt)
		p->gens++;
	if (news.changed)
		proc->epoch = ++p->epochs;
	set_layout(proc, before);
	/* equal ones with changes in between: who knows what was there then */
	if (!old.layout.change || old.layout.id != proc->now.layout.id ||
	    before - old.layout.change > 1)
		proc->now.first_change = before;
	if (proc->now.first_change == old.first_change || !old.layout.change)
		maps_done(&old.maps);
	else
		push_past(proc, &old);
	if (before == kernel_change(p, proc->tgid))
		return 0;
	proc->now.layout.change = proc->now.first_change = 0; /* of no one time */
	return -EAGAIN;
}

static void read_maps(struct procs *p, struct proc *proc)
{
	uint64_t layout = proc->now.layout.id;
	cc_ns begin = cpu_now(), took, end;
	int err;

	for (int i = 0; i < READ_TRIES; i++) {
		err = read_once(p, proc);
		if (err != -EAGAIN)
			break;
	}
	took = cpu_now() - begin;
	end = now();
	proc->backoff = proc->now.layout.id != layout ? BACKOFF_MIN
						      : CC_MIN(proc->backoff * 2, BACKOFF_MAX);
	proc->next_read = end + CC_MAX(proc->backoff, took * READ_SHARE);
	p->spent_until = CC_MAX(p->spent_until, end) + took * CHANGE_SHARE;
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

/* ---- of which time ----------------------------------------------------------------------------
 */

struct maps *procs_layout(struct proc *proc, uint64_t layout)
{
	if (layout == proc->now.layout.id)
		return &proc->now.maps;
	for (size_t i = 0; i < PROC_PAST && layout; i++) {
		if (layout == proc->past[i].layout.id)
			return &proc->past[i].maps;
	}
	return NULL;
}

static bool may_read(const struct procs *p) { return p->spent_until <= now() + CHANGE_AHEAD; }

/* Nobody tells when they changed: as good as can be. */
static bool view_unknown(struct procs *p, struct proc *proc, const struct cc_rec_snap *s)
{
	bool differs =
		s->code_pages != proc->now.layout.code_pages || s->change != proc->now.first_change;

	if (differs && may_read(p)) {
		read_maps(p, proc);
		proc->now.first_change = s->change;
	}
	return s->change == proc->now.first_change;
}

struct maps *procs_maps(struct procs *p, struct proc *proc, const struct cc_rec_snap *s)
{
	struct proc_maps *m = &proc->now;
	struct maps *of_layout = s->layout ? procs_layout(proc, s->layout) : NULL;

	if (of_layout)
		return of_layout;
	if (!s->change)
		return &m->maps;
	if (!p->kernel.change)
		return view_unknown(p, proc, s) ? &m->maps : NULL;
	if ((s->change > m->layout.change ||
	     (s->change == m->layout.change && s->code_pages != m->layout.code_pages)) &&
	    may_read(p))
		read_maps(p, proc);
	if (s->change >= m->first_change && s->change <= m->layout.change)
		return &m->maps;
	for (size_t i = 0; i < PROC_PAST; i++) {
		struct proc_maps *old = &proc->past[i];

		if (s->change >= old->first_change && s->change <= old->layout.change)
			return &old->maps;
	}
	return NULL;
}

uint32_t procs_since(const struct proc *proc, const struct mapping *p, uint64_t addr)
{
	uint32_t jit = proc->jit && !p->ino ? perf_map_since(proc->jit, addr) : 0;

	return CC_MAX(p->since, jit);
}

uint32_t procs_stack_gen(const struct proc *proc, struct maps *m, const __u64 *ip, size_t cnt)
{
	uint32_t gen = proc->first_gen;

	for (size_t i = 0; i < cnt; i++) {
		uint64_t at = ip[i] - (i > 0);
		const struct mapping *p = maps_find(m, at);

		if (p)
			gen = CC_MAX(gen, procs_since(proc, p, at));
	}
	return gen;
}

struct mapping *procs_mapping(struct procs *p, uint32_t tgid, uint64_t addr, uint32_t since,
			      struct maps **ret_maps)
{
	struct node *n = *place_of(p, tgid);

	for (size_t i = 0; n && i <= PROC_PAST; i++) {
		struct proc_maps *m = i ? &n->proc.past[i - 1] : &n->proc.now;
		struct mapping *found = m->maps.cnt ? maps_find(&m->maps, addr) : NULL;

		if (!found || procs_since(&n->proc, found, addr) != since)
			continue;
		*ret_maps = &m->maps;
		return found;
	}
	return NULL;
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

/* A JIT has put other code where some was: what was told of that place is no longer true of it. */
static void renew_jit(struct procs *p, struct proc *proc)
{
	if (!proc->jit || proc->dying || !perf_map_renew(proc->jit, now(), p->gens + 1))
		return;
	proc->jit_gen = ++p->gens;
	set_layout(proc, proc->now.layout.change);
}

void procs_tick(struct procs *p)
{
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct node **at = &p->buckets[i]; *at;) {
			struct proc *proc = &(*at)->proc;

			if (proc->dying && !--proc->dying) {
				drop(p, at);
				continue;
			}
			renew_jit(p, proc);
			at = &(*at)->next;
		}
	}
}

size_t procs_cnt(const struct procs *p) { return p->cnt; }

static size_t maps_mem(const struct proc *proc)
{
	size_t cnt = proc->now.maps.cnt;

	for (size_t i = 0; i < PROC_PAST; i++)
		cnt += proc->past[i].maps.cnt;
	return cnt * sizeof(struct mapping);
}

size_t procs_mem(const struct procs *p)
{
	size_t sum = sizeof(*p) + p->seen.cap * sizeof(*p->seen.slots);

	for (size_t i = 0; i < BUCKETS; i++) {
		for (const struct node *n = p->buckets[i]; n; n = n->next)
			sum += sizeof(*n) + maps_mem(&n->proc) + perf_map_mem(n->proc.jit);
	}
	return sum;
}
