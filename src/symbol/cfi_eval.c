/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_eval.h"

#include <dwarf.h>

#define EXPR_STACK 16

/* One operation on two numbers. Returns false if it is none, or makes no sense. */
static bool binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	switch (atom) {
	case DW_OP_plus:
		*ret = a + b;
		return true;
	case DW_OP_minus:
		*ret = a - b;
		return true;
	case DW_OP_mul:
		*ret = a * b;
		return true;
	case DW_OP_and:
		*ret = a & b;
		return true;
	case DW_OP_or:
		*ret = a | b;
		return true;
	case DW_OP_xor:
		*ret = a ^ b;
		return true;
	case DW_OP_shl:
		*ret = b < 64 ? a << b : 0;
		return true;
	case DW_OP_shr:
		*ret = b < 64 ? a >> b : 0;
		return true;
	case DW_OP_shra:
		*ret = (uint64_t)((int64_t)a >> CC_MIN(b, 63));
		return true;
	case DW_OP_eq:
		*ret = a == b;
		return true;
	case DW_OP_ne:
		*ret = a != b;
		return true;
	case DW_OP_lt:
		*ret = (int64_t)a < (int64_t)b;
		return true;
	case DW_OP_le:
		*ret = (int64_t)a <= (int64_t)b;
		return true;
	case DW_OP_gt:
		*ret = (int64_t)a > (int64_t)b;
		return true;
	case DW_OP_ge:
		*ret = (int64_t)a >= (int64_t)b;
		return true;
	}
	return false;
}

/* The same where one may be an address that is only known by a register: a distance can be added
 * to it, no more. */
static bool combine(uint8_t atom, struct cfi_value a, struct cfi_value b, struct cfi_value *ret)
{
	bool distance = atom == DW_OP_plus || (atom == DW_OP_minus && b.base == CFI_NUMBER);

	if (a.base == CFI_AT_SP || a.base == CFI_AT_FP || b.base == CFI_AT_SP ||
	    b.base == CFI_AT_FP || (a.base && b.base) || ((a.base || b.base) && !distance))
		return false;
	ret->base = a.base ? a.base : b.base;
	return binary(atom, a.v, b.v, &ret->v);
}

static bool push_reg(const struct cfi_machine *m, uint64_t reg, struct bytes *b,
		     struct cfi_value *ret)
{
	if (reg > DW_OP_breg31 - DW_OP_breg0 || !m->reg(m->ctx, (unsigned int)reg, ret))
		return false;
	ret->v += (uint64_t)take_sleb(b);
	return true;
}

/* What an operation pushes that needs nothing from the stack. */
static bool pushed(const struct cfi_machine *m, uint8_t atom, struct bytes *b,
		   struct cfi_value *ret)
{
	ret->base = CFI_NUMBER;
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
		ret->v = atom - DW_OP_lit0;
		return true;
	}
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_reg(m, atom - DW_OP_breg0, b, ret);
	switch (atom) {
	case DW_OP_const1u:
		ret->v = take(b, 1);
		return true;
	case DW_OP_const2u:
		ret->v = take(b, 2);
		return true;
	case DW_OP_const4u:
		ret->v = take(b, 4);
		return true;
	case DW_OP_const8u:
		ret->v = take(b, 8);
		return true;
	case DW_OP_const1s:
		ret->v = (uint64_t)take_signed(b, 1);
		return true;
	case DW_OP_const2s:
		ret->v = (uint64_t)take_signed(b, 2);
		return true;
	case DW_OP_const4s:
		ret->v = (uint64_t)take_signed(b, 4);
		return true;
	case DW_OP_const8s:
		ret->v = take(b, 8);
		return true;
	case DW_OP_constu:
		ret->v = take_uleb(b);
		return true;
	case DW_OP_consts:
		ret->v = (uint64_t)take_sleb(b);
		return true;
	case DW_OP_bregx:
		return push_reg(m, take_uleb(b), b, ret);
	}
	return false;
}

bool cfi_eval(const struct cfi_machine *m, struct bytes e, const struct cfi_value *cfa,
	      struct cfi_value *ret)
{
	struct cfi_value st[EXPR_STACK], v;
	unsigned int n = 0;

	if (cfa)
		st[n++] = *cfa;
	while (bytes_left(&e)) {
		uint8_t atom = (uint8_t)take(&e, 1);

		if (pushed(m, atom, &e, &v)) {
			if (n == EXPR_STACK)
				return false;
			st[n++] = v;
		} else if (atom == DW_OP_deref && n) {
			if (!m->load(m->ctx, &st[n - 1]))
				return false;
		} else if (atom == DW_OP_plus_uconst && n) {
			v = (struct cfi_value){ take_uleb(&e), CFI_NUMBER };
			if (!combine(DW_OP_plus, st[n - 1], v, &st[n - 1]))
				return false;
		} else if (n > 1 && combine(atom, st[n - 2], st[n - 1], &v)) {
			st[--n - 1] = v;
		} else if (atom != DW_OP_nop) {
			return false;
		}
	}
	if (!n || e.bad)
		return false;
	*ret = st[n - 1];
	return true;
}
