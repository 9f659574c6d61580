/* SPDX-License-Identifier: Apache-2.0 */
/* folded: "thread;outer;...;inner;[class] ns" lines as flamegraph.pl, inferno and speedscope read
 * them, each stack once, sorted. */
#ifndef CC_FOLDED_H
#define CC_FOLDED_H

#include <stdio.h>

#include "snapshot.h"

/* Returns 0, -ENOMEM, or -EIO when @out has an error. */
CC_NODISCARD int folded_write(const struct snapshot *s, FILE *out);
/* With who ended the wait beneath it, its stack upside down: "...;[lock];--;inner;...;outer;waker".
 */
CC_NODISCARD int folded_wakers_write(const struct snapshot *s, FILE *out);

#endif
