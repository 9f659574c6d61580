/* SPDX-License-Identifier: Apache-2.0 */
/* Things that are waited for, by number: what is kept of them and what is forgotten. */
#include <criterion/criterion.h>

#include "resource.h"

static struct mem mem;
static struct resources rs;

static void setup(void) { resources_init(&rs, &mem); }

static void teardown(void)
{
	resources_done(&rs);
	cr_expect_eq(mem.used, 0);
}

TestSuite(resource, .init = setup, .fini = teardown);

static uint32_t futex(uint64_t address) { return resources_get(&rs, RES_FUTEX, address, 0, 100); }

Test(resource, a_number_stands_for_one_thing_of_one_process)
{
	uint32_t a = futex(0x40);

	cr_assert_neq(a, 0);
	cr_expect_eq(futex(0x40), a);
	cr_expect_neq(futex(0x80), a);
	cr_expect_neq(resources_get(&rs, RES_FUTEX, 0x40, 0, 200), a, "another process");
	cr_expect_neq(resources_get(&rs, RES_FD, 0x40, 0, 100), a, "another kind");
	cr_expect_neq(resources_get(&rs, RES_FUTEX, 0x40, 1, 100), a);
	cr_expect_eq(resources_find(&rs, RES_FUTEX, 0x40, 0, 100), a);
	cr_expect_eq(resources_find(&rs, RES_FUTEX, 0x44, 0, 100), 0, "never met");
}

Test(resource, what_is_neither_named_nor_woken_for_is_forgotten)
{
	uint32_t gone = futex(0x40), woken = futex(0x80), named = futex(0xc0);

	cr_assert_eq(resource_wake(&rs, woken, (struct lock_wake){ .t = 5 }), 0);
	resources_mark(&rs, 0); /* no thing */
	resources_mark(&rs, named);
	resources_sweep(&rs);
	cr_expect_eq(resources_find(&rs, RES_FUTEX, 0x40, 0, 100), 0);
	cr_expect_eq(resources_find(&rs, RES_FUTEX, 0x80, 0, 100), woken);
	cr_expect_eq(resources_find(&rs, RES_FUTEX, 0xc0, 0, 100), named);
	cr_expect_eq(futex(0x100), gone, "its number is free");
	resources_mark(&rs, gone);
	resources_sweep(&rs); /* a mark is for one time */
	cr_expect_eq(resources_find(&rs, RES_FUTEX, 0xc0, 0, 100), 0);
	cr_expect_eq(resources_find(&rs, RES_FUTEX, 0x100, 0, 100), gone);
}

Test(resource, wakes_are_in_order_of_time_and_go_by_age)
{
	uint32_t res = futex(0x40), cnt;
	const struct lock_wake *w;

	for (cc_ns t = 5; t > 0; t--)
		cr_assert_eq(resource_wake(&rs, res, (struct lock_wake){ .t = t * 10 }), 0);
	w = resource_wakes(&rs, res, 10, 40, &cnt); /* not that at 10, that at 40 too */
	cr_assert_eq(cnt, 3);
	cr_expect_eq(w[0].t, 20);
	cr_expect_eq(w[1].t, 30);
	cr_expect_eq(w[2].t, 40);
	resources_evict(&rs, 30);
	w = resource_wakes(&rs, res, 0, 100, &cnt);
	cr_assert_eq(cnt, 3);
	cr_expect_eq(w[0].t, 30);
	cr_expect_eq(w[2].t, 50);
}
