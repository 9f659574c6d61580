/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: a snapshot as one JSON object on one line. Keys are a contract: append only.
 *
 * Times are absolute CLOCK_MONOTONIC ns and cookies are 64-bit, so numbers must not pass through a
 * double: cJSON keeps them as one (2^53), which is why this writes its own. Bytes depend on the
 * trace alone; what tracing costs stands under "runtime", which only a live trace has.
 */
#ifndef CC_JSON_H
#define CC_JSON_H

#include <stdio.h>

#include "snapshot.h"

/* Returns 0, or -EIO when @out has an error. */
CC_NODISCARD int json_snapshot_line(const struct snapshot *s, FILE *out);

/* One request, as in "requests". */
CC_NODISCARD int json_request_line(const struct snapshot *s, const struct snap_request *r,
				   FILE *out);

#endif
