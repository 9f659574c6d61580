/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: what each thread did with the window, as shares and as a timeline, and what it is in
 * now; below them the tasks of others that had the CPU while these queued for it. */
#include "view.h"

static int threads_rows(const struct ui *ui) { return ui->snap ? (int)ui->thread_rows : 0; }

static int threads_body(const struct ui *ui, const struct layout *l)
{
	(void)ui;
	return l->body_h;
}

#define STRIP ((int)ARRAY_SIZE(((struct snap_thread *)0)->strip))
#define NAME_X 11
#define NAME_W 15
#define REQ_X 27
#define NOW_X 34
#define SHARE_W 5

/* Of WAIT_GROUPS, in SHARE_W - 1 columns. */
static const char *const share_titles[9] = { "CPU%", "RUNQ", "LOCK", "NET", "DISK",
					     "SLP",  "MEM",  "Q",    "?" };

struct thread_cols {
	int now_w, share_x, shares, strip_x, strip_w;
};

/* Narrow screens lose what the thread is in now, then shares; the timeline is worth more. */
static struct thread_cols place(int w)
{
	struct thread_cols p = { .now_w = w >= 90 ? 16 : 0 };
	p.share_x = NOW_X + (p.now_w ? p.now_w + 1 : 0);
	p.shares = CC_MAX(0, CC_MIN(9, (w - p.share_x - 20) / SHARE_W));
	p.strip_x = p.share_x + SHARE_W * p.shares + 1;
	p.strip_w = CC_MIN(w - p.strip_x - 1, STRIP);
	return p;
}

/* Slices as cells, the newest at the right: all of the window on any width. A cell has what most
 * of its slices have. */
static void draw_strip(struct canvas *c, const struct snap_thread *t, int x, int y, int w)
{
	for (int i = 0; i < w; i++) {
		int from = i * STRIP / w, to = CC_MAX((i + 1) * STRIP / w, from + 1);
		int cnt[10] = { 0 }, best = 0;
		for (int k = from; k < to; k++)
			cnt[CC_MIN(t->strip[k], 9)]++;
		for (int g = 1; g < 10; g++)
			if (cnt[g] > (best ? cnt[best] : 0))
				best = g;
		if (best)
			canvas_fill(c, x + i, y, 1, style_group(best - 1),
				    (unsigned char)WAIT_GROUPS[best - 1]);
		else
			canvas_fill(c, x + i, y, 1, ROLE_DIV | CELL_DIM, 0xb7);
	}
}

static void draw_id(struct canvas *c, int y, style st, const struct snap_task *t)
{
	char id[32];
	if (t->goid)
		snprintf(id, sizeof(id), "g%llu", (unsigned long long)t->goid);
	else
		snprintf(id, sizeof(id), "%u", t->tid);
	canvas_fit(c, 3, y, NAME_X - 4, st, id);
}

static void draw_thread(struct canvas *c, const struct snapshot *s, const struct snap_thread *t,
			const struct thread_row *row, int y, int pan)
{
	struct thread_cols p = place(c->w);
	int in = row->in_role ? 2 : 0;
	cc_ns total = 0;
	for (int i = 0; i < 9; i++)
		total += t->mix[i];
	style st = t->flags & CC_TF_FOLLOWED || t->flags & CC_TF_KTHREAD ? ROLE_INACTIVE : ROLE_FG;
	if (row->cnt)
		canvas_printf(c, 3, y, 8, ROLE_TITLE, "%c%ux", row->folded ? '+' : '-', row->cnt);
	else
		draw_id(c, y, st, &t->task);
	canvas_pan(c, NAME_X + in, y, NAME_W - in, row->cnt ? ROLE_TITLE : st,
		   snapshot_str(s, t->task.comm), pan);
	canvas_right(c, REQ_X, y, 6, ROLE_FG, text_count_in(t->requests, 6).s);
	if (p.now_w && t->now_ns) {
		struct text d = text_dur(t->now_ns);
		int w = canvas_width(d.s) + 1 + t->now_seeded;
		canvas_fit(c, NOW_X, y, p.now_w - w, style_wait(t->now_cls),
			   wait_class_name(t->now_cls));
		/* since before tracing: at least so long */
		canvas_printf(c, NOW_X + p.now_w - w + 1, y, w, ROLE_FG, "%s%s",
			      t->now_seeded ? ">" : "", d.s);
	}
	for (int i = 0; i < p.shares; i++)
		canvas_right(c, p.share_x + SHARE_W * i, y, SHARE_W - 1,
			     t->mix[i] ? style_group(i) : ROLE_INACTIVE,
			     total ? text_percent((double)t->mix[i] / (double)total).s : "-");
	draw_strip(c, t, p.strip_x, y, p.strip_w);
}

