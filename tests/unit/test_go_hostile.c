/* SPDX-License-Identifier: Apache-2.0 */
/* A damaged or hostile Go program: refused in one line, or read as far as it makes sense; never a
 * crash, never without end. Run with sanitizers it says more. */
#include "elf_file.h"
#include "go_fixture.h"
#include "go_tab.h"
#include "go_tiny.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MORE_MEMORY_KB (256 << 10) /* than before, at most; a sanitizer keeps what was freed */

TestSuite(go_hostile, .timeout = 120);

struct tally {
	unsigned int read, refused;
};

static void look_at(struct go_tab *tab)
{
	struct go_place places[8];
	struct go_func fn;
	uint32_t size;
	uint8_t flags;

	for (uint32_t i = 0; i < CC_MIN(go_tab_cnt(tab), 16); i++) {
		if (!go_tab_func_at(tab, i, &fn))
			continue;
		for (uint64_t pc = fn.entry; pc < CC_MIN(fn.end, fn.entry + 32); pc += 8) {
			(void)go_tab_places(tab, pc, places, 8);
			(void)go_tab_frame(tab, pc, &size, &flags);
		}
	}
}

static void open_it(int fd, struct tally *t)
{
	struct go_bin *b;
	struct go_tab *tab;
	struct cc_err err;
	int res = go_bin_open(dup(fd), NULL, &b, &err);

	if (res) {
		t->refused++;
		cr_assert(*err.msg && !strchr(err.msg, '\n'), "refused (%d) without a line", res);
		return;
	}
	t->read++;
	cr_assert_eq(elf_file_go(b->file, true, &tab), 0);
	look_at(tab);
	go_bin_free(b);
}

static int file_of(const void *p, size_t len)
{
	int fd = memfd_create("go", MFD_CLOEXEC);

	cr_assert(fd >= 0 && write(fd, p, len) == (ssize_t)len);
	return fd;
}

