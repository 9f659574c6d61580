/* SPDX-License-Identifier: Apache-2.0 */
/* Keys to actions, actions to state. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "view.h"

/* ---- moving ---- */

void ui_goto_row(struct ui *ui, int row)
{
	enum screen s = ui_screen(ui);
	if (row != ui->pos[s].row)
		ui->follow &= ~(1u << s);
	if (s == SCREEN_REQUESTS) {
		ui_select_row(ui, row);
		return;
	}
	ui->pos[s].row = row;
	if (s == SCREEN_PATH)
		ui_piece_row(ui, row);
}

static bool act_move(struct ui *ui, enum action a)
{
	enum screen s = ui_screen(ui);
	struct layout l;
	view_layout(ui, &l);
	int rows = view_of(s)->rows(ui), page = CC_MAX(view_of(s)->body(ui, &l), 1);
	int row = ui->pos[s].row;
	switch ((int)a) {
	case ACT_UP:
		row--;
		break;
	case ACT_DOWN:
		row++;
		break;
	case ACT_PAGE_UP: /* the rows move, the selection stays on its line */
		row -= page;
		ui->pos[s].top -= page;
		break;
	case ACT_PAGE_DOWN:
		row += page;
		ui->pos[s].top += page;
		break;
	case ACT_HALF_UP:
		row -= (page + 1) / 2;
		break;
	case ACT_HALF_DOWN:
		row += (page + 1) / 2;
		break;
	case ACT_TOP:
		row = 0;
		break;
	case ACT_BOTTOM:
		row = rows - 1;
		break;
	case ACT_PAN_LEFT:
		ui->pan = CC_MAX(ui->pan - 8, 0);
		break;
	case ACT_PAN_RIGHT:
		ui->pan = CC_MIN(ui->pan + 8, 480);
		break;
	default:
		return false;
	}
	ui_goto_row(ui, CC_MAX(0, CC_MIN(row, rows - 1)));
	return true;
}

/* ---- screens ---- */

static bool request_screen(enum screen s) { return ON_REQUEST & 1u << s; }

void ui_goto_top(struct ui *ui, enum screen s)
{
	ui->depth = 1;
	ui->stack[0] = s;
	ui->pan = 0;
	ui_end_span(ui);
}

static void open_row(struct ui *ui)
{
	const struct snapshot *s;
	const struct snap_request *r;
	const struct snap_thread *t;
	switch (ui_screen(ui)) {
	case SCREEN_REQUESTS:
		r = ui_request(ui, &s);
		if (!r) {
			ui_say(ui, true, "no request is selected");
			break;
		}
		ui_open(ui, SCREEN_PATH);
		break;
	case SCREEN_PATH:
		if (!ui_open_folded(ui))
			ui_open(ui, SCREEN_STACKS);
		break;
	case SCREEN_THREADS:
		t = ui_thread(ui, ui->pos[SCREEN_THREADS].row);
		if (t && !t->requests) {
			ui_open_span(ui);
			break;
		}
		/* fall through */
	case SCREEN_WAITS:
		if (ui_add_term(ui, false))
			ui_goto_top(ui, SCREEN_REQUESTS);
		break;
	default:
		ui_say(ui, false, "nothing lies deeper here");
	}
}

static void next_pane(struct ui *ui, int step)
{
	enum screen s = ui_screen(ui);
	int first = request_screen(s) ? SCREEN_PATH : SCREEN_REQUESTS;
	int cnt = request_screen(s) ? 3 : 4;
	enum screen next = (enum screen)(first + ((int)s - first + step + cnt) % cnt);
	if (!request_screen(s)) {
		ui_goto_top(ui, next);
		return;
	}
	/* tabs of one request lie beside each other, not above: Esc leaves them all at once */
	ui->depth = 2;
	ui->stack[1] = next;
	ui->pan = 0;
}

