/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame: the requests of a snapshot as weighted stacks, for pprof and folded stacks alike.
 *
 * One sample per deepest known piece: its kernel and user frames, then, for each piece around it, a
 * frame that says what waited ("[lock: waits for worker/7]") and that piece's own frames, and last
 * the thread that the time belongs to. So the times of all samples of a request add up to its path,
 * and a lock's time stands below what its holder did meanwhile.
 */
#ifndef CC_FLAME_H
#define CC_FLAME_H

#include "snapshot.h"

#define FLAME_FRAMES 512 /* outer ones are left out beyond */
#define FLAME_TEXT 160

struct flame_frame {
	const char *text;   /* a function, or "[...]"; not NUL-terminated: see len */
	uint32_t len;       /* of text without "+0x..": readers of profiles merge by function */
	const char *module; /* "" none */
	uint64_t ip;        /* 0: a "[...]" */
	const struct snap_mapping *mapping; /* NULL: none */
	bool inlined;                       /* into the frame after it, at the same ip */
};

struct flame_sample {
	uint32_t cnt;
	struct flame_frame frames[FLAME_FRAMES]; /* innermost first; borrowed for the call */
	unsigned int cls;                        /* enum wait_class */
	cc_ns ns;
	const struct snap_piece *piece;
	const struct snap_request *request;
};

/* A frame as it stands in samples. */
void flame_frame_of(const struct snapshot *s, const struct snap_frame *x, struct flame_frame *ret);

typedef int flame_fn(void *ctx, const struct flame_sample *sample); /* < 0 ends it */

/* Returns 0, -ENOMEM, or what @fn returned. */
CC_NODISCARD int flame_each(const struct snapshot *s, flame_fn *fn, void *ctx);

#endif
