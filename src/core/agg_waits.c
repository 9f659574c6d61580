/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "map.h"

enum { COL_SITE, COL_RESOURCE, COL_WAKER, COL_HOLDER, COL_CNT };

/* A value that more than half of the weight agrees on, found in one pass (Boyer and Moore, "MJRTY",
 * 1991) and proven in a second, over what was told. */
struct majority {
	cc_str value;
	cc_ns weight; /* of the first pass */
	cc_ns agree;  /* counted in the second */
};

struct row {
	uint8_t cls;
	struct majority col[COL_CNT];
	cc_ns total;
	cc_ns what_if;
	uint32_t herd;
	double conf_sum;         /* confidence x ns */
	uint32_t requests, sums; /* sums: in sums[], one for each request seen */
	uint32_t sum;            /* its latest there */
	uint32_t told;           /* 1 + index of its latest there */
	const struct cc_request *last;
};

struct sum { /* of one request in one row */
	uint32_t row, weight;
	cc_ns ns;
};

struct told { /* pieces of a row that say the same */
	uint32_t row;
	cc_str col[COL_CNT];
	cc_ns ns;
};

struct table {
	const struct agg_waits_opts *o;
	const struct agg_names *n;
	struct mem mem;
	struct map index; /* class and group's name -> 1 + row */
	VEC(struct row) rows;
	VEC(struct sum) sums;
	struct map told_of; /* hash of what is said -> 1 + index */
	VEC(struct told) told;
};

static cc_str column(const struct agg_names *n, unsigned int col, const struct cc_piece *p)
{
	switch (col) {
	case COL_SITE:
		return n->site(n->ctx, p);
	case COL_RESOURCE:
		return n->resource(n->ctx, p);
	case COL_WAKER:
		return n->waker(n->ctx, p);
	default:
		return n->holder(n->ctx, p);
	}
}

/* The row of @p: by its class and one column, or by the class alone. */
static struct row *row_of(struct table *t, const struct cc_piece *p)
{
	static const int columns[] = { [GROUP_CLASS] = -1,
				       [GROUP_SITE] = COL_SITE,
				       [GROUP_RESOURCE] = COL_RESOURCE,
				       [GROUP_WAKER] = COL_WAKER,
				       [GROUP_HOLDER] = COL_HOLDER };
	int col = (size_t)t->o->group < ARRAY_SIZE(columns) ? columns[t->o->group] : -1;
	cc_str name = col >= 0 && p->cls != WAIT_UNKNOWN ? column(t->n, (unsigned int)col, p) : 0;
	uint64_t key = (uint64_t)p->cls << 32 | name;
	uint32_t at = map_get(&t->index, key);

	if (at)
		return &t->rows.p[at - 1];
	if (vec_reserve(&t->mem, &t->rows, t->rows.cnt + 1) ||
	    map_put(&t->mem, &t->index, key, t->rows.cnt + 1))
		return NULL;
	t->rows.p[t->rows.cnt] = (struct row){ .cls = p->cls };
	return &t->rows.p[t->rows.cnt++];
}

/* A piece as the rows see it: unknown, without names, below the wanted confidence. */
static const struct cc_piece *seen_as(const struct table *t, const struct cc_piece *p,
				      struct cc_piece *buf)
{
	if (p->confidence >= t->o->min_confidence)
		return p;
	*buf = (struct cc_piece){ .start = p->start, .end = p->end, .cls = WAIT_UNKNOWN };
	return buf;
}

/* How much of @p would go with it: not what another one, begun together with whom it waited for,
 * took as well. */
static cc_ns saved(const struct cc_piece *p, cc_ns sibling_end)
{
	return p->end - CC_MAX(p->start, CC_MIN(p->end, sibling_end));
}

static void vote(struct majority *m, cc_str v, cc_ns weight)
{
	if (m->value == v) {
		m->weight += weight;
	} else if (m->weight < weight) {
		m->value = v;
		m->weight = weight - m->weight;
	} else {
		m->weight -= weight;
	}
}

static bool says_the_same(const struct told *a, const struct told *b)
{
	return a->row == b->row && !memcmp(a->col, b->col, sizeof(a->col));
}

/* What @p says, in @row: as the piece of this row before it, as a rule. */
static int tell(struct table *t, struct row *row, const struct cc_piece *p, cc_ns ns)
{
	struct told told = { .row = (uint32_t)(row - t->rows.p) };
	uint64_t key = told.row;
	uint32_t at = row->told;

	for (unsigned int c = 0; c < COL_CNT; c++)
		told.col[c] = column(t->n, c, p);
	if (!at || !says_the_same(&t->told.p[at - 1], &told)) {
		for (unsigned int c = 0; c < COL_CNT; c++)
			key = map_mix2(key, told.col[c]);
		while ((at = map_get(&t->told_of, key)) &&
		       !says_the_same(&t->told.p[at - 1], &told))
			key++; /* another one has this key */
	}
	if (!at) {
		if (vec_reserve(&t->mem, &t->told, t->told.cnt + 1) ||
		    map_put(&t->mem, &t->told_of, key, t->told.cnt + 1))
			return -ENOMEM;
		t->told.p[t->told.cnt++] = told;
		at = t->told.cnt;
	}
	t->told.p[at - 1].ns += ns;
	row->told = at;
	return 0;
}

