/* SPDX-License-Identifier: Apache-2.0 */
/* collect: the collector: source -> resolver -> {recording, history, engine} -> snapshots.
 * Everything mutable belongs to whoever steps it: the collector thread in `top`, main in batch
 * commands. */
#ifndef CC_COLLECT_H
#define CC_COLLECT_H

#include "engine.h"
#include "snapshot.h"
#include "source.h"

struct collect;
struct resolver;
struct trace_writer;

/* Called at each TICK, after the engine took it in. < 0 ends the step with that error. */
typedef int collect_tick_fn(void *ctx, struct collect *c, const struct cc_rec_tick *tick);

/* Sees each resolved record, before anyone takes it in. */
typedef void collect_record_fn(void *ctx, const struct cc_rec *rec);

struct collect_opts {
	struct cc_source *source;    /* taken */
	struct resolver *resolver;   /* taken; NULL: the stream is resolved (a file) */
	struct trace_writer *writer; /* taken; NULL: not recorded */
	struct engine_opts engine;
	bool no_engine;         /* record only */
	uint64_t history_bytes; /* keep the stream of the last minute for `w`; 0: do not */
	cc_ns history_ns;
	collect_tick_fn *on_tick;     /* may be NULL */
	collect_record_fn *on_record; /* may be NULL */
	void *ctx;
};

/* Frees what @o holds, when it never gets to collect_new(). */
void collect_opts_drop(struct collect_opts *o);

/* Returns 0 or -ENOMEM; on error what was to be taken still is. Caller owns *ret. */
CC_NODISCARD int collect_new(const struct collect_opts *o, struct collect **ret);
void collect_free(struct collect *c); /* drops source, resolver; closes the recording */

/* One poll of the source. Returns the number of records, 0: none came in time; -ENODATA: the end
 * (of the file, or all targets are gone); another -errno. */
CC_NODISCARD int collect_step(struct collect *c, int timeout_ms);

/* Asks the source for its last records and feeds them. */
CC_NODISCARD int collect_stop(struct collect *c);

/* Closes the recording: index and counters. Returns 0 or the first error of writing it. */
CC_NODISCARD int collect_close_recording(struct collect *c);

/* Bytes of the recording so far, also after it was closed; without one, of the kept history. */
uint64_t collect_recorded_bytes(const struct collect *c);

/* 0, or the error that ended the recording while the rest goes on. */
int collect_recording_error(const struct collect *c);

/* Ends the engine's stream: whatever is open becomes in flight (engine_finish). */
CC_NODISCARD int collect_finish(struct collect *c);

/* Starts again from @source (taken) with an empty engine: a replay that goes back. */
CC_NODISCARD int collect_restart(struct collect *c, struct cc_source *source);

/* Starts again with the source and resolver of @o (taken), an empty engine and an empty history. */
CC_NODISCARD int collect_again(struct collect *c, const struct collect_opts *o);

/* Goes to @to in a replayed recording, with an empty engine unless reading on is as near: feed up
 * to there then. Returns 0; -EOPNOTSUPP when its source cannot; another -errno. */
CC_NODISCARD int collect_seek(struct collect *c, cc_ns to, bool onward);

/* Before a seek to @to that would take long in this recording: snapshots are of a first look there
 * (see glance.h), until collect_glance_over(). Returns 1; 0: no need, or it cannot be; -errno. */
CC_NODISCARD int collect_glance(struct collect *c, cc_ns to, bool onward);
void collect_glance_over(struct collect *c);

/* Writes the kept history as a recording, from @since on (0: all). Returns 0, -ENOENT without
 * history, -errno. */
CC_NODISCARD int collect_save_history(struct collect *c, cc_ns since, const char *path);

/* The newest engine; with collect_look(), that of the past. */
/* How far back the kept history goes; 0: there is none. */
cc_ns collect_kept_ns(const struct collect *c);

const struct engine *collect_engine(const struct collect *c);

/* Snapshots are of how it was at @to (a live trace with a history; 0: of now again). Goes there by
 * one refresh a call: returns 1 to be called again, 0 when it is there, -ENOENT without a history,
 * -ENOMEM. What comes meanwhile is kept, and is not lost for age. */
CC_NODISCARD int collect_look(struct collect *c, cc_ns to);
/* Keeps the history while somebody looks at it. */
void collect_hold(struct collect *c, bool hold);

/* Local time - UTC in seconds at the end of what @e knows: for at= in filters. */
int32_t collect_zone_offset(const struct engine *e);

/* What thread @tid did in the seconds up to @to, as if it were a request, for cc_query.span. 0,
 * -ESRCH: not known, -EINVAL: no time of it, -ENOMEM. The caller frees ret->path;
 * @found is what it adds up to and must live as long as *ret. */
CC_NODISCARD int collect_span(struct collect *c, uint32_t tid, cc_ns to, struct cc_request *ret,
			      struct cc_found *found);

/* A snapshot with `runtime` and the zone filled in. Returns 0 or -ENOMEM; caller owns *ret. */
CC_NODISCARD int collect_snapshot(struct collect *c, const struct cc_query *q,
				  struct snapshot **ret);

#endif
