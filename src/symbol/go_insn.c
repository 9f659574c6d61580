/* SPDX-License-Identifier: Apache-2.0 */
#include "go_insn.h"

/* How the operands of an opcode are told. */
enum form {
	FORM_NONE,  /* not known */
	FORM_PLAIN, /* nothing but immediate bytes */
	FORM_STORE, /* ModRM; writes r/m */
	FORM_LOAD,  /* ModRM; writes reg */
	FORM_TEST,  /* ModRM; writes flags alone */
	FORM_SWAP,  /* ModRM; writes r/m and a register */
	FORM_XMM    /* ModRM; writes a vector register or memory */
};

struct opcode {
	uint8_t form, imm; /* bytes of the immediate */
	bool group1;       /* reg says what it does: 7 compares, all others write */
};

static const struct opcode one_byte[256] = {
	[0x01] = { FORM_STORE, 0 },                                   /* add */
	[0x03] = { FORM_LOAD, 0 },        [0x29] = { FORM_STORE, 0 }, /* sub */
	[0x2b] = { FORM_LOAD, 0 },        [0x31] = { FORM_STORE, 0 }, /* xor */
	[0x33] = { FORM_LOAD, 0 },        [0x38] = { FORM_TEST, 0 },  /* cmp */
	[0x39] = { FORM_TEST, 0 },        [0x3a] = { FORM_TEST, 0 },
	[0x3b] = { FORM_TEST, 0 },        [0x3c] = { FORM_PLAIN, 1 },
	[0x3d] = { FORM_PLAIN, 4 },       [0x80] = { FORM_STORE, 1, true }, /* add, and, cmp ... */
	[0x81] = { FORM_STORE, 4, true }, [0x83] = { FORM_STORE, 1, true },
	[0x84] = { FORM_TEST, 0 },                                    /* test */
	[0x85] = { FORM_TEST, 0 },        [0x86] = { FORM_SWAP, 0 },  /* xchg */
	[0x87] = { FORM_SWAP, 0 },        [0x88] = { FORM_STORE, 0 }, /* mov */
	[0x89] = { FORM_STORE, 0 },       [0x8a] = { FORM_LOAD, 0 },
	[0x8b] = { FORM_LOAD, 0 },        [0x8d] = { FORM_LOAD, 0 }, /* lea */
	[0x90] = { FORM_PLAIN, 0 },                                  /* nop */
	[0xc6] = { FORM_STORE, 1 },       [0xc7] = { FORM_STORE, 4 },
	[0xff] = { FORM_STORE, 0 }, /* inc, dec; call, jmp */
};

static const struct opcode two_bytes[256] = {
	[0x10] = { FORM_XMM, 0 },                              /* movups */
	[0x11] = { FORM_XMM, 0 },   [0x1f] = { FORM_TEST, 0 }, /* nop with an operand */
	[0x28] = { FORM_XMM, 0 },   [0x29] = { FORM_XMM, 0 },
	[0x57] = { FORM_XMM, 0 }, /* xorps */
	[0x6f] = { FORM_XMM, 0 },   [0x7f] = { FORM_XMM, 0 },
	[0x92] = { FORM_STORE, 0 }, [0x93] = { FORM_STORE, 0 }, /* setb, setae, sete ... */
	[0x94] = { FORM_STORE, 0 }, [0x95] = { FORM_STORE, 0 },
	[0x96] = { FORM_STORE, 0 }, [0x97] = { FORM_STORE, 0 },
	[0xaf] = { FORM_LOAD, 0 },                             /* imul */
	[0xb0] = { FORM_SWAP, 0 },  [0xb1] = { FORM_SWAP, 0 }, /* cmpxchg */
	[0xb6] = { FORM_LOAD, 0 },                             /* movzx */
	[0xba] = { FORM_STORE, 1 },                            /* bt, and such as write */
	[0xb7] = { FORM_LOAD, 0 },  [0xef] = { FORM_XMM, 0 },  /* pxor */
};

enum { REG_SP = 4, REG_BP = 5, REG_G = 14 };
#define STACK_LIMIT 16 /* g.stackguard0 is at 16 of g, ever since */

/* Registers that hold arguments, or g: all but DX, SP, BP, R12, R13, R15. */
static bool holds_argument(unsigned int reg)
{
	return !(1u << reg &
		 (1u << 2 | 1u << REG_SP | 1u << REG_BP | 1u << 12 | 1u << 13 | 1u << 15));
}

