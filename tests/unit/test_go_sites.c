/* SPDX-License-Identifier: Apache-2.0 */
/* Where a probe sits, by the bytes that functions of the Go runtime begin with: as the compilers of
 * 1.18 to 1.27 write them. */
#include <criterion/criterion.h>

#include "go_insn.h"
#include "go_sites.h"

struct begin {
	const char *what;
	uint8_t code[40];
	uint8_t len, delta, insn;
	bool repeats, framed;
};

static void expect(const struct begin *b, const struct go_site *s)
{
	cr_expect_eq(s->delta, b->delta, "%s: at %u", b->what, s->delta);
	cr_expect_eq(s->insn, b->insn, "%s: %s", b->what, go_insn_name(s->insn));
	cr_expect_eq(s->repeats, b->repeats, "%s", b->what);
	cr_expect_eq(s->framed, b->framed, "%s", b->what);
	cr_expect(s->args, "%s", b->what);
}

#define CHECK 0x49, 0x3b, 0x66, 0x10 /* cmp 0x10(%r14),%rsp */
#define CHECK_FAR \
	0x4c, 0x8d, 0x64, 0x24, 0x80, 0x4d, 0x3b, 0x66, 0x10 /* lea -128(%rsp),%r12; cmp */
#define JBE 0x76, 0x70
#define JBE_FAR 0x0f, 0x86, 0x10, 0x02, 0, 0
#define PUSH 0x55, 0x48, 0x89, 0xe5 /* push %rbp; mov %rsp,%rbp */
#define SUB 0x48, 0x83, 0xec, 0x18  /* sub $0x18,%rsp */
#define SAVE_BP 0x48, 0x89, 0x6c, 0x24, 0x10, 0x48, 0x8d, 0x6c, 0x24, 0x10
#define NOP 0x90

Test(go_sites, x86_begins)
{
	static const struct begin begins[] = {
		{ "from 1.21", { CHECK, JBE, PUSH, SUB }, 14, 6, GO_INSN_PUSH, false, false },
		{ "from 1.21, a large frame",
		  { CHECK_FAR, JBE_FAR, PUSH },
		  19,
		  15,
		  GO_INSN_PUSH,
		  false,
		  false },
		{ "to 1.20", { CHECK, JBE, SUB, SAVE_BP }, 20, 4, GO_INSN_JCC, true, false },
		{ "to 1.20, a large frame",
		  { CHECK_FAR, JBE_FAR, SUB },
		  19,
		  9,
		  GO_INSN_JCC,
		  true,
		  false },
		{ "from 1.21, no check", { PUSH, SUB }, 8, 0, GO_INSN_PUSH, false, false },
		{ "to 1.20, no check, a nop",
		  { SUB, SAVE_BP, NOP },
		  15,
		  14,
		  GO_INSN_NOP,
		  false,
		  true },
		{ "no check and nothing to sit on",
		  { SUB, SAVE_BP, 0xc3 },
		  15,
		  0,
		  GO_INSN_STEP,
		  false,
		  false },
		{ "what follows is elsewhere",
		  { 0xeb, 0x10, NOP },
		  3,
		  0,
		  GO_INSN_STEP,
		  false,
		  false },
		{ "what follows is another's", { 0xc3, NOP }, 2, 0, GO_INSN_STEP, false, false },
		{ "calls by a register first",
		  { 0xff, 0xd1, NOP },
		  3,
		  0,
		  GO_INSN_STEP,
		  false,
		  false },
		{ "an argument is gone first",
		  { 0x48, 0x89, 0xc8, NOP },
		  4,
		  0,
		  GO_INSN_STEP,
		  false,
		  false },
		{ "g is gone first", { 0x4d, 0x89, 0xc6, NOP }, 4, 0, GO_INSN_STEP, false, false },
		{ "DX holds no argument",
		  { 0x48, 0x89, 0xca, NOP },
		  4,
		  3,
		  GO_INSN_NOP,
		  false,
		  false },
		{ "not known", { 0xf4, NOP }, 2, 0, GO_INSN_STEP, false, false },
		{ "cut off", { 0x48, 0x83 }, 2, 0, GO_INSN_STEP, false, false },
		{ "empty", { 0 }, 0, 0, GO_INSN_STEP, false, false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		struct go_site s;
		go_site_x86(begins[i].code, begins[i].len, &s);
		expect(&begins[i], &s);
	}
}

#define LDR_LIMIT 0x90, 0x0b, 0x40, 0xf9 /* ldr 16(x28),x16 */
#define CMP_SP 0xff, 0x63, 0x30, 0xeb    /* cmp sp,x16 */
#define SUB_X17 0xf1, 0x83, 0x02, 0xd1   /* sub $160,sp,x17 */
#define CMP_X17 0x3f, 0x02, 0x10, 0xeb   /* cmp x17,x16 */
#define BLS 0x09, 0x02, 0x00, 0x54
#define STR_LR 0xfe, 0x0f, 0x1e, 0xf8 /* str x30,-32(sp)! */
#define BLO 0x03, 0x02, 0x00, 0x54

Test(go_sites, arm64_begins)
{
	static const struct begin begins[] = {
		{ "small", { LDR_LIMIT, CMP_SP, BLS, STR_LR }, 16, 8, GO_INSN_JCC, true, false },
		{ "a large frame",
		  { LDR_LIMIT, SUB_X17, CMP_X17, BLS },
		  16,
		  12,
		  GO_INSN_JCC,
		  true,
		  false },
		{ "no check", { STR_LR, CMP_SP, BLS }, 12, 0, GO_INSN_STEP, false, false },
		{ "another branch",
		  { LDR_LIMIT, CMP_SP, BLO, STR_LR },
		  16,
		  0,
		  GO_INSN_STEP,
		  false,
		  false },
		{ "cut off", { LDR_LIMIT, CMP_SP, 0x09, 0x02 }, 10, 0, GO_INSN_STEP, false, false },
		{ "empty", { 0 }, 0, 0, GO_INSN_STEP, false, false },
	};
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		struct go_site s;
		go_site_arm64(begins[i].code, begins[i].len, &s);
		expect(&begins[i], &s);
	}
}

