/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files: names within their bounds, and hostile files. */
#include "cfi.h"
#include "elf_file.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int symbol_test_datum[10] = { 1 };

__attribute__((noinline)) int symbol_test_function(int x);
__attribute__((noinline)) int symbol_test_function(int x)
{
	return x * symbol_test_datum[x % 10] + 7;
}

static struct elf_file *open_file(const char *path)
{
	struct elf_file *f = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(elf_file_new(fd, &f), 0);
	return f;
}

/* Where @addr of this process is linked in the file it lies in. */
static uint64_t linked(const void *addr, const char **ret_path)
{
	Dl_info info;

	cr_assert_neq(dladdr(addr, &info), 0);
	*ret_path = info.dli_fname;
	return (uint64_t)((const char *)addr - (const char *)info.dli_fbase);
}

Test(symbol_elf, names_of_this_program)
{
	const char *path;
	uint64_t fn = linked((void *)symbol_test_function, &path), datum, off;
	struct elf_file *f = open_file("/proc/self/exe");
	char name[64];

	datum = linked(symbol_test_datum, &path);
	cr_assert_eq(elf_file_name(f, fn + 1, false, name, sizeof(name), &off), 0);
	cr_expect_str_eq(name, "symbol_test_function");
	cr_expect_eq(off, 1);
	cr_assert_eq(elf_file_name(f, datum + 8, true, name, sizeof(name), &off), 0);
	cr_expect_str_eq(name, "symbol_test_datum");
	cr_expect_eq(off, 8);
	cr_expect(elf_file_has_data(f, datum));
	cr_expect_gt(f->build_id_len, 0);
	cr_expect_eq(elf_file_name(f, fn + 1, false, name, 5, &off), 0);
	cr_expect_str_eq(name, "symb", "cut, and ended");
	elf_file_put(f);
}

struct span {
	uint64_t start, end;
};

/* All functions that have a size, of the table that is used for names: read anew, and naively. */
static struct span *read_spans(int fd, size_t *ret_cnt)
{
	struct span *v = NULL;
	size_t cnt = 0;
	Elf_Scn *scn = NULL;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;
		GElf_Sym sym;
		Elf_Data *d = elf_getdata(scn, NULL);

		gelf_getshdr(scn, &sh);
		if (sh.sh_type != SHT_DYNSYM && sh.sh_type != SHT_SYMTAB)
			continue;
		if (sh.sh_type == SHT_SYMTAB)
			cnt = 0;
		v = realloc(v, (cnt + sh.sh_size / sh.sh_entsize) * sizeof(*v));
		for (int i = 0; gelf_getsym(d, i, &sym); i++) {
			if (sym.st_shndx != SHN_UNDEF && sym.st_shndx != SHN_ABS && sym.st_size &&
			    (GELF_ST_TYPE(sym.st_info) == STT_FUNC ||
			     GELF_ST_TYPE(sym.st_info) == STT_GNU_IFUNC))
				v[cnt++] =
					(struct span){ sym.st_value, sym.st_value + sym.st_size };
		}
		if (sh.sh_type == SHT_SYMTAB)
			break;
	}
	elf_end(elf);
	*ret_cnt = cnt;
	return v;
}

static bool in_any(const struct span *v, size_t cnt, uint64_t at, uint64_t start)
{
	for (size_t i = 0; i < cnt; i++) {
		if (at >= v[i].start && at < v[i].end &&
		    (start == UINT64_MAX || start == v[i].start))
			return true;
	}
	return false;
}

/* A library, which is stripped on most systems: what no symbol covers has bounds, but no name. */
Test(symbol_elf, no_name_beyond_its_symbol, .timeout = 60)
{
	const char *path;
	uint64_t vaddr = linked((void *)gnu_get_libc_version, &path);
	struct elf_file *f = open_file(path);
	size_t named = 0, cnt;
	struct span *v = read_spans(f->fd, &cnt);

	cr_assert_not_null(ehframe_find(f->fdes, f->fde_cnt, vaddr));
	cr_assert_gt(f->fde_cnt, 1000);
	for (size_t i = 0; i < f->fde_cnt; i++) {
		uint64_t at = f->fdes[i].start + f->fdes[i].len / 2, off;
		char name[64];

		if (elf_file_name(f, at, false, name, sizeof(name), &off)) {
			cr_assert_not(in_any(v, cnt, at, UINT64_MAX), "%#lx has a name", at);
			continue;
		}
		named++;
		cr_assert(in_any(v, cnt, at, at - off) || at - off >= f->fdes[i].start,
			  "%s does not cover %#lx", name, at);
	}
	cr_log_info("%s: %zu functions, %zu with a name", path, f->fde_cnt, named);
	cr_expect_gt(named, 1000);
	free(v);
	elf_file_put(f);
}

static struct elf_file *open_bytes(const void *data, size_t len, int *ret_err)
{
	struct elf_file *f = NULL;
	int fd = memfd_create("elf", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, data, len), (ssize_t)len);
	*ret_err = elf_file_new(fd, &f);
	return f;
}

