/* SPDX-License-Identifier: Apache-2.0 */
/* history: the stream of the last minute, in memory, so that it can be saved after the fact.
 * What later records lean on (targets, options, names, stacks, modules, tasks) is kept for as long
 * as the budget allows; the rest goes by age and by budget, whole chunks, counted. */
#ifndef CC_HISTORY_H
#define CC_HISTORY_H

#include "source.h"

struct history;

/* Returns NULL: out of memory; caller owns. */
struct history *history_new(uint64_t max_bytes, cc_ns max_age);
void history_free(struct history *h);

/* Copies @rec. Returns 0 or -ENOMEM. */
CC_NODISCARD int history_put(struct history *h, const struct cc_rec *rec, size_t len);

/* Gives every kept record, lasting ones first, else in order. */
CC_NODISCARD int history_each(const struct history *h, cc_record_fn *fn, void *ctx);

#endif
