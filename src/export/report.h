/* SPDX-License-Identifier: Apache-2.0 */
/* report: the text of `analyze` for people. */
#ifndef CC_REPORT_H
#define CC_REPORT_H

#include <stdio.h>

#include "snapshot.h"

/* Pieces below 1/200 of the latency are summed up, unless stacks are shown: who does not want these
 * need not have them in the snapshot (cc_query.small_part). */
#define REPORT_SMALL_PART 200

/* @stacks: the stacks of each path's waits too (one request was asked for). Returns 0, or -EIO when
 * @out has an error. */
CC_NODISCARD int report_text(const struct snapshot *s, bool stacks, FILE *out);

#endif
