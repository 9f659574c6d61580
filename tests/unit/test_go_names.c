/* SPDX-License-Identifier: Apache-2.0 */
/* What goroutines are called, and programs for arm64: those of amd64 run in other tests, of these
 * only the file is there. */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "elf_file.h"
#include "go_allgs.h"
#include "go_bin.h"
#include "go_fixture.h"
#include "go_layout_find.h"
#include "go_lines.h"
#include "go_tab.h"
#include "go_wrap.h"

TestSuite(go_names, .timeout = 60);

#define TRIED 12 /* functions of main.main's that are looked at, in either naming */

static struct elf_file *file_of(const char *kind, struct go_tab **ret)
{
	struct elf_file *f;

	cr_assert_eq(elf_file_new(go_fd(kind), &f), 0);
	cr_assert_eq(elf_file_go(f, true, ret), 0, "%s", kind);
	return f;
}

/* Is some function that main.main starts shown as @want? */
static bool starts(const char *kind, const char *want)
{
	char names[2 * TRIED][48];
	const char *ptrs[2 * TRIED];
	struct go_func fns[2 * TRIED];
	struct go_lines lines;
	struct go_tab *tab;
	struct elf_file *f = file_of(kind, &tab);
	bool found = false;

	for (int i = 0; i < 2 * TRIED; i++) {
		snprintf(names[i], sizeof(names[i]),
			 i % 2 ? "main.main.gowrap%d" : "main.main.func%d", i / 2 + 1);
		ptrs[i] = names[i];
	}
	cr_assert_eq(go_tab_by_name(tab, ptrs, 2 * TRIED, fns), 0);
	for (int i = 0; i < 2 * TRIED; i++)
		found |= fns[i].entry && go_lines_at(f, fns[i].entry, 0, "waits", 5, &lines) &&
			 lines.len == strlen(want) && !memcmp(lines.text, want, lines.len);
	elf_file_put(f);
	return found;
}

static const char *const all[] = { "dwarf", "strip", "pie", "extpie", "extstatic", "arm64" };

Test(go_names, a_goroutine_is_called_by_what_go_calls)
{
	go_needed();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		cr_expect(starts(all[i], "main.handler+0x0"), "%s", all[i]);
		cr_expect(starts(all[i], "main.chosen+0x0"), "%s", all[i]);
		cr_expect_not(starts(all[i], "time.Sleep+0x0"), "%s: that is a closure's", all[i]);
	}
}

/* A closure that somebody wrote has a name of its own, whatever it calls. */
Test(go_names, a_closure_keeps_its_name)
{
	char name[GO_NAME_MAX];

	go_needed();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct go_tab *tab;
		struct elf_file *f = file_of(all[i], &tab);
		const char *names[] = { "main.main", "main.handler", "runtime.gopark" };
		struct go_func fns[ARRAY_SIZE(names)];

		cr_assert_eq(go_tab_by_name(tab, names, ARRAY_SIZE(names), fns), 0);
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			cr_assert(fns[k].entry, "%s", names[k]);
			cr_expect_not(go_wrapped(f, tab, &fns[k], name, sizeof(name)), "%s: %s",
				      names[k], name);
		}
		elf_file_put(f);
	}
}

/* The list of all goroutines, by the code that adds to it. */
Test(go_names, the_list_of_goroutines)
{
	/* mov 0x19(%rip),%rsi; mov 0xa(%rip),%rbx; mov 0x13(%rip),%rdi; mov %rdx,-0x1000(%rip):
	 * 0x1018 and the two words behind it, and another one */
	static const uint8_t code[] = { 0x48, 0x8b, 0x35, 0x19, 0,    0,    0,    0x48, 0x8b, 0x1d,
					0x0a, 0,    0,    0,    0x48, 0x8b, 0x3d, 0x13, 0,    0,
					0,    0x48, 0x89, 0x15, 0,    0xf0, 0xff, 0xff };

	cr_expect_eq(go_allgs_x86(code, sizeof(code), 0x1000), 0x1018);
	cr_expect_eq(go_allgs_x86(code, 14, 0x1000), 0, "two words only");
	cr_expect_eq(go_allgs_x86(code, 3, 0x1000), 0);
	go_needed();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct go_bin *b = go_open(all[i]);

		cr_expect((b->allgs != 0) == (b->t.machine == EM_X86_64), "%s", all[i]);
		cr_expect_eq(b->t.allgs, 0, "of no process yet");
		go_bin_free(b);
	}
}

Test(go_names, arm64_is_understood)
{
	struct go_layout l;
	enum go_found by;
	struct cc_err err;
	struct go_bin *b;

	go_needed();
	b = go_open("arm64");
	cr_expect_eq(b->t.machine, EM_AARCH64);
	cr_expect_eq(b->t.layout_by, GO_FOUND_DWARF);
	cr_assert_eq(go_layout_table(NULL, b->t.minor, &l, &by, &err), 0, "%s", err.msg);
	cr_expect_arr_eq(&l, &b->t.layout, sizeof(l), "one table for both");
	cr_expect_gt(b->t.reasons.cnt, 20);
	go_bin_free(b);
}

/* ... at the branch of the stack check, which the kernel emulates; not within functions. */
Test(go_names, arm64_is_probed_at_a_branch)
{
	static const unsigned int sites[] = { GO_FN_GOPARK, GO_FN_READY, GO_FN_RUNQPUT,
					      GO_FN_SEMACQUIRE1, GO_FN_RECV };
	struct go_bin *b;
	uint32_t op;

	go_needed();
	b = go_open("arm64");
	for (size_t i = 0; i < ARRAY_SIZE(sites); i++) {
		const struct go_site *s = &b->t.sites[sites[i]];

		cr_assert(s->off, "%s", go_func_name(sites[i]));
		cr_expect(s->args && s->repeats && s->insn == GO_INSN_JCC, "%s: %s at %u",
			  go_func_name(sites[i]), go_insn_name(s->insn), s->delta);
		cr_assert_eq(pread(b->file->fd, &op, sizeof(op), (off_t)s->off), sizeof(op));
		cr_expect_eq(op & 0xff00001f, 0x54000009, "b.ls");
	}
	/* without a stack check there is no branch: tier full is not to be had */
	cr_expect_eq(b->t.sites[GO_FN_CASGSTATUS].insn, GO_INSN_STEP);
	for (unsigned int i = GO_FN_CNT; i < GO_SITE_CNT; i++)
		cr_expect_eq(b->t.sites[i].off, 0, "%s", go_func_name(i));
	go_bin_free(b);
}
