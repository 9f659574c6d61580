/* SPDX-License-Identifier: Apache-2.0 */
/* save: what `w` writes: a pprof profile, its text, and the recording, side by side; or one file of
 * another form. */
#ifndef CC_SAVE_H
#define CC_SAVE_H

#include "collect.h"
#include "tui.h"

struct save_job {
	struct tui_save what;
	int err;
	char msg[200]; /* for the user: which files, or why not */
};

/* Runs on the collector's thread: engine and history are its own. */
void save_run(struct save_job *j, struct collect *c, const struct cc_query *view);

/* One request's story as Markdown or JSON, for the clipboard. Returns 0 or -ENOMEM; *ret is the
 * caller's (free). */
CC_NODISCARD int save_story(const struct snapshot *s, const struct snap_request *r, bool json,
			    char **ret);

#endif
