/* SPDX-License-Identifier: Apache-2.0 */
#include "go_tab.h"
#include "go_image.h"
#include "go_tab_int.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC_12 0xfffffffbu
#define MAGIC_116 0xfffffffau
#define MAGIC_118 0xfffffff0u
#define MAGIC_120 0xfffffff1u
#define FUNC_MAX (4u << 20) /* functions: far more than any program has */
#define FTAB_CHUNK 2048

struct header { /* as it lies in the file */
	uint32_t magic;
	uint8_t pad[2], quantum, ptr_size;
	uint64_t nfunc, nfile, text;
	uint64_t names, cus, files, pcs, funcs;
};

struct ftab {
	uint32_t entry, off;
};

static bool is_magic(uint32_t magic)
{
	return magic == MAGIC_12 || magic == MAGIC_116 || magic == MAGIC_118 || magic == MAGIC_120;
}

/* The first 8 bytes of a table, of any version. */
static bool looks_right(const struct header *h)
{
	return is_magic(h->magic) && !h->pad[0] && !h->pad[1] && h->ptr_size == 8 &&
	       (h->quantum == 1 || h->quantum == 2 || h->quantum == 4);
}

bool go_tab_bytes(struct go_tab *t, uint64_t at, void *buf, size_t len)
{
	return at <= t->len && len <= t->len - at &&
	       elf_file_read(t->f, t->off + at, buf, len) == (ssize_t)len;
}

static bool ftab_at(struct go_tab *t, uint32_t i, struct ftab *ret)
{
	return go_tab_bytes(t, t->funcs + (uint64_t)i * sizeof(*ret), ret, sizeof(*ret));
}

/* Takes over a header whose offsets make sense. */
static int take_header(struct go_tab *t, const struct header *h)
{
	uint64_t room = t->len;

	if (h->magic == MAGIC_12 || h->magic == MAGIC_116)
		return -ENOTSUP;
	if (h->names > room || h->cus > room || h->files > room || h->pcs > room ||
	    h->funcs > room || h->names >= h->cus || h->cus >= h->files || h->files >= h->pcs ||
	    h->pcs >= h->funcs || !h->nfunc || h->nfunc > FUNC_MAX ||
	    h->nfunc * sizeof(struct ftab) + sizeof(uint32_t) > room - h->funcs)
		return -EBADMSG;
	t->is_120 = h->magic == MAGIC_120;
	t->quantum = h->quantum;
	t->cnt = (uint32_t)h->nfunc;
	t->names = h->names;
	t->cus = h->cus;
	t->files = h->files;
	t->pcs = h->pcs;
	t->funcs = h->funcs;
	return 0;
}

/* Tries the table at @base. */
static int try_at(struct go_tab *t, const struct go_image *img, uint64_t base)
{
	const struct elf_seg *s = elf_file_seg(t->f, base);
	struct header h;
	int err;

	if (!s || base - s->vaddr >= s->filesz ||
	    go_image_read(img, base, &h, sizeof(h)) != sizeof(h) || !looks_right(&h))
		return -ENOEXEC;
	t->base = base;
	t->off = s->off + (base - s->vaddr);
	t->len = s->filesz - (base - s->vaddr);
	err = take_header(t, &h);
	return err ? err : go_tab_find_module(t, img, h.text);
}

struct hunt { /* for a table that no section names */
	struct go_tab *t;
	const struct go_image *img;
	int err; /* of the best so far */
	unsigned int tries;
};

#define TRIES_MAX 64 /* tables that look right at first sight, but are not */

static bool hunt_word(void *ctx, uint64_t vaddr, const uint64_t *w)
{
	struct hunt *h = ctx;
	struct header head = { 0 };
	int err;

	if (!is_magic((uint32_t)*w))
		return false;
	memcpy(&head, w, sizeof(*w));
	if (!looks_right(&head))
		return false;
	err = try_at(h->t, h->img, vaddr);
	/* a damaged table says more than none */
	if (!err || h->err == -ENOEXEC)
		h->err = err;
	return !err || err == -ENOMEM || ++h->tries == TRIES_MAX;
}

