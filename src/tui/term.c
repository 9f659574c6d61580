/* SPDX-License-Identifier: Apache-2.0 */
#define NCURSES_WIDECHAR 1
#include "term.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "crash.h"
#include "keys.h"

struct paint {
	attr_t attr;
	int pair;
};

struct term {
	SCREEN *screen;
	WINDOW *keys; /* a pad: reading keys from it never refreshes the screen */
	bool ascii, shown_ok;
	struct canvas shown;             /* what the terminal shows, if shown_ok */
	struct paint paint[ROLE_CNT][2]; /* plain, selected */
	struct crash *crash;
	struct termios saved;
	int mouse_x, mouse_y;
};

/* What puts the screen back, made before it is needed: a signal handler may not call curses. */
static size_t restore_text(char *buf, size_t cap)
{
	static const char *const names[] = { "sgr0", "op", "cnorm", "rmkx", "rmcup" };
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *s = tigetstr(names[i]);
		if (s == (char *)-1)
			continue;
		while (s && *s && n < cap) { /* without its padding marks $<..> */
			if (s[0] == '$' && s[1] == '<' && strchr(s, '>'))
				s = strchr(s, '>') + 1;
			else
				buf[n++] = *s++;
		}
	}
	return n;
}

/* The mouse is put back too when it is on; else there is no byte of it. */
static void arm(struct term *t, bool mouse)
{
	static const char mouse_off[] = "\033[?1006l\033[?1000l";
	char text[300];
	size_t n = restore_text(text, sizeof(text) - sizeof(mouse_off));
	if (mouse) {
		memcpy(text + n, mouse_off, sizeof(mouse_off) - 1);
		n += sizeof(mouse_off) - 1;
	}
	crash_disarm(t->crash);
	t->crash = crash_arm(&t->saved, text, n);
}

/* ---- open and close ---- */

/* Terminals that have ASCII alone, or the few more glyphs of a console's font. */
static bool poor_terminal(void)
{
	static const char *const names[] = { "linux", "vt", "cons", "sun", "ansi", "wsvt" };
	const char *term = getenv("TERM");
	for (size_t i = 0; term && i < ARRAY_SIZE(names); i++)
		if (!strncmp(term, names[i], strlen(names[i])))
			return true;
	return false;
}

/* Glyphs that the views use must take one column each. */
static bool needs_ascii(void)
{
	static const wchar_t probe[] = { 0x2026, 0xb7, 0x2500, 0x2588, 0x2581, 0x25b6, 0x2514 };
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0 || poor_terminal())
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(probe); i++)
		if (wcwidth(probe[i]) != 1)
			return true;
	return false;
}

int term_open(struct term **ret)
{
	struct termios saved;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &saved))
		return -ENOTTY;
	struct term *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	setlocale(LC_CTYPE, "");
	t->ascii = needs_ascii();
	t->screen = newterm(NULL, stdout, stdin);
	if (!t->screen) {
		free(t);
		return -EINVAL;
	}
	if (!tigetstr("cup")) { /* "dumb": nothing could be drawn in place */
		endwin();
		delscreen(t->screen);
		free(t);
		return -EINVAL;
	}
	cbreak();
	noecho();
	nonl();
	set_escdelay(25);
	scrollok(stdscr, FALSE);
	leaveok(stdscr, FALSE);
	if (has_colors()) {
		start_color();
		use_default_colors();
	}
	t->saved = saved;
	arm(t, false);
	t->keys = newpad(1, 1);
	if (!t->crash || !t->keys) {
		term_close(t);
		return -ENOMEM;
	}
	keypad(t->keys, TRUE);
	nodelay(t->keys, TRUE);
	*ret = t;
	return 0;
}

void term_close(struct term *t)
{
	if (!t)
		return;
	if (t->keys)
		delwin(t->keys);
	endwin();
	crash_disarm(t->crash);
	delscreen(t->screen);
	canvas_done(&t->shown);
	free(t);
}

bool term_ascii(const struct term *t) { return t->ascii; }

/* ---- looks ---- */

static attr_t attr_of(uint8_t attr)
{
	return (attr & ATTR_BOLD ? A_BOLD : 0) | (attr & ATTR_DIM ? A_DIM : 0) |
	       (attr & ATTR_UNDERLINE ? A_UNDERLINE : 0) | (attr & ATTR_REVERSE ? A_REVERSE : 0);
}