static long memory_kb(void)
{
#ifdef __SANITIZE_ADDRESS__
	return 0; /* it keeps what is freed: memory tells nothing */
#endif
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

Test(go_hostile, tiny_is_read_whole)
{
	struct go_tiny t;
	struct go_bin *b;
	struct go_tab *tab;
	struct cc_err err;
	struct go_place p[4];
	uint32_t size;
	uint8_t flags;

	go_tiny_make(&t);
	int fd = file_of(t.b, t.len);

	cr_assert_eq(go_bin_open(fd, NULL, &b, &err), 0, "%s", err.msg);
	cr_expect_str_eq(b->t.version, "go1.22.5");
	cr_expect(b->t.has_tls && b->t.tls_off == -8);
	cr_expect_eq(b->t.reasons.cnt, 4);
	cr_expect_eq(b->t.sites[GO_FN_GOPARK].insn, GO_INSN_PUSH);
	cr_expect_eq(b->t.sites[GO_FN_GOPARK].delta, 6);
	cr_expect_eq(b->t.sites[GO_FN_READY].off, 0);
	cr_assert_eq(elf_file_go(b->file, true, &tab), 0);
	uint64_t main_main = b->t.sites[GO_FN_GOPARK].entry + 64;

	/* inlined for 8 bytes from the 8th on */
	cr_assert_eq(go_tab_places(tab, main_main + 8, p, 4), 2);
	cr_expect_str_eq(p[0].name, GO_TINY_INLINED);
	cr_expect_str_eq(p[1].name, "main.main");
	cr_expect_str_eq(p[1].file, "/src/main.go");
	cr_expect_eq(p[0].line, 11);
	cr_expect_eq(p[1].line, 12);
	cr_assert_eq(go_tab_places(tab, main_main + 16, p, 4), 1);
	cr_expect_str_eq(p[0].name, "main.main");
	cr_expect(go_tab_frame(tab, main_main, &size, &flags) && !size && !flags);
	cr_expect(go_tab_frame(tab, main_main + 6, &size, &flags) && size == 8);
	cr_expect(go_tab_frame(tab, main_main + 32, &size, &flags) && flags & GO_FUNC_TOP);
	cr_expect_not(go_tab_frame(tab, main_main + 64, &size, &flags));
	cr_expect_eq(go_tab_places(tab, main_main + 64, p, 4), 0);
	cr_expect_eq(go_tab_places(tab, 0, p, 4), 0);
	go_bin_free(b);
}

/* Every byte, every number of 4 and 8 bytes, every length. */
Test(go_hostile, tiny_damaged_everywhere)
{
	static const uint8_t bytes[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	static const uint64_t words[] = {
		0, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX, 8, 4096
	};
	struct tally t = { 0 };
	struct go_tiny good;
	long before;

	go_tiny_make(&good);
	int fd = file_of(good.b, good.len);

	open_it(fd, &t);
	cr_assert_eq(t.read, 1);
	before = memory_kb();
	for (size_t at = 0; at < good.len; at++) {
		for (size_t k = 0; k < ARRAY_SIZE(bytes); k++) {
			cr_assert_eq(pwrite(fd, &bytes[k], 1, (off_t)at), 1);
			open_it(fd, &t);
		}
		cr_assert_eq(pwrite(fd, &good.b[at], 1, (off_t)at), 1);
	}
	for (size_t at = 0; at + 8 <= good.len; at += 4) {
		size_t size = at % 8 ? 4 : 8;

		for (size_t k = 0; k < ARRAY_SIZE(words); k++) {
			cr_assert_eq(pwrite(fd, &words[k], size, (off_t)at), (ssize_t)size);
			open_it(fd, &t);
		}
		cr_assert_eq(pwrite(fd, good.b + at, 8, (off_t)at), 8);
	}
	for (size_t len = good.len; len--;) {
		cr_assert_eq(ftruncate(fd, (off_t)len), 0);
		open_it(fd, &t);
	}
	/* both do happen, or this tests nothing */
	cr_expect_gt(t.read, 1000);
	cr_expect_gt(t.refused, 1000);
	cr_expect_lt(memory_kb() - before, MORE_MEMORY_KB);
	close(fd);
}

#define ROUNDS 400
#define HITS 8 /* places damaged at once */

/* A real one, in the places that say where everything is. */
Test(go_hostile, real_damaged_where_it_hurts)
{
	size_t len = 8 << 20;
	uint8_t *good = malloc(len);
	struct tally t = { 0 };
	struct elf_file *f;
	uint32_t seed = 1;
	long before;

	go_needed();
	for (int kind = 1; kind < 3; kind++) {
		int from = go_fd(go_kinds[kind]), fd;
		ssize_t n = read(from, good, len);

		cr_assert(n > 0 && (size_t)n < len);
		fd = file_of(good, (size_t)n);
		cr_assert_eq(elf_file_new(from, &f), 0);
		const uint64_t hurts[][2] = { { 0, 1024 },
					      { f->go_tab_at.off, 256 },
					      { f->go_tab_at.off, f->go_tab_at.len },
					      { f->go_info_at.off, 64 },
					      { f->dynamic.off, f->dynamic.len },
					      { (uint64_t)n - 4096, 4096 } };
		elf_file_put(f);
		before = memory_kb();
		for (int i = 0; i < ROUNDS / 2; i++) {
			uint64_t at[HITS];

			for (int k = 0; k < HITS; k++) {
				const uint64_t *h = hurts[rand_r(&seed) % ARRAY_SIZE(hurts)];
				uint8_t byte = (uint8_t)rand_r(&seed);

				at[k] = h[0] + (uint64_t)rand_r(&seed) % CC_MAX(h[1], 1);
				cr_assert_eq(pwrite(fd, &byte, 1, (off_t)at[k]), 1);
			}
			open_it(fd, &t);
			for (int k = 0; k < HITS; k++)
				cr_assert_eq(pwrite(fd, &good[at[k]], 1, (off_t)at[k]), 1);
		}
		cr_expect_lt(memory_kb() - before, MORE_MEMORY_KB);
		close(fd);
	}
	cr_expect_gt(t.read, 20);
	cr_expect_gt(t.refused, 20);
	free(good);
}
