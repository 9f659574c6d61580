/* SPDX-License-Identifier: Apache-2.0 */
/* snap_build: a snapshot in the making. Private to snapshot.c and the snap_*.c beside it. */
#ifndef CC_SNAP_BUILD_H
#define CC_SNAP_BUILD_H

#include "labels.h"
#include "snapshot.h"

#define SNAP_ROWS 500
#define SNAP_PIECES 65536
#define SNAP_THREADS 256
#define SNAP_WAITS 500
#define SNAP_SLICES 60
#define SNAP_PORTS 64
#define SNAP_OUTSIDE 64

struct snap_build {
	const struct engine *e;
	const struct cc_query *q;
	struct snapshot *s; /* counts and pointers are set when a part is whole */
	struct labels labels;
	cc_ns lo, hi;                          /* the window: [lo, hi] */
	VEC(const struct cc_request *) done;   /* finished in the window */
	VEC(const struct cc_request *) match;  /* of these, what the filter takes */
	VEC(const struct cc_request *) flight; /* in flight, what the filter takes */
	struct agg_sorted sorted;              /* of done */
	VEC(struct snap_piece) pieces;
	uint32_t pieces_taken; /* of max_pieces: these, and those that are counted only */
	struct path_buf path;  /* of one request at a time */
};

/* Requests of the window into done, match, flight, sorted; percentiles and shares into s. */
CC_NODISCARD int snap_collect(struct snap_build *b);

/* ports[]; before snap_rows(), which keeps their requests among the rows. */
CC_NODISCARD int snap_ports(struct snap_build *b);

/* requests[] and pieces[]. */
CC_NODISCARD int snap_rows(struct snap_build *b);

/* threads[]. */
CC_NODISCARD int snap_threads(struct snap_build *b);

/* lines[] and states[], after snap_rows(). */
CC_NODISCARD int snap_lines(struct snap_build *b);

/* outside[]. */
CC_NODISCARD int snap_outside(struct snap_build *b);

/* Dominant and root, with places by name, of @r whose pieces are @path: callers of one function are
 * one place. */
void snap_dominants(struct labels *n, const struct cc_request *r, const struct cc_piece *path,
		    struct cc_dominant *dominant, struct cc_dominant *root);

#endif
