/* SPDX-License-Identifier: Apache-2.0 */
/* report: the text of `analyze` for people. */
#ifndef CC_REPORT_H
#define CC_REPORT_H

#include <stdio.h>

#include "snapshot.h"

/* @stacks: the stacks of each path's waits too (one request was asked for). Returns 0, or -EIO when
 * @out has an error. */
CC_NODISCARD int report_text(const struct snapshot *s, bool stacks, FILE *out);

#endif
