/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto: a Perfetto trace (protobuf track events; ui.perfetto.dev opens it): a track for each
 * request with its path as nested slices, a track for each thread with what it was in, and arrows
 * from who gave a wake to who was woken.
 *
 * Protobuf and not the older JSON form, which has microseconds as decimal fractions: its readers
 * round, and slices that touch no longer nest.
 */
#ifndef CC_PERFETTO_H
#define CC_PERFETTO_H

#include <stdio.h>

#include "snapshot.h"

/* Threads are in it when @s was built with cc_query.lines. Returns 0, -ENOMEM, or -EIO when @out
 * has an error. The same snapshot gives the same bytes. */
CC_NODISCARD int perfetto_write(const struct snapshot *s, FILE *out);

#endif
