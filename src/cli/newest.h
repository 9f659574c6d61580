/* SPDX-License-Identifier: Apache-2.0 */
/* newest: commands from one thread to another, copied, the newest wins. Neither side waits or
 * allocates: of three places one is the writer's, one the reader's, and they swap with the third.
 */
#ifndef CC_NEWEST_H
#define CC_NEWEST_H

#include <stdatomic.h>

#include "tui.h"

#define NEWEST_FRESH 4u /* nobody has read the one in the middle */

struct newest {
	struct tui_cmd place[3];
	_Atomic unsigned int middle; /* index, and NEWEST_FRESH */
	unsigned int writes, reads;  /* indices of the two threads */
};

static inline void newest_init(struct newest *n)
{
	n->writes = 0;
	n->reads = 1;
	atomic_init(&n->middle, 2);
}

static inline void newest_put(struct newest *n, const struct tui_cmd *cmd)
{
	n->place[n->writes] = *cmd;
	n->writes = atomic_exchange_explicit(&n->middle, n->writes | NEWEST_FRESH,
					     memory_order_acq_rel) &
		    3u;
}

/* The newest; it stays as it is until the next call. NULL: nothing new. */
static inline const struct tui_cmd *newest_take(struct newest *n)
{
	if (!(atomic_load_explicit(&n->middle, memory_order_relaxed) & NEWEST_FRESH))
		return NULL;
	n->reads = atomic_exchange_explicit(&n->middle, n->reads, memory_order_acq_rel) & 3u;
	return &n->place[n->reads];
}

#endif
