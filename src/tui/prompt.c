/* SPDX-License-Identifier: Apache-2.0 */
/* Lines typed at the bottom (filter, search, time) and the small menus (sort, save). */
#include <string.h>

#include "filter.h"
#include "ui.h"

/* ---- line editing ---- */

void prompt_open(struct ui *ui, enum prompt_kind kind)
{
	struct prompt *p = &ui->prompt;
	*p = (struct prompt){ .kind = kind };
	if (kind == PROMPT_FILTER)
		snprintf(p->text, sizeof(p->text), "%s", ui->want.filter);
	snprintf(p->before, sizeof(p->before), "%s", p->text);
	p->at = strlen(p->text);
	ui->history_at = -1;
}

/* Bytes of the character before or at @at. */
static size_t char_before(const char *s, size_t at)
{
	size_t n = at ? 1 : 0;
	while (n < at && ((unsigned char)s[at - n] & 0xc0) == 0x80)
		n++;
	return n;
}

static size_t char_at(const char *s, size_t at)
{
	const char *p = s + at;
	return canvas_decode(&p) ? (size_t)(p - (s + at)) : 0;
}

static void erase(struct prompt *p, size_t from, size_t n)
{
	memmove(p->text + from, p->text + from + n, strlen(p->text + from + n) + 1);
	p->at = from;
}

static void insert(struct prompt *p, int key)
{
	char utf[5];
	size_t n = (size_t)canvas_encode((uint32_t)key, utf), len = strlen(p->text);
	if (len + n >= sizeof(p->text))
		return;
	memmove(p->text + p->at + n, p->text + p->at, len - p->at + 1);
	memcpy(p->text + p->at, utf, n);
	p->at += n;
}

static void erase_word(struct prompt *p)
{
	size_t from = p->at;
	while (from && p->text[from - 1] == ' ')
		from--;
	while (from && p->text[from - 1] != ' ')
		from--;
	erase(p, from, p->at - from);
}

static bool edit(struct prompt *p, int key)
{
	switch (key) {
	case TK_LEFT:
		p->at -= char_before(p->text, p->at);
		return true;
	case TK_RIGHT:
		p->at += char_at(p->text, p->at);
		return true;
	case TK_HOME:
	case TK_CTRL('a'):
		p->at = 0;
		return true;
	case TK_END:
	case TK_CTRL('e'):
		p->at = strlen(p->text);
		return true;
	case TK_BACKSPACE:
	case '\b':
		erase(p, p->at - char_before(p->text, p->at), char_before(p->text, p->at));
		return true;
	case TK_DELETE:
		erase(p, p->at, char_at(p->text, p->at));
		return true;
	case TK_CTRL('u'):
		erase(p, 0, strlen(p->text));
		return true;
	case TK_CTRL('w'):
		erase_word(p);
		return true;
	default:
		if (key < ' ' || key >= 0x110000 || (key >= 0x7f && key < 0xa0))
			return false;
		insert(p, key);
		return true;
	}
}

/* ---- what Enter does ---- */

static void remember(struct ui *ui, const char *text)
{
	if (!*text || !strcmp(ui->history[0], text))
		return;
	memmove(ui->history + 1, ui->history, sizeof(ui->history) - sizeof(ui->history[0]));
	snprintf(ui->history[0], sizeof(ui->history[0]), "%s", text);
}

void ui_filter(struct ui *ui, const char *text)
{
	snprintf(ui->want.filter, sizeof(ui->want.filter), "%s", text);
	remember(ui, ui->want.filter);
	ui_command(ui, TUI_CH_QUERY);
}

/* Keeps the place and the reason of what is wrong with the text; true: nothing is. */
static bool check_filter(struct prompt *p)
{
	struct filter *f = NULL;
	p->err.msg[0] = '\0';
	int err = filter_parse(p->text, &p->err, &f);
	filter_free(f);
	if (err && !p->err.msg[0])
		snprintf(p->err.msg, sizeof(p->err.msg), "%s", strerror(-err));
	return err == 0;
}

/* The table shows what the text lets through while it is typed, as long as it is a filter. */
static void try_filter(struct ui *ui, const char *text)
{
	struct cc_err unused;
	struct filter *f = NULL;
	if (!strcmp(text, ui->want.filter) || filter_parse(text, &unused, &f))
		return;
	filter_free(f);
	snprintf(ui->want.filter, sizeof(ui->want.filter), "%s", text);
	ui_command(ui, TUI_CH_QUERY);
}

static bool accept(struct ui *ui)
{
	struct prompt *p = &ui->prompt;
	switch (p->kind) {
	case PROMPT_FILTER:
		if (!check_filter(p)) {
			size_t len = strlen(p->text);
			p->at = p->err.pos < 0 ? len : CC_MIN((size_t)p->err.pos, len);
			return false;
		}
		ui_filter(ui, p->text);
		return true;
	case PROMPT_SEARCH:
		snprintf(ui->search, sizeof(ui->search), "%s", p->text);
		p->kind = PROMPT_NONE;
		if (ui->search[0])
			ui_act(ui, ACT_NEXT_MATCH);
		return true;
	case PROMPT_GOTO:
		return ui->snap && !ui_goto(ui, p->text, &p->err);
	case PROMPT_NONE:
		return true;
	}
	return true;
}

