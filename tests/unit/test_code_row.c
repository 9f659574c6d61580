/* SPDX-License-Identifier: Apache-2.0 */
/* How to unwind by the code alone, against what files tell: at each place behind a call or a system
 * call of functions that have unwind information. Of C: exceptions need that information, so code
 * with them is never without. */
#include "cfi.h"
#include "code_row.h"
#include "elf_file.h"
#include "x86_step.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct tally {
	unsigned int places, right, wrong;
};

static const struct cfi_rule *rule_of(const struct cfi_row *row, int reg)
{
	for (unsigned int i = 0; i < row->cnt; i++) {
		if (row->rules[i].reg == reg)
			return &row->rules[i];
	}
	return NULL;
}

static bool same_rule(const struct cfi_row *a, const struct cfi_row *b, int reg)
{
	const struct cfi_rule *x = rule_of(a, reg), *y = rule_of(b, reg);

	return x && y ? x->kind == y->kind && x->off == y->off : x == y;
}

static void judge(struct elf_file *f, uint64_t at, bool called, struct tally *t)
{
	const struct cfi_row *told = elf_file_cfi_row(f, at - 1);
	struct cfi_row ours = { 0 }, want;

	if (!told || told->bad || told->cfa.kind != CFI_REG)
		return;
	want = *told;
	t->places++;
	if (!code_row(f, at, called, &ours))
		return;
	if (ours.cfa.from != want.cfa.from) {
		t->places--; /* by another register: they cannot be compared */
		return;
	}
	if (ours.cfa.off == want.cfa.off && same_rule(&ours, &want, CFI_RA) &&
	    same_rule(&ours, &want, CFI_FP))
		t->right++;
	else
		t->wrong++;
}

static void judge_function(struct elf_file *f, const struct fde *d, struct tally *t)
{
	static const uint8_t syscall[] = { 0x0f, 0x05 };

	for (uint64_t at = d->start; at < d->start + d->len;) {
		uint8_t code[X86_INSN_MAX];
		ssize_t n = elf_file_read_at(f, at, code, sizeof(code));
		struct x86_step s = n > 0 ? x86_step(code, (size_t)n) : (struct x86_step){ 0 };
		bool sys = s.len == sizeof(syscall) && !memcmp(code, syscall, sizeof(syscall));

		if (!s.len)
			return;
		at += s.len;
		if ((s.kind == X86_CALL || sys) && at < d->start + d->len)
			judge(f, at, !sys, t);
	}
}

Test(code_row, as_the_file_tells_it, .timeout = 120)
{
	static const char *const paths[] = { "/proc/self/exe",
					     "/usr/lib/x86_64-linux-gnu/libc.so.6",
					     "/usr/lib/x86_64-linux-gnu/libcrypto.so.3" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct tally t = { 0 };
		struct elf_file *f;

		if (access(paths[i], R_OK) ||
		    elf_file_new(open(paths[i], O_RDONLY | O_CLOEXEC), &f))
			continue;
		for (size_t j = 0; j < f->fde_cnt; j += 3)
			judge_function(f, &f->fdes[j], &t);
		elf_file_put(f);
		cr_expect_gt(t.places, 1000, "%s", paths[i]);
		cr_expect_leq(t.wrong * 2000, t.places, "%s: %u of %u wrong", paths[i], t.wrong,
			      t.places);
		if (i) /* a sanitizer ends functions with calls that do not return */
			cr_expect_geq(t.right * 3, t.places * 2, "%s: %u of %u right", paths[i],
				      t.right, t.places);
	}
}

static void expect_step(const char *bytes, size_t len, int kind, int by)
{
	struct x86_step s = x86_step((const uint8_t *)bytes, len);

	cr_expect_eq(s.kind, kind, "%02x %02x: %d", (uint8_t)bytes[0], (uint8_t)bytes[1], s.kind);
	cr_expect_eq(s.by, by);
	cr_expect_eq(s.len, kind == X86_UNKNOWN ? 0 : len);
	for (size_t cut = 0; cut < len; cut++)
		cr_expect_eq(x86_step((const uint8_t *)bytes, cut).len, 0);
}
#define STEP(bytes, kind, by) expect_step(bytes, sizeof(bytes) - 1, kind, by)

Test(code_row, steps)
{
	STEP("\x55", X86_MOVE, -8);
	STEP("\x41\x54", X86_MOVE, -8);
	STEP("\x5d", X86_POP, 0);
	STEP("\x48\x83\xec\x18", X86_MOVE, -24);
	STEP("\x48\x81\xc4\x00\x01\x00\x00", X86_MOVE, 256);
	STEP("\x48\x8d\x64\x24\x10", X86_MOVE, 16);
	STEP("\x48\x8d\x65\xd8", X86_TO_FP, -40);
	STEP("\x48\x89\xe5", X86_SET_FP, 0);
	STEP("\x48\x89\xec", X86_TO_FP, 0);
	STEP("\xc9", X86_LEAVE, 0);
	STEP("\xc3", X86_RETURN, 0);
	STEP("\xe8\x01\x00\x00\x00", X86_CALL, 0);
	STEP("\xff\x15\x00\x00\x00\x00", X86_CALL, 0);
	STEP("\x41\xff\x54\x24\x08", X86_CALL, 0);
	STEP("\xff\xe0", X86_STOP, 0);
	STEP("\xf2\xff\x25\x00\x00\x00\x00", X86_RETURN, 0);
	STEP("\x0f\x0b", X86_STOP, 0);
	STEP("\x0f\x84\x10\x00\x00\x00", X86_BRANCH, 0);
	STEP("\xeb\xfe", X86_JUMP, 0);
	STEP("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", X86_PLAIN, 0);
	STEP("\x64\x48\x8b\x04\x25\x28\x00\x00\x00", X86_PLAIN, 0);
	STEP("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", X86_PLAIN, 0);
	STEP("\xc5\xf9\x6f\x06", X86_PLAIN, 0);
	STEP("\xc4\xe3\x7d\x39\xc8\x01", X86_PLAIN, 0);
	STEP("\x48\x83\xfc\x10", X86_PLAIN, 0); /* compares with the stack pointer */
	cr_expect_eq(x86_step((const uint8_t *)"\x48\x83\xe4\xf0", 4).kind, X86_UNKNOWN);
	cr_expect_eq(x86_step((const uint8_t *)"\x48\x8b\x21", 3).kind, X86_UNKNOWN);
	cr_expect_eq(x86_step((const uint8_t *)"\x62\xf1\x7f\xc9\x6f\x01", 6).len, 0);
}
