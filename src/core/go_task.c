/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines: who they are, what they did, and on which thread. */
#include "go_task.h"

#include <errno.h>
#include <string.h>

#include "decode.h" /* CC_TIME_MAX */
#include "task.h"

#define PROCS_MAX 256 /* Go processes in one trace */

void go_tasks_done(struct tasks *ts)
{
	struct go_tasks *g = &ts->go;

	for (uint32_t i = 0; i < g->states.cnt; i++) {
		vec_done(ts->mem, &g->states.p[i].ons);
		vec_done(ts->mem, &g->states.p[i].got);
	}
	vec_done(ts->mem, &g->states);
	vec_done(ts->mem, &g->free_states);
	vec_done(ts->mem, &g->waits);
	vec_done(ts->mem, &g->free_waits);
	vec_done(ts->mem, &g->sent);
	vec_done(ts->mem, &g->fresh);
	vec_done(ts->mem, &g->free_tasks);
	vec_done(ts->mem, &g->procs);
	map_done(ts->mem, &g->by_goid);
	map_done(ts->mem, &g->by_sent);
	map_done(ts->mem, &g->channels);
}

/* ---- pools -------------------------------------------------------------------------------- */

/* An index of @v that is free, or the next one; [0] is never given. 0: no memory. */
#define pool_get(ts, v, unused)                                         \
	({                                                              \
		uint32_t i_ = 0;                                        \
		if ((unused)->cnt)                                      \
			i_ = (unused)->p[--(unused)->cnt];              \
		else if (!vec_reserve((ts)->mem, v, (v)->cnt + 2u))     \
			i_ = (v)->cnt ? (v)->cnt : 1;                   \
		if (i_ >= (v)->cnt && i_) {                             \
			if (!(v)->cnt)                                  \
				memset(&(v)->p[0], 0, sizeof(*(v)->p)); \
			(v)->cnt = i_ + 1;                              \
		}                                                       \
		if (i_)                                                 \
			memset(&(v)->p[i_], 0, sizeof(*(v)->p));        \
		i_;                                                     \
	})

void go_wait_free(struct tasks *ts, uint32_t wait)
{
	if (wait && !vec_reserve(ts->mem, &ts->go.free_waits, ts->go.free_waits.cnt + 1))
		ts->go.free_waits.p[ts->go.free_waits.cnt++] = wait;
}

static struct go_state *state_get(struct tasks *ts, struct task *t)
{
	struct go_tasks *g = &ts->go;

	if (!t->go) {
		t->go = pool_get(ts, &g->states, &g->free_states);
		if (!t->go)
			return NULL;
	}
	return &g->states.p[t->go];
}

/* ---- who ---------------------------------------------------------------------------------- */

struct go_proc *go_proc(const struct tasks *ts, uint32_t tgid)
{
	for (uint32_t i = 0; i < ts->go.procs.cnt; i++)
		if (ts->go.procs.p[i].tgid == tgid)
			return &ts->go.procs.p[i];
	return NULL;
}

static int proc_seen(struct tasks *ts, uint32_t tgid, bool waits, bool items)
{
	struct go_proc *p = go_proc(ts, tgid);

	if (!p) {
		if (ts->go.procs.cnt >= PROCS_MAX)
			return 0;
		if (vec_reserve(ts->mem, &ts->go.procs, ts->go.procs.cnt + 1))
			return -ENOMEM;
		p = &ts->go.procs.p[ts->go.procs.cnt++];
		*p = (struct go_proc){ .tgid = tgid };
	}
	p->waits |= waits;
	p->items |= items;
	return 0;
}

struct task *go_find(const struct tasks *ts, uint32_t tgid, uint64_t goid)
{
	uint32_t i = map_get(&ts->go.by_goid, map_mix2(tgid, goid));
	struct task *t = i ? &ts->v.p[i - 1] : NULL;

	return t && t->tgid == tgid && task_go(ts, t)->goid == goid ? t : NULL;
}

/* A place for one more goroutine: that of a forgotten one, or a new one. */
static struct task *add(struct tasks *ts)
{
	struct go_tasks *g = &ts->go;
	uint32_t tid = GO_TID | (g->handles + 1);
	struct task *t;

