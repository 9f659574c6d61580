/* SPDX-License-Identifier: Apache-2.0 */
/* Order, grouping, filter and search: what a key does to which rows are shown and where. */
#include <string.h>

#include "view.h"

/* ---- order ---- */

static void resort(struct ui *ui, unsigned int changed)
{
	if (ui->snap && ui_order(ui, NULL))
		ui_say(ui, true, "out of memory");
	if (changed)
		ui_command(ui, changed);
}

int ui_sort(const struct ui *ui)
{
	enum screen s = ui_screen(ui);
	return s == SCREEN_REQUESTS ? (int)ui->want.sort : ui->sorts[s].col;
}

bool ui_ascending(const struct ui *ui)
{
	enum screen s = ui_screen(ui);
	return s == SCREEN_REQUESTS ? ui->want.ascending : ui->sorts[s].ascending;
}

static void set_sort(struct ui *ui, struct row_sort by)
{
	enum screen s = ui_screen(ui);
	if (s != SCREEN_REQUESTS) {
		ui->sorts[s] = by;
		ui_reorder_rows(ui);
		return;
	}
	ui->want.sort = (enum snap_sort)by.col;
	ui->want.ascending = by.ascending;
	resort(ui, TUI_CH_QUERY);
}

void ui_sort_by(struct ui *ui, int col)
{
	int n;
	sort_cols(ui_screen(ui), &n);
	set_sort(ui, (struct row_sort){ (col + n) % n, ui_ascending(ui) });
}

static void next_group(struct ui *ui)
{
	if (!ui->blame && ui->want.group == GROUP_HOLDER) {
		ui->blame = true;
	} else {
		ui->want.group = ui->blame ? GROUP_CLASS : ui->want.group + 1;
		ui->blame = false;
		ui_command(ui, TUI_CH_QUERY);
	}
	ui->pos[SCREEN_WAITS] = (struct list_pos){ 0 };
}

static void follow(struct ui *ui)
{
	unsigned int here = 1u << ui_screen(ui);
	bool on = !(ui->follow & here);
	if (on)
		ui_goto_row(ui, 0);
	ui->follow = on ? ui->follow | here : ui->follow & ~here;
	ui_say(ui, false, "follow %s", on ? "on: the first row stays selected" : "off");
}

bool ui_act_order(struct ui *ui, enum action a)
{
	switch ((int)a) {
	case ACT_SORT_MENU:
		ui->menu = MENU_SORT;
		ui->menu_row = ui_sort(ui);
		return true;
	case ACT_SORT_PREV:
		ui_sort_by(ui, ui_sort(ui) - 1);
		return true;
	case ACT_SORT_NEXT:
		ui_sort_by(ui, ui_sort(ui) + 1);
		return true;
	case ACT_INVERT:
		set_sort(ui, (struct row_sort){ ui_sort(ui), !ui_ascending(ui) });
		return true;
	case ACT_FREEZE:
		ui->frozen = !ui->frozen;
		if (!ui->frozen)
			resort(ui, 0);
		ui_say(ui, false, "order %s", ui->frozen ? "frozen" : "sorted again");
		return true;
	case ACT_FOLLOW:
		follow(ui);
		return true;
	case ACT_GROUP:
		if (ui_screen(ui) == SCREEN_REQUESTS)
			ui_port_toggle(ui);
		else if (ui_screen(ui) == SCREEN_THREADS)
			ui_next_roles(ui);
		else
			next_group(ui);
		return true;
	case ACT_ROOT:
		ui->want.root_causes = !ui->want.root_causes;
		ui_command(ui, TUI_CH_QUERY);
		ui_say(ui, false, "by %s", ui->want.root_causes ? "root cause" : "first wait");
		return true;
	default:
		return false;
	}
}

/* ---- finding ---- */

/* @key, which ends in its operator, and @value, quoted where the filter language needs it; "" for a
 * value it cannot take. */
static void term_text(char *buf, size_t cap, const char *key, const char *value)
{
	bool quote = value[strcspn(value, " |")] != '\0';
	if (!*value || strchr(value, '"'))
		buf[0] = '\0';
	else
		snprintf(buf, cap, quote ? "%s\"%s\"" : "%s%s", key, value);
}

static void wait_term(const struct ui *ui, const struct snap_wait *w, char *buf, size_t cap)
{
	const struct snapshot *s = ui->snap;
	switch (ui->want.group) {
	case GROUP_CLASS:
		break;
	case GROUP_SITE:
		term_text(buf, cap, "site=", snapshot_str(s, w->site));
		break;
	case GROUP_RESOURCE:
		term_text(buf, cap, "resource=", snapshot_str(s, w->resource));
		break;
	case GROUP_WAKER:
		term_text(buf, cap, "waker=", snapshot_str(s, w->waker));
		break;
	case GROUP_HOLDER:
		term_text(buf, cap, "holder=", snapshot_str(s, w->holder));
		break;
	}
	if (!*buf)
		term_text(buf, cap,
			  ui->want.root_causes ? "root=" : "wait=", wait_class_json(w->cls));
}

