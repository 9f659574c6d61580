/* SPDX-License-Identifier: Apache-2.0 */
#include "go_allgs.h"
#include "elf_file.h"
#include "go_tab.h"

#include <elf.h>
#include <string.h>

#define CODE_MAX 1024 /* bytes of the function */
#define USED_MAX 64   /* addresses that it reads or writes */

/* mov disp(%rip),reg or mov reg,disp(%rip), 64 bits wide. Adds what it is about. */
static size_t words_used(const uint8_t *code, size_t len, uint64_t at, uint64_t *ret)
{
	size_t cnt = 0;

	for (size_t i = 0; i + 7 <= len && cnt < USED_MAX; i++) {
		int32_t far;

		if ((code[i] & 0xfb) != 0x48 || (code[i + 1] & 0xfd) != 0x89 ||
		    (code[i + 2] & 0xc7) != 0x05)
			continue;
		memcpy(&far, code + i + 3, sizeof(far));
		ret[cnt++] = at + i + 7 + (uint64_t)(int64_t)far;
	}
	return cnt;
}

static bool has(const uint64_t *v, size_t cnt, uint64_t what)
{
	for (size_t i = 0; i < cnt; i++)
		if (v[i] == what)
			return true;
	return false;
}

uint64_t go_allgs_x86(const uint8_t *code, size_t len, uint64_t at)
{
	uint64_t used[USED_MAX];
	size_t cnt = words_used(code, len, at, used);

	/* the one thing of three words, each of which append uses */
	for (size_t i = 0; i < cnt; i++)
		if (used[i] % 8 == 0 && has(used, cnt, used[i] + 8) && has(used, cnt, used[i] + 16))
			return used[i];
	return 0;
}

int go_allgs_find(struct elf_file *f, struct go_tab *tab, uint64_t *ret)
{
	static const char *const name = "runtime.allgadd";
	uint8_t code[CODE_MAX];
	struct go_func fn;
	int err = go_tab_by_name(tab, &name, 1, &fn);

	*ret = 0;
	if (err || !fn.entry || f->machine != EM_X86_64)
		return err;
	size_t len = CC_MIN(fn.end - fn.entry, sizeof(code));
	if (elf_file_read_at(f, fn.entry, code, len) == (ssize_t)len)
		*ret = go_allgs_x86(code, len, fn.entry);
	return 0;
}