static int find_table(struct go_tab *t, const struct go_image *img)
{
	struct hunt h = { .t = t, .img = img, .err = -ENOEXEC };
	int err = -ENOEXEC;

	if (t->f->go_tab_at.len)
		err = try_at(t, img, t->f->go_tab_at.addr);
	if (err != -ENOEXEC)
		return err;
	err = go_image_scan(img, hunt_word, &h);
	if (err < 0 || !h.err || h.err == -ENOMEM)
		return err < 0 ? err : h.err;
	/* 8 bytes that look right are no table yet */
	return t->f->maybe_go ? h.err : -ENOEXEC;
}

int go_tab_new(struct elf_file *f, struct go_tab **ret)
{
	struct go_tab *t;
	struct go_image img;
	int err;

	if (!f->is64 || (f->machine != EM_X86_64 && f->machine != EM_AARCH64))
		return -ENOEXEC;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->f = f;
	err = go_image_init(&img, f);
	if (!err)
		err = find_table(t, &img);
	go_image_done(&img);
	if (err) {
		go_tab_free(t);
		return err;
	}
	*ret = t;
	return 0;
}

void go_tab_free(struct go_tab *t) { free(t); }

size_t go_tab_mem(const struct go_tab *t) { return sizeof(*t); }

bool go_tab_is_120(const struct go_tab *t) { return t->is_120; }

uint32_t go_tab_cnt(const struct go_tab *t) { return t->cnt; }

bool go_tab_func_at(struct go_tab *t, uint32_t i, struct go_func *ret)
{
	struct { /* as it lies in the file, up to the line it starts at (from 1.20) */
		uint32_t entry, name, args, deferreturn, pcsp, pcfile, pcline, npcdata, cu;
	} r;
	uint8_t tail[4]; /* id, flags, nothing, nfuncdata */
	struct ftab e, next;
	uint64_t at;

	if (i >= t->cnt || !ftab_at(t, i, &e))
		return false;
	/* the last one is followed by the end of the text alone */
	if (!go_tab_bytes(t, t->funcs + (uint64_t)(i + 1) * sizeof(e), &next, sizeof(uint32_t)))
		return false;
	at = t->funcs + e.off;
	if (next.entry <= e.entry || !go_tab_bytes(t, at, &r, sizeof(r)) ||
	    !go_tab_bytes(t, at + sizeof(r) + (t->is_120 ? 4 : 0), tail, sizeof(tail)) ||
	    r.entry != e.entry)
		return false;
	*ret = (struct go_func){
		.entry = t->text + e.entry,
		.end = t->text + next.entry,
		.data = at + sizeof(r) + (t->is_120 ? 4 : 0) + sizeof(tail),
		.name = r.name,
		.pcsp = r.pcsp,
		.pcfile = r.pcfile,
		.pcline = r.pcline,
		.npcdata = r.npcdata,
		.cu = r.cu,
		.flags = tail[1],
		.nfuncdata = tail[3],
	};
	return true;
}

bool go_tab_func(struct go_tab *t, uint64_t pc, struct go_func *ret)
{
	uint32_t lo = 0, hi = t->cnt;
	struct ftab e;

	if (pc < t->text || pc - t->text > UINT32_MAX)
		return false;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (!ftab_at(t, mid, &e))
			return false;
		if (e.entry <= pc - t->text)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && go_tab_func_at(t, lo - 1, ret) && pc >= ret->entry && pc < ret->end;
}

void go_tab_name(struct go_tab *t, uint32_t name, char *buf, size_t cap)
{
	uint64_t room = t->cus - t->names;
	size_t want = name < room ? CC_MIN(cap - 1, room - name) : 0;

	if (!go_tab_bytes(t, t->names + name, buf, want))
		want = 0;
	buf[want] = '\0';
}

