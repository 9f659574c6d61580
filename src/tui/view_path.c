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
	p.task_w = w < 60 ? 0 : w < 100 ? 12 : 14;
	p.cls_x = p.bar_x + p.bar_w + 1;
	p.dur_x = p.cls_x + p.cls_w + 1;
	p.task_x = p.dur_x + p.dur_w + 2;
	p.note_x = p.task_x + p.task_w + 1;
	p.note_w = p.task_w ? CC_MAX(w - p.note_x, 0) : 0;
	return p;
}

static cc_ns span_of(const struct snap_request *r)
{
	return CC_MAX(r->end > r->start ? r->end - r->start : 0, 1);
}

/* Column of a time within a bar of @w cells. */
static int time_col(const struct snap_request *r, cc_ns t, int w)
{
	cc_ns off = t > r->start ? t - r->start : 0;
	return (int)CC_MIN((double)off / (double)span_of(r) * w, (double)w);
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

static void draw_scale(struct canvas *c, const struct snap_request *r, const struct path_cols *p,
		       int y)
{
	cc_ns span = span_of(r), step = scale_step(span, p->bar_w);
	for (cc_ns t = 0; t < span; t += step) {
		int x = p->bar_x + time_col(r, r->start + t, p->bar_w);
		struct text label = text_ms(t);
		char buf[128];
		size_t n = strlen(label.s);
		if (t % CC_MS(1) == 0 && n > 2 && !strcmp(label.s + n - 2, ".0"))
			label.s[n - 2] = '\0';
		snprintf(buf, sizeof(buf), "%s%s", label.s, t ? "" : " ms");
		if (x + (int)strlen(buf) < p->cls_x)
			canvas_text(c, x, y, p->cls_x - x, ROLE_INACTIVE, buf);
	}
	canvas_text(c, p->cls_x, y, p->cls_w, ROLE_TITLE, "CLASS");
	canvas_right(c, p->dur_x, y, p->dur_w, ROLE_TITLE, "MS");
	canvas_text(c, p->task_x, y, p->task_w, ROLE_TITLE, "ON");
	canvas_text(c, p->note_x, y, p->note_w, ROLE_TITLE,
		    p->note_w < 24 ? "WHAT, BY WHOM" : "WHAT, HELD BY, ENDED BY");
}

static void draw_piece(struct canvas *c, const struct snapshot *s, const struct snap_request *r,
		       const struct snap_piece *sp, const struct path_cols *p, int y, int pan)
{
	const struct cc_piece *pc = &sp->p;
	int from = time_col(r, pc->start, p->bar_w), to = time_col(r, pc->end, p->bar_w);
	char note[512], cls[64];
	from = CC_MIN(from, p->bar_w - 1);
	to = CC_MAX(to, from + 1);
	canvas_fill(c, p->bar_x, y, from, ROLE_DIV | CELL_DIM, 0xb7);
	canvas_fill(c, p->bar_x + from, y, to - from, style_wait(pc->cls),
		    (unsigned char)wait_class_letter(pc->cls));
	int indent = CC_MIN((int)pc->depth, CLASS_INDENT_MAX);
	snprintf(cls, sizeof(cls), "%*s%s%s", CC_MAX(indent - 1, 0), "", indent ? "└" : "",
		 wait_class_name(pc->cls));
	canvas_fit(c, p->cls_x, y, p->cls_w, style_wait(pc->cls), cls);
	cc_ns ns = pc->end > pc->start ? pc->end - pc->start : 0;
	canvas_right(c, p->dur_x, y, p->dur_w, ROLE_FG | CELL_BOLD, text_ms(ns).s);
	canvas_fit(c, p->task_x, y, p->task_w, ROLE_FG, snap_task_text(s, &sp->task).s);
	text_note(s, sp, note, sizeof(note));
	const char *at = note;
	for (int i = 0; i < pan && *at; i++)
		canvas_decode(&at);
	canvas_cut(c, p->note_x, y, p->note_w, ROLE_FG, at);
}

void draw_path_rows(struct canvas *c, const struct snapshot *s, const struct snap_request *r, int y,
		    int h, int top, int row, int pan)
{
	struct path_cols cols = place(c->w);
	uint32_t cnt;
	const struct snap_piece *p = request_pieces(s, r, &cnt);
	draw_scale(c, r, &cols, y);
	for (int i = 0; i < h - 1 && top + i < (int)cnt; i++) {
		draw_piece(c, s, r, &p[top + i], &cols, y + 1 + i, pan);
		if (top + i == row)
			draw_selected(c, 0, y + 1 + i, '>');
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
	if (!r->path_ok || r->pieces_left_out) {
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
}

/* ---- the screen ---- */

#define DETAIL_LINES 5

struct path_place {
	int rows_y, rows_h; /* title included */
	int text_y;         /* sum line */
};

static struct path_place path_split(const struct ui *ui, const struct layout *l)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	uint32_t cnt = 0;
	if (r)
		request_pieces(s, r, &cnt);
	int below = ui->h < 16 ? 2 : ui->no_preview || ui->h < 22 ? 5 : 6 + DETAIL_LINES;
	int room = CC_MAX(l->status_y - 2 - below, 3);
	struct path_place p = { .rows_y = 2 };
	p.rows_h = (int)CC_MIN((uint32_t)room, cnt + 1);
	p.text_y = p.rows_y + p.rows_h + (ui->h >= 16);
	return p;
}

static int path_rows(const struct ui *ui)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	uint32_t cnt = 0;
	if (r)
		request_pieces(s, r, &cnt);
	return (int)cnt;
}

static int path_body(const struct ui *ui, const struct layout *l)
{
	return path_split(ui, l).rows_h - 1;
}

static void label(struct pen *p, const char *name, const char *value)
{
	if (!*value || !strcmp(value, "-"))
		return;
	pen_printf(p, ROLE_INACTIVE, "%s ", name);
	pen_put(p, ROLE_FG, value);
	pen_put(p, ROLE_FG, "   ");
}

/* Everything about the selected piece, since its row has no room for it. */
static void draw_detail(struct canvas *c, const struct snapshot *s, const struct snap_piece *p,
			int y, int end)
{
	struct pen a = { c, 1, y, c->w }, b = { c, 3, y + 1, c->w }, d = { c, 3, y + 2, c->w };
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
	label(&d, "held by", snap_task_text(s, &p->holder).s);
	label(&d, "woken by", snap_waker_text(s, p).s);
	label(&d, "at", snapshot_str(s, p->waker_site));
	label(&d, "CPU had by", snap_task_text(s, &p->occupant).s);
	if (p->p.ended != CC_ENDED_RAN)
		label(&d, "ended", snap_ended_name(p->p.ended));
	snprintf(buf, sizeof(buf), "%s: %s", wait_class_name(p->p.cls), wait_class_help(p->p.cls));
	if (y + 3 < end)
		canvas_cut(c, 3, y + 3, c->w - 4, ROLE_INACTIVE, buf);
}

static void path_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	struct path_place at = path_split(ui, l);
	int row = ui->pos[SCREEN_PATH].row, end = l->status_y;
	if (!r) {
		canvas_text(c, 1, 1, c->w - 2, ROLE_WARN, "This request is no longer known.");
		return;
	}
	draw_request_head(ui, c, s, r);
	draw_path_rows(c, s, r, at.rows_y, at.rows_h, ui->pos[SCREEN_PATH].top, row, ui->pan);
	draw_path_sum(c, s, r, at.text_y);
	int y = at.text_y + 1;
	y += canvas_wrap(c, 1, y, c->w - 2, CC_MIN(3, end - y), ROLE_TITLE,
			 snapshot_str(s, r->verdict));
	uint32_t cnt;
	const struct snap_piece *p = request_pieces(s, r, &cnt);
	if (!ui->no_preview && (uint32_t)row < cnt && end - y > 4)
		draw_detail(c, s, &p[row], y + 1, end);
}

static bool path_match(const struct ui *ui, int row, const char *needle)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	uint32_t cnt = 0;
	const struct snap_piece *p = r ? request_pieces(s, r, &cnt) : NULL;
	char note[512];
	if ((uint32_t)row >= cnt)
		return false;
	text_note(s, &p[row], note, sizeof(note));
	return text_has(note, needle) || text_has(wait_class_name(p[row].p.cls), needle) ||
	       text_has(snap_task_text(s, &p[row].task).s, needle) ||
	       text_has(snapshot_str(s, p[row].site), needle);
}

const struct view_ops view_path = {
	.rows = path_rows,
	.body = path_body,
	.draw = path_draw,
	.match = path_match,
};
