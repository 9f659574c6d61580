/* SPDX-License-Identifier: Apache-2.0 */
/* From who held a request to its path: walked, checked, kept. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "confidence.h"
#include "digest.h"
#include "engine_priv.h"

uint32_t path_resource(struct engine *e, const struct task *t, const struct episode *ep)
{
	const struct side *s = ep_side(&e->tasks, ep);
	uint32_t res;

	if (classify_is_futex(&e->cls, ep)) {
		res = ep->key ? resources_get(&e->res, RES_FUTEX, ep->key, 0, t->tgid) : 0;
		if (res && s && s->uaddr)
			e->res.v.p[res - 1].uaddr = s->uaddr;
		return res;
	}
	if (!s || !s->told)
		return ep->key ? resources_get(&e->res, RES_FD, ep->key, 0, t->tgid) : 0;
	if (s->uaddr)
		return resources_get(&e->res, RES_KLOCK, s->uaddr, 0, 0);
	switch (s->fd_kind) {
	case CC_FD_NONE:
		return 0;
	case CC_FD_SOCK_TCP:
	case CC_FD_SOCK_UDP:
	case CC_FD_SOCK_UNIX:
	case CC_FD_SOCK_OTHER:
		return s->fd_id ? resources_get(&e->res, RES_SOCK, s->fd_id, 0, 0) : 0;
	case CC_FD_FILE:
	case CC_FD_DIR:
	case CC_FD_BLOCK:
		return resources_get(&e->res, RES_FILE, s->fd_id, s->fd_dev, 0);
	default:
		if (s->fd < 0)
			return 0;
		res = resources_get(&e->res, RES_FD, (uint32_t)s->fd, 0, t->tgid);
		if (res)
			e->res.v.p[res - 1].learned = s->fd_kind;
		return res;
	}
}

/* ---- checking and keeping ----------------------------------------------------------------- */

/* Pieces of depth @depth from @i on partition [start, end). Returns the index after them. */
static uint32_t check_level(const struct cc_piece *p, uint32_t cnt, uint32_t i, uint16_t depth,
			    cc_ns start, cc_ns end)
{
	cc_ns at = start;

	while (i < cnt && p[i].depth == depth) {
		uint32_t me = i++;

		assert(p[me].start == at && p[me].end > at);
		at = p[me].end;
		if (p[me].flags & CC_PC_NESTED)
			i = check_level(p, cnt, i, (uint16_t)(depth + 1), p[me].start, p[me].end);
	}
	assert(at == end);
	return i;
}

/* From byte @from up to byte @to of two pieces. */
static bool same_part(const struct cc_piece *a, const struct cc_piece *b, size_t from, size_t to)
{
	return !memcmp((const char *)a + from, (const char *)b + from, to - from);
}

/* All but their times and what adds up is the same. */
static bool can_merge(const struct cc_piece *a, const struct cc_piece *b)
{
	if (a->tid != b->tid || a->cls != b->cls || a->depth != b->depth || a->end != b->start ||
	    (a->flags | b->flags) & CC_PC_NESTED)
		return false;
	return same_part(a, b, offsetof(struct cc_piece, tid),
			 offsetof(struct cc_piece, evidence)) &&
	       same_part(a, b, offsetof(struct cc_piece, ustack),
			 offsetof(struct cc_piece, short_ns)) &&
	       same_part(a, b, offsetof(struct cc_piece, short_ns) + sizeof(a->short_ns),
			 sizeof(*a));
}

/* Linux acknowledges late after 40 ms, and a timer's tick or two. Who writes twice and reads waits
 * so long for the acknowledgement of the first write (Nagle). */
#define DELAYED_ACK CC_MS(38)
#define DELAYED_ACK_MOST CC_MS(48)

/* A message that took so long on its way, or that came at its end from an interrupt. */
static void mark_held_back(struct cc_piece *p)
{
	cc_ns len = p->end - p->start;
	bool on_its_way = p->cls == WAIT_TRANSIT;
	bool came = (p->cls == WAIT_NET_RECV || p->cls == WAIT_UPSTREAM) &&
		    p->evidence & CC_EV_BIT(WAKER_IRQ);

	if (len >= DELAYED_ACK && len <= DELAYED_ACK_MOST && (on_its_way || came))
		p->evidence |= CC_EV_BIT(NAGLE);
}

static void mark_asleep(const struct engine *e, struct cc_piece *p)
{
	for (uint32_t i = 0; i < e->asleep.cnt; i++)
		if (p->start < e->asleep.p[i].to && p->end > e->asleep.p[i].from)
			p->evidence |= CC_EV_BIT(SUSPENDED);
}

/* @p is all there is of it. */
static void finish_piece(const struct engine *e, struct cc_piece *p)
{
	mark_asleep(e, p);
	mark_held_back(p);
	p->confidence = evidence_confidence(p->evidence);
}

static void turn_around(struct piece_vec *v)
{
	for (uint32_t i = 0, j = v->cnt; i + 1 < j; i++) {
		struct cc_piece tmp = v->p[i];

		v->p[i] = v->p[--j];
		v->p[j] = tmp;
	}
}