/* Uses everything there is in the file. */
static void use_all(struct elf_file *f)
{
	char name[32];
	uint64_t off, vaddr;

	for (size_t i = 0; i < f->fde_cnt && i < 64; i++) {
		uint64_t at = f->fdes[i].start + f->fdes[i].len / 2;

		(void)!elf_file_name(f, at, false, name, sizeof(name), &off);
		elf_file_cfi_row(f, at);
	}
	for (size_t i = 0; i < f->funcs.cnt && i < 64; i++)
		(void)!elf_file_name(f, f->funcs.v[i].addr, false, name, sizeof(name), &off);
	for (size_t i = 0; i < f->objects.cnt && i < 64; i++)
		(void)!elf_file_name(f, f->objects.v[i].addr, true, name, sizeof(name), &off);
	(void)!elf_file_vaddr(f, 4096, true, &vaddr);
	cr_assert_lt(elf_file_mem(f), 8u << 20);
}

static size_t vdso_bytes(const uint8_t **ret)
{
	const uint8_t *p = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *eh = (const void *)p;

	cr_assert_not_null(p);
	*ret = p;
	return eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize;
}

/* A small, real file with symbols and CFI, damaged in every way a fixed seed gives. */
Test(symbol_elf, damaged_files, .timeout = 120)
{
	const uint8_t *good;
	size_t len = vdso_bytes(&good), loaded = 0;
	uint8_t *bad = malloc(len);
	unsigned int seed = 20;
	int err;

	for (unsigned int i = 0; i < 4000; i++) {
		size_t cut = i % 4 ? len : (unsigned int)rand_r(&seed) % len;

		memcpy(bad, good, len);
		for (unsigned int j = 0; j < 1 + i % 40; j++) {
			/* headers at both ends matter most */
			size_t at = (unsigned int)rand_r(&seed) % len;

			if (j % 3 == 0)
				at %= 1024;
			else if (j % 3 == 1)
				at = len - 1 - at % 1024;
			bad[at] = (uint8_t)rand_r(&seed);
		}
		struct elf_file *f = open_bytes(bad, cut, &err);

		if (f) {
			loaded++;
			use_all(f);
		} else {
			cr_assert_lt(err, 0);
		}
		elf_file_put(f);
	}
	free(bad);
	cr_expect_gt(loaded, 100, "most must get past the header, else this tests nothing");
}

/* The unwind programs alone, damaged: the interpreter sees every operation. */
Test(symbol_elf, damaged_cfi, .timeout = 120)
{
	const uint8_t *good;
	size_t len = vdso_bytes(&good), rows = 0, bad_rows = 0;
	uint8_t *bad = malloc(len);
	unsigned int seed = 21;
	int err;
	struct elf_file *ref = open_bytes(good, len, &err);

	cr_assert_not_null(ref);
	cr_assert_gt(ref->eh_len, 100);
	for (unsigned int i = 0; i < 6000; i++) {
		memcpy(bad, good, len);
		for (unsigned int j = 0; j < 1 + i % 30; j++)
			bad[ref->eh_off + (unsigned int)rand_r(&seed) % ref->eh_len] =
				(uint8_t)rand_r(&seed);
		struct elf_file *f = open_bytes(bad, len, &err);

		cr_assert_not_null(f);
		for (size_t k = 0; k < f->fde_cnt && k < 64; k++) {
			const struct cfi_row *r =
				elf_file_cfi_row(f, f->fdes[k].start + f->fdes[k].len / 2);

			rows++;
			bad_rows += r && r->bad;
			cr_assert(!r || r->cnt <= CFI_REGS);
		}
		elf_file_put(f);
	}
	elf_file_put(ref);
	free(bad);
	cr_expect_gt(rows, bad_rows);
	cr_expect_gt(bad_rows, 0);
}

Test(symbol_elf, no_elf)
{
	int err;

	cr_expect_null(open_bytes("hello, this is no ELF file at all", 33, &err));
	cr_expect_eq(err, -ENOEXEC);
	cr_expect_null(open_bytes("", 0, &err));
	cr_expect_eq(err, -ENOEXEC);
}

/* Sections that claim to be huge cost neither time nor memory. */
Test(symbol_elf, huge_claims, .timeout = 20)
{
	const uint8_t *good;
	size_t len = vdso_bytes(&good);
	ElfW(Ehdr) eh;
	struct elf_file *f = NULL;
	int fd = memfd_create("elf", MFD_CLOEXEC);

	memcpy(&eh, good, sizeof(eh));
	cr_assert_eq(write(fd, good, len), (ssize_t)len);
	cr_assert_eq(ftruncate(fd, 1ll << 40), 0);
	for (unsigned int i = 1; i < eh.e_shnum; i++) {
		ElfW(Shdr) sh;
		off_t at = (off_t)(eh.e_shoff + i * sizeof(sh));

		cr_assert_eq(pread(fd, &sh, sizeof(sh), at), (ssize_t)sizeof(sh));
		if (i == eh.e_shstrndx || sh.sh_type == SHT_NOTE)
			continue;
		sh.sh_size = 1ull << 39;
		cr_assert_eq(pwrite(fd, &sh, sizeof(sh), at), (ssize_t)sizeof(sh));
	}
	if (!elf_file_new(fd, &f)) {
		cr_expect_eq(f->fde_cnt, 0);
		cr_expect_eq(f->funcs.cnt, 0);
		use_all(f);
	}
	elf_file_put(f);
}
