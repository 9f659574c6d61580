/* SPDX-License-Identifier: Apache-2.0 */
#include "elf_file.h"
#include "cfi.h"
#include "code_row.h"
#include "demangle.h"
#include "elf_load.h"
#include "go_tab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_CNT 8
#define BLOCK_BYTES 4096
#define NEST_MAX 16 /* symbols to look back over for one that covers an address */

struct elf_block {
	uint64_t off; /* a multiple of BLOCK_BYTES; UINT64_MAX: empty */
	uint32_t len;
	uint8_t data[BLOCK_BYTES];
};

int elf_file_open(int fd, struct table_cache *tables, struct elf_file **ret)
{
	struct elf_file *f = calloc(1, sizeof(*f));
	struct stat st;
	int err;

	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	f->fd = fd;
	f->refs = 1;
	f->go_err = 1;
	f->tables = tables;
	if (fstat(fd, &st)) {
		err = -errno;
	} else {
		f->dev = st.st_dev;
		f->ino = st.st_ino;
		f->bytes = (uint64_t)st.st_size;
		f->mtime = st.st_mtim;
		err = elf_load(f);
	}
	if (err) {
		elf_file_put(f);
		return err;
	}
	f->tables = NULL;
	*ret = f;
	return 0;
}

void elf_file_put(struct elf_file *f)
{
	if (!f || --f->refs)
		return;
	cfi_free(f->cfi);
	go_tab_free(f->go);
	close(f->fd);
	free(f->segs);
	if (f->mapped) {
		munmap(f->mapped, f->mapped_len);
	} else {
		free(f->funcs.v);
		free(f->objects.v);
		free(f->fdes);
	}
	free(f->blocks);
	free(f);
}

static struct elf_block *block_at(struct elf_file *f, uint64_t off)
{
	ssize_t n;

	if (!f->blocks) {
		f->blocks = malloc(BLOCK_CNT * sizeof(*f->blocks));
		if (!f->blocks)
			return NULL;
		for (size_t i = 0; i < BLOCK_CNT; i++)
			f->blocks[i].off = UINT64_MAX;
	}
	struct elf_block *b = &f->blocks[off / BLOCK_BYTES % BLOCK_CNT];

	if (b->off == off)
		return b;
	b->off = UINT64_MAX;
	n = pread(f->fd, b->data, BLOCK_BYTES, (off_t)off);
	if (n < 0)
		return NULL;
	b->off = off;
	b->len = (uint32_t)n;
	return b;
}

ssize_t elf_file_read(struct elf_file *f, uint64_t off, void *buf, size_t len)
{
	size_t done = 0;

	if (off > INT64_MAX - len)
		return -EINVAL;
	while (done < len) {
		uint64_t at = off + done, in = at % BLOCK_BYTES;
		struct elf_block *b = block_at(f, at - in);

		if (!b)
			return -EIO;
		if (in >= b->len)
			break;
		size_t n = CC_MIN(len - done, b->len - in);

		memcpy((char *)buf + done, b->data + in, n);
		done += n;
	}
	return (ssize_t)done;
}

const struct elf_seg *elf_file_seg(const struct elf_file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->seg_cnt; i++) {
		if (vaddr - f->segs[i].vaddr < f->segs[i].memsz)
			return &f->segs[i];
	}
	return NULL;
}

ssize_t elf_file_read_at(struct elf_file *f, uint64_t vaddr, void *buf, size_t len)
{
	const struct elf_seg *s = elf_file_seg(f, vaddr);
	uint64_t at, have;
	ssize_t n = 0;

	if (!s)
		return -ENOENT;
	at = vaddr - s->vaddr;
	len = CC_MIN(len, s->memsz - at);
	have = at < s->filesz ? CC_MIN(len, s->filesz - at) : 0;
	if (have)
		n = elf_file_read(f, s->off + at, buf, have);
	if (n < 0 || (uint64_t)n < have)
		return n;
	memset((char *)buf + have, 0, len - have);
	return (ssize_t)len;
}

int elf_file_vaddr(const struct elf_file *f, uint64_t off, bool exec, uint64_t *ret)
{
	for (size_t i = 0; i < f->seg_cnt; i++) {
		const struct elf_seg *s = &f->segs[i];
		/* a mapping begins at a page: it shows some bytes before and after the segment */
		uint64_t first = s->off & ~4095ull, end = (s->off + s->filesz + 4095) & ~4095ull;

		if (s->exec == exec && off >= first && off < end) {
			*ret = s->vaddr + (off - s->off);
			return 0;
		}
	}
	return -ENOENT;
}

