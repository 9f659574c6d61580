/* SPDX-License-Identifier: Apache-2.0 */
/* crash: a fatal signal puts the terminal back before it kills. */
#ifndef CC_CRASH_H
#define CC_CRASH_H

#include <termios.h>

#include "base.h"

struct crash;

/* From now on every signal that would kill, but those that the loop reads and KILL, first writes
 * @text to stdout and gives stdin the modes @saved, then does what it did before. One at a time.
 * NULL: out of memory. */
struct crash *crash_arm(const struct termios *saved, const char *text, size_t len);
/* A thread whose stack overflows needs another one for its handler: called on that thread, with
 * memory that lives as long as it; see crash_stack_size(). */
void crash_thread_stack(void *stack, size_t size);
size_t crash_stack_size(void);
void crash_disarm(struct crash *k); /* NULL is a no-op */

#endif
