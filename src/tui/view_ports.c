/* SPDX-License-Identifier: Apache-2.0 */
/* Requests by port: for each port a slow request that speaks for it, and its sentence. */
#include <string.h>

#include "view.h"

struct port_cols {
	int kind_w, req_x, p50_x, p99_x, mix_x, mix_w, dom_x, dom_w, share_x, woken_x, held_x,
		who_w, conf_x;
};

/* Right to left; the dominant wait gets what is left. */
static struct port_cols place(int w)
{
	struct port_cols p = { .kind_w = w < 60 ? 12 : w < 100 ? 16 : 18 };
	int x = w;
	p.conf_x = x -= 5;
	p.who_w = w >= 110 ? 13 : 0;
	p.held_x = p.who_w ? (x -= p.who_w + 1) : 0;
	p.woken_x = p.who_w ? (x -= p.who_w + 1) : 0;
	p.share_x = w >= 60 ? (x -= 4) : 0;
	int at = 3 + p.kind_w + 1;
	p.req_x = at;
	at += 9;
	p.p50_x = w >= 70 ? at : 0;
	at += w >= 70 ? 8 : 0;
	p.p99_x = at;
	at += 8;
	p.mix_w = w >= 100 ? 10 : 0;
	p.mix_x = at;
	at += p.mix_w ? p.mix_w + 1 : 0;
	p.dom_x = at;
	p.dom_w = CC_MAX(x - at - 1, 0);
	return p;
}

/* Its figures and its whole sentence. */
int port_height(const struct ui *ui, int row)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_row(ui, row, &s);
	int n = r ? canvas_lines(snapshot_str(s, r->verdict), ui->w - 7) : 1;
	return 1 + CC_MAX(1, n);
}

int ports_body(const struct ui *ui, const struct layout *l)
{
	int row = CC_MAX(ui->pos[SCREEN_REQUESTS].row, 0), rows = (int)ui->order_cnt, n = 0, h = 0;
	/* those above the selected one are shown with it; below the first page is room for more */
	for (int i = CC_MIN(row, rows - 1); i >= 0; i--, n++)
		if ((h += port_height(ui, i)) > l->body_h)
			return CC_MAX(n, 1);
	for (int i = row + 1; i < rows; i++, n++)
		if ((h += port_height(ui, i)) > l->body_h)
			break;
	return CC_MAX(n, 1);
}

int port_under(const struct ui *ui, const struct layout *l, int y)
{
	int at = l->body_y;
	for (int i = ui->pos[SCREEN_REQUESTS].top; i < (int)ui->order_cnt; i++) {
		int h = port_height(ui, i);
		if (at + h > l->body_y + l->body_h)
			break;
		if (y >= at && y < at + h)
			return i;
		at += h;
	}
	return -1;
}

void draw_port_titles(struct canvas *c, int y)
{
	struct port_cols p = place(c->w);
	canvas_text(c, 3, y, p.kind_w, ROLE_TITLE, "PORT");
	canvas_right(c, p.req_x, y, 8, ROLE_TITLE, "REQ");
	if (p.p50_x)
		canvas_right(c, p.p50_x, y, 7, ROLE_TITLE, "P50");
	canvas_right(c, p.p99_x, y, 7, ROLE_HI, "P99▾");
	canvas_text(c, p.mix_x, y, p.mix_w, ROLE_TITLE, "SLOW ONE");
	canvas_text(c, p.dom_x, y, p.dom_w, ROLE_TITLE, "DOMINANT WAIT");
	if (p.share_x)
		canvas_right(c, p.share_x, y, 3, ROLE_TITLE, "%");
	if (p.who_w) {
		canvas_text(c, p.woken_x, y, p.who_w, ROLE_TITLE, "WOKEN BY");
		canvas_text(c, p.held_x, y, p.who_w, ROLE_TITLE, "HELD BY");
	}
	canvas_text(c, p.conf_x, y, 4, ROLE_TITLE, "CONF");
}

void draw_port(const struct ui *ui, struct canvas *c, int row, int y, int h)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_row(ui, row, &s);
	const struct snap_port *port = ui_port(ui, row);
	struct port_cols p = place(c->w);
	cc_ns groups[9];
	if (!r || !port)
		return;
	const char *kind = snapshot_str(s, port->kind);
	canvas_fit(c, 3, y, p.kind_w, ROLE_FG | CELL_BOLD, kind);
	canvas_right(c, p.req_x, y, 8, ROLE_FG, text_count_in(port->requests, 8).s);
	if (p.p50_x)
		canvas_right(c, p.p50_x, y, 7, ROLE_FG, text_dur(port->p50_ns).s);
	canvas_right(c, p.p99_x, y, 7, ROLE_FG, text_dur(port->p99_ns).s);
	group_sums(r->class_ns, groups);
	draw_mix(c, p.mix_x, y, p.mix_w, groups, r->latency_ns);
	draw_dominant(c, s, r, p.dom_x, y, p.dom_w, ui->pan);
	if (p.share_x && r->path_ok)
		canvas_printf(c, p.share_x, y, 3, ROLE_FG, "%3.0f", r->dominant.share * 100);
	if (p.who_w) {
		canvas_pan(c, p.woken_x, y, p.who_w, ROLE_FG, snapshot_str(s, r->waker_text),
			   ui->pan);
		canvas_pan(c, p.held_x, y, p.who_w, ROLE_FG, snapshot_str(s, r->holder_text),
			   ui->pan);
	}
	canvas_text(c, p.conf_x, y, 4, style_conf(r->confidence), text_conf(r->confidence).s);
	const char *verdict = snapshot_str(s, r->verdict);
	if (!ui->pan)
		canvas_wrap(c, 5, y + 1, c->w - 7, h - 1, ROLE_TITLE, verdict);
	else
		canvas_pan(c, 5, y + 1, c->w - 7, ROLE_TITLE, verdict, ui->pan);
}
