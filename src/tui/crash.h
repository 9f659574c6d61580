/* SPDX-License-Identifier: Apache-2.0 */
/* crash: a fatal signal puts the terminal back before it kills. */
#ifndef CC_CRASH_H
#define CC_CRASH_H

#include <termios.h>

#include "base.h"

struct crash;

/* From now on SEGV, ABRT, BUS, FPE, ILL and QUIT first write @text to stdout and give stdin the
 * modes @saved, then do what they did before. One at a time. NULL: out of memory. */
struct crash *crash_arm(const struct termios *saved, const char *text, size_t len);
void crash_disarm(struct crash *k); /* NULL is a no-op */

#endif
