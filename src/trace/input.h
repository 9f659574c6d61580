/* SPDX-License-Identifier: Apache-2.0 */
/* input: any input as a regular file that can be sought in: "-" (stdin), pipes and gzip are copied
 * into one without a name, in $TMPDIR, as long as they last. */
#ifndef CC_TRACE_INPUT_H
#define CC_TRACE_INPUT_H

#include "base.h"

/* Returns 0 and a descriptor that the caller closes; or -errno with a line in @err. */
CC_NODISCARD int input_open(const char *path, struct cc_err *err, int *ret_fd);

/* "cannot read PATH: WHY" into @err. Returns @code. */
int input_fail(struct cc_err *err, int code, const char *path, const char *why);

#endif