/* Each instruction's length, how a probe on it is run, whether arguments stay. */
Test(go_sites, x86_instructions)
{
	static const struct {
		const char *what;
		uint8_t code[12];
		uint8_t have, len, probe;
		bool keeps_args;
	} ops[] = {
		{ "push %rbp", { 0x55 }, 1, 1, GO_INSN_PUSH, true },
		{ "push %r15", { 0x41, 0x57 }, 2, 2, GO_INSN_PUSH, true },
		{ "nop", { 0x90 }, 1, 1, GO_INSN_NOP, true },
		{ "xchg %ax,%ax", { 0x66, 0x90 }, 2, 2, GO_INSN_NOP, true },
		{ "xchg %rax,%r8 is no nop", { 0x49, 0x90 }, 2, 0, 0, false },
		{ "nopl 0(%rax,%rax)", { 0x0f, 0x1f, 0x44, 0, 0 }, 5, 5, GO_INSN_STEP, true },
		{ "mov $1,%ecx", { 0xb9, 1, 0, 0, 0 }, 5, 5, GO_INSN_STEP, false },
		{ "mov $1,%edx", { 0xba, 1, 0, 0, 0 }, 5, 5, GO_INSN_STEP, true },
		{ "mov $1,%r12d", { 0x41, 0xbc, 1, 0, 0, 0 }, 6, 6, GO_INSN_STEP, true },
		{ "mov $imm64,%rax",
		  { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 },
		  10,
		  10,
		  GO_INSN_STEP,
		  false },
		{ "mov $imm64,%rax, cut off", { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7 }, 9, 0, 0, false },
		{ "mov $1,%cx", { 0x66, 0xb9, 1, 0 }, 4, 4, GO_INSN_STEP, false },
		{ "jbe near", { 0x76, 0x10 }, 2, 2, GO_INSN_JCC, true },
		{ "jbe far", { 0x0f, 0x86, 1, 0, 0, 0 }, 6, 6, GO_INSN_JCC, true },
		{ "jmp near", { 0xeb, 0x10 }, 2, 2, GO_INSN_STEP, true },
		{ "jmp far", { 0xe9, 1, 2, 3, 4 }, 5, 5, GO_INSN_STEP, true },
		{ "jmp far, cut off", { 0xe9, 1, 2, 3 }, 4, 0, 0, false },
		{ "ret", { 0xc3 }, 1, 1, GO_INSN_STEP, true },
		{ "sete %dl", { 0x0f, 0x94, 0xc2 }, 3, 3, GO_INSN_STEP, true },
		{ "sete %al", { 0x0f, 0x94, 0xc0 }, 3, 3, GO_INSN_STEP, false },
		{ "imul %rdx,%rbx", { 0x48, 0x0f, 0xaf, 0xda }, 4, 4, GO_INSN_STEP, false },
		{ "xchg %r8b,(%rdx)", { 0x44, 0x86, 0x02 }, 3, 3, GO_INSN_STEP, false },
		{ "incq (%rdx)", { 0x48, 0xff, 0x02 }, 3, 3, GO_INSN_STEP, true },
		{ "inc %rsi", { 0x48, 0xff, 0xc6 }, 3, 3, GO_INSN_STEP, false },
		{ "lock cmpxchg %r9d,0x178(%r8)",
		  { 0xf0, 0x45, 0x0f, 0xb1, 0x88, 0x78, 0x01, 0, 0 },
		  9,
		  9,
		  GO_INSN_STEP,
		  false },
		{ "call", { 0xe8, 1, 2, 3, 4 }, 5, 5, GO_INSN_CALL, true },
		{ "call, cut off", { 0xe8, 1, 2, 3 }, 4, 0, 0, false },
		{ "cmp 16(%r14),%rsp", { 0x49, 0x3b, 0x66, 0x10 }, 4, 4, GO_INSN_STEP, true },
		{ "mov %rbx,24(%rsp)", { 0x48, 0x89, 0x5c, 0x24, 0x18 }, 5, 5, GO_INSN_STEP, true },
		{ "mov 8(%rax),%rdx", { 0x48, 0x8b, 0x50, 0x08 }, 4, 4, GO_INSN_STEP, true },
		{ "mov 8(%rax),%rcx", { 0x48, 0x8b, 0x48, 0x08 }, 4, 4, GO_INSN_STEP, false },
		{ "lea 0x100(%rip),%r12",
		  { 0x4c, 0x8d, 0x25, 0, 1, 0, 0 },
		  7,
		  7,
		  GO_INSN_STEP,
		  true },
		{ "movups %xmm15,8(%rsp)",
		  { 0x44, 0x0f, 0x11, 0x7c, 0x24, 8 },
		  6,
		  6,
		  GO_INSN_STEP,
		  true },
		{ "test %eax,%eax", { 0x85, 0xc0 }, 2, 2, GO_INSN_STEP, true },
		{ "xor %eax,%eax", { 0x31, 0xc0 }, 2, 2, GO_INSN_STEP, false },
		{ "cmpw $imm16", { 0x66, 0x81, 0x38, 1, 2 }, 5, 5, GO_INSN_STEP, true },
	};
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct go_op op = go_insn_x86(ops[i].code, ops[i].have);
		cr_expect_eq(op.len, ops[i].len, "%s: %u bytes", ops[i].what, op.len);
		if (!ops[i].len)
			continue;
		cr_expect_eq(op.probe, ops[i].probe, "%s: %s", ops[i].what, go_insn_name(op.probe));
		cr_expect_eq(op.keeps_args, ops[i].keeps_args, "%s", ops[i].what);
	}
}

