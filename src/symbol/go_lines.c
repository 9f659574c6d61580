/* SPDX-License-Identifier: Apache-2.0 */
#include "go_lines.h"
#include "elf_file.h"
#include "go_tab.h"
#include "go_wrap.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CALLS 12 /* inlined into each other at one place, and told */

/* Adds to @buf, behind a line's end if @next; what does not fit is left out. Names are not trusted:
 * they have no line ends of their own. */
static CC_PRINTF(5, 6) void add_line(char *buf, size_t cap, size_t *len, bool next, const char *fmt,
				     ...)
{
	size_t at = *len + next;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = at < cap ? vsnprintf(buf + at, cap - at, fmt, ap) : -1;
	va_end(ap);
	if (n < 0 || (size_t)n >= cap - at)
		return;
	for (char *p = buf + at; (p = strchr(p, '\n'));)
		*p = '?';
	if (next)
		buf[*len] = '\n';
	*len = at + (size_t)n;
}

size_t go_lines_at(struct elf_file *f, uint64_t vaddr, unsigned int back, const char *base,
		   size_t base_len, struct go_lines *ret)
{
	struct go_place at[CALLS];
	struct go_func fn;
	struct go_tab *tab;
	size_t n = elf_file_go(f, false, &tab) ? 0 : go_tab_places(tab, vaddr, at, CALLS);

	*ret = (struct go_lines){ 0 };
	if (!n || !go_tab_func(tab, vaddr, &fn))
		return 0;
	if (vaddr == fn.entry && !back && n == 1) { /* what a goroutine begins with */
		char name[GO_NAME_MAX];

		if (go_wrapped(f, tab, &fn, name, sizeof(name)))
			snprintf(at[0].name, sizeof(at[0].name), "%s", name);
	}
	for (size_t i = 0; i < n; i++) {
		const char *file = strrchr(at[i].file, '/');

		add_line(ret->text, sizeof(ret->text), &ret->len, i > 0, "%s", at[i].name);
		add_line(ret->place, sizeof(ret->place), &ret->place_len, i > 0, "%.*s %.100s:%d",
			 (int)CC_MIN(base_len, 64), base, file ? file + 1 : at[i].file, at[i].line);
	}
	add_line(ret->text, sizeof(ret->text), &ret->len, false, "+0x%" PRIx64,
		 vaddr + back - fn.entry);
	return n;
}
