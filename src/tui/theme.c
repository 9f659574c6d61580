/* SPDX-License-Identifier: Apache-2.0 */
#include "theme.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wait_class.h"

/* Readable on black and on white alike: each text colour has more than 4.2 on both (the best that
 * any colour can have is 4.58), and all are exact colours of the 256-colour cube. */
const char theme_default_text[] = "theme[main_bg]=\"\"\n"
				  "theme[main_fg]=\"\"\n"
				  "theme[title]=\"\"\n"
				  "attr[title]=\"bold\"\n"
				  "theme[hi_fg]=\"@30\"\n"
				  "attr[hi_fg]=\"bold\"\n"
				  "theme[inactive_fg]=\"@243\"\n"
				  "theme[div_line]=\"@243\"\n"
				  "theme[selected_fg]=\"\"\n"
				  "theme[selected_bg]=\"\"\n"
				  "attr[selected_fg]=\"reverse\"\n"
				  "theme[wait_cpu]=\"@28\"\n"
				  "theme[wait_runq]=\"@130\"\n"
				  "attr[wait_runq]=\"bold\"\n"
				  "theme[wait_lock]=\"@162\"\n"
				  "attr[wait_lock]=\"bold\"\n"
				  "theme[wait_net]=\"@30\"\n"
				  "theme[wait_disk]=\"@63\"\n"
				  "attr[wait_disk]=\"bold\"\n"
				  "theme[wait_sleep]=\"@243\"\n"
				  "theme[wait_memory]=\"@164\"\n"
				  "theme[wait_queue]=\"@98\"\n"
				  "theme[wait_other]=\"@131\"\n"
				  "theme[conf_high]=\"@28\"\n"
				  "theme[conf_mid]=\"@130\"\n"
				  "theme[conf_low]=\"@162\"\n"
				  "attr[conf_low]=\"bold\"\n"
				  "theme[warn]=\"@130\"\n"
				  "attr[warn]=\"bold\"\n"
				  "theme[err]=\"@162\"\n"
				  "attr[err]=\"bold\"\n"
				  "theme[pause_bg]=\"@130\"\n"
				  "theme[replay_bg]=\"@30\"\n"
				  "theme[heat_start]=\"@28\"\n"
				  "theme[heat_mid]=\"@130\"\n"
				  "theme[heat_end]=\"@162\"\n";

#define X(id, key, text) key,
static const char *const role_keys[ROLE_CNT] = { THEME_ROLES(X) };
#undef X

/* ---- colours ---- */

static const int cube[6] = { 0, 95, 135, 175, 215, 255 };

uint32_t theme_rgb(colour c)
{
	static const uint32_t ansi[16] = {
		0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
		0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
	};
	if (c & COLOUR_RGB)
		return (uint32_t)c & 0xffffff;
	if (c < 0)
		return 0;
	if (c < 16)
		return ansi[c];
	if (c >= 232)
		return (uint32_t)(8 + 10 * (c - 232)) * 0x10101u;
	c -= 16;
	return (uint32_t)(cube[c / 36] << 16 | cube[c / 6 % 6] << 8 | cube[c % 6]);
}

static int distance(uint32_t a, uint32_t b)
{
	int r = (int)(a >> 16 & 0xff) - (int)(b >> 16 & 0xff);
	int g = (int)(a >> 8 & 0xff) - (int)(b >> 8 & 0xff);
	int bl = (int)(a & 0xff) - (int)(b & 0xff);
	return 2 * r * r + 4 * g * g + 3 * bl * bl; /* the eye sees green best */
}

int theme_palette(colour c, int colours)
{
	if (c == COLOUR_NONE || (!(c & COLOUR_RGB) && (c < 8 || (c < colours && colours <= 256))))
		return c;
	if (colours > 256) /* direct colour: all but the first 8 are red, green, blue */
		return (int)theme_rgb(c);
	int lo = colours >= 256 ? 16 : 0, hi = colours >= 256 ? 256 : colours >= 16 ? 16 : 8;
	int best = lo;
	uint32_t rgb = theme_rgb(c);
	for (int i = lo; i < hi; i++)
		if (distance(rgb, theme_rgb(i)) < distance(rgb, theme_rgb(best)))
			best = i;
	return best;
}