bool elf_file_has_data(const struct elf_file *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->seg_cnt; i++) {
		if (!f->segs[i].exec && vaddr - f->segs[i].vaddr < f->segs[i].memsz)
			return true;
	}
	return false;
}

/* How many symbols begin at @vaddr or before. */
static size_t symbols_to(const struct elf_symtab *t, uint64_t vaddr)
{
	size_t lo = 0, hi = t->cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->v[mid].addr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool elf_file_begins(const struct elf_file *f, uint64_t vaddr)
{
	size_t cnt = symbols_to(&f->funcs, vaddr);

	return cnt && f->funcs.v[cnt - 1].addr == vaddr;
}

/* The symbol that covers @vaddr. Symbols may nest, so an earlier, longer one may be it. */
static const struct elf_sym *covering(const struct elf_file *f, const struct elf_symtab *t,
				      uint64_t vaddr)
{
	size_t lo = symbols_to(t, vaddr);
	const struct fde *fde = ehframe_find(f->fdes, f->fde_cnt, vaddr);

	for (size_t i = lo; i && lo - i < NEST_MAX; i--) {
		const struct elf_sym *s = &t->v[i - 1];

		if (s->size ? vaddr - s->addr < s->size : fde && s->addr >= fde->start)
			return s;
	}
	return NULL;
}

int elf_file_name(struct elf_file *f, uint64_t vaddr, bool object, char *name, size_t name_size,
		  uint64_t *ret_off)
{
	const struct elf_sym *s = covering(f, object ? &f->objects : &f->funcs, vaddr);
	char raw[MANGLED_MAX];
	ssize_t n;

	if (!s || !name_size)
		return -ENOENT;
	n = elf_file_read(f, f->str_off + s->name, raw,
			  CC_MIN(sizeof(raw) - 1, f->str_len - s->name));
	if (n <= 0 || !raw[0])
		return -ENOENT;
	raw[n] = '\0';
	demangle(raw, name, name_size);
	*ret_off = vaddr - s->addr;
	return 0;
}

static ssize_t read_frames(void *ctx, bool debug, uint64_t off, void *buf, size_t len)
{
	struct elf_file *f = ctx;

	return elf_file_read(f, (debug ? f->debug_frame.off : f->eh_off) + off, buf, len);
}

static bool guess_row(void *ctx, uint64_t vaddr, bool called, struct cfi_row *row)
{
	return code_row(ctx, vaddr, called, row);
}

static const struct cfi_row *row_at(struct elf_file *f, uint64_t vaddr)
{
	const struct cfi_source s = { .fdes = f->fdes,
				      .fde_cnt = f->fde_cnt,
				      .len = f->eh_len,
				      .debug_len = f->debug_frame.len,
				      .read = read_frames,
				      .guess = guess_row,
				      .ctx = f };

	const struct cfi_arch *arch = cfi_arch(f->machine);

	if (!f->cfi && (!arch || cfi_new(arch, &f->cfi)))
		return NULL;
	return cfi_row(f->cfi, &s, vaddr);
}

const struct cfi_row *elf_file_cfi_row(struct elf_file *f, uint64_t vaddr)
{
	return f->fde_cnt ? row_at(f, vaddr) : NULL;
}

static uint64_t code_key(uint64_t vaddr, bool called)
{
	return vaddr | CFI_BY_CODE | (called ? CFI_CALLED : 0);
}

const struct cfi_row *elf_file_code_row(struct elf_file *f, uint64_t vaddr, bool called)
{
	return row_at(f, code_key(vaddr, called));
}

void elf_file_code_wrong(struct elf_file *f, uint64_t vaddr, bool called)
{
	if (f->cfi)
		cfi_forget(f->cfi, code_key(vaddr, called));
}

int elf_file_go(struct elf_file *f, bool search, struct go_tab **ret)
{
	if (f->go_err > 0 && (search || f->maybe_go))
		f->go_err = go_tab_new(f, &f->go);
	*ret = f->go;
	return f->go_err > 0 ? -ENOEXEC : f->go_err;
}

size_t elf_file_mem(const struct elf_file *f)
{
	return sizeof(*f) + f->seg_cnt * sizeof(*f->segs) + f->fde_cnt * sizeof(*f->fdes) +
	       (f->funcs.cnt + f->objects.cnt) * sizeof(struct elf_sym) +
	       (f->cfi ? cfi_mem(f->cfi) : 0) + (f->go ? go_tab_mem(f->go) : 0) +
	       (f->blocks ? BLOCK_CNT * sizeof(*f->blocks) : 0);
}
