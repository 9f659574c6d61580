/* SPDX-License-Identifier: Apache-2.0 */
#include "ui.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

int ui_init(struct ui *ui, const struct tui_opts *o)
{
	struct cc_err err;
	struct config cfg;
	config_init(&cfg);
	if (o->config)
		cfg = *o->config;
	const char *theme = theme_first(o->theme, cfg.theme);
	*ui = (struct ui){
		.opts = *o, .w = 80, .h = 24, .depth = 1, .history_at = -1, .save_fd = -1
	};
	ui->opts.config = NULL; /* its settings are the UI's own from here */
	ui->keys = cfg.keys;
	ui->columns = cfg.columns;
	ui->want.sort = cfg.sort;
	ui->want.ascending = cfg.ascending;
	ui->want.interval_ns = o->interval_ns ? o->interval_ns : cfg.interval_ns;
	if (!ui->want.interval_ns)
		ui->want.interval_ns = CC_S(1);
	ui->want.speed = 1;
	snprintf(ui->want.filter, sizeof(ui->want.filter), "%s", o->filter ? o->filter : "");
	ui->no_theme = !o->theme && !*cfg.theme && !strcmp(theme, "mono"); /* NO_COLOR */
	snprintf(ui->theme_from, sizeof(ui->theme_from), "%s", ui->no_theme ? "default" : theme);
	int e = theme_load(theme, &ui->theme, &err);
	if (e)
		return e;
	ui->themes = theme_names(&ui->theme_cnt);
	if (!ui->themes)
		return -ENOMEM;
	for (size_t i = 0; i < ui->theme_cnt; i++)
		if (!strcmp(ui->themes[i], ui->theme.name))
			ui->theme_at = i;
	return 0;
}

void ui_config(const struct ui *ui, struct config *ret)
{
	config_init(ret);
	if (strcmp(ui->theme_from, "default") != 0)
		snprintf(ret->theme, sizeof(ret->theme), "%s", ui->theme_from);
	ret->interval_ns = ui->want.interval_ns == CC_S(1) ? 0 : ui->want.interval_ns;
	ret->columns = ui->columns;
	ret->sort = ui->want.sort;
	ret->ascending = ui->want.ascending;
	ret->keys = ui->keys;
}

void ui_drop(struct ui *ui, struct snapshot *s)
{
	if (s && ui->opts.ops && ui->opts.ops->give_back)
		ui->opts.ops->give_back(ui->opts.ctx, s);
	else
		snapshot_free(s);
}

void ui_done(struct ui *ui)
{
	ui_drop(ui, ui->snap);
	ui_drop(ui, ui->pin);
	theme_names_free(ui->themes);
	free(ui->order);
	free(ui->waits);
	free(ui->threads);
	free(ui->role_members);
	free(ui->clip);
	*ui = (struct ui){ 0 };
}

enum screen ui_screen(const struct ui *ui) { return ui->stack[ui->depth - 1]; }

enum screen ui_under(const struct ui *ui)
{
	enum screen s = ui_screen(ui);
	bool over = s == SCREEN_HELP || s == SCREEN_SETUP;
	return over && ui->depth > 1 ? ui->stack[ui->depth - 2] : s;
}

void ui_say(struct ui *ui, bool bad, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(ui->status, sizeof(ui->status), fmt, ap);
	va_end(ap);
	ui->status_bad = bad;
}

void ui_command(struct ui *ui, unsigned int changed)
{
	ui->want.changed |= changed;
	int err = ui->opts.ops->command ? ui->opts.ops->command(ui->opts.ctx, &ui->want) : 0;
	if (err)
		ui_say(ui, true, "not done: %s", strerror(-err));
	else
		ui->want.changed = 0;
}

/* ---- requests ---- */

const struct snap_request *ui_row(const struct ui *ui, int i, const struct snapshot **ret_s)
{
	if (!ui->snap || i < 0 || (uint32_t)i >= ui->order_cnt)
		return NULL;
	if (ui->order[i] == ORDER_PIN) {
		*ret_s = ui->pin;
		return ui->pin ? snapshot_find(ui->pin, ui->want.selected) : NULL;
	}
	*ret_s = ui->snap;
	return &ui->snap->requests[ui->order[i]];
}

