/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_run.h"

#include <dwarf.h>

void cfi_run_init(struct cfi_run *r, const struct cfi_arch *arch, const struct cie *cie,
		  uint64_t start, uint64_t stop)
{
	*r = (struct cfi_run){ .arch = arch, .cie = cie, .loc = start, .stop = stop };
	r->now.regs[CFI_SP].kind = CFI_CFA_VALUE;
}

/* The place of register @reg of the file; CFI_REGS: it is not followed. */
static uint64_t place_of(const struct cfi_run *r, uint64_t reg)
{
	return reg < CFI_DWARF_REGS && r->arch->place[reg] >= 0 ? (uint64_t)r->arch->place[reg]
								: CFI_REGS;
}

/* Rules of registers that we do not follow (SSE, x87) are read and dropped. */
static void set_rule(struct cfi_run *r, uint64_t reg, struct run_rule rule)
{
	if (reg < CFI_REGS)
		r->now.regs[reg] = rule;
}

static void set_offset(struct cfi_run *r, uint64_t reg, enum cfi_kind kind, int64_t factored)
{
	int64_t off;

	if (__builtin_mul_overflow(factored, r->cie->data_align, &off))
		off = INT64_MAX; /* no row can hold it */
	set_rule(r, reg, (struct run_rule){ .kind = (uint8_t)kind, .off = off });
}

static void restore(struct cfi_run *r, uint64_t reg)
{
	if (reg < CFI_REGS)
		r->now.regs[reg] = r->initial.regs[reg];
}

static struct run_rule take_expr(struct bytes *b, enum cfi_kind kind)
{
	uint64_t len = take_uleb(b);
	const uint8_t *p = take_block(b, len);

	return (struct run_rule){ .kind = (uint8_t)kind, .expr = { p, p ? p + len : NULL, !p } };
}

static bool set_cfa(struct cfi_run *r, uint64_t reg, int64_t off)
{
	r->now.cfa = (struct run_rule){ .kind = CFI_REG, .from = (uint8_t)reg, .off = off };
	return reg < CFI_REGS;
}

static bool set_cfa_offset(struct cfi_run *r, int64_t off)
{
	r->now.cfa.off = off;
	return r->now.cfa.kind == CFI_REG;
}

/* Returns false once the rules at r->stop are complete. */
static bool advance(struct cfi_run *r, uint64_t delta)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(delta, r->cie->code_align, &bytes) || bytes > r->stop - r->loc)
		return false;
	r->loc += bytes;
	return true;
}

static bool remember(struct cfi_run *r)
{
	if (r->depth == CFI_DEPTH)
		return false;
	r->saved[r->depth++] = r->now;
	return true;
}

static bool recall(struct cfi_run *r)
{
	if (!r->depth)
		return false;
	r->now = r->saved[--r->depth];
	return true;
}

/* The operations on the CFA. Returns false for one that is none of them, or wrong. */
static bool run_cfa_op(struct cfi_run *r, uint8_t op, struct bytes *b)
{
	int64_t scale = r->cie->data_align;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = place_of(r, take_uleb(b));
		return set_cfa(r, reg, (int64_t)take_uleb(b));
	case DW_CFA_def_cfa_sf:
		reg = place_of(r, take_uleb(b));
		return set_cfa(r, reg, (int64_t)((uint64_t)take_sleb(b) * (uint64_t)scale));
	case DW_CFA_def_cfa_register:
		return r->now.cfa.kind == CFI_REG &&
		       set_cfa(r, place_of(r, take_uleb(b)), r->now.cfa.off);
	case DW_CFA_def_cfa_offset:
		return set_cfa_offset(r, (int64_t)take_uleb(b));
	case DW_CFA_def_cfa_offset_sf:
		return set_cfa_offset(r, (int64_t)((uint64_t)take_sleb(b) * (uint64_t)scale));
	case DW_CFA_def_cfa_expression:
		r->now.cfa = take_expr(b, CFI_VALUE);
		return r->now.cfa.kind == CFI_VALUE;
	}
	return false;
}

/* The operations on one register; the same. */
static bool run_reg_op(struct cfi_run *r, uint8_t op, struct bytes *b)
{
	uint64_t reg = place_of(r, take_uleb(b)), from;

	switch (op) {
	case DW_CFA_offset_extended:
		set_offset(r, reg, CFI_SAVED, (int64_t)take_uleb(b));
		return true;
	case DW_CFA_offset_extended_sf:
		set_offset(r, reg, CFI_SAVED, take_sleb(b));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		set_offset(r, reg, CFI_SAVED, (int64_t)(0 - take_uleb(b)));
		return true;
	case DW_CFA_val_offset:
		set_offset(r, reg, CFI_CFA_VALUE, (int64_t)take_uleb(b));
		return true;
	case DW_CFA_val_offset_sf:
		set_offset(r, reg, CFI_CFA_VALUE, take_sleb(b));
		return true;
	case DW_CFA_restore_extended:
		restore(r, reg);
		return true;
	case DW_CFA_undefined:
		set_rule(r, reg, (struct run_rule){ .kind = CFI_UNDEFINED });
		return true;
	case DW_CFA_same_value:
		set_rule(r, reg, (struct run_rule){ .kind = CFI_SAME });
		return true;
	case DW_CFA_register:
		from = place_of(r, take_uleb(b));
		set_rule(r, reg,
			 (struct run_rule){ .kind = from < CFI_REGS ? CFI_REG : CFI_UNDEFINED,
					    .from = (uint8_t)from });
		return true;
	case DW_CFA_expression:
		set_rule(r, reg, take_expr(b, CFI_SAVED_AT));
		return true;
	case DW_CFA_val_expression:
		set_rule(r, reg, take_expr(b, CFI_VALUE));
		return true;
	}
	return false;
}

/* One operation. *ret_on: false when the rules at r->stop are complete. */
static bool run_op(struct cfi_run *r, struct bytes *b, bool *ret_on)
{
	uint8_t op = (uint8_t)take(b, 1), low = op & 0x3f;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		*ret_on = advance(r, low);
		return true;
	case DW_CFA_offset:
		set_offset(r, place_of(r, low), CFI_SAVED, (int64_t)take_uleb(b));
		return true;
	case DW_CFA_restore:
		restore(r, place_of(r, low));
		return true;
	}
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_advance_loc1:
		*ret_on = advance(r, take(b, 1));
		return true;
	case DW_CFA_advance_loc2:
		*ret_on = advance(r, take(b, 2));
		return true;
	case DW_CFA_advance_loc4:
		*ret_on = advance(r, take(b, 4));
		return true;
	case DW_CFA_remember_state:
		return remember(r);
	case DW_CFA_restore_state:
		return recall(r);
	case DW_CFA_AARCH64_negate_ra_state: /* elsewhere a window of registers: not here */
		r->now.ra_signed = !r->now.ra_signed;
		return r->arch->link;
	case DW_CFA_GNU_args_size:
		take_uleb(b);
		return true;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return run_cfa_op(r, op, b);
	}
	return run_reg_op(r, op, b);
}

bool cfi_run(struct cfi_run *r, struct bytes program)
{
	bool on = true;

	while (on && bytes_left(&program)) {
		if (!run_op(r, &program, &on))
			return false;
	}
	return !program.bad;
}
