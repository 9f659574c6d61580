/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes of wakes: by lock (each ends a holder's part) and by the task that gave them. Built when
 * they are needed, so that taking in an episode costs no more than keeping it. */
#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"
#include "sort_tail.h"

/* What the processes that have futex @r have in common: the place in the file that its memory is
 * of, or, where that was not told, its address. 0: none (or no memory, when it is to be made). */
static uint32_t common_find(const struct engine *e, const struct resource *r)
{
	if (r->shm_id)
		return resources_find(&e->res, RES_SHARED, r->shm_id, r->shm_off, r->shm_dev);
	return resources_find(&e->res, RES_FUTEX, r->id, 0, FUTEX_OF_ALL);
}

static uint32_t common_get(struct engine *e, const struct resource *r)
{
	if (r->shm_id)
		return resources_get(&e->res, RES_SHARED, r->shm_id, r->shm_off, r->shm_dev);
	return resources_get(&e->res, RES_FUTEX, r->id, 0, FUTEX_OF_ALL);
}

/* A futex of @tgid, or, once it is known to be one of several processes, what they have in common.
 */
static uint32_t futex_find(const struct engine *e, uint32_t key, uint32_t tgid)
{
	uint32_t res = resources_find(&e->res, RES_FUTEX, key, 0, tgid);

	return res && e->res.v.p[res - 1].across ? common_find(e, &e->res.v.p[res - 1]) : res;
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
	res = resources_get(&e->res, RES_FUTEX, ep->key, 0, t->tgid);
	return res && e->res.v.p[res - 1].across ? common_get(e, &e->res.v.p[res - 1]) : res;
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

static bool is_common(const struct resource *r)
{
	return r->kind == RES_SHARED || (r->kind == RES_FUTEX && r->tgid == FUTEX_OF_ALL);
}

static struct sharer *sharer_get(struct engine *e, uint32_t res, uint32_t tgid)
{
	struct resource *r = &e->res.v.p[res - 1];

	for (uint32_t i = 0; i < r->sharers.cnt; i++)
		if (r->sharers.p[i].tgid == tgid)
			return &r->sharers.p[i];
	if (vec_reserve(&e->mem, &r->sharers, r->sharers.cnt + 1))
		return NULL;
	r->sharers.p[r->sharers.cnt] = (struct sharer){ .tgid = tgid };
	return &r->sharers.p[r->sharers.cnt++];
}

static int note_sharers(struct engine *e, uint32_t res, uint32_t waited, uint32_t woke)
{
	struct sharer *s = sharer_get(e, res, waited);

	if (!s)
		return -ENOMEM;
	s->waited = true;
	if (woke == waited)
		return 0;
	s = sharer_get(e, res, woke);
	if (!s)
		return -ENOMEM;
	s->woke = true;
	return 0;
}

bool wakes_are_apart(const struct engine *e, uint32_t res)
{
	const struct resource *r = res ? &e->res.v.p[res - 1] : NULL;

	for (uint32_t i = 0; r && i < r->sharers.cnt; i++)
		if (r->sharers.p[i].woke && !r->sharers.p[i].waited)
			return true;
	return false;
}

/* The futex is one of several processes: what is known of it goes to what they have in common. */
static int join_across(struct engine *e, uint32_t res)
{
	struct resource r = e->res.v.p[res - 1];
	uint32_t all = common_get(e, &r);
	int err = all ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < r.wakes.cnt; i++)
		err = resource_wake(&e->res, all, r.wakes.p[i]);
	if (err)
		return err;
	e->res.v.p[res - 1].across = true;
	e->res.v.p[res - 1].wakes.cnt = 0;
	e->res.v.p[res - 1].sorted = e->res.v.p[res - 1].near = 0;
	return note_sharers(e, all, r.tgid, r.tgid);
}

/* Where @r lies, as the wait @s tells. Returns whether it was not known to be one of several
 * processes, or to lie there. */
static bool learn_across(struct resource *r, const struct side *s)
{
	uint64_t off = (uint64_t)s->sock_ports << 12 | (s->uaddr & 4095);
	bool news = !r->across;

	if (s->fd_kind != CC_FD_SHM)
		return news;
	news |= r->shm_id != s->fd_id || r->shm_off != off || r->shm_dev != s->fd_dev;
	r->shm_id = s->fd_id;
	r->shm_off = off;
	r->shm_dev = s->fd_dev;
	return news;
}

/* Of a mutex or of an RWMutex a wait is the same to the runtime: the stack tells. */
static int learn_go_lock(struct engine *e, const struct task *t, const struct episode *ep)
{
	int shared = classify_go_lock(&e->names, ep_go_wait(&e->tasks, ep)->ustack);
	uint32_t res;

	if (shared < 0)
		return 0;
	res = lock_resource(e, t, ep);
	if (!res)
		return -ENOMEM;
	e->res.v.p[res - 1].shared = shared;
	return 0;
}

/* What a slow wait tells about its futex or descriptor holds for the short ones on it. */
static int learn(struct engine *e, const struct task *t, const struct episode *ep)
{
	struct side *s = ep->side && !ep_is_go(ep) ? &e->tasks.sides.p[ep->side] : NULL;
	uint32_t res;

	if (ep_is_go(ep) && is_on_lock(e, ep))
		return learn_go_lock(e, t, ep);
	if (!s || !s->told)
		return 0;
	if (classify_is_futex(&e->cls, ep) && s->futex) {
		s->site = (uint8_t)classify_site(&e->names, s);
		res = resources_get(&e->res, RES_FUTEX, ep->key, 0, t->tgid);
		if (!res)
			return -ENOMEM;
		if (s->site || !e->res.v.p[res - 1].futex.site)
			e->res.v.p[res - 1].futex = classify_futex_kind(s);
		e->res.v.p[res - 1].uaddr = s->uaddr;
		if (classify_futex_is_across(s) && learn_across(&e->res.v.p[res - 1], s))
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

/* A task waits for few locks, again and again: the futex of its last wait. Void when something was
 * told beside a wait. */
struct futex_memo {
	uint32_t key, tgid, res; /* res 0: none */
};

static uint32_t lock_resource_again(struct engine *e, const struct task *t,
				    const struct episode *ep, struct futex_memo *memo)
{
	uint32_t res;

	if (!ep->side && memo->res && memo->key == ep->key && memo->tgid == t->tgid)
		return memo->res;
	res = lock_resource(e, t, ep);
	*memo = (struct futex_memo){ ep->key, t->tgid, ep->side ? 0 : res };
	return res;
}

static int index_wake(struct engine *e, uint32_t ti, const struct episode *ep,
		      struct futex_memo *memo)
{
	uint32_t tid = e->tasks.v.p[ti].tid, res;
	struct task *waker;
	int err = 0;

	if (ep->side) {
		memo->res = 0;
		err = learn(e, &e->tasks.v.p[ti], ep);
	}
	if (err || !ep_blocked(ep) || !ep_task_wake(ep))
		return err;
	if (is_on_lock(e, ep) && wakes_is_release(e, ep)) {
		res = lock_resource_again(e, &e->tasks.v.p[ti], ep, memo);
		if (!res)
			return -ENOMEM;
		err = resource_wake(&e->res, res,
				    (struct lock_wake){ ep->wake, ep->waker_tid, tid });
		if (!err && is_common(&e->res.v.p[res - 1]))
			err = note_sharers(e, res, e->tasks.v.p[ti].tgid, ep->waker_tgid);
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

#define PREFETCH 16 /* episodes ahead: what is told beside them is far away in memory */

int wakes_index(struct engine *e)
{
	while (e->tasks.dirty.cnt) {
		uint32_t ti = e->tasks.dirty.p[e->tasks.dirty.cnt - 1];
		struct task *t = &e->tasks.v.p[ti];
		struct futex_memo memo = { 0 };

		for (uint32_t i = t->indexed; i < t->eps.cnt; i++) {
			struct episode ep = t->eps.p[i];
			int err;

			if (i + PREFETCH < t->eps.cnt && t->eps.p[i + PREFETCH].side)
				side_prefetch(&e->tasks.sides.p[t->eps.p[i + PREFETCH].side]);
			if (ep.kind & EP_INDEXED)
				continue;
			err = index_wake(e, ti, &ep, &memo);
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