/* As goready() calls ready() since 1.21: the nop keeps the call within 32 bytes. */
Test(go_sites, x86_nop_before_a_call)
{
	static const uint8_t code[] = { CHECK, 0x76, 0x25, PUSH, SUB,
					0x48,  0x8b, 0x5a, 0x10, /* mov 0x10(%rdx),%rbx */
					0x48,  0x8b, 0x42, 0x08, 0xb9,
					1,     0,    0,    0, /* mov 8(%rdx),%rax; mov $1,%ecx */
					0x0f,  0x1f, 0x44, 0,    0, /* nop */
					0xe8,  0,    0,    0,    0 };
	/* mov $0x441f0f,%ecx; the same bytes, within a constant */
	static const uint8_t within[] = { 0x48, 0xc7, 0xc1, 0x0f, 0x1f, 0x44, 0, 0, 0xe8 };
	/* vzeroupper, which is not known */
	static const uint8_t unknown[] = { 0xc5, 0xf8, 0x77, 0x0f, 0x1f, 0x44, 0, 0, 0xe8 };

	cr_expect(go_site_nop_x86(code, 32));
	cr_expect_not(go_site_nop_x86(code, 31));
	cr_expect_not(go_site_nop_x86(code, 27));
	cr_expect_not(go_site_nop_x86(code, 0));
	cr_expect(go_site_nop_x86(code + 27, 5), "nothing before it");
	cr_expect_not(go_site_nop_x86(within, 8), "within a constant");
	cr_expect_not(go_site_nop_x86(unknown, 8), "after what is not known");
}
