/* SPDX-License-Identifier: Apache-2.0 */
/* markdown: one request's story, to paste into an incident. Names cannot break out of their place:
 * all that Markdown or HTML would act on is escaped. */
#ifndef CC_MARKDOWN_H
#define CC_MARKDOWN_H

#include <stdio.h>

#include "snapshot.h"

/* Returns 0, or -EIO when @out has an error. */
CC_NODISCARD int markdown_request(const struct snapshot *s, const struct snap_request *r,
				  FILE *out);

#endif
