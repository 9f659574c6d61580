/* SPDX-License-Identifier: Apache-2.0 */
/* Path: the waterfall of one request: what its time was, piece by piece, nested. */
#include <string.h>

#include "view.h"

#define CLASS_INDENT_MAX 6

struct path_cols {
	int bar_x, bar_w, cls_x, cls_w, dur_x, dur_w, task_x, task_w, note_x, note_w;
};

static struct path_cols place(int w)
{
	struct path_cols p = { .bar_x = 2 };
	p.bar_w = w < 60 ? w - 26 : w < 100 ? w * 33 / 100 : CC_MIN(w * 32 / 100, 80);
	p.cls_w = w < 60 ? 12 : w < 100 ? 12 : 16;
	p.dur_w = w < 100 ? 7 : 8;
	p.task_w = w < 60 ? 0 : w < 100 ? 12 : w < 170 ? 14 : 20;
	p.cls_x = p.bar_x + p.bar_w + 1;
	p.dur_x = p.cls_x + p.cls_w + 1;
	p.task_x = p.dur_x + p.dur_w + 2;
	p.note_x = p.task_x + p.task_w + 1;
	p.note_w = p.task_w ? CC_MAX(w - p.note_x, 0) : 0;
	return p;
}

/* Column of a time within a bar of @w cells. */
static int time_col(const struct path_view *v, cc_ns t, int w)
{
	cc_ns off = t > v->lo ? t - v->lo : 0;
	return (int)CC_MIN((double)off / (double)(v->hi - v->lo) * w, (double)w);
}

/* Round steps of which about one per 12 columns fits. */
static cc_ns scale_step(cc_ns span, int w)
{
	static const int mantissa[] = { 1, 2, 5 };
	cc_ns unit = 1;
	int want = CC_MAX(w / 12, 1);
	for (int i = 0;; i++) {
		cc_ns step = unit * (cc_ns)mantissa[i % 3];
		if (step >= span / (cc_ns)want || unit > CC_S(1000000))
			return step;
		if (i % 3 == 2)
			unit *= 10;
	}
}

/* Times since the request's start @origin, also where it is zoomed into. */
static void draw_scale(struct canvas *c, const struct path_view *v, cc_ns origin,
		       const struct path_cols *p, int y)
{
	bool first = true;
	cc_ns step = scale_step(v->hi - v->lo, p->bar_w);
	cc_ns from = v->lo > origin ? v->lo - origin : 0, span = v->hi - CC_MIN(origin, v->hi);
	for (cc_ns t = (from + step - 1) / step * step; t < span; t += step) {
		int x = p->bar_x + time_col(v, origin + t, p->bar_w);
		struct text label = text_ms(t);
		char buf[128];
		size_t n = strlen(label.s);
		if (t % CC_MS(1) == 0 && n > 2 && !strcmp(label.s + n - 2, ".0"))
			label.s[n - 2] = '\0';
		snprintf(buf, sizeof(buf), "%s%s", label.s, first ? " ms" : "");
		if (x + (int)strlen(buf) >= p->cls_x)
			continue;
		canvas_text(c, x, y, p->cls_x - x, ROLE_INACTIVE, buf);
		first = false;
	}
	canvas_text(c, p->cls_x, y, p->cls_w, ROLE_TITLE, "CLASS");
	canvas_right(c, p->dur_x, y, p->dur_w, ROLE_TITLE, "MS");
	canvas_text(c, p->task_x, y, p->task_w, ROLE_TITLE, "ON");
	canvas_text(c, p->note_x, y, p->note_w, ROLE_TITLE,
		    p->note_w < 24 ? "WHAT, BY WHOM" : "WHAT, HELD BY, ENDED BY");
}

static void draw_bar(struct canvas *c, const struct path_view *v, const struct snap_piece *p,
		     const struct path_cols *cols, int y)
{
	int from = time_col(v, p->p.start, cols->bar_w), to = time_col(v, p->p.end, cols->bar_w);
	from = CC_MIN(from, cols->bar_w - 1);
	to = CC_MAX(to, from + 1);
	canvas_fill(c, cols->bar_x + from, y, to - from, style_wait(p->p.cls),
		    (unsigned char)wait_class_letter(p->p.cls));
}

static void draw_note(struct canvas *c, const struct path_cols *cols, int y, int pan,
		      const char *note)
{
	canvas_pan_cut(c, cols->note_x, y, cols->note_w, ROLE_FG, note, pan);
}