	if (g->handles + 1 >= GO_TID)
		return NULL;
	if (!g->free_tasks.cnt) {
		t = tasks_add(ts, tid, 0);
	} else if (map_put(ts->mem, &ts->by_tid, tid, g->free_tasks.p[g->free_tasks.cnt - 1] + 1)) {
		t = NULL;
	} else {
		t = &ts->v.p[g->free_tasks.p[--g->free_tasks.cnt]];
		*t = (struct task){
			.tid = tid,
			.known_from = CC_NEVER,
			.born = CC_NEVER,
			.dead = CC_NEVER,
		};
	}
	g->handles += t != NULL;
	return t;
}

struct task *go_get(struct tasks *ts, uint32_t tgid, uint64_t goid, bool *ret_full)
{
	uint64_t key = map_mix2(tgid, goid);
	struct task *t = go_find(ts, tgid, goid);
	struct go_state *g;

	*ret_full = false;
	if (t)
		return t;
	if (map_get(&ts->go.by_goid, key) || !(t = add(ts))) {
		*ret_full = true;
		ts->go.refused++;
		return NULL;
	}
	t->tgid = tgid;
	t->timeline = true;
	t->goroutine = true;
	t->flags = CC_TF_TRACED;
	g = state_get(ts, t);
	if (!g || map_put(ts->mem, &ts->go.by_goid, key, (uint32_t)(t - ts->v.p) + 1))
		return NULL;
	g->goid = goid;
	return t;
}

/* 1 + index of the task of @goid; 0: goid 0, or no room for it. */
static int index_of(struct tasks *ts, uint32_t tgid, uint64_t goid, uint32_t *ret)
{
	bool full = false;
	struct task *t = goid ? go_get(ts, tgid, goid, &full) : NULL;

	*ret = t ? (uint32_t)(t - ts->v.p) + 1 : 0;
	return t || !goid || full ? 0 : -ENOMEM;
}

static void seen_at(struct task *t, cc_ns at)
{
	task_ran_at(t, at);
	t->timeline = true;
}

/* ---- threads ------------------------------------------------------------------------------ */

/* Element with the latest from <= @at; -1: none. */
static int64_t on_before(const struct go_state *g, cc_ns at)
{
	return (int64_t)vec_lower_bound(&g->ons, from, at + 1) - 1;
}

cc_ns go_on_end(const struct go_state *g, uint32_t i)
{
	cc_ns next = i + 1 < g->ons.cnt ? g->ons.p[i + 1].from : CC_NEVER;

	return CC_MIN(g->ons.p[i].to, next);
}

static int on_add(struct tasks *ts, uint32_t idx, struct go_on on)
{
	struct go_state *g = state_get(ts, &ts->v.p[idx]);
	uint32_t i;

	if (!g || vec_reserve(ts->mem, &g->ons, g->ons.cnt + 1))
		return -ENOMEM;
	i = (uint32_t)(on_before(g, on.from) + 1);
	memmove(&g->ons.p[i + 1], &g->ons.p[i], (g->ons.cnt - i) * sizeof(on));
	g->ons.p[i] = on;
	g->ons.cnt++;
	return 0;
}

/* What @idx had been with since before @at it was with until then, at the latest. */
static void on_close(struct tasks *ts, uint32_t idx, uint32_t other, cc_ns at)
{
	struct go_state *g = task_go(ts, &ts->v.p[idx]);
	int64_t i = g ? on_before(g, at) : -1;

	if (i >= 0 && g->ons.p[i].other == other && g->ons.p[i].to > at)
		g->ons.p[i].to = at;
}

/* Thread @ti has goroutine @gi (GO_NONE: none) from @at on. */
static int bind(struct tasks *ts, uint32_t ti, uint32_t gi, cc_ns at)
{
	struct go_state *g = task_go(ts, &ts->v.p[ti]);
	int64_t i = g ? on_before(g, at) : -1;
	uint32_t had = i >= 0 && g->ons.p[i].to > at ? g->ons.p[i].other : GO_NONE;

	if (had == gi && (gi == GO_NONE || g->ons.p[i].to == CC_NEVER))
		return 0; /* told again */
	if (had != GO_NONE) {
		on_close(ts, had, ti, at);
		on_close(ts, ti, had, at);
	}
	if (gi == GO_NONE)
		return 0;
	task_go(ts, &ts->v.p[gi])->last_thread = ts->v.p[ti].tid;
	return on_add(ts, ti, (struct go_on){ at, CC_NEVER, gi })
		       ?: on_add(ts, gi, (struct go_on){ at, CC_NEVER, ti });
}

