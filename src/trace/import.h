/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import: scheduler traces of other tools, as text, as records of event.h: perf script, ftrace,
 * trace-cmd report, systrace and its HTML. Threads become tasks. The file is read once, in order,
 * and memory is bounded by tasks and stacks, not by its length.
 *
 * What such a trace lacks is told by notes in the stream (CC_NAME_NOTE) and by CC_OPT_IMPORTED.
 */
#ifndef CC_TRACE_IMPORT_H
#define CC_TRACE_IMPORT_H

#include "base.h"
#include "event.h"

struct import;

/* Takes @fd, a regular file, also on failure. Returns 0; -EBADMSG with a line in @err that says
 * what it is instead and, for a format of another tool, which command makes text of it; another
 * -errno.
 * @path: for the line. Caller owns *ret. */
CC_NODISCARD int import_open(int fd, const char *path, struct cc_err *err, struct import **ret);
void import_free(struct import *im); /* NULL is a no-op */

/* Next record, borrowed until the next call. Returns 1; 0 at the end; -EIO, -ENOMEM. */
CC_NODISCARD int import_next(struct import *im, const struct cc_rec **ret);

#endif
