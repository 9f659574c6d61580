/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a target's program or library: its functions looked up by address, and how to unwind
 * at each. */
#include <string.h>

#include "cfi.h"
#include "elf_file.h"
#include "fuzz.h"

#define LOOK 32 /* addresses of each kind */

static void look_at(struct elf_file *f, uint64_t vaddr)
{
	char name[128];
	uint64_t off;
	uint8_t bytes[64];

	for (int object = 0; object < 2; object++) {
		if (elf_file_name(f, vaddr, object, name, sizeof(name), &off))
			continue;
		if (strnlen(name, sizeof(name)) == sizeof(name) || off > vaddr)
			abort();
	}
	const struct cfi_row *row = elf_file_cfi_row(f, vaddr);

	if (row && !row->bad && row->cnt > CFI_REGS)
		abort();
	row = elf_file_code_row(f, vaddr, vaddr & 1);
	if (row && !row->bad && row->cnt > CFI_REGS)
		abort();
	(void)!elf_file_read_at(f, vaddr, bytes, sizeof(bytes));
	(void)elf_file_has_data(f, vaddr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elf_file *f;
	char path[32];

	if (elf_file_new(fuzz_file(data, len, path), &f))
		return 0;
	for (size_t i = 0; i < CC_MIN(f->funcs.cnt, (size_t)LOOK); i++)
		look_at(f, f->funcs.v[i].addr + 1);
	for (size_t i = 0; i < CC_MIN(f->objects.cnt, (size_t)LOOK); i++)
		look_at(f, f->objects.v[i].addr);
	for (size_t i = 0; i < CC_MIN(f->fde_cnt, (size_t)LOOK); i++)
		look_at(f, f->fdes[i].start);
	for (size_t i = 0; i < CC_MIN(f->seg_cnt, (size_t)LOOK); i++)
		look_at(f, f->segs[i].vaddr + f->segs[i].memsz / 2);
	elf_file_put(f);
	return 0;
}
