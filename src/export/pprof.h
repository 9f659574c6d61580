/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: a gzipped profile.proto of the requests of a snapshot, for `go tool pprof` and everything
 * that reads it. Sample types waits/count and critical_wait/nanoseconds; labels request, class,
 * confidence (H, M, L) and task.
 */
#ifndef CC_PPROF_H
#define CC_PPROF_H

#include <stdio.h>

#include "snapshot.h"

/* Returns 0, -ENOMEM, or -EIO when @out has an error. The same snapshot gives the same bytes. */
CC_NODISCARD int pprof_write(const struct snapshot *s, FILE *out);

#endif