/* Turns the order around, joins equal neighbours. */
static void straighten(const struct engine *e, struct piece_vec *v)
{
	struct cc_piece *last = v->p;

	turn_around(v);
	for (uint32_t i = 1; i < v->cnt; i++) {
		struct cc_piece *p = &v->p[i];

		if (can_merge(last, p)) {
			last->end = p->end;
			last->short_ns += p->short_ns;
			last->evidence |= p->evidence;
			continue;
		}
		finish_piece(e, last++);
		if (last != p)
			*last = *p;
	}
	if (!v->cnt)
		return;
	finish_piece(e, last);
	v->cnt = (uint32_t)(last - v->p) + 1;
}

static void walk_begin(struct walk *w, struct engine *e, const struct req *r)
{
	w->e = e;
	w->r = r;
	w->serving = w->blame = (struct cc_reqid){ 0 };
	w->evidence = w->leaned = w->leaned_open = 0;
	w->out = e->scratch;
	w->out.cnt = 0;
	w->depth = 0;
	w->err = 0;
	w->pieces_max = WALK_PIECES_MAX;
	w->nested_max = WALK_NESTED_MAX;
}

/* Returns the array to the engine; w->out may still be read until the next path. */
static int walk_end(struct walk *w, cc_ns start, cc_ns end)
{
	w->e->scratch = w->out;
	if (w->err)
		return w->err;
	straighten(w->e, &w->out);
	check_level(w->out.p, w->out.cnt, 0, 0, start, end);
	return 0;
}

void path_drop(struct mem *mem, struct cc_request *p)
{
	path_unkeep(mem, p->kept);
	p->kept = NULL;
	p->path_cnt = 0;
	p->path_ok = false;
}

static int keep_path(struct engine *e, struct cc_request *p, const struct piece_vec *v)
{
	struct cc_found found;

	path_drop(&e->mem, p);
	p->path = v->p;
	p->path_cnt = v->cnt;
	p->path_ok = true;
	p->lost_inside = false;
	for (uint32_t i = 0; i < v->cnt; i++)
		p->lost_inside |= (v->p[i].evidence & CC_EV_BIT(LOST)) != 0;
	for (uint32_t i = 0; i < e->losses.cnt; i++)
		p->lost_inside |= e->losses.p[i].from < p->end && e->losses.p[i].to > p->start;
	request_digest(p, &found);
	p->path = NULL;
	p->found = NULL;
	p->kept = path_pack(&e->mem, &e->pack, v->p, v->cnt, p->start, &found);
	if (p->kept)
		return 0;
	path_drop(&e->mem, p);
	return -ENOMEM;
}

/* ---- what is walked ----------------------------------------------------------------------- */

static void walk_seg(struct walk *w, const struct ident_seg *s)
{
	const struct task nobody = { .tid = w->r->pub.tid, .tgid = w->r->pub.tgid };
	const struct task *t = s->task == UINT32_MAX ? &nobody : &w->e->tasks.v.p[s->task];
	struct cc_piece p = walk_piece(w, t, s->lo, s->hi, 0, WAIT_UNKNOWN);

	w->leaned |= 1ull << (t->tid % 64);
	switch (s->kind) {
	case SEG_WALK:
		walk_span(w, s->task, s->lo, s->hi, true, 0);
		return;
	case SEG_SPLIT:
	case SEG_LOOP:
	case SEG_ARRIVAL:
		split_span(w, s);
		return;
	case SEG_QUEUED:
		walk_queued(w, s->task, s->lo, s->hi);
		return;
	case SEG_NO_IDENTITY:
		break;
	case SEG_AMBIGUOUS:
		p.cls = WAIT_AMBIGUOUS;
		break;
	}
	walk_emit(w, &p);
}

int path_of_request(struct engine *e, struct req *r, const struct ident_seg *segs, uint32_t cnt)
{
	struct walk w;
	int err;

	walk_begin(&w, e, r);
	for (uint32_t i = 0; i < cnt; i++) {
		w.evidence = segs[i].evidence;
		w.serving = r->pub.id;
		w.depth = 0;
		if (segs[i].task != UINT32_MAX)
			w.stack[w.depth++] = (struct walk_frame){ .task = segs[i].task };
		walk_seg(&w, &segs[i]);
	}
	if (cnt && segs[0].task != UINT32_MAX) {
		r->pub.tid = e->tasks.v.p[segs[0].task].tid;
		r->pub.tgid = e->tasks.v.p[segs[0].task].tgid;
	}
	err = parts_mark(e, r, &w.out);
	if (!w.err)
		w.err = err;
	err = walk_end(&w, r->pub.start, r->pub.end);
	r->leaned |= w.leaned;
	r->leaned_open |= w.leaned_open;
	return err ? err : keep_path(e, &r->pub, &w.out);
}

