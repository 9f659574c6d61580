/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a target's program: read as a Go one, its functions looked up, its layout judged by
 * a process whose memory are the same bytes. */
#include "elf_file.h"
#include "fuzz.h"
#include "go_bin.h"
#include "go_tab.h"

#include <string.h>

#define LOOK 64 /* functions */

struct memory {
	const uint8_t *p;
	size_t len;
};

static bool read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct memory *m = ctx;

	if (addr > m->len || len > m->len - addr)
		return false;
	memcpy(buf, m->p + addr, len);
	return true;
}

static void look_at(struct go_tab *tab, uint64_t pc)
{
	struct go_place places[8];
	uint32_t size;
	uint8_t flags;
	size_t n = go_tab_places(tab, pc, places, 8);

	for (size_t i = 0; i < n; i++) {
		if (strlen(places[i].name) >= GO_NAME_MAX || strlen(places[i].file) >= GO_NAME_MAX)
			abort();
	}
	(void)go_tab_frame(tab, pc, &size, &flags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char path[32];
	int fd = fuzz_file(data, len, path);
	struct go_bin_opts o = { .offsets = len && data[0] == '{' ? path : NULL };
	struct go_bin *b;
	struct go_tab *tab;
	struct cc_err err;
	int res = go_bin_open(dup(fd), &o, &b, &err);

	if (res && res != -12 && !*err.msg)
		abort(); /* refused without a word */
	if (!res && !elf_file_go(b->file, true, &tab)) {
		struct memory m = { data, len };
		struct go_live live = { .read = read_memory, .ctx = &m, .t = &b->t, .tab = tab };
		struct go_sample s[2] = { { 1, 8 }, { 2, 16 } };
		struct go_verdict v;
		struct go_layout l;
		struct go_func fn;

		for (uint32_t i = 0; i < CC_MIN(go_tab_cnt(tab), LOOK); i++) {
			if (!go_tab_func_at(tab, i, &fn))
				continue;
			look_at(tab, fn.entry);
			look_at(tab, fn.entry + (fn.end - fn.entry) / 2);
			look_at(tab, fn.end - 1);
		}
		(void)!go_live_check(&live, &b->t.layout, s, 2, &v);
		(void)!go_live_derive(&live, s, 2, &l, v.why, sizeof(v.why));
	}
	if (!res)
		go_bin_free(b);
	close(fd);
	return 0;
}