static struct paint paint_of(struct look l)
{
	struct paint p = { attr_of(l.attr), 0 };
	if (!has_colors() || (l.fg == COLOUR_NONE && l.bg == COLOUR_NONE))
		return p;
	int pair = alloc_pair(theme_palette(l.fg, COLORS), theme_palette(l.bg, COLORS));
	p.pair = pair > 0 ? pair : 0; /* no pair is left: plain, which still reads */
	return p;
}

void term_theme(struct term *t, const struct theme *theme)
{
	if (has_colors())
		reset_color_pairs();
	for (int i = 0; i < ROLE_CNT; i++)
		for (int sel = 0; sel < 2; sel++)
			t->paint[i][sel] = paint_of(theme_look(theme, (enum theme_role)i, sel));
	term_repaint(t);
}

/* ---- painting ---- */

static void put_run(struct term *t, const struct cell *cells, int n)
{
	wchar_t buf[256];
	style st = cells[0].st;
	struct paint p = t->paint[CC_MIN(CELL_ROLE(st), ROLE_CNT - 1)][st & CELL_SEL ? 1 : 0];
	attr_t attr = p.attr | (st & CELL_BOLD ? A_BOLD : 0) | (st & CELL_DIM ? A_DIM : 0);
	int len = 0;
	attr_set(attr, 0, &p.pair);
	for (int i = 0; i < n; i++) {
		if (cells[i].width)
			buf[len++] = (wchar_t)cells[i].ch;
		if (len == (int)ARRAY_SIZE(buf) || (i == n - 1 && len)) {
			addnwstr(buf, len);
			len = 0;
		}
	}
}

static void put_row(struct term *t, const struct canvas *c, int y)
{
	const struct cell *row = canvas_at(c, 0, y);
	move(y, 0);
	for (int x = 0; x < c->w;) {
		int n = 1;
		while (x + n < c->w && row[x + n].st == row[x].st)
			n++;
		put_run(t, &row[x], n);
		x += n;
	}
}

int term_paint(struct term *t, const struct canvas *c)
{
	if (t->shown.w != c->w || t->shown.h != c->h) {
		canvas_done(&t->shown);
		t->shown_ok = false;
		int err = canvas_init(&t->shown, c->w, c->h);
		if (err)
			return err;
	}
	if (t->shown_ok && canvas_same(&t->shown, c))
		return 0;
	size_t row_bytes = (size_t)c->w * sizeof(struct cell);
	if (!t->shown_ok)
		erase();
	for (int y = 0; y < c->h && y < LINES; y++)
		if (!t->shown_ok ||
		    memcmp(canvas_at(&t->shown, 0, y), canvas_at(c, 0, y), row_bytes))
			put_row(t, c, y);
	memcpy(t->shown.cells, c->cells, row_bytes * (size_t)c->h);
	t->shown.cur_x = c->cur_x;
	t->shown.cur_y = c->cur_y;
	t->shown_ok = true;
	curs_set(c->cur_y >= 0);
	move(CC_MAX(c->cur_y, 0), CC_MIN(c->cur_x, c->w - 1));
	wnoutrefresh(stdscr);
	doupdate();
	return 0;
}

void term_repaint(struct term *t)
{
	t->shown_ok = false;
	clearok(curscr, TRUE);
}

void term_size(struct term *t, int *ret_w, int *ret_h)
{
	struct winsize ws;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) && ws.ws_row && ws.ws_col &&
	    (ws.ws_row != LINES || ws.ws_col != COLS)) {
		resize_term(ws.ws_row, ws.ws_col);
		term_repaint(t); /* the terminal may have moved what it shows */
	}
	*ret_w = COLS;
	*ret_h = LINES;
}

/* ---- keys ---- */

void term_mouse(struct term *t, bool on)
{
	arm(t, on);
	mousemask(on ? BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED : 0, NULL);
	mouseinterval(0);
}

void term_mouse_at(const struct term *t, int *ret_x, int *ret_y)
{
	*ret_x = t->mouse_x;
	*ret_y = t->mouse_y;
}

