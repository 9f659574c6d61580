/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines: who they are, when they came and went. */
#include "go_task_int.h"

#include <errno.h>
#include <string.h>

#include "decode.h" /* CC_TIME_MAX */

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
	map_done(ts->mem, &g->had);
}

/* ---- who ---------------------------------------------------------------------------------- */

struct go_state *go_state_get(struct tasks *ts, struct task *t)
{
	struct go_tasks *g = &ts->go;

	if (!t->go) {
		t->go = pool_get(ts, &g->states, &g->free_states);
		if (!t->go)
			return NULL;
	}
	return &g->states.p[t->go];
}

struct go_proc *go_proc(const struct tasks *ts, uint32_t tgid)
{
	for (uint32_t i = 0; i < ts->go.procs.cnt; i++)
		if (ts->go.procs.p[i].tgid == tgid)
			return &ts->go.procs.p[i];
	return NULL;
}

int go_proc_seen(struct tasks *ts, uint32_t tgid, bool waits, bool items)
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
	} else if (tasks_point_tid(ts, tid, g->free_tasks.p[g->free_tasks.cnt - 1])) {
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
	g = go_state_get(ts, t);
	if (!g || map_put(ts->mem, &ts->go.by_goid, key, (uint32_t)(t - ts->v.p) + 1))
		return NULL;
	g->goid = goid;
	return t;
}

/* 1 + index of the task of @goid; 0: goid 0, or no room for it. */
int go_index(struct tasks *ts, uint32_t tgid, uint64_t goid, uint32_t *ret)
{
	bool full = false;
	struct task *t = goid ? go_get(ts, tgid, goid, &full) : NULL;

	*ret = t ? (uint32_t)(t - ts->v.p) + 1 : 0;
	return t || !goid || full ? 0 : -ENOMEM;
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
	err = go_proc_seen(ts, r->tgid, false, false) ?: go_index(ts, r->tgid, r->goid, &gi) ?:
	      go_index(ts, r->tgid, r->parent_goid, &parent);
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
		cc_ns end =
			r->h.flags & CC_GT_ABOUT && r->born ? CC_MIN(r->born, r->h.ts) : r->h.ts;

		t->dead = CC_MIN(t->dead, end);
		t->alive = CC_MAX(t->alive, end);
		for (uint32_t i = g->ons.cnt; i-- > 0 && g->ons.p[i].to > end;) {
			go_on_close(ts, g->ons.p[i].other, gi, end);
			g->ons.p[i].to = CC_MAX(g->ons.p[i].from, end);
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
	tasks_forget_tid(ts, t->tid);
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
