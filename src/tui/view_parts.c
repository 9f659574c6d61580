/* SPDX-License-Identifier: Apache-2.0 */
/* Bars, sparklines, legends: parts that several screens share. */
#include <stdlib.h>
#include <string.h>

#include "confidence.h"
#include "view.h"

style style_group(int i) { return (style)(ROLE_CPU + i); }

style style_wait(unsigned int cls) { return (style)theme_wait_role(wait_class_letter(cls)); }

style style_conf(unsigned int confidence)
{
	char l = confidence_letter(confidence);
	return l == 'H' ? ROLE_CONF_HIGH : l == 'M' ? ROLE_CONF_MID : ROLE_CONF_LOW;
}

/* Shares @w cells by largest remainder, so that the bar is full and no group is off by more than a
 * cell; anything above half a percent keeps at least one where there is room. */
static void share_cells(const cc_ns ns[9], cc_ns total, int w, int cells[9])
{
	double rest[9];
	int left = w;
	for (int i = 0; i < 9; i++) {
		double exact = (double)ns[i] / (double)total * w;
		cells[i] = (int)exact;
		rest[i] = exact - cells[i];
		left -= cells[i];
	}
	while (left > 0) {
		int best = 0;
		for (int i = 1; i < 9; i++)
			if (rest[i] > rest[best])
				best = i;
		if (rest[best] <= 0)
			break;
		cells[best]++;
		rest[best] = 0;
		left--;
	}
}

void draw_mix(struct canvas *c, int x, int y, int w, const cc_ns ns[9], cc_ns total)
{
	int cells[9];
	cc_ns sum = 0;
	for (int i = 0; i < 9; i++)
		sum += ns[i];
	total = CC_MAX(total, sum);
	if (!total || w <= 0)
		return;
	share_cells(ns, total, w, cells);
	for (int i = 0, at = x; i < 9; at += cells[i], i++)
		canvas_fill(c, at, y, cells[i], style_group(i), (unsigned char)WAIT_GROUPS[i]);
}

void draw_spark_cell(struct canvas *c, int x, int y, cc_ns v, cc_ns top)
{
	int level = (int)((double)CC_MIN(v, top) / (double)top * 7.999);
	style st = level < 3 ? ROLE_HEAT_START : level < 6 ? ROLE_HEAT_MID : ROLE_HEAT_END;
	canvas_fill(c, x, y, 1, st, 0x2581 + (uint32_t)level);
}

void draw_spark(struct canvas *c, int x, int y, int w, const cc_ns *v, int cnt)
{
	cc_ns top = 0;
	for (int i = 0; i < cnt; i++)
		top = CC_MAX(top, v[i]);
	w = CC_MIN(w, cnt);
	for (int i = 0; i < w && top; i++) {
		int from = i * cnt / w, to = CC_MAX((i + 1) * cnt / w, from + 1);
		cc_ns high = 0;
		for (int k = from; k < to; k++)
			high = CC_MAX(high, v[k]);
		if (high)
			draw_spark_cell(c, x + i, y, high, top);
	}
}

/* One entry; its letter alone where names have no room. */
static void legend_entry(char buf[48], int group, bool brief, double share)
{
	struct text pc = text_percent(share);
	if (brief)
		snprintf(buf, 48, "%c%.8s ", WAIT_GROUPS[group], pc.s);
	else
		snprintf(buf, 48, "%.20s %.8s  ", wait_group_name(WAIT_GROUPS[group]), pc.s);
}

