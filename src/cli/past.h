/* SPDX-License-Identifier: Apache-2.0 */
/* past: a second engine that knows what the first one knew at a time: the kept records up to then,
 * fed again. What it is asked is what it would have been asked then. */
#ifndef CC_PAST_H
#define CC_PAST_H

#include "engine.h"
#include "history.h"

struct past;

/* Returns NULL: out of memory. @h is borrowed. */
struct past *past_new(const struct engine_opts *o, const struct history *h);
void past_free(struct past *p); /* NULL is a no-op */

/* Goes towards the TICK whose watermark is nearest to @to by one refresh, or begins again when it
 * is beyond that. Returns 1: call again; 0: it is there; -ENOMEM. */
CC_NODISCARD int past_go(struct past *p, cc_ns to);

struct engine *past_engine(struct past *p);

#endif
