/* SPDX-License-Identifier: Apache-2.0 */
/* Work at each TICK: which requests to work out, which to forget. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"

/* What a thread touched is its owner until it touches something else. */
static cc_ns matters_until(const struct engine *e, const struct req_news *n)
{
	const struct task *t = tasks_find(&e->tasks, n->tid, n->to);
	uint32_t i;

	if (!t)
		return n->to;
	i = task_touch_from(t, n->to + 1);
	return i < t->touches.cnt ? t->touches.p[i].t : CC_NEVER;
}

/* A thread that was silent when the path was worked out has been heard of. */
static bool is_broken_silence(const struct engine *e, const struct req *r)
{
	for (uint32_t i = 0; i < r->silent_cnt; i++)
		if (e->tasks.v.p[r->silent[i]].alive >= r->pub.end)
			return true;
	return false;
}

/* Losses and episodes that were told late. */
static int add_late(struct engine *e)
{
	struct requests *rs = &e->reqs;

	for (uint32_t i = 0; i < e->tasks.late.cnt; i++) {
		const struct late_span *l = &e->tasks.late.p[i];

		if (l->from >= rs->worked_to)
			continue;
		if (vec_reserve(&e->mem, &rs->news, rs->news.cnt + 1))
			return -ENOMEM;
		rs->news.p[rs->news.cnt++] = (struct req_news){ l->from, l->to, l->tid, true };
	}
	e->tasks.late.cnt = 0;
	return 0;
}

static int put_due(struct engine *e, struct req *r);

static bool leaned_on_news(const struct engine *e, const struct req *r)
{
	for (uint32_t i = 0; i < e->reqs.news.cnt; i++) {
		const struct req_news *n = &e->reqs.news.p[i];

		if (n->from <= r->pub.end && n->to >= r->pub.start &&
		    r->leaned >> (n->tid % 64) & 1)
			return true;
	}
	return false;
}

static int forget(struct engine *e, struct req *r)
{
	r->computed = false;
	requests_unfinish(&e->reqs, r);
	return put_due(e, r);
}

/* Work that was told late: what leaned on these threads then is worked out again. */
static int forget_leaning(struct engine *e)
{
	struct requests *rs = &e->reqs;
	const struct req_vec *fresh = &rs->list[LIST_FRESH];
	cc_ns first = CC_NEVER;
	int err = 0;

	for (uint32_t i = 0; i < rs->news.cnt; i++) {
		if (!rs->news.p[i].exact)
			rs->news.p[i].to =
				CC_MAX(rs->news.p[i].to, matters_until(e, &rs->news.p[i]));
		first = CC_MIN(first, rs->news.p[i].from);
	}
	for (uint32_t i = 0; i < fresh->cnt && rs->news.cnt && !err; i++) {
		struct req *r = fresh->p[i];

		if (r->computed && r->pub.end >= first && leaned_on_news(e, r))
			err = forget(e, r);
	}
	for (uint32_t i = rs->shown.cnt; i-- > 0 && rs->news.cnt && !err;) {
		struct req *r = (struct req *)rs->shown.p[i]; /* pub is its first member */

		if (r->pub.end < first)
			break;
		if (r->computed && leaned_on_news(e, r))
			err = forget(e, r);
	}
	rs->news.cnt = 0;
	return err;
}

/* Paths that leaned on requests that were open then and are told now (@told: their bits). */
static int forget_open(struct engine *e, uint64_t told)
{
	const struct req_vec *v = &e->reqs.list[LIST_LEANING];
	int err = 0;

	for (uint32_t i = 0; i < v->cnt && told && !err; i++) {
		struct req *r = v->p[i];

		if (!r->due && r->finished && r->leaned_open & told)
			err = forget(e, r);
	}
	return err;
}

/* Remembers the holds of @r before they are found anew. */
static int save_holds(struct engine *e, const struct req *r)
{
	if (vec_reserve(&e->mem, &e->old_holds, r->holds.cnt))
		return -ENOMEM;
	e->old_holds.cnt = r->holds.cnt;
	for (uint32_t i = 0; i < r->holds.cnt; i++)
		e->old_holds.p[i] = r->holds.p[i];
	return 0;
}

