/* SPDX-License-Identifier: Apache-2.0 */
/* Setup: what a key of it changes; and the mouse. Changes act at once; the file is written only on
 * request. */
#include <string.h>

#include "columns.h"
#include "view.h"

int setup_rows(const struct ui *ui)
{
	(void)ui;
	return SETUP_COLUMNS + COL_CNT;
}

static unsigned int toggle_column(struct ui *ui, int col)
{
	if (COLUMNS_ALWAYS & 1u << col)
		ui_say(ui, true, "a row without it says nothing");
	else
		ui->columns ^= 1u << col;
	return UI_DRAW;
}

unsigned int setup_change(struct ui *ui)
{
	int row = ui->pos[SCREEN_SETUP].row;
	switch (row) {
	case SETUP_THEME:
		return ui_act(ui, ACT_THEME);
	case SETUP_INTERVAL:
		ui_next_interval(ui);
		return UI_DRAW;
	case SETUP_SORT:
		return ui_act(ui, ACT_SORT_NEXT);
	case SETUP_ORDER:
		return ui_act(ui, ACT_INVERT);
	case SETUP_MOUSE:
		return ui_act(ui, ACT_MOUSE);
	default:
		return toggle_column(ui, row - SETUP_COLUMNS);
	}
}

void setup_save(struct ui *ui)
{
	struct config cfg;
	struct cc_err err;
	char path[512];
	ui_config(ui, &cfg);
	if (config_save(&cfg, &err))
		ui_say(ui, true, "not saved: %s", err.msg);
	else if (!config_path(path, sizeof(path)))
		ui_say(ui, false, "saved in %s", path);
}

/* ---- mouse ---- */

/* Row under line @y; -1: none. */
static int row_under(const struct ui *ui, const struct layout *l, int y)
{
	enum screen s = ui_screen(ui);
	int first = s == SCREEN_PATH         ? 3
		    : s == SCREEN_STACKS     ? 4
		    : s == SCREEN_CONFIDENCE ? 5
		    : s == SCREEN_HELP       ? 2
					     : l->body_y;
	int at = y - first;
	if (s == SCREEN_REQUESTS && ui_by_port(ui))
		return port_under(ui, l, y);
	if (at < 0 || at >= view_of(s)->body(ui, l))
		return -1;
	int row = ui->pos[s].top + at;
	return row < view_of(s)->rows(ui) ? row : -1;
}

unsigned int ui_mouse(struct ui *ui, int key, int x, int y)
{
	struct layout l;
	view_layout(ui, &l);
	if (!ui->mouse || ui->prompt.kind != PROMPT_NONE || ui->menu != MENU_NONE ||
	    ui->w < UI_MIN_W || ui->h < UI_MIN_H)
		return 0;
	unsigned int effects = UI_DRAW;
	enum screen s = ui_screen(ui), tab = tab_under(ui, &l, x, y);
	int row = row_under(ui, &l, y);
	ui->status[0] = '\0';
	if (key == TK_WHEEL_UP || key == TK_WHEEL_DOWN)
		for (int i = 0; i < 3; i++)
			effects |= ui_act(ui, key == TK_WHEEL_UP ? ACT_UP : ACT_DOWN);
	else if (tab != SCREEN_CNT)
		ui_goto_top(ui, tab);
	else if (row >= 0 && row == ui->pos[s].row)
		effects |= ui_act(ui, ACT_OPEN);
	else if (row >= 0)
		ui_goto_row(ui, row);
	ui_settle(ui);
	return effects;
}
