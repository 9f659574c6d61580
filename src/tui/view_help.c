/* SPDX-License-Identifier: Apache-2.0 */
/* Help: generated from the key table and the table of wait classes; typing searches it. */
#include <string.h>

#include "view.h"

enum help_kind { HELP_BLANK, HELP_TITLE, HELP_KEY, HELP_GROUP, HELP_BRIEF, HELP_LETTERS };
struct help_line {
	enum help_kind kind;
	enum action action; /* of a line in brief: the first of those that begin here */
	int n;              /* key group, or index in WAIT_GROUPS */
	const char *title;
};

/* Titles, one line per action with a blank before each title, the letters. */
#define HELP_MAX (2 * ACT_CNT + 4 * KEYS_CNT + 9 + 8)

struct help {
	struct help_line line[HELP_MAX];
	int cnt;
};

static void add(struct help *h, struct help_line line)
{
	if (h->cnt < HELP_MAX)
		h->line[h->cnt++] = line;
}

static void group_text(int i, char *buf, size_t cap)
{
	char letter = WAIT_GROUPS[i];
	snprintf(buf, cap, "%s:", wait_group_name(letter));
	for (unsigned int k = 0; k < WAIT_CLASS_CNT; k++)
		if (wait_class_letter(k) == letter) {
			size_t n = strlen(buf);
			snprintf(buf + n, cap - n, " %s%s", wait_class_name(k), ",");
		}
	buf[strlen(buf) - 1] = '\0';
}

static bool wanted(const struct ui *ui, enum action a)
{
	char keys[64];
	const struct key_row *row = keymap_row(a);
	keymap_keys(&ui->keys, a, keys, sizeof(keys));
	return !ui->help_query[0] || text_has(row->help, ui->help_query) ||
	       text_has(keys, ui->help_query) ||
	       text_has(key_group_title(row->group), ui->help_query);
}

#define BRIEF_X 17

/* "k up": the first key of an action and its name; returns its width and two blanks. */
static int brief_text(const struct ui *ui, enum action a, char key[16], char name[32])
{
	keymap_key_name(ui->keys.keys[a][0], key);
	keymap_action_name(a, name);
	return canvas_width(key) + 1 + canvas_width(name) + 2;
}

static bool brief_has(const struct ui *ui, enum action a, int group)
{
	const struct key_row *row = keymap_row(a);
	return (int)row->group == group && row->screens & 1u << ui_under(ui) && ui->keys.keys[a][0];
}

/* All keys of the screen at a glance: as many of a group in a line as there is room for. */
static void build_brief(const struct ui *ui, struct help *h)
{
	for (int g = 0; g < KEYS_CNT; g++) {
		int x = ui->w;
		for (enum action a = 1; a < ACT_CNT; a++) {
			char key[16], name[32];
			if (!brief_has(ui, a, g))
				continue;
			int w = brief_text(ui, a, key, name);
			if (x + w > ui->w) {
				bool first = x == ui->w && (!h->cnt || h->line[h->cnt - 1].n != g);
				add(h, (struct help_line){
					       .kind = HELP_BRIEF,
					       .action = a,
					       .n = g,
					       .title = first ? key_group_title((enum key_group)g)
							      : "" });
				x = BRIEF_X;
			}
			x += w;
		}
	}
}

/* Keys of the screen that help was opened on come first. */
static void build(const struct ui *ui, struct help *h)
{
	unsigned int here = 1u << ui_under(ui);
	h->cnt = 0;
	if (!ui->help_query[0]) {
		build_brief(ui, h);
		add(h, (struct help_line){ .kind = HELP_LETTERS });
	}
	for (int pass = 0; pass < 2; pass++)
		for (int g = 0; g < KEYS_CNT; g++) {
			bool titled = false;
			for (enum action a = 1; a < ACT_CNT; a++) {
				const struct key_row *row = keymap_row(a);
				bool first = row->screens & here;
				if ((int)row->group != g || first == (pass == 1) || !wanted(ui, a))
					continue;
				if (!titled && h->cnt)
					add(h, (struct help_line){ .kind = HELP_BLANK });
				if (!titled)
					add(h, (struct help_line){ .kind = HELP_TITLE,
								   .n = pass,
								   .title = key_group_title(
									   (enum key_group)g) });
				titled = true;
				add(h, (struct help_line){ .kind = HELP_KEY, .action = a });
			}
		}
	for (int i = 0, titled = 0; i < 9; i++) {
		char buf[256];
		group_text(i, buf, sizeof(buf));
		if (ui->help_query[0] && !text_has(buf, ui->help_query))
			continue;
		if (!titled++) {
			add(h, (struct help_line){ .kind = HELP_BLANK });
			add(h,
			    (struct help_line){ .kind = HELP_TITLE, .title = "Letters of waits" });
		}
		add(h, (struct help_line){ .kind = HELP_GROUP, .n = i });
	}
}

