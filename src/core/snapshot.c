/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
#include "snap_build.h"
#include "verdict.h"

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	free((void *)s->targets);
	free((void *)s->notes);
	free((void *)s->requests);
	free((void *)s->pieces);
	free((void *)s->stacks);
	free((void *)s->frames);
	free((void *)s->mappings);
	free((void *)s->lines);
	free((void *)s->states);
	free((void *)s->waits);
	for (int root = 0; root < 2; root++)
		for (int g = 0; g < SNAP_GROUPS; g++)
			free((void *)s->slow_waits[root][g].rows);
	free((void *)s->blame);
	free((void *)s->edges);
	free((void *)s->shared);
	free((void *)s->wait_groups);
	free((void *)s->wait_members);
	free((void *)s->slow);
	free((void *)s->threads);
	free((void *)s->ports);
	free((void *)s->losses);
	free((void *)s->outside);
	free((void *)s->strings);
	free(s);
}

const char *snapshot_str(const struct snapshot *s, cc_str str)
{
	return s->strings && str < s->string_bytes ? s->strings + str : "";
}

const struct snap_request *snapshot_find(const struct snapshot *s, struct cc_reqid id)
{
	for (uint32_t i = 0; i < s->request_cnt; i++) {
		if (cc_reqid_eq(s->requests[i].id, id))
			return &s->requests[i];
	}
	return NULL;
}

/* ---- the trace as a whole ---- */

static int show_targets(struct snap_build *b)
{
	struct engine_target t;
	uint32_t cnt = 0;

	while (engine_target_at(b->e, cnt, &t))
		cnt++;
	struct snap_target *all = calloc((size_t)cnt + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt && engine_target_at(b->e, i, &t); i++) {
		const char *comm = t.comm ? t.comm : "";

		all[i].task = (struct snap_task){ .tid = t.tgid,
						  .tgid = t.tgid,
						  .comm = strpool_add(&b->labels.pool, comm,
								      strnlen(comm, CC_COMM_LEN)) };
		all[i].followed = t.followed;
		b->s->followed_cnt += t.followed;
	}
	b->s->targets = all;
	b->s->target_cnt = cnt;
	b->s->target = all[0].task;
	return 0;
}

static int show_notes(struct snap_build *b)
{
	const char *text = engine_host(b->e);
	uint32_t cnt = 0;

	b->s->host = text ? strpool_add(&b->labels.pool, text, strlen(text)) : 0;
	while (engine_note_at(b->e, cnt))
		cnt++;
	cc_str *all = calloc((size_t)cnt + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt; i++) {
		text = engine_note_at(b->e, i);
		all[i] = strpool_add(&b->labels.pool, text, strlen(text));
	}
	b->s->notes = all;
	b->s->note_cnt = cnt;
	return 0;
}

static void set_window(struct snap_build *b)
{
	const struct engine_stats *st = engine_stats(b->e);
	struct snapshot *s = b->s;
	cc_ns at = st->watermark_ns ? st->watermark_ns : st->last_ns;

	s->stats = *st;
	s->first_ns = st->first_ns;
	s->last_ns = st->last_ns;
	s->realtime_off_ns = st->realtime_off_ns;
	b->hi = b->q->view_ns ? b->q->view_ns : at;
	b->lo = CC_MIN(st->first_ns, b->hi);
	if (b->q->window_ns && b->hi - b->lo > b->q->window_ns)
		b->lo = b->hi - b->q->window_ns;
	s->now_ns = b->hi;
	s->window_ns = b->hi - b->lo;
}

/* Spans less than this apart are shown as one. */
#define LOSS_GAP CC_S(1)

static int show_losses(struct snap_build *b)
{
	struct snap_loss next;
	uint32_t cnt = 0, out = 0;

	while (engine_loss_at(b->e, cnt, &next.from, &next.to))
		cnt++;
	struct snap_loss *all = calloc((size_t)cnt + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < cnt && engine_loss_at(b->e, i, &next.from, &next.to); i++) {
		struct snap_loss *last = out ? &all[out - 1] : NULL;

		if (last && next.from <= last->to + LOSS_GAP && next.to + LOSS_GAP >= last->from) {
			last->from = CC_MIN(last->from, next.from);
			last->to = CC_MAX(last->to, next.to);
		} else {
			all[out++] = next;
		}
	}
	b->s->losses = all;
	b->s->loss_cnt = out;
	return 0;
}

