/* SPDX-License-Identifier: Apache-2.0 */
/* Times of a log by a clock that is corrected while it is written. */
#include <criterion/criterion.h>

#include "../../src/cli/eval_clock.h"

#define WALL CC_S(1000000)

TestSuite(eval_clock, .timeout = 20);

/* It is 5 ms a second fast from the first anchor on, as when NTP hurries it. */
Test(eval_clock, one_that_is_slewed_goes_evenly_between)
{
	const struct eval_anchor v[] = { { CC_S(10), WALL },
					 { CC_S(11), WALL + CC_MS(1005) },
					 { CC_S(12), WALL + CC_MS(2010) } };

	cr_expect_eq(eval_mono_of(v, 3, WALL), CC_S(10));
	cr_expect_eq(eval_mono_of(v, 3, WALL + CC_US(502500)), CC_MS(10500));
	cr_expect_eq(eval_mono_of(v, 3, WALL + CC_US(1507500)), CC_MS(11500));
	/* before tracing told the first, and after the last */
	cr_expect_eq(eval_mono_of(v, 3, WALL - CC_US(502500)), CC_MS(9500));
	cr_expect_eq(eval_mono_of(v, 3, WALL + CC_US(2512500)), CC_MS(12500));
	cr_expect_eq(eval_mono_of(v, 3, WALL + CC_S(60)), 0);
}

Test(eval_clock, one_that_was_set_is_not_known_meanwhile)
{
	const struct eval_anchor v[] = { { CC_S(10), WALL },
					 { CC_S(11), WALL + CC_S(1) },
					 { CC_S(12), WALL + CC_S(6) },
					 { CC_S(13), WALL + CC_S(7) } };

	cr_expect_eq(eval_mono_of(v, 4, WALL + CC_MS(500)), CC_MS(10500));
	cr_expect_eq(eval_mono_of(v, 4, WALL + CC_S(3)), 0);
	cr_expect_eq(eval_mono_of(v, 4, WALL + CC_MS(6500)), CC_MS(12500));
}

Test(eval_clock, one_that_was_set_back_says_a_time_twice)
{
	const struct eval_anchor v[] = { { CC_S(10), WALL },
					 { CC_S(12), WALL + CC_S(2) },
					 { CC_S(13), WALL + CC_S(1) },
					 { CC_S(15), WALL + CC_S(3) } };

	cr_expect_eq(eval_mono_of(v, 4, WALL + CC_MS(500)), CC_MS(10500));
	cr_expect_eq(eval_mono_of(v, 4, WALL + CC_MS(1500)), 0);
	cr_expect_eq(eval_mono_of(v, 4, WALL + CC_MS(2500)), CC_MS(14500));
}

Test(eval_clock, no_line_goes_through_one_anchor)
{
	const struct eval_anchor v[] = { { CC_S(10), WALL } };

	cr_expect_eq(eval_mono_of(v, 1, WALL), 0);
	cr_expect_eq(eval_mono_of(v, 0, WALL), 0);
}
