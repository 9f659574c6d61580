/* SPDX-License-Identifier: Apache-2.0 */
#include "x86_step.h"

#include <string.h>

enum { SP = 4, FP = 5 };

struct insn {
	const uint8_t *p; /* the next byte */
	size_t left;
	bool wide, narrow;    /* REX.W; 66 */
	uint8_t rex, op, map; /* map 0: one byte; 1: 0f; 2: 0f 38; 3: 0f 3a */
	bool vex, cut;        /* cut: longer than what is there */
	uint8_t mod, reg, rm; /* of ModRM, with the bits of REX */
	uint8_t base;         /* of the address: a register, or 0xff */
	int32_t disp;
};

static uint8_t byte(struct insn *i)
{
	i->cut |= !i->left;
	if (i->cut)
		return 0;
	i->left--;
	return *i->p++;
}

static int32_t number(struct insn *i, size_t bytes)
{
	int8_t one;
	int16_t two;
	int32_t four = 0;

	i->cut |= i->left < bytes;
	if (i->cut)
		return 0;
	if (bytes == 1) {
		memcpy(&one, i->p, 1);
		four = one;
	} else if (bytes == 2) {
		memcpy(&two, i->p, 2);
		four = two;
	} else {
		memcpy(&four, i->p, 4); /* of eight the lower half: nobody asks for more */
	}
	i->p += bytes;
	i->left -= bytes;
	return four;
}

/* C4, C5. Those of AVX-512 are not known. */
static void take_vex(struct insn *i, uint8_t first)
{
	uint8_t b = first == 0xc5 ? 1 : byte(i);

	byte(i);
	i->vex = true;
	i->map = b & 0x1f;
	i->op = byte(i);
}

static void take_opcode(struct insn *i)
{
	uint8_t b = byte(i);

	while (!i->cut && (b == 0x66 || b == 0xf2 || b == 0xf3 || b == 0xf0 || b == 0x2e ||
			   b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65)) {
		i->narrow |= b == 0x66;
		b = byte(i);
	}
	if ((b & 0xf0) == 0x40) {
		i->rex = b;
		i->wide = b & 8;
		b = byte(i);
	}
	if (b == 0xc4 || b == 0xc5) {
		take_vex(i, b);
		return;
	}
	if (b == 0x0f) {
		i->map = 1;
		b = byte(i);
		if (b == 0x38 || b == 0x3a) {
			i->map = b == 0x38 ? 2 : 3;
			b = byte(i);
		}
	}
	i->op = b;
}

static void take_modrm(struct insn *i)
{
	uint8_t b = byte(i), low = b & 7;

	i->mod = b >> 6;
	i->reg = (uint8_t)((b >> 3 & 7) | (i->rex & 4) << 1);
	i->rm = (uint8_t)(low | (i->rex & 1) << 3);
	i->base = 0xff;
	if (i->mod == 3)
		return;
	i->base = i->rm;
	if (low == 4) {
		uint8_t sib = byte(i);

		/* with an index the address is no distance from the base */
		i->base = (sib >> 3 & 7) == 4 && !(i->rex & 2)
				  ? (uint8_t)((sib & 7) | (i->rex & 1) << 3)
				  : 0xff;
		low = sib & 7;
	}
	if (i->mod == 0 && low == 5) {
		i->base = 0xff;
		number(i, 4);
	} else if (i->mod) {
		i->disp = number(i, i->mod == 1 ? 1 : 4);
	}
}

static bool one_byte_has_modrm(uint8_t op)
{
	if (op < 0x40)
		return (op & 7) < 4;
	return op == 0x62 || op == 0x63 || op == 0x69 || op == 0x6b || (op >= 0x80 && op <= 0x8f) ||
	       op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 || (op >= 0xd0 && op <= 0xd3) ||
	       (op >= 0xd8 && op <= 0xdf) || op == 0xf6 || op == 0xf7 || op == 0xfe || op == 0xff;
}