/* The victims of a row of blame: their port and the class they felt; "not both" is no term, so to
 * exclude them the class alone. */
static void blame_term(const struct ui *ui, const struct snap_blame *b, bool exclude, char *buf,
		       size_t cap)
{
	const char *port = strrchr(snapshot_str(ui->snap, b->victim), ':');
	char wait[64];
	term_text(wait, sizeof(wait), "wait=", wait_class_json(b->cls));
	if (!exclude && port && port[1] && !port[1 + strspn(port + 1, "0123456789")])
		snprintf(buf, cap, "port=%s %s", port + 1, wait);
	else
		snprintf(buf, cap, "%s", wait);
}

static void thread_term(const struct ui *ui, int row, char *buf, size_t cap)
{
	const struct snap_thread *t = ui_thread(ui, row);
	char role[64];
	ui_role(ui, row, role, sizeof(role));
	if (*role)
		term_text(buf, cap, "comm~", role);
	else if (t && !t->task.goid)
		snprintf(buf, cap, "tid=%u", t->task.tid);
}

/* The filter term that the selected row stands for; "" if none. */
static void row_term(const struct ui *ui, bool exclude, char *buf, size_t cap)
{
	const struct snapshot *s = ui->snap;
	enum screen on = ui_screen(ui);
	uint32_t row = (uint32_t)ui->pos[on].row;
	const struct snap_request *r;
	buf[0] = '\0';
	if (on == SCREEN_WAITS && s && ui->blame && row < s->blame_cnt)
		blame_term(ui, &s->blame[row], exclude, buf, cap);
	else if (on == SCREEN_WAITS && s && !ui->blame && ui_wait(ui, (int)row))
		wait_term(ui, ui_wait(ui, (int)row), buf, cap);
	else if (on == SCREEN_THREADS)
		thread_term(ui, (int)row, buf, cap);
	else if (on == SCREEN_REQUESTS && ui_port(ui, (int)row))
		snprintf(buf, cap, "port=%u", ui_port(ui, (int)row)->port);
	else if (on == SCREEN_REQUESTS && (r = ui_request(ui, &s)) && r->path_ok)
		term_text(buf, cap, "wait=", wait_class_json(r->dominant.cls));
}

/* Adds the row's term, unless the very same one is there. False: nothing to add. */
bool ui_add_term(struct ui *ui, bool exclude)
{
	char text[TUI_FILTER_LEN], term[TUI_FILTER_LEN];
	const char *old = ui->want.filter;
	row_term(ui, exclude, term, sizeof(term));
	if (!*term) {
		ui_say(ui, true, "no wait to filter by here");
		return false;
	}
	int n = snprintf(text, sizeof(text), "%s%s%s%s", old, *old ? " " : "", exclude ? "!" : "",
			 term);
	if (n < 0 || (size_t)n >= sizeof(text)) {
		ui_say(ui, true, "the filter is too long");
		return false;
	}
	if (!strstr(old, text + strlen(old) + (*old != '\0')))
		ui_filter(ui, text);
	return true;
}

static void find_match(struct ui *ui, int step)
{
	enum screen s = ui_screen(ui);
	const struct view_ops *v = view_of(s);
	int rows = v->rows(ui), row = ui->pos[s].row;
	if (!ui->search[0] || !v->match) {
		ui_say(ui, true,
		       ui->search[0] ? "no search on this screen"
				     : "nothing to search for: / asks");
		return;
	}
	for (int i = 1; i <= rows; i++) {
		int at = (row + i * step % rows + rows) % rows;
		if (!v->match(ui, at, ui->search))
			continue;
		ui_goto_row(ui, at);
		return;
	}
	ui_say(ui, true, "not found: %s", ui->search);
}

bool ui_act_find(struct ui *ui, enum action a)
{
	switch ((int)a) {
	case ACT_SEARCH:
		prompt_open(ui, PROMPT_SEARCH);
		return true;
	case ACT_NEXT_MATCH:
	case ACT_PREV_MATCH:
		find_match(ui, a == ACT_NEXT_MATCH ? 1 : -1);
		return true;
	case ACT_FILTER:
		prompt_open(ui, PROMPT_FILTER);
		return true;
	case ACT_ONLY:
	case ACT_EXCLUDE:
		ui_add_term(ui, a == ACT_EXCLUDE);
		return true;
	case ACT_CLEAR_FILTER:
		ui_filter(ui, "");
		return true;
	default:
		return false;
	}
}
