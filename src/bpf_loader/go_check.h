/* SPDX-License-Identifier: Apache-2.0 */
/* go_check: looks into the memory of a Go process: its threads' goroutines, a parked one's stack.
 */
#ifndef CC_GO_CHECK_H
#define CC_GO_CHECK_H

#include "go.h"

/* The threads of @p and the word in each where it keeps its goroutine: what judges the offsets.
 * Returns how many, 0 if they cannot be read. */
int go_check_sample(struct loader *l, const struct go_proc *p, struct loader_go_sample *ret,
		    size_t max);

/* @len bytes of the memory of @p at @addr. False: they cannot be read. */
bool go_check_read(const struct go_proc *p, uint64_t addr, void *buf, size_t len);

/* Goroutine @goid, whose g was at @g, is no more. False also when that cannot be told. */
bool go_check_ended(const struct go_proc *p, uint64_t g, uint64_t goid);

/* The stack of the goroutine whose g is at @g, if it is parked and still is afterwards, as a STACK
 * record into @b. Returns its key; 0: not to be had. */
uint64_t go_check_stack(const struct go_proc *p, uint64_t g, struct rec_buf *b);

#endif