static bool act_screen(struct ui *ui, enum action a)
{
	switch ((int)a) {
	case ACT_OPEN:
		open_row(ui);
		return true;
	case ACT_BACK:
		if (ui_back(ui))
			return true;
		if (ui_screen(ui) == SCREEN_REQUESTS && ui->want.by_port)
			ui_port_toggle(ui);
		else
			ui_say(ui, false, "q quits");
		return true;
	case ACT_VIEW_REQUESTS:
	case ACT_VIEW_WAITS:
	case ACT_VIEW_THREADS:
	case ACT_VIEW_HEALTH:
		ui_goto_top(ui, (enum screen)(SCREEN_REQUESTS + (a - ACT_VIEW_REQUESTS)));
		return true;
	case ACT_NEXT_PANE:
	case ACT_PREV_PANE:
		next_pane(ui, a == ACT_NEXT_PANE ? 1 : -1);
		return true;
	case ACT_PREVIEW:
		ui->no_preview = !ui->no_preview;
		return true;
	case ACT_KERNEL:
		ui->no_kernel = !ui->no_kernel;
		ui_say(ui, false, "kernel frames %s", ui->no_kernel ? "hidden" : "shown");
		return true;
	case ACT_LINES:
		ui->no_lines = !ui->no_lines;
		ui_say(ui, false, "files and lines %s", ui->no_lines ? "hidden" : "shown");
		return true;
	case ACT_SETUP:
		ui_open(ui, SCREEN_SETUP);
		return true;
	case ACT_HELP:
		if (ui_screen(ui) == SCREEN_HELP)
			ui_back(ui);
		else
			ui_open(ui, SCREEN_HELP);
		return true;
	default:
		return false;
	}
}

/* ---- keeping ---- */

/* Of screens that are about no request: what they show, as text. */
static int copy_screen(const struct ui *ui, char **ret)
{
	struct canvas c;
	size_t len;
	int err = canvas_init(&c, ui->w, ui->h);
	FILE *out = err ? NULL : open_memstream(ret, &len);
	if (!err && !out)
		err = -ENOMEM;
	if (!err) {
		ui_draw(ui, &c);
		canvas_dump(&c, out);
		err = fclose(out) ? -ENOMEM : 0;
	}
	canvas_done(&c);
	return err;
}

static unsigned int copied(struct ui *ui, char *text, const char *what)
{
	free(ui->clip);
	ui->clip = text;
	ui_say(ui, false, "copied %s: %zu bytes", what, strlen(text));
	return UI_DRAW | UI_COPY;
}

static unsigned int copy(struct ui *ui, bool json)
{
	const struct snapshot *s;
	char *screen = NULL;
	if (!(keymap_row(ACT_COPY_JSON)->screens & 1u << ui_screen(ui))) {
		int bad = copy_screen(ui, &screen);
		if (!bad)
			return copied(ui, screen, "this screen");
		ui_say(ui, true, "not copied: %s", strerror(-bad));
		return UI_DRAW;
	}
	const struct snap_request *r = ui_request(ui, &s);
	char *text = NULL;
	if (!r) {
		ui_say(ui, true, "no request is selected");
		return UI_DRAW;
	}
	int err = -ENOSYS;
	if (ui->opts.ops->story)
		err = ui->opts.ops->story(ui->opts.ctx, s, r, json, &text);
	else if (!json)
		err = batch_request(s, r, &text);
	if (err) {
		ui_say(ui, true, "not copied: %s", strerror(-err));
		return UI_DRAW;
	}
	return copied(ui, text, snapshot_str(s, r->id_text));
}

static unsigned int next_theme(struct ui *ui)
{
	struct cc_err err;
	if (ui->no_theme) {
		ui_say(ui, true, "NO_COLOR is set");
		return UI_DRAW;
	}
	for (size_t i = 1; i <= ui->theme_cnt; i++) {
		size_t at = (ui->theme_at + i) % ui->theme_cnt;
		if (!theme_load(ui->themes[at], &ui->theme, &err)) {
			ui->theme_at = at;
			snprintf(ui->theme_from, sizeof(ui->theme_from), "%s", ui->themes[at]);
			ui_say(ui, false, "theme %s", ui->theme.name);
			return UI_DRAW | UI_THEME;
		}
	}
	return UI_DRAW;
}

