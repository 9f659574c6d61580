/* SPDX-License-Identifier: Apache-2.0 */
/* path_rows: which rows a path is shown as: its pieces, short neighbours folded into one row, all
 * of it or the part zoomed into. */
#ifndef CC_PATH_ROWS_H
#define CC_PATH_ROWS_H

#include "snapshot.h"

struct path_view {
	const struct snapshot *s;
	const struct snap_piece *p; /* of the request */
	uint32_t from, to;          /* pieces shown: [from, to) */
	cc_ns lo, hi;               /* their time: lo < hi */
	cc_ns fold_ns;              /* neighbours shorter than this share a row; 0: none do */
};

struct path_row {
	uint32_t first, cnt; /* pieces, nested ones too */
	uint32_t tops;       /* of these, not nested in another one: > 1 when folded */
	cc_ns ns;            /* of the tops */
};

/* Pieces [@from, @to) (0, UINT32_MAX: all) of @r. With @room > 0, short ones are folded as far as
 * needed for so many rows, but never into less than a few. */
struct path_view path_view(const struct snapshot *s, const struct snap_request *r, uint32_t from,
			   uint32_t to, int room);

/* The row that begins at piece *@at (start: v->from); moves *@at on. False: no more. */
bool path_next(const struct path_view *v, uint32_t *at, struct path_row *ret);
int path_row_cnt(const struct path_view *v);
/* Row that has @piece; the last one for a piece beyond. */
int path_row_of(const struct path_view *v, uint32_t piece);
bool path_row_at(const struct path_view *v, int row, struct path_row *ret);

/* First piece after @at that is not nested in it. */
uint32_t path_after(const struct snap_piece *p, uint32_t at, uint32_t cnt);

#endif
