/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind information as rules that the kernel side can follow. */
#include "cfi_rule.h"
#include "maps.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <unistd.h>

static struct cfi_row row_of(struct cfi_rule cfa, struct cfi_rule fp, struct cfi_rule ra)
{
	struct cfi_row row = { .cfa = cfa, .cnt = 3 };

	row.rules[0] = fp;
	row.rules[1] = (struct cfi_rule){ .reg = CFI_SP, .kind = CFI_CFA_VALUE };
	row.rules[2] = ra;
	row.rules[0].reg = CFI_FP;
	row.rules[2].reg = CFI_RA;
	return row;
}

Test(cfi_rule, rows_become_rules)
{
	const struct cfi_rule on_sp = { .kind = CFI_REG, .from = CFI_SP, .off = 48 },
			      on_fp = { .kind = CFI_REG, .from = CFI_FP, .off = 16 },
			      on_bx = { .kind = CFI_REG, .from = 3, .off = 16 },
			      at_16 = { .kind = CFI_SAVED, .off = -16 },
			      at_8 = { .kind = CFI_SAVED, .off = -8 },
			      gone = { .kind = CFI_UNDEFINED },
			      moved = { .kind = CFI_REG, .from = 3 };
	struct cfi *c;
	struct cfi_row row;
	struct cc_rule r;

	cr_assert_eq(cfi_new(cfi_arch(EM_X86_64), &c), 0);
	row = row_of(on_sp, at_16, at_8);
	cfi_rule_of(c, &row, 0, &r);
	cr_expect_eq(r.what, CC_RULE_KNOWN);
	cr_expect_eq(r.cfa, CC_VIA_SP);
	cr_expect_eq(r.cfa_off, 48);
	cr_expect_eq(r.fp, CC_VIA_CFA_MEM);
	cr_expect_eq(r.fp_off, -16);
	cr_expect_eq(r.ra, CC_VIA_CFA_MEM);
	cr_expect_eq(r.ra_off, -8);
	row = row_of(on_fp, gone, at_8);
	row.signal = true;
	cfi_rule_of(c, &row, 0, &r);
	cr_expect_eq(r.what, CC_RULE_KNOWN | CC_RULE_SIGNAL);
	cr_expect_eq(r.cfa, CC_VIA_FP);
	cr_expect_eq(r.fp, CC_VIA_LOST);
	row = row_of(on_sp, at_16, gone);
	cfi_rule_of(c, &row, 0, &r);
	cr_expect_eq(r.what, CC_RULE_KNOWN | CC_RULE_END);
	row = row_of(on_bx, at_16, at_8);
	cfi_rule_of(c, &row, 0, &r);
	cr_expect_eq(r.what, 0, "by a register that nobody keeps");
	row = row_of(on_sp, moved, at_8);
	cfi_rule_of(c, &row, 0, &r);
	cr_expect_eq(r.what, 0);
	row = row_of(on_sp, at_16, moved);
	cfi_rule_of(c, &row, 0, &r);
	cr_expect_eq(r.what, 0);
	row = row_of(on_sp, at_16, at_8);
	row.rules[1].off = 8;
	cfi_rule_of(c, &row, 0, &r);
	cr_expect_eq(r.what, 0, "a stack pointer that is not the CFA");
	row = row_of(on_sp, at_16, at_8);
	row.cnt = 2;
	cfi_rule_of(c, &row, 0, &r);
	cr_expect_eq(r.what, 0, "no return address");
	cfi_free(c);
}

/* What is known of a PLT's address: ((ip & 15) >= 11) * 8 + sp + 8, as linkers write it. */
Test(cfi_rule, a_plt_depends_on_the_address_alone)
{
	struct file_cache *files;
	struct maps m;
	bool changed;
	unsigned int found = 0;

	cr_assert_eq(file_cache_new(&files), 0);
	maps_init(&m, (uint32_t)getpid());
	cr_assert_eq(maps_refresh(&m, &changed), 0);
	for (size_t i = 0; i < m.cnt; i++) {
		struct mapping *p = &m.v[i];
		struct elf_file *f = p->exec ? maps_file(&m, p, files) : NULL;

		for (uint64_t at = p->start; f && at < CC_MIN(p->end, p->start + 8192); at += 16) {
			const struct cfi_row *row;
			struct cc_rule early, late;
			uint64_t vaddr;

			if (maps_vaddr(p, f, at, &vaddr))
				break;
			row = elf_file_cfi_row(f, vaddr);
			if (!row || row->bad || row->cfa.kind != CFI_VALUE)
				continue;
			cfi_rule_of(f->cfi, row, at, &early);
			row = elf_file_cfi_row(f, vaddr + 11);
			cfi_rule_of(f->cfi, row, at + 11, &late);
			if (row->cfa.kind != CFI_VALUE || early.cfa != CC_VIA_SP)
				continue; /* the first entry of a PLT is another */
			cr_expect_eq(early.cfa_off, 8);
			cr_expect_eq(late.cfa_off, 16);
			found++;
		}
	}
	cr_expect_gt(found, 0, "some file here has a PLT");
	maps_done(&m);
	file_cache_free(files);
}

Test(cfi_rule, go_frames)
{
	struct cc_rule r;

	cfi_rule_of_go(40, 0, &r);
	cr_expect_eq(r.cfa, CC_VIA_SP);
	cr_expect_eq(r.cfa_off, 48);
	cr_expect_eq(r.fp, CC_VIA_CFA_MEM);
	cr_expect_eq(r.fp_off, -16);
	cr_expect_eq(r.what, CC_RULE_KNOWN | CC_RULE_NO_ZERO);
	cfi_rule_of_go(0, 0, &r);
	cr_expect_eq(r.fp, CC_VIA_LOST);
	cfi_rule_of_go(UINT32_MAX, 0, &r);
	cr_expect_eq(r.what, 0);
}
