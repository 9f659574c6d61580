/* SPDX-License-Identifier: Apache-2.0 */
#include "canvas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define CANVAS_MAX 4096 /* columns or rows: no terminal is larger, and products stay small */

int canvas_init(struct canvas *c, int w, int h)
{
	if (w < 1 || h < 1)
		return -EINVAL;
	w = CC_MIN(w, CANVAS_MAX);
	h = CC_MIN(h, CANVAS_MAX);
	struct cell *cells = calloc((size_t)w * (size_t)h, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	*c = (struct canvas){ .w = w, .h = h, .cells = cells };
	canvas_clear(c);
	return 0;
}

void canvas_done(struct canvas *c)
{
	free(c->cells);
	*c = (struct canvas){ 0 };
}

void canvas_clear(struct canvas *c)
{
	for (int i = 0; i < c->w * c->h; i++)
		c->cells[i] = (struct cell){ .ch = ' ', .width = 1 };
	c->cur_x = 0;
	c->cur_y = -1;
}

bool canvas_same(const struct canvas *a, const struct canvas *b)
{
	return a->w == b->w && a->h == b->h && a->cur_x == b->cur_x && a->cur_y == b->cur_y &&
	       !memcmp(a->cells, b->cells, (size_t)(a->w * a->h) * sizeof(*a->cells));
}

const struct cell *canvas_at(const struct canvas *c, int x, int y)
{
	if (x < 0 || y < 0 || x >= c->w || y >= c->h)
		return NULL;
	return &c->cells[y * c->w + x];
}

uint32_t canvas_decode(const char **s)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)*s;
	int more = p[0] < 0x80 ? 0 : p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc0 ? 1 : -1;
	if (!p[0])
		return 0;
	(*s)++;
	if (more < 0 || p[0] > 0xf4)
		return 0xfffd;
	if (more == 0)
		return p[0];
	uint32_t ch = p[0] & (0x3fu >> more);
	for (int i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0xfffd;
		ch = ch << 6 | (p[i] & 0x3fu);
	}
	if (ch < least[more] || ch > 0x10ffff || (ch >= 0xd800 && ch < 0xe000))
		return 0xfffd;
	*s += more;
	return ch;
}

/* Columns of a character: 0 (combining, control: not shown), 1 or 2. Characters that this locale
 * cannot tell are shown as '?'. */
static int glyph_width(uint32_t ch)
{
	if (ch < 0x20 || (ch >= 0x7f && ch < 0xa0))
		return 0;
	if (ch < 0x7f)
		return 1;
	int w = wcwidth((wchar_t)ch);
	return w < 0 ? 1 : CC_MIN(w, 2);
}

/* The ASCII stand-in of each glyph the views use; '?' for any other character. */
static uint32_t glyph_ascii(uint32_t ch)
{
	static const struct {
		uint32_t ch;
		char ascii;
	} map[] = {
		{ 0x2026, '.' }, { 0x00b7, '.' }, { 0x2500, '-' }, { 0x2501, '=' }, { 0x2502, '|' },
		{ 0x2514, '`' }, { 0x251c, '|' }, { 0x250c, '+' }, { 0x2510, '+' }, { 0x2518, '+' },
		{ 0x2524, '|' }, { 0x2534, '+' }, { 0x252c, '+' }, { 0x25b6, '>' }, { 0x25be, 'v' },
		{ 0x25b4, '^' }, { 0x2581, '_' }, { 0x2582, '.' }, { 0x2583, '-' }, { 0x2584, '=' },
		{ 0x2585, '+' }, { 0x2586, '*' }, { 0x2587, '%' }, { 0x2588, '#' }, { 0x2264, '<' },
		{ 0x00d7, 'x' }, { 0x2260, '!' }, { 0x2191, '^' }, { 0x2193, 'v' }, { 0x2190, '<' },
		{ 0x2192, '>' }, { 0x258f, '|' }, { 0x2713, '+' },
	};
	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (map[i].ch == ch)
			return (unsigned char)map[i].ascii;
	return '?';
}

/* A half of a wide character that lost its other half becomes a blank. */
static void cell_unpair(struct canvas *c, int x, int y)
{
	struct cell *row = &c->cells[y * c->w];
	if (row[x].width == 0 && x > 0)
		row[x - 1] = (struct cell){ .ch = ' ', .width = 1, .st = row[x - 1].st };
	if (row[x].width == 2 && x + 1 < c->w)
		row[x + 1] = (struct cell){ .ch = ' ', .width = 1, .st = row[x + 1].st };
}

