/* SPDX-License-Identifier: Apache-2.0 */
/* The time bar: where on the recording, or in the kept history of a live trace in pause, the
 * screen is; how slow it was when; where events were lost; the user's marks. */
#include <string.h>

#include "view.h"

bool view_time_bar(const struct ui *ui) { return !ui->opts.live || ui->want.paused; }

static void draw_where(const struct ui *ui, struct canvas *c, int y, cc_ns first, cc_ns last)
{
	const struct snapshot *s = ui->snap;
	cc_ns at = s->now_ns > first ? s->now_ns - first : 0;
	struct pen p = { c, 1, y, c->w };
	if (ui->opts.live) {
		pen_put(&p, ROLE_TITLE, c->w >= 60 ? "kept in memory" : "kept");
		pen_printf(&p, ROLE_HI, "  %s", text_clock(s, s->now_ns, c->w >= 60).s);
		cc_ns ago = last > s->now_ns ? last - s->now_ns : 0;
		pen_printf(&p, ROLE_FG, "  %s ago", text_dur(ago).s);
	} else {
		const char *file = ui->opts.replay_file ? ui->opts.replay_file : "";
		const char *base = strrchr(file, '/');
		pen_printf(&p, ROLE_TITLE, "%s", base ? base + 1 : file);
		pen_put(&p, ROLE_HI,
			ui->want.paused    ? "  paused"
			: s->runtime.ended ? "  end"
					   : "  ▶");
		pen_printf(&p, ROLE_HI, " %gx", ui->want.speed);
		pen_printf(&p, ROLE_FG, "  %s", text_clock(s, s->now_ns, c->w >= 60).s);
	}
	pen_printf(&p, ROLE_FG, "  (%s / %s)", text_hms(at).s, text_hms(last - first).s);
	pen_printf(&p, ROLE_INACTIVE, "  %.1f%%", (double)at / (double)(last - first) * 100);
	if (p.x + 40 < p.end)
		pen_put(&p, ROLE_INACTIVE, "    │ here  × lost  ^ mark   ( ) go to them");
}

static int column(cc_ns t, cc_ns first, cc_ns last, int w)
{
	cc_ns off = t > first ? t - first : 0;
	return (int)CC_MIN((double)off / (double)(last - first) * (w - 1) + 0.5, (double)(w - 1));
}

static cc_ns highest(const struct time_bar *b, cc_ns from, cc_ns to)
{
	cc_ns high = 0;
	if (!b->width || to <= b->first)
		return 0;
	cc_ns i = from > b->first ? (from - b->first) / b->width : 0;
	for (; i < UI_BAR && b->first + i * b->width < to; i++)
		high = CC_MAX(high, b->p99[i]);
	return high;
}

static void draw_bar(const struct ui *ui, struct canvas *c, int y, cc_ns first, cc_ns last)
{
	int w = c->w - 2;
	double step = (double)(last - first) / w;
	cc_ns top = highest(&ui->bar, 0, UINT64_MAX);
	canvas_fill(c, 1, y, w, ROLE_DIV | CELL_DIM, 0x2581);
	for (int i = 0; i < w; i++) {
		cc_ns from = first + (cc_ns)(step * i);
		cc_ns high = highest(&ui->bar, from, from + (cc_ns)step + 1);
		if (high)
			draw_spark_cell(c, 1 + i, y, high, top);
	}
	for (uint32_t i = 0; i < ui->snap->loss_cnt; i++) {
		const struct snap_loss *l = &ui->snap->losses[i];
		int x = column(l->from, first, last, w), end = column(l->to, first, last, w);
		if (l->to >= first)
			canvas_fill(c, 1 + x, y, end - x + 1, ROLE_ERR, c->ascii ? 'x' : 0xd7);
	}
	for (int i = 0; i < ui->mark_cnt; i++)
		if (ui->marks[i].at >= first)
			canvas_fill(c, 1 + column(ui->marks[i].at, first, last, w), y, 1, ROLE_HI,
				    '^');
	canvas_fill(c, 1 + column(ui->snap->now_ns, first, last, w), y, 1, ROLE_TITLE, 0x2502);
}

void draw_time(const struct ui *ui, struct canvas *c, int y, int h)
{
	cc_ns first, last;
	ui_time_range(ui, &first, &last);
	draw_where(ui, c, y, first, last);
	if (h > 1)
		draw_bar(ui, c, y + 1, first, last);
}
