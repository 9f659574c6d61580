/* SPDX-License-Identifier: Apache-2.0 */
/* What is below every screen: the status line, prompts and keys; and why a screen is empty. */
#include <string.h>

#include "filter.h"
#include "fmt.h"
#include "view.h"

static void hint(const struct ui *ui, struct pen *p, enum action a, const char *label)
{
	char key[16];
	keymap_key_name(ui->keys.keys[a][0], key);
	if (p->x + canvas_width(key) + canvas_width(label) + 4 > p->end)
		return;
	pen_put(p, ROLE_HI, key);
	pen_printf(p, ROLE_INACTIVE, " %s   ", label);
}

/* "3/29" at the right end. Returns where it starts. */
static int draw_position(const struct ui *ui, struct canvas *c, int y)
{
	char buf[32];
	int rows = view_of(ui_screen(ui))->rows(ui);
	snprintf(buf, sizeof(buf), "%d/%d", ui->pos[ui_screen(ui)].row + 1, rows);
	int x = c->w - 1 - canvas_width(buf);
	if (rows)
		canvas_text(c, x, y, c->w - x, ROLE_INACTIVE, buf);
	return rows ? x : c->w;
}

static void draw_hints(const struct ui *ui, struct pen *p, int end)
{
	static const struct {
		enum action a;
		const char *label;
	} hints[] = {
		{ ACT_OPEN, "open" },          { ACT_BACK, "back" },
		{ ACT_PAUSE, "pause" },        { ACT_SORT_MENU, "sort" },
		{ ACT_GROUP, "group" },        { ACT_KERNEL, "kernel frames" },
		{ ACT_FILTER, "filter" },      { ACT_SEARCH, "search" },
		{ ACT_SAVE, "save" },          { ACT_HELP, "help" },
		{ ACT_NEXT_PANE, "next tab" }, { ACT_BLOCKER, "blocker" },
		{ ACT_COPY, "copy" },
	};
	enum screen s = ui_screen(ui);
	p->end = end;
	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		if (!(keymap_row(hints[i].a)->screens & 1u << s))
			continue;
		if (hints[i].a == ACT_BACK && ui->depth == 1)
			continue;
		hint(ui, p, hints[i].a, hints[i].label);
	}
}

/* How much, of how many, and when: the last span, or all of them. */
static void draw_loss(const struct snapshot *s, struct pen *p)
{
	uint64_t lost = text_drops(s);
	pen_printf(p, ROLE_ERR, "%s event%s lost", text_count(lost).s, lost == 1 ? "" : "s");
	if (s->loss_cnt && p->c->w >= 100) { /* else the time bar has it */
		const struct snap_loss *first = &s->losses[0], *last = &s->losses[s->loss_cnt - 1];
		pen_printf(p, ROLE_ERR, " %s-%s", text_clock(s, first->from, false).s,
			   text_clock(s, last->to, false).s);
		if (s->loss_cnt > 1)
			pen_printf(p, ROLE_ERR, " in %u spans", s->loss_cnt);
	}
	pen_printf(p, ROLE_FG, " (%s%%, %s): such rows are ~, never H   ",
		   text_percent((double)lost / (double)CC_MAX(s->stats.events + lost, 1)).s,
		   text_dur(s->stats.lost_ns).s);
}

