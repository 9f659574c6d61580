/* SPDX-License-Identifier: Apache-2.0 */
#include "picker.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "view.h"

#define HEAD_ROWS 3 /* title, blank, columns */
#define FOOT_ROWS 1

void picker_done(struct picker *p)
{
	free(p->servers);
	p->servers = NULL;
	p->cnt = 0;
}

static bool shown(const struct picker *p, const struct picker_server *s)
{
	char port[16], pid[16];
	snprintf(port, sizeof(port), "%u", s->port);
	snprintf(pid, sizeof(pid), "%u", s->pid);
	const char *const in[] = { port, pid, s->comm, s->user, s->command };
	for (size_t i = 0; i < ARRAY_SIZE(in); i++)
		if (text_has(in[i], p->filter))
			return true;
	return !*p->filter;
}

/* The @n-th row shown; NULL beyond the last. */
static const struct picker_server *row(const struct picker *p, size_t n)
{
	for (size_t i = 0; i < p->cnt; i++)
		if (shown(p, &p->servers[i]) && n-- == 0)
			return &p->servers[i];
	return NULL;
}

static size_t rows(const struct picker *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->cnt; i++)
		n += shown(p, &p->servers[i]);
	return n;
}

/* Which row is selected: 0 when the server that was is gone or hidden. */
static size_t selected_row(const struct picker *p)
{
	const struct picker_server *s;
	for (size_t i = 0; (s = row(p, i)); i++)
		if (s->port == p->port && s->netns == p->netns)
			return i;
	return 0;
}

const struct picker_server *picker_selected(const struct picker *p)
{
	return row(p, selected_row(p));
}

static void select_row(struct picker *p, size_t n)
{
	const struct picker_server *s = row(p, n);
	if (!s)
		return;
	p->port = s->port;
	p->netns = s->netns;
}

void picker_take(struct picker *p, struct picker_server *servers, size_t cnt)
{
	size_t busiest = 0;
	free(p->servers);
	p->servers = servers;
	p->cnt = cnt;
	if (p->port)
		return;
	for (size_t i = 1; i < cnt; i++)
		if (servers[i].conns > servers[busiest].conns)
			busiest = i;
	select_row(p, busiest);
}

/* ---- keys ---- */

static void move(struct picker *p, long by)
{
	long last = (long)rows(p) - 1, to = (long)selected_row(p) + by;
	select_row(p, (size_t)CC_MAX(0, CC_MIN(to, last)));
}

/* While the filter is typed; false: it is another key. */
static bool typed(struct picker *p, int key)
{
	size_t n = strlen(p->filter);
	char utf[5];
	if (key == TK_ESC) {
		p->filter[0] = '\0';
		p->typing = false;
	} else if (key == TK_CTRL('u')) {
		p->filter[0] = '\0';
	} else if (key == TK_BACKSPACE || key == '\b') {
		while (n && ((unsigned char)p->filter[--n] & 0xc0) == 0x80)
			;
		p->filter[n] = '\0';
	} else if (key >= ' ' && key < 0x110000 && !(key >= 0x7f && key < 0xa0)) {
		size_t len = (size_t)canvas_encode((uint32_t)key, utf);
		if (n + len < sizeof(p->filter))
			memcpy(p->filter + n, utf, len + 1);
	} else {
		return false;
	}
	return true;
}

void picker_key(struct picker *p, int key, int page)
{
	if (p->typing && typed(p, key))
		return;
	switch ((int)keymap_find(p->keys, SCREEN_REQUESTS, key)) {
	case ACT_UP:
		move(p, -1);
		break;
	case ACT_DOWN:
		move(p, 1);
		break;
	case ACT_PAGE_UP:
	case ACT_HALF_UP:
		move(p, -CC_MAX(page, 1));
		break;
	case ACT_PAGE_DOWN:
	case ACT_HALF_DOWN:
		move(p, CC_MAX(page, 1));
		break;
	case ACT_TOP:
		select_row(p, 0);
		break;
	case ACT_BOTTOM:
		move(p, (long)rows(p));
		break;
	case ACT_OPEN:
		if (picker_selected(p))
			p->end = PICKER_CHOSEN;
		break;
	case ACT_SEARCH:
	case ACT_FILTER:
		p->typing = true;
		break;
	case ACT_BACK: /* Esc never quits */
	case ACT_CLEAR_FILTER:
		p->filter[0] = '\0';
		break;
	case ACT_QUIT:
	case ACT_QUIT_BACK:
		p->end = PICKER_LEFT;
		break;
	default:
		break;
	}
}