/* It is told to have left, and to be there again, with no wait and nobody else between: it never
 * left. A thread that works on its system stack looks as if it had no goroutine. */
static bool never_left(struct tasks *ts, uint32_t ti, uint32_t gi, cc_ns at)
{
	struct go_state *th = task_go(ts, &ts->v.p[ti]), *g = task_go(ts, &ts->v.p[gi]);
	const struct task *t = &ts->v.p[gi];
	int64_t i = th ? on_before(th, at) : -1, k = on_before(g, at);
	cc_ns left;

	if (i < 0 || k < 0 || th->ons.p[i].other != gi || g->ons.p[k].other != ti ||
	    th->ons.p[i].from != g->ons.p[k].from)
		return false;
	left = th->ons.p[i].to;
	if (left > at || (t->eps.cnt && t->eps.p[t->eps.cnt - 1].in > left))
		return false;
	th->ons.p[i].to = g->ons.p[k].to = CC_NEVER;
	return true;
}

uint32_t go_on_thread(const struct tasks *ts, uint32_t tid, cc_ns at)
{
	const struct task *t = tasks_find(ts, tid, at);
	const struct go_state *g = t && !tid_is_go(tid) ? task_go(ts, t) : NULL;
	int64_t i = g ? on_before(g, at) : -1;

	return i >= 0 && at <= g->ons.p[i].to ? g->ons.p[i].other : GO_NONE;
}

static int thread_of(struct tasks *ts, uint32_t tid, uint32_t tgid, cc_ns at, uint32_t *ret)
{
	struct task *t = tasks_get(ts, tid, at);

	if (!t)
		return -ENOMEM;
	if (task_is_go(t))
		return -EINVAL;
	if (!t->tgid)
		task_set_tgid(ts, t, tgid);
	*ret = (uint32_t)(t - ts->v.p);
	return 0;
}

int go_thread_on(struct tasks *ts, const struct cc_rec_go_on *r)
{
	uint32_t gi, ti;
	int err;

	if (!r->tgid || !r->tid || tid_is_go(r->tid) || !r->h.ts)
		return -EINVAL;
	err = proc_seen(ts, r->tgid, false, false) ?: index_of(ts, r->tgid, r->goid, &gi) ?:
	      thread_of(ts, r->tid, r->tgid, r->h.ts, &ti);
	if (err)
		return err;
	if (gi)
		seen_at(&ts->v.p[gi - 1], r->h.ts);
	if (r->h.aux == 0) {
		if (gi) {
			on_close(ts, gi - 1, ti, r->h.ts);
			on_close(ts, ti, gi - 1, r->h.ts);
			return 0;
		}
		return bind(ts, ti, GO_NONE, r->h.ts);
	}
	if (!gi || (go_proc(ts, r->tgid) && go_proc(ts, r->tgid)->waits &&
		    never_left(ts, ti, gi - 1, r->h.ts)))
		return 0;
	return bind(ts, ti, gi - 1, r->h.ts);
}

/* ---- waits -------------------------------------------------------------------------------- */

static int wait_new(struct tasks *ts, const struct cc_rec_go_episode *r, uint32_t *ret)
{
	*ret = 0;
	if (!r->object && !r->ustack && !r->lost && !r->fd_kind)
		return 0;
	*ret = pool_get(ts, &ts->go.waits, &ts->go.free_waits);
	if (!*ret)
		return -ENOMEM;
	ts->go.waits.p[*ret] = (struct go_wait){
		.object = r->object,
		.ustack = r->ustack,
		.fd_id = r->fd_kind ? r->fd_id : 0,
		.lost = r->lost,
		.fd = r->fd_kind ? r->fd : -1,
		.fd_kind = (uint8_t)CC_MIN(r->fd_kind, CC_FD_OTHER),
	};
	return 0;
}

static struct episode episode_of(const struct cc_rec_go_episode *r)
{
	bool runnable = r->h.flags & (CC_GE_BORN | CC_GE_PREEMPT);
	unsigned int ctx = r->waker_goid ? CC_CTX_TASK : CC_CTX_UNKNOWN;

