/* SPDX-License-Identifier: Apache-2.0 */
#include "ehframe.h"
#include "radix.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#define FDE_MAX (4u << 20) /* more than the largest browser has */
#define DEBUG_CIE 0xffffffffu

static uint64_t take_encoded(struct bytes *b, uint8_t enc)
{
	switch (enc & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return take(b, 8);
	case DW_EH_PE_udata4:
		return take(b, 4);
	case DW_EH_PE_sdata4:
		return (uint64_t)take_signed(b, 4);
	case DW_EH_PE_udata2:
		return take(b, 2);
	case DW_EH_PE_sdata2:
		return (uint64_t)take_signed(b, 2);
	case DW_EH_PE_uleb128:
		return take_uleb(b);
	case DW_EH_PE_sleb128:
		return (uint64_t)take_sleb(b);
	}
	b->bad = true;
	return 0;
}

/* "zPLRSB": what each letter says lies in the augmentation data, in its order. */
static void take_augmentation(struct bytes *b, const char *letters, struct cie *c)
{
	uint64_t len = take_uleb(b);
	const uint8_t *data = take_block(b, len);
	struct bytes a = { data, data ? data + len : NULL, !data };

	c->augmented = true;
	for (; *letters && !a.bad; letters++) {
		if (*letters == 'R')
			c->enc = (uint8_t)take(&a, 1);
		else if (*letters == 'L')
			take(&a, 1);
		else if (*letters == 'P')
			take_encoded(&a, (uint8_t)take(&a, 1));
		else if (*letters == 'S')
			c->signal = true;
		else if (*letters != 'B')
			break;
	}
	b->bad |= a.bad;
}

bool cie_parse(struct bytes *b, struct cie *ret)
{
	uint64_t id = take(b, 4), version = take(b, 1);
	const char *letters = (const char *)b->p;
	const char *end = bytes_left(b) ? memchr(letters, 0, bytes_left(b)) : NULL;

	if ((id && id != DEBUG_CIE) || !end || (version != 1 && version != 3 && version != 4))
		return false;
	*ret = (struct cie){ .enc = DW_EH_PE_absptr };
	b->p = (const uint8_t *)end + 1;
	if (version == 4 && (take(b, 1) != 8 || take(b, 1))) /* bytes of addresses, of segments */
		return false;
	ret->code_align = take_uleb(b);
	ret->data_align = take_sleb(b);
	ret->ra_reg = version == 1 ? take(b, 1) : take_uleb(b);
	if (*letters == 'z')
		take_augmentation(b, letters + 1, ret);
	else if (*letters)
		return false; /* from before gcc 3 */
	ret->program = *b;
	return !b->bad;
}

bool fde_parse(struct bytes *b, const struct cie *c, uint64_t *ret_start, uint64_t *ret_len)
{
	*ret_start = take_encoded(b, c->enc);
	*ret_len = take_encoded(b, c->enc & 0x0f);
	if (c->augmented)
		take_block(b, take_uleb(b));
	return !b->bad && ((c->enc & 0xf0) == DW_EH_PE_pcrel || !(c->enc & 0xf0));
}

bool fde_cie(bool debug, uint64_t off, uint32_t id, uint64_t *ret)
{
	*ret = debug ? id : off + 4 - id;
	return debug ? id != DEBUG_CIE : id && id <= off + 4;
}

struct scan {
	bool debug;
	const uint8_t *data;
	size_t len;
	uint64_t addr;
	size_t cie_off; /* the CIE that was read last; SIZE_MAX: none yet */
	bool cie_ok;
	struct cie cie;
	struct fde *v;
	size_t cnt, cap;
};

static void read_cie(struct scan *s, size_t off)
{
	struct bytes b = { s->data + off, s->data + s->len, false };
	uint64_t len = take(&b, 4);

	s->cie_off = off;
	s->cie_ok = false;
	if (len > bytes_left(&b))
		return;
	b.end = b.p + len;
	s->cie_ok = cie_parse(&b, &s->cie);
}

/* Adds the FDE at @off, whose body after the CIE pointer is in @b. */
static int add_fde(struct scan *s, size_t off, struct bytes *b)
{
	uint64_t place = s->addr + (uint64_t)(b->p - s->data), start, len;

	if (!fde_parse(b, &s->cie, &start, &len))
		return 0;
	if (s->cie.enc & DW_EH_PE_pcrel)
		start += place;
	if (!len || len > UINT32_MAX || start + len < start || off >= FDE_DEBUG)
		return 0;
	if (s->cnt == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 256;
		struct fde *v = reallocarray(s->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->cap = cap;
	}
	s->v[s->cnt++] =
		(struct fde){ start, (uint32_t)len, (uint32_t)off | (s->debug ? FDE_DEBUG : 0) };
	return 0;
}

static int scan_all(struct scan *s)
{
	for (size_t off = 0; s->len - off >= 8 && s->cnt < FDE_MAX;) {
		struct bytes b = { s->data + off, s->data + s->len, false };
		uint64_t len = take(&b, 4), cie;
		size_t id_off = off + 4;
		int err;

		/* 0 ends the section for the linker, but crt files may follow their own end */
		if (len == 0) {
			off += 4;
			continue;
		}
		if (len < 4 || len > s->len - id_off)
			break;
		b.end = b.p + len;
		if (fde_cie(s->debug, off, (uint32_t)take(&b, 4), &cie) && cie < s->len) {
			if (s->cie_off != cie)
				read_cie(s, cie);
			err = s->cie_ok ? add_fde(s, off, &b) : 0;
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

	if (!err)
		err = radix_sort(s.v, s.cnt, sizeof(*s.v));
	if (err) {
		free(s.v);
		return err;
	}
	*ret = s.v;
	*ret_cnt = s.cnt;
	return 0;
}

int ehframe_add_debug(const uint8_t *data, size_t len, struct fde **fdes, size_t *fde_cnt)
{
	struct scan s = { .debug = true, .data = data, .len = len, .cie_off = SIZE_MAX };
	int err = scan_all(&s);
	size_t cnt = 0;
	struct fde *v;

	for (size_t i = 0; i < s.cnt; i++) { /* code that was left out is said to be at 0 */
		if (s.v[i].start && !ehframe_find(*fdes, *fde_cnt, s.v[i].start))
			s.v[cnt++] = s.v[i];
	}
	if (!err && cnt) {
		v = reallocarray(*fdes, *fde_cnt + cnt, sizeof(*v));
		if (v) {
			memcpy(v + *fde_cnt, s.v, cnt * sizeof(*v));
			*fdes = v;
			*fde_cnt += cnt;
			err = radix_sort(v, *fde_cnt, sizeof(*v));
		} else {
			err = -ENOMEM;
		}
	}
	free(s.v);
	return err;
}

bool ehframe_hdr(const uint8_t *data, size_t len, uint64_t addr, uint64_t *ret)
{
	struct bytes b = { data, data + len, false };
	uint64_t version = take(&b, 1);
	uint8_t enc = (uint8_t)take(&b, 1), how = enc & 0xf0;

	take(&b, 2);
	*ret = take_encoded(&b, enc);
	if (how == DW_EH_PE_pcrel)
		*ret += addr + 4;
	else if (how == DW_EH_PE_datarel)
		*ret += addr;
	return version == 1 && !b.bad && (!how || how == DW_EH_PE_pcrel || how == DW_EH_PE_datarel);
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
