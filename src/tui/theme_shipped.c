/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped themes, in the program: they are there without an installation. */
#include <string.h>

#include "theme.h"

/* themes/NAME.theme as it is, NUL-terminated */
#define EMBED(symbol, file)                           \
	__asm__(".section .rodata\n"                  \
		".global " #symbol "\n" #symbol ":\n" \
		".incbin \"themes/" file ".theme\"\n" \
		".byte 0\n"                           \
		".previous\n");                       \
	extern const char symbol[]

EMBED(theme_text_dark, "dark");
EMBED(theme_text_high_contrast, "high-contrast");
EMBED(theme_text_light, "light");
EMBED(theme_text_mono, "mono");
EMBED(theme_text_okabe_ito, "okabe-ito");
EMBED(theme_text_tritan, "tritan");

static const struct {
	const char *name, *text;
} shipped[] = {
	{ "mono", theme_text_mono }, /* what NO_COLOR and terminals without colours get */
	{ "dark", theme_text_dark },     { "high-contrast", theme_text_high_contrast },
	{ "light", theme_text_light },   { "okabe-ito", theme_text_okabe_ito },
	{ "tritan", theme_text_tritan },
};

const char *theme_shipped_name(size_t i)
{
	return i < ARRAY_SIZE(shipped) ? shipped[i].name : NULL;
}

const char *theme_shipped_text(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(shipped); i++)
		if (!strcmp(name, shipped[i].name))
			return shipped[i].text;
	return NULL;
}
