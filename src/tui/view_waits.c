/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: where the time of all requests of the window went, in groups; slow against typical. */
#include <stdlib.h>
#include <string.h>

#include "view.h"

static const char *group_name(const struct ui *ui)
{
	static const char *const names[] = { "class", "site", "resource", "waker", "holder" };
	return ui->blame ? "blame" : names[ui->want.group % ARRAY_SIZE(names)];
}

static int waits_rows(const struct ui *ui)
{
	if (!ui->snap)
		return 0;
	return (int)(ui->blame ? ui->snap->blame_cnt : ui->snap->wait_cnt);
}

static int waits_body(const struct ui *ui, const struct layout *l)
{
	(void)ui;
	return CC_MAX(l->body_h - 2, 1);
}

/* What tells a row from the others in this grouping; by class, the first that all of it share. */
static const char *wait_label(const struct ui *ui, const struct snap_wait *w)
{
	const cc_str any[] = { w->resource, w->site, w->holder, w->waker };
	switch (ui->want.group) {
	case GROUP_SITE:
		return snapshot_str(ui->snap, w->site);
	case GROUP_RESOURCE:
		return snapshot_str(ui->snap, w->resource);
	case GROUP_WAKER:
		return snapshot_str(ui->snap, w->waker);
	case GROUP_HOLDER:
		return snapshot_str(ui->snap, w->holder);
	case GROUP_CLASS:
		break;
	}
	for (size_t i = 0; i < ARRAY_SIZE(any); i++)
		if (*snapshot_str(ui->snap, any[i]))
			return snapshot_str(ui->snap, any[i]);
	return "";
}

static void draw_share(struct canvas *c, int x, int y, int w, double share, style st)
{
	int n = (int)(CC_MAX(0.0, CC_MIN(share, 1.0)) * w + 0.5);
	canvas_fill(c, x, y, n, st, 0x2588);
	canvas_fill(c, x + n, y, w - n, ROLE_DIV | CELL_DIM, 0xb7);
}

struct wait_cols {
	int cls_w, label_x, label_w, total_x, req_x, p50_x, p99_x, share_x, share_w, conf_x, if_x,
		slow_x;
};

/* Right to left: the label gets what is left. Narrow screens lose what-if, bar, p50. */
static struct wait_cols place(int w)
{
	w = CC_MIN(w, 150); /* figures far from what they are of are hard to read */
	struct wait_cols p = { .cls_w = w < 100 ? 11 : 13 };
	int x = w - 1;
	p.if_x = w >= 90 ? (x -= 9) : 0;
	p.slow_x = w >= 110 ? (x -= 9) : 0;
	p.conf_x = w >= 60 ? (x -= 6) : 0;
	p.share_w = w >= 100 ? 14 : w >= 70 ? 4 : 0;
	x -= p.share_w + 6;
	p.share_x = x;
	p.p99_x = x -= 8;
	p.p50_x = w >= 60 ? (x -= 8) : 0;
	p.req_x = w >= 50 ? (x -= 7) : 0;
	p.total_x = x -= w >= 100 ? 9 : 8;
	p.label_x = 4 + p.cls_w;
	p.label_w = CC_MAX(x - p.label_x - 1, 0);
	if (p.label_w < 6) { /* nothing could be read there */
		p.cls_w += p.label_w + 1;
		p.label_w = 0;
	}
	return p;
}

/* How much more of this class a slow request has than a typical one. */
static void draw_slower(struct canvas *c, const struct snapshot *s, unsigned int cls, int x, int y)
{
	for (uint32_t i = 0; i < s->slow_cnt; i++) {
		const struct snap_slow_typical *t = &s->slow[i];
		int64_t delta = (int64_t)t->slow_ns - (int64_t)t->typical_ns;
		if (t->cls == cls)
			canvas_right(c, x, y, 8, i == 0 ? ROLE_HI : ROLE_INACTIVE,
				     text_delta(delta).s);
	}
}

