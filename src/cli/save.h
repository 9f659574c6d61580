/* SPDX-License-Identifier: Apache-2.0 */
/* save: what `w` writes: a pprof profile, its text, and the recording, side by side; or one file of
 * another form. */
#ifndef CC_SAVE_H
#define CC_SAVE_H

#include <sys/types.h>

#include "collect.h"
#include "tui.h"

struct save_told {
	int err;
	char msg[200]; /* for the user: which files, or why not */
};

struct save_job;

/* Caller owns it, and it owns @fd, the end of a pipe on which a struct save_told comes when it is
 * done, and is closed then. NULL: out of memory, and @fd is still the caller's. */
struct save_job *save_job_new(const struct tui_save *what, int fd);
void save_job_free(struct save_job *j); /* NULL is a no-op */

/* Saves in a process of its own, which has engine and history as they are now: this thread goes on
 * collecting. Returns 0 and who that is, to be waited for; or -errno, told on the pipe too. */
CC_NODISCARD int save_fork(struct save_job *j, struct collect *c, const struct cc_query *view,
			   pid_t *ret);

/* One request's story as Markdown or JSON, for the clipboard. Returns 0 or -ENOMEM; *ret is the
 * caller's (free). */
CC_NODISCARD int save_story(const struct snapshot *s, const struct snap_request *r, bool json,
			    char **ret);

#endif
