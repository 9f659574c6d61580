/* SPDX-License-Identifier: Apache-2.0 */
/* go_cost: what probes on Go programs cost their targets, and what tier auto makes of it. Here only
 * what is reckoned; nothing is measured. */
#ifndef CC_GO_COST_H
#define CC_GO_COST_H

#include "base.h"
#include "uprobe.h"

/* What the programs of probes cost, where the kernel does not count it, and a trap, where it cannot
 * be measured. Both are more on a machine that is slow at either. */
#define GO_PROG_NS 700
#define GO_TRAP_NS 550

struct go_hits {       /* of some time */
	uint64_t cnt;  /* of probes */
	uint64_t nops; /* of these, on nops */
	uint64_t runs; /* of their programs, as the kernel counts; 0: it does not */
	cc_ns run_ns;  /* that these took */
};

/* What @h cost with traps as dear as @price, ns of the target's CPU. */
cc_ns go_cost_of(const struct go_hits *h, const struct uprobe_price *price);

/* Per cent of what the target, which used @used ns of CPU, would use without the @probes ns that
 * are in it. At most GO_SHARE_MAX; that also when it should be all. */
#define GO_SHARE_MAX 999
unsigned int go_cost_share(cc_ns used, cc_ns probes);

enum { GO_LEVEL_ALL = 0, GO_LEVEL_THIN = 1, GO_LEVEL_NONE = 2 };

struct go_choice {            /* of tier auto */
	uint32_t level;       /* of thinning out: GO_LEVEL_* */
	uint32_t over, under; /* intervals in a row */
};

/* The level from now on, after an interval in which probes were @share per cent of a target that
 * was @busy or not. The caller takes it over, and clears over and under, if it is another one. */
uint32_t go_cost_choose(struct go_choice *c, bool busy, unsigned int share);

#endif
