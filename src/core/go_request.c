/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are a goroutine's life: many share one HTTP/2 connection, of which the sockets tell
 * only busy periods; each is served by a goroutine of its own, known by its function. */
#include <errno.h>

#include "engine_priv.h"
#include "go_target.h"

static struct cc_reqid id_of(const struct engine *e, const struct task *t)
{
	return (struct cc_reqid){ task_go(&e->tasks, t)->goid, 0, CC_REQID_GOID };
}

static struct go_state *parent_of(const struct engine *e, const struct task *t)
{
	const struct task *p = t->parent_tid ? tasks_find(&e->tasks, t->parent_tid, t->born) : NULL;

	return p ? task_go(&e->tasks, p) : NULL;
}

bool go_request_is_mux(const struct engine *e, const struct task *t)
{
	const struct go_state *g = task_go(&e->tasks, t), *p = g ? parent_of(e, t) : NULL;

	return g && (g->mux || (p && p->mux));
}

/* Its request is told, or going on. */
static int tell(struct engine *e, const struct task *t, cc_ns now)
{
	struct req *r = requests_get(&e->reqs, id_of(e, t));
	bool over = t->dead != CC_NEVER;
	bool listed;

	if (!r)
		return -ENOMEM;
	if (r->told)
		return 0; /* a number that another process had too: the first one is shown */
	listed = r->open;
	r->seen = over ? t->dead : now;
	r->told = over;
	r->open = !over;
	r->pub.state = over ? CC_RQS_DONE : CC_RQS_IN_FLIGHT;
	r->pub.tid = t->tid;
	r->pub.tgid = t->tgid;
	r->pub.start = t->born;
	r->pub.end = CC_MAX(over ? t->dead : now, t->born);
	r->pub.rec.tgid = t->tgid;
	r->pub.rec.first_recv = t->born;
	if (!over && listed)
		return 0;
	return requests_list(&e->reqs, over ? LIST_DUE : LIST_OPEN, r);
}

/* Goroutines that are new since: those that handle a request are kept. */
static int look_at_new(struct engine *e)
{
	uint32_t kept = 0;
	int err = 0;

	for (uint32_t i = 0; i < e->tasks.go.fresh.cnt && !err; i++) {
		uint32_t tid = e->tasks.go.fresh.p[i];
		const struct task *t = tasks_find(&e->tasks, tid, CC_NEVER);
		struct engine_frame f;

		if (!t || !task_is_go(t) || t->born == CC_NEVER)
			continue;
		if (!names_get_frame(&e->names, t->tgid, ENGINE_GEN_NOW,
				     task_go(&e->tasks, t)->start_pc, &f)) {
			if (t->dead == CC_NEVER) /* its name may come yet */
				e->tasks.go.fresh.p[kept++] = tid;
			continue;
		}
		if (!go_names_handler(f.text, f.text_len))
			continue;
		if (parent_of(e, t))
			parent_of(e, t)->mux = true;
		err = vec_reserve(&e->mem, &e->handlers, e->handlers.cnt + 1);
		if (!err)
			e->handlers.p[e->handlers.cnt++] = tid;
	}
	e->tasks.go.fresh.cnt = kept;
	return err;
}

int go_requests(struct engine *e, cc_ns now)
{
	uint32_t kept = 0;
	int err = look_at_new(e);

	for (uint32_t i = 0; i < e->handlers.cnt && !err; i++) {
		const struct task *t = tasks_find(&e->tasks, e->handlers.p[i], CC_NEVER);

		if (!t || !task_is_go(t))
			continue;
		err = tell(e, t, now);
		if (t->dead == CC_NEVER)
			e->handlers.p[kept++] = t->tid;
	}
	e->handlers.cnt = kept;
	return err;
}

int go_request_seg(struct engine *e, const struct req *r)
{
	const struct task *t = tasks_find(&e->tasks, r->pub.tid, CC_NEVER);

	if (r->pub.start >= r->pub.end)
		return 0;
	if (vec_reserve(&e->mem, &e->segs, e->segs.cnt + 1))
		return -ENOMEM;
	e->segs.p[e->segs.cnt++] = (struct ident_seg){
		.lo = r->pub.start,
		.hi = r->pub.end,
		.task = t ? (uint32_t)(t - e->tasks.v.p) : UINT32_MAX,
		.kind = t ? SEG_WALK : SEG_NO_IDENTITY,
		.evidence = t ? CC_EV_BIT(GO_HANDLER) : CC_EV_BIT(NO_IDENTITY),
	};
	return 0;
}
