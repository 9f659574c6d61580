/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks: where the wait was and where its waker was, side by side. */
#include <string.h>

#include "view.h"

#define NARROW 100

/* The frames of one side: kernel frames (unless hidden), then user frames, innermost first. */
struct side {
	const struct snapshot *s;
	const struct snap_stack *part[2];
	int cnt[2];
	bool hidden; /* it has kernel frames, which are not shown */
};

static struct side side_of(const struct ui *ui, const struct snapshot *s, uint32_t user,
			   uint32_t kernel)
{
	struct side d = { .s = s, .hidden = ui->no_kernel && kernel };
	uint32_t key[2] = { ui->no_kernel ? 0 : kernel, user };
	for (int i = 0; i < 2; i++) {
		if (!key[i] || key[i] > s->stack_cnt)
			continue;
		const struct snap_stack *st = &s->stacks[key[i] - 1];
		uint32_t first = CC_MIN(st->first, s->frame_cnt);
		d.part[i] = st;
		d.cnt[i] = (int)CC_MIN(st->cnt, s->frame_cnt - first);
	}
	return d;
}

static int side_cnt(const struct side *d) { return d->cnt[0] + d->cnt[1]; }

static const struct snap_frame *side_frame(const struct side *d, int i)
{
	int part = i >= d->cnt[0];
	i -= part ? d->cnt[0] : 0;
	if (i < 0 || i >= d->cnt[part])
		return NULL;
	return &d->s->frames[d->part[part]->first + (uint32_t)i];
}

/* What the reader must know about the end of a stack; "" if it is whole. */
static const char *side_flaw(const struct side *d)
{
	if (!side_cnt(d))
		return d->hidden ? "only kernel frames: K shows them" : "no stack was taken";
	if (!d->part[1])
		return "no user stack";
	if (d->part[1]->flags & CC_ST_GUESSED)
		return "... guessed: no unwind information";
	return d->part[1]->flags & CC_ST_COMPLETE ? "" : "... cut here: could not unwind further";
}

static const struct snap_piece *stacks_piece(const struct ui *ui, const struct snapshot **ret_s,
					     const struct snap_request **ret_r)
{
	const struct snap_request *r = ui_request(ui, ret_s);
	uint32_t cnt = 0, row = ui_piece(ui);
	const struct snap_piece *p = r ? request_pieces(*ret_s, r, &cnt) : NULL;
	*ret_r = r;
	return row < cnt ? &p[row] : NULL;
}

static void sides(const struct ui *ui, struct side ret[2])
{
	const struct snapshot *s;
	const struct snap_request *r;
	const struct snap_piece *p = stacks_piece(ui, &s, &r);
	memset(ret, 0, 2 * sizeof(*ret));
	if (!p)
		return;
	ret[0] = side_of(ui, s, p->stack, p->kstack);
	ret[1] = side_of(ui, s, p->waker_stack, p->waker_kstack);
}

/* Columns that the longest frame of a side needs. */
static int side_width(const struct side *d)
{
	int w = 0;
	for (int i = 0; i < side_cnt(d); i++) {
		const struct snap_frame *f = side_frame(d, i);
		w = CC_MAX(w, canvas_width(snapshot_str(d->s, f->text)) +
				      canvas_width(snapshot_str(d->s, f->module)) + 3);
	}
	return w;
}

static bool beside(const struct ui *ui, const struct side d[2])
{
	return ui->w >= NARROW ||
	       (side_width(&d[0]) < ui->w / 2 - 2 && side_width(&d[1]) < ui->w / 2 - 2);
}

/* Lines of a side with its title and, if any, its flaw. */
static int side_lines(const struct side *d) { return 1 + side_cnt(d) + (*side_flaw(d) != '\0'); }

static int stacks_rows(const struct ui *ui)
{
	struct side d[2];
	sides(ui, d);
	if (!d[0].s)
		return 0;
	return beside(ui, d) ? CC_MAX(side_lines(&d[0]), side_lines(&d[1]))
			     : side_lines(&d[0]) + 1 + side_lines(&d[1]);
}

static int stacks_body(const struct ui *ui, const struct layout *l)
{
	(void)ui;
	return l->status_y - 4;
}

/* "app cart.c:88", or without the place in the source. */
static const char *module_text(const struct ui *ui, const char *module, char buf[64])
{
	if (!ui->no_lines)
		return module;
	snprintf(buf, 64, "%.*s", (int)CC_MIN(strcspn(module, " "), (size_t)63), module);
	return buf;
}

