/* SPDX-License-Identifier: Apache-2.0 */
#include "ehframe.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FDE_MAX (4u << 20) /* more than the largest browser has */

struct reader {
	const uint8_t *p, *end;
	bool bad; /* sticky: something was cut off or too large */
};

static uint64_t take(struct reader *r, size_t n)
{
	uint64_t v = 0;

	if (r->bad || (size_t)(r->end - r->p) < n) {
		r->bad = true;
		return 0;
	}
	memcpy(&v, r->p, n); /* .eh_frame of the machines we know is little endian */
	r->p += n;
	return v;
}

static uint64_t take_uleb(struct reader *r)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint64_t b = take(r, 1);

		v |= (b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	r->bad = true;
	return 0;
}

static uint64_t take_encoded(struct reader *r, uint8_t enc)
{
	switch (enc & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return take(r, 8);
	case DW_EH_PE_udata4:
		return take(r, 4);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int64_t)(int32_t)take(r, 4);
	case DW_EH_PE_udata2:
		return take(r, 2);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int64_t)(int16_t)take(r, 2);
	case DW_EH_PE_uleb128:
		return take_uleb(r);
	}
	r->bad = true;
	return 0;
}

/* Sets the encoding of the addresses in the FDEs of the CIE whose body (after its id) is in @r.
 * Returns false if this CIE cannot be understood. */
static bool cie_encoding(struct reader *r, uint8_t *ret_enc)
{
	uint8_t version = (uint8_t)take(r, 1), enc = DW_EH_PE_absptr;
	const char *aug = (const char *)r->p;
	const char *aug_end = r->bad ? NULL : memchr(aug, 0, (size_t)(r->end - r->p));

	if (!aug_end || (version != 1 && version != 3))
		return false;
	r->p = (const uint8_t *)aug_end + 1;
	take_uleb(r); /* code alignment */
	take_uleb(r); /* data alignment; signed, of the same length */
	if (version == 1)
		take(r, 1);
	else
		take_uleb(r);
	if (*aug != 'z') {
		*ret_enc = enc;
		return !*aug && !r->bad;
	}
	take_uleb(r);
	for (aug++; *aug && !r->bad; aug++) {
		if (*aug == 'R')
			enc = (uint8_t)take(r, 1);
		else if (*aug == 'L')
			take(r, 1);
		else if (*aug == 'P')
			take_encoded(r, (uint8_t)take(r, 1));
		else if (*aug != 'S' && *aug != 'B')
			break;
	}
	*ret_enc = enc;
	return !r->bad;
}

struct scan {
	const uint8_t *data;
	size_t len;
	uint64_t addr;
	size_t cie_off; /* the CIE that enc is of; SIZE_MAX: none yet */
	uint8_t enc;
	bool cie_ok;
	struct fde *v;
	size_t cnt, cap;
};

static void read_cie(struct scan *s, size_t off)
{
	struct reader r = { s->data + off, s->data + s->len, false };
	uint64_t len = take(&r, 4);

	s->cie_off = off;
	s->cie_ok = false;
	if (r.bad || len < 4 || len > (size_t)(r.end - r.p))
		return; /* the 64-bit form is never used in .eh_frame */
	r.end = r.p + len;
	if (take(&r, 4) == 0)
		s->cie_ok = cie_encoding(&r, &s->enc);
}

/* Adds the FDE at @off, whose body after the CIE pointer is in @r. */
static int add_fde(struct scan *s, size_t off, struct reader *r)
{
	uint64_t place = s->addr + (uint64_t)(r->p - s->data), start, len;

	start = take_encoded(r, s->enc);
	len = take_encoded(r, s->enc & 0x0f);
	if ((s->enc & 0x70) == DW_EH_PE_pcrel)
		start += place;
	else if (s->enc & 0x70)
		return 0;
	if (r->bad || (s->enc & DW_EH_PE_indirect) || !len || len > UINT32_MAX ||
	    start + len < start || off > UINT32_MAX)
		return 0;
	if (s->cnt == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 256;
		struct fde *v = reallocarray(s->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->cap = cap;
	}
	s->v[s->cnt++] = (struct fde){ start, (uint32_t)len, (uint32_t)off };
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int scan_all(struct scan *s)
{
	for (size_t off = 0; s->len - off >= 8 && s->cnt < FDE_MAX;) {
		struct reader r = { s->data + off, s->data + s->len, false };
		uint64_t len = take(&r, 4), back;
		size_t id_off = off + 4;
		int err;

		/* 0 ends the section for the linker, but crt files may follow their own end */
		if (len == 0) {
			off += 4;
			continue;
		}
		if (len < 4 || len > s->len - id_off)
			break;
		r.end = r.p + len;
		back = take(&r, 4);
		if (back && back <= id_off) {
			if (s->cie_off != id_off - back)
				read_cie(s, id_off - back);
			err = s->cie_ok ? add_fde(s, off, &r) : 0;
			if (err)
				return err;
		}
		off = id_off + len;
	}
	return 0;
}

int ehframe_read(const uint8_t *data, size_t len, uint64_t addr, struct fde **ret, size_t *ret_cnt)
{
	struct scan s = { .data = data, .len = len, .addr = addr, .cie_off = SIZE_MAX };
	int err = scan_all(&s);

	if (err) {
		free(s.v);
		return err;
	}
	if (s.cnt)
		qsort(s.v, s.cnt, sizeof(*s.v), by_start);
	*ret = s.v;
	*ret_cnt = s.cnt;
	return 0;
}

const struct fde *ehframe_find(const struct fde *fdes, size_t cnt, uint64_t addr)
{
	size_t lo = 0, hi = cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (fdes[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr - fdes[lo - 1].start < fdes[lo - 1].len ? &fdes[lo - 1] : NULL;
}