/* One state that the user must not miss; false: nothing special. */
static bool draw_state(const struct ui *ui, struct pen *p)
{
	const struct snapshot *s = ui->snap;
	if (!s)
		return false;
	const char *status = snapshot_str(s, s->runtime.status);
	if (s->runtime.target_gone) {
		pen_printf(p, ROLE_ERR, "%s", *status ? status : "the target exited");
		pen_printf(p, ROLE_FG, "  showing the last %s, frozen   ",
			   text_age(s->window_ns).s);
		hint(ui, p, ACT_SAVE, "save");
		if (ui->opts.live)
			hint(ui, p, ACT_RESTART, "wait for restart");
		hint(ui, p, ACT_QUIT_BACK, "quit");
	} else if (s->runtime.filling) {
		pen_put(p, ROLE_WARN, "A first look: the rest of the window is being read.   ");
		hint(ui, p, ACT_PAUSE, ui->want.paused ? "go on" : "pause");
	} else if (ui->want.paused) {
		cc_ns newest = s->runtime.newest_ns;
		pen_printf(p, ROLE_PAUSE, " PAUSED at %s ", text_clock(s, ui->at_ns, true).s);
		if (ui->opts.live && newest > ui->at_ns + CC_S(1))
			pen_printf(p, ROLE_FG, "  still recording, +%s   ",
				   text_dur(newest - ui->at_ns).s);
		else
			pen_put(p, ROLE_FG, ui->opts.live ? "  still recording   " : "   ");
		hint(ui, p, ACT_PAUSE, ui->opts.live ? "back to live" : "go on");
		hint(ui, p, ACT_STEP_BACK, "step back");
		hint(ui, p, ACT_STEP_ON, "step on");
	} else if (s->runtime.ended && !ui->opts.live) {
		pen_put(p, ROLE_WARN, "End of trace.   ");
		hint(ui, p, ACT_START, "start");
		hint(ui, p, ACT_STEP_BACK, "step back");
		hint(ui, p, ACT_QUIT_BACK, "quit");
	} else if (text_drops(s)) {
		p->end = draw_position(ui, p->c, p->y) - 1;
		draw_loss(s, p);
		return false; /* it stays for long: keys that fit beside it are told too */
	} else if (*status) {
		pen_printf(p, ROLE_WARN, "%s", status);
	} else if (s->runtime.lag_ns || s->runtime.slowed_ns) {
		if (s->runtime.lag_ns)
			pen_printf(p, ROLE_WARN, "%s behind the stream   ",
				   text_dur(s->runtime.lag_ns).s);
		if (s->runtime.slowed_ns)
			pen_printf(p, ROLE_WARN, "refresh slowed to every %s (busy host)",
				   text_dur(s->runtime.slowed_ns).s);
	} else {
		return false;
	}
	return true;
}

static void draw_fkeys(const struct ui *ui, struct canvas *c, int y)
{
	static const struct {
		enum action a;
		const char *label;
	} names[] = {
		{ ACT_HELP, "Help" },     { ACT_SETUP, "Setup" },   { ACT_SEARCH, "Search" },
		{ ACT_FILTER, "Filter" }, { ACT_GROUP, "Group" },   { ACT_SORT_MENU, "Sort" },
		{ ACT_MARK, "Mark" },     { ACT_FOLLOW, "Follow" }, { ACT_SAVE, "Save" },
		{ ACT_QUIT, "Quit" },
	};
	struct pen p = { c, 1, y, c->w };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const int *keys = ui->keys.keys[names[i].a];
		char key[16] = "";
		for (int k = 0; k < KEYMAP_KEYS && keys[k]; k++)
			if (keys[k] >= TK_F1 && keys[k] <= TK_F12)
				keymap_key_name(keys[k], key);
		if (!(keymap_row(names[i].a)->screens & 1u << ui_screen(ui)) || !*key)
			continue;
		pen_put(&p, ROLE_HI, key);
		pen_printf(&p, ROLE_INACTIVE, "%s ", names[i].label);
	}
}

