/* SPDX-License-Identifier: Apache-2.0 */
/* source: where records come from: the kernel, a file or a test. The engine never knows which. */
#ifndef CC_SOURCE_H
#define CC_SOURCE_H

#include "base.h"
#include "event.h"

/* Takes one record of @len bytes, borrowed for the call. A negative return ends the poll with it.
 */
typedef int cc_record_fn(void *ctx, const struct cc_rec *rec, size_t len);

/* How a live source is: for people, outside the stream. */
struct cc_source_health {
	double ring_fill; /* fullest since the last call, 0..1 */
	uint32_t probe_cnt;
	struct {
		const char *name, *place; /* borrowed from the source */
		bool attached;
		uint64_t skipped; /* runs that the kernel left out */
	} probe[40];
};

struct cc_source;
struct cc_source_ops {
	/* Gives what is there within @timeout_ms (0: do not wait). Returns the number of records,
	 * 0 when none came in time, -ENODATA at the end of a file or when every target is gone,
	 * another -errno on failure. Live: a TICK record ends each refresh interval. */
	int (*poll)(struct cc_source *s, int timeout_ms, cc_record_fn *fn, void *ctx);
	/* Asks for the last records (stop iterators, final TICK) through @fn. May be NULL. */
	int (*stop)(struct cc_source *s, cc_record_fn *fn, void *ctx);
	/* May be NULL. */
	void (*health)(struct cc_source *s, struct cc_source_health *ret);
	void (*free)(struct cc_source *s);
};
struct cc_source {
	const struct cc_source_ops *ops;
};

static inline void cc_source_free(struct cc_source *s)
{
	if (s)
		s->ops->free(s);
}

#endif