const struct snap_request *ui_request(const struct ui *ui, const struct snapshot **ret_s)
{
	const struct snapshot *from[] = { ui->snap, ui->pin };
	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		const struct snap_request *r =
			from[i] ? snapshot_find(from[i], ui->want.selected) : NULL;
		if (r) {
			*ret_s = from[i];
			return r;
		}
	}
	return NULL;
}

const struct snap_piece *request_pieces(const struct snapshot *s, const struct snap_request *r,
					uint32_t *ret_cnt)
{
	uint32_t first = CC_MIN(r->first_piece, s->piece_cnt);
	*ret_cnt = CC_MIN(r->piece_cnt, s->piece_cnt - first);
	return s->pieces + first;
}

bool ui_marked(const struct ui *ui, struct cc_reqid id)
{
	for (int i = 0; i < ui->mark_cnt; i++)
		if (cc_reqid_eq(ui->marks[i].id, id))
			return true;
	return false;
}

bool ui_row_marked(const struct ui *ui, enum screen s, int row)
{
	const struct view_ops *v = view_of(s);
	uint64_t key = ui->row_mark_cnt && v->key && row < v->rows(ui) ? v->key(ui, row) : 0;
	for (int i = 0; key && i < ui->row_mark_cnt; i++)
		if (ui->row_marks[i].screen == s && ui->row_marks[i].key == key)
			return true;
	return false;
}

void ui_select_row(struct ui *ui, int row)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_row(ui, row, &s);
	if (!r)
		return;
	ui->pos[SCREEN_REQUESTS].row = row;
	if (cc_reqid_eq(r->id, ui->want.selected))
		return;
	ui->want.selected = r->id;
	ui->pos[SCREEN_PATH] = (struct list_pos){ 0 };
	ui->piece = PIECE_UNSEEN;
	ui->zoom_cnt = ui->jump_cnt = 0;
	ui_note_port(ui);
	/* a pinned row goes when it is left, and the rows below it move up by one */
	if (ui->pin) {
		ui_drop(ui, take_ptr(ui->pin));
		if (ui_order(ui, ui->frozen ? ui->snap : NULL))
			ui_say(ui, true, "out of memory");
	}
	ui_command(ui, TUI_CH_SELECT);
}

/* ---- screens ---- */

void ui_open(struct ui *ui, enum screen s)
{
	if (ui->depth < UI_DEPTH)
		ui->depth++;
	ui->stack[ui->depth - 1] = s;
	ui->pan = 0;
	if (s == SCREEN_HELP)
		ui->help_query[0] = '\0';
	ui->pos[s] = (struct list_pos){ 0 };
}

bool ui_back(struct ui *ui)
{
	if (ui_screen(ui) == SCREEN_PATH && ui->zoom_cnt) {
		ui->piece = ui->zoom[--ui->zoom_cnt].from;
		return true;
	}
	if ((ui_screen(ui) == SCREEN_PATH || ui_screen(ui) == SCREEN_REQUESTS) && ui_jump_back(ui))
		return true;
	if (ui_screen(ui) == SCREEN_THREADS && ui_thread_back(ui))
		return true;
	if (ui->depth <= 1)
		return false;
	ui->depth--;
	ui->pan = 0;
	if (!(ON_REQUEST & 1u << ui_under(ui)))
		ui_end_span(ui);
	return true;
}

void ui_settle(struct ui *ui)
{
	enum screen s = ui_screen(ui);
	struct list_pos *p = &ui->pos[s];
	struct layout l;
	view_layout(ui, &l);
	if (s == SCREEN_PATH)
		ui_settle_path(ui);
	int rows = view_of(s)->rows(ui), body = CC_MAX(view_of(s)->body(ui, &l), 1);
	p->row = CC_MAX(0, CC_MIN(p->row, rows - 1));
	p->top = CC_MIN(p->top, p->row);
	p->top = CC_MAX(p->top, p->row - body + 1);
	p->top = CC_MAX(0, CC_MIN(p->top, rows - body));
}