static bool has_modrm(const struct insn *i)
{
	if (i->map >= 2)
		return true;
	if (!i->map)
		return one_byte_has_modrm(i->op);
	if (i->vex)
		return i->op != 0x77;
	return !((i->op >= 0x05 && i->op <= 0x0b && i->op != 0x0a) ||
		 (i->op >= 0x30 && i->op <= 0x37) || i->op == 0x77 ||
		 (i->op >= 0x80 && i->op <= 0x8f) || (i->op >= 0xa0 && i->op <= 0xa2) ||
		 (i->op >= 0xa8 && i->op <= 0xaa) || (i->op >= 0xc8 && i->op <= 0xcf));
}

static size_t one_byte_immediate(const struct insn *i)
{
	size_t z = i->narrow ? 2 : 4;
	uint8_t op = i->op;

	if (op < 0x40)
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? z : 0;
	if (op == 0x68 || op == 0x69 || op == 0x81 || op == 0xa9 || op == 0xc7)
		return z;
	if (op == 0xe8 || op == 0xe9)
		return 4;
	if (op == 0x6a || op == 0x6b || (op >= 0x70 && op <= 0x80) || op == 0x83 || op == 0xa8 ||
	    (op >= 0xb0 && op <= 0xb7) || op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xcd ||
	    (op >= 0xe0 && op <= 0xe7) || op == 0xeb)
		return 1;
	if (op >= 0xb8 && op <= 0xbf)
		return i->wide ? 8 : z;
	if (op >= 0xa0 && op <= 0xa3)
		return 8;
	if (op == 0xc2 || op == 0xca)
		return 2;
	if (op == 0xf6)
		return (i->reg & 7) < 2 ? 1 : 0;
	if (op == 0xf7)
		return (i->reg & 7) < 2 ? z : 0;
	return 0;
}

static size_t immediate(const struct insn *i)
{
	uint8_t op = i->op;

	if (!i->map)
		return one_byte_immediate(i);
	if (i->map == 3)
		return 1;
	if (i->map == 2)
		return 0;
	if (op >= 0x80 && op <= 0x8f && !i->vex)
		return 4;
	return (op >= 0x70 && op <= 0x73) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
	       (op >= 0xc4 && op <= 0xc6);
}

/* Not in 64-bit code, or never in a program's. */
static bool is_invalid(const struct insn *i)
{
	static const uint8_t bad[] = { 0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27,
				       0x2f, 0x37, 0x3f, 0x60, 0x61, 0x62, 0x82, 0x9a,
				       0xc8, 0xce, 0xd4, 0xd5, 0xd6, 0xea };

	return i->cut || i->map > 3 || (!i->map && memchr(bad, i->op, sizeof(bad)));
}

/* Instructions that have a register as what they write: is it the stack pointer? */
static bool writes_sp(const struct insn *i)
{
	uint8_t op = i->op, low = op & 7;

	if (i->vex || i->map)
		return i->map == 1 && !i->vex && op >= 0x40 && op <= 0x4f && i->reg == SP;
	if (op < 0x40 && op < 0x38 && low < 4)
		return low < 2 ? i->mod == 3 && i->rm == SP : i->reg == SP;
	if (op == 0x89 || op == 0x81 || op == 0x83 || op == 0xc7 || op == 0x87 || op == 0xf7 ||
	    op == 0xc1 || op == 0xd1 || op == 0xd3)
		return i->mod == 3 && i->rm == SP;
	return (op == 0x8b || op == 0x8d || op == 0x63 || op == 0x69 || op == 0x6b) && i->reg == SP;
}

/* What those are of which a compiler makes frames. */
static struct x86_step sets_sp(const struct insn *i, int32_t imm)
{
	struct x86_step s = { .kind = X86_UNKNOWN };
	uint8_t what = i->reg & 7;

