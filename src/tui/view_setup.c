/* SPDX-License-Identifier: Apache-2.0 */
/* Setup: what the user may choose, and how it is now. */
#include <string.h>

#include "columns.h"
#include "view.h"

static int setup_body(const struct ui *ui, const struct layout *l)
{
	(void)ui;
	return CC_MAX(l->status_y - l->body_y - 1, 1);
}

static const char *column_help(int col)
{
	static const char *const help[COL_CNT] = {
		[COL_ID] = "request: socket and ordinal on the connection",
		[COL_LAT] = "latency",
		[COL_CPU] = "share on the CPU",
		[COL_RUNQ] = "share in the run queue",
		[COL_MIX] = "where the time went, as letters",
		[COL_DOMINANT] = "longest wait > what lies beneath it",
		[COL_SHARE] = "its share",
		[COL_WOKEN] = "who ended it",
		[COL_HELD] = "who had what was waited for",
		[COL_UNEXPLAINED] = "share that is not explained",
		[COL_CONF] = "confidence",
		[COL_LABEL] = "if no plain request: stream, set-up",
		[COL_AGE] = "how long ago it ended",
		[COL_CONN] = "peer",
	};
	return help[col];
}

static void value_of(const struct ui *ui, int row, char *buf, size_t cap, const char **ret_name,
		     const char **ret_why)
{
	static const struct {
		const char *name, *why;
	} rows[SETUP_COLUMNS] = {
		[SETUP_THEME] = { "theme", "Enter: the next one" },
		[SETUP_INTERVAL] = { "refresh every", "Enter: the next; 0.1 s to 60 s" },
		[SETUP_SORT] = { "sort by", "Enter: the next column" },
		[SETUP_ORDER] = { "order", "Enter: turns it round" },
		[SETUP_MOUSE] = { "mouse", "not saved: off at every start" },
	};
	bool up = ui->want.ascending;
	buf[0] = '\0';
	if (row >= SETUP_COLUMNS) {
		int col = row - SETUP_COLUMNS;
		*ret_name = config_column_name((unsigned int)col);
		*ret_why = column_help(col);
		snprintf(buf, cap, "[%c]", ui->columns & 1u << col ? 'x' : ' ');
		return;
	}
	*ret_name = rows[row].name;
	*ret_why = rows[row].why;
	if (row == SETUP_THEME)
		snprintf(buf, cap, "%s", ui->theme.name);
	else if (row == SETUP_INTERVAL)
		snprintf(buf, cap, "%gs", (double)ui->want.interval_ns / 1e9);
	else if (row == SETUP_SORT)
		snprintf(buf, cap, "%s", config_sort_name(ui->want.sort));
	else if (row == SETUP_ORDER)
		snprintf(buf, cap, "%s", up ? "smallest first" : "largest first");
	else
		snprintf(buf, cap, "%s", ui->mouse ? "on" : "off");
}

static void setup_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	int top = ui->pos[SCREEN_SETUP].top, rows = setup_rows(ui), name_w = c->w < 60 ? 14 : 16;
	char path[512] = "", value[64];
	struct pen p = { c, 1, 0, c->w };
	pen_put(&p, ROLE_TITLE, "Setup");
	pen_put(&p, ROLE_INACTIVE,
		c->w < 60 ? "  Enter changes, w saves" : "  Enter changes, w saves, Esc closes   ");
	if (c->w >= 60 && !config_path(path, sizeof(path)))
		canvas_fit(c, p.x, 0, c->w - p.x - 1, ROLE_INACTIVE, path);
	for (int i = top; i < rows && i - top < setup_body(ui, l); i++) {
		const char *name, *why;
		int y = l->body_y + i - top;
		value_of(ui, i, value, sizeof(value), &name, &why);
		canvas_text(c, 3, y, name_w, i < SETUP_COLUMNS ? ROLE_FG : ROLE_INACTIVE,
			    i < SETUP_COLUMNS ? "" : "column");
		canvas_text(c, i < SETUP_COLUMNS ? 3 : 10, y, name_w, ROLE_FG, name);
		canvas_text(c, 5 + name_w + 6, y, 16, ROLE_FG | CELL_BOLD, value);
		canvas_cut(c, 5 + name_w + 6 + 16, y, c->w - name_w - 28, ROLE_INACTIVE, why);
		if (i == ui->pos[SCREEN_SETUP].row)
			draw_selected(c, 1, y, '>');
	}
}

const struct view_ops view_setup = {
	.rows = setup_rows,
	.body = setup_body,
	.draw = setup_draw,
};