static void draw_line(const struct ui *ui, struct canvas *c, const struct side *d, int i, int x,
		      int y, int w, const char *title, const char *site)
{
	char buf[64];
	const struct snap_frame *f = side_frame(d, i - 1);
	if (i == 0) {
		canvas_cut(c, x, y, w, ROLE_TITLE, title);
		return;
	}
	if (!f) {
		if (i == side_cnt(d) + 1)
			canvas_text(c, x + 2, y, w - 2, ROLE_INACTIVE, side_flaw(d));
		return;
	}
	const char *text = snapshot_str(d->s, f->text),
		   *module = module_text(ui, snapshot_str(d->s, f->module), buf);
	bool kernel = i - 1 < d->cnt[0], here = !kernel && *site && !strcmp(text, site);
	int mod_w = CC_MIN(canvas_width(module), w / 2), text_w = w - 2 - mod_w - 2;
	canvas_text(c, x, y, 1, ROLE_HI, here ? ">" : "");
	style st = kernel ? ROLE_INACTIVE : here ? ROLE_FG | CELL_BOLD : ROLE_FG;
	canvas_pan(c, x + 2, y, text_w, st, text, ui->pan);
	canvas_fit(c, x + w - mod_w, y, mod_w, ROLE_INACTIVE, module);
}

static void titles(const struct snapshot *s, const struct snap_piece *p, char blocked[128],
		   char waker[128])
{
	char letter = wait_class_letter(p->p.cls);
	bool queued = letter == 'R' && p->occupant.tid;
	snprintf(blocked, 128, "%s  %s",
		 letter == 'C'   ? p->stack || p->kstack ? "SAMPLED ON THE CPU" : "RUNNING"
		 : letter == 'R' ? "RUNNABLE"
				 : "BLOCKED",
		 snap_task_text(s, &p->task).s);
	snprintf(waker, 128, "%s  %s", queued ? "CPU HAD BY" : "WOKEN BY",
		 queued ? snap_task_text(s, &p->occupant).s : snap_waker_text(s, p).s);
}

static void stacks_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snapshot *s;
	const struct snap_request *r;
	const struct snap_piece *p = stacks_piece(ui, &s, &r);
	struct side d[2];
	char title[2][128];
	int top = ui->pos[SCREEN_STACKS].top, row = ui->pos[SCREEN_STACKS].row;
	if (!r) {
		canvas_text(c, 1, 1, c->w - 2, ROLE_WARN, "This request is no longer known.");
		return;
	}
	draw_request_head(ui, c, s, r);
	if (!p) {
		canvas_text(c, 1, 3, c->w - 2, ROLE_WARN, "This request has no path.");
		return;
	}
	struct pen pen = { c, 1, 2, c->w };
	char note[512];
	text_note(s, p, note, sizeof(note));
	pen_printf(&pen, style_wait(p->p.cls), "%s ", wait_class_name(p->p.cls));
	pen_printf(&pen, ROLE_FG, "%s ms  ", text_ms(p->p.end - p->p.start).s);
	canvas_cut(c, pen.x, 2, c->w - pen.x - 1, ROLE_FG, note);
	sides(ui, d);
	titles(s, p, title[0], title[1]);
	const char *site[2] = { snapshot_str(s, p->site), snapshot_str(s, p->waker_site) };
	if (!side_cnt(&d[0]) && !side_cnt(&d[1]) && !d[0].hidden && !d[1].hidden)
		canvas_wrap(c, 1, 7, c->w - 2, 3, ROLE_INACTIVE,
			    "Of a wait that was short (--stack-min), that was for a CPU, or in "
			    "which the "
			    "thread served other requests, there is none.");
	bool two = beside(ui, d);
	int half = two ? (c->w - 3) / 2 : c->w - 2, rows = stacks_rows(ui);
	for (int i = top; i < rows && i - top < l->status_y - 4; i++) {
		int y = 4 + i - top, second = i - side_lines(&d[0]) - 1;
		if (two || i < side_lines(&d[0]))
			draw_line(ui, c, &d[0], i, 1, y, half - 1, title[0], site[0]);
		if (two)
			canvas_fill(c, half + 1, y, 1, ROLE_DIV, 0x2502);
		if (two || second >= 0)
			draw_line(ui, c, &d[1], two ? i : second, two ? half + 3 : 1, y,
				  two ? c->w - half - 4 : half - 1, title[1], site[1]);
		if (i == row)
			draw_selected(c, 0, y, 0);
	}
}

static bool stacks_match(const struct ui *ui, int row, const char *needle)
{
	struct side d[2];
	sides(ui, d);
	bool two = d[0].s && beside(ui, d);
	for (int k = 0; d[0].s && k < 2; k++) {
		int i = two || !k ? row - 1 : row - side_lines(&d[0]) - 2;
		const struct snap_frame *f = side_frame(&d[k], i);
		if (f && (text_has(snapshot_str(d[k].s, f->text), needle) ||
			  text_has(snapshot_str(d[k].s, f->module), needle)))
			return true;
	}
	return false;
}

const struct view_ops view_stacks = {
	.rows = stacks_rows,
	.body = stacks_body,
	.draw = stacks_draw,
	.match = stacks_match,
};
