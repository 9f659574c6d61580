/* SPDX-License-Identifier: Apache-2.0 */
/* stats: what the kernel programs cost and how full the rings are; see loader_stats() in loader.h.
 */
#ifndef CC_STATS_H
#define CC_STATS_H

#include "loader_int.h"

/* Runs that the kernel skipped because the program was running already, over all programs. */
uint64_t stats_recursion_misses(struct loader *l);

/* Runs of programs of uprobes, and what they took; both 0 unless the kernel counts it. */
void stats_uprobes(struct loader *l, uint64_t *ret_runs, cc_ns *ret_ns);

void stats_health(struct cc_source *s, struct cc_source_health *ret);

#endif