/* ---- many requests ---- */

static int show_waits(struct snap_build *b)
{
	struct agg_waits_opts o = {
		.group = b->q->group,
		.root_causes = b->q->root_causes,
		.min_confidence = b->q->min_confidence,
		.max_rows = SNAP_WAITS,
	};
	struct agg_names names = labels_for_aggregate(&b->labels, &b->path);
	struct snap_wait *waits;
	struct snap_blame *blame;
	int err = agg_waits(b->match.p, b->match.cnt, &o, &names, &waits, &b->s->wait_cnt);

	if (err)
		return err;
	b->s->waits = waits;
	err = agg_blame(b->match.p, b->match.cnt, SNAP_WAITS, &names, &blame, &b->s->blame_cnt);
	if (err)
		return err;
	b->s->blame = blame;
	return 0;
}

static int show_graph(struct snap_build *b)
{
	struct agg_names names = labels_for_aggregate(&b->labels, &b->path);
	struct agg_graph g;
	int err = agg_graph(b->match.p, b->match.cnt, SNAP_WAITS, &names, &g);

	if (err)
		return err;
	b->s->edges = g.edges;
	b->s->edge_cnt = g.edge_cnt;
	b->s->wait_groups = g.groups;
	b->s->wait_group_cnt = g.group_cnt;
	b->s->wait_members = g.members;
	b->s->wait_member_cnt = g.member_cnt;
	b->s->shared = g.shared;
	b->s->shared_cnt = g.shared_cnt;
	b->s->false_wakes = g.false_wakes;
	return 0;
}

/* What most of the time of class @cls in slow requests agrees on. */
static int slow_detail(struct snap_build *b, unsigned int cls, struct verdict_slow *ret)
{
	struct agg_range slow = agg_slow(&b->sorted);
	struct agg_waits_opts o = { .group = GROUP_CLASS, .max_rows = WAIT_CLASS_CNT };
	struct agg_names names = labels_for_aggregate(&b->labels, &b->path);
	cc_ns roots[WAIT_CLASS_CNT] = { 0 }, all = 0;
	struct snap_wait *rows;
	uint32_t cnt;
	int err = agg_waits(b->sorted.r + slow.from, slow.to - slow.from, &o, &names, &rows, &cnt);

	if (err)
		return err;
	*ret = (struct verdict_slow){ .cls = (uint8_t)cls, .root_cls = (uint8_t)cls };
	for (uint32_t i = 0; i < cnt; i++) {
		if (rows[i].cls != cls)
			continue;
		ret->resource = rows[i].resource;
		ret->site = rows[i].site;
		ret->holder = rows[i].holder;
		ret->waker = rows[i].waker;
	}
	free(rows);
	for (size_t i = slow.from; i < slow.to; i++) {
		const struct cc_request *r = b->sorted.r[i];
		const struct cc_dominant *first = request_dominant(r), *root = request_root(r);

		if (!r->path_ok || first->cls != cls || root->cls >= WAIT_CLASS_CNT)
			continue;
		roots[root->cls] += first->ns;
		all += first->ns;
	}
	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++) {
		if (roots[c] > all / 2)
			ret->root_cls = (uint8_t)c;
	}
	return 0;
}

