/* SPDX-License-Identifier: Apache-2.0 */
/* again: finds a target that has exited once it runs again: who listens on its port, who has its
 * name, or, of a target by pid, a newer process of the same program. */
#ifndef CC_AGAIN_H
#define CC_AGAIN_H

#include "cli.h"
#include "collect.h"

struct again {
	struct cli_opts opts;
	char comm[16], exe[512]; /* of the first pid; "": not known */
	uint64_t after;          /* start time of that process: later ones are meant */
};

/* Remembers who is traced. @o is borrowed for as long as it is used. */
void again_init(struct again *a, const struct cli_opts *o);

/* Opens source and resolver of @ret for the target, as tracing_open() does, quietly. Returns 0,
 * -ESRCH: it does not run yet, or another -errno. */
CC_NODISCARD int again_open(void *again, struct collect_opts *ret);

#endif
