/* SPDX-License-Identifier: Apache-2.0 */
/* A task that begins several others and waits until all are done: had the one it waited for taken
 * no time, it would have waited for the next. */
#include "engine_priv.h"

#define SIBLINGS_LOOKED 256 /* wakes that the task gave, and its waits after this one */

struct join {
	struct walk *w;
	const struct task *t, *waker; /* who waits, for whom */
	cc_ns a, b;                   /* the wait */
	cc_ns end;                    /* what is found */
};

/* @t waits for @o too, after this wait. */
static bool waits_later(const struct join *j, const struct task *o, cc_ns to)
{
	for (uint32_t i = task_ep_from(j->t, j->b), n = 0;
	     i < j->t->eps.cnt && j->t->eps.p[i].out < to && n < SIBLINGS_LOOKED; i++, n++)
		if (ep_task_wake(&j->t->eps.p[i]) && j->t->eps.p[i].waker_tid == o->tid)
			return true;
	return false;
}

/* @o was begun together with the one waited for, and done at @done. */
static void sibling(struct join *j, const struct task *o, cc_ns done, cc_ns to)
{
	if (o == j->waker || o == j->t || done <= j->a)
		return;
	if (done < j->b)
		j->end = CC_MAX(j->end, done);
	else if (waits_later(j, o, to))
		j->end = j->b;
}

static bool is_child(const struct join *j, const struct task *o)
{
	return o->parent_tid == j->t->tid && o->born != CC_NEVER && o->born <= j->a &&
	       (j->t->born == CC_NEVER || o->born >= j->t->born);
}

static void children(struct join *j, cc_ns to)
{
	const struct tasks *ts = &j->w->e->tasks;

	for (uint32_t i = 0; i < ts->v.cnt; i++)
		if (ts->v.p[i].tid && is_child(j, &ts->v.p[i]))
			sibling(j, &ts->v.p[i], ts->v.p[i].dead, to);
}

/* The wait from which @t woke @o at @at: both workers of one queue wait for the same thing. */
static const struct episode *woken_from(const struct task *o, cc_ns at)
{
	return o ? wakes_episode_of(o, at) : NULL;
}

static void woken(struct join *j, cc_ns since, cc_ns to)
{
	struct engine *e = j->w->e;
	uint32_t cnt, n = 0;
	const struct given_wake *g = wakes_given((struct task *)j->t, since, j->a, &cnt);
	const struct episode *first = NULL;

	for (uint32_t i = cnt; i-- > 0 && !first && n < SIBLINGS_LOOKED; n++)
		if (g[i].wakee_tid == j->waker->tid)
			first = woken_from(j->waker, g[i].t);
	if (!first)
		return;
	n = 0;
	for (uint32_t i = cnt; i-- > 0 && n < SIBLINGS_LOOKED; n++) {
		const struct task *o = tasks_find(&e->tasks, g[i].wakee_tid, g[i].t);
		const struct episode *ep = woken_from(o, g[i].t);

		if (ep && ep->syscall == first->syscall && (ep->key | 7) == (first->key | 7))
			sibling(j, o, owner_first_idle(e, o, g[i].t, to), to);
	}
}

cc_ns walk_sibling_end(struct walk *w, const struct task *t, const struct task *waker, cc_ns a,
		       cc_ns b)
{
	struct join j = { .w = w, .t = t, .waker = waker, .a = a, .b = b };
	cc_ns to = w->r ? w->r->pub.end : CC_NEVER;

	if (is_child(&j, waker))
		children(&j, to);
	else if (w->r && !task_is_go(t))
		woken(&j, w->r->pub.start, to);
	return j.end;
}
