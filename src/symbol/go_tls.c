/* SPDX-License-Identifier: Apache-2.0 */
#include "go_tls.h"
#include "go_image.h"
#include "go_tab.h"

#include <elf.h>
#include <string.h>

#define CODE_MAX 128
#define OFF_MAX (1 << 20) /* a thread-local block is smaller */

static bool plausible(int64_t off) { return off < 0 && off > -OFF_MAX && !(off & 7); }

/* A word of the program that holds the offset: filled by the loader, from the symbol's place in the
 * block; the block of the program itself ends at the thread pointer. */
static bool from_slot(const struct go_image *img, uint64_t at, int64_t *ret)
{
	uint64_t in_block, word;

	if (go_image_tls_slot(img, at, &in_block))
		*ret = (int64_t)(in_block - img->f->tls_size);
	else if (go_image_word(img, at, &word))
		*ret = (int64_t)word;
	else
		return false;
	return plausible(*ret);
}

bool go_tls_x86(const struct go_image *img, uint64_t vaddr, const uint8_t *code, size_t len,
		int64_t *ret)
{
	/* mov %fs:off,reg */
	static const uint8_t direct[3] = { 0x64, 0x48, 0x8b };

	for (size_t i = 0; i + 16 <= len; i++) {
		int32_t v;

		if (!memcmp(code + i, direct, sizeof(direct)) && (code[i + 3] & 0xc7) == 0x04 &&
		    code[i + 4] == 0x25) {
			memcpy(&v, code + i + 5, sizeof(v));
			*ret = v;
			return plausible(v);
		}
		/* mov slot(%rip),reg or, once a linker has relaxed it, mov $off,reg; then
		 * mov %fs:(reg),reg */
		if ((code[i] & 0xfb) != 0x48 || memcmp(code + i + 7, direct, 1) ||
		    code[i + 9] != 0x8b)
			continue;
		memcpy(&v, code + i + 3, sizeof(v));
		if (code[i + 1] == 0x8b && (code[i + 2] & 0xc7) == 0x05)
			return from_slot(img, vaddr + i + 7 + (uint64_t)(int64_t)v, ret);
		if (code[i + 1] == 0xc7 && code[i + 2] >= 0xc0) {
			*ret = v;
			return plausible(v);
		}
	}
	return false;
}

int go_tls_find(const struct go_image *img, struct go_tab *tab, bool *ret_has, int64_t *ret_off)
{
	/* all read g first of all */
	static const char *const names[] = { "runtime.stackcheck",      "runtime.asmcgocall",
					     "runtime.asmcgocall.abi0", "runtime.morestack",
					     "runtime.cgocallback",     "runtime.sigtramp" };
	struct go_func fns[ARRAY_SIZE(names)];
	int err = go_tab_by_name(tab, names, ARRAY_SIZE(names), fns);

	*ret_has = false;
	if (err || img->f->machine != EM_X86_64)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(names) && !*ret_has; i++) {
		uint8_t code[CODE_MAX];
		size_t want = CC_MIN(fns[i].end - fns[i].entry, sizeof(code));
		ssize_t n = fns[i].entry ? elf_file_read_at(img->f, fns[i].entry, code, want) : 0;

		*ret_has = n > 0 && go_tls_x86(img, fns[i].entry, code, (size_t)n, ret_off);
	}
	return 0;
}
