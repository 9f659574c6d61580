/* SPDX-License-Identifier: Apache-2.0 */
/* Who worked for which request, kept with the tasks: for the paths of others. */
#include <errno.h>
#include <string.h>

#include "identity.h"

static int hold_add(struct engine *e, struct req *r, uint32_t ti, cc_ns from, cc_ns to)
{
	struct task *t = &e->tasks.v.p[ti];
	struct hold h = { .from = from, .to = to, .id = r->pub.id };
	uint32_t i;

	if (from >= to)
		return 0;
	if (vec_reserve(&e->mem, &t->holds, t->holds.cnt + 1) ||
	    vec_reserve_short(&e->mem, &e->reqs.held_slab, &r->holds, r->holds.cnt + 1))
		return -ENOMEM;
	for (i = t->holds.cnt; i > 0 && t->holds.p[i - 1].from > from; i--)
		t->holds.p[i] = t->holds.p[i - 1];
	t->holds.p[i] = h;
	t->holds.cnt++;
	r->holds.p[r->holds.cnt++] = (struct held){ from, to, ti };
	return 0;
}

void identity_forget(struct engine *e, struct req *r)
{
	for (uint32_t i = 0; i < r->holds.cnt; i++) {
		struct task *t = &e->tasks.v.p[r->holds.p[i].task];
		uint32_t j = vec_lower_bound(&t->holds, from, r->holds.p[i].from);

		while (j < t->holds.cnt && t->holds.p[j].from == r->holds.p[i].from &&
		       !cc_reqid_eq(t->holds.p[j].id, r->pub.id))
			j++;
		if (j == t->holds.cnt || t->holds.p[j].from != r->holds.p[i].from)
			continue; /* evicted */
		t->holds.cnt--;
		memmove(&t->holds.p[j], &t->holds.p[j + 1],
			(t->holds.cnt - j) * sizeof(t->holds.p[0]));
	}
	r->holds.cnt = 0;
}

/* In an event loop's time the thread works for the request where it touches its upstream. */
static int keep_regained(struct engine *e, struct req *r, const struct ident_seg *s)
{
	const struct task *t = &e->tasks.v.p[s->task];
	cc_ns at = s->lo, until;
	int err = 0;

	while (!err && owner_regained(e, t, r->pub.id, &at, s->hi, &until)) {
		err = hold_add(e, r, s->task, at, until);
		at = CC_MAX(until, at + 1);
	}
	return err;
}

int identity_keep(struct engine *e, struct req *r, uint32_t first)
{
	const struct cc_rec_req *q = &r->pub.rec;
	const struct task *receiver;
	int err = 0;

	for (uint32_t i = first; i < e->segs.cnt && !err; i++) {
		const struct ident_seg *s = &e->segs.p[i];

		if (s->kind == SEG_WALK || s->kind == SEG_SPLIT)
			err = hold_add(e, r, s->task, s->lo, s->hi);
		else if (s->kind == SEG_LOOP)
			err = keep_regained(e, r, s);
	}
	receiver = q->recv_tid ? tasks_find(&e->tasks, q->recv_tid, q->first_recv) : NULL;
	if (err || !receiver || !q->first_recv)
		return err;
	/* what it did for the request after it had handed it over */
	return hold_add(e, r, (uint32_t)(receiver - e->tasks.v.p), q->first_recv,
			owner_let_go(e, receiver, r->pub.id, q->first_recv, r->pub.end));
}
