/* SPDX-License-Identifier: Apache-2.0 */
/* Who there was: identity, names, births and deaths. Episodes are in task_episode.c. */
#include "task.h"

#include <errno.h>
#include <string.h>

#define TASKS_MAX (1u << 20) /* pids of a machine are fewer; a hostile file's are not */

/* The record of a fork and that of the first switch-in come through two rings, with clocks read
 * one after the other. */
#define BIRTH_SLACK CC_MS(1)

void tasks_init(struct tasks *ts, struct mem *mem) { *ts = (struct tasks){ .mem = mem }; }

void task_done(struct mem *mem, struct task *t)
{
	vec_done(mem, &t->eps);
	vec_done(mem, &t->touches);
	vec_done(mem, &t->holds);
	vec_done(mem, &t->given);
	vec_done(mem, &t->shorts);
	vec_done(mem, &t->cells);
	vec_done(mem, &t->samples);
}

void tasks_done(struct tasks *ts)
{
	for (uint32_t i = 0; i < ts->v.cnt; i++)
		task_done(ts->mem, &ts->v.p[i]);
	vec_done(ts->mem, &ts->v);
	vec_done(ts->mem, &ts->free);
	vec_done(ts->mem, &ts->sides);
	vec_done(ts->mem, &ts->free_sides);
	vec_done(ts->mem, &ts->dirty);
	vec_done(ts->mem, &ts->late);
	vec_done(ts->mem, &ts->gaps);
	map_done(ts->mem, &ts->by_tid);
	go_tasks_done(ts);
}

static struct near_task *near_slot(const struct tasks *ts, uint32_t tid)
{
	/* no part of what is known: see task.h */
	return (struct near_task *)&ts->near[tid % TASKS_NEAR];
}

int tasks_point_tid(struct tasks *ts, uint32_t tid, uint32_t i)
{
	near_slot(ts, tid)->task = 0;
	return map_put(ts->mem, &ts->by_tid, tid, i + 1);
}

void tasks_forget_tid(struct tasks *ts, uint32_t tid)
{
	near_slot(ts, tid)->task = 0;
	map_del(&ts->by_tid, tid);
}

struct task *tasks_add(struct tasks *ts, uint32_t tid, uint32_t older)
{
	bool again = ts->free.cnt > 0;
	uint32_t i = again ? ts->free.p[ts->free.cnt - 1] : ts->v.cnt;

	if (i >= TASKS_MAX || vec_reserve(ts->mem, &ts->v, i + 1) || tasks_point_tid(ts, tid, i))
		return NULL;
	ts->free.cnt -= again;
	ts->v.cnt = CC_MAX(ts->v.cnt, i + 1);
	ts->v.p[i] = (struct task){
		.tid = tid,
		.known_from = CC_NEVER,
		.born = CC_NEVER,
		.dead = CC_NEVER,
		.older = older,
	};
	return &ts->v.p[i];
}

#define LINE 64 /* bytes */

void tasks_prefetch_slot(const struct tasks *ts, uint32_t tid) { map_prefetch(&ts->by_tid, tid); }

uint32_t tasks_prefetch(const struct tasks *ts, uint32_t tid)
{
	uint32_t i = map_get(&ts->by_tid, tid);
	const char *t = i ? (const char *)&ts->v.p[i - 1] : NULL;

	if (!t)
		return 0;
	for (size_t off = 0; off <= offsetof(struct task, open); off += LINE)
		__builtin_prefetch(t + off, 1);
	__builtin_prefetch(t + offsetof(struct task, open) + sizeof(cc_ns), 1);
	return i;
}

void tasks_prefetch_end(const struct tasks *ts, uint32_t task)
{
	const struct task *t = task ? &ts->v.p[task - 1] : NULL;
	const struct episode *next;

	if (!t || !t->eps.cnt)
		return;
	next = &t->eps.p[t->eps.cnt];
	__builtin_prefetch(next - 1);
	__builtin_prefetch(next, 1);
	__builtin_prefetch((const char *)(next + 1) - 1, 1);
}

struct task *tasks_find(const struct tasks *ts, uint32_t tid, cc_ns at)
{
	struct near_task *near = near_slot(ts, tid);
	uint32_t i;

	if (near->tid == tid && near->task && ts->v.p[near->task - 1].tid == tid)
		return &ts->v.p[near->task - 1];
	i = map_get(&ts->by_tid, tid);
	if (i && ts->v.p[i - 1].tid == tid && !ts->v.p[i - 1].older)
		*near = (struct near_task){ tid, i };
	while (i) {
		struct task *t = &ts->v.p[i - 1];
		/* after an exec the tid it had before still leads here, for all times */
		cc_ns since = t->born == CC_NEVER ? 0 : t->born;

		since = t->tid == tid && t->exec_at ? t->exec_at : since;
		if (!t->older || at >= since)
			return t;
		i = t->older;
	}
	return NULL;
}