/* Bytes of ModRM, SIB and displacement; 0: cut off. */
static size_t operand_len(const uint8_t *p, size_t len)
{
	uint8_t mod, rm;
	size_t n = 1;

	if (len < 1)
		return 0;
	mod = p[0] >> 6;
	rm = p[0] & 7;
	if (mod == 3)
		return 1;
	if (rm == 4) {
		if (len < 2)
			return 0;
		n = 2;
		if (mod == 0 && (p[1] & 7) == 5)
			n += 4;
	} else if (mod == 0 && rm == 5) {
		n += 4;
	}
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static struct go_op branch_op(size_t len, size_t have, enum go_insn probe)
{
	struct go_op op = { .len = (uint8_t)len, .probe = (uint8_t)probe, .keeps_args = true };

	return len <= have ? op : (struct go_op){ 0 };
}

/* jmp, ret */
static struct go_op leave_op(size_t len, size_t have)
{
	struct go_op op = branch_op(len, have, GO_INSN_STEP);

	op.leaves = true;
	return op;
}

/* Prefixes, REX and opcode of one instruction. */
struct head {
	uint8_t prefix, rex, opcode;
	bool two; /* an 0f stood before the opcode */
	size_t len;
};

static bool take_head(const uint8_t *code, size_t len, struct head *ret)
{
	size_t at = 0;

	*ret = (struct head){ 0 };
	while (at < len && at < 4 &&
	       (code[at] == 0x66 || code[at] == 0x64 || code[at] == 0xf0 || code[at] == 0xf2 ||
		code[at] == 0xf3))
		ret->prefix = code[at++];
	if (at < len && (code[at] & 0xf0) == 0x40)
		ret->rex = code[at++];
	if (at < len && code[at] == 0x0f) {
		ret->two = true;
		at++;
	}
	if (at >= len)
		return false;
	ret->opcode = code[at++];
	ret->len = at;
	return true;
}

/* Reads the operands of @row at @p and says what they change. Returns their length, 0: cut off. */
static size_t take_operands(const struct head *h, const struct opcode *row, const uint8_t *p,
			    size_t len, struct go_op *op)
{
	size_t n = operand_len(p, len);

	if (!n || n > len)
		return 0;
	unsigned int reg = (p[0] >> 3 & 7) | (h->rex & 4u) << 1, rm = (p[0] & 7) | (h->rex & 1u)
											   << 3;
	bool compares = row == &two_bytes[0xba] ? (reg & 7) == 4 : row->group1 && (reg & 7) == 7;
	bool writes_rm = row->form == FORM_STORE && !compares && p[0] >> 6 == 3;
	bool writes_reg = row->form == FORM_LOAD;

	op->keeps_args = row->form != FORM_SWAP && !(writes_rm && holds_argument(rm)) &&
			 !(writes_reg && holds_argument(reg));
	op->leaves = row == &one_byte[0xff] && (reg & 7) >= 2;
	op->stack_moves = (writes_rm && rm == REG_SP) || (writes_reg && reg == REG_SP);
	op->checks_stack = row == &one_byte[0x3b] && rm == REG_G && p[n - 1] == STACK_LIMIT;
	return n;
}

/* mov of a constant to a register */
static struct go_op constant_op(const struct head *h, size_t have)
{
	unsigned int reg = (h->opcode & 7u) | (h->rex & 1u) << 3;
	size_t imm = h->rex & 8 ? 8 : h->prefix == 0x66 ? 2 : 4;
	struct go_op op = { .len = (uint8_t)(h->len + imm),
			    .probe = GO_INSN_STEP,
			    .keeps_args = !holds_argument(reg),
			    .stack_moves = reg == REG_SP };

	return op.len <= have ? op : (struct go_op){ 0 };
}

struct go_op go_insn_x86(const uint8_t *code, size_t len)
{
	struct go_op op = { .probe = GO_INSN_STEP, .keeps_args = true };
	const struct opcode *row;
	struct head h;
	size_t n = 0;

	if (!take_head(code, len, &h))
		return (struct go_op){ 0 };
	if (!h.prefix && !h.two && (h.opcode & 0xf8) == 0x50) {
		op.len = (uint8_t)h.len;
		op.probe = GO_INSN_PUSH;
		op.stack_moves = true;
		return op;
	}
	if (!h.prefix && !h.rex && (h.opcode & 0xf0) == (h.two ? 0x80 : 0x70))
		return branch_op(h.len + (h.two ? 4 : 1), len, GO_INSN_JCC);
	if (!h.prefix && !h.rex && !h.two && h.opcode == 0xe8)
		return branch_op(h.len + 4, len, GO_INSN_CALL);
	if (!h.prefix && !h.rex && !h.two && (h.opcode == 0xe9 || h.opcode == 0xeb))
		return leave_op(h.len + (h.opcode == 0xe9 ? 4 : 1), len);
	if (!h.prefix && !h.rex && !h.two && h.opcode == 0xc3)
		return leave_op(h.len, len);
	if (!h.two && !h.rex && h.opcode == 0x90 && (!h.prefix || h.prefix == 0x66))
		op.probe = GO_INSN_NOP;
	if (!h.two && h.opcode == 0x90 && h.rex & 1) /* xchg %r8,%rax */
		return (struct go_op){ 0 };
	if (!h.two && (h.opcode & 0xf8) == 0xb8)
		return constant_op(&h, len);
	row = h.two ? &two_bytes[h.opcode] : &one_byte[h.opcode];
	if (row->form == FORM_NONE)
		return (struct go_op){ 0 };
	if (row->form != FORM_PLAIN) {
		n = take_operands(&h, row, code + h.len, len - h.len, &op);
		if (!n)
			return (struct go_op){ 0 };
	}
	n += h.len + (h.prefix == 0x66 && row->imm == 4 ? 2u : row->imm);
	op.len = n <= len ? (uint8_t)n : 0;
	return op.len ? op : (struct go_op){ 0 };
}
