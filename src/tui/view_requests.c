/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: one row per request; the path of the selected one below. */
#include <string.h>

#include "columns.h"
#include "view.h"

/* drop: what goes first on a narrow screen (0: never). Widths depend on the screen only, never on
 * the rows, so that nothing jumps from one refresh to the next. */
struct col_spec {
	const char *title;
	int min, max, drop;
	bool right;
	int sort; /* enum snap_sort shown here, -1: none */
};
static const struct col_spec specs[COL_CNT] = {
	[COL_ID] = { "REQ", 10, 14, 0, false, -1 },
	[COL_LAT] = { "LAT ms", 7, 7, 0, true, SORT_LATENCY },
	[COL_CPU] = { "CPU%", 4, 4, 4, true, SORT_CPU },
	[COL_RUNQ] = { "RUNQ%", 5, 5, 4, true, SORT_RUNQ },
	[COL_MIX] = { "MIX", 8, 16, 5, false, -1 },
	[COL_DOMINANT] = { "DOMINANT WAIT", 12, 60, 0, false, SORT_DOMINANT },
	[COL_SHARE] = { "%", 3, 3, 8, true, -1 },
	[COL_WOKEN] = { "WOKEN BY", 11, 18, 3, false, -1 },
	[COL_HELD] = { "HELD BY", 11, 18, 2, false, -1 },
	[COL_UNEXPLAINED] = { "?%", 4, 4, 7, true, SORT_UNEXPLAINED },
	[COL_CONF] = { "CONF", 4, 4, 0, false, SORT_CONFIDENCE },
	[COL_AGE] = { "AGE", 4, 4, 1, true, SORT_AGE },
	[COL_LABEL] = { "LABEL", 11, 11, 7, false, -1 },
	[COL_CONN] = { "CONN", 15, 24, 6, false, -1 },
};

struct cols {
	int x[COL_CNT], w[COL_CNT]; /* w 0: not shown */
	int pan;
};

#define ROW_LEAD 3 /* "> " and the mark */

/* From this width on the dominant wait has room for two classes and a name; others go for it. */
#define WIDE 110
#define DOMINANT_WIDE 23
#define MIX_WIDE 9

static void place_columns(uint32_t wanted, int width, struct cols *ret)
{
	/* who gets the spare room, in this order, up to its max */
	static const enum col grow[] = { COL_DOMINANT, COL_CONN, COL_WOKEN,
					 COL_HELD,     COL_MIX,  COL_ID };
	int first_cap = 26, used = ROW_LEAD;
	for (int i = 0; i < COL_CNT; i++) {
		ret->w[i] = wanted & 1u << i ? specs[i].min : 0;
		if (i == COL_DOMINANT && width >= WIDE)
			ret->w[i] = DOMINANT_WIDE;
		if (i == COL_MIX && ret->w[i] && width >= WIDE)
			ret->w[i] = MIX_WIDE;
		used += ret->w[i] ? ret->w[i] + 1 : 0;
	}
	for (int drop = 1; drop <= 8 && used - 1 > width; drop++)
		for (int i = 0; i < COL_CNT; i++)
			if (specs[i].drop == drop && ret->w[i]) {
				used -= ret->w[i] + 1;
				ret->w[i] = 0;
			}
	int spare = width - (used - 1);
	for (int round = 0; round < 2; round++)
		for (size_t k = 0; k < ARRAY_SIZE(grow); k++) {
			enum col i = grow[k];
			int max = i == COL_DOMINANT && !round ? first_cap : specs[i].max;
			int more = ret->w[i] ? CC_MAX(0, CC_MIN(spare, max - ret->w[i])) : 0;
			ret->w[i] += more;
			spare -= more;
		}
	int x = ROW_LEAD;
	for (int i = 0; i < COL_CNT; i++) {
		ret->x[i] = x;
		x += ret->w[i] ? ret->w[i] + 1 : 0;
	}
}

static void draw_titles(const struct ui *ui, struct canvas *c, const struct cols *cols, int y)
{
	for (int i = 0; i < COL_CNT; i++) {
		char title[32];
		if (!cols->w[i])
			continue;
		bool sorted = specs[i].sort == (int)ui->want.sort;
		const char *arrow = !sorted ? "" : ui->want.ascending ? "▴" : "▾";
		/* "CPU%" is as wide as its column: the arrow stands for the %, then */
		size_t len = strlen(specs[i].title);
		bool full = sorted && specs[i].right && (int)len == cols->w[i];
		snprintf(title, sizeof(title), "%.*s%s", (int)(len - full), specs[i].title, arrow);
		style st = sorted ? ROLE_HI : ROLE_TITLE;
		if (specs[i].right)
			canvas_right(c, cols->x[i], y, cols->w[i], st, title);
		else /* "CONF": it may take the blank after it */
			canvas_text(c, cols->x[i], y, cols->w[i] + 1, st, title);
	}
	if (cols->w[COL_MIX] >= 14)
		canvas_right(c, cols->x[COL_MIX] + 4, y, cols->w[COL_MIX] - 4, ROLE_INACTIVE,
			     "0------100");
}

