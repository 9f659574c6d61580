/* SPDX-License-Identifier: Apache-2.0 */
/* go_check: whether the offsets of a Go program are true, by following them in its memory. */
#ifndef CC_GO_CHECK_H
#define CC_GO_CHECK_H

#include "go.h"

/* Follows every thread's g to its m and back. *ret_good threads led to themselves, *ret_bad did
 * not; those that are no threads of the Go runtime count as neither. Reading is a race with a
 * running thread, so what is bad is looked at again. Returns 0 or -errno. */
int go_check_threads(struct loader *l, struct go_proc *p, uint32_t *ret_good, uint32_t *ret_bad);

/* The stack of the goroutine whose g is at @g, if it is parked and still is afterwards, as a STACK
 * record into @b. Returns its key; 0: not to be had. */
uint64_t go_check_stack(const struct go_proc *p, uint64_t g, struct rec_buf *b);

#endif
