/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: what each thread did with the window, as shares and as a timeline. */
#include "view.h"

static int threads_rows(const struct ui *ui) { return ui->snap ? (int)ui->snap->thread_cnt : 0; }

static int threads_body(const struct ui *ui, const struct layout *l)
{
	(void)ui;
	return l->body_h;
}

#define STRIP ((int)ARRAY_SIZE(((struct snap_thread *)0)->strip))
#define SHARES_X 35

/* Share columns that fit beside a timeline of at least 10 columns. */
static int share_cols(int w) { return CC_MAX(0, CC_MIN(9, (w - SHARES_X - 12) / 6)); }

static void draw_thread(struct canvas *c, const struct snapshot *s, const struct snap_thread *t,
			int y)
{
	cc_ns total = 0;
	int shares = share_cols(c->w), x = SHARES_X + 6 * shares + 1,
	    w = CC_MIN(c->w - x - 1, STRIP);
	for (int i = 0; i < 9; i++)
		total += t->mix[i];
	style st = t->flags & CC_TF_FOLLOWED || t->flags & CC_TF_KTHREAD ? ROLE_INACTIVE : ROLE_FG;
	canvas_printf(c, 3, y, 8, st, "%-7u", t->task.tid);
	canvas_fit(c, 11, y, 16, st, snapshot_str(s, t->task.comm));
	canvas_right(c, 28, y, 6, ROLE_FG, text_count(t->requests).s);
	for (int i = 0; i < shares; i++)
		canvas_right(c, SHARES_X + 6 * i, y, 5, t->mix[i] ? style_group(i) : ROLE_INACTIVE,
			     total ? text_percent((double)t->mix[i] / (double)total).s : "-");
	/* the newest time is at the right end; narrow screens lose the oldest */
	for (int i = 0; i < w; i++) {
		unsigned int k = t->strip[STRIP - w + i];
		if (k >= 1 && k <= 9)
			canvas_fill(c, x + i, y, 1, style_group((int)k - 1),
				    (unsigned char)WAIT_GROUPS[k - 1]);
		else
			canvas_fill(c, x + i, y, 1, ROLE_DIV | CELL_DIM, 0xb7);
	}
}

static void threads_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snapshot *s = ui->snap;
	int rows = threads_rows(ui), top = ui->pos[SCREEN_THREADS].top, y = l->cols_y;
	int shares = share_cols(c->w);
	draw_head(ui, c, l);
	canvas_text(c, 3, y, 8, ROLE_TITLE, "TID");
	canvas_text(c, 11, y, 16, ROLE_TITLE, "COMM");
	canvas_right(c, 28, y, 6, ROLE_TITLE, "REQ");
	for (int i = 0; i < shares; i++) {
		char name[8];
		snprintf(name, sizeof(name), "%.5s", wait_group_name(WAIT_GROUPS[i]));
		canvas_right(c, SHARES_X + 6 * i, y, 5, style_group(i), name);
	}
	canvas_text(c, SHARES_X + 6 * shares + 1, y, STRIP, ROLE_TITLE,
		    c->w < 100 ? "TIMELINE" : "TIMELINE (now at the right)");
	if (!rows)
		draw_empty(ui, c, l->body_y);
	for (int i = 0; i < l->body_h && top + i < rows; i++) {
		y = l->body_y + i;
		draw_thread(c, s, &s->threads[top + i], y);
		if (top + i == ui->pos[SCREEN_THREADS].row)
			draw_selected(c, 1, y, '>');
	}
}

static bool threads_match(const struct ui *ui, int row, const char *needle)
{
	return text_has(snap_task_text(ui->snap, &ui->snap->threads[row].task).s, needle);
}

const struct view_ops view_threads = {
	.rows = threads_rows,
	.body = threads_body,
	.draw = threads_draw,
	.match = threads_match,
};
