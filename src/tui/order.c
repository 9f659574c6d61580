/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the rows on Requests: sorted here so that a key acts at once, kept when frozen. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ui.h"

struct sort_ctx {
	const struct snapshot *s;
	enum snap_sort sort;
	bool ascending;
};

static cc_ns sort_key(const struct snap_request *r, enum snap_sort sort)
{
	switch (sort) {
	case SORT_LATENCY:
		return r->latency_ns;
	case SORT_AGE:
		return r->end;
	case SORT_CONFIDENCE:
		return r->confidence;
	case SORT_UNEXPLAINED:
		return r->unexplained_ns;
	case SORT_DOMINANT:
		return r->dominant.ns;
	case SORT_CPU:
		return snap_group_share(r->class_ns, 'C', r->latency_ns);
	case SORT_RUNQ:
		return snap_group_share(r->class_ns, 'R', r->latency_ns);
	}
	return 0;
}

/* Largest first; ties by the owner's order, so that nothing moves without a reason. */
static int by_key(const void *a, const void *b, void *arg)
{
	const struct sort_ctx *x = arg;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	cc_ns ka = sort_key(&x->s->requests[ia], x->sort);
	cc_ns kb = sort_key(&x->s->requests[ib], x->sort);
	if (ka != kb)
		return (ka > kb) == x->ascending ? 1 : -1;
	return ia > ib ? 1 : ia < ib ? -1 : 0;
}

/* Puts the rows of the frozen order first, in it; returns how many. */
static uint32_t keep_order(struct ui *ui, const struct snapshot *old, bool *taken)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < ui->order_cnt; i++) {
		const struct snap_request *r = NULL;
		if (ui->order[i] < old->request_cnt)
			r = snapshot_find(ui->snap, old->requests[ui->order[i]].id);
		if (!r)
			continue;
		uint32_t at = (uint32_t)(r - ui->snap->requests);
		if (!taken[at])
			ui->order[n++] = at;
		taken[at] = true;
	}
	return n;
}

/* The selected request keeps the selection; one that is gone is shown where it was. */
static void place_selection(struct ui *ui)
{
	struct list_pos *pos = &ui->pos[SCREEN_REQUESTS];
	if (ui->want.selected.kind == CC_REQID_NONE)
		return;
	for (uint32_t i = 0; i < ui->order_cnt; i++)
		if (cc_reqid_eq(ui->snap->requests[ui->order[i]].id, ui->want.selected)) {
			pos->row = (int)i;
			return;
		}
	if (!ui->pin)
		return;
	uint32_t at = CC_MIN((uint32_t)CC_MAX(pos->row, 0), ui->order_cnt);
	memmove(&ui->order[at + 1], &ui->order[at], (ui->order_cnt - at) * sizeof(*ui->order));
	ui->order[at] = ORDER_PIN;
	ui->order_cnt++;
	pos->row = (int)at;
}

/* The requests that speak for their ports, in the order of these. */
static void order_by_port(struct ui *ui)
{
	const struct snapshot *s = ui->snap;
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->port_cnt; i++) {
		const struct snap_request *r = snapshot_find(s, s->ports[i].slow);
		if (r && n < ui->order_cap)
			ui->order[n++] = (uint32_t)(r - s->requests);
	}
	ui->order_cnt = n;
	for (uint32_t i = 0; i < n; i++)
		if (cc_reqid_eq(s->requests[ui->order[i]].id, ui->want.selected))
			ui->pos[SCREEN_REQUESTS].row = (int)i;
}

int ui_order(struct ui *ui, const struct snapshot *old)
{
	const struct snapshot *s = ui->snap;
	struct sort_ctx ctx = { s, ui->want.sort, ui->want.ascending };
	if (s->request_cnt + 1 > ui->order_cap) {
		uint32_t *more = realloc(ui->order, (s->request_cnt + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		ui->order = more;
		ui->order_cap = s->request_cnt + 1;
	}
	if (ui_by_port(ui)) {
		order_by_port(ui);
		return 0;
	}
	uint32_t cnt = s->request_cnt - s->has_span;
	bool *taken = calloc((size_t)s->request_cnt + 1, sizeof(*taken));
	if (!taken)
		return -ENOMEM;
	uint32_t n = old ? keep_order(ui, old, taken) : 0, fresh = n;
	for (uint32_t i = 0; i < cnt; i++)
		if (!taken[i])
			ui->order[n++] = i;
	free(taken);
	qsort_r(ui->order + fresh, n - fresh, sizeof(*ui->order), by_key, &ctx);
	ui->order_cnt = n;
	place_selection(ui);
	return 0;
}
