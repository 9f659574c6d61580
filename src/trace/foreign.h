/* SPDX-License-Identifier: Apache-2.0 */
/* foreign: formats of other tools that are not read, known by their first bytes or their folder. */
#ifndef CC_TRACE_FOREIGN_H
#define CC_TRACE_FOREIGN_H

#include "base.h"

/* "perf.data; make text of it: perf script -i FILE >trace.txt", without a newline; NULL: not known.
 */
const char *foreign_format(const uint8_t *bytes, size_t len);

/* The same for a folder. */
const char *foreign_folder(const char *path);

#endif
