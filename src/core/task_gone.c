/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of which nothing is left: their places are used again. A server that forks for each
 * request, or a shell script that wakes it, makes as many tasks as it likes. */
#include "task.h"

/* Dead, or only a name that was not told again; and nothing kept is about it. */
static bool is_gone(const struct task *t, cc_ns before)
{
	if (!t->tid || t->goroutine || t->go || t->dirty || t->eps.cnt || t->touches.cnt ||
	    t->holds.cnt || t->given.cnt || t->shorts.cnt)
		return false;
	return t->timeline ? t->dead < before : t->alive < before;
}

/* Takes task @i off the list of those that had @tid, the latest first. */
static bool unlink_tid(struct tasks *ts, uint32_t tid, uint32_t i)
{
	uint32_t at = map_get(&ts->by_tid, tid), older = ts->v.p[i].older;

	if (at == i + 1) {
		if (!older || ts->v.p[older - 1].tid != tid) {
			tasks_forget_tid(ts, tid);
			return true;
		}
		return !tasks_point_tid(ts, tid, older - 1);
	}
	for (; at; at = ts->v.p[at - 1].older) {
		if (ts->v.p[at - 1].older != i + 1)
			continue;
		ts->v.p[at - 1].older = older;
		break;
	}
	return true;
}

void tasks_free_gone(struct tasks *ts, cc_ns before)
{
	for (uint32_t i = 0; i < ts->v.cnt; i++) {
		struct task *t = &ts->v.p[i];

		if (!is_gone(t, before) || vec_reserve(ts->mem, &ts->free, ts->free.cnt + 1) ||
		    !unlink_tid(ts, t->tid, i))
			continue;
		if (t->exec_tid)
			unlink_tid(ts, t->exec_tid, i);
		task_free_side(ts, &t->open.ep.side);
		task_free_side(ts, &t->extra_side);
		task_done(ts->mem, t);
		*t = (struct task){ .known_from = CC_NEVER, .born = CC_NEVER };
		ts->free.p[ts->free.cnt++] = i;
	}
}