unsigned int ui_resize(struct ui *ui, int w, int h)
{
	ui->w = w;
	ui->h = h;
	if (w >= UI_MIN_W && h >= UI_MIN_H) /* else no rows are shown: keep where they were */
		ui_settle(ui);
	return UI_DRAW;
}

/* ---- news ---- */

/* Takes over @s; keeps the old one while only it knows the selected request. */
static void swap_snapshot(struct ui *ui, struct snapshot *s)
{
	struct snapshot *old = ui->snap;
	ui->snap = s;
	if (ui->want.selected.kind == CC_REQID_NONE || snapshot_find(s, ui->want.selected))
		ui_drop(ui, take_ptr(ui->pin));
	else if (!ui->pin && old && snapshot_find(old, ui->want.selected))
		ui->pin = take_ptr(old);
	if (ui_rows(ui) || ui_order(ui, ui->frozen ? (old ? old : ui->pin) : NULL)) {
		ui->order_cnt = 0;
		ui_say(ui, true, "out of memory");
	}
	ui_drop(ui, old);
}

/* ---- rows that are no requests: the selection stays on what they are about ---- */

static void note_rows(const struct ui *ui, uint64_t ret[SCREEN_CNT])
{
	for (int i = 0; i < SCREEN_CNT; i++) {
		const struct view_ops *v = view_of((enum screen)i);
		/* the top of a list nobody looks at is whatever comes first */
		bool seen = i == SCREEN_REQUESTS || i == (int)ui_screen(ui) || ui->pos[i].row > 0;
		bool there = seen && v->key && ui->snap && ui->pos[i].row < v->rows(ui);
		ret[i] = there ? v->key(ui, ui->pos[i].row) : 0;
	}
}

static void keep_rows(struct ui *ui, const uint64_t keys[SCREEN_CNT])
{
	for (int i = 0; i < SCREEN_CNT; i++) {
		const struct view_ops *v = view_of((enum screen)i);
		int rows = v->key && keys[i] ? v->rows(ui) : 0;
		if (v->key && ui->follow & 1u << i)
			ui->pos[i] = (struct list_pos){ 0 }, rows = 0;
		for (int k = 0; k < rows; k++) {
			if (v->key(ui, k) != keys[i])
				continue;
			/* it stays on its line of the screen too */
			ui->pos[i].top = CC_MAX(0, ui->pos[i].top + k - ui->pos[i].row);
			ui->pos[i].row = k;
			break;
		}
	}
}

void ui_reorder_rows(struct ui *ui)
{
	uint64_t keys[SCREEN_CNT];
	if (!ui->snap)
		return;
	note_rows(ui, keys);
	if (ui_rows(ui))
		ui_say(ui, true, "out of memory");
	keep_rows(ui, keys);
}

unsigned int ui_snapshot(struct ui *ui, struct snapshot *s)
{
	uint64_t keys[SCREEN_CNT];
	if (ui->want.paused && ui->snap && !s->runtime.paused) {
		ui_drop(ui, s);
		return 0;
	}
	note_rows(ui, keys);
	swap_snapshot(ui, s);
	keep_rows(ui, keys);
	ui->at_ns = s->now_ns;
	ui_bar_add(ui);
	ui->frame_cnt++;
	ui_found(ui);
	ui_span_came(ui);
	/* nobody has chosen a row yet, or the first one shall be selected */
	if (ui->follow & 1u << SCREEN_REQUESTS || !ui->chosen ||
	    ui->want.selected.kind == CC_REQID_NONE)
		ui_select_row(ui, 0);
	else
		ui_keep_port(ui);
	ui_settle(ui);
	unsigned int quit = ui->opts.max_frames && ui->frame_cnt >= ui->opts.max_frames;
	return UI_DRAW | (quit ? UI_QUIT : 0u);
}

/* ---- drawing ---- */

void ui_draw(const struct ui *ui, struct canvas *c)
{
	struct layout l;
	canvas_clear(c);
	if (c->w < UI_MIN_W || c->h < UI_MIN_H) {
		draw_tiny(c);
		return;
	}
	view_layout(ui, &l);
	view_of(ui_screen(ui))->draw(ui, c, &l);
	draw_foot(ui, c, &l);
	if (ui->menu != MENU_NONE)
		draw_menu(ui, c, &l);
}
