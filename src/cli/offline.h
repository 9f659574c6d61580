/* SPDX-License-Identifier: Apache-2.0 */
/* offline: a recording as one snapshot of its whole time, for analyze and export. */
#ifndef CC_OFFLINE_H
#define CC_OFFLINE_H

#include "cli.h"
#include "snapshot.h"

/* Reads @o->args[0] to its end; --request, --filter, --top and --min-confidence decide what is in.
 * @top: rows at most, 0: all; @max_of_request: pieces of each, 0: all, if --request does not ask
 * for one; @small_part: see cc_query. What is left out is told on stderr. On failure the line is
 * written and its exit code returned; a
 * --request that is not there is one. Caller owns *ret. */
CC_NODISCARD enum cli_exit offline_snapshot(const struct cli_opts *o, uint32_t top,
					    uint32_t max_of_request, uint32_t small_part,
					    struct snapshot **ret);

#endif