/* What the threads of a role did, as if it were one; by its name, which ends where they differ. */
static void draw_role(const struct ui *ui, struct canvas *c, int at, int y)
{
	const struct thread_row *role = ui_thread_row(ui, at);
	struct snap_thread sum = { .task.comm = ui->snap->threads[role->at].task.comm };
	unsigned int cnt[STRIP][10] = { 0 };
	for (uint32_t i = 0; i < role->cnt; i++) {
		const struct snap_thread *t = &ui->snap->threads[role->members[i]];
		sum.requests += t->requests;
		for (int g = 0; g < 9; g++)
			sum.mix[g] += t->mix[g];
		for (int k = 0; k < STRIP; k++)
			cnt[k][CC_MIN(t->strip[k], 9)]++;
	}
	for (int k = 0; k < STRIP; k++)
		for (uint8_t g = 1; g < 10; g++)
			if (cnt[k][g] > (sum.strip[k] ? cnt[k][sum.strip[k]] : 0))
				sum.strip[k] = g;
	draw_thread(c, ui->snap, &sum, role, y, ui->pan);
}

static void draw_outside(struct canvas *c, const struct snapshot *s, const struct snap_outside *o,
			 int y, int pan)
{
	char buf[300];
	canvas_printf(c, 3, y, 8, ROLE_INACTIVE, "%-7u", o->task.tid);
	canvas_pan(c, NAME_X, y, NAME_W, ROLE_RUNQ, snapshot_str(s, o->task.comm), pan);
	const char *s1 = o->threads == 1 ? "" : "s", *s2 = o->requests == 1 ? "" : "s";
	if (c->w >= 110)
		snprintf(buf, sizeof(buf),
			 "not a target: had the CPU for %s while %u thread%s queued for it, in %s "
			 "request%s",
			 text_dur(o->delay_ns).s, o->threads, s1, text_count(o->requests).s, s2);
	else
		snprintf(buf, sizeof(buf), "no target: %u thread%s queued %s behind it", o->threads,
			 s1, text_dur(o->delay_ns).s);
	canvas_pan_cut(c, REQ_X + 1, y, c->w - REQ_X - 2, ROLE_INACTIVE, buf, pan);
}

static void draw_titles(struct canvas *c, const struct snapshot *s, int y)
{
	struct thread_cols p = place(c->w);
	char title[200];
	canvas_text(c, 3, y, 8, ROLE_TITLE, "TID");
	canvas_text(c, NAME_X, y, NAME_W, ROLE_TITLE, "COMM");
	canvas_right(c, REQ_X, y, 6, ROLE_TITLE, "REQ");
	canvas_text(c, NOW_X, y, p.now_w, ROLE_TITLE, "NOW, FOR");
	for (int i = 0; i < p.shares; i++)
		canvas_right(c, p.share_x + SHARE_W * i, y, SHARE_W - 1, style_group(i),
			     share_titles[i]);
	snprintf(title, sizeof(title), "LAST %s >", s ? text_age(s->window_ns).s : "");
	canvas_text(c, p.strip_x, y, p.strip_w, ROLE_TITLE, title);
}

static void threads_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snapshot *s = ui->snap;
	int rows = threads_rows(ui), top = ui->pos[SCREEN_THREADS].top;
	draw_head(ui, c, l);
	draw_titles(c, s, l->cols_y);
	if (!rows)
		draw_empty(ui, c, l->body_y);
	for (int i = 0; i < l->body_h && top + i < rows; i++) {
		int y = l->body_y + i;
		const struct thread_row *row = ui_thread_row(ui, top + i);
		if (row->outside)
			draw_outside(c, s, &s->outside[row->at], y, ui->pan);
		else if (row->cnt)
			draw_role(ui, c, top + i, y);
		else
			draw_thread(c, s, &s->threads[row->at], row, y, ui->pan);
		if (ui_row_marked(ui, SCREEN_THREADS, top + i))
			canvas_fill(c, 2, y, 1, ROLE_HI, '*');
		if (top + i == ui->pos[SCREEN_THREADS].row)
			draw_selected(c, 1, y, '>');
	}
}

static bool threads_match(const struct ui *ui, int row, const char *needle)
{
	const struct snapshot *s = ui->snap;
	const struct thread_row *r = ui_thread_row(ui, row);
	return text_has(
		snap_task_text(s, r->outside ? &s->outside[r->at].task : &s->threads[r->at].task).s,
		needle);
}

static uint64_t threads_key(const struct ui *ui, int row)
{
	const struct snapshot *s = ui->snap;
	const struct thread_row *r = ui_thread_row(ui, row);
	char role[64];
	ui_role(ui, row, role, sizeof(role));
	if (r->cnt)
		return view_hash(ROLE_KEY, role);
	if (r->outside)
		return 1ull << 32 | s->outside[r->at].task.tid;
	const struct snap_task *t = &s->threads[r->at].task;
	return t->goid ? 2ull << 32 ^ t->goid << 1 : t->tid;
}

const struct view_ops view_threads = {
	.rows = threads_rows,
	.body = threads_body,
	.draw = threads_draw,
	.match = threads_match,
	.key = threads_key,
};
