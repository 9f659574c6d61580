/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the tables that were kept of a program, with a right sum and the right key: what is
 * taken of them can be used. Else an entry would be as dear as the one who wrote it is trusted. */
#include <libdeflate.h>
#include <string.h>
#include <sys/auxv.h>

#include "cfi.h"
#include "fuzz.h"
#include "table_cache.h"

#define KEPT 80 /* bytes at the end of the head: places and counts */
#define HEAD 184
#define IMAGE 8192

static void use(struct elf_file *f)
{
	char name[64];
	uint64_t off;

	for (size_t i = 0; i < CC_MIN(f->funcs.cnt, (size_t)32); i++)
		(void)!elf_file_name(f, f->funcs.v[i].addr, false, name, sizeof(name), &off);
	for (size_t i = 0; i < CC_MIN(f->objects.cnt, (size_t)32); i++)
		(void)!elf_file_name(f, f->objects.v[i].addr, true, name, sizeof(name), &off);
	for (size_t i = 0; i < CC_MIN(f->fde_cnt, (size_t)32); i++)
		(void)elf_file_cfi_row(f, f->fdes[i].start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static int image = -1; /* one for all: a key has the time of its last change */
	struct elf_file *f;
	uint8_t *head, *bytes;
	size_t head_len, all;
	char path[32];
	uint32_t crc;

	if (image < 0) {
		image = fuzz_file((const uint8_t *)getauxval(AT_SYSINFO_EHDR), IMAGE, path);
		sleep(3);
	}
	if (len < KEPT || elf_file_new(dup(image), &f))
		return 0;
	head = table_cache_make(f, &head_len);
	if (!head || head_len < HEAD)
		abort();
	all = HEAD - KEPT + len;
	bytes = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		abort();
	memcpy(bytes, head, HEAD - KEPT);
	memcpy(bytes + HEAD - KEPT, data, len);
	crc = libdeflate_crc32(0, bytes + 16, all - 16);
	memcpy(bytes + 12, &crc, sizeof(crc));
	free(head);
	free(f->funcs.v);
	free(f->objects.v);
	free(f->fdes);
	f->funcs = f->objects = (struct elf_symtab){ NULL, 0 };
	f->fdes = NULL;
	f->fde_cnt = 0;
	if (table_cache_take(f, bytes, all))
		use(f);
	else
		munmap(bytes, all);
	elf_file_put(f);
	return 0;
}
