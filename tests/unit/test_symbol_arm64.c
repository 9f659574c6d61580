/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of arm64 code, as readelf has them: of programs compiled here, which are not run; and stacks
 * that programs wrote down when they ran. */
#include "cfi.h"
#include "elf_file.h"
#include "unwinder.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define COLS 24

/* A function each, so that a file has one FDE, which begins wherever it is said to be. */
static const char *const sources[] = {
	"int leaf(int a) { return a * 3; }",
	"int g(int, char *); int f(int a) { char room[100]; return g(a, room) + g(a + 1, room + "
	"1); }",
	"int g(int, char *); int f(int a) { char room[90000]; return g(a, room) + g(a, room + 5); "
	"}",
	"int g(int, char *); void h(void); void f(int a) { if (a) g(a, 0); h(); }",
};

static const char *const flags[] = { "", "-fomit-frame-pointer",
				     "-fomit-frame-pointer -mbranch-protection=pac-ret+leaf" };

struct table { /* of one FDE */
	uint64_t start;
	char names[COLS][8]; /* of the columns behind LOC and CFA */
	unsigned int name_cnt, rows;
};

/* Here a register of the file has this number. */
static int place_of(const char *name)
{
	if (!strcmp(name, "ra"))
		return CFI_RA;
	if (!strcmp(name, "sp"))
		return CFI_SP;
	return name[0] == 'x' ? cfi_arch(EM_AARCH64)->place[atoi(name + 1)] : -1;
}

static const struct cfi_rule *rule_of(const struct cfi_row *row, int reg)
{
	for (unsigned int i = 0; i < row->cnt; i++) {
		if (row->rules[i].reg == reg)
			return &row->rules[i];
	}
	return NULL;
}

static void expect_row(const struct cfi_row *row, const struct table *t, const char *line)
{
	char text[COLS + 2][24] = { 0 }, base[8];
	const struct cfi_rule *r;
	int n = 0, at, used, off;

	for (; n < COLS + 2 && sscanf(line, "%23s%n", text[n], &used) == 1; n++)
		line += used;
	cr_assert_eq(n, (int)t->name_cnt + 2);
	cr_assert(!row->bad);
	at = (int)strcspn(text[1], "+");
	snprintf(base, sizeof(base), "%.*s", at, text[1]);
	off = atoi(text[1] + at);
	cr_expect_eq(row->cfa.kind, CFI_REG);
	cr_expect_eq(row->cfa.from, place_of(base), "%s", text[1]);
	cr_expect_eq(row->cfa.off, off, "%s", text[1]);
	for (unsigned int i = 0; i < t->name_cnt; i++) {
		r = rule_of(row, place_of(t->names[i]));
		if (text[i + 2][0] == 'c') {
			cr_assert_not_null(r, "%s", t->names[i]);
			cr_expect_eq(r->kind, CFI_SAVED, "%s", t->names[i]);
			cr_expect_eq(r->off, atoi(text[i + 2] + 1), "%s", t->names[i]);
		} else if (!strcmp(t->names[i], "ra")) { /* in the link register, still */
			cr_assert_not_null(r);
			cr_expect_eq(r->kind, CFI_REG);
		} else {
			cr_expect_null(r, "%s has not changed", t->names[i]);
		}
	}
}

/* Compares all rows of the one FDE of @path. Returns how many. */
static unsigned int compare(const char *path, struct elf_file *f, bool *ret_signed)
{
	char cmd[256], line[512];
	struct table t = { 0 };
	bool fde = false;
	FILE *p;

	snprintf(cmd, sizeof(cmd), "readelf -W --debug-dump=frames-interp %s 2>/dev/null", path);
	p = popen(cmd, "r");
	cr_assert_not_null(p);
	while (fgets(line, sizeof(line), p)) {
		const char *pc = strstr(line, "FDE cie=") ? strstr(line, "pc=") : NULL;
		unsigned long long loc;
		int used = 0;

		if (pc) {
			t.start = strtoull(pc + 3, NULL, 16);
			fde = true;
		} else if (fde && strstr(line, "LOC")) {
			const char *at = strstr(line, "CFA") + 3;

			for (t.name_cnt = 0; t.name_cnt < COLS &&
					     sscanf(at, "%7s%n", t.names[t.name_cnt], &used) == 1;
			     at += used)
				t.name_cnt++;
		} else if (fde && sscanf(line, "%llx %n", &loc, &used) == 1 && used >= 16) {
			const struct cfi_row *row =
				elf_file_cfi_row(f, f->fdes[0].start + loc - t.start);

			cr_assert_not_null(row);
			expect_row(row, &t, line);
			*ret_signed |= row->ra_signed;
			t.rows++;
		}
	}
	pclose(p);
	return t.rows;
}

Test(symbol_arm64, rows_as_readelf_has_them, .timeout = 60)
{
	char path[64], cmd[512];
	unsigned int rows = 0;

	snprintf(path, sizeof(path), "/tmp/criticast-arm64-%d.o", getpid());
	if (system("clang --target=aarch64-linux-gnu -x c -c -o /dev/null /dev/null 2>/dev/null"))
		cr_skip_test("no clang for arm64");
	for (size_t i = 0; i < ARRAY_SIZE(sources) * ARRAY_SIZE(flags); i++) {
		const char *flag = flags[i % ARRAY_SIZE(flags)];
		bool is_signed = false;
		struct elf_file *f;
		FILE *p;

		snprintf(cmd, sizeof(cmd),
			 "clang --target=aarch64-linux-gnu -O2 -fasynchronous-unwind-tables %s -x "
			 "c -c "
			 "-o %s -",
			 flag, path);
		p = popen(cmd, "w");
		cr_assert_not_null(p);
		fputs(sources[i / ARRAY_SIZE(flags)], p);
		cr_assert_eq(pclose(p), 0);
		cr_assert_eq(elf_file_new(open(path, O_RDONLY | O_CLOEXEC), &f), 0);
		cr_assert_eq(f->machine, EM_AARCH64);
		cr_assert_eq(f->fde_cnt, 1);
		rows += compare(path, f, &is_signed);
		cr_expect_eq(is_signed, strstr(flag, "pac") != NULL, "%s", flag);
		elf_file_put(f);
	}
	cr_expect_gt(rows, 15);
	unlink(path);
}

