/* SPDX-License-Identifier: Apache-2.0 */
/* wall: what time of day the times of an imported trace were. Few formats say it. */
#ifndef CC_TRACE_WALL_H
#define CC_TRACE_WALL_H

#include "slice.h"

enum wall_from {
	WALL_UNKNOWN,  /* times count from 1970 */
	WALL_WRITTEN,  /* the file was last written: taken as the trace's end */
	WALL_CAPTURED, /* perf's header: when its file was written, to a second, in the zone of TZ
			*/
	WALL_SYNC,     /* systrace's clock_sync: a moment by both clocks */
};

struct wall {
	enum wall_from from;
	int64_t off_ns;     /* wall clock - the trace's, unless WALL_UNKNOWN */
	cc_ns last_ns;      /* the trace's last event; 0: not found */
	int64_t written_ns; /* when the file was last written; 0: not known */
};

/* Before reading: what the file at @path, open as @fd, tells by itself. */
void wall_begin(struct wall *w, int fd, const char *path);

/* A comment of the trace may tell more; then true. */
bool wall_comment(struct wall *w, struct slice line);

/* An event's line that is none of the scheduler's may, too. */
bool wall_event(struct wall *w, struct slice line);

#endif