static int walk_task(struct walk *w, struct engine *e, uint32_t ti, cc_ns lo, cc_ns hi,
		     uint32_t nested_max)
{
	walk_begin(w, e, NULL);
	w->nested_max = nested_max;
	w->pieces_max = nested_max * (WALK_PIECES_MAX / WALK_NESTED_MAX);
	w->stack[w->depth++] = (struct walk_frame){ .task = ti };
	walk_span(w, ti, lo, hi, false, 0);
	return walk_end(w, lo, hi);
}

int path_of_span(struct engine *e, uint32_t ti, cc_ns lo, cc_ns hi, struct cc_piece **ret,
		 uint32_t *ret_cnt)
{
	struct cc_piece *copy;
	struct walk w;
	int err = walk_task(&w, e, ti, lo, hi, WALK_NESTED_MAX);

	if (err)
		return err;
	copy = malloc(w.out.cnt * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, w.out.p, w.out.cnt * sizeof(*copy));
	*ret = copy;
	*ret_cnt = w.out.cnt;
	return 0;
}

/* From when to when something is known of @t, within the span asked for. */
static void known_span(const struct engine *e, const struct task *t, cc_ns *ret_lo, cc_ns *ret_hi)
{
	cc_ns lo = t->known_from, hi = CC_MIN(t->alive, t->dead);

	if (t->open.now)
		lo = CC_MIN(lo, t->open.out ? t->open.out : t->open.last_in);
	if (t->eps.cnt) {
		lo = CC_MIN(lo, t->eps.p[0].out);
		hi = CC_MAX(hi, t->eps.p[t->eps.cnt - 1].in);
	}
	if (e->span.hi) {
		lo = CC_MAX(lo, e->span.lo);
		hi = CC_MIN(hi, e->span.hi);
	}
	*ret_lo = lo;
	*ret_hi = CC_MAX(lo, hi);
}

/* The request that task @ti was is due. */
static int add_task(struct engine *e, uint32_t ti)
{
	const struct task *t = &e->tasks.v.p[ti];
	cc_ns lo, hi;
	struct cc_reqid id = { t->tid, 0, CC_REQID_TID };
	struct req *r;

	known_span(e, t, &lo, &hi);
	if (lo == CC_NEVER || (e->span.hi && lo >= hi))
		return 0;
	if (task_is_go(t))
		id = (struct cc_reqid){ task_go(&e->tasks, t)->goid, 0, CC_REQID_GOID };
	r = requests_get(&e->reqs, id);
	if (!r)
		return -ENOMEM;
	if (r->told)
		return 0; /* the tid was used twice: the later one is shown */
	r->told = r->computed = true;
	r->pub.start = lo;
	r->pub.end = hi;
	r->pub.tid = r->pub.recv_tid = t->tid;
	r->pub.tgid = t->tgid;
	memcpy(r->pub.rec.comm, t->comm, sizeof(r->pub.rec.comm));
	if (vec_reserve(&e->mem, &e->due, e->due.cnt + 1))
		return -ENOMEM;
	e->due.p[e->due.cnt++] = (struct due){ .r = r, .first = ti };
	return select_note(e, r, CC_NEVER);
}

static int path_of_task(struct engine *e, const struct due *d, uint32_t nested_max)
{
	struct req *r = d->r;
	struct walk w;
	int err = requests_finish(&e->reqs, r);

	e->stats.paths_left_out += !r->pub.weight;
	if (err || e->opts.no_paths || !r->pub.weight || r->pub.start >= r->pub.end ||
	    e->mem.used > e->opts.memory_bytes)
		return err;
	err = walk_task(&w, e, d->first, r->pub.start, r->pub.end, nested_max);
	return err ? err : keep_path(e, &r->pub, &w.out);
}

#define NESTED_LEAST 64u        /* pieces that explain waits, however many tasks there are */
#define NESTED_ALL (1ull << 20) /* of all tasks together */

/* Threads that waited; or the one that is asked for, whatever it did. */
static bool is_wanted(const struct engine *e, const struct task *t)
{
	if (e->span.tid)
		return t->tid == e->span.tid && t->timeline;
	return t->eps.cnt != 0;
}

int path_of_tasks(struct engine *e)
{
	uint32_t tasks = 0, share;
	int err = 0;

	e->due.cnt = e->standings.cnt = 0;
	for (uint32_t i = e->tasks.v.cnt; i-- > 0 && !err;) {
		if (!is_wanted(e, &e->tasks.v.p[i]))
			continue;
		tasks++;
		err = add_task(e, i);
	}
	if (!err)
		err = select_shown_once(e);
	/* half of the budget is for all their paths together, and no more than can be looked at */
	share = (uint32_t)CC_MIN(e->opts.memory_bytes / 2 / sizeof(struct cc_piece), NESTED_ALL) /
		CC_MAX(tasks, 1);
	share = CC_MIN(share, WALK_NESTED_MAX);
	share = CC_MAX(share, NESTED_LEAST);
	for (uint32_t i = 0; i < e->due.cnt && !err; i++)
		err = path_of_task(e, &e->due.p[i], share);
	return err;
}
