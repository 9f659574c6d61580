/* SPDX-License-Identifier: Apache-2.0 */
#include "go_task.h"
#include "snap_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "fmt.h"

/* ---- which, in which order ---- */

struct ranked {
	const struct cc_request *r;
	uint64_t key; /* the larger comes first */
	bool pinned;  /* the selected one and those of ports: kept when rows are cut */
};

uint64_t snap_group_share(const cc_ns class_ns[WAIT_CLASS_CNT], char group, cc_ns latency)
{
	double sum = 0;

	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++) {
		if (wait_class_letter(c) == group)
			sum += (double)class_ns[c];
	}
	return latency ? (uint64_t)(sum / (double)latency * 1e6) : 0;
}

static uint64_t sort_key(const struct cc_request *r, enum snap_sort sort)
{
	struct cc_found buf;

	switch (sort) {
	case SORT_LATENCY:
		break;
	case SORT_AGE:
		return UINT64_MAX - r->end; /* the oldest first */
	case SORT_CONFIDENCE:
		return r->confidence;
	case SORT_UNEXPLAINED:
		return r->unexplained_ns;
	case SORT_DOMINANT:
		return request_dominant(r)->ns;
	case SORT_CPU:
		return snap_group_share(request_found(r, &buf)->class_ns, 'C', request_latency(r));
	case SORT_RUNQ:
		return snap_group_share(request_found(r, &buf)->class_ns, 'R', request_latency(r));
	}
	return request_latency(r);
}

static int by_rank(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;

	if (a->key != b->key)
		return a->key > b->key ? -1 : 1;
	if (a->r->end != b->r->end)
		return a->r->end > b->r->end ? -1 : 1;
	if (a->r->id.id != b->r->id.id)
		return a->r->id.id < b->r->id.id ? -1 : 1;
	return a->r->id.ordinal < b->r->id.ordinal ? -1 : a->r->id.ordinal > b->r->id.ordinal;
}

static bool is_asked_for(const struct cc_query *q, struct cc_reqid id)
{
	return (q->selected.kind != CC_REQID_NONE && cc_reqid_eq(id, q->selected)) ||
	       (q->also.kind != CC_REQID_NONE && cc_reqid_eq(id, q->also));
}

static void rank(struct snap_build *b, const struct cc_request *r, struct ranked *ret)
{
	uint64_t key = sort_key(r, b->q->sort);

	*ret = (struct ranked){ .r = r,
				.key = b->q->ascending ? UINT64_MAX - key : key,
				.pinned = is_asked_for(b->q, r->id) };
	for (uint32_t i = 0; i < b->s->port_cnt; i++)
		ret->pinned |= cc_reqid_eq(r->id, b->s->ports[i].slow);
}

/* Requests in flight are rows when they are slow already: a hang must show, a flood of young ones
 * must not. */
static bool is_slow_already(const struct snap_build *b, const struct cc_request *r)
{
	return b->q->all_in_flight || !b->sorted.cnt || request_latency(r) >= b->s->p99_ns;
}

/* Rows in order, cut to what the query wants; those to be kept take the last places then. */
static struct ranked *rank_all(struct snap_build *b, uint32_t *ret_cnt)
{
	uint32_t max = b->q->max_rows ? b->q->max_rows : SNAP_ROWS, cnt = 0;
	const struct cc_request *sel[] = { engine_request(b->e, b->q->selected),
					   engine_request(b->e, b->q->also) };
	bool known[ARRAY_SIZE(sel)] = { false, sel[0] == sel[1] };
	struct ranked *all = malloc(((size_t)b->match.cnt + b->flight.cnt + 2) * sizeof(*all));

	if (!all)
		return NULL;
	for (uint32_t i = 0; i < b->match.cnt; i++)
		rank(b, b->match.p[i], &all[cnt++]);
	for (uint32_t i = 0; i < b->flight.cnt; i++) {
		if (is_slow_already(b, b->flight.p[i]) || is_asked_for(b->q, b->flight.p[i]->id))
			rank(b, b->flight.p[i], &all[cnt++]);
	}
	for (uint32_t i = 0; i < cnt; i++) {
		known[0] |= all[i].r == sel[0];
		known[1] |= all[i].r == sel[1];
	}
	for (size_t k = 0; k < ARRAY_SIZE(sel); k++) {
		if (sel[k] && !known[k]) /* out of the window or the filter: stays */
			rank(b, sel[k], &all[cnt++]);
	}
	qsort(all, cnt, sizeof(*all), by_rank);
	uint32_t last = max;

