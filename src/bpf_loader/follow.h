/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow: --follow N. Processes outside the targets that end their waits join: who wakes a target
 * itself (locks, pipes, unix sockets, signals; kernel threads too), and who listens where a target
 * calls to on this host. They explain, up to N hops from a target, FOLLOW_MAX of them with their
 * children.
 */
#ifndef CC_FOLLOW_H
#define CC_FOLLOW_H

#include "loader_int.h"

#define FOLLOW_MAX 16

/* Looks at a record on its way out: who should join? 0 or -ENOMEM. */
CC_NODISCARD int follow_record(struct loader *l, const struct cc_rec *rec, size_t len);

/* Has somebody been found who may join, and was the last joining not just now? */
bool follow_waits(const struct loader *l);

/* Adds who was found. Returns how many processes, or -errno. */
CC_NODISCARD int follow_join(struct loader *l);

/* Once an interval: one wake in each is chance. */
void follow_forget(struct loader *l);

/* A note on who joined since the last time. */
CC_NODISCARD int follow_tell(struct loader *l, cc_record_fn *fn, void *ctx);

void follow_done(struct loader *l);

#endif
