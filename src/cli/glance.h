/* SPDX-License-Identifier: Apache-2.0 */
/* glance: a first look at a place of a dense recording, from the few records before it: what a
 * seek shows while all that belongs to the window is still being read. */
#ifndef CC_GLANCE_H
#define CC_GLANCE_H

#include "engine.h"
#include "source.h"

struct glance;

/* Reads the recording of @of beside it. Returns 0; -EOPNOTSUPP when that cannot be; -errno. Caller
 * owns *ret. */
CC_NODISCARD int glance_new(struct cc_source *of, const struct engine_opts *o, struct glance **ret);
void glance_free(struct glance *g); /* NULL is a no-op */

/* How it was at @to, from @records before it: an engine with a TICK there, few paths worked out.
 * @realtime_off: wall clock - monotonic, for where no TICK tells it. 0, or -errno. */
CC_NODISCARD int glance_go(struct glance *g, cc_ns to, uint64_t records, int64_t realtime_off);

struct engine *glance_engine(struct glance *g);
void glance_drop(struct glance *g); /* the engine; the file stays open */

#endif