static int help_rows(const struct ui *ui)
{
	struct help h;
	build(ui, &h);
	return h.cnt;
}

static int help_body(const struct ui *ui, const struct layout *l)
{
	(void)ui;
	return CC_MAX(l->status_y - 2, 1);
}

static void draw_brief(const struct ui *ui, struct canvas *c, const struct help_line *line, int y)
{
	struct pen p = { c, BRIEF_X, y, c->w };
	canvas_text(c, 1, y, BRIEF_X - 2, ROLE_TITLE, line->title);
	for (enum action a = line->action; a < ACT_CNT; a++) {
		char key[16], name[32];
		if (!brief_has(ui, a, line->n))
			continue;
		if (p.x + brief_text(ui, a, key, name) > c->w)
			return;
		pen_put(&p, ROLE_HI, key);
		pen_printf(&p, ROLE_FG, " %s  ", name);
	}
}

static void draw_letters(struct canvas *c, int y)
{
	struct pen p = { c, 10, y, c->w };
	canvas_text(c, 1, y, 8, ROLE_TITLE, "Letters");
	for (int i = 0; i < 9; i++) {
		canvas_fill(c, p.x, y, 1, style_group(i), (unsigned char)WAIT_GROUPS[i]);
		p.x += 2;
		pen_printf(&p, ROLE_FG, "%s ", wait_group_name(WAIT_GROUPS[i]));
	}
}

static void draw_line(const struct ui *ui, struct canvas *c, const struct help_line *line, int y)
{
	char buf[256];
	int keys_w = c->w < 60 ? 14 : 22;
	switch (line->kind) {
	case HELP_BLANK:
		break;
	case HELP_LETTERS:
		draw_letters(c, y);
		break;
	case HELP_BRIEF:
		draw_brief(ui, c, line, y);
		break;
	case HELP_TITLE:
		canvas_printf(c, 1, y, c->w - 1, ROLE_TITLE, "%s%s", line->title,
			      line->n ? " (other screens)" : "");
		break;
	case HELP_KEY:
		keymap_keys(&ui->keys, line->action, buf, sizeof(buf));
		canvas_text(c, 3, y, keys_w - 1, ROLE_HI, buf);
		canvas_cut(c, 3 + keys_w, y, c->w - 4 - keys_w, ROLE_FG,
			   keymap_row(line->action)->help);
		break;
	case HELP_GROUP:
		group_text(line->n, buf, sizeof(buf));
		canvas_fill(c, 3, y, 1, style_group(line->n), (unsigned char)WAIT_GROUPS[line->n]);
		canvas_cut(c, 6, y, c->w - 7, ROLE_FG, buf);
		break;
	}
}

static void help_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	struct help h;
	int top = ui->pos[SCREEN_HELP].top, row = ui->pos[SCREEN_HELP].row;
	struct pen p = { c, 1, 0, c->w };
	build(ui, &h);
	pen_put(&p, ROLE_TITLE, "Help");
	pen_printf(&p, ROLE_INACTIVE, "  %s  ", screen_name(ui_under(ui)));
	if (ui->help_query[0])
		pen_printf(&p, ROLE_HI, "  search: %s  (%d lines, Esc clears)", ui->help_query,
			   h.cnt);
	else
		pen_put(&p, ROLE_INACTIVE,
			c->w < 60 ? "  Esc closes" : "  type to search, Esc closes");
	for (int i = top; i < h.cnt && i - top < help_body(ui, l); i++) {
		draw_line(ui, c, &h.line[i], 2 + i - top);
		if (i == row)
			draw_selected(c, 0, 2 + i - top, 0);
	}
	if (!h.cnt)
		canvas_text(c, 3, 2, c->w - 4, ROLE_WARN, "nothing of this kind");
}

const struct view_ops view_help = {
	.rows = help_rows,
	.body = help_body,
	.draw = help_draw,
};
