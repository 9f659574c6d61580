/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own record of where its parts lie (runtime.moduledata): where addresses of
 * functions count from, which the table itself does not tell from Go 1.26 on, nor rightly in a
 * PIE or with another linker; and where funcdata lies. */
#include "go_image.h"
#include "go_tab_int.h"

#include <errno.h>
#include <string.h>

#define WORDS 64 /* of moduledata that are read */
enum {           /* words of it, Go 1.18 to 1.27 */
       MOD_NAMES = 1,
       MOD_MINPC = 20,
       MOD_MAXPC,
       MOD_TEXT,
       MOD_ETEXT,
       MOD_GOFUNC_FIRST = 36, /* 38 in 1.18, 40 from 1.20, 43 in 1.27 */
       MOD_GOFUNC_LAST = 52
};
#define PROBES 24         /* functions whose inlined calls are tried */
#define PROBE_SPAN 200000 /* functions looked at for them */

struct hunt {
	struct go_tab *t;
	const struct go_image *img;
	uint64_t words[WORDS];
	uint32_t first, last; /* entries of the table */
};

static bool right(const struct hunt *h)
{
	const uint64_t *w = h->words;
	const struct elf_seg *s = elf_file_seg(h->t->f, w[MOD_TEXT]);

	return s && s->exec && w[MOD_MINPC] == w[MOD_TEXT] + h->first &&
	       w[MOD_MAXPC] == w[MOD_TEXT] + h->last && w[MOD_MAXPC] > w[MOD_MINPC] &&
	       w[MOD_MAXPC] - s->vaddr <= s->memsz;
}

static bool hunt_word(void *ctx, uint64_t vaddr, const uint64_t *w)
{
	struct hunt *h = ctx;

	if (w[0] != h->t->base || w[MOD_NAMES] != h->t->base + h->t->names)
		return false;
	memset(h->words, 0, sizeof(h->words));
	return go_image_read(h->img, vaddr, h->words, sizeof(h->words)) >=
		       (MOD_GOFUNC_FIRST * (ssize_t)sizeof(uint64_t)) &&
	       right(h);
}

/* Whether what is told of calls inlined into @fn makes sense if funcdata is where t->gofunc says.
 */
static bool inline_right(struct go_tab *t, const struct go_func *fn)
{
	struct go_call c;
	char before = '\0', first;

	if (!go_tab_call(t, fn, 0, &c) || c.parent_pc >= fn->end - fn->entry ||
	    c.name >= t->cus - t->names)
		return false;
	/* a name begins behind the end of another one */
	return (!c.name || go_tab_bytes(t, t->names + c.name - 1, &before, 1)) && !before &&
	       go_tab_bytes(t, t->names + c.name, &first, 1) && first;
}

/* The word that funcdata counts from has moved several times: the one by which all that is told of
 * inlined calls makes sense is it. */
static void find_gofunc(struct go_tab *t, const uint64_t *words)
{
	struct go_func probe[PROBES];
	size_t cnt = 0;

	for (uint32_t i = 0; i < CC_MIN(t->cnt, PROBE_SPAN) && cnt < PROBES; i++) {
		if (go_tab_func_at(t, i, &probe[cnt]) && go_tab_has_inline(t, &probe[cnt]))
			cnt++;
	}
	for (size_t w = MOD_GOFUNC_FIRST; cnt && w <= MOD_GOFUNC_LAST; w++) {
		size_t ok = 0;

		t->gofunc = words[w];
		while (ok < cnt && words[w] && inline_right(t, &probe[ok]))
			ok++;
		if (ok == cnt)
			return;
	}
	t->gofunc = 0;
}

int go_tab_find_module(struct go_tab *t, const struct go_image *img, uint64_t start_told)
{
	struct hunt h = { .t = t, .img = img };
	int found;

	if (!go_tab_bytes(t, t->funcs, &h.first, sizeof(h.first)) ||
	    !go_tab_bytes(t, t->funcs + (uint64_t)t->cnt * 8, &h.last, sizeof(h.last)))
		return -EBADMSG;
	found = go_image_scan(img, hunt_word, &h);
	if (found < 0)
		return found;
	t->text = found ? h.words[MOD_TEXT] : start_told;
	if (!t->text || !elf_file_seg(t->f, t->text) || !elf_file_seg(t->f, t->text)->exec)
		return -EBADMSG;
	if (found)
		find_gofunc(t, h.words);
	return 0;
}
