/* SPDX-License-Identifier: Apache-2.0 */
#include "go_wrap.h"
#include "elf_file.h"
#include "go_tab.h"

#include <ctype.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

#define CODE_MAX 512  /* they are short */
#define BEGIN_MAX 64u /* ... and begin like this */
#define CALLS 8       /* inlined into each other at one place */

static bool in_runtime(const char *name) { return !strncmp(name, "runtime.", 8); }

/* "...gowrap3" */
static bool is_named_so(const char *name)
{
	size_t len = strlen(name);

	while (len && isdigit((unsigned char)name[len - 1]))
		len--;
	return len > 7 && name[len] && !strncmp(name + len - 7, ".gowrap", 7);
}

/* Until 1.21 the name does not tell it from a closure that somebody wrote, but wrappers begin with
 * a look at g._panic, at 32 of g: mov 32(%r14),%r12; ldr 32(x28),xN. */
static bool begins_so(const struct elf_file *f, const uint8_t *code, size_t len)
{
	static const uint8_t x86[] = { 0x4d, 0x8b, 0x66, 0x20, 0x4d, 0x85, 0xe4 };

	len = CC_MIN(len, BEGIN_MAX);
	if (f->machine == EM_X86_64)
		return memmem(code, len, x86, sizeof(x86)) != NULL;
	for (size_t at = 0; at + 4 <= len; at += 4) {
		uint32_t op;

		memcpy(&op, code + at, sizeof(op));
		if ((op & ~0x1fu) == 0xf9401380)
			return true;
	}
	return false;
}

/* Whom the instruction at @pc, of @len bytes at @code, calls; 0: it is no call. */
static uint64_t called(const struct elf_file *f, const uint8_t *code, size_t len, uint64_t pc)
{
	int32_t far;

	if (f->machine == EM_X86_64) {
		if (len < 5 || code[0] != 0xe8)
			return 0;
		memcpy(&far, code + 1, sizeof(far));
		return pc + 5 + (uint64_t)(int64_t)far;
	}
	if (len < 4)
		return 0;
	memcpy(&far, code, sizeof(far));
	if (((uint32_t)far & 0xfc000000) != 0x94000000) /* bl */
		return 0;
	return pc + ((uint64_t)(int64_t)((int32_t)((uint32_t)far << 6) >> 6) << 2);
}

/* What was inlined straight into the function at @pc. */
static bool inlined(struct go_tab *tab, uint64_t pc, char *ret, size_t cap)
{
	struct go_place at[CALLS];
	size_t n = go_tab_places(tab, pc, at, CALLS);

	if (n < 2 || in_runtime(at[n - 2].name))
		return false;
	snprintf(ret, cap, "%s", at[n - 2].name);
	return true;
}

bool go_wrapped(struct elf_file *f, struct go_tab *tab, const struct go_func *fn, char *ret,
		size_t cap)
{
	const struct elf_seg *s = elf_file_seg(f, fn->entry);
	size_t len = CC_MIN(fn->end - fn->entry, CODE_MAX), step = f->machine == EM_X86_64 ? 1 : 4;
	uint8_t code[CODE_MAX];
	struct go_func to;

	go_tab_name(tab, fn->name, ret, cap);
	if (!s || !s->exec || elf_file_read_at(f, fn->entry, code, len) != (ssize_t)len ||
	    (!is_named_so(ret) && !begins_so(f, code, len)))
		return false;
	for (size_t i = 0; i < len; i += step) {
		uint64_t at = called(f, code + i, len - i, fn->entry + i);

		if (inlined(tab, fn->entry + i, ret, cap))
			return true;
		if (!at || !go_tab_func(tab, at, &to) || to.entry != at)
			continue;
		go_tab_name(tab, to.name, ret, cap);
		if (!in_runtime(ret))
			return true;
	}
	return false;
}
