/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of go_tab: only go_tab*.c include it. */
#ifndef CC_GO_TAB_INT_H
#define CC_GO_TAB_INT_H

#include "elf_file.h"
#include "go_tab.h"

struct go_image;

#define GO_FRAMES 2048 /* places whose frame is remembered */

struct go_frame {
	uint64_t pc; /* 0: free */
	uint32_t size;
	uint8_t flags;
	bool known;
};

struct go_tab {
	struct elf_file *f;
	uint64_t base;   /* of the table, as linked */
	uint64_t off;    /* in the file */
	uint64_t len;    /* from there to the end of what holds it */
	uint64_t text;   /* addresses of functions count from here */
	uint64_t gofunc; /* funcdata counts from here; 0: not known, no inlined calls then */
	uint32_t cnt;
	uint32_t quantum;
	bool is_120;
	/* from base; each reaches at most to the end of the table */
	uint64_t names, cus, files, pcs, funcs;
	struct go_frame frames[GO_FRAMES];
};

/* Reads within the table. Returns false if that lies outside. */
bool go_tab_bytes(struct go_tab *t, uint64_t at, void *buf, size_t len);

/* Finds t->text and t->gofunc. Returns 0, -EBADMSG or -ENOMEM. */
CC_NODISCARD int go_tab_find_module(struct go_tab *t, const struct go_image *img,
				    uint64_t start_told);

/* The values of a table of @fn at @pc ("pcsp" and so on; @table is its offset). Returns false if it
 * has none there. */
bool go_tab_value(struct go_tab *t, const struct go_func *fn, uint32_t table, uint64_t pc,
		  int32_t *ret);

bool go_tab_has_inline(struct go_tab *t, const struct go_func *fn);

struct go_call { /* that was inlined */
	uint32_t name;
	uint32_t parent_pc; /* where it was called, from the entry of the function it went into */
};
/* The @i-th of those inlined into @fn, which must have some. Needs t->gofunc. */
bool go_tab_call(struct go_tab *t, const struct go_func *fn, uint32_t i, struct go_call *ret);

#endif