static void draw_piece(struct canvas *c, const struct path_view *v, const struct snap_piece *sp,
		       const struct path_cols *p, int y, int pan)
{
	const struct cc_piece *pc = &sp->p;
	char note[512], cls[64];
	int indent = CC_MIN((int)pc->depth, CLASS_INDENT_MAX);
	snprintf(cls, sizeof(cls), "%*s%s%s", CC_MAX(indent - 1, 0), "", indent ? "└" : "",
		 wait_class_name(pc->cls));
	canvas_fit(c, p->cls_x, y, p->cls_w, style_wait(pc->cls), cls);
	cc_ns ns = pc->end > pc->start ? pc->end - pc->start : 0;
	canvas_right(c, p->dur_x, y, p->dur_w, ROLE_FG | CELL_BOLD, text_ms_in(ns, p->dur_w).s);
	canvas_fit(c, p->task_x, y, p->task_w, ROLE_FG, snap_task_text(v->s, &sp->task).s);
	text_note(v->s, sp, note, sizeof(note));
	draw_note(c, p, y, pan, note);
}

/* Sums of folded pieces by class, the largest first: "disk fsync 3.1, cpu 0.2". */
static void folded_note(const struct path_view *v, const struct path_row *row, char *buf,
			size_t cap)
{
	cc_ns sum[WAIT_CLASS_CNT] = { 0 };
	size_t n = 0;
	for (uint32_t i = row->first; i < row->first + row->cnt;
	     i = path_after(v->p, i, row->first + row->cnt))
		sum[CC_MIN(v->p[i].p.cls, WAIT_CLASS_CNT - 1)] +=
			v->p[i].p.end > v->p[i].p.start ? v->p[i].p.end - v->p[i].p.start : 0;
	buf[0] = '\0';
	for (;;) {
		unsigned int best = 0;
		for (unsigned int k = 1; k < WAIT_CLASS_CNT; k++)
			best = sum[k] > sum[best] ? k : best;
		if (!sum[best] || n + 40 > cap)
			return;
		n += (size_t)snprintf(buf + n, cap - n, "%s%s %s", n ? ", " : "",
				      wait_class_name(best), text_ms(sum[best]).s);
		sum[best] = 0;
	}
}

static void draw_folded(struct canvas *c, const struct path_view *v, const struct path_row *row,
			const struct path_cols *p, int y, int pan)
{
	char note[512], cls[64];
	int indent = CC_MIN((int)v->p[row->first].p.depth, CLASS_INDENT_MAX);
	snprintf(cls, sizeof(cls), "%*s%s%u short", CC_MAX(indent - 1, 0), "", indent ? "└" : "",
		 row->tops);
	canvas_fit(c, p->cls_x, y, p->cls_w, ROLE_INACTIVE, cls);
	canvas_right(c, p->dur_x, y, p->dur_w, ROLE_FG | CELL_BOLD,
		     text_ms_in(row->ns, p->dur_w).s);
	folded_note(v, row, note, sizeof(note));
	draw_note(c, p, y, pan, note);
}

static void draw_row(struct canvas *c, const struct path_view *v, const struct path_row *row,
		     const struct path_cols *p, int y, int pan)
{
	uint32_t end = row->first + row->cnt;
	int from = time_col(v, v->p[row->first].p.start, p->bar_w);
	canvas_fill(c, p->bar_x, y, from, ROLE_DIV | CELL_DIM, 0xb7);
	for (uint32_t i = row->first; i < end; i = path_after(v->p, i, end))
		draw_bar(c, v, &v->p[i], p, y);
	if (row->tops > 1)
		draw_folded(c, v, row, p, y, pan);
	else
		draw_piece(c, v, &v->p[row->first], p, y, pan);
}

void draw_path_rows(struct canvas *c, const struct path_view *v, cc_ns origin, int y, int h,
		    int top, int row, int pan)
{
	struct path_cols cols = place(c->w);
	struct path_row pr;
	uint32_t at = v->from;
	draw_scale(c, v, origin, &cols, y);
	for (int i = 0; i < top + h - 1 && path_next(v, &at, &pr); i++) {
		if (i < top)
			continue;
		draw_row(c, v, &pr, &cols, y + 1 + i - top, pan);
		if (i == row)
			draw_selected(c, 0, y + 1 + i - top, '>');
	}
}

