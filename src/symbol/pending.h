/* SPDX-License-Identifier: Apache-2.0 */
/* pending: stack keys that wait for the record they belong to, which follows soon. A fixed table:
 * what is not claimed is pushed out by later ones, and counted. */
#ifndef CC_PENDING_H
#define CC_PENDING_H

#include "base.h"

enum pending_kind { PENDING_NONE, PENDING_EXTRA, PENDING_OPEN, PENDING_SAMPLE };

struct pending_keys {
	uint32_t tid, seq;
	uint32_t kind;                                       /* enum pending_kind */
	uint32_t tgid;                                       /* of tid, if known */
	uint64_t ustack, kstack, waker_ustack, waker_kstack; /* 0: none */
};

struct pending;

CC_NODISCARD int pending_new(struct pending **ret);
void pending_free(struct pending *p);

/* The entry of this record, a fresh one if there is none. Valid until the next call. */
struct pending_keys *pending_put(struct pending *p, enum pending_kind kind, uint32_t tid,
				 uint32_t seq);

/* Takes the entry out. Returns false if there is none. */
bool pending_take(struct pending *p, enum pending_kind kind, uint32_t tid, uint32_t seq,
		  struct pending_keys *ret);

uint64_t pending_lost(const struct pending *p); /* pushed out unclaimed */

#endif
