/* SPDX-License-Identifier: Apache-2.0 */
/* eval_clock: what a log calls a time, by the wall clock, as the trace's. */
#ifndef CC_EVAL_CLOCK_H
#define CC_EVAL_CLOCK_H

#include "base.h"

struct eval_anchor { /* both clocks at one moment: of a TICK */
	cc_ns mono;
	uint64_t wall; /* ns since 1970 */
};

/* @wall, by the @cnt anchors @v that lie around it, in the order of mono. 0: it is not known, for
 * the clock was set between them, or says the same twice, or it lies far outside of all. */
cc_ns eval_mono_of(const struct eval_anchor *v, size_t cnt, uint64_t wall);

#endif