static int mouse_key(struct term *t)
{
	MEVENT e;
	if (getmouse(&e) != OK)
		return TK_NONE;
	t->mouse_x = e.x;
	t->mouse_y = e.y;
	return e.bstate & BUTTON1_PRESSED   ? TK_CLICK
	       : e.bstate & BUTTON4_PRESSED ? TK_WHEEL_UP
	       : e.bstate & BUTTON5_PRESSED ? TK_WHEEL_DOWN
					    : TK_NONE;
}

static int key_code(wint_t ch)
{
	static const struct {
		int curses, key;
	} map[] = {
		{ KEY_UP, TK_UP },        { KEY_DOWN, TK_DOWN },   { KEY_LEFT, TK_LEFT },
		{ KEY_RIGHT, TK_RIGHT },  { KEY_PPAGE, TK_PGUP },  { KEY_NPAGE, TK_PGDN },
		{ KEY_HOME, TK_HOME },    { KEY_END, TK_END },     { KEY_DC, TK_DELETE },
		{ KEY_BTAB, TK_BACKTAB }, { KEY_ENTER, TK_ENTER }, { KEY_BACKSPACE, TK_BACKSPACE },
	};
	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (map[i].curses == (int)ch)
			return map[i].key;
	if ((int)ch >= KEY_F(1) && (int)ch <= KEY_F(12))
		return TK_F1 + ((int)ch - KEY_F(1));
	return TK_NONE;
}

int term_key(struct term *t)
{
	int ready = 0;
	for (;;) {
		wint_t ch = 0;
		int got = wget_wch(t->keys, &ch);
		if (got == OK)
			return (int)ch == TK_NONE ? TK_CTRL('@') : (int)ch;
		if (got != KEY_CODE_YES)
			break;
		int key = ch == KEY_MOUSE ? mouse_key(t) : key_code(ch);
		if (key != TK_NONE)
			return key;
	}
	/* readable without a byte to read is the end of the terminal */
	if (ioctl(STDIN_FILENO, FIONREAD, &ready))
		return -EIO;
	return TK_NONE;
}

/* ---- leaving for a while ---- */

void term_suspend(struct term *t)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL }, old;
	sigset_t tstp, mask;
	sigemptyset(&dfl.sa_mask);
	sigemptyset(&tstp);
	sigaddset(&tstp, SIGTSTP);
	def_prog_mode();
	endwin();
	sigaction(SIGTSTP, &dfl, &old);
	raise(SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &tstp, &mask); /* stops here */
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigaction(SIGTSTP, &old, NULL);
	reset_prog_mode();
	term_repaint(t);
}

void term_resumed(struct term *t)
{
	reset_prog_mode();
	term_repaint(t);
}

static size_t base64(const unsigned char *in, size_t n, char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t o = 0;
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)in[i] << 16 | (uint32_t)(i + 1 < n ? in[i + 1] : 0) << 8 |
			     (i + 2 < n ? in[i + 2] : 0);
		out[o++] = digits[v >> 18];
		out[o++] = digits[v >> 12 & 63];
		out[o++] = i + 1 < n ? digits[v >> 6 & 63] : '=';
		out[o++] = i + 2 < n ? digits[v & 63] : '=';
	}
	return o;
}

static int write_all(int fd, const char *s, size_t n)
{
	while (n) {
		ssize_t w = write(fd, s, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w ? -errno : -EIO;
		s += w;
		n -= (size_t)w;
	}
	return 0;
}

int term_copy(struct term *t, const char *text)
{
	static const char head[] = "\033]52;c;", through[] = "\033Ptmux;\033", end[] = "\a\033\\";
	const size_t lead = sizeof(through) - 1;
	size_t n = strlen(text), o = lead + sizeof(head) - 1;
	char *buf = malloc(o + n / 3 * 4 + 16);
	(void)t;
	if (!buf)
		return -ENOMEM;
	memcpy(buf, through, lead);
	memcpy(buf + lead, head, sizeof(head) - 1);
	o += base64((const unsigned char *)text, n, buf + o);
	memcpy(buf + o, end, sizeof(end) - 1);
	/* to this terminal; in tmux also to the one around it, where passing through is allowed */
	int err = write_all(STDOUT_FILENO, buf + lead, o + 1 - lead);
	if (!err && getenv("TMUX"))
		err = write_all(STDOUT_FILENO, buf, o + sizeof(end) - 1);
	free(buf);
	return err;
}
