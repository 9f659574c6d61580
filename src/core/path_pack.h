/* SPDX-License-Identifier: Apache-2.0 */
/* path_pack: a path as it is kept: some ten bytes a piece in place of 184, for most of a piece is
 * as in the one of its class before it. */
#ifndef CC_PATH_PACK_H
#define CC_PATH_PACK_H

#include "mem.h"
#include "path.h"

struct pack_buf { /* grows; all zero is an empty one */
	uint8_t *p;
	uint32_t cnt, cap;
};

/* Packs @cnt pieces, the first of which begins at @start, and what they add up to. @scratch: of the
 * caller, used again and again. NULL: no memory. */
struct kept_path *path_pack(struct mem *mem, struct pack_buf *scratch, const struct cc_piece *p,
			    uint32_t cnt, cc_ns start, const struct cc_found *found);
void path_unkeep(struct mem *mem, struct kept_path *k); /* NULL is a no-op */

#endif
