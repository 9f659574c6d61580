/* SPDX-License-Identifier: Apache-2.0 */
#include "cfi.h"
#include "cfi_run.h"
#include "keyset.h"

#include <errno.h>
#include <stdlib.h>

#define ROWS_MAX 4096        /* per file; beyond it all are forgotten */
#define POOL_MAX (64u << 10) /* bytes of expressions, the same */
#define EXPR_MAX 128         /* bytes of one */
#define ENTRY_MAX 4096       /* bytes of a CIE or FDE that are read */

struct cfi {
	const struct cfi_arch *arch;
	struct cfi_row *rows;
	uint32_t *index; /* open addressing by vaddr: row number + 1; 0: empty */
	size_t cnt, cap; /* rows; the index has twice as many slots */
	uint8_t *pool;
	size_t pool_len, pool_cap;
};

int cfi_new(const struct cfi_arch *arch, struct cfi **ret)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->arch = arch;
	return 0;
}

void cfi_free(struct cfi *c)
{
	if (!c)
		return;
	free(c->rows);
	free(c->index);
	free(c->pool);
	free(c);
}

struct bytes cfi_expr(const struct cfi *c, const struct cfi_rule *rule)
{
	const uint8_t *p = c->pool + rule->expr;

	return (struct bytes){ p, p + rule->expr_len, false };
}

static bool keep_expr(struct cfi *c, struct bytes e, struct cfi_rule *r)
{
	size_t len = bytes_left(&e);

	if (!len || len > EXPR_MAX)
		return false;
	if (c->pool_len + len > c->pool_cap) {
		size_t cap = c->pool_cap * 2 + EXPR_MAX;
		uint8_t *pool = realloc(c->pool, cap);

		if (!pool)
			return false;
		c->pool = pool;
		c->pool_cap = cap;
	}
	memcpy(c->pool + c->pool_len, e.p, len);
	r->expr = (uint32_t)c->pool_len;
	r->expr_len = (uint32_t)len;
	c->pool_len += len;
	return true;
}

static bool keep_rule(struct cfi *c, uint8_t reg, const struct run_rule *from, struct cfi_rule *ret)
{
	*ret = (struct cfi_rule){
		.reg = reg, .kind = from->kind, .from = from->from, .off = (int32_t)from->off
	};
	if (from->kind == CFI_SAVED_AT || from->kind == CFI_VALUE)
		return keep_expr(c, from->expr, ret);
	return from->off == (int32_t)from->off;
}

static bool keep_row(struct cfi *c, const struct run_state *s, struct cfi_row *row)
{
	if (s->cfa.kind == CFI_SAME || !keep_rule(c, 0, &s->cfa, &row->cfa))
		return false;
	for (uint8_t reg = 0; reg < CFI_REGS; reg++) {
		if (s->regs[reg].kind != CFI_SAME &&
		    !keep_rule(c, reg, &s->regs[reg], &row->rules[row->cnt++]))
			return false;
	}
	row->ra_signed = s->ra_signed;
	if (c->arch->link && s->regs[CFI_RA].kind == CFI_SAME) /* it is the last rule */
		row->rules[row->cnt++] =
			(struct cfi_rule){ .reg = CFI_RA, .kind = CFI_REG, .from = CFI_RA };
	return true;
}

/* Reads an entry of a section without its length field. */
static bool read_entry(const struct cfi_source *s, bool debug, uint64_t off, uint8_t *buf,
		       struct bytes *ret)
{
	uint64_t section = debug ? s->debug_len : s->len;
	uint32_t len;

	if (off > section || s->read(s->ctx, debug, off, &len, sizeof(len)) != sizeof(len) ||
	    len > section - off || len > ENTRY_MAX ||
	    s->read(s->ctx, debug, off + 4, buf, len) != len)
		return false;
	*ret = (struct bytes){ buf, buf + len, false };
	return true;
}

static bool make_row(struct cfi *c, const struct cfi_source *s, struct cfi_row *row)
{
	const struct fde *fde = ehframe_find(s->fdes, s->fde_cnt, row->vaddr);
	bool debug = fde && fde->off & FDE_DEBUG;
	uint8_t fde_buf[ENTRY_MAX], cie_buf[ENTRY_MAX];
	struct bytes fde_bytes, cie_bytes;
	uint64_t off, cie_off, start, len;
	struct cfi_run run;
	struct cie cie;

	if (row->vaddr & CFI_BY_CODE)
		return s->guess(s->ctx, row->vaddr & ~(CFI_BY_CODE | CFI_CALLED),
				row->vaddr & CFI_CALLED, row);
	if (!fde)
		return false;
	off = fde->off & ~FDE_DEBUG;
	if (!read_entry(s, debug, off, fde_buf, &fde_bytes) ||
	    !fde_cie(debug, off, (uint32_t)take(&fde_bytes, 4), &cie_off) ||
	    !read_entry(s, debug, cie_off, cie_buf, &cie_bytes) || !cie_parse(&cie_bytes, &cie) ||
	    cie.ra_reg != c->arch->ra || !fde_parse(&fde_bytes, &cie, &start, &len))
		return false;
	row->signal = cie.signal;
	cfi_run_init(&run, c->arch, &cie, fde->start, row->vaddr);
	if (!cfi_run(&run, cie.program))
		return false;
	run.initial = run.now;
	return cfi_run(&run, fde_bytes) && keep_row(c, &run.now, row);
}

static uint32_t *slot_of(const struct cfi *c, uint64_t vaddr)
{
	size_t i = (size_t)mix64(vaddr) & (c->cap * 2 - 1);

	while (c->index[i] && c->rows[c->index[i] - 1].vaddr != vaddr)
		i = (i + 1) & (c->cap * 2 - 1);
	return &c->index[i];
}

/* Makes room for one more row. */
static int make_room(struct cfi *c)
{
	size_t cap = c->cap ? c->cap * 2 : 64;
	struct cfi_row *rows;
	uint32_t *index;

	if (c->cnt >= ROWS_MAX || c->pool_len >= POOL_MAX) {
		c->cnt = c->pool_len = 0;
		memset(c->index, 0, c->cap * 2 * sizeof(*c->index));
	}
	if (c->cnt < c->cap)
		return 0;
	rows = reallocarray(c->rows, cap, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	c->rows = rows;
	index = calloc(cap * 2, sizeof(*index));
	if (!index)
		return -ENOMEM;
	free(c->index);
	c->index = index;
	c->cap = cap;
	for (size_t i = 0; i < c->cnt; i++)
		*slot_of(c, rows[i].vaddr) = (uint32_t)i + 1;
	return 0;
}

const struct cfi_row *cfi_row(struct cfi *c, const struct cfi_source *s, uint64_t vaddr)
{
	uint32_t *slot = c->cap ? slot_of(c, vaddr) : NULL;
	struct cfi_row *row;

	if (slot && *slot)
		return &c->rows[*slot - 1];
	if (make_room(c))
		return NULL;
	row = &c->rows[c->cnt];
	*row = (struct cfi_row){ .vaddr = vaddr };
	row->bad = !make_row(c, s, row);
	slot = slot_of(c, vaddr);
	*slot = (uint32_t)++c->cnt;
	return row;
}

void cfi_forget(struct cfi *c, uint64_t vaddr)
{
	uint32_t *slot = c->cap ? slot_of(c, vaddr) : NULL;

	if (slot && *slot)
		c->rows[*slot - 1].bad = true;
}

size_t cfi_mem(const struct cfi *c)
{
	return sizeof(*c) + c->cap * (sizeof(*c->rows) + 2 * sizeof(*c->index)) + c->pool_cap;
}
