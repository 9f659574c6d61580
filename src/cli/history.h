/* SPDX-License-Identifier: Apache-2.0 */
/* history: the stream of the last minutes, in memory, to be saved or looked at after the fact.
 * What later records lean on (targets, options, names, stacks, modules, tasks) is kept for as long
 * as the budget allows; the rest goes by age and by budget, whole chunks, counted. */
#ifndef CC_HISTORY_H
#define CC_HISTORY_H

#include "codec.h"
#include "source.h"

struct history;

/* Returns NULL: out of memory; caller owns. */
struct history *history_new(uint64_t max_bytes, cc_ns max_age);
void history_free(struct history *h);

/* Keeps @rec, in few bytes, unless it is none that a file can have. Returns 0 or -ENOMEM. */
CC_NODISCARD int history_put(struct history *h, const struct cc_rec *rec, size_t len);

/* Gives kept records in the order they came: all that lasts, and of what passes by what came after
 * the last TICK at or before @since; 0: all. */
CC_NODISCARD int history_each(const struct history *h, cc_ns since, cc_record_fn *fn, void *ctx);

/* While it is held only the budget drops records, not age: somebody looks at the past. */
void history_hold(struct history *h, bool hold);

struct history_kept {
	cc_ns from, to; /* watermarks of the first and last TICK; 0: none */
	cc_ns oldest;   /* ts of the oldest record that passes by; 0: none */
	uint64_t bytes;
};
void history_kept(const struct history *h, struct history_kept *ret);

/* A place in it: all zero is the start. It stays good while records are put; of what was dropped
 * meanwhile it goes on at the oldest kept. */
struct history_at { /* large: not for the stack of a deep call */
	struct history_place {
		uint64_t seq; /* of the chunk; 0: the first */
		size_t off;
		struct codec codec;
	} chain[2];                   /* lasting, passing */
	uint64_t rec[UINT16_MAX / 8]; /* the last one given */
};

/* The record at @at, which is in @at until the next call, and moves on. NULL: no more for now. */
const struct cc_rec *history_next(const struct history *h, struct history_at *at);

#endif
