/* SPDX-License-Identifier: Apache-2.0 */
/* go_tiny: a Go program's file of some 2 KiB with everything that is looked for in one, for tests
 * that damage it. It cannot run. */
#ifndef CC_TEST_GO_TINY_H
#define CC_TEST_GO_TINY_H

#include "base.h"

#include <elf.h>
#include <string.h>

#define GO_TINY_MAX 4096
#define GO_TINY_BASE 0x400000ull /* where it is loaded */
#define GO_TINY_INLINED "main.inlined"

struct go_tiny {
	uint8_t b[GO_TINY_MAX];
	size_t len;
};

static inline size_t go_tiny_put(struct go_tiny *t, size_t align, const void *p, size_t n)
{
	size_t at = (t->len + align - 1) / align * align;

	if (n)
		memcpy(t->b + at, p, n);
	t->len = at + n;
	return at;
}

static inline size_t go_tiny_word(struct go_tiny *t, uint64_t v)
{
	return go_tiny_put(t, 8, &v, sizeof(v));
}

static inline size_t go_tiny_text(struct go_tiny *t, const char *s)
{
	return go_tiny_put(t, 1, s, strlen(s) + 1);
}

/* Functions of 32 bytes each. */
#define GO_TINY_FUNCS 4

/* The table of functions: header, names, file numbers, files, values by address, functions.
 * @text: where they are, from GO_TINY_BASE. Returns where it is. */
static inline size_t go_tiny_table(struct go_tiny *t, uint64_t text, size_t *ret_names)
{
	static const char *const names[GO_TINY_FUNCS] = { "runtime.gopark", "runtime.stackcheck",
							  "main.main", "runtime.goexit" };
	static const uint8_t head[8] = { 0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8 };
	/* a change of the value, for how many bytes; the value begins at -1 */
	static const uint8_t values[] = { 0,
					  /* 1: stack */ 2,
					  6,
					  16,
					  26,
					  0,
					  /* 6: file */ 2,
					  32,
					  0,
					  /* 9: line */ 24,
					  16,
					  2,
					  16,
					  0,
					  /* 14: inlined */ 0,
					  8,
					  2,
					  8,
					  1,
					  16,
					  0 };
	size_t at = go_tiny_put(t, 32, head, sizeof(head)), slots, name[GO_TINY_FUNCS], start[5];

	slots = go_tiny_word(t, GO_TINY_FUNCS);
	go_tiny_word(t, 1);
	go_tiny_word(t, GO_TINY_BASE + text);
	for (int i = 0; i < 5; i++)
		go_tiny_word(t, 0);
	start[0] = t->len;
	for (int i = 0; i < GO_TINY_FUNCS; i++)
		name[i] = go_tiny_text(t, names[i]) - start[0];
	size_t inlined = go_tiny_text(t, GO_TINY_INLINED) - start[0];

	start[1] = go_tiny_put(t, 4, &(uint32_t){ 0 }, 4);
	start[2] = go_tiny_text(t, "/src/main.go");
	start[3] = go_tiny_put(t, 1, values, sizeof(values));
	start[4] = go_tiny_put(t, 8, NULL, 0);
	uint32_t off = GO_TINY_FUNCS * 8 + 4;

	for (uint32_t i = 0; i < GO_TINY_FUNCS; i++) {
		go_tiny_put(t, 4, (uint32_t[]){ i * 32, off }, 8);
		off += 44 + (i == 2 ? 28 : 0);
	}
	go_tiny_put(t, 4, (uint32_t[]){ GO_TINY_FUNCS * 32 }, 4);
	for (uint32_t i = 0; i < GO_TINY_FUNCS; i++) {
		const uint32_t f[] = { i * 32, (uint32_t)name[i], 0, 0, 1, 6, 9, i == 2 ? 3 : 0, 0,
				       7,
				       /* flags: the first of a stack */
				       i == 3   ? 0x00000100
				       : i == 2 ? 0x04000000
						: 0 };
		const uint32_t data[] = { 0, 0, 14, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0 };

		go_tiny_put(t, 4, f, sizeof(f));
		if (i == 2)
			go_tiny_put(t, 4, data, sizeof(data));
	}
	for (int i = 0; i < 5; i++)
		memcpy(t->b + slots + 24 + i * 8, &(uint64_t){ start[i] - at }, 8);
	*ret_names = inlined;
	return at;
}