static int show_slow(struct snap_build *b, struct verdict_slow *ret_detail)
{
	struct snap_slow_typical *rows = calloc(WAIT_CLASS_CNT, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	b->s->slow = rows;
	b->s->slow_cnt = agg_slow_typical(&b->sorted, rows);
	return b->s->slow_cnt ? slow_detail(b, rows[0].cls, ret_detail) : 0;
}

static int show_slow_tables(struct snap_build *b)
{
	struct agg_range slow = agg_slow(&b->sorted);
	const struct cc_request *const *r =
		(const struct cc_request *const *)b->sorted.r + slow.from;
	struct agg_names names = labels_for_aggregate(&b->labels, &b->path);
	struct agg_waits_opts o = { .min_confidence = b->q->min_confidence,
				    .max_rows = SNAP_WAITS };
	int err = 0;

	if (!b->q->slow_tables)
		return 0;
	b->s->has_slow_tables = true;
	for (size_t i = 0; i < slow.to - slow.from; i++)
		b->s->slow_requests += request_weight(r[i]);
	for (unsigned int at = 0; at < 2 * SNAP_GROUPS && !err; at++) {
		struct snap_wait_table *t = &b->s->slow_waits[at / SNAP_GROUPS][at % SNAP_GROUPS];
		struct snap_wait *rows = NULL;

		o.root_causes = at >= SNAP_GROUPS;
		o.group = (enum snap_group)(at % SNAP_GROUPS);
		err = agg_waits(r, slow.to - slow.from, &o, &names, &rows, &t->cnt);
		t->rows = rows;
	}
	return err;
}

/* ---- all of it ---- */

/* The sentences read the snapshot, so it lends itself the pool's strings for the time being. */
static void show_verdicts(struct snap_build *b, const struct verdict_slow *slow)
{
	struct strpool *pool = &b->labels.pool;
	struct snapshot *s = b->s;
	char text[VERDICT_LEN];
	size_t len;

	for (uint32_t i = 0; i <= s->request_cnt; i++) {
		struct snap_request *row = (struct snap_request *)&s->requests[i];

		s->strings = pool->bytes;
		s->string_bytes = pool->len;
		if (i == s->request_cnt) {
			len = verdict_window(s, slow, text, sizeof(text));
			s->verdict = strpool_add(pool, text, len);
		} else {
			len = verdict_request(s, row, text, sizeof(text));
			row->verdict = strpool_add(pool, text, len);
		}
	}
	s->strings = NULL;
	s->string_bytes = 0;
}

static int build(struct snap_build *b)
{
	struct verdict_slow slow = { 0 };
	struct labels *n = &b->labels;
	int err;

	labels_init(n, b->e);
	set_window(b);
	if (b->q->filter) {
		const char *text = filter_text(b->q->filter);

		b->s->filter_text = strpool_add(&n->pool, text, strlen(text));
	}
	if (b->q->status)
		b->s->runtime.status = strpool_add(&n->pool, b->q->status, strlen(b->q->status));
	if ((err = show_targets(b)) || (err = show_notes(b)) || (err = snap_collect(b)) ||
	    (err = snap_ports(b)) || (err = snap_rows(b)) || (err = show_waits(b)) ||
	    (err = show_graph(b)) || (err = show_slow(b, &slow)) || (err = show_slow_tables(b)) ||
	    (err = snap_threads(b)) || (err = snap_outside(b)) || (err = show_losses(b)) ||
	    (err = snap_lines(b)))
		return err;
	b->s->pieces = take_ptr(b->pieces.p);
	b->s->piece_cnt = b->pieces.cnt;
	b->s->stacks = take_ptr(n->stacks.p);
	b->s->stack_cnt = n->stacks.cnt;
	b->s->frames = take_ptr(n->frames.p);
	b->s->frame_cnt = n->frames.cnt;
	b->s->mappings = take_ptr(n->mappings.p);
	b->s->mapping_cnt = n->mappings.cnt;
	show_verdicts(b, &slow);
	err = labels_err(n);
	if (err)
		return err;
	b->s->strings = strpool_take(&n->pool, &b->s->string_bytes);
	return b->s->strings ? 0 : -ENOMEM;
}

int snapshot_build(const struct engine *e, const struct cc_query *q, struct snapshot **ret)
{
	struct snap_build b = { .e = e, .q = q, .s = calloc(1, sizeof(*b.s)) };
	int err = b.s ? build(&b) : -ENOMEM;

	vec_done(&b.labels.mem, &b.done);
	vec_done(&b.labels.mem, &b.match);
	vec_done(&b.labels.mem, &b.flight);
	vec_done(&b.labels.mem, &b.pieces);
	path_buf_done(&b.path);
	agg_sorted_done(&b.sorted);
	labels_done(&b.labels);
	if (err) {
		snapshot_free(b.s);
		return err;
	}
	*ret = b.s;
	return 0;
}
