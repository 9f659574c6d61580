// SPDX-License-Identifier: Apache-2.0
/* What probes on Go programs cost, as it is reckoned, and what tier auto makes of it. */
#if HAVE_BPF
#include "go_cost.h"

#include <criterion/criterion.h>

Test(go_cost, traps_and_programs)
{
	const struct uprobe_price dear = { .trap = 5200, .nop = 1300 };
	const struct uprobe_price none = { 0 };
	const struct go_hits h = { .cnt = 1000 };
	const struct go_hits nops = { .cnt = 1000, .nops = 400 };
	const struct go_hits ran = { .cnt = 1000, .runs = 500, .run_ns = 600000 };

	cr_expect_eq(go_cost_of(&h, &none), 1000 * (GO_TRAP_NS + GO_PROG_NS), "as is usual");
	cr_expect_eq(go_cost_of(&h, &dear), 1000 * (5200 + GO_PROG_NS));
	cr_expect_eq(go_cost_of(&nops, &dear), 600 * 5200 + 400 * 1300 + 1000 * GO_PROG_NS);
	cr_expect_eq(go_cost_of(&nops, &none), go_cost_of(&h, &none), "no price of its own");
	cr_expect_eq(go_cost_of(&ran, &dear), 1000 * (5200 + 1200), "what a run took, each hit");
	cr_expect_eq(go_cost_of(&(struct go_hits){ 0 }, &dear), 0);
	/* counters are read one after the other */
	cr_expect_eq(go_cost_of(&(struct go_hits){ .cnt = 1, .nops = 2 }, &dear),
		     1300 + GO_PROG_NS);
}

Test(go_cost, a_nop_is_no_dearer_than_a_trap)
{
	/* kernels that emulate it; measured, so one may come out above the other */
	const struct uprobe_price p = { .trap = 500, .nop = 520 };
	const struct go_hits h = { .cnt = 10, .nops = 10 };

	cr_expect_eq(go_cost_of(&h, &p), 10 * (500 + GO_PROG_NS));
}

Test(go_cost, share_of_what_it_would_be_without)
{
	cr_expect_eq(go_cost_share(1000, 0), 0);
	cr_expect_eq(go_cost_share(0, 0), 0);
	cr_expect_eq(go_cost_share(1150, 150), 15);
	cr_expect_eq(go_cost_share(1600, 600), 60);
	cr_expect_eq(go_cost_share(1000, 999), GO_SHARE_MAX);
	cr_expect_eq(go_cost_share(1000, 1000), GO_SHARE_MAX);
	cr_expect_eq(go_cost_share(1000, 3000), GO_SHARE_MAX, "reckoned too high");
}

/* Levels after intervals with @share, busy, until it is another one; as many as @max. */
static uint32_t intervals(struct go_choice *c, bool busy, unsigned int share, int max, int *took)
{
	for (*took = 1; *took <= max; ++*took) {
		uint32_t level = go_cost_choose(c, busy, share);

		if (level != c->level) {
			*c = (struct go_choice){ .level = level };
			return level;
		}
	}
	return c->level;
}

Test(go_cost, auto_gives_up_what_is_too_dear)
{
	struct go_choice c = { 0 };
	int took;

	cr_expect_eq(intervals(&c, true, 15, 100, &took), GO_LEVEL_ALL, "within what it may");
	cr_expect_eq(intervals(&c, true, 20, 100, &took), GO_LEVEL_THIN);
	cr_expect_eq(took, 2, "not for one interval alone");
	cr_expect_eq(intervals(&c, true, 20, 100, &took), GO_LEVEL_NONE);
	cr_expect_eq(intervals(&c, true, 99, 100, &took), GO_LEVEL_NONE, "nothing is left to give");
	cr_expect_eq(intervals(&c, true, 0, 100, &took), GO_LEVEL_NONE, "it is still busy");
	cr_expect_eq(intervals(&c, false, 0, 100, &took), GO_LEVEL_ALL);
	cr_expect_gt(took, 5);
	cr_expect_eq(intervals(&c, false, 60, 100, &took), GO_LEVEL_ALL, "nobody misses it");
	cr_expect_eq(intervals(&c, true, 60, 100, &took), GO_LEVEL_NONE, "all at once");
	cr_expect_eq(took, 1);
}

/* A trap is measured where probes may be set at all; it is some hundred ns at least. */
Test(go_cost, a_trap_is_measured)
{
	struct uprobe_price p = { 0 };

	if (uprobe_measure(&p)) {
		cr_expect(!p.trap && !p.nop, "unchanged");
		return;
	}
	cr_expect(p.trap > 50 && p.trap < 1000000, "%llu", (unsigned long long)p.trap);
	cr_expect(p.nop > 50 && p.nop < 1000000, "%llu", (unsigned long long)p.nop);
}
#endif