/* Holds that were not known when the time they lie in was worked out. */
static int add_holders(struct engine *e, const struct req *r)
{
	struct requests *rs = &e->reqs;

	for (uint32_t i = 0; i < r->holds.cnt; i++) {
		struct held h = r->holds.p[i];

		for (uint32_t j = 0; j < e->old_holds.cnt; j++) {
			const struct held *o = &e->old_holds.p[j];

			if (o->task == h.task && o->from <= h.from && o->to > h.from)
				h.from = CC_MIN(h.to, o->to);
			if (o->task == h.task && o->from < h.to && o->to >= h.to)
				h.to = CC_MAX(h.from, o->from);
		}
		if (h.from >= h.to || h.from >= rs->worked_to)
			continue;
		if (vec_reserve(&e->mem, &rs->news, rs->news.cnt + 1))
			return -ENOMEM;
		rs->news.p[rs->news.cnt++] =
			(struct req_news){ h.from, h.to, e->tasks.v.p[h.task].tid, true };
	}
	return 0;
}

static bool is_sampled(const struct engine *e, const struct req *r)
{
	uint64_t n = e->stats.option[CC_OPT_SAMPLE];

	return n < 2 || reqid_hash(r->pub.id) % n == 0;
}

/* ---- what is due -------------------------------------------------------------------------- */

static int put_due(struct engine *e, struct req *r)
{
	if (r->due || r->pub.id.kind == CC_REQID_TID)
		return 0;
	if (vec_reserve(&e->mem, &e->due, e->due.cnt + 1))
		return -ENOMEM;
	r->due = true;
	e->due_second |= r->pub.id.ordinal == 2;
	e->due_parts |= r->pub.rec.send_cnt >= 2;
	r->explains = names_is_followed(&e->names, r->pub.rec.tgid);
	e->due.p[e->due.cnt++] = (struct due){ .r = r, .from = r->pub.rec.first_recv };
	return 0;
}

static bool by_from_in_order(const struct engine *e)
{
	for (uint32_t i = 1; i < e->due.cnt; i++)
		if (e->due.p[i - 1].from > e->due.p[i].from)
			return false;
	return true;
}

static int by_from(const void *pa, const void *pb)
{
	const struct due *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->r->slot > b->r->slot) - (a->r->slot < b->r->slot);
}

/* What was told, what goes on, what a thread that was silent has broken its silence about. In order
 * of time, as holds of a thread are kept. What ends after the watermark is worked out too, as far
 * as it is known, and again later. */
static int gather_due(struct engine *e, cc_ns now)
{
	struct requests *rs = &e->reqs;
	const struct req_vec *v = &rs->list[LIST_DUE];
	int err = 0;

	e->due.cnt = e->standings.cnt = 0;
	e->due_second = e->due_parts = false;
	for (uint32_t i = 0; i < v->cnt && !err; i++) {
		if (i + REQ_PREFETCH < v->cnt)
			req_prefetch(v->p[i + REQ_PREFETCH]);
		err = put_due(e, v->p[i]);
	}
	v = &rs->list[LIST_OPEN];
	for (uint32_t i = 0; i < v->cnt && now && !err; i++) {
		if (!v->p[i]->open)
			continue;
		v->p[i]->pub.end = CC_MAX(v->p[i]->pub.start, now);
		err = put_due(e, v->p[i]);
	}
	v = &rs->list[LIST_SILENT];
	for (uint32_t i = 0; i < v->cnt && !err; i++)
		if (v->p[i]->finished && is_broken_silence(e, v->p[i]))
			err = forget(e, v->p[i]);
	if (e->due.cnt && !by_from_in_order(e))
		qsort(e->due.p, e->due.cnt, sizeof(*e->due.p), by_from);
	return err;
}

/* The @i th of those that are due; what comes later is fetched meanwhile. */
static struct due *due_at(const struct engine *e, uint32_t i)
{
	if (i + REQ_PREFETCH < e->due.cnt)
		req_prefetch(e->due.p[i + REQ_PREFETCH].r);
	return &e->due.p[i];
}

