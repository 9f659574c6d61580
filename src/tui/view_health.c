/* SPDX-License-Identifier: Apache-2.0 */
/* Health: what was lost, what it costs, what is attached. */
#include "view.h"

struct health_line {
	const char *what;
	struct text value;
	bool bad;
	const char *why;
};
#define HEALTH_MAX 32

static void add(struct health_line *out, int *n, const char *what, struct text value, bool bad,
		const char *why)
{
	if (*n < HEALTH_MAX)
		out[(*n)++] = (struct health_line){ what, value, bad, why };
}

static struct text share_text(double share)
{
	struct text t = text_percent(share);
	size_t n = 0;
	while (t.s[n])
		n++;
	t.s[n] = '%';
	t.s[n + 1] = '\0';
	return t;
}

static void add_losses(const struct snapshot *s, struct health_line *out, int *n)
{
	static const struct {
		int cnt;
		const char *what, *why;
	} drops[] = {
		{ CC_CNT_DROP_EPISODE, "episodes that found the ring full",
		  "folded into the next: shown as unknown, never as CPU" },
		{ CC_CNT_DROP_EXTRA, "details of slow waits lost",
		  "these have no stacks or owner" },
		{ CC_CNT_DROP_REQ, "requests lost", "" },
		{ CC_CNT_DROP_TASK, "births, deaths, names lost", "" },
		{ CC_CNT_DROP_SOCKOP, "socket operations lost", "identity is less sure" },
		{ CC_CNT_DROP_SNAP, "stack snapshots lost", "" },
		{ CC_CNT_STORAGE_FAIL, "tasks or sockets without storage", "they are not seen" },
		{ CC_CNT_RECURSION, "program runs the kernel skipped", "" },
	};
	const struct engine_stats *st = &s->stats;
	add(out, n, "events lost, all", text_count(st->lost_cnt), st->lost_cnt, "");
	add(out, n, "time lost", text_dur(st->lost_ns), st->lost_ns, "");
	for (size_t i = 0; i < ARRAY_SIZE(drops); i++)
		if (st->counter[drops[i].cnt])
			add(out, n, drops[i].what, text_count(st->counter[drops[i].cnt]), true,
			    drops[i].why);
	add(out, n, "came after their watermark", text_count(st->late), st->late, "");
	add(out, n, "malformed records", text_count(st->malformed), st->malformed, "");
	add(out, n, "tasks waiting for each other", text_count(st->cycles), false,
	    "a bad edge: confidence 0 there");
}

static int lines(const struct snapshot *s, struct health_line out[HEALTH_MAX])
{
	const struct engine_stats *st = &s->stats;
	cc_ns span = s->last_ns > s->first_ns ? s->last_ns - s->first_ns : 0;
	int n = 0;
	add(out, &n, "own CPU", share_text(s->runtime.cpu_share), s->runtime.cpu_share > 0.05,
	    "of one core");
	add(out, &n, "own memory", text_bytes(s->runtime.rss_bytes), false, "");
	add(out, &n, "engine memory", text_bytes(st->memory_bytes), false, "");
	add(out, &n, "ring fill", share_text(s->runtime.ring_fill), s->runtime.ring_fill > 0.5, "");
	add(out, &n, "records", text_count(st->events), false, "");
	add(out, &n, "records a second",
	    text_count(span ? (uint64_t)((double)st->events / ((double)span / 1e9)) : 0), false,
	    "");
	add(out, &n, "times off the CPU", text_count(st->episodes), false, "");
	add_losses(s, out, &n);
	add(out, &n, "short waits summed", text_count(st->short_cnt), false, "below --min-block");
	add(out, &n, "user stacks taken", text_count(st->stacks_user), false, "");
	add(out, &n, "of these complete",
	    share_text(st->stacks_user ? (double)st->stacks_complete / (double)st->stacks_user : 0),
	    st->stacks_complete * 100 < st->stacks_user * 95, "reach the thread's start");
	if (st->counter[CC_CNT_SNAP_BUDGET])
		add(out, &n, "stacks left out in bursts",
		    text_count(st->counter[CC_CNT_SNAP_BUDGET]), false, "their waits are there");
	add(out, &n, "forgotten for age or memory", text_count(st->evicted), false, "");
	return n;
}

static int health_rows(const struct ui *ui)
{
	struct health_line out[HEALTH_MAX];
	return ui->snap ? lines(ui->snap, out) + (int)ui->snap->note_cnt : 0;
}

static int health_body(const struct ui *ui, const struct layout *l)
{
	(void)ui;
	return l->body_h;
}

static void health_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snapshot *s = ui->snap;
	struct health_line out[HEALTH_MAX];
	int top = ui->pos[SCREEN_HEALTH].top, rows = health_rows(ui);
	draw_head(ui, c, l);
	if (!s) {
		draw_empty(ui, c, l->body_y);
		return;
	}
	int n = lines(s, out);
	canvas_cut(c, 3, l->cols_y, c->w - 4, ROLE_TITLE, snapshot_str(s, s->host));
	for (int i = 0; i < l->body_h && top + i < rows; i++) {
		int y = l->body_y + i, k = top + i;
		if (k < n) {
			canvas_cut(c, 3, y, 34, ROLE_FG, out[k].what);
			canvas_right(c, CC_MIN(38, c->w - 13), y, 12,
				     out[k].bad ? ROLE_ERR : ROLE_FG | CELL_BOLD, out[k].value.s);
			canvas_cut(c, 53, y, c->w - 54, ROLE_INACTIVE, out[k].why);
		} else {
			canvas_cut(c, 3, y, c->w - 4, ROLE_WARN, snapshot_str(s, s->notes[k - n]));
		}
		if (k == ui->pos[SCREEN_HEALTH].row)
			draw_selected(c, 0, y, 0);
	}
}

const struct view_ops view_health = {
	.rows = health_rows,
	.body = health_body,
	.draw = health_draw,
};