struct task *tasks_get(struct tasks *ts, uint32_t tid, cc_ns at)
{
	struct task *t = tasks_find(ts, tid, at);

	return t ? t : tasks_add(ts, tid, 0);
}

void task_ran_at(struct task *t, cc_ns at)
{
	/* before its first episode it ran from any moment on at which it is seen to run */
	if (at < t->known_from && (!t->eps.cnt || at <= t->eps.p[0].out) && !t->cut)
		t->known_from = at;
	t->alive = CC_MAX(t->alive, at);
}

void task_set_comm(struct task *t, const char comm[CC_COMM_LEN])
{
	if (comm[0])
		memcpy(t->comm, comm, CC_COMM_LEN);
}

void task_set_tgid(struct tasks *ts, struct task *t, uint32_t tgid)
{
	if (!tgid || t->tgid == tgid)
		return;
	t->tgid = tgid;
	/* wakes on its futexes were filed under another process: file them again */
	for (uint32_t i = 0; i < t->indexed; i++)
		t->eps.p[i].kind &= (uint8_t)~EP_INDEXED;
	t->indexed = 0;
	if (t->eps.cnt && !t->dirty && !vec_reserve(ts->mem, &ts->dirty, ts->dirty.cnt + 1)) {
		t->dirty = true;
		ts->dirty.p[ts->dirty.cnt++] = (uint32_t)(t - ts->v.p);
	}
}

struct task *tasks_reborn(struct tasks *ts, struct task *t, cc_ns at)
{
	uint32_t i = (uint32_t)(t - ts->v.p);
	struct task *young;

	t->dead = CC_MIN(t->dead, at);
	young = tasks_add(ts, t->tid, i + 1);
	if (young)
		young->born = at;
	return young;
}

/* Nothing that is known of @t is older than @at. */
static bool begins_at(const struct task *t, cc_ns at)
{
	cc_ns first = CC_MIN(t->known_from, t->born);

	if (t->eps.cnt)
		first = CC_MIN(first, t->eps.p[0].out);
	if (t->touches.cnt)
		first = CC_MIN(first, t->touches.p[0].t);
	return t->dead == CC_NEVER && first + BIRTH_SLACK >= at;
}

/* The task that is born at @at as @tid: a new one, unless the one known is just that. */
static struct task *task_born(struct tasks *ts, uint32_t tid, cc_ns start, cc_ns at)
{
	struct task *t = tasks_find(ts, tid, CC_NEVER);

	if (t && ((start && t->start == start) || (!t->start && begins_at(t, at))))
		return t;
	if (!t)
		return tasks_add(ts, tid, 0);
	if (t->born != CC_NEVER && t->born > at)
		return tasks_find(ts, tid, at); /* told late, of one before it */
	return tasks_reborn(ts, t, at);
}

static int fork_record(struct tasks *ts, const struct cc_rec_task *r)
{
	struct task *t = task_born(ts, r->tid, r->start, r->h.ts), *parent;

	if (!t)
		return -ENOMEM;
	t->timeline = true;
	t->parent_tid = r->parent;
	if (t->born == CC_NEVER || t->born > r->h.ts)
		t->born = r->h.ts;
	if (!t->cut)
		t->known_from = CC_MIN(t->known_from, t->born);
	t->alive = CC_MAX(t->alive, r->h.ts);
	parent = tasks_find(ts, r->parent, r->h.ts);
	if (parent && parent->timeline)
		task_ran_at(parent, r->h.ts);
	return 0;
}

/* A thread other than the leader called exec: from now on it has the leader's tid. */
static int exec_record(struct tasks *ts, const struct cc_rec_task *r)
{
	struct task *mover, *leader;
	uint32_t i, leader_idx;

	if (!r->old_tid || r->old_tid == r->tid)
		return 0;
	mover = tasks_find(ts, r->old_tid, CC_NEVER);
	leader = tasks_find(ts, r->tid, CC_NEVER);
	if (!mover || mover == leader)
		return 0; /* told before, or nothing to move */
	i = (uint32_t)(mover - ts->v.p);
	leader_idx = leader ? (uint32_t)(leader - ts->v.p) + 1 : 0;
	if (tasks_point_tid(ts, r->tid, i))
		return -ENOMEM;
	if (leader)
		leader->dead = CC_MIN(leader->dead, r->h.ts);
	mover->older = leader_idx;
	mover->exec_tid = mover->tid;
	mover->tid = r->tid;
	mover->exec_at = r->h.ts;
	return 0;
}