/* Which of those that are due are no single requests, nor those before them. */
static int find_mixed(struct engine *e)
{
	int err = 0;

	if (!e->reqs.calls_told && !e->reqs.busy_told)
		return 0;
	for (uint32_t i = 0; i < e->due.cnt && !err; i++) { /* it may grow */
		struct req *r = due_at(e, i)->r, *before;

		if (!mixed_is_new(e, r))
			continue;
		for (uint32_t n = 1; (before = mixed_earlier(e, r, n)) && !err; n++)
			if (before->finished)
				err = forget(e, before);
			else if (before->due)
				(void)mixed_is_new(e, before);
	}
	return err;
}

/* Exchanges of handshakes. */
static int find_handshakes(struct engine *e)
{
	int err = 0;

	for (uint32_t i = 0; e->due_second && i < e->due.cnt && !err; i++) {
		struct req *hello;

		err = handshake_of(e, due_at(e, i)->r, &hello);
		if (err || !hello)
			continue;
		if (hello->finished)
			err = forget(e, hello);
		hello->pub.rec.what |= CC_RQ_SETUP;
	}
	return err;
}

/* Whose upstream calls these were, where the kernel could not tell. */
static int find_links(struct engine *e)
{
	int err = 0;

	if (!e->reqs.calls_told)
		return 0;
	for (uint32_t i = 0; i < e->due.cnt && !err; i++)
		err = link_learn(e, e->due.p[i].r) ?: link_reply_learn(e, e->due.p[i].r);
	for (uint32_t i = 0; i < e->due.cnt && !err; i++)
		err = link_turn(e, e->due.p[i].r);
	for (uint32_t i = 0; i < e->due.cnt && !err; i++) {
		struct req *linked[LINK_GROUP_MAX];
		uint32_t cnt;

		err = link_group(e, due_at(e, i)->r, linked, &cnt);
		for (uint32_t n = 0; n < cnt && !err; n++)
			if (linked[n]->finished)
				err = forget(e, linked[n]);
	}
	for (uint32_t i = 0; i < e->due.cnt && !err; i++)
		err = link_reply(e, e->due.p[i].r);
	return err;
}

/* What is a stream: after its upstream calls are known. */
static void find_parts(struct engine *e)
{
	for (uint32_t i = 0; e->due_parts && i < e->due.cnt; i++)
		parts_label(e, due_at(e, i)->r);
}

#define WORK_AHEAD 4 /* requests; less than REQ_PREFETCH: they are there by then */
#define LINE 64      /* bytes */

/* What @tid did right after what was asked for last. */
static void prefetch_task(const struct engine *e, uint32_t tid, cc_ns at, unsigned int lines)
{
	const struct task *t = tasks_find(&e->tasks, tid, at);

	if (!t)
		return;
	for (unsigned int i = 1; i <= 5; i += 2)
		__builtin_prefetch(t->touches.p + t->near_touch + i);
	for (unsigned int i = 0; i < lines; i++)
		__builtin_prefetch((const char *)(t->eps.p + t->near_ep) + (size_t)i * LINE);
}

/* What identity_find() will read of the @i th one. */
static void prefetch_work(const struct engine *e, uint32_t i)
{
	const struct req *r;

	if (i >= e->due.cnt)
		return;
	r = e->due.p[i].r;
	__builtin_prefetch(r->ops.p);
	prefetch_task(e, r->pub.rec.send_tid, r->pub.end, 4);
	if (r->pub.rec.recv_tid != r->pub.rec.send_tid)
		prefetch_task(e, r->pub.rec.recv_tid, r->pub.end, 5);
}

/* Finds out who worked for each request that is due, from the @done first on. */
static int identify(struct engine *e, uint32_t done, cc_ns to, uint64_t *ret_told)
{
	int err = 0;

	for (uint32_t i = done; i < e->due.cnt && !err; i++) {
		struct due *d = due_at(e, i);
		struct req *r = d->r;

		prefetch_work(e, i + WORK_AHEAD);
		d->first = e->segs.cnt;
		r->leaned = r->leaned_open = 0;
		r->silent_cnt = 0;
		err = save_holds(e, r) ?: identity_find(e, r) ?: add_holders(e, r) ?: select_note(e, r, to);
		d->cnt = e->segs.cnt - d->first;
		if (r->told && r->identified)
			*ret_told |= reqid_bit(r->pub.id);
		r->identified = true;
	}
	return err;
}

