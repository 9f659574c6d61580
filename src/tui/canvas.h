/* SPDX-License-Identifier: Apache-2.0 */
/* canvas: a grid of styled character cells. Pure: views draw on it, term paints it, tests read it.
 */
#ifndef CC_CANVAS_H
#define CC_CANVAS_H

#include <stdarg.h>
#include <stdio.h>

#include "base.h"

/* A style is a role of the theme plus attributes; the theme decides the looks at paint time. */
typedef uint16_t style;
#define CELL_BOLD 0x100
#define CELL_DIM 0x200
#define CELL_SEL 0x400 /* part of the selected row */
#define CELL_ROLE(st) ((st)&0xff)

struct cell {
	uint32_t ch; /* code point; 0: right half of the wide character before it */
	style st;
	uint8_t width; /* 1, 2; 0 for a right half */
	uint8_t pad;
};
_Static_assert(sizeof(struct cell) == 8, "frames are compared with memcmp");

struct canvas {
	int w, h;
	int cur_x, cur_y; /* terminal cursor; cur_y < 0: hidden */
	bool ascii;       /* every glyph is replaced by an ASCII one when it is put */
	struct cell *cells;
};

CC_NODISCARD int canvas_init(struct canvas *c, int w, int h); /* 0, -EINVAL, -ENOMEM */
void canvas_done(struct canvas *c);
void canvas_clear(struct canvas *c);
bool canvas_same(const struct canvas *a, const struct canvas *b);
const struct cell *canvas_at(const struct canvas *c, int x, int y); /* NULL: outside */

/* All of these clip to the canvas and to @w columns from @x, take any UTF-8 (bad bytes, control
 * and zero-width characters show as '?' or not at all) and return the columns written. */
int canvas_text(struct canvas *c, int x, int y, int w, style st, const char *s);
int canvas_fit(struct canvas *c, int x, int y, int w, style st, const char *s); /* cut in middle */
int canvas_cut(struct canvas *c, int x, int y, int w, style st, const char *s); /* at the end */
/* As canvas_fit(), moved to the left by up to @pan columns as far as there is more of it. */
int canvas_pan(struct canvas *c, int x, int y, int w, style st, const char *s, int pan);
/* As canvas_cut() while @pan is 0: for sentences. */
int canvas_pan_cut(struct canvas *c, int x, int y, int w, style st, const char *s, int pan);
/* For numbers: one that does not fit is shown as "###", never as a part of it. */
int canvas_right(struct canvas *c, int x, int y, int w, style st, const char *s);
int canvas_printf(struct canvas *c, int x, int y, int w, style st, const char *fmt, ...)
	CC_PRINTF(6, 7);
void canvas_fill(struct canvas *c, int x, int y, int w, style st, uint32_t ch);
void canvas_add(struct canvas *c, int x, int y, int w, style attr); /* ORs attributes */

/* Columns that @s takes. */
int canvas_width(const char *s);
/* Decodes one character; moves *@s on. 0 at the end; U+FFFD for a bad byte. */
uint32_t canvas_decode(const char **s);
/* The other way: writes a character and a NUL; returns its bytes. */
int canvas_encode(uint32_t ch, char out[5]);

/* Text wrapped at words into at most @lines lines; returns the lines used. */
int canvas_wrap(struct canvas *c, int x, int y, int w, int lines, style st, const char *s);
int canvas_lines(const char *s, int w); /* it makes in @w columns */

/* Writes the text, trailing blanks cut, one line per row. */
void canvas_dump(const struct canvas *c, FILE *out);

/* A pen writes from left to right up to @end. */
struct pen {
	struct canvas *c;
	int x, y, end;
};
void pen_put(struct pen *p, style st, const char *s);
void pen_printf(struct pen *p, style st, const char *fmt, ...) CC_PRINTF(3, 4);

#endif
