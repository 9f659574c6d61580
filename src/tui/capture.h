/* SPDX-License-Identifier: Apache-2.0 */
/* capture: what others (a library, a child) write to stderr while the screen is on would lie across
 * it: it is kept, up to 64 KiB, and written once the screen is gone. */
#ifndef CC_CAPTURE_H
#define CC_CAPTURE_H

#include "base.h"

struct capture {
	int real_fd, pipe_fd; /* -1: stderr is not captured */
};

/* Only a stderr that is the terminal of stdout is captured. Failing to is no error. */
void capture_begin(struct capture *c);
/* Gives stderr back and writes what was kept. Safe in a signal handler; the second time a no-op. */
void capture_end(struct capture *c);

#endif