static double linear(uint32_t byte)
{
	double v = byte / 255.0;
	return v <= 0.03928 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double luminance(uint32_t rgb)
{
	return 0.2126 * linear(rgb >> 16 & 0xff) + 0.7152 * linear(rgb >> 8 & 0xff) +
	       0.0722 * linear(rgb & 0xff);
}

double theme_contrast(uint32_t rgb_a, uint32_t rgb_b)
{
	double a = luminance(rgb_a) + 0.05, b = luminance(rgb_b) + 0.05;
	return a > b ? a / b : b / a;
}

enum theme_role theme_wait_role(char letter)
{
	const char *at = letter ? strchr(WAIT_GROUPS, letter) : NULL;
	return at ? ROLE_CPU + (enum theme_role)(at - WAIT_GROUPS) : ROLE_OTHER;
}
_Static_assert(sizeof(WAIT_GROUPS) - 1 == ROLE_OTHER - ROLE_CPU + 1, "a role per group, in order");

/* ---- grammar ---- */

static int parse_colour(const char *s, colour *ret)
{
	static const char *const ansi[] = { "black", "red",     "green", "yellow",
					    "blue",  "magenta", "cyan",  "white" };
	char *end;
	unsigned int r, g, b;
	int used = 0;
	if (!*s) {
		*ret = COLOUR_NONE;
		return 0;
	}
	if (*s == '#') {
		size_t n = strspn(s + 1, "0123456789abcdefABCDEF");
		unsigned long v = strtoul(s + 1, &end, 16);
		if (*end || (n != 2 && n != 6))
			return -EINVAL;
		*ret = COLOUR_RGB | (colour)(n == 2 ? v * 0x10101 : v);
		return 0;
	}
	if (*s == '@') {
		unsigned long v = strtoul(s + 1, &end, 10);
		if (!isdigit((unsigned char)s[1]) || *end || v > 255)
			return -EINVAL;
		*ret = (colour)v;
		return 0;
	}
	if (sscanf(s, "%3u %3u %3u%n", &r, &g, &b, &used) == 3 && !s[used] && r < 256 && g < 256 &&
	    b < 256) {
		*ret = (colour)(COLOUR_RGB | r << 16 | g << 8 | b);
		return 0;
	}
	int bright = !strncmp(s, "bright_", 7) ? 8 : 0;
	for (int i = 0; i < 8; i++)
		if (!strcmp(s + (bright ? 7 : 0), ansi[i])) {
			*ret = i + bright;
			return 0;
		}
	return -EINVAL;
}

static int parse_attr(char *s, uint8_t *ret)
{
	static const char *const names[] = { "bold", "dim", "underline", "reverse" };
	uint8_t attr = 0;
	char *save = NULL;
	for (char *w = strtok_r(s, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		size_t i = 0;
		while (i < ARRAY_SIZE(names) && strcmp(w, names[i]))
			i++;
		if (i == ARRAY_SIZE(names))
			return -EINVAL;
		attr |= (uint8_t)(1 << i);
	}
	*ret = attr;
	return 0;
}

/* One value into its place. Unknown keys are fine: btop has many that we do not need. */
static int assign(struct theme *t, bool is_attr, const char *key, char *value)
{
	struct look *l = NULL;
	bool bg = false;
	for (int i = 0; i < ROLE_CNT; i++)
		if (!strcmp(key, role_keys[i]))
			l = &t->role[i];
	if (l)
		bg = l == &t->role[ROLE_PAUSE] || l == &t->role[ROLE_REPLAY];
	else if (!strcmp(key, "selected_fg") || !strcmp(key, "selected_bg"))
		l = &t->selected, bg = !strcmp(key, "selected_bg");
	if (is_attr)
		return l ? parse_attr(value, &l->attr) : 0;
	if (!strcmp(key, "main_bg"))
		return parse_colour(value, &t->main_bg);
	return l ? parse_colour(value, bg ? &l->bg : &l->fg) : 0;
}

/* Reads: theme[key]="value" or attr[key]="value", quotes optional; blank and # lines pass. */
static int parse_line(struct theme *t, char *line)
{
	char key[32], value[64];
	int used = 0;
	char *s = line + strspn(line, " \t");
	s[strcspn(s, "\r")] = '\0';
	if (!*s || *s == '#')
		return 0;
	bool is_attr = !strncmp(s, "attr[", 5);
	if (!is_attr && strncmp(s, "theme[", 6) != 0)
		return -EINVAL;
	s = strchr(s, '[') + 1;
	if (sscanf(s, "%31[a-z0-9_]] = %n", key, &used) != 1 || !used)
		return sscanf(s, "%*[^]]] = %n", &used) == EOF || !used ? -EINVAL : 0;
	s += used;
	char quote = *s == '"' || *s == '\'' ? *s++ : '\0';
	size_t n = quote ? strcspn(s, (char[]){ quote, '\0' }) : strcspn(s, " \t#");
	if (!quote && *s == '#') /* an unquoted colour, not a comment */
		n = 1 + strcspn(s + 1, " \t#");
	if (n >= sizeof(value) || (quote && s[n] != quote))
		return -EINVAL;
	memcpy(value, s, n);
	value[n] = '\0';
	return assign(t, is_attr, key, value);
}

/* Badges have a background; their text is black or white, whichever reads better on it. */
static void finish(struct theme *t)
{
	struct look *badges[] = { &t->role[ROLE_PAUSE], &t->role[ROLE_REPLAY] };
	for (size_t i = 0; i < ARRAY_SIZE(badges); i++) {
		struct look *b = badges[i];
		uint32_t rgb = theme_rgb(b->bg);
		bool dark = theme_contrast(rgb, 0) < theme_contrast(rgb, 0xffffff);
		b->fg = b->bg == COLOUR_NONE ? COLOUR_NONE : dark ? 231 : 16;
	}
}

struct look theme_look(const struct theme *t, enum theme_role role, bool selected)
{
	const struct look *l = &t->role[role < ROLE_CNT ? role : ROLE_FG], *sel = &t->selected;
	struct look ret = *l;
	if (selected) {
		/* a reversed row keeps one colour: patches of many would hide it */
		if (sel->attr & ATTR_REVERSE || (role == ROLE_FG && sel->fg != COLOUR_NONE))
			ret.fg = sel->fg;
		ret.bg = sel->bg;
		ret.attr = sel->attr | (l->attr & (uint8_t)~ATTR_REVERSE);
	}
	if (ret.bg == COLOUR_NONE)
		ret.bg = t->main_bg;
	return ret;
}

int theme_parse(const char *text, struct theme *t, struct cc_err *err)
{
	struct theme next = *t;
	int no = 0;
	while (*text) {
		char line[256];
		size_t n = strcspn(text, "\n");
		no++;
		snprintf(line, sizeof(line), "%.*s", (int)CC_MIN(n, sizeof(line)), text);
		if (n >= sizeof(line) || parse_line(&next, line)) {
			err->pos = no;
			snprintf(err->msg, sizeof(err->msg), "line %d is no theme line: %.80s", no,
				 line);
			return -EBADMSG;
		}
		text += n + (text[n] == '\n');
	}
	finish(&next);
	*t = next;
	return 0;
}