/* ---- drawing ---- */

static void draw_row(const struct picker_server *s, struct canvas *c, int y)
{
	char port[16], pid[32], conns[16];
	snprintf(port, sizeof(port), "%u", s->port);
	snprintf(pid, sizeof(pid), s->more ? "%u +%u" : "%u", s->pid, s->more);
	snprintf(conns, sizeof(conns), "%u", s->conns);
	canvas_right(c, 3, y, 5, ROLE_FG | CELL_BOLD, port);
	canvas_text(c, 10, y, 11, ROLE_FG, pid);
	canvas_fit(c, 22, y, 16, ROLE_FG, s->comm);
	canvas_right(c, 39, y, 5, s->conns ? ROLE_FG : ROLE_INACTIVE, conns);
	canvas_fit(c, 46, y, 12, ROLE_INACTIVE, s->user);
	canvas_cut(c, 59, y, c->w - 60, ROLE_INACTIVE, s->command);
}

static void draw_titles(struct canvas *c, int y)
{
	canvas_right(c, 3, y, 5, ROLE_TITLE, "PORT");
	canvas_text(c, 10, y, 11, ROLE_TITLE, "PID");
	canvas_text(c, 22, y, 16, ROLE_TITLE, "NAME");
	canvas_right(c, 39, y, 5, ROLE_TITLE, "CONNS");
	canvas_text(c, 46, y, 12, ROLE_TITLE, "USER");
	canvas_text(c, 59, y, c->w - 60, ROLE_TITLE, "COMMAND");
}

static void hint(const struct picker *p, struct pen *pen, enum action a, const char *what)
{
	char key[16];
	keymap_key_name(p->keys->keys[a][0], key);
	pen_put(pen, ROLE_HI, key);
	pen_printf(pen, ROLE_INACTIVE, " %s   ", what);
}

static void draw_bottom(const struct picker *p, struct canvas *c, size_t at, size_t cnt)
{
	struct pen pen = { c, 1, c->h - 1, c->w };
	char place[48];
	if (p->typing) {
		pen_put(&pen, ROLE_HI, "filter> ");
		pen_put(&pen, ROLE_FG, p->filter);
		c->cur_x = CC_MIN(pen.x, c->w - 1);
		c->cur_y = c->h - 1;
		pen_put(&pen, ROLE_INACTIVE, "   Enter takes the selected one, Esc leaves");
		return;
	}
	hint(p, &pen, ACT_OPEN, "trace it");
	hint(p, &pen, ACT_SEARCH, "filter");
	hint(p, &pen, ACT_QUIT, "quit");
	if (*p->filter)
		pen_printf(&pen, ROLE_WARN, "filter: %s", p->filter);
	snprintf(place, sizeof(place), "%zu/%zu", cnt ? at + 1 : 0, cnt);
	canvas_right(c, c->w - 12, c->h - 1, 11, ROLE_INACTIVE, place);
}

void picker_draw(struct picker *p, struct canvas *c)
{
	canvas_clear(c);
	if (c->w < UI_MIN_W || c->h < UI_MIN_H) {
		draw_tiny(c);
		return;
	}
	size_t cnt = rows(p), at = selected_row(p), body = (size_t)(c->h - HEAD_ROWS - FOOT_ROWS);
	p->top = CC_MIN(p->top, at);
	p->top = at >= p->top + body ? at - body + 1 : p->top;
	if (p->top + body > cnt)
		p->top = cnt > body ? cnt - body : 0;
	struct pen pen = { c, 1, 0, c->w };
	pen_put(&pen, ROLE_TITLE, "criticast");
	pen_put(&pen, ROLE_FG, "   Which server?   ");
	pen_printf(&pen, ROLE_INACTIVE, "%zu ports are listened on", p->cnt);
	draw_titles(c, HEAD_ROWS - 1);
	for (size_t i = 0; i < body && p->top + i < cnt; i++) {
		draw_row(row(p, p->top + i), c, HEAD_ROWS + (int)i);
		if (p->top + i == at)
			draw_selected(c, 1, HEAD_ROWS + (int)i, '>');
	}
	if (!cnt)
		canvas_text(c, 3, HEAD_ROWS, c->w - 4, ROLE_WARN,
			    p->cnt ? "The filter lets none through."
				   : "Nothing is seen to listen on a TCP port. Start the server, "
				     "run as root, or give --pid.");
	draw_bottom(p, c, at, cnt);
}
