/* SPDX-License-Identifier: Apache-2.0 */
/* theme: what the roles on a canvas look like. Reads a superset of btop's theme grammar:
 *
 *	theme[main_fg]="#cc0000"   #RRGGBB, #GG (grey) or "R G B"; empty: the terminal's own
 *	theme[wait_net]="cyan"     ours: an ANSI name, bright_cyan, @0 .. @255
 *	attr[wait_net]="bold dim"  ours: bold dim underline reverse
 *
 * Unknown keys are ignored, missing ones inherited from the built-in default. */
#ifndef CC_THEME_H
#define CC_THEME_H

#include "base.h"

/* id, key, is text (its contrast is tested) */
#define THEME_ROLES(X)                 \
	X(FG, "main_fg", 1)            \
	X(TITLE, "title", 1)           \
	X(HI, "hi_fg", 1)              \
	X(INACTIVE, "inactive_fg", 1)  \
	X(DIV, "div_line", 0)          \
	X(CPU, "wait_cpu", 1)          \
	X(RUNQ, "wait_runq", 1)        \
	X(LOCK, "wait_lock", 1)        \
	X(NET, "wait_net", 1)          \
	X(DISK, "wait_disk", 1)        \
	X(SLEEP, "wait_sleep", 1)      \
	X(MEMORY, "wait_memory", 1)    \
	X(QUEUE, "wait_queue", 1)      \
	X(OTHER, "wait_other", 1)      \
	X(CONF_HIGH, "conf_high", 1)   \
	X(CONF_MID, "conf_mid", 1)     \
	X(CONF_LOW, "conf_low", 1)     \
	X(WARN, "warn", 1)             \
	X(ERR, "err", 1)               \
	X(HEAT_START, "heat_start", 0) \
	X(HEAT_MID, "heat_mid", 0)     \
	X(HEAT_END, "heat_end", 0)     \
	X(PAUSE, "pause_bg", 0)        \
	X(REPLAY, "replay_bg", 0)
#define X(id, key, text) ROLE_##id,
enum theme_role { THEME_ROLES(X) ROLE_CNT };
#undef X

#define COLOUR_NONE -1 /* the terminal's own */
#define COLOUR_RGB 0x1000000
typedef int32_t colour; /* COLOUR_NONE, palette index 0..255, or COLOUR_RGB | 0xRRGGBB */

enum { ATTR_BOLD = 1, ATTR_DIM = 2, ATTR_UNDERLINE = 4, ATTR_REVERSE = 8 };

struct look {
	colour fg, bg; /* bg: COLOUR_NONE: main_bg */
	uint8_t attr;  /* ATTR_* */
};

struct theme {
	char name[32];
	colour main_bg;
	struct look role[ROLE_CNT];
	struct look selected;
};

extern const char theme_default_text[];
const char *theme_shipped_name(size_t i);         /* NULL: no more; the first is mono */
const char *theme_shipped_text(const char *name); /* NULL: not shipped */

/* Reads theme text over @t, which has what is inherited. Returns 0, or -EBADMSG at the first line
 * that is no theme line (err->pos: its number, from 1); @t is then unchanged. */
CC_NODISCARD int theme_parse(const char *text, struct theme *t, struct cc_err *err);

/* Loads a theme by name (user's directory, data directories, built in) or path. Returns 0,
 * -ENOENT, -EBADMSG or another -errno of reading it; @err says which line. */
CC_NODISCARD int theme_load(const char *name, struct theme *ret, struct cc_err *err);

/* Which theme to begin with: the one asked for (NULL: none), the configuration's ("": none), else
 * the default; NO_COLOR (no-color.org: set and not empty) makes that mono. */
const char *theme_first(const char *asked, const char *configured);

/* Names of all themes found: built in, then files; sorted within each. Caller frees with
 * theme_names_free(). NULL: out of memory. */
char **theme_names(size_t *ret_cnt);
void theme_names_free(char **names);

/* Palette index that shows @c best on a terminal of @colours (8, 16, 88, 256, or direct colour);
 * COLOUR_NONE stays.
 */
int theme_palette(colour c, int colours);

/* What a role looks like, on the selected row or not, once what it leaves open is filled in. */
struct look theme_look(const struct theme *t, enum theme_role role, bool selected);

/* Red, green and blue of a palette colour, by xterm's levels. */
uint32_t theme_rgb(colour c);

/* WCAG contrast ratio, 1..21. */
double theme_contrast(uint32_t rgb_a, uint32_t rgb_b);

/* Role of a wait group's letter. */
enum theme_role theme_wait_role(char letter);

#endif
