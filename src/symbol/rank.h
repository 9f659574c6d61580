/* SPDX-License-Identifier: Apache-2.0 */
/* rank: which of several names of one address people know it by. */
#ifndef CC_RANK_H
#define CC_RANK_H

#include "base.h"

#include <string.h>

/* Smaller is better: fewer leading bars, then shorter ("read" before "__read"). Reads at most @max
 * bytes. */
static inline uint32_t name_rank(const char *name, size_t max)
{
	uint32_t bars = 0, len = (uint32_t)strnlen(name, CC_MIN(max, 255));

	while (bars < len && name[bars] == '_')
		bars++;
	return bars << 8 | len;
}

#endif
