/* SPDX-License-Identifier: Apache-2.0 */
/* look: a look ahead at a file that may be a scheduler trace: is it, and what does it have? */
#ifndef CC_TRACE_LOOK_H
#define CC_TRACE_LOOK_H

#include "slice.h"

struct look {
	bool waking, sched,
		headed;    /* has sched_waking; any scheduler event; a line with a header */
	bool page, marked; /* is HTML; has the mark of a trace in it */
	bool starts_at_0;
};

/* Reads the first 16 MiB at most, through @buf. Returns 0 or -errno. */
CC_NODISCARD int look_ahead(int fd, char *buf, size_t size, struct look *ret);

static inline bool look_is_trace(const struct look *k)
{
	return k->headed && k->sched && (!k->page || k->marked);
}

/* Says in @err why it is none, and what to do. Returns -EBADMSG. */
int look_refuse(int fd, const struct look *k, const char *path, struct cc_err *err);

/* Where in a page its trace begins. */
bool look_has_mark(struct slice line);

#endif
