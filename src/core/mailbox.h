/* SPDX-License-Identifier: Apache-2.0 */
/* mailbox: one slot between two threads, newest wins. What lies in it has one owner: whoever
 * swapped it out last. */
#ifndef CC_MAILBOX_H
#define CC_MAILBOX_H

#include <stdatomic.h>
#include <stddef.h>

struct mailbox {
	_Atomic(void *) slot;
};

/* Gives @item away; returns what nobody had taken, which the caller frees. NULL: nothing. */
static inline void *mailbox_put(struct mailbox *m, void *item)
{
	return atomic_exchange_explicit(&m->slot, item, memory_order_acq_rel);
}

/* The newest item, now the caller's; NULL: no news. */
static inline void *mailbox_take(struct mailbox *m)
{
	return atomic_exchange_explicit(&m->slot, NULL, memory_order_acq_rel);
}

#endif