	for (uint32_t i = cnt; i-- > max;) {
		while (all[i].pinned && last && all[last - 1].pinned)
			last--;
		if (all[i].pinned && last)
			all[--last] = all[i];
	}
	*ret_cnt = CC_MIN(cnt, max);
	return all;
}

/* ---- one row ---- */

static struct snap_dominant show_dominant(struct labels *n, const struct cc_request *r,
					  const struct cc_dominant *d)
{
	cc_ns latency = request_latency(r);

	return (struct snap_dominant){
		.cls = d->cls,
		.ns = d->ns,
		.share = latency ? (double)d->ns / (double)latency : 0,
		.site = labels_site(n, d->ustack),
		.resource = labels_resource(n, d->resource),
		.piece = d->piece,
		.culprit_ns = d->culprit_ns,
	};
}

static void show_piece(struct labels *n, const struct cc_piece *p, struct snap_piece *s)
{
	s->p = *p;
	s->task = labels_task(n, p->tid, p->tgid, p->start);
	s->waker = labels_task(n, p->waker_tid, p->waker_tgid, p->end);
	s->holder = labels_task(n, p->holder_tid, p->holder_tgid, p->end);
	s->occupant = labels_task(n, p->occupant_tid, p->occupant_tgid, p->end);
	s->last = labels_task(n, p->last_tid, 0, p->end);
	s->site = labels_site(n, p->ustack);
	s->waker_site = labels_site(n, p->waker_ustack);
	s->resource = labels_resource(n, p->resource);
	s->for_request = labels_reqid(n, p->for_request);
	s->by_request = labels_reqid(n, p->by_request);
	s->stack = labels_stack(n, p->ustack);
	s->kstack = labels_stack(n, p->kstack);
	s->waker_stack = labels_stack(n, p->waker_ustack);
	s->waker_kstack = labels_stack(n, p->waker_kstack);
	if (p->goid)
		s->task.tid = p->on_tid;
}

/* The deepest level with which a path has no more than @wanted pieces: each level partitions what
 * it explains, so what is shown adds up whichever is the last one. Depth 0 is shown whenever there
 * is room for it, for @most; -1: there is not. */
static int level_that_fits(const struct cc_piece *path, uint32_t cnt, uint32_t wanted,
			   uint32_t most)
{
	uint32_t at[CC_LEAF_DEPTH] = { 0 }, sum = 0, max = CC_MIN(wanted, most);
	int level = 0;

	for (uint32_t i = 0; i < cnt; i++)
		at[CC_MIN(path[i].depth, CC_LEAF_DEPTH - 1u)]++;
	max = CC_MAX(max, CC_MIN(at[0], most));
	if (cnt <= max)
		return UINT16_MAX;
	while (sum + at[level] <= max) /* not all of them fit, so that this ends */
		sum += at[level++];
	return level - 1;
}

/* Piece @idx, or what it explains when what is deeper than @level is left out. */
static uint32_t shown_for(const struct cc_piece *path, uint32_t idx, int level)
{
	while (idx > 0 && path[idx].depth > level)
		idx--;
	return idx;
}

/* One that is counted only. */
static bool is_small(const struct snap_build *b, const struct cc_request *r,
		     const struct cc_piece *p)
{
	return b->q->small_part && piece_ns(p) < request_latency(r) / b->q->small_part;
}

static int add_piece(struct snap_build *b, const struct cc_piece *p, int level)
{
	struct snap_piece *s;

	if (vec_reserve(&b->labels.mem, &b->pieces, b->pieces.cnt + 1))
		return -ENOMEM;
	s = &b->pieces.p[b->pieces.cnt++];
	show_piece(&b->labels, p, s);
	if (p->depth == level)
		s->p.flags &= (uint16_t)~CC_PC_NESTED;
	return 0;
}

static int add_pieces(struct snap_build *b, const struct cc_request *r, const struct cc_piece *path,
		      struct snap_request *row)
{
	uint32_t max = b->q->max_pieces ? b->q->max_pieces : SNAP_PIECES;
	uint32_t left = max > b->pieces_taken ? max - b->pieces_taken : 0, taken = 0;
	uint32_t wanted = b->q->max_of_request ? b->q->max_of_request : left;
	int level = level_that_fits(path, r->path_cnt, wanted, left), err = 0;
	uint32_t dominant = shown_for(path, row->dominant.piece, level);
	uint32_t root = shown_for(path, row->root.piece, level);