static int add(struct table *t, const struct cc_request *r, const struct cc_piece *piece,
	       const struct cc_piece *counted, cc_ns sibling_end)
{
	cc_ns ns = piece_ns(counted);
	struct cc_piece buf;
	const struct cc_piece *p = seen_as(t, piece, &buf);
	struct row *row = row_of(t, p);

	if (!row)
		return -ENOMEM;
	if (row->last != r) {
		if (vec_reserve(&t->mem, &t->sums, t->sums.cnt + 1))
			return -ENOMEM;
		row->last = r;
		row->sum = t->sums.cnt;
		row->requests += request_weight(r);
		row->sums++;
		t->sums.p[t->sums.cnt++] = (struct sum){ .row = (uint32_t)(row - t->rows.p),
							 .weight = request_weight(r) };
	}
	t->sums.p[row->sum].ns += ns;
	ns *= request_weight(r);
	row->total += ns;
	row->what_if += saved(counted, sibling_end) * request_weight(r);
	row->conf_sum += (double)ns * p->confidence;
	row->herd = CC_MAX(row->herd, p->herd);
	return tell(t, row, p, ns);
}

/* Both passes of each majority. */
static void prove(struct table *t)
{
	for (uint32_t i = 0; i < t->told.cnt; i++) {
		const struct told *told = &t->told.p[i];

		for (unsigned int c = 0; c < COL_CNT; c++)
			vote(&t->rows.p[told->row].col[c], told->col[c], told->ns);
	}
	for (uint32_t i = 0; i < t->told.cnt; i++) {
		const struct told *told = &t->told.p[i];
		struct row *row = &t->rows.p[told->row];

		for (unsigned int c = 0; c < COL_CNT; c++)
			if (told->col[c] == row->col[c].value)
				row->col[c].agree += told->ns;
	}
}

static int add_first(struct table *t, const struct cc_request *r)
{
	const struct cc_piece *p;
	struct path_iter it;
	int err = 0;

	for (path_iter_init(&it, r); !err && (p = path_iter_next(&it));)
		if (p->depth == 0)
			err = add(t, r, p, p, p->sibling_end);
	return err;
}

static int add_root_causes(struct table *t, const struct cc_request *r)
{
	const struct cc_piece *path = request_path(r, t->n->path);
	struct leaf_iter it;
	int err = 0;

	if (!path)
		return -ENOMEM;
	for (leaf_iter_init(&it, path, r->path_cnt); !err && leaf_iter_next(&it);)
		err = add(t, r, &path[it.known], &path[it.leaf], path[it.top].sibling_end);
	return err;
}

static int add_pieces(struct table *t, const struct cc_request *r)
{
	if (!r->path_ok)
		return 0;
	return t->o->root_causes ? add_root_causes(t, r) : add_first(t, r);
}

static int by_row_and_ns(const void *pa, const void *pb)
{
	const struct sum *a = pa, *b = pb;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static int by_total(const void *pa, const void *pb)
{
	const struct snap_wait *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	if (a->cls != b->cls)
		return a->cls < b->cls ? -1 : 1;
	return a->site != b->site ? (a->site < b->site ? -1 : 1) : 0;
}

static cc_str agreed(const struct row *row, unsigned int col)
{
	return row->col[col].agree > row->total / 2 ? row->col[col].value : 0;
}

/* The @rank-th shortest, from 1, of those that the sums stand for. */
static cc_ns sum_at_rank(const struct sum *sums, uint64_t rank)
{
	uint64_t seen = sums->weight;

	while (seen < rank)
		seen += (++sums)->weight;
	return sums->ns;
}

static void fill_rows(struct table *t, cc_ns latency, struct snap_wait *out)
{
	uint32_t at = 0;

	qsort(t->sums.p, t->sums.cnt, sizeof(*t->sums.p), by_row_and_ns);
	for (uint32_t i = 0; i < t->rows.cnt; i++) {
		const struct row *row = &t->rows.p[i];
		const struct sum *sums = &t->sums.p[at];

		at += row->sums;
		out[i] = (struct snap_wait){
			.cls = row->cls,
			.site = agreed(row, COL_SITE),
			.resource = agreed(row, COL_RESOURCE),
			.waker = agreed(row, COL_WAKER),
			.holder = agreed(row, COL_HOLDER),
			.total_ns = row->total,
			.p50_ns = sum_at_rank(sums, (row->requests + 1) / 2),
			.p99_ns = sum_at_rank(sums, (99 * (uint64_t)row->requests + 99) / 100),
			.requests = row->requests,
			.share = latency ? (double)row->total / (double)latency : 0,
			.confidence =
				row->total ? (uint8_t)(row->conf_sum / (double)row->total) : 0,
			.what_if_ns = row->what_if,
			.herd = row->herd,
		};
	}
	qsort(out, t->rows.cnt, sizeof(*out), by_total);
}

int agg_waits(const struct cc_request *const *r, size_t cnt, const struct agg_waits_opts *o,
	      const struct agg_names *n, struct snap_wait **ret, uint32_t *ret_cnt)
{
	struct table t = { .o = o, .n = n };
	struct snap_wait *out = NULL;
	cc_ns latency = 0;
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		latency += request_latency(r[i]) * request_weight(r[i]);
		err = add_pieces(&t, r[i]);
	}
	prove(&t);
	if (!err) {
		out = calloc((size_t)t.rows.cnt + 1, sizeof(*out));
		err = out ? 0 : -ENOMEM;
	}
	if (!err) {
		if (t.rows.cnt)
			fill_rows(&t, latency, out);
		*ret = out;
		*ret_cnt = CC_MIN(t.rows.cnt, o->max_rows);
	}
	map_done(&t.mem, &t.index);
	map_done(&t.mem, &t.told_of);
	vec_done(&t.mem, &t.rows);
	vec_done(&t.mem, &t.sums);
	vec_done(&t.mem, &t.told);
	return err;
}