/* Puts one character of @width at (x, y), all of it inside the canvas. */
static void cell_put(struct canvas *c, int x, int y, style st, uint32_t ch, int width)
{
	if (ch >= 0x7f && c->ascii) {
		canvas_fill(c, x, y, width, st, glyph_ascii(ch));
		return;
	}
	cell_unpair(c, x, y);
	struct cell *cell = &c->cells[y * c->w + x];
	if (width == 2) {
		cell_unpair(c, x + 1, y);
		cell[1] = (struct cell){ .st = st };
	}
	*cell = (struct cell){ .ch = ch, .st = st, .width = (uint8_t)width };
}

/* Draws up to @w columns of @s, which may start left of the canvas. */
static int put_clipped(struct canvas *c, int x, int y, int w, style st, const char *s)
{
	int from = x, end = CC_MIN(c->w, x + w);
	if (y < 0 || y >= c->h || w <= 0)
		return 0;
	for (uint32_t ch; (ch = canvas_decode(&s)) != 0;) {
		int width = glyph_width(ch);
		if (!width)
			continue;
		if (x + width > end)
			break;
		if (ch >= 0x7f && wcwidth((wchar_t)ch) < 0)
			ch = c->ascii ? ch : '?';
		if (x >= 0)
			cell_put(c, x, y, st, ch, width);
		x += width;
	}
	return x - from;
}

int canvas_text(struct canvas *c, int x, int y, int w, style st, const char *s)
{
	return put_clipped(c, x, y, w, st, s);
}

int canvas_width(const char *s)
{
	int w = 0;
	for (uint32_t ch; (ch = canvas_decode(&s)) != 0;)
		w += glyph_width(ch);
	return w;
}

/* What stands for text that is left out; one dot alone would read as a part of a name. */
static const char *gap_text(const struct canvas *c) { return c->ascii ? ".." : "…"; }

/* @s without its first @cols columns. */
static const char *skip_columns(const char *s, int cols)
{
	for (int seen = 0; seen < cols && *s;)
		seen += glyph_width(canvas_decode(&s));
	return s;
}

int canvas_fit(struct canvas *c, int x, int y, int w, style st, const char *s)
{
	const char *gap = gap_text(c);
	int full = canvas_width(s), gap_w = canvas_width(gap);
	if (full <= w || w < gap_w + 2)
		return put_clipped(c, x, y, w, st, s);
	/* the end of a name tells more than its middle: keep both ends */
	int head = (w - gap_w) / 2, tail = w - gap_w - head;
	int at = put_clipped(c, x, y, head, st, s);
	at += put_clipped(c, x + at, y, gap_w, st, gap);
	return at + put_clipped(c, x + at, y, w - at, st, skip_columns(s, full - tail));
}

int canvas_cut(struct canvas *c, int x, int y, int w, style st, const char *s)
{
	const char *gap = gap_text(c);
	if (canvas_width(s) <= w)
		return put_clipped(c, x, y, w, st, s);
	int at = put_clipped(c, x, y, w - canvas_width(gap), st, s);
	return at + put_clipped(c, x + at, y, w - at, st, gap);
}

int canvas_pan_cut(struct canvas *c, int x, int y, int w, style st, const char *s, int pan)
{
	return pan > 0 ? canvas_pan(c, x, y, w, st, s, pan) : canvas_cut(c, x, y, w, st, s);
}

int canvas_pan(struct canvas *c, int x, int y, int w, style st, const char *s, int pan)
{
	const char *gap = gap_text(c);
	int gap_w = canvas_width(gap);
	pan = CC_MIN(pan, canvas_width(s) - w); /* its end stays at the right */
	if (pan <= 0 || w < gap_w + 2)
		return canvas_fit(c, x, y, w, st, s);
	int at = put_clipped(c, x, y, gap_w, st, gap);
	return at + canvas_cut(c, x + at, y, w - at, st, skip_columns(s, pan + gap_w));
}

int canvas_right(struct canvas *c, int x, int y, int w, style st, const char *s)
{
	int full = canvas_width(s);
	if (full > w) /* a part of a number is another number */
		canvas_fill(c, x, y, w, st, '#');
	else
		canvas_text(c, x + w - full, y, full, st, s);
	return w;
}