static void draw_wait(const struct ui *ui, struct canvas *c, const struct snap_wait *w, int y)
{
	struct wait_cols p = place(c->w);
	canvas_fit(c, 3, y, p.cls_w, style_wait(w->cls), wait_class_name(w->cls));
	canvas_pan(c, p.label_x, y, p.label_w, ROLE_FG, wait_label(ui, w), ui->pan);
	canvas_right(c, p.total_x, y, 7, ROLE_FG | CELL_BOLD, text_dur(w->total_ns).s);
	if (p.req_x)
		canvas_right(c, p.req_x, y, 6, ROLE_FG, text_count_in(w->requests, 6).s);
	if (p.p50_x)
		canvas_right(c, p.p50_x, y, 7, ROLE_FG, text_dur(w->p50_ns).s);
	canvas_right(c, p.p99_x, y, 7, ROLE_FG, text_dur(w->p99_ns).s);
	draw_share(c, p.share_x, y, p.share_w, w->share, style_wait(w->cls));
	canvas_right(c, p.share_x + p.share_w + 1, y, 4, ROLE_FG, text_percent(w->share).s);
	if (p.conf_x && wait_class_unexplained(w->cls)) /* nothing is claimed */
		canvas_text(c, p.conf_x, y, 5, ROLE_INACTIVE, "-");
	else if (p.conf_x)
		canvas_text(c, p.conf_x, y, 5, style_conf(w->confidence),
			    text_conf(w->confidence).s);
	if (p.slow_x && ui->want.group == GROUP_CLASS)
		draw_slower(c, ui->snap, w->cls, p.slow_x, y);
	if (p.if_x && w->what_if_ns)
		canvas_right(c, p.if_x, y, 8, ROLE_INACTIVE, text_dur(w->what_if_ns).s);
}

struct blame_cols {
	int who_w, cls_w, why_x, why_w;
};

static struct blame_cols place_blame(int w)
{
	struct blame_cols p = { .cls_w = w < 60 ? 5 : 13 };
	p.who_w = (w - p.cls_w - 16) / 2;
	p.why_x = 5 + p.who_w + p.cls_w;
	p.why_w = w - p.why_x - 11;
	return p;
}

static void draw_titles(const struct ui *ui, struct canvas *c, int y)
{
	struct wait_cols p = place(c->w);
	char by[32];
	if (ui->blame) {
		canvas_text(c, 3, y, 20, ROLE_TITLE, "WHO WAITED");
		canvas_text(c, place_blame(c->w).why_x, y, 20, ROLE_TITLE, "BECAUSE OF");
		canvas_right(c, c->w - 10, y, 9, ROLE_TITLE, "TOTAL");
		return;
	}
	snprintf(by, sizeof(by), "BY %s%s", group_name(ui), ui->want.root_causes ? ", root" : "");
	canvas_text(c, 3, y, 13, ROLE_TITLE, "CLASS");
	canvas_cut(c, p.label_x, y, p.label_w, ROLE_HI, by);
	canvas_right(c, p.total_x, y, 7, ROLE_TITLE, "TOTAL");
	if (p.req_x)
		canvas_right(c, p.req_x, y, 6, ROLE_TITLE, "REQ");
	if (p.p50_x)
		canvas_right(c, p.p50_x, y, 7, ROLE_TITLE, "P50");
	canvas_right(c, p.p99_x, y, 7, ROLE_TITLE, "P99");
	canvas_right(c, p.share_x, y, p.share_w + 5, ROLE_TITLE, p.share_w ? "SHARE%" : "%");
	if (p.conf_x)
		canvas_text(c, p.conf_x, y, 5, ROLE_TITLE, "CONF");
	if (p.slow_x && ui->want.group == GROUP_CLASS)
		canvas_right(c, p.slow_x, y, 8, ROLE_TITLE, "SLOW +");
	if (p.if_x)
		canvas_right(c, p.if_x, y, 8, ROLE_TITLE, "SAVES ≤");
}