void draw_path_sum(struct canvas *c, const struct snapshot *s, const struct snap_request *r, int y)
{
	uint32_t cnt, nested = 0;
	const struct snap_piece *p = request_pieces(s, r, &cnt);
	bool exact = r->path_sum_ns == r->latency_ns;
	double lat = (double)CC_MAX(r->latency_ns, 1);
	struct pen pen = { c, 1, y, c->w - 1 };
	for (uint32_t i = 0; i < cnt; i++)
		nested += p[i].p.depth > 0;
	if (!r->path_ok || (r->pieces_left_out && !r->piece_cnt)) {
		pen_put(&pen, ROLE_WARN,
			r->path_ok ? "its pieces were left out: too many in this window"
				   : "no path was computed: sampled out, or too old");
		return;
	}
	pen_printf(&pen, exact ? ROLE_CONF_HIGH : ROLE_ERR, "path %s %s latency %s ms",
		   text_ms(r->path_sum_ns).s, exact ? "=" : "≠", text_ms(r->latency_ns).s);
	pen_printf(&pen, r->unexplained_ns ? ROLE_OTHER : ROLE_INACTIVE, "   unexplained %s (%s%%)",
		   text_ms(r->unexplained_ns).s, text_percent((double)r->unexplained_ns / lat).s);
	if (r->ambiguous_ns)
		pen_printf(&pen, ROLE_OTHER, "   ambiguous %s", text_ms(r->ambiguous_ns).s);
	pen_printf(&pen, ROLE_INACTIVE, "   %u pieces, %u nested", cnt, nested);
	if (r->pieces_left_out)
		pen_printf(&pen, ROLE_WARN, ", %u deeper ones left out", r->pieces_left_out);
}

/* ---- the screen ---- */

#define DETAIL_LINES 5
#define SENTENCE_LINES 3 /* that most have; a longer one takes from the rows */

static int sentence_lines(const struct ui *ui)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	return r ? canvas_lines(snapshot_str(s, r->verdict), ui->w - 2) : 0;
}

/* Lines for rows, with their titles, on a screen of this height. */
static int path_room(const struct ui *ui)
{
	int below = ui->h < 16 ? 2 : ui->no_preview || ui->h < 22 ? 5 : 6 + DETAIL_LINES;
	if (ui->h >= 16)
		below += CC_MAX(sentence_lines(ui) - SENTENCE_LINES, 0);
	return CC_MAX(ui->h - 1 - (ui->h >= 16) - 2 - below, 3);
}

bool ui_path_view(const struct ui *ui, const struct snap_request **ret_r, struct path_view *ret)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	if (!r)
		return false;
	bool zoomed = ui->zoom_cnt > 0;
	uint32_t from = zoomed ? ui->zoom[ui->zoom_cnt - 1].from : 0;
	uint32_t to = zoomed ? ui->zoom[ui->zoom_cnt - 1].to : UINT32_MAX;
	*ret = path_view(s, r, from, to, ui->unfolded ? 0 : path_room(ui) - 1);
	*ret_r = r;
	return true;
}

static int path_rows(const struct ui *ui)
{
	const struct snap_request *r;
	struct path_view v;
	return ui_path_view(ui, &r, &v) ? path_row_cnt(&v) : 0;
}

static int path_body(const struct ui *ui, const struct layout *l)
{
	(void)l;
	return path_room(ui) - 1;
}

static void label(struct pen *p, const char *name, const char *value)
{
	if (!*value || !strcmp(value, "-"))
		return;
	if (p->x > 3 && p->x + canvas_width(name) + 1 + canvas_width(value) > p->end) {
		p->x = 3;
		p->y++;
	}
	pen_printf(p, ROLE_INACTIVE, "%s ", name);
	pen_put(p, ROLE_FG, value);
	pen_put(p, ROLE_FG, "   ");
}

