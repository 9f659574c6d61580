/* SPDX-License-Identifier: Apache-2.0 */
#include "svg.h"

#include <errno.h>

#define CELL_W 8
#define CELL_H 17
#define BASELINE 13
#define MARGIN 6

/* What "the terminal's own" colours are here. */
#define TERM_FG 0xd4d4d4u
#define TERM_BG 0x101216u

struct ink {
	uint32_t fg, bg; /* 0xRRGGBB */
	bool bold, dim, underline;
};

static uint32_t or_own(colour c, uint32_t own) { return c == COLOUR_NONE ? own : theme_rgb(c); }

/* Half way to the background, as terminals show dim text. */
static uint32_t dimmed(uint32_t fg, uint32_t bg)
{
	uint32_t ret = 0;
	for (int shift = 0; shift < 24; shift += 8)
		ret |= ((fg >> shift & 0xff) * 6 + (bg >> shift & 0xff) * 4) / 10 << shift;
	return ret;
}

static struct ink ink_of(const struct theme *t, style st)
{
	struct look l = theme_look(t, (enum theme_role)CELL_ROLE(st), st & CELL_SEL);
	struct ink ink = { or_own(l.fg, TERM_FG), or_own(l.bg, or_own(t->main_bg, TERM_BG)),
			   l.attr & ATTR_BOLD || st & CELL_BOLD, l.attr & ATTR_DIM || st & CELL_DIM,
			   l.attr & ATTR_UNDERLINE };
	if (l.attr & ATTR_REVERSE) {
		uint32_t fg = ink.fg;
		ink.fg = ink.bg;
		ink.bg = fg;
	}
	if (ink.dim)
		ink.fg = dimmed(ink.fg, ink.bg);
	return ink;
}

static void rect(FILE *out, int x, int y, int w, int h, uint32_t rgb)
{
	fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"/>\n", x, y,
		w, h, rgb);
}

/* Blocks and lines are drawn, not written: fonts differ in how they join. False: a letter. */
static bool put_block(FILE *out, uint32_t ch, int x, int y, uint32_t rgb)
{
	if (ch == 0x2500) {
		rect(out, x, y + CELL_H / 2, CELL_W, 1, rgb);
	} else if (ch == 0x2502) {
		rect(out, x + CELL_W / 2, y, 1, CELL_H, rgb);
	} else if (ch >= 0x2581 && ch <= 0x2588) {
		int h = CELL_H * (int)(ch - 0x2580) / 8;
		rect(out, x, y + CELL_H - h, CELL_W, h, rgb);
	} else {
		return false;
	}
	return true;
}

static void put_char(FILE *out, uint32_t ch)
{
	char utf[5];
	if (ch == '<' || ch == '&' || ch == '>') {
		fprintf(out, "&#%u;", ch);
		return;
	}
	canvas_encode(ch, utf);
	fputs(utf, out);
}

/* Cells [x, end) of a row, all in one style; its text in pieces between the blocks. */
static void put_text(const struct cell *row, int x, int end, int y, const struct ink *ink,
		     FILE *out)
{
	int py = MARGIN + y * CELL_H;
	while (x < end) {
		int from, cells = 0;
		while (x < end && (row[x].ch == ' ' || !row[x].width ||
				   put_block(out, row[x].ch, MARGIN + x * CELL_W, py, ink->fg)))
			x++;
		for (from = x; x < end && !(row[x].ch >= 0x2581 && row[x].ch <= 0x2588) &&
			       row[x].ch != 0x2500 && row[x].ch != 0x2502;
		     x++)
			if (row[x].ch != ' ')
				cells = x + CC_MAX(row[x].width, 1) - from;
		if (!cells)
			continue;
		fprintf(out, "<text x=\"%d\" y=\"%d\" textLength=\"%d\" fill=\"#%06x\"%s%s>",
			MARGIN + from * CELL_W, py + BASELINE, cells * CELL_W, ink->fg,
			ink->bold ? " font-weight=\"bold\"" : "",
			ink->underline ? " text-decoration=\"underline\"" : "");
		for (int i = from; i < from + cells; i++)
			if (row[i].width)
				put_char(out, row[i].ch);
		fputs("</text>\n", out);
	}
}

int svg_write(const struct canvas *c, const struct theme *theme, FILE *out)
{
	int w = c->w * CELL_W + 2 * MARGIN, h = c->h * CELL_H + 2 * MARGIN;
	uint32_t page = or_own(theme->main_bg, TERM_BG);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" xml:space=\"preserve\" font-size=\"13\" "
		"font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\">\n",
		w, h, w, h);
	rect(out, 0, 0, w, h, page);
	for (int y = 0; y < c->h; y++) {
		const struct cell *row = canvas_at(c, 0, y);
		for (int x = 0, n; x < c->w; x += n) {
			for (n = 1; x + n < c->w && row[x + n].st == row[x].st;)
				n++;
			struct ink ink = ink_of(theme, row[x].st);
			if (ink.bg != page)
				rect(out, MARGIN + x * CELL_W, MARGIN + y * CELL_H, n * CELL_W,
				     CELL_H, ink.bg);
			put_text(row, x, x + n, y, &ink, out);
		}
	}
	fputs("</svg>\n", out);
	return ferror(out) ? -EIO : 0;
}
