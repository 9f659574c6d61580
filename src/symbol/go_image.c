/* SPDX-License-Identifier: Apache-2.0 */
#include "go_image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REL_MAX (4u << 20) /* 64 MiB while the file is looked at */
#define DYN_MAX 256
#define CHUNK 4096 /* words */

struct go_reloc {
	uint64_t at;
	uint64_t value : 63; /* addresses are below 2^63 */
	uint64_t tls : 1;
};

struct rela_table {
	uint64_t addr, len;
};

/* What a loader does at the type of relocation: -1 nothing we know, 0 writes the addend, 1 writes a
 * thread-local offset. */
static int kind_of(uint16_t machine, uint32_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_RELATIVE ? 0 : type == R_X86_64_TPOFF64 ? 1 : -1;
	return type == R_AARCH64_RELATIVE ? 0 : type == R_AARCH64_TLS_TPREL ? 1 : -1;
}

static int by_address(const void *a, const void *b)
{
	const struct go_reloc *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static void find_rela(struct elf_file *f, struct rela_table *ret)
{
	Elf64_Dyn dyn[DYN_MAX];
	uint64_t want = CC_MIN(f->dynamic.len, sizeof(dyn));
	ssize_t n = want ? elf_file_read(f, f->dynamic.off, dyn, want) : 0;

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(dyn[0]) && dyn[i].d_tag != DT_NULL; i++) {
		if (dyn[i].d_tag == DT_RELA)
			ret->addr = dyn[i].d_un.d_ptr;
		else if (dyn[i].d_tag == DT_RELASZ)
			ret->len = dyn[i].d_un.d_val;
	}
}

int go_image_init(struct go_image *img, struct elf_file *f)
{
	struct rela_table t = { 0 };
	bool sorted = true;
	size_t cnt;

	*img = (struct go_image){ .f = f };
	find_rela(f, &t);
	cnt = CC_MIN(t.len, f->bytes) / sizeof(Elf64_Rela);
	if (!cnt || cnt > REL_MAX || !elf_file_seg(f, t.addr))
		return 0;
	img->rel = malloc(cnt * sizeof(*img->rel));
	if (!img->rel)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		Elf64_Rela r;
		int kind;

		if (elf_file_read_at(f, t.addr + i * sizeof(r), &r, sizeof(r)) != sizeof(r))
			break;
		kind = kind_of(f->machine, ELF64_R_TYPE(r.r_info));
		if (kind < 0)
			continue;
		sorted &= !img->rel_cnt || img->rel[img->rel_cnt - 1].at <= r.r_offset;
		img->rel[img->rel_cnt++] = (struct go_reloc){
			.at = r.r_offset,
			.value = (uint64_t)r.r_addend & INT64_MAX,
			.tls = kind == 1,
		};
	}
	if (!sorted)
		qsort(img->rel, img->rel_cnt, sizeof(*img->rel), by_address);
	return 0;
}

void go_image_done(struct go_image *img)
{
	free(img->rel);
	img->rel = NULL;
	img->rel_cnt = 0;
}

/* The first relocation at or behind @vaddr. */
static size_t first_rel(const struct go_image *img, uint64_t vaddr)
{
	size_t lo = 0, hi = img->rel_cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (img->rel[mid].at < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

ssize_t go_image_read(const struct go_image *img, uint64_t vaddr, void *buf, size_t len)
{
	ssize_t n = elf_file_read_at(img->f, vaddr, buf, len);

	if (n < 0 || vaddr > UINT64_MAX - (uint64_t)n)
		return n;
	for (size_t i = first_rel(img, vaddr); i < img->rel_cnt; i++) {
		const struct go_reloc *r = &img->rel[i];
		uint64_t value = r->value;

		if (r->at - vaddr + sizeof(value) > (uint64_t)n)
			break;
		if (!r->tls)
			memcpy((char *)buf + (r->at - vaddr), &value, sizeof(value));
	}
	return n;
}

bool go_image_word(const struct go_image *img, uint64_t vaddr, uint64_t *ret)
{
	return go_image_read(img, vaddr, ret, sizeof(*ret)) == sizeof(*ret);
}

bool go_image_tls_slot(const struct go_image *img, uint64_t vaddr, uint64_t *ret)
{
	size_t i = first_rel(img, vaddr);

	if (i == img->rel_cnt || img->rel[i].at != vaddr || !img->rel[i].tls)
		return false;
	*ret = img->rel[i].value;
	return true;
}

static int scan_segment(const struct go_image *img, const struct elf_seg *s, uint64_t *budget,
			uint64_t *buf, go_scan_fn *fn, void *ctx)
{
	uint64_t len = CC_MIN(CC_MIN(s->filesz, s->memsz), *budget), at = (s->vaddr + 7) & ~7ull,
		 end = s->vaddr + len;

	*budget -= len;
	if (at < s->vaddr) /* it lies at the last address */
		return 0;
	while (at < end) {
		uint64_t want = CC_MIN(end - at, (CHUNK + GO_LOOK) * sizeof(*buf));
		ssize_t n = go_image_read(img, at, buf, want);
		size_t words = n > 0 ? (size_t)n / sizeof(*buf) : 0;

		if (!words)
			return 0;
		memset(buf + words, 0, (CHUNK + 2 * GO_LOOK - words) * sizeof(*buf));
		for (size_t i = 0; i < CC_MIN(words, CHUNK); i++) {
			if (fn(ctx, at + i * sizeof(*buf), buf + i))
				return 1;
		}
		if (end - at <= CHUNK * sizeof(*buf))
			return 0; /* the next one may lie beyond the last address */
		at += CHUNK * sizeof(*buf);
	}
	return 0;
}

int go_image_scan(const struct go_image *img, go_scan_fn *fn, void *ctx)
{
	uint64_t *buf = malloc((CHUNK + 2 * GO_LOOK) * sizeof(*buf));
	uint64_t budget = img->f->bytes; /* segments of a hostile file may overlap */
	int ret = buf ? 0 : -ENOMEM;

	/* code last: some linkers put constants into its segment */
	for (size_t i = 0; i < 2 * img->f->seg_cnt && !ret; i++) {
		const struct elf_seg *s = &img->f->segs[i % img->f->seg_cnt];

		if (s->exec == (i >= img->f->seg_cnt))
			ret = scan_segment(img, s, &budget, buf, fn, ctx);
	}
	free(buf);
	return ret;
}
