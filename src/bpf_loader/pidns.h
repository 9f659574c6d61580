/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pidns: tracing from inside a pid namespace (a container). The kernel programs know processes by
 * the numbers of the initial namespace; everything on this side of the rings (records too) has
 * those of our own. Outside of a namespace all of this does nothing.
 */
#ifndef CC_PIDNS_H
#define CC_PIDNS_H

#include "loader_int.h"

/* Added to the number of a task that has none here, so that it is nobody else's. */
#define PIDNS_OUTSIDE (1u << 30)

/* Skeleton opened, not loaded. 0, -ENOMEM, or -EOPNOTSUPP: /proc is another namespace's. */
CC_NODISCARD int pidns_prepare(struct loader *l, struct cc_err *err);

/* Learns who is there now. Also after attach, for those born between. 0 or -errno. */
CC_NODISCARD int pidns_learn(struct loader *l);

/* What the kernel programs call task @local; 0: there is none. */
uint32_t pidns_global(struct loader *l, uint32_t local);

/* @rec by our numbers: itself, or a copy that is valid until the next call. */
const struct cc_rec *pidns_local(struct loader *l, const struct cc_rec *rec, size_t len);

/* Once an interval: numbers are used again. */
void pidns_forget(struct loader *l);

void pidns_done(struct loader *l);

#endif