static int work_out(struct engine *e, const struct due *d)
{
	struct req *r = d->r;

	if (r->pub.weight && is_sampled(e, r))
		return path_of_request(e, r, e->segs.p + d->first, d->cnt);
	path_drop(&e->mem, &r->pub);
	return 0;
}

/* All on LIST_DUE are due: it is made anew of those that stay on it. */
static void keep_due(struct requests *rs, struct req *r)
{
	struct req_vec *v = &rs->list[LIST_DUE];

	if (!(r->lists >> LIST_DUE & 1))
		return;
	if (r->told && !r->computed)
		v->p[v->cnt++] = r;
	else
		r->lists &= (uint8_t) ~(1u << LIST_DUE);
}

/* Where what was worked out belongs now. */
static int settle(struct engine *e, struct req *r, cc_ns to)
{
	struct requests *rs = &e->reqs;
	int err = 0;

	r->due = false;
	r->computed = r->told && r->pub.end < to;
	r->settled |= r->computed;
	keep_due(rs, r);
	if (r->silent_cnt)
		err = requests_list(rs, LIST_SILENT, r);
	if (!err && r->leaned_open)
		err = requests_list(rs, LIST_LEANING, r);
	if (err || !r->computed)
		return err;
	e->stats.paths_left_out += !r->explains && !r->pub.weight;
	return requests_list(rs, LIST_FRESH, r) ?: requests_finish(rs, r);
}

int work_paths(struct engine *e, cc_ns to, cc_ns now)
{
	uint64_t told = 0, ignored;
	uint32_t cnt;
	int err;

	e->segs.cnt = 0;
	e->idle.valid = false;
	e->reqs.working_to = to;
	/* who worked for which request must be known of all before one is walked */
	err = add_late(e) ?: gather_due(e, now) ?: find_mixed(e) ?: find_handshakes(e) ?:
	      find_links(e);
	if (!err) {
		find_parts(e);
		err = identify(e, 0, to, &told);
	}
	if (!err && (e->reqs.news.cnt || told)) {
		cnt = e->due.cnt;
		err = forget_leaning(e) ?: forget_open(e, told) ?: identify(e, cnt, to, &ignored);
		e->reqs.news.cnt = 0;
	}
	if (!err)
		err = select_shown(e);
	if (!err)
		e->reqs.list[LIST_DUE].cnt = 0; /* see keep_due() */
	for (uint32_t i = 0; i < e->due.cnt && !err; i++) {
		const struct due *d = due_at(e, i);

		err = work_out(e, d) ?: settle(e, d->r, to);
	}
	e->reqs.worked_to = CC_MAX(e->reqs.worked_to, to);
	if (!err)
		work_tidy(e, to, now);
	return err;
}

static int by_end(const void *a, const void *b)
{
	return request_by_end(*(const struct cc_request *const *)a,
			      *(const struct cc_request *const *)b);
}

/* What is shown is in order already; what goes on, or ended after the watermark, joins it. */
int work_sort(struct engine *e)
{
	const struct requests *rs = &e->reqs;
	uint32_t cnt = 0, shown = rs->shown.cnt, at;

	e->sorted.cnt = 0;
	if (vec_reserve(&e->mem, &e->sorted,
			shown + rs->list[LIST_OPEN].cnt + rs->list[LIST_DUE].cnt + 1))
		return -ENOMEM;
	for (int l = LIST_DUE; l <= LIST_OPEN; l++)
		for (uint32_t i = 0; i < rs->list[l].cnt; i++)
			if (!names_is_followed(&e->names, rs->list[l].p[i]->pub.rec.tgid))
				e->sorted.p[cnt++] = &rs->list[l].p[i]->pub;
	if (cnt)
		qsort(e->sorted.p, cnt, sizeof(*e->sorted.p), by_end);
	/* from the end, where both meet */
	e->sorted.cnt = at = shown + cnt;
	while (cnt > 0 && shown > 0) {
		const struct cc_request *a = rs->shown.p[shown - 1], *b = e->sorted.p[cnt - 1];
		bool later = request_by_end(a, b) > 0;

		e->sorted.p[--at] = later ? a : b;
		shown -= later;
		cnt -= !later;
	}
	if (shown)
		memcpy(e->sorted.p, rs->shown.p, shown * sizeof(*e->sorted.p));
	return 0;
}