static void restart(struct ui *ui)
{
	if (!ui->snap || !ui->snap->runtime.target_gone) {
		ui_say(ui, false,
		       ui->opts.live ? "the target is running"
				     : "a recording has no target to wait for");
		return;
	}
	ui->want.restart_cnt++;
	ui->want.paused = false;
	ui_command(ui, TUI_CH_PAUSE);
}

unsigned int ui_act(struct ui *ui, enum action a)
{
	static const unsigned int choosing =
		1u << KEYS_MOVE | 1u << KEYS_OPEN | 1u << KEYS_FIND | 1u << KEYS_SAVE;
	if (choosing & 1u << keymap_row(a)->group)
		ui->chosen = true; /* from here on the selection is the user's */
	if (a == ACT_OPEN && ui_screen(ui) == SCREEN_SETUP)
		return setup_change(ui);
	if (act_move(ui, a) || act_screen(ui, a) || ui_act_path(ui, a) || ui_act_mark(ui, a) ||
	    ui_act_order(ui, a) || ui_act_find(ui, a) || ui_act_time(ui, a))
		return UI_DRAW;
	switch ((int)a) {
	case ACT_QUIT_BACK:
		return ui_back(ui) ? UI_DRAW : UI_QUIT;
	case ACT_QUIT:
		return UI_QUIT;
	case ACT_SUSPEND:
		return UI_SUSPEND;
	case ACT_REDRAW:
		return UI_DRAW | UI_REPAINT;
	case ACT_THEME:
		return next_theme(ui);
	case ACT_RESTART:
		restart(ui);
		return UI_DRAW;
	case ACT_MOUSE:
		ui->mouse = !ui->mouse;
		ui_say(ui, false,
		       ui->mouse ? "mouse on: click a row, again to open it; M frees it for copying"
				 : "mouse off");
		return UI_DRAW | UI_MOUSE;
	case ACT_GOTO:
		prompt_open(ui, PROMPT_GOTO);
		return UI_DRAW;
	case ACT_SAVE:
		if (ui_screen(ui) == SCREEN_SETUP) {
			setup_save(ui);
			return UI_DRAW;
		}
		ui->menu = MENU_SAVE;
		ui->menu_row = 0;
		return UI_DRAW;
	case ACT_COPY:
	case ACT_COPY_JSON:
		return copy(ui, a == ACT_COPY_JSON);
	default:
		return 0;
	}
}

/* Help takes printable keys as a search while there is one, or none is bound. */
static bool help_typed(struct ui *ui, int key)
{
	size_t n = strlen(ui->help_query);
	if (ui_screen(ui) != SCREEN_HELP)
		return false;
	if (n && (key == TK_ESC || key == TK_CTRL('u')))
		ui->help_query[0] = '\0';
	else if (n && (key == TK_BACKSPACE || key == '\b'))
		ui->help_query[n - 1] = '\0';
	else if (key > ' ' && key < 127 && n + 1 < sizeof(ui->help_query) &&
		 (n || keymap_find(&ui->keys, SCREEN_HELP, key) == ACT_NONE))
		snprintf(ui->help_query + n, sizeof(ui->help_query) - n, "%c", key);
	else if (n && key == ' ' && n + 1 < sizeof(ui->help_query))
		strcpy(ui->help_query + n, " ");
	else
		return false;
	ui->pos[SCREEN_HELP] = (struct list_pos){ 0 };
	return true;
}

unsigned int ui_key(struct ui *ui, int key)
{
	unsigned int effects = UI_DRAW;
	if (ui->prompt.kind == PROMPT_NONE)
		ui->status[0] = '\0';
	if (key == TK_CTRL('c'))
		return UI_QUIT;
	if (ui->prompt.kind != PROMPT_NONE)
		effects = prompt_key(ui, key);
	else if (ui->menu != MENU_NONE)
		effects = menu_key(ui, key);
	else if (!help_typed(ui, key))
		effects = ui_act(ui, keymap_find(&ui->keys, ui_screen(ui), key)) | UI_DRAW;
	ui_settle(ui);
	return effects;
}
