/* SPDX-License-Identifier: Apache-2.0 */
/* exact: whether pieces in pre-order partition a span, and each its parent. For tests. */
#ifndef CC_TEST_EXACT_H
#define CC_TEST_EXACT_H

#include "path.h"

/* What pieces[*at..] of @depth must fill; *at moves behind them. Returns false at the first gap. */
static inline bool exact_fill(const struct cc_piece *p, size_t cnt, size_t *at, uint32_t depth,
			      cc_ns lo, cc_ns hi)
{
	cc_ns t = lo;

	while (*at < cnt && p[*at].depth == depth) {
		const struct cc_piece *x = &p[(*at)++];

		if (x->start != t || x->end <= x->start)
			return false;
		t = x->end;
		if (*at < cnt && p[*at].depth > depth &&
		    !exact_fill(p, cnt, at, depth + 1, x->start, x->end))
			return false;
	}
	return t == hi && (*at == cnt || p[*at].depth < depth);
}

static inline bool exact_pieces(const struct cc_piece *p, size_t cnt, cc_ns lo, cc_ns hi)
{
	size_t at = 0;

	return exact_fill(p, cnt, &at, 0, lo, hi) && at == cnt;
}

#endif
