/* SPDX-License-Identifier: Apache-2.0 */
/* paths: the pieces of a request that the engine keeps, for a test to look at. */
#ifndef CC_TEST_PATHS_H
#define CC_TEST_PATHS_H

#include "path.h"

/* Holds until the sixteenth call after it. */
static inline const struct cc_piece *path_of(const struct cc_request *r)
{
	static struct path_buf buf[16];
	static unsigned int next;

	return request_path(r, &buf[next++ % 16]);
}

#endif
