/* SPDX-License-Identifier: Apache-2.0 */
/* go_lines: where Go code stands, as the text and the place of a NAME record: one line for each
 * call, those that were inlined first. */
#ifndef CC_GO_LINES_H
#define CC_GO_LINES_H

#include "base.h"

#define GO_LINES_MAX 4096 /* bytes of text or place of one address */

struct elf_file;

struct go_lines { /* '\n' between the lines, no NUL counted */
	char text[GO_LINES_MAX], place[GO_LINES_MAX];
	size_t len, place_len;
};

/* Of @vaddr in @f, which is called @base; @back: 1 if it is a return address less one. Returns how
 * many lines, 0: it is no Go code. */
size_t go_lines_at(struct elf_file *f, uint64_t vaddr, unsigned int back, const char *base,
		   size_t base_len, struct go_lines *ret);

#endif