/* ---- recorded stacks --------------------------------------------------------------------------
 */

struct record { /* as testdata/arm64/walk.c writes it */
	uint64_t magic, known, ip[32], regs[12], sp, bytes;
	uint8_t stack[8192];
};

struct walk {
	struct file_cache *files;
	struct unwinder *u;
	struct maps maps;
};

/* Its segments at the addresses they are linked at. */
static void map_program(struct walk *w, const char *path)
{
	char text[1024] = "";
	struct elf_file *f;
	bool changed;

	cr_assert_eq(elf_file_new(open(path, O_RDONLY | O_CLOEXEC), &f), 0);
	for (size_t i = 0; i < f->seg_cnt; i++) {
		const struct elf_seg *s = &f->segs[i];
		unsigned long long from = s->vaddr & ~4095ull;

		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%llx-%llx r%c%cp %08llx 08:01 7 %s\n", from,
			 (unsigned long long)(s->vaddr + s->memsz + 4095) & ~4095ull,
			 s->exec ? '-' : 'w', s->exec ? 'x' : '-',
			 (unsigned long long)s->off & ~4095ull, path);
	}
	maps_init(&w->maps, 1);
	cr_assert_eq(maps_parse(&w->maps, text, strlen(text), &changed), 0);
	for (size_t i = 0; i < w->maps.cnt; i++) {
		w->maps.v[i].tried = true;
		w->maps.v[i].file = elf_file_get(f);
	}
	elf_file_put(f);
	cr_assert_eq(file_cache_new(&w->files), 0);
	cr_assert_eq(unwind_rows_new(w->files, &w->u), 0);
}

static void unmap_program(struct walk *w)
{
	maps_done(&w->maps);
	unwinder_free(w->u);
	file_cache_free(w->files);
}

static void unwind_record(struct walk *w, const struct record *r, size_t bytes,
			  struct unwind_out *ret)
{
	struct unwind_in in;
	union {
		struct cc_rec_snap s;
		uint8_t room[sizeof(struct cc_rec_snap) + sizeof(r->stack)];
	} snap = { .s = { .ip = r->ip[0], .sp = r->sp, .bp = r->regs[10] } };

	memcpy(snap.s.regs, r->regs, 10 * sizeof(r->regs[0]));
	snap.s.regs[10] = r->regs[11];
	snap.s.byte_cnt = (uint32_t)bytes;
	memcpy(snap.s.data, r->stack, bytes);
	unwind_in_of(cfi_arch(EM_AARCH64), &snap.s, &in);
	in.learn = true;
	w->u->ops->unwind(w->u, &w->maps, &in, ret);
}

static void expect_walk(struct walk *w, const struct record *r)
{
	struct unwind_out o;

	cr_assert_eq(r->magic, 0x34366d7261);
	unwind_record(w, r, r->bytes, &o);
	cr_expect_eq(o.end, UNWIND_START, "%d", o.end);
	cr_expect_not(o.guessed);
	cr_assert_eq(o.cnt, r->known, "%u of %d frames", o.cnt, (int)r->known);
	cr_expect_arr_eq(o.ip, r->ip, r->known * sizeof(o.ip[0]));
	for (unsigned int i = 0; i < o.cnt; i++)
		cr_expect_not(o.rules[i].what & CC_RULE_KNOWN, "no rules for the kernel side");
	for (size_t bytes = 0; bytes < r->bytes; bytes += 8) { /* never another frame */
		unwind_record(w, r, bytes, &o);
		cr_assert_leq(o.cnt, r->known);
		cr_assert_arr_eq(o.ip, r->ip, o.cnt * sizeof(o.ip[0]));
		cr_assert(o.end == UNWIND_CUT || o.cnt == r->known, "%d", o.end);
	}
}

/* Whom a program says it was called by is what its stack says: leaf functions, large and grown
 * frames, signed return addresses, a handler and what it interrupted. */
Test(symbol_arm64, stacks_as_the_program_knows_them, .timeout = 60)
{
	static const char *const names[] = { "walk-plain", "walk-signed", "walk-fp" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct record r;
		struct walk w;
		unsigned int cnt = 0, high = 0;
		char path[96];

		snprintf(path, sizeof(path), "testdata/arm64/%s", names[i]);
		map_program(&w, path);
		strcat(path, ".stacks.gz");
		gzFile in = gzopen(path, "re");
		cr_assert_not_null(in);
		for (; gzread(in, &r, sizeof(r)) == (int)sizeof(r); cnt++) {
			expect_walk(&w, &r);
			for (size_t at = 0; at < r.bytes; at += 8) {
				uint64_t word;

				memcpy(&word, r.stack + at, 8);
				high += word >> 48 && (word & 0xffffffffff) >> 12 == 0x400;
			}
		}
		cr_expect_eq(cnt, 6);
		cr_expect_eq(high > 0, strstr(names[i], "signed") != NULL,
			     "%u signed return addresses", high);
		gzclose(in);
		unmap_program(&w);
	}
}
