/* SPDX-License-Identifier: Apache-2.0 */
/* session: one running `top`: the collector thread, and what the UI thread may ask of it. Between
 * the two are mailboxes, an eventfd and a stop flag; nothing else is shared. */
#ifndef CC_SESSION_H
#define CC_SESSION_H

#include "collect.h"
#include "tui.h"

struct session;

struct session_opts {
	struct collect_opts collect; /* taken as by collect_new(); on_tick and ctx are ours */
	const char *replay_path;     /* NULL: live */
	cc_ns window_ns;
	const char *filter; /* NULL: none; parses */
	/* Where the targets of a snapshot listen, for runtime.listens: asked now and then while no
	 * request came. On the collector's thread. NULL: not asked. */
	void (*ports)(const struct snapshot *s, char *buf, size_t cap);
	/* Opens the target again after it has exited; 0, -ESRCH: not yet, or -errno. On the
	 * collector's thread. NULL: cannot be asked for. */
	int (*again)(void *ctx, struct collect_opts *ret);
	void *again_ctx;
};

/* Starts the thread. Returns 0 or -errno; caller owns *ret. */
CC_NODISCARD int session_start(const struct session_opts *o, struct session **ret);

/* Stops the thread and takes the last records. Returns 0, or the error that ended the collector
 * (-ENODATA is not one). */
CC_NODISCARD int session_stop(struct session *s);
void session_free(struct session *s); /* after session_stop(); NULL is a no-op */
/* After session_stop(): waits for what is still being saved. 0 or -errno, and its line for the
 * user in @msg; "": nothing was. */
CC_NODISCARD int session_finish_save(struct session *s, char *msg, size_t cap);

int session_event_fd(const struct session *s);
extern const struct tui_ops session_tui_ops; /* ctx: the session */

#endif
