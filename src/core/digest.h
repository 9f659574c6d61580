/* SPDX-License-Identifier: Apache-2.0 */
/* digest: what a path adds up to: sums by class, confidence, dominant wait and root cause. */
#ifndef CC_DIGEST_H
#define CC_DIGEST_H

#include "path.h"

/* Fills what cc_request keeps "from the path": path_sum_ns, unexplained_ns, ambiguous_ns,
 * confidence, and *@f, which it is given to keep. The site of a piece is its ustack key here.
 * Without a path all are 0 and the classes WAIT_UNKNOWN. */
void request_digest(struct cc_request *r, struct cc_found *f);

/* A number for the place of a piece: pieces of one class and resource with the same number are one
 * wait. NULL as a digest_site_fn: the ustack key. */
typedef uint64_t digest_site_fn(void *ctx, const struct cc_piece *p);

/* Dominant: the largest sum of depth-0 pieces by (class, site, resource). Root: the same over the
 * deepest known pieces beneath these. Ties go to the earlier. A wait may name many in turn (holders
 * of a lock, requests in the way): the one with the most of it is its culprit. */
void digest_dominant(const struct cc_piece *path, uint32_t cnt, digest_site_fn *site, void *ctx,
		     struct cc_dominant *dominant, struct cc_dominant *root);

/* Walks the deepest partition: for (leaf_iter_init(&it, path, cnt); leaf_iter_next(&it);) ... */
#define CC_LEAF_DEPTH 64 /* deeper ancestors share the last slot */
struct leaf_iter {
	const struct cc_piece *path;
	uint32_t cnt, next;
	uint32_t leaf; /* index of a piece without nested ones */
	uint32_t
		known; /* the deepest piece around it that is not unknown or cycle (else its top) */
	uint32_t top;  /* the depth-0 piece around it */
	uint32_t at[CC_LEAF_DEPTH]; /* ancestors by depth */
};
void leaf_iter_init(struct leaf_iter *it, const struct cc_piece *path, uint32_t cnt);
bool leaf_iter_next(struct leaf_iter *it); /* false: done */

static inline cc_ns piece_ns(const struct cc_piece *p)
{
	return p->end > p->start ? p->end - p->start : 0;
}

#endif