	row->first_piece = b->pieces.cnt;
	row->dominant.piece = row->root.piece = 0;
	for (uint32_t i = 0; i < r->path_cnt && !err; i++) {
		if (path[i].depth > level)
			continue;
		taken++;
		if (i == dominant)
			row->dominant.piece = b->pieces.cnt - row->first_piece;
		if (i == root)
			row->root.piece = b->pieces.cnt - row->first_piece;
		if (i != dominant && i != root && is_small(b, r, &path[i]))
			row->pieces_small++;
		else
			err = add_piece(b, &path[i], level);
	}
	b->pieces_taken += taken;
	row->piece_cnt = b->pieces.cnt - row->first_piece;
	row->pieces_left_out = r->path_cnt - taken;
	return err;
}

/* Whom the dominant wait names. */
static void show_people(struct labels *n, const struct cc_request *r, const struct cc_piece *path,
			const struct cc_dominant *d, struct snap_request *row)
{
	row->waker_text = row->holder_text = strpool_add(&n->pool, "-", 1);
	if (!r->path_ok || !r->path_cnt)
		return;
	const struct cc_piece *p = &path[d->piece];
	cc_str waker = labels_waker(n, p), holder = labels_holder(n, p);

	row->waker = labels_task(n, p->waker_tid, p->waker_tgid, p->end);
	row->holder = labels_task(n, p->holder_tid, p->holder_tgid, p->end);
	row->waker_text = waker ? waker : row->waker_text;
	row->holder_text = holder ? holder : row->holder_text;
}

static cc_str show_addr(struct labels *n, const struct cc_addr *a)
{
	char text[FMT_LEN];
	size_t len = fmt_addr(text, sizeof(text), a);

	return strpool_add(&n->pool, text, len);
}

/* Whom it called. What a goroutine calls no vote of threads tells: it is whom its own waits were
 * for, most of all. */
static cc_str show_upstream(struct labels *n, const struct cc_request *r,
			    const struct cc_piece *path)
{
	const struct cc_piece *most = NULL;

	if (r->rec.up_votes > 1)
		return show_addr(n, &r->rec.up_peer);
	if (!tid_is_go(r->tid))
		return 0;
	for (uint32_t i = 0; r->path_ok && i < r->path_cnt; i++) {
		const struct cc_piece *p = &path[i];

		if (p->cls == WAIT_UPSTREAM && p->resource &&
		    p->for_request.kind == CC_REQID_NONE &&
		    (!most || p->end - p->start > most->end - most->start))
			most = p;
	}
	return most ? labels_resource(n, most->resource) : 0;
}

static int show_request(struct snap_build *b, const struct cc_request *r, struct snap_request *row)
{
	struct labels *n = &b->labels;
	const struct cc_piece *path = request_path(r, &b->path);
	struct cc_dominant dominant, root;
	struct cc_found found;

	if (!path)
		return -ENOMEM;
	snap_dominants(n, r, path, &dominant, &root);
	*row = (struct snap_request){
		.id = r->id,
		.id_text = labels_reqid(n, r->id),
		.state = r->state,
		.rec = r->rec,
		.start = r->start,
		.end = r->end,
		.latency_ns = request_latency(r),
		.task = labels_task(n, r->tid, r->tgid, r->end),
		.recv_task = labels_task(n, r->recv_tid, r->tgid, r->start),
		.peer = show_addr(n, &r->rec.peer),
		.up_peer = show_upstream(n, r, path),
		.up_hint = r->rec.up_votes == 1 ? show_addr(n, &r->rec.up_peer) : 0,
		.path_sum_ns = r->path_sum_ns,
		.unexplained_ns = r->unexplained_ns,
		.ambiguous_ns = r->ambiguous_ns,
		.confidence = r->confidence,
		.path_ok = r->path_ok,
		.lost_inside = r->lost_inside,
		.dominant = show_dominant(n, r, &dominant),
		.root = show_dominant(n, r, &root),
	};
	memcpy(row->class_ns, request_found(r, &found)->class_ns, sizeof(row->class_ns));
	show_people(n, r, path, &dominant, row);
	return r->path_ok ? add_pieces(b, r, path, row) : 0;
}

int snap_rows(struct snap_build *b)
{
	uint32_t cnt = 0;
	struct ranked *all = rank_all(b, &cnt);
	struct snap_request *rows = all ? calloc((size_t)cnt + 2, sizeof(*rows)) : NULL;
	int err = rows ? 0 : -ENOMEM;

	/* the selected one first: its path is there whatever the others need */
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < cnt && !err; i++) {
			if (all[i].pinned == (pass == 0))
				err = show_request(b, all[i].r, &rows[i]);
		}
	}
	free(all);
	if (!err && b->q->span) {
		err = show_request(b, b->q->span, &rows[cnt++]);
		b->s->has_span = true;
	}
	if (err) {
		free(rows);
		return err;
	}
	b->s->requests = rows;
	b->s->request_cnt = cnt;
	return 0;
}
