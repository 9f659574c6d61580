/* SPDX-License-Identifier: Apache-2.0 */
#include "go_cost.h"

#define SHARE_DEAR 15  /* per cent of what the target would use without */
#define SHARE_WILD 45  /* then all at once, and soon */
#define OVER_TIMES 2   /* intervals, to give some up */
#define UNDER_TIMES 10 /* to take them up again */

cc_ns go_cost_of(const struct go_hits *h, const struct uprobe_price *price)
{
	cc_ns trap = price->trap ? price->trap : GO_TRAP_NS;
	cc_ns nop = price->nop && price->nop < trap ? price->nop : trap;
	uint64_t nops = CC_MIN(h->nops, h->cnt);
	/* counted at other moments: what one run took is surer than how many there were */
	cc_ns ran = h->runs ? h->run_ns / h->runs * h->cnt : h->cnt * GO_PROG_NS;
	return nops * nop + (h->cnt - nops) * trap + ran;
}

unsigned int go_cost_share(cc_ns used, cc_ns probes)
{
	if (used <= probes)
		return probes ? GO_SHARE_MAX : 0;
	return (unsigned int)CC_MIN(100 * probes / (used - probes), (cc_ns)GO_SHARE_MAX);
}

uint32_t go_cost_choose(struct go_choice *c, bool busy, unsigned int share)
{
	bool wild = share > SHARE_WILD;
	c->over = busy && share > SHARE_DEAR ? c->over + (wild ? OVER_TIMES : 1) : 0;
	c->under = busy ? 0 : c->under + 1;
	if (c->over >= OVER_TIMES && c->level < GO_LEVEL_NONE)
		return wild ? GO_LEVEL_NONE : c->level + 1;
	if (c->under >= UNDER_TIMES)
		return GO_LEVEL_ALL;
	return c->level;
}