/* Everything about the selected piece, since its row has no room for it. */
static void draw_detail(struct canvas *c, const struct snapshot *s, const struct snap_piece *p,
			int y, int end)
{
	struct pen a = { c, 1, y, c->w }, b = { c, 3, y + 1, c->w }, d;
	char buf[160];
	cc_ns ns = p->p.end > p->p.start ? p->p.end - p->p.start : 0;
	canvas_fill(c, 0, y, c->w, ROLE_DIV, 0x2500);
	pen_printf(&a, style_wait(p->p.cls), " %s ", wait_class_name(p->p.cls));
	pen_printf(&a, ROLE_FG, "%s ms ", text_ms(ns).s);
	pen_printf(&a, style_conf(p->p.confidence), "%s ", text_conf(p->p.confidence).s);
	label(&b, "on", snap_task_text(s, &p->task).s);
	label(&b, "at", snapshot_str(s, p->site));
	label(&b, "waits for", snapshot_str(s, p->resource));
	label(&b, "serving", snapshot_str(s, p->for_request));
	label(&b, "behind request", snapshot_str(s, p->by_request));
	d = (struct pen){ c, 3, b.y + 1, c->w };
	label(&d, "held by", snap_task_text(s, &p->holder).s);
	if (p->p.last_tid)
		label(&d, "last ended by", snap_task_text(s, &p->last).s);
	label(&d, "woken by", snap_waker_text(s, p).s);
	label(&d, "at", snapshot_str(s, p->waker_site));
	label(&d, "CPU had by", snap_task_text(s, &p->occupant).s);
	if (p->p.ended != CC_ENDED_RAN)
		label(&d, "ended", snap_ended_name(p->p.ended));
	snprintf(buf, sizeof(buf), "%s: %s", wait_class_name(p->p.cls), wait_class_help(p->p.cls));
	if (d.y + 1 < end)
		canvas_cut(c, 3, d.y + 1, c->w - 4, ROLE_INACTIVE, buf);
}

static void draw_zoomed(struct canvas *c, const struct path_view *v, int y)
{
	const struct snap_piece *p = &v->p[v->from];
	struct pen pen = { c, 1, y, c->w - 1 };
	pen_put(&pen, ROLE_WARN, "zoomed into ");
	pen_printf(&pen, style_wait(p->p.cls), "%s ", wait_class_name(p->p.cls));
	pen_printf(&pen, ROLE_FG, "%s ms on %s", text_ms(v->hi - v->lo).s,
		   snap_task_text(v->s, &p->task).s);
	pen_put(&pen, ROLE_INACTIVE, "   Esc zooms out");
}

static void path_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snap_request *r;
	struct path_view v;
	int end = l->status_y;
	if (!ui_path_view(ui, &r, &v)) {
		canvas_text(c, 1, 1, c->w - 2, ROLE_WARN, "This request is no longer known.");
		return;
	}
	draw_request_head(ui, c, v.s, r);
	int rows_h = CC_MIN(path_room(ui), path_row_cnt(&v) + 1);
	draw_path_rows(c, &v, r->start, 2, rows_h, ui->pos[SCREEN_PATH].top,
		       ui->pos[SCREEN_PATH].row, ui->pan);
	int y = 2 + rows_h + (ui->h >= 16);
	if (ui->zoom_cnt)
		draw_zoomed(c, &v, y++);
	else
		draw_path_sum(c, v.s, r, y++);
	y += canvas_wrap(c, 1, y, c->w - 2, end - y, ROLE_TITLE, snapshot_str(v.s, r->verdict));
	struct path_row row;
	if (ui->no_preview || end - y <= 4 || !path_row_at(&v, ui->pos[SCREEN_PATH].row, &row))
		return;
	if (row.tops > 1)
		canvas_text(c, 1, y + 1, c->w - 2, ROLE_INACTIVE,
			    "Short neighbours, folded: Enter shows them, e unfolds all.");
	else
		draw_detail(c, v.s, &v.p[row.first], y + 1, end);
}

static bool piece_match(const struct snapshot *s, const struct snap_piece *p, const char *needle)
{
	char note[512];
	text_note(s, p, note, sizeof(note));
	return text_has(note, needle) || text_has(wait_class_name(p->p.cls), needle) ||
	       text_has(snap_task_text(s, &p->task).s, needle) ||
	       text_has(snapshot_str(s, p->site), needle);
}

static bool path_match(const struct ui *ui, int row, const char *needle)
{
	const struct snap_request *r;
	struct path_view v;
	struct path_row pr;
	if (!ui_path_view(ui, &r, &v) || !path_row_at(&v, row, &pr))
		return false;
	for (uint32_t i = 0; i < pr.cnt; i++)
		if (piece_match(v.s, &v.p[pr.first + i], needle))
			return true;
	return false;
}

const struct view_ops view_path = {
	.rows = path_rows,
	.body = path_body,
	.draw = path_draw,
	.match = path_match,
};