	if ((i->op == 0x81 || i->op == 0x83) && i->wide && (what == 0 || what == 5)) {
		s.kind = X86_MOVE;
		s.by = what ? (int32_t)(0u - (uint32_t)imm) : imm;
	} else if ((i->op == 0x81 || i->op == 0x83) && what == 7) {
		s.kind = X86_PLAIN; /* compares */
	} else if (i->op == 0x8d && i->wide && (i->base == SP || i->base == FP)) {
		s.kind = i->base == SP ? X86_MOVE : X86_TO_FP;
		s.by = i->disp;
	} else if (i->wide && ((i->op == 0x89 && i->reg == FP) ||
			       (i->op == 0x8b && i->mod == 3 && i->rm == FP))) {
		s.kind = X86_TO_FP;
	}
	return s;
}

static struct x86_step of_ff(const struct insn *i)
{
	struct x86_step s = { .kind = X86_PLAIN };

	switch (i->reg & 7) {
	case 2:
		s.kind = X86_CALL;
		break;
	case 6:
		s.kind = X86_MOVE;
		s.by = -8;
		break;
	case 4: /* through a table of the linker: to a function, which this one ends with */
		s.kind = i->mod == 0 && (i->rm & 7) == 5 ? X86_RETURN : X86_STOP;
		break;
	case 3:
	case 5:
	case 7:
		s.kind = X86_STOP;
		break;
	}
	return s;
}

static struct x86_step of_one_byte(const struct insn *i, int32_t imm)
{
	struct x86_step s = { .kind = X86_PLAIN, .to = imm, .has_to = true };
	uint8_t op = i->op;

	if (op == 0xff)
		return of_ff(i);
	if ((op >= 0x50 && op <= 0x57) || op == 0x68 || op == 0x6a || op == 0x9c) {
		s.kind = X86_MOVE;
		s.by = i->narrow ? -2 : -8;
	} else if (op >= 0x58 && op <= 0x5f) {
		s.reg = (uint8_t)((op & 7) | (i->rex & 1) << 3);
		s.kind = s.reg == SP || i->narrow ? X86_UNKNOWN : X86_POP;
	} else if (op == 0x8f || op == 0x9d) {
		s.kind = X86_MOVE;
		s.by = 8;
	} else if (op == 0xc9) {
		s.kind = X86_LEAVE;
	} else if (op == 0xc3 || op == 0xc2) {
		s.kind = X86_RETURN;
	} else if (op == 0xe8) {
		s.kind = X86_CALL;
	} else if (op == 0xe9 || op == 0xeb) {
		s.kind = X86_JUMP;
	} else if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3)) {
		s.kind = X86_BRANCH;
	} else if (op == 0xcc || op == 0xf4 || op == 0xca || op == 0xcb || op == 0xcf ||
		   (op == 0x94 && !(i->rex & 1))) {
		s.kind = X86_STOP; /* the last one exchanges with the stack pointer */
	}
	return s;
}

struct x86_step x86_step(const uint8_t *code, size_t len)
{
	struct insn i = { .p = code, .left = CC_MIN(len, X86_INSN_MAX), .base = 0xff };
	struct x86_step s = { .kind = X86_UNKNOWN };
	size_t bytes;
	int32_t imm;

	take_opcode(&i);
	if (is_invalid(&i))
		return s;
	if (has_modrm(&i))
		take_modrm(&i);
	bytes = immediate(&i);
	imm = bytes ? number(&i, bytes) : 0;
	if (i.cut)
		return s;
	if (!i.map && i.wide && i.mod == 3 &&
	    ((i.op == 0x89 && i.rm == FP && i.reg == SP) ||
	     (i.op == 0x8b && i.reg == FP && i.rm == SP)))
		s.kind = X86_SET_FP;
	else if (writes_sp(&i))
		s = sets_sp(&i, imm);
	else if (!i.map)
		s = of_one_byte(&i, imm);
	else
		s.kind = X86_PLAIN;
	if (i.map == 1 && !i.vex && i.op >= 0x80 && i.op <= 0x8f) {
		s.kind = X86_BRANCH;
		s.to = imm;
	} else if (i.map == 1 && !i.vex && (i.op == 0x0b || i.op == 0xb9 || i.op == 0xff)) {
		s.kind = X86_STOP; /* ud2 */
	}
	s.len = (uint8_t)(i.p - code);
	return s;
}
