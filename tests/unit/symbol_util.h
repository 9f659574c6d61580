/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of src/symbol: real processes, stopped, as SNAP records. */
#ifndef CC_TEST_SYMBOL_UTIL_H
#define CC_TEST_SYMBOL_UTIL_H

#include "unwinder.h"

#include <sys/types.h>

#define SNAP_BUF_BYTES (sizeof(struct cc_rec_snap) + 8 * CC_SNAP_KFRAMES + CC_SNAP_MAX)

/* Stops @tid with PTRACE_SEIZE and writes what the kernel side would: registers and at most
 * @max_bytes of its stack. The thread stays stopped until snap_release(). Returns 0 or -errno. */
CC_NODISCARD int snap_take(pid_t tgid, pid_t tid, size_t max_bytes, struct cc_rec_snap *ret);
/* The same of a thread that is stopped already. */
CC_NODISCARD int snap_again(pid_t tgid, pid_t tid, size_t max_bytes, struct cc_rec_snap *ret);
void snap_release(pid_t tid);

/* Waits until @tid sleeps in the kernel (state S in /proc, or D for 50 ms), at most ~5 s. Returns 0
 * or -ETIMEDOUT. */
CC_NODISCARD int wait_sleeping(pid_t tgid, pid_t tid);

/* All threads of @tgid; returns how many were written. */
size_t thread_list(pid_t tgid, pid_t *tids, size_t max);

/* An unwinder by libunwind, for one process only: it caches by address. Borrows @c. */
CC_NODISCARD int unwind_libunwind_new(struct file_cache *c, struct unwinder **ret);

/* Follows the stack of @s by the rules that its unwinding @o gave, as the kernel side would, and
 * expects the same frames and the same end. Returns the frames that no rule could say. */
unsigned int expect_rules(const struct cc_rec_snap *s, const struct unwind_out *o);

#endif