static const char *group_of(unsigned int cls) { return wait_group_name(wait_class_letter(cls)); }

void draw_dominant(struct canvas *c, const struct snapshot *s, const struct snap_request *r, int x,
		   int y, int w, int pan)
{
	const struct snap_dominant *d = &r->dominant, *root = &r->root;
	const char *where = snapshot_str(s, d->resource);
	bool deeper = root->ns && root->cls != d->cls && !wait_class_unexplained(root->cls);
	struct pen p = { c, x, y, x + w };
	if (!r->path_ok) {
		pen_put(&p, ROLE_INACTIVE, "no path");
		return;
	}
	if (!*where)
		where = snapshot_str(s, d->site);
	/* two full names leave no room for the place: then the groups' short ones */
	bool brief = deeper && w < 34;
	pen_put(&p, style_wait(d->cls), brief ? group_of(d->cls) : wait_class_name(d->cls));
	if (deeper) {
		pen_put(&p, ROLE_INACTIVE, ">");
		pen_put(&p, style_wait(root->cls),
			brief ? group_of(root->cls) : wait_class_name(root->cls));
		if (!*where)
			where = snapshot_str(s, *snapshot_str(s, root->resource) ? root->resource
										 : root->site);
	}
	pen_put(&p, ROLE_FG, " ");
	canvas_pan(c, p.x, y, p.end - p.x, ROLE_FG, where, pan);
}

static void draw_cells(struct canvas *c, const struct snapshot *s, const struct snap_request *r,
		       const struct cols *cols, int y)
{
	cc_ns groups[9];
	double lat = (double)CC_MAX(r->latency_ns, 1);
	group_sums(r->class_ns, groups);
#define AT(col) c, cols->x[col], y, cols->w[col]
	canvas_fit(AT(COL_ID), ROLE_FG, snapshot_str(s, r->id_text));
	int mark_x = cols->x[COL_LAT] + cols->w[COL_LAT] - 1;
	canvas_right(c, cols->x[COL_LAT], y, cols->w[COL_LAT] - 1, ROLE_FG | CELL_BOLD,
		     text_ms_in(r->latency_ns, cols->w[COL_LAT] - 1).s);
	/* one glyph after the number: still running, or touched by a loss */
	if (r->state == CC_RQS_IN_FLIGHT)
		canvas_text(c, mark_x, y, 1, ROLE_WARN, c->ascii ? "+" : "…");
	else if (r->lost_inside)
		canvas_text(c, mark_x, y, 1, ROLE_ERR, "~");
	canvas_right(AT(COL_CPU), groups[0] ? ROLE_CPU : ROLE_INACTIVE,
		     text_percent((double)groups[0] / lat).s);
	canvas_right(AT(COL_RUNQ), groups[1] ? ROLE_RUNQ : ROLE_INACTIVE,
		     text_percent((double)groups[1] / lat).s);
	draw_mix(AT(COL_MIX), groups, r->latency_ns);
	draw_dominant(c, s, r, cols->x[COL_DOMINANT], y, cols->w[COL_DOMINANT], cols->pan);
	if (r->path_ok) {
		canvas_printf(c, cols->x[COL_SHARE], y, cols->w[COL_SHARE], ROLE_FG, "%3.0f",
			      r->dominant.share * 100);
		canvas_right(AT(COL_UNEXPLAINED), r->unexplained_ns ? ROLE_OTHER : ROLE_INACTIVE,
			     text_percent((double)r->unexplained_ns / lat).s);
		canvas_text(AT(COL_CONF), style_conf(r->confidence), text_conf(r->confidence).s);
	}
	canvas_text(AT(COL_LABEL), ROLE_INACTIVE, request_label(&r->rec));
	canvas_pan(AT(COL_WOKEN), ROLE_FG, snapshot_str(s, r->waker_text), cols->pan);
	canvas_pan(AT(COL_HELD), ROLE_FG, snapshot_str(s, r->holder_text), cols->pan);
	cc_ns age = s->now_ns > r->end ? s->now_ns - r->end : 0;
	canvas_right(AT(COL_AGE), ROLE_INACTIVE,
		     r->state == CC_RQS_IN_FLIGHT ? "now" : text_age(age).s);
	canvas_pan(AT(COL_CONN), ROLE_INACTIVE, snapshot_str(s, r->peer), cols->pan);
#undef AT
}

