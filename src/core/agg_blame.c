/* SPDX-License-Identifier: Apache-2.0 */
#include "aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "map.h"

struct matrix {
	const struct agg_names *n;
	struct mem mem;
	struct map index; /* hash of victim, culprit, class -> 1 + row; rows decide */
	VEC(struct snap_blame) rows;
};

static cc_str culprit_request(const struct agg_names *n, const struct cc_piece *p)
{
	if (p->by_request.kind != CC_REQID_NONE)
		return n->kind(n->ctx, p->by_request);
	if (p->for_request.kind != CC_REQID_NONE)
		return n->kind(n->ctx, p->for_request);
	return 0;
}

static cc_str other_process(const struct agg_names *n, const struct cc_request *r, uint32_t tid,
			    uint32_t tgid)
{
	return tid && tgid && tgid != r->tgid ? n->process(n->ctx, tid, tgid) : 0;
}

/* From the leaf outwards: the nearest piece that names somebody. */
static cc_str culprit_of(const struct agg_names *n, const struct cc_request *r,
			 const struct leaf_iter *it)
{
	const struct cc_piece *leaf = &it->path[it->leaf];

	for (uint32_t d = CC_MIN(leaf->depth, CC_LEAF_DEPTH - 1u) + 1; d-- > 0;) {
		cc_str who = culprit_request(n, &it->path[it->at[d]]);

		if (who)
			return who;
	}
	cc_str who = other_process(n, r, leaf->tid, leaf->tgid);

	if (!who)
		who = other_process(n, r, leaf->holder_tid, leaf->holder_tgid);
	if (!who)
		who = other_process(n, r, leaf->occupant_tid, leaf->occupant_tgid);
	if (!who)
		who = other_process(n, r, leaf->waker_tid, leaf->waker_tgid);
	return who;
}

static struct snap_blame *row_of(struct matrix *m, cc_str victim, cc_str culprit, uint8_t cls)
{
	uint64_t key = map_mix2((uint64_t)victim << 32 | culprit, cls);
	uint32_t at;

	for (; (at = map_get(&m->index, key)); key++) { /* another row may have this key */
		struct snap_blame *row = &m->rows.p[at - 1];

		if (row->victim == victim && row->culprit == culprit && row->cls == cls)
			return row;
	}
	if (vec_reserve(&m->mem, &m->rows, m->rows.cnt + 1) ||
	    map_put(&m->mem, &m->index, key, m->rows.cnt + 1))
		return NULL;
	m->rows.p[m->rows.cnt] = (struct snap_blame){ victim, culprit, cls, 0 };
	return &m->rows.p[m->rows.cnt++];
}

static int by_total(const void *pa, const void *pb)
{
	const struct snap_blame *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	if (a->victim != b->victim)
		return a->victim < b->victim ? -1 : 1;
	if (a->culprit != b->culprit)
		return a->culprit < b->culprit ? -1 : 1;
	return (int)a->cls - (int)b->cls;
}

static int add_request(struct matrix *m, const struct cc_request *r)
{
	const struct cc_piece *path = r->path_ok ? request_path(r, m->n->path) : NULL;
	struct leaf_iter it;
	cc_str victim = 0;

	if (!path)
		return r->path_ok ? -ENOMEM : 0;
	for (leaf_iter_init(&it, path, r->path_cnt); leaf_iter_next(&it);) {
		cc_str culprit = culprit_of(m->n, r, &it);

		if (!culprit)
			continue;
		if (!victim)
			victim = m->n->kind(m->n->ctx, r->id);
		struct snap_blame *row = row_of(m, victim, culprit, path[it.top].cls);

		if (!row)
			return -ENOMEM;
		row->total_ns += piece_ns(&path[it.leaf]) * request_weight(r);
	}
	return 0;
}

int agg_blame(const struct cc_request *const *r, size_t cnt, uint32_t max_rows,
	      const struct agg_names *n, struct snap_blame **ret, uint32_t *ret_cnt)
{
	struct matrix m = { .n = n };
	int err = vec_reserve(&m.mem, &m.rows, 1);

	for (size_t i = 0; i < cnt && !err; i++)
		err = add_request(&m, r[i]);
	map_done(&m.mem, &m.index);
	if (err) {
		vec_done(&m.mem, &m.rows);
		return err;
	}
	qsort(m.rows.p, m.rows.cnt, sizeof(*m.rows.p), by_total);
	*ret = m.rows.p;
	*ret_cnt = CC_MIN(m.rows.cnt, max_rows);
	return 0;
}