	return (struct episode){
		.out = r->out,
		.wake = r->wake,
		.in = r->h.ts,
		.seq = r->seq,
		.waker_tgid = r->waker_goid ? r->tgid : 0,
		.key = CC_MIN(r->wait_class, WAIT_CLASS_CNT),
		.syscall = -2,
		.flags = (uint8_t)(ctx << CC_EP_CTX_SHIFT |
				   (r->h.flags & CC_GE_BORN ? CC_EP_BORN : 0) |
				   (r->h.flags & CC_GE_CLAMPED ? CC_EP_CLAMPED : 0)),
		.kind = (uint8_t)(EP_GO | (runnable ? EP_RUNNABLE : EP_SLEEPING)),
	};
}

/* It still waits. Its end will come as an episode of its own. */
static void still_waits(struct tasks *ts, struct task *t, const struct cc_rec_go_episode *r,
			struct episode *ep)
{
	if (t->open.now)
		go_wait_free(ts, t->open.ep.side);
	ep->in = CC_NEVER;
	t->open = (struct open_state){
		.now = r->h.ts,
		.out = r->out,
		.wake = r->wake,
		.lost = r->lost,
		.seq = r->seq,
		.ep = *ep,
	};
	t->alive = CC_MAX(t->alive, r->h.ts);
	if (!t->cut && !t->eps.cnt)
		t->known_from = CC_MIN(t->known_from, r->out);
}

static bool is_known(const struct task *t, const struct cc_rec_go_episode *r)
{
	const struct episode *last = t->eps.cnt ? &t->eps.p[t->eps.cnt - 1] : NULL;

	if (r->out >= t->dead)
		return true; /* the number is never used again: a stray record */
	if (!last)
		return false;
	if (r->h.flags & CC_GE_OPEN)
		return r->h.ts <= last->in || (r->seq && r->seq == last->seq);
	return last->seq == r->seq && last->out == r->out;
}

/* Off thread r->tid since r->out, on r->in_tid from its end on. */
static int move(struct tasks *ts, const struct cc_rec_go_episode *r, uint32_t gi)
{
	uint32_t ti;
	int err;

	if (r->tid && !(r->h.flags & CC_GE_BORN)) {
		err = thread_of(ts, r->tid, r->tgid, r->out, &ti);
		if (err)
			return err;
		on_close(ts, gi, ti, r->out);
		on_close(ts, ti, gi, r->out);
	}
	if (!r->in_tid || r->h.flags & CC_GE_OPEN)
		return 0;
	err = thread_of(ts, r->in_tid, r->tgid, r->h.ts, &ti);
	return err ? err : bind(ts, ti, gi, r->h.ts);
}

int go_episode(struct tasks *ts, const struct cc_rec_go_episode *r)
{
	struct episode ep = episode_of(r);
	uint32_t gi, waker;
	struct task *t;
	int64_t at;
	int err;

	if (!r->tgid || !r->goid || !r->h.ts || !r->out || r->out > r->h.ts ||
	    r->wake > CC_TIME_MAX || tid_is_go(r->tid) || tid_is_go(r->in_tid))
		return -EINVAL;
	err = proc_seen(ts, r->tgid, true, false) ?: index_of(ts, r->tgid, r->goid, &gi) ?:
	      index_of(ts, r->tgid, r->waker_goid, &waker);
	if (err || !gi--)
		return err;
	t = &ts->v.p[gi];
	if (is_known(t, r))
		return 0;
	ep.waker_tid = waker ? ts->v.p[waker - 1].tid : 0;
	if (r->h.flags & CC_GE_BORN) {
		ep.wake = ep.out;
		t->parent_tid = t->parent_tid ? t->parent_tid : ep.waker_tid;
	}
	err = wait_new(ts, r, &ep.side);
	if (err)
		return err;
	if (r->h.flags & CC_GE_OPEN) {
		still_waits(ts, t, r, &ep);
		return move(ts, r, gi);
	}
	at = tasks_insert(ts, gi, &ep, r->lost);
	if (at < 0)
		go_wait_free(ts, ep.side);
	if (at < 0 && at != -EEXIST)
		return (int)at;
	if (r->ustack && at >= 0)
		ts->stacks_user++;
	return move(ts, r, gi);
}

/* ---- births and deaths -------------------------------------------------------------------- */

enum { GO_BORN = 1, GO_SEEN = 2, GO_DEAD = 3 };

#define FRESH_MAX (1u << 18) /* nobody asks: a stream without TICKs */

