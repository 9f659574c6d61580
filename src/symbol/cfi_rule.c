/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi_rule.h"
#include "cfi_eval.h"
#include "go_tab.h"

#define WORD 8

static bool known_reg(void *ctx, unsigned int reg, struct cfi_value *ret)
{
	static const enum cfi_base bases[] = { [CFI_FP] = CFI_ON_FP, [CFI_SP] = CFI_ON_SP };

	*ret = (struct cfi_value){ 0, CFI_NUMBER };
	if (reg == CFI_RA)
		ret->v = *(const uint64_t *)ctx;
	else if (reg == CFI_FP || reg == CFI_SP)
		ret->base = bases[reg];
	else
		return false;
	return true;
}

static bool known_load(void *ctx CC_UNUSED, struct cfi_value *v)
{
	if (v->base != CFI_ON_SP && v->base != CFI_ON_FP)
		return false;
	v->base = v->base == CFI_ON_SP ? CFI_AT_SP : CFI_AT_FP;
	return true;
}

/* An expression by what it amounts to. */
static bool reduce(const struct cfi *c, const struct cfi_rule *r, const uint64_t *ip,
		   const struct cfi_value *cfa, struct cfi_value *ret)
{
	const struct cfi_machine m = { .reg = known_reg, .load = known_load, .ctx = (void *)ip };

	return cfi_eval(&m, cfi_expr(c, r), cfa, ret);
}

static bool to_via(const struct cfi_value *v, uint8_t *ret_via, int32_t *ret_off)
{
	static const uint8_t via[] = { [CFI_ON_SP] = CC_VIA_SP,
				       [CFI_ON_FP] = CC_VIA_FP,
				       [CFI_AT_SP] = CC_VIA_SP_MEM,
				       [CFI_AT_FP] = CC_VIA_FP_MEM };

	*ret_off = (int32_t)v->v;
	*ret_via = via[v->base];
	return v->base != CFI_NUMBER && (int64_t)v->v == *ret_off;
}

static bool cfa_of(const struct cfi *c, const struct cfi_rule *r, const uint64_t *ip,
		   struct cfi_value *ret)
{
	if (r->kind == CFI_VALUE)
		return reduce(c, r, ip, NULL, ret);
	if (r->kind != CFI_REG || (r->from != CFI_SP && r->from != CFI_FP))
		return false;
	ret->base = r->from == CFI_SP ? CFI_ON_SP : CFI_ON_FP;
	ret->v = (uint64_t)(int64_t)r->off;
	return true;
}

/* Where a register was saved. */
static bool saved_at(const struct cfi *c, const struct cfi_rule *r, const uint64_t *ip,
		     const struct cfi_value *cfa, uint8_t *ret_via, int32_t *ret_off)
{
	struct cfi_value v;

	if (r->kind == CFI_SAVED) {
		*ret_via = CC_VIA_CFA_MEM;
		*ret_off = r->off;
		return true;
	}
	return r->kind == CFI_SAVED_AT && reduce(c, r, ip, cfa, &v) && known_load(NULL, &v) &&
	       to_via(&v, ret_via, ret_off);
}

/* The stack pointer of the caller is the CFA, or was saved where the CFA comes from. */
static bool sp_is_cfa(const struct cfi *c, const struct cfi_rule *r, const uint64_t *ip,
		      const struct cfi_value *cfa, const struct cc_rule *rule)
{
	uint8_t via;
	int32_t off;

	if (r->kind == CFI_CFA_VALUE)
		return !r->off;
	return saved_at(c, r, ip, cfa, &via, &off) && via == rule->cfa && off == rule->cfa_off;
}

static bool take_rule(const struct cfi *c, const struct cfi_rule *r, const uint64_t *ip,
		      const struct cfi_value *cfa, struct cc_rule *ret)
{
	switch (r->reg) {
	case CFI_SP:
		return sp_is_cfa(c, r, ip, cfa, ret);
	case CFI_FP:
		ret->fp = CC_VIA_LOST;
		return r->kind == CFI_UNDEFINED || saved_at(c, r, ip, cfa, &ret->fp, &ret->fp_off);
	case CFI_RA:
		if (r->kind != CFI_UNDEFINED)
			return saved_at(c, r, ip, cfa, &ret->ra, &ret->ra_off);
		ret->what |= CC_RULE_END;
		return true;
	}
	return true; /* what no rule here needs */
}

void cfi_rule_of(const struct cfi *c, const struct cfi_row *row, uint64_t ip, struct cc_rule *ret)
{
	struct cc_rule rule = { .fp = CC_VIA_SAME, .what = CC_RULE_KNOWN };
	struct cfi_value cfa;

	*ret = (struct cc_rule){ .what = 0 };
	if (!cfa_of(c, &row->cfa, &ip, &cfa) || !to_via(&cfa, &rule.cfa, &rule.cfa_off))
		return;
	for (unsigned int i = 0; i < row->cnt; i++) {
		if (!take_rule(c, &row->rules[i], &ip, &cfa, &rule))
			return;
	}
	if (row->signal)
		rule.what |= CC_RULE_SIGNAL;
	if (rule.ra != CC_VIA_LOST || rule.what & CC_RULE_END)
		*ret = rule;
}

void cfi_rule_of_go(uint32_t size, uint8_t flags, struct cc_rule *ret)
{
	*ret = (struct cc_rule){ .cfa = CC_VIA_SP,
				 .ra = CC_VIA_CFA_MEM,
				 .ra_off = -WORD,
				 .what = CC_RULE_KNOWN | CC_RULE_NO_ZERO };
	if (size > INT32_MAX - WORD) {
		ret->what = 0;
		return;
	}
	ret->cfa_off = (int32_t)size + WORD;
	if (flags & (GO_FUNC_TOP | GO_FUNC_LEFT))
		ret->what |= CC_RULE_END;
	else if (flags & GO_FUNC_CLONE)
		ret->what = 0; /* what it means depends on a register */
	else if (flags & GO_FUNC_SP_WRITE)
		ret->what |= CC_RULE_END | CC_RULE_PART;
	if (size >= WORD) {
		ret->fp = CC_VIA_CFA_MEM;
		ret->fp_off = -2 * WORD;
	}
	if (flags & GO_FUNC_INJECTED)
		ret->what |= CC_RULE_SIGNAL;
}

void cfi_rule_of_fp(struct cc_rule *ret)
{
	*ret = (struct cc_rule){ .cfa = CC_VIA_FP,
				 .cfa_off = 2 * WORD,
				 .ra = CC_VIA_FP_MEM,
				 .ra_off = WORD,
				 .fp = CC_VIA_FP_MEM,
				 .what = CC_RULE_KNOWN | CC_RULE_GUESSED | CC_RULE_NO_ZERO };
}