int tasks_task(struct tasks *ts, const struct cc_rec_task *r)
{
	struct task *t;
	int err = 0;

	if (!r->tid || tid_is_go(r->tid) || tid_is_go(r->old_tid))
		return -EINVAL;
	if (r->h.aux == CC_TASK_FORK)
		err = fork_record(ts, r);
	else if (r->h.aux == CC_TASK_EXEC)
		err = exec_record(ts, r);
	if (err)
		return err;
	t = tasks_get(ts, r->tid, r->h.ts);
	if (!t)
		return -ENOMEM;
	if (r->h.aux == CC_TASK_EXIT) {
		t->timeline = true;
		t->dead = CC_MIN(t->dead, r->h.ts);
		t->alive = CC_MAX(t->alive, r->h.ts);
	}
	if (!t->timeline)
		t->alive = CC_MAX(t->alive, r->h.ts); /* then: when it was named */
	t->flags |= r->h.flags;
	t->timeline |= (r->h.flags & (CC_TF_TRACED | CC_TF_FOLLOWED)) != 0;
	t->start = r->start ? r->start : t->start;
	t->cgroup = r->cgroup ? r->cgroup : t->cgroup;
	task_set_tgid(ts, t, r->tgid);
	task_set_comm(t, r->comm);
	return 0;
}

int tasks_short(struct tasks *ts, const struct cc_rec_short *r)
{
	struct task *t = tasks_get(ts, r->tid, r->h.ts);
	uint32_t i;

	if (r->since > r->h.ts || r->ns > r->h.ts - r->since)
		return -EINVAL;
	if (!t || vec_reserve(ts->mem, &t->shorts, t->shorts.cnt + 1))
		return -ENOMEM;
	i = t->shorts.cnt++;
	for (; i > 0 && t->shorts.p[i - 1].until > r->h.ts; i--)
		t->shorts.p[i] = t->shorts.p[i - 1];
	t->shorts.p[i] = (struct short_sum){ r->since, r->h.ts, r->ns, r->cnt };
	return 0;
}

int tasks_sample(struct tasks *ts, const struct cc_rec_sample *r)
{
	struct task *t = tasks_get(ts, r->tid, r->h.ts);
	uint32_t i;

	if (!t || vec_reserve(ts->mem, &t->samples, t->samples.cnt + 1))
		return -ENOMEM;
	i = t->samples.cnt++;
	for (; i > 0 && t->samples.p[i - 1].t > r->h.ts; i--)
		t->samples.p[i] = t->samples.p[i - 1];
	t->samples.p[i] = (struct cpu_sample){ r->h.ts, r->ustack, r->kstack };
	return 0;
}

/* Takes the elements that are over before @before off the front of a sorted array. */
#define drop_before(ts, v, field, before)                        \
	do {                                                     \
		uint32_t n_ = vec_lower_bound(v, field, before); \
		if (n_) {                                        \
			vec_drop_front(v, n_);                   \
			vec_shrink((ts)->mem, v);                \
		}                                                \
	} while (0)

static uint32_t evict_episodes(struct tasks *ts, struct task *t, cc_ns before)
{
	uint32_t n = vec_lower_bound(&t->eps, in, before);

	for (uint32_t i = 0; i < n; i++) {
		if (ep_is_go(&t->eps.p[i]))
			go_wait_free(ts, t->eps.p[i].side);
		else if (t->eps.p[i].side &&
			 !vec_reserve(ts->mem, &ts->free_sides, ts->free_sides.cnt + 1))
			ts->free_sides.p[ts->free_sides.cnt++] = t->eps.p[i].side;
	}
	if (!n)
		return 0;
	t->known_from = t->eps.p[n - 1].in;
	t->cut = true;
	t->indexed -= CC_MIN(t->indexed, n);
	vec_drop_front(&t->eps, n);
	vec_shrink(ts->mem, &t->eps);
	return n;
}

uint64_t tasks_evict(struct tasks *ts, cc_ns before)
{
	uint64_t cnt = 0;

	for (uint32_t i = 0; i < ts->v.cnt; i++) {
		struct task *t = &ts->v.p[i];

		cnt += evict_episodes(ts, t, before);
		drop_before(ts, &t->touches, t, before);
		drop_before(ts, &t->shorts, until, before);
		drop_before(ts, &t->cells, to, before);
		drop_before(ts, &t->samples, t, before);
		/* holds and given wakes are not sorted by their ends: keep their order */
		for (uint32_t j = t->holds.cnt; j-- > 0;)
			if (t->holds.p[j].to < before) {
				vec_drop_front(&t->holds, j + 1);
				break;
			}
		uint32_t kept = 0;

		for (uint32_t j = 0, sorted = t->given_sorted; j < t->given.cnt; j++) {
			if (t->given.p[j].t >= before)
				t->given.p[kept++] = t->given.p[j];
			else
				t->given_sorted -= j < sorted;
		}
		t->given.cnt = kept;
		vec_shrink(ts->mem, &t->given);
	}
	drop_before(ts, &ts->gaps, to, before);
	go_evict(ts, before);
	return cnt;
}