static void draw_blame(struct canvas *c, const struct snapshot *s, const struct snap_blame *b,
		       int y, int pan)
{
	struct blame_cols p = place_blame(c->w);
	canvas_pan(c, 3, y, p.who_w, ROLE_FG, snapshot_str(s, b->victim), pan);
	canvas_fit(c, 4 + p.who_w, y, p.cls_w, style_wait(b->cls), wait_class_name(b->cls));
	canvas_pan(c, p.why_x, y, p.why_w, ROLE_FG, snapshot_str(s, b->culprit), pan);
	canvas_right(c, c->w - 10, y, 9, ROLE_FG | CELL_BOLD, text_dur(b->total_ns).s);
}

/* "slow against typical: lock +41.0ms  upstream +0.2ms", largest first as the owner gave them. */
static void draw_slow(struct canvas *c, const struct snapshot *s, int y)
{
	struct pen p = { c, 1, y, c->w };
	pen_put(&p, ROLE_INACTIVE, "slow against typical  ");
	for (uint32_t i = 0; i < s->slow_cnt; i++) {
		const struct snap_slow_typical *t = &s->slow[i];
		int64_t delta = (int64_t)t->slow_ns - (int64_t)t->typical_ns;
		int64_t first = (int64_t)s->slow[0].slow_ns - (int64_t)s->slow[0].typical_ns;
		if (llabs(delta) * 100 < llabs(first)) /* as always */
			continue;
		struct text d = text_delta(delta);
		const char *name = wait_class_name(t->cls);
		if (p.x + canvas_width(name) + canvas_width(d.s) + 3 > p.end)
			return;
		pen_printf(&p, style_wait(t->cls), "%s ", name);
		pen_printf(&p, ROLE_FG, "%s  ", d.s);
	}
}

static void waits_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snapshot *s = ui->snap;
	int rows = waits_rows(ui), top = ui->pos[SCREEN_WAITS].top, body = waits_body(ui, l);
	draw_head(ui, c, l);
	draw_titles(ui, c, l->cols_y);
	if (!rows && !(s && s->total_cnt))
		draw_empty(ui, c, l->body_y);
	else if (!rows)
		canvas_text(c, 3, l->body_y, c->w - 4, ROLE_INACTIVE, "nothing in this grouping");
	for (int i = 0; i < body && top + i < rows; i++) {
		int y = l->body_y + i;
		if (ui->blame)
			draw_blame(c, s, &s->blame[top + i], y, ui->pan);
		else
			draw_wait(ui, c, ui_wait(ui, top + i), y);
		if (ui_row_marked(ui, SCREEN_WAITS, top + i))
			canvas_fill(c, 2, y, 1, ROLE_HI, '*');
		if (top + i == ui->pos[SCREEN_WAITS].row)
			draw_selected(c, 1, y, '>');
	}
	if (s && s->slow_cnt)
		draw_slow(c, s, l->status_y - 1);
}

static bool waits_match(const struct ui *ui, int row, const char *needle)
{
	const struct snapshot *s = ui->snap;
	if (ui->blame)
		return text_has(snapshot_str(s, s->blame[row].victim), needle) ||
		       text_has(snapshot_str(s, s->blame[row].culprit), needle);
	const struct snap_wait *w = ui_wait(ui, row);
	return w &&
	       (text_has(wait_class_name(w->cls), needle) || text_has(wait_label(ui, w), needle));
}

static uint64_t waits_key(const struct ui *ui, int row)
{
	const struct snapshot *s = ui->snap;
	if (ui->blame) {
		const struct snap_blame *b = &s->blame[row];
		return view_hash(view_hash(b->cls, snapshot_str(s, b->victim)),
				 snapshot_str(s, b->culprit));
	}
	const struct snap_wait *w = ui_wait(ui, row);
	if (!w)
		return 0;
	/* of a class only one row: what its label says may change */
	return ui->want.group == GROUP_CLASS ? w->cls : view_hash(w->cls, wait_label(ui, w));
}

const struct view_ops view_waits = {
	.rows = waits_rows,
	.body = waits_body,
	.draw = waits_draw,
	.match = waits_match,
	.key = waits_key,
};