static inline void go_tiny_make(struct go_tiny *t)
{
	static const uint8_t code[GO_TINY_FUNCS][32] = {
		{ 0x49, 0x3b, 0x66, 0x10, 0x76, 0x10, 0x55, 0x48, 0x89, 0xe5, 0xc3 },
		{ 0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff, 0xc3 },
		{ 0x90, 0xc3 },
		{ 0x90, 0xc3 },
	};
	static const char *const reasons[] = { "", "GC assist marking", "IO wait", "select" };
	uint64_t base = GO_TINY_BASE, names, str[4], info[4] = { 0 };
	size_t sections[3][2], inlined;

	memset(t, 0, sizeof(*t));
	t->len = sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr);
	size_t text = go_tiny_put(t, 64, code, sizeof(code));
	size_t text_end = t->len, tab = go_tiny_table(t, text, &inlined);

	memcpy(&names, t->b + tab + 32, 8);
	sections[0][0] = tab;
	sections[0][1] = t->len - tab;
	size_t tree = go_tiny_put(t, 8, (uint32_t[]){ 0, (uint32_t)inlined, 17, 3 }, 16);

	for (int i = 0; i < 4; i++)
		str[i] = base + go_tiny_text(t, reasons[i]);
	size_t data = go_tiny_put(t, 64, NULL, 0);

	memcpy(info, "\xff Go buildinf:\x08\x02", 16);
	sections[1][0] = go_tiny_put(t, 16, info, sizeof(info));
	go_tiny_put(t, 1, "\x08go1.22.5", 9);
	sections[1][1] = 128;
	t->len = sections[1][0] + 128;
	for (int i = 0; i < 4; i++) {
		go_tiny_word(t, str[i]);
		go_tiny_word(t, strlen(reasons[i]));
	}
	size_t module = go_tiny_word(t, base + tab);

	for (int i = 1; i < 48; i++)
		go_tiny_word(t, i == 1               ? base + tab + names
				: i == 20 || i == 22 ? base + text
				: i == 21 || i == 23 ? base + text_end
				: i == 40            ? base + tree
						     : 0);
	size_t rela = go_tiny_put(
		t, 8, &(Elf64_Rela){ base + module, R_X86_64_RELATIVE, (int64_t)(base + tab) }, 24);
	size_t dyn = go_tiny_put(t, 8,
				 (Elf64_Dyn[]){ { DT_RELA, { base + rela } },
						{ DT_RELASZ, { 24 } },
						{ DT_NULL, { 0 } } },
				 48);
	size_t end = t->len,
	       str_at = go_tiny_put(t, 1, "\0.gopclntab\0.go.buildinfo\0.shstrtab", 36);
	Elf64_Shdr sh[4] = {
		{ 0 },
		{ 1, SHT_PROGBITS, SHF_ALLOC, base + tab, tab, sections[0][1], 0, 0, 32, 0 },
		{ 12, SHT_PROGBITS, SHF_ALLOC, base + sections[1][0], sections[1][0], 128, 0, 0, 16,
		  0 },
		{ 26, SHT_STRTAB, 0, 0, str_at, 36, 0, 0, 1, 0 },
	};
	size_t sh_at = go_tiny_put(t, 8, sh, sizeof(sh));
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_shoff = sh_at,
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 4,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 4,
			  .e_shstrndx = 3 };
	Elf64_Phdr ph[4] = {
		{ PT_LOAD, PF_R | PF_X, 0, base, base, text_end, text_end, 4096 },
		{ PT_LOAD, PF_R, text_end, base + text_end, 0, data - text_end, data - text_end,
		  8 },
		{ PT_LOAD, PF_R | PF_W, data, base + data, 0, end - data, end - data + 64, 8 },
		{ PT_DYNAMIC, PF_R, dyn, base + dyn, 0, 48, 48, 8 },
	};

	memcpy(t->b, &eh, sizeof(eh));
	memcpy(t->b + sizeof(eh), ph, sizeof(ph));
}

#endif