int canvas_printf(struct canvas *c, int x, int y, int w, style st, const char *fmt, ...)
{
	char buf[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	return put_clipped(c, x, y, w, st, buf);
}

void canvas_fill(struct canvas *c, int x, int y, int w, style st, uint32_t ch)
{
	if (y < 0 || y >= c->h)
		return;
	if (ch >= 0x7f && c->ascii)
		ch = glyph_ascii(ch);
	for (int i = CC_MAX(x, 0); i < CC_MIN(x + w, c->w); i++)
		cell_put(c, i, y, st, ch, 1);
}

void canvas_add(struct canvas *c, int x, int y, int w, style attr)
{
	if (y < 0 || y >= c->h)
		return;
	for (int i = CC_MAX(x, 0); i < CC_MIN(x + w, c->w); i++)
		c->cells[y * c->w + i].st |= attr;
}

/* Where the first of the lines ends that @s makes in @w columns. */
static const char *line_end(const char *s, int w)
{
	const char *cut = NULL;
	int cols = 0;
	for (const char *p = s, *q = s; *p; p = q) {
		uint32_t ch = canvas_decode(&q);
		if (ch == ' ')
			cut = p;
		cols += glyph_width(ch);
		if (cols > w)
			return cut && cut > s ? cut : p;
	}
	return s + strlen(s);
}

int canvas_lines(const char *s, int w)
{
	int n = 0;
	for (const char *end; *s && w > 0; s = end + strspn(end, " "), n++)
		if ((end = line_end(s, w)) == s)
			break; /* not even one wide character fits */
	return n;
}

#define WORD_KEPT 12 /* columns of a word that is cut */

/* Takes @cols columns from the middle of the longest word: a path, a name of C++. False: there is
 * no word so long. @s and @buf are not the same. */
static bool squeeze(const struct canvas *c, const char *s, int cols, char *buf, size_t cap)
{
	const char *word = s, *gap = gap_text(c);
	size_t len = 0;
	for (const char *p = s; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		if (n > len) {
			word = p;
			len = n;
		}
		p += n;
	}
	snprintf(buf, cap, "%.*s", (int)len, word);
	int w = canvas_width(buf), keep = w - cols - canvas_width(gap);
	if (keep < WORD_KEPT)
		return false;
	const char *head = skip_columns(word, keep / 2);
	snprintf(buf, cap, "%.*s%s%s", (int)(head - s), s, gap,
		 skip_columns(word, w - (keep - keep / 2)));
	return true;
}

int canvas_wrap(struct canvas *c, int x, int y, int w, int lines, style st, const char *s)
{
	char texts[2][1024], buf[1024];
	int line = 0, turn = 0;
	while (w > 0 && canvas_lines(s, w) > lines &&
	       squeeze(c, s, 3, texts[turn], sizeof(texts[0]))) {
		s = texts[turn];
		turn = !turn;
	}
	while (*s && line < lines && w > 0) {
		const char *end = line_end(s, w);
		if (!*end || line == lines - 1) { /* how a sentence ends tells most */
			canvas_fit(c, x, y + line, w, st, s);
			return line + 1;
		}
		if (end == s)
			return line;
		snprintf(buf, sizeof(buf), "%.*s", (int)(end - s), s);
		canvas_text(c, x, y + line++, w, st, buf);
		s = end + strspn(end, " ");
	}
	return line;
}

int canvas_encode(uint32_t ch, char out[5])
{
	int n = 0;
	if (ch < 0x80) {
		out[n++] = (char)ch;
	} else {
		int more = ch < 0x800 ? 1 : ch < 0x10000 ? 2 : 3;
		out[n++] = (char)((0xff00u >> (more + 1) & 0xff) | ch >> (6 * more));
		while (more--)
			out[n++] = (char)(0x80 | (ch >> (6 * more) & 0x3f));
	}
	out[n] = '\0';
	return n;
}

void canvas_dump(const struct canvas *c, FILE *out)
{
	for (int y = 0; y < c->h; y++) {
		const struct cell *row = &c->cells[y * c->w];
		int last = c->w;
		while (last > 0 && row[last - 1].ch == ' ')
			last--;
		for (int x = 0; x < last; x++) {
			char buf[5];
			if (row[x].width && canvas_encode(row[x].ch, buf))
				fputs(buf, out);
		}
		fputc('\n', out);
	}
}

void pen_put(struct pen *p, style st, const char *s)
{
	p->x += canvas_text(p->c, p->x, p->y, p->end - p->x, st, s);
}

void pen_printf(struct pen *p, style st, const char *fmt, ...)
{
	char buf[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	pen_put(p, st, buf);
}
