/* SPDX-License-Identifier: Apache-2.0 */
/* go_seed: goroutines that waited before anything was probed, from the runtime's list of all. */
#ifndef CC_GO_SEED_H
#define CC_GO_SEED_H

#include "go.h"

/* Takes those of @p that wait into the kernel's table, and tells each as a GO_TASK into @b; its
 * wait comes with the next refresh. Since when it waits the runtime notes when it collects garbage:
 * the collection before the one that found it waiting; else it is only known that it does now.
 * Probes are set: what has happened since is not overwritten. Returns how many, or -errno. */
int go_seed_parked(struct loader *l, const struct go_proc *p, struct rec_buf *b);

#endif