/* What the prompt expects, or what is wrong with it, under the place where it is wrong. */
static void draw_prompt_help(const struct ui *ui, struct canvas *c, int y)
{
	const struct prompt *p = &ui->prompt;
	char buf[512] = "Enter keep  Esc restore  ^U clear  ↑ earlier  keys:";
	canvas_fill(c, 0, y, c->w, ROLE_FG, ' ');
	if (*p->err.msg) {
		int lead = canvas_width(prompt_label(p->kind)) + CC_MAX(p->err.pos, 0);
		int x = CC_MAX(1, CC_MIN(lead, c->w - canvas_width(p->err.msg) - 4));
		snprintf(buf, sizeof(buf), "%s%s", p->err.pos >= 0 ? "^ " : "", p->err.msg);
		canvas_cut(c, x, y, c->w - x, ROLE_ERR, buf);
		return;
	}
	for (unsigned int k = 0; k < FILTER_KEY_CNT; k++)
		fmt_text(buf + strlen(buf), sizeof(buf) - strlen(buf), " %s", filter_key_name(k));
	canvas_cut(c, 1, y, c->w - 1, ROLE_INACTIVE,
		   p->kind == PROMPT_FILTER   ? buf
		   : p->kind == PROMPT_SEARCH ? "Enter find  Esc leave   then n next, N previous"
					      : "Enter go  Esc leave   12:04:31  +30s  -1m  50%  "
						"peer=10.0.0.7:51122 at=12:04:31");
}

void draw_foot(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	struct pen p = { c, 1, l->status_y, c->w };
	if (ui->prompt.kind != PROMPT_NONE) {
		draw_prompt_help(ui, c, l->fkeys ? l->status_y + 1 : l->status_y - 1);
		draw_prompt(ui, c, l->status_y);
		return;
	}
	if (l->fkeys)
		draw_fkeys(ui, c, l->status_y + 1);
	if (ui->status[0])
		canvas_cut(c, 1, l->status_y, c->w - 1, ui->status_bad ? ROLE_WARN : ROLE_FG,
			   ui->status);
	else if (!draw_state(ui, &p))
		draw_hints(ui, &p, draw_position(ui, c, l->status_y));
}

void draw_selected(struct canvas *c, int x, int y, uint32_t mark)
{
	if (mark)
		canvas_fill(c, x, y, 1, ROLE_HI, mark);
	canvas_add(c, 0, y, c->w, CELL_SEL);
	c->cur_x = x;
	c->cur_y = y;
}

/* ---- empty states ---- */

void draw_empty(const struct ui *ui, struct canvas *c, int y)
{
	const struct snapshot *s = ui->snap;
	const char *listens = s ? s->runtime.listens : "";
	char buf[320];
	if (!s) {
		canvas_text(c, 2, y + 1, c->w - 3, ROLE_FG, "Waiting for the first data.");
		return;
	}
	if (s->total_cnt && !s->match_cnt) {
		canvas_text(c, 2, y + 1, c->w - 3, ROLE_FG, "The filter lets no request through.");
		canvas_text(c, 2, y + 2, c->w - 3, ROLE_INACTIVE, "c clears it, \\ changes it.");
		return;
	}
	cc_ns seen = s->last_ns > s->first_ns ? s->last_ns - s->first_ns : 0;
	snprintf(buf, sizeof(buf),
		 "No finished request yet.  %s, %s sched events from %u threads, %u request ends.",
		 text_dur(seen).s, text_count(s->stats.episodes).s, s->thread_all, s->total_cnt);
	int n = canvas_wrap(c, 2, y + 1, c->w - 3, 3, ROLE_FG, buf);
	if (ui->opts.live && s->target.tgid)
		snprintf(buf, sizeof(buf),
			 "Is traffic reaching pid %u?  %s%s%sWaits (2) and Threads (3) work "
			 "without requests.",
			 s->target.tgid, *listens ? "It listens on " : "", listens,
			 *listens ? ".  " : "");
	else
		snprintf(buf, sizeof(buf), "Waits (2) and Threads (3) work without requests.");
	n += canvas_wrap(c, 2, y + 2 + n, c->w - 3, 3, ROLE_INACTIVE, buf);
	for (uint32_t i = 0; i < s->note_cnt && i < 4; i++)
		n += canvas_wrap(c, 2, y + 3 + n, c->w - 3, 2, ROLE_WARN,
				 snapshot_str(s, s->notes[i]));
}

void draw_tiny(struct canvas *c)
{
	char buf[64];
	snprintf(buf, sizeof(buf), "Terminal %dx%d: need %dx%d.", c->w, c->h, UI_MIN_W, UI_MIN_H);
	canvas_text(c, 0, 0, c->w, ROLE_WARN, buf);
}
