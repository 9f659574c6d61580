/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes of wakes: by lock (each ends a holder's part) and by the task that gave them. Built when
 * they are needed, so that taking in an episode costs no more than keeping it. */
#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"

/* A futex of @tgid, or, once it is known to be one of several processes, what they have in common.
 * They need not have it at the same address: then there are several of these, and futex_is_apart().
 */
static uint32_t futex_find(const struct engine *e, uint32_t key, uint32_t tgid)
{
	uint32_t res = resources_find(&e->res, RES_FUTEX, key, 0, tgid);

	if (res && e->res.v.p[res - 1].across)
		return resources_find(&e->res, RES_FUTEX, key, 0, FUTEX_OF_ALL);
	return res;
}

/* The rwsem that the kernel waited for, or the futex. */
static uint32_t lock_resource(struct engine *e, const struct task *t, const struct episode *ep)
{
	const struct side *s = ep_side(&e->tasks, ep);
	uint32_t res;

	if (ep_is_go(ep))
		return go_resource(e, t, ep);
	if (!classify_is_futex(&e->cls, ep))
		return resources_get(&e->res, RES_KLOCK, s->uaddr, 0, 0);
	res = futex_find(e, ep->key, t->tgid);
	return res ? res : resources_get(&e->res, RES_FUTEX, ep->key, 0, t->tgid);
}

static bool is_on_lock(const struct engine *e, const struct episode *ep)
{
	const struct side *s = ep_side(&e->tasks, ep);

	if (ep_is_go(ep))
		return ep->key == WAIT_MUTEX && ep->side && ep_go_wait(&e->tasks, ep)->object;
	if (classify_is_futex(&e->cls, ep))
		return ep->key != 0;
	return s && s->told && s->uaddr && !s->futex;
}

uint32_t wakes_lock_of(const struct engine *e, const struct task *t, const struct episode *ep)
{
	const struct side *s = ep_side(&e->tasks, ep);

	if (!is_on_lock(e, ep))
		return 0;
	if (ep_is_go(ep))
		return go_resource_find(e, t, ep);
	if (classify_is_futex(&e->cls, ep))
		return futex_find(e, ep->key, t->tgid);
	return resources_find(&e->res, RES_KLOCK, s->uaddr, 0, 0);
}

bool wakes_are_apart(const struct engine *e, uint32_t res)
{
	const struct resource *r = res ? &e->res.v.p[res - 1] : NULL, *other;
	uint32_t i;

	if (!r || r->kind != RES_FUTEX || r->tgid != FUTEX_OF_ALL || !r->waker_tgid)
		return false;
	i = resources_find(&e->res, RES_FUTEX, r->id, 0, r->waker_tgid);
	other = i ? &e->res.v.p[i - 1] : NULL;
	return !other || !other->across;
}

/* The futex is one of several processes: what is known of it goes to what they have in common. */
static int join_across(struct engine *e, uint32_t res)
{
	uint32_t all = resources_get(&e->res, RES_FUTEX, e->res.v.p[res - 1].id, 0, FUTEX_OF_ALL);
	struct resource *r;
	int err = all ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < e->res.v.p[res - 1].wakes.cnt; i++)
		err = resource_wake(&e->res, all, e->res.v.p[res - 1].wakes.p[i]);
	if (err)
		return err;
	r = &e->res.v.p[res - 1];
	r->wakes.cnt = r->sorted = r->near = 0;
	r->across = true;
	return 0;
}

/* What a slow wait tells about its futex or descriptor holds for the short ones on it. */
static int learn(struct engine *e, const struct task *t, const struct episode *ep)
{
	struct side *s = ep->side && !ep_is_go(ep) ? &e->tasks.sides.p[ep->side] : NULL;
	uint32_t res;

	if (!s || !s->told)
		return 0;
	if (classify_is_futex(&e->cls, ep) && s->futex) {
		s->site = (uint8_t)classify_site(&e->names, s);
		res = resources_get(&e->res, RES_FUTEX, ep->key, 0, t->tgid);
		if (!res)
			return -ENOMEM;
		e->res.v.p[res - 1].learned = (uint8_t)classify_futex(s);
		e->res.v.p[res - 1].uaddr = s->uaddr;
		if (classify_futex_is_across(s) && !e->res.v.p[res - 1].across)
			return join_across(e, res);
	} else if (s->fd >= 0 && s->fd_kind != CC_FD_NONE && ep->key == (uint32_t)s->fd) {
		res = resources_get(&e->res, RES_FD, ep->key, 0, t->tgid);
		if (!res)
			return -ENOMEM;
		e->res.v.p[res - 1].learned = s->fd_kind;
	}
	return 0;
}

bool wakes_is_release(const struct engine *e, const struct episode *ep)
{
	const struct side *s = ep_side(&e->tasks, ep);

	return !s || !(s->flags & (CC_EX_TIMEOUT | CC_EX_SIGNAL));
}