void draw_legend(struct pen *p, const cc_ns ns[9])
{
	char buf[48];
	int order[9] = { 0 }, n = 0, w = 0;
	cc_ns sum = 0;
	for (int i = 0; i < 9; i++) {
		int at = n;
		if (!ns[i])
			continue;
		for (; at > 0 && ns[order[at - 1]] < ns[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
		n++;
		sum += ns[i];
	}
	for (int i = 0; i < n && ns[order[i]] >= sum / 100; i++) { /* the rest may be cut */
		legend_entry(buf, order[i], false, (double)ns[order[i]] / (double)sum);
		w += canvas_width(buf);
	}
	bool brief = p->x + w > p->end;
	for (int i = 0; i < n; i++) {
		legend_entry(buf, order[i], brief, (double)ns[order[i]] / (double)sum);
		w = canvas_width(buf);
		if (p->x + w > p->end + 1) /* its last blank may go */
			return;
		size_t name = strcspn(buf, "<0123456789");
		pen_printf(p, style_group(order[i]), "%.*s", (int)name, buf);
		pen_put(p, ROLE_FG, buf + name);
	}
}

void draw_menu(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	int n = menu_items(ui), w = 0;
	const char *title = ui->menu == MENU_SORT ? "Sort by" : "Save";
	char key;
	for (int i = 0; i < n; i++)
		w = CC_MAX(w, canvas_width(menu_item(ui, i, &key)));
	w += 8;
	/* a low screen has room for some of them only: those around the selected one */
	int h = CC_MAX(CC_MIN(n, l->status_y - 2), 1), top = CC_MAX(0, ui->menu_row - h + 1);
	int x = CC_MAX(c->w - w - 4, 0), y = CC_MAX(l->status_y - h - 2, 0);
	canvas_fill(c, x, y, w, ROLE_DIV, 0x2500);
	canvas_fill(c, x, y + h + 1, w, ROLE_DIV, 0x2500);
	for (int i = 0; i <= h + 1; i++) {
		bool first = i == 0, last = i == h + 1;
		canvas_fill(c, x, y + i, 1, ROLE_DIV, first ? 0x250c : last ? 0x2514 : 0x2502);
		canvas_fill(c, x + w - 1, y + i, 1, ROLE_DIV,
			    first  ? 0x2510
			    : last ? 0x2518
				   : 0x2502);
	}
	canvas_printf(c, x + 2, y, w - 4, ROLE_TITLE, " %s ", title);
	for (int i = 0; i < h; i++) {
		const char *name = menu_item(ui, top + i, &key);
		canvas_fill(c, x + 1, y + 1 + i, w - 2, ROLE_FG, ' ');
		canvas_fill(c, x + 2, y + 1 + i, 1, ROLE_HI, (unsigned char)key);
		canvas_text(c, x + 5, y + 1 + i, w - 6, ROLE_FG, name);
		if (top + i == ui->menu_row) {
			canvas_add(c, x + 1, y + 1 + i, w - 2, CELL_SEL);
			c->cur_x = x + 2;
			c->cur_y = y + 1 + i;
		}
	}
}

const char *prompt_label(enum prompt_kind kind)
{
	return kind == PROMPT_FILTER   ? " filter> "
	       : kind == PROMPT_SEARCH ? " search> "
				       : " go to> ";
}

void draw_prompt(const struct ui *ui, struct canvas *c, int y)
{
	const struct prompt *p = &ui->prompt;
	const char *label = prompt_label(p->kind);
	char before[TUI_FILTER_LEN];
	int lead = canvas_width(label), room = c->w - lead - 1;
	snprintf(before, sizeof(before), "%.*s", (int)p->at, p->text);
	/* the cursor stays on the screen: long text moves to the left under it */
	int cur = canvas_width(before), off = CC_MAX(cur - room, 0);
	canvas_fill(c, 0, y, c->w, ROLE_FG, ' ');
	canvas_text(c, lead - off, y, c->w - lead + off, ROLE_FG, p->text);
	canvas_text(c, 0, y, c->w, ROLE_HI, label);
	c->cur_x = lead + cur - off;
	c->cur_y = y;
	if (p->kind != PROMPT_FILTER || !ui->snap || *p->err.msg)
		return;
	char cnt[224];
	snprintf(cnt, sizeof(cnt), "%s of %s", text_count(ui->snap->match_cnt).s,
		 text_count(ui->snap->total_cnt).s);
	if (c->cur_x + canvas_width(cnt) + 4 < c->w)
		canvas_right(c, c->w - 40, y, 39, ROLE_INACTIVE, cnt);
}
