/* SPDX-License-Identifier: Apache-2.0 */
/* sample: the clocks that sample what runs, one of each CPU. */
#ifndef CC_SAMPLE_H
#define CC_SAMPLE_H

#include "loader_int.h"

struct sample_side; /* NULL: no samples */

/* Skeleton opened, not loaded: switches the program off when no samples are wanted. */
void sample_prepare(struct loader *l);

/* Loaded: starts the clocks. Not to get them is no error. Returns 0 or -ENOMEM. */
CC_NODISCARD int sample_attach(struct loader *l);

/* Why there are no samples though they were asked for; NULL: there are, or none were. */
const char *sample_note(const struct loader *l);

void sample_done(struct loader *l); /* before the skeleton is destroyed */

#endif