/* Calls @each for all names, one pass: the name and where it is. */
static int each_name(struct go_tab *t, void (*each)(void *ctx, const char *name, uint32_t at),
		     void *ctx)
{
	uint64_t len = CC_MIN(t->cus - t->names, (uint64_t)UINT32_MAX);
	char buf[4096];

	for (uint64_t at = 0; at < len;) {
		size_t n = CC_MIN(len - at, sizeof(buf)), used = 0;

		if (!go_tab_bytes(t, t->names + at, buf, n))
			return -EBADMSG;
		while (used < n) {
			const char *nul = memchr(buf + used, '\0', n - used);

			if (!nul)
				break;
			each(ctx, buf + used, (uint32_t)(at + used));
			used = (size_t)(nul - buf) + 1;
		}
		at += used ? used : n; /* a name longer than this is none of ours */
	}
	return 0;
}

/* ret[i] is the first function whose name is at @want[i]; entry 0: there is none. */
static int find_funcs(struct go_tab *t, const uint32_t *want, size_t cnt, struct go_func *ret)
{
	struct ftab tab[FTAB_CHUNK];

	memset(ret, 0, cnt * sizeof(*ret));
	for (uint32_t i = 0; i < t->cnt && cnt; i += FTAB_CHUNK) {
		uint32_t n = CC_MIN(t->cnt - i, FTAB_CHUNK);

		if (!go_tab_bytes(t, t->funcs + (uint64_t)i * sizeof(tab[0]), tab,
				  n * sizeof(tab[0])))
			return -EBADMSG;
		for (uint32_t j = 0; j < n; j++) {
			uint32_t name;

			if (!go_tab_bytes(t, t->funcs + tab[j].off + 4, &name, sizeof(name)))
				continue;
			for (size_t k = 0; k < cnt; k++) {
				if (want[k] == name && name != UINT32_MAX && !ret[k].entry &&
				    !go_tab_func_at(t, i + j, &ret[k]))
					memset(&ret[k], 0, sizeof(ret[k]));
			}
		}
	}
	return 0;
}

struct by_name {
	const char *const *names;
	size_t cnt;
	uint32_t at[GO_BY_NAME_MAX]; /* UINT32_MAX: not there */
};

static void note_name(void *ctx, const char *name, uint32_t at)
{
	struct by_name *b = ctx;

	for (size_t i = 0; i < b->cnt; i++) {
		if (b->names[i][0] == name[0] && !strcmp(b->names[i], name))
			b->at[i] = at;
	}
}

int go_tab_by_name(struct go_tab *t, const char *const *names, size_t cnt, struct go_func *ret)
{
	struct by_name b = { .names = names, .cnt = cnt };
	int err;

	if (cnt > GO_BY_NAME_MAX)
		return -EINVAL;
	memset(b.at, 0xff, sizeof(b.at));
	memset(ret, 0, cnt * sizeof(*ret));
	err = each_name(t, note_name, &b);
	return err ? err : find_funcs(t, b.at, cnt, ret);
}

struct by_match {
	bool (*match)(const char *name, size_t len);
	size_t cnt;
	uint32_t at[GO_BY_NAME_MAX];
};

static void note_match(void *ctx, const char *name, uint32_t at)
{
	struct by_match *b = ctx;

	if (!b->match(name, strlen(name)))
		return;
	if (b->cnt < GO_BY_NAME_MAX)
		b->at[b->cnt] = at;
	b->cnt++;
}

int go_tab_by_match(struct go_tab *t, bool (*match)(const char *name, size_t len),
		    struct go_func *ret, size_t *ret_cnt)
{
	struct by_match b = { .match = match };
	int err = each_name(t, note_match, &b);

	*ret_cnt = b.cnt;
	return err ? err : find_funcs(t, b.at, CC_MIN(b.cnt, (size_t)GO_BY_NAME_MAX), ret);
}