static bool outside_window(const struct snapshot *s, const struct snap_request *r)
{
	return r->state != CC_RQS_IN_FLIGHT && s->window_ns && s->now_ns > s->window_ns &&
	       r->end < s->now_ns - s->window_ns;
}

static void draw_row(const struct ui *ui, struct canvas *c, const struct cols *cols, int i, int y)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_row(ui, i, &s);
	if (!r)
		return;
	draw_cells(c, s, r, cols, y);
	if (s == ui->pin || outside_window(s, r))
		canvas_add(c, 0, y, c->w, CELL_DIM);
	if (ui_marked(ui, r->id))
		canvas_fill(c, 2, y, 1, ROLE_HI, '*');
	if (i == ui->pos[SCREEN_REQUESTS].row)
		draw_selected(c, 1, y, '>');
}

static void draw_preview(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	struct pen p = { c, 1, l->preview_y, c->w };
	canvas_fill(c, 0, l->preview_y, c->w, ROLE_DIV, 0x2500);
	if (!r)
		return;
	pen_printf(&p, ROLE_TITLE, " %s ", snapshot_str(s, r->id_text));
	pen_printf(&p, ROLE_FG, "%s %s ms ", snapshot_str(s, r->peer), text_ms(r->latency_ns).s);
	if (c->w - p.x > 30)
		canvas_text(c, c->w - 24, l->preview_y, 23, ROLE_INACTIVE,
			    " Enter opens  v hides ");
	int y = l->preview_y + 1, end = l->preview_y + l->preview_h;
	y += canvas_wrap(c, 1, y, c->w - 2, 2, ROLE_FG, snapshot_str(s, r->verdict));
	int room = end - y - 1;
	struct path_view v = path_view(s, r, 0, UINT32_MAX, room - 1);
	int cnt = path_row_cnt(&v), rows = CC_MIN(room, cnt + 1);
	if (rows < 2)
		return;
	draw_path_rows(c, &v, r->start, y, rows, 0, -1, 0);
	if (cnt > rows - 1)
		canvas_printf(c, 1, y + rows, c->w - 2, ROLE_INACTIVE, "... %d more: Enter opens",
			      cnt - rows + 1);
	else
		draw_path_sum(c, s, r, y + rows);
}

static int requests_rows(const struct ui *ui) { return ui->snap ? (int)ui->order_cnt : 0; }

static int requests_body(const struct ui *ui, const struct layout *l)
{
	return ui_by_port(ui) ? ports_body(ui, l) : l->body_h;
}

static void ports_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	int rows = requests_rows(ui), y = l->body_y;
	draw_port_titles(c, l->cols_y);
	for (int i = ui->pos[SCREEN_REQUESTS].top; i < rows; i++) {
		/* of the selected one as much as there is */
		bool selected = i == ui->pos[SCREEN_REQUESTS].row;
		int left = l->body_y + l->body_h - y, h = port_height(ui, i);
		if (left < 1 || (h > left && !selected))
			break;
		draw_port(ui, c, i, y, CC_MIN(h, left));
		if (selected)
			draw_selected(c, 1, y, '>');
		y += h;
	}
}

static void requests_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	struct cols cols;
	int rows = requests_rows(ui), top = ui->pos[SCREEN_REQUESTS].top;
	draw_head(ui, c, l);
	if (ui_by_port(ui)) {
		ports_draw(ui, c, l);
		return;
	}
	place_columns(ui->columns, c->w, &cols);
	cols.pan = ui->pan;
	draw_titles(ui, c, &cols, l->cols_y);
	if (!rows)
		draw_empty(ui, c, l->body_y);
	for (int i = 0; i < l->body_h && top + i < rows; i++)
		draw_row(ui, c, &cols, top + i, l->body_y + i);
	if (l->preview_h && rows)
		draw_preview(ui, c, l);
}

static bool requests_match(const struct ui *ui, int row, const char *needle)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_row(ui, row, &s);
	if (!r)
		return false;
	const cc_str in[] = { r->id_text,           r->peer,
			      r->up_peer,           r->dominant.site,
			      r->dominant.resource, r->root.site,
			      r->root.resource,     r->waker_text,
			      r->holder_text,       r->task.comm };
	for (size_t i = 0; i < ARRAY_SIZE(in); i++)
		if (text_has(snapshot_str(s, in[i]), needle))
			return true;
	return text_has(request_label(&r->rec), needle) ||
	       text_has(wait_class_name(r->dominant.cls), needle) ||
	       text_has(wait_class_name(r->root.cls), needle);
}

const struct view_ops view_requests = {
	.rows = requests_rows,
	.body = requests_body,
	.draw = requests_draw,
	.match = requests_match,
};
