/* SPDX-License-Identifier: Apache-2.0 */
#include "go_version.h"
#include "bytes.h"
#include "go_image.h"
#include "go_tab.h"

#include <errno.h>
#include <stdlib.h>

#define INFO_MAGIC "\xff Go buildinf:"
#define INFO_INLINE 2   /* flag: the version stands right there (Go 1.18 and newer) */
#define INFO_TEXT_AT 32 /* where */
#define LEN_MIN 5       /* "go1.9" */
#define CANDS_MAX 32
#define CODE_MAX 2048

bool go_version_parse(const char *s, unsigned int *ret_minor, unsigned int *ret_patch)
{
	char *end;

	if (!strncmp(s, "devel ", 6))
		s += 6;
	if (strncmp(s, "go1.", 4) || s[4] < '0' || s[4] > '9')
		return false;
	*ret_minor = (unsigned int)strtoul(s + 4, &end, 10);
	*ret_patch = *end == '.' ? (unsigned int)strtoul(end + 1, NULL, 10) : 0;
	return *ret_minor < 1000;
}

/* Takes @len bytes as the version if they are one. */
static bool take_version(const char *s, size_t len, enum go_found by, struct go_target *ret)
{
	char text[sizeof(ret->version)];
	unsigned int minor, patch;

	if (len < LEN_MIN || len >= sizeof(text))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < ' ' || s[i] > '~')
			return false;
		text[i] = s[i];
	}
	text[len] = '\0';
	if (!go_version_parse(text, &minor, &patch))
		return false;
	memcpy(ret->version, text, len + 1);
	ret->minor = minor;
	ret->patch = patch;
	ret->version_by = by;
	return true;
}

static bool from_buildinfo(const struct go_image *img, struct go_target *ret)
{
	uint8_t buf[INFO_TEXT_AT + 1 + sizeof(ret->version)];
	ssize_t n = img->f->go_info_at.len >= sizeof(buf)
			    ? go_image_read(img, img->f->go_info_at.addr, buf, sizeof(buf))
			    : 0;
	struct bytes b = { .p = buf + INFO_TEXT_AT, .end = buf + CC_MAX(n, INFO_TEXT_AT) };

	if (n <= INFO_TEXT_AT || memcmp(buf, INFO_MAGIC, strlen(INFO_MAGIC)) ||
	    !(buf[15] & INFO_INLINE))
		return false;
	uint64_t len = take_uleb(&b);
	const uint8_t *text = take_block(&b, len);

	return text && take_version((const char *)text, len, GO_FOUND_BUILDINFO, ret);
}

struct cand {
	uint64_t at; /* of the string's header: pointer, length */
	char text[sizeof(((struct go_target *)0)->version)];
	uint8_t len;
};

struct hunt {
	const struct go_image *img;
	struct cand v[CANDS_MAX];
	size_t cnt;
};

static bool hunt_word(void *ctx, uint64_t vaddr, const uint64_t *w)
{
	struct hunt *h = ctx;
	struct cand *c = &h->v[h->cnt];
	unsigned int minor, patch;
	const struct elf_seg *s;

	if (w[1] < LEN_MIN || w[1] >= sizeof(c->text) || !w[0])
		return false;
	s = elf_file_seg(h->img->f, w[0]);
	if (!s || go_image_read(h->img, w[0], c->text, w[1]) != (ssize_t)w[1])
		return false;
	c->text[w[1]] = '\0';
	if (!go_version_parse(c->text, &minor, &patch))
		return false;
	c->at = vaddr;
	c->len = (uint8_t)w[1];
	return ++h->cnt == CANDS_MAX;
}

/* Of several strings that are versions it is the one that the runtime's start reads: it does so in
 * order that runtime.buildVersion stays in the program. */
static bool is_read_by(const struct go_image *img, const struct go_func *fn, uint64_t at)
{
	uint8_t code[CODE_MAX];
	size_t want = CC_MIN(fn->end - fn->entry, sizeof(code));
	ssize_t n = fn->entry ? elf_file_read_at(img->f, fn->entry, code, want) : 0;

	for (ssize_t i = 0; i + 5 <= n; i++) {
		int32_t rel;
		uint64_t behind = fn->entry + (uint64_t)i + sizeof(rel);

		memcpy(&rel, code + i, sizeof(rel));
		/* relative to the end of the instruction, which may have a constant of a byte;
		 * pointer or length of the string */
		for (uint64_t tail = 0; tail < 2; tail++) {
			uint64_t to = behind + tail + (uint64_t)(int64_t)rel;

			if (to == at || to == at + 8)
				return true;
		}
	}
	return false;
}

static int from_scan(const struct go_image *img, struct go_tab *tab, struct go_target *ret)
{
	static const char *const starts[] = { "runtime.schedinit" };
	struct hunt h = { .img = img };
	struct go_func start;
	const struct cand *best = NULL;
	int err = go_image_scan(img, hunt_word, &h);

	if (err < 0)
		return err;
	err = go_tab_by_name(tab, starts, 1, &start);
	for (size_t i = 0; !err && i < h.cnt; i++) {
		if (is_read_by(img, &start, h.v[i].at))
			best = &h.v[i];
	}
	if (!best && h.cnt == 1)
		best = h.v;
	return best && take_version(best->text, best->len, GO_FOUND_SCAN, ret) ? 0 : -ENOENT;
}

int go_version_find(const struct go_image *img, struct go_tab *tab, struct go_target *ret)
{
	return from_buildinfo(img, ret) ? 0 : from_scan(img, tab, ret);
}