static int index_wake(struct engine *e, uint32_t ti, const struct episode *ep)
{
	uint32_t tid = e->tasks.v.p[ti].tid, res;
	struct task *waker;
	int err = learn(e, &e->tasks.v.p[ti], ep);

	if (err || !ep_blocked(ep) || !ep_task_wake(ep))
		return err;
	if (is_on_lock(e, ep) && wakes_is_release(e, ep)) {
		res = lock_resource(e, &e->tasks.v.p[ti], ep);
		if (!res)
			return -ENOMEM;
		if (e->res.v.p[res - 1].tgid == FUTEX_OF_ALL &&
		    ep->waker_tgid != e->tasks.v.p[ti].tgid)
			e->res.v.p[res - 1].waker_tgid = ep->waker_tgid;
		err = resource_wake(&e->res, res,
				    (struct lock_wake){ ep->wake, ep->waker_tid, tid });
		if (err)
			return err;
	}
	if (!e->stats.has_sockets)
		return 0; /* nobody will ask who gave it */
	waker = tasks_get(&e->tasks, ep->waker_tid, ep->wake);
	if (!waker)
		return -ENOMEM;
	if (!waker->tgid)
		task_set_tgid(&e->tasks, waker, ep->waker_tgid);
	err = vec_reserve(&e->mem, &waker->given, waker->given.cnt + 1);
	if (err)
		return err;
	waker->given.p[waker->given.cnt++] = (struct given_wake){ ep->wake, tid };
	return 0;
}

#define PREFETCH 4 /* episodes ahead: what is told beside them is far away in memory */

int wakes_index(struct engine *e)
{
	while (e->tasks.dirty.cnt) {
		uint32_t ti = e->tasks.dirty.p[e->tasks.dirty.cnt - 1];
		struct task *t = &e->tasks.v.p[ti];

		for (uint32_t i = t->indexed; i < t->eps.cnt; i++) {
			struct episode ep = t->eps.p[i];
			int err;

			if (i + PREFETCH < t->eps.cnt)
				__builtin_prefetch(&e->tasks.sides.p[t->eps.p[i + PREFETCH].side]);
			if (ep.kind & EP_INDEXED)
				continue;
			err = index_wake(e, ti, &ep);
			if (err)
				return err;
			t = &e->tasks.v.p[ti]; /* the array may have moved */
			t->eps.p[i].kind |= EP_INDEXED;
		}
		t->indexed = t->eps.cnt;
		t->dirty = false;
		/* a tgid learned meanwhile may have put others behind it: take out this one only */
		for (uint32_t i = e->tasks.dirty.cnt; i-- > 0;) {
			if (e->tasks.dirty.p[i] != ti)
				continue;
			e->tasks.dirty.p[i] = e->tasks.dirty.p[--e->tasks.dirty.cnt];
			break;
		}
	}
	return 0;
}

int wakes_reindex(struct engine *e)
{
	for (uint32_t i = 0; i < e->res.v.cnt; i++)
		e->res.v.p[i].wakes.cnt = e->res.v.p[i].sorted = 0;
	for (uint32_t i = 0; i < e->tasks.v.cnt; i++) {
		struct task *t = &e->tasks.v.p[i];

		for (uint32_t j = 0; j < t->indexed; j++)
			t->eps.p[j].kind &= (uint8_t)~EP_INDEXED;
		t->indexed = 0;
		if (!t->eps.cnt || t->dirty)
			continue;
		if (vec_reserve(&e->mem, &e->tasks.dirty, e->tasks.dirty.cnt + 1))
			return -ENOMEM;
		t->dirty = true;
		e->tasks.dirty.p[e->tasks.dirty.cnt++] = i;
	}
	return 0;
}

int wakes_apply(struct engine *e, bool all)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < e->wakes.cnt; i++) {
		int got = tasks_wake(&e->tasks, &e->wakes.p[i]);

		if (got == -EAGAIN && !all)
			e->wakes.p[kept++] = e->wakes.p[i];
		else if (got == 0)
			e->stats.wake_running++;
		else if (got < 0 && got != -EAGAIN)
			return got;
	}
	e->wakes.cnt = kept;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct given_wake *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return (x->wakee_tid > y->wakee_tid) - (x->wakee_tid < y->wakee_tid);
}

/* Wakes come task by task, a refresh at a time. */
static void sort_given(struct task *t)
{
	sort_tail(t->given.p, t->given_sorted, t->given.cnt, sizeof(*t->given.p), by_time);
	t->given_sorted = t->given.cnt;
}

const struct given_wake *wakes_given(struct task *t, cc_ns lo, cc_ns hi, uint32_t *ret_cnt)
{
	uint32_t from;

	sort_given(t);
	from = vec_lower_bound(&t->given, t, lo + 1);
	*ret_cnt = hi > lo ? vec_lower_bound(&t->given, t, hi + 1) - from : 0;
	return t->given.p + from;
}

const struct episode *wakes_episode_of(const struct task *t, cc_ns at)
{
	uint32_t i = task_ep_from(t, at + 1);

	while (i-- > 0 && t->eps.p[i].in >= at)
		if (t->eps.p[i].wake == at && ep_blocked(&t->eps.p[i]))
			return &t->eps.p[i];
	if (t->open.now && t->open.out && t->open.wake == at)
		return &t->open.ep;
	return NULL;
}