static int note_fresh(struct tasks *ts, const struct task *t)
{
	if (ts->go.fresh.cnt >= FRESH_MAX)
		return 0;
	if (vec_reserve(ts->mem, &ts->go.fresh, ts->go.fresh.cnt + 1))
		return -ENOMEM;
	ts->go.fresh.p[ts->go.fresh.cnt++] = t->tid;
	return 0;
}

int go_task(struct tasks *ts, const struct cc_rec_go_task *r)
{
	uint32_t gi, parent;
	struct go_state *g;
	struct task *t;
	int err;

	if (!r->tgid || !r->goid || !r->h.ts || tid_is_go(r->tid) || r->born > CC_TIME_MAX)
		return -EINVAL;
	err = proc_seen(ts, r->tgid, false, false) ?: index_of(ts, r->tgid, r->goid, &gi) ?:
	      index_of(ts, r->tgid, r->parent_goid, &parent);
	if (err || !gi--)
		return err;
	t = &ts->v.p[gi];
	g = task_go(ts, t);
	if (r->start_pc && !g->start_pc) {
		g->start_pc = r->start_pc;
		if (note_fresh(ts, t))
			return -ENOMEM;
	}
	g->go_pc = r->go_pc ? r->go_pc : g->go_pc;
	if (parent && parent - 1 != gi)
		t->parent_tid = ts->v.p[parent - 1].tid;
	if (r->h.aux == GO_DEAD) {
		t->dead = CC_MIN(t->dead, r->h.ts);
		t->alive = CC_MAX(t->alive, r->h.ts);
		for (uint32_t i = g->ons.cnt; i-- > 0 && g->ons.p[i].to > r->h.ts;) {
			on_close(ts, g->ons.p[i].other, gi, r->h.ts);
			g->ons.p[i].to = CC_MAX(g->ons.p[i].from, r->h.ts);
		}
		return 0;
	}
	if (r->h.aux == GO_BORN || r->born) {
		cc_ns born = r->born ? r->born : r->h.ts;

		t->born = CC_MIN(t->born, born);
		if (!t->cut)
			t->known_from = CC_MIN(t->known_from, born);
	}
	t->alive = CC_MAX(t->alive, r->h.ts);
	return 0;
}

/* ---- care --------------------------------------------------------------------------------- */

static void forget(struct tasks *ts, uint32_t i)
{
	struct task *t = &ts->v.p[i];
	struct go_state *g = task_go(ts, t);
	uint32_t state = t->go;

	if (vec_reserve(ts->mem, &ts->go.free_tasks, ts->go.free_tasks.cnt + 1) ||
	    vec_reserve(ts->mem, &ts->go.free_states, ts->go.free_states.cnt + 1))
		return; /* it stays until there is memory to note that it went */
	map_del(&ts->go.by_goid, map_mix2(t->tgid, g->goid));
	map_del(&ts->by_tid, t->tid);
	vec_done(ts->mem, &g->ons);
	vec_done(ts->mem, &g->got);
	*g = (struct go_state){ 0 };
	if (t->open.now)
		go_wait_free(ts, t->open.ep.side);
	vec_done(ts->mem, &t->eps);
	vec_done(ts->mem, &t->touches);
	vec_done(ts->mem, &t->holds);
	vec_done(ts->mem, &t->given);
	vec_done(ts->mem, &t->shorts);
	*t = (struct task){ .known_from = CC_NEVER, .born = CC_NEVER, .dead = 0 };
	ts->go.free_states.p[ts->go.free_states.cnt++] = state;
	ts->go.free_tasks.p[ts->go.free_tasks.cnt++] = i;
}

void go_evict(struct tasks *ts, cc_ns before)
{
	for (uint32_t i = 0; i < ts->v.cnt; i++) {
		struct task *t = &ts->v.p[i];
		struct go_state *g = task_go(ts, t);
		uint32_t n = 0;

		if (!g)
			continue;
		if (task_is_go(t) && t->dead < before && !t->eps.cnt && !t->dirty) {
			forget(ts, i);
			continue;
		}
		while (n < g->ons.cnt && go_on_end(g, n) < before)
			n++;
		if (n)
			vec_drop_front(&g->ons, n);
		vec_shrink(ts->mem, &g->ons);
		n = vec_lower_bound(&g->got, t, before);
		if (n > 1) /* the last one says whose work it does still */
			vec_drop_front(&g->got, n - 1);
		vec_shrink(ts->mem, &g->got);
	}
}
