/* SPDX-License-Identifier: Apache-2.0 */
/* go_feed: records of Go processes wait here until all that happened before them is told: which
 * goroutine a thread ran decides whose operation on a socket it was, and rings come in any order.
 */
#ifndef CC_GO_FEED_H
#define CC_GO_FEED_H

#include "event.h"
#include "mem.h"

struct engine;

struct go_queued {
	cc_ns ts;
	uint32_t off, cnt; /* in words[] */
};

struct go_feed {
	bool on;             /* a record of a goroutine has come */
	VEC(uint64_t) words; /* records, one after the other */
	VEC(struct go_queued) v;
};

/* @r is to wait. */
bool go_feed_wants(const struct go_feed *f, const struct cc_rec *r);
CC_NODISCARD int go_feed_put(struct engine *e, const struct cc_rec *r);
/* Hands over what happened before @to; everything when @all. */
CC_NODISCARD int go_feed_run(struct engine *e, cc_ns to, bool all);
void go_feed_done(struct engine *e);

#endif