static void browse_history(struct ui *ui, int step)
{
	struct prompt *p = &ui->prompt;
	int at = ui->history_at + step;
	if (p->kind != PROMPT_FILTER || at < -1 || at >= (int)ARRAY_SIZE(ui->history) ||
	    (at >= 0 && !ui->history[at][0]))
		return;
	ui->history_at = at;
	snprintf(p->text, sizeof(p->text), "%s", at < 0 ? p->before : ui->history[at]);
	p->at = strlen(p->text);
}

unsigned int prompt_key(struct ui *ui, int key)
{
	struct prompt *p = &ui->prompt;
	if (key == TK_ENTER || key == '\n') {
		if (accept(ui))
			p->kind = PROMPT_NONE;
		return UI_DRAW;
	}
	if (key == TK_ESC) {
		if (p->kind == PROMPT_FILTER)
			try_filter(ui, p->before);
		p->kind = PROMPT_NONE;
		return UI_DRAW;
	}
	if (key == TK_UP || key == TK_DOWN)
		browse_history(ui, key == TK_UP ? 1 : -1);
	else if (edit(p, key))
		p->err.msg[0] = '\0';
	if (p->kind == PROMPT_FILTER)
		try_filter(ui, p->text);
	return UI_DRAW;
}

/* ---- menus ---- */

struct item {
	char key;
	const char *name;
};
static const struct item save_items[] = {
	[TUI_SAVE_REQUEST] = { 'r', "this request" },
	[TUI_SAVE_FILTERED] = { 'f', "the filtered set" },
	[TUI_SAVE_WINDOW] = { 'a', "all of the window" },
};
#define SAVE_FORM_ROW (int)ARRAY_SIZE(save_items) /* the row below: changes the form */
static const char *const form_names[] = {
#define X(id, name) name,
	TUI_SAVE_FORMS(X)
#undef X
};

const char *sort_name(enum snap_sort s)
{
	int n;
	const struct sort_col *cols = sort_cols(SCREEN_REQUESTS, &n);
	return (int)s < n ? cols[s].title : "";
}

int menu_items(const struct ui *ui)
{
	int n = SAVE_FORM_ROW + 1;
	if (ui->menu == MENU_SORT)
		sort_cols(ui_screen(ui), &n);
	return n;
}

const char *menu_item(const struct ui *ui, int i, char *ret_key)
{
	int n;
	if (ui->menu == MENU_SORT) {
		const struct sort_col *col = &sort_cols(ui_screen(ui), &n)[i];
		*ret_key = col->key;
		return col->name;
	}
	if (i == SAVE_FORM_ROW) {
		*ret_key = 't';
		return form_names[ui->save_form];
	}
	*ret_key = save_items[i].key;
	return save_items[i].name;
}

static void save(struct ui *ui, enum tui_save_what what)
{
	struct tui_save to = { .what = what,
			       .form = ui->save_form,
			       .id = ui->want.selected,
			       .filter = ui->want.filter };
	char msg[200] = "";
	if (what == TUI_SAVE_REQUEST && to.id.kind == CC_REQID_NONE) {
		ui_say(ui, true, "no request is selected");
		return;
	}
	int err = ui->opts.ops->save(ui->opts.ctx, &to, msg, sizeof(msg));
	if (err > 0)
		ui->save_fd = err;
	if (err < 0 && !*msg)
		snprintf(msg, sizeof(msg), "not saved: %s", strerror(-err));
	ui_say(ui, err < 0, "%s", msg);
}

unsigned int ui_saved(struct ui *ui)
{
	char msg[200] = "";
	int err = ui->opts.ops->saved(ui->opts.ctx, msg, sizeof(msg));
	ui->save_fd = -1;
	ui_say(ui, err != 0, "%s", msg);
	return UI_DRAW;
}

static void choose(struct ui *ui, int i)
{
	enum menu_kind kind = ui->menu;
	if (kind == MENU_SAVE && i == SAVE_FORM_ROW) { /* the menu stays */
		ui->save_form = (enum tui_save_form)((ui->save_form + 1) % TUI_SAVE_FORM_CNT);
		ui->menu_row = i;
		return;
	}
	ui->menu = MENU_NONE;
	if (kind == MENU_SAVE) {
		save(ui, (enum tui_save_what)i);
		return;
	}
	ui_sort_by(ui, i);
}

unsigned int menu_key(struct ui *ui, int key)
{
	int n = menu_items(ui);
	char letter;
	for (int i = 0; i < n; i++) {
		menu_item(ui, i, &letter);
		if (key == letter) {
			choose(ui, i);
			return UI_DRAW;
		}
	}
	if (key == TK_ENTER || key == '\n')
		choose(ui, ui->menu_row);
	else if (key == TK_UP || key == 'k')
		ui->menu_row = (ui->menu_row + n - 1) % n;
	else if (key == TK_DOWN || key == 'j')
		ui->menu_row = (ui->menu_row + 1) % n;
	else if (key == TK_ESC || key == 'q' || key == TK_LEFT || key == TK_BACKSPACE)
		ui->menu = MENU_NONE;
	return UI_DRAW;
}
