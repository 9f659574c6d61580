/* SPDX-License-Identifier: Apache-2.0 */
/* picker: which of the listening servers? A screen of its own, before there is a target. */
#ifndef CC_PICKER_H
#define CC_PICKER_H

#include "canvas.h"
#include "config.h"
#include "theme.h"

struct picker_server { /* one row: a port, and all processes that listen on it */
	uint32_t port;
	uint32_t pid;  /* the one that speaks for it: the parent of the others */
	uint32_t more; /* other processes that listen there */
	uint32_t conns;
	uint64_t netns;
	char comm[32], user[33], command[160]; /* sanitized */
};

struct picker_opts {
	/* The servers now, by malloc; the picker frees them. 0 or -errno. */
	int (*list)(void *ctx, struct picker_server **ret, size_t *ret_cnt);
	void *ctx;
	const struct config *config;
	const char *theme; /* NULL: the configuration's */
	bool ascii;
};

/* Lets the user choose. Returns 0 with @ret; -ECANCELED: none was chosen; else as tui_run() or
 * what list() returned. */
CC_NODISCARD int picker_run(const struct picker_opts *o, struct picker_server *ret);

/* ---- the screen without a terminal ---- */

struct picker {
	const struct keymap *keys;
	struct picker_server *servers; /* owned */
	size_t cnt;
	uint32_t port; /* selected, with its namespace: rows come and go, the choice stays */
	uint64_t netns;
	size_t top; /* first row shown */
	bool typing;
	char filter[64];
	enum picker_end { PICKER_ON, PICKER_CHOSEN, PICKER_LEFT } end;
};

void picker_done(struct picker *p);
/* Takes over @servers (malloc). The first time the busiest is selected. */
void picker_take(struct picker *p, struct picker_server *servers, size_t cnt);
void picker_key(struct picker *p, int key, int page);
/* NULL: no row is there. */
const struct picker_server *picker_selected(const struct picker *p);
void picker_draw(struct picker *p, struct canvas *c);

#endif
