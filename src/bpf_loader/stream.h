/* SPDX-License-Identifier: Apache-2.0 */
/* stream: the records that the loader itself writes: who and how is traced, counters, losses, TICK.
 */
#ifndef CC_STREAM_H
#define CC_STREAM_H

#include "loader_int.h"

/* Each returns 0 or the negative return of @fn (or -errno of a map read). */
int stream_options(struct loader *l, cc_record_fn *fn, void *ctx); /* OPTION, NAME(HOST), notes */
int stream_targets(struct loader *l, cc_record_fn *fn, void *ctx); /* TARGETs not told yet */
int stream_counters(struct loader *l, cc_record_fn *fn, void *ctx);
int stream_losses(struct loader *l, cc_record_fn *fn, void *ctx);
int stream_go_tier(struct loader *l, cc_record_fn *fn, void *ctx); /* OPTION, when it changes */
int stream_note(const char *text, cc_record_fn *fn, void *ctx);    /* a line for the user */
int stream_tick(struct loader *l, bool last, cc_record_fn *fn, void *ctx);

/* Counters by CC_CNT_*, summed over CPUs. 0 or -errno. */
int stream_read_counters(struct loader *l, uint64_t ret[CC_BPF_CNT_MAX]);

/* The name of process @tgid, filled up with NULs; empty: not to be had. */
void stream_read_comm(uint32_t tgid, char comm[CC_COMM_LEN]);

#endif
