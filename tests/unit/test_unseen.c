// SPDX-License-Identifier: Apache-2.0
/* What the scheduler's own account says of switches that were not shown. */
#include "../../bpf/unseen.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>

/* Off since 100, and leaves a CPU at 900. */
static struct unseen came(uint64_t wake, uint64_t noted, uint32_t runs)
{
	return (struct unseen){ .out = 100,
				.in = 50,
				.now = 900,
				.wake = wake,
				.noted = noted,
				.runs = 7,
				.runs_now = 7 + runs };
}

/* On a CPU since 1 ms, and comes to one at 9 ms, having run for @ran. */
static struct unseen left(uint64_t ran, uint64_t wake, uint64_t noted, uint32_t runs)
{
	return (struct unseen){ .out = 500,
				.in = 1000000,
				.now = 9000000,
				.wake = wake,
				.noted = noted,
				.ran = ran,
				.runs = 7,
				.runs_now = 7 + runs };
}

Test(unseen, it_came_when_the_scheduler_put_it_there)
{
	struct unseen woken = came(300, 400, 1), preempted = came(0, 400, 1);

	cr_expect_eq(unseen_in(&woken), 400);
	cr_expect_eq(unseen_in(&preempted), 400);
}

Test(unseen, it_came_no_earlier_than_it_was_woken)
{
	struct unseen u = came(300, 299, 1);

	cr_expect_eq(unseen_in(&u), 300, "clocks of two CPUs");
}

Test(unseen, which_of_two_runs_it_was_is_not_known)
{
	struct unseen twice = came(300, 400, 2), never = came(300, 400, 0);
	struct unseen later = came(300, 900, 1);

	cr_expect_eq(unseen_in(&twice), 0, "it was off between");
	cr_expect_eq(unseen_in(&never), 0, "the account does not know of it");
	cr_expect_eq(unseen_in(&later), 0);
}

Test(unseen, it_left_for_sleep_when_it_had_run_its_time)
{
	struct unseen u = left(2000000, 7000000, 7000100, 1);
	bool preempt = true;

	cr_expect_eq(unseen_out(&u, &preempt), 3000000);
	cr_expect(!preempt, "it was woken");
}

Test(unseen, it_was_preempted_when_it_was_queued)
{
	struct unseen u = left(2000000, 0, 3000400, 1),
		      old_wake = left(2000000, 900000, 3000400, 1);
	bool preempt = false;

	cr_expect_eq(unseen_out(&u, &preempt), 3000400);
	cr_expect(preempt);
	preempt = false;
	cr_expect_eq(unseen_out(&old_wake, &preempt), 3000400);
	cr_expect(preempt, "that wake ended the wait before");
}

Test(unseen, a_wake_that_it_ran_on_after_put_it_to_no_sleep)
{
	struct unseen u = left(2000000, 1500000, 3000400, 1);
	bool preempt = false;

	cr_expect_eq(unseen_out(&u, &preempt), 3000400);
	cr_expect(preempt);
}

Test(unseen, neither_woken_nor_queued_when_it_left_is_not_known)
{
	struct unseen late = left(2000000, 0, 3000000 + UNSEEN_SLACK_NS + 1, 1);
	struct unseen early = left(2000000, 0, 2999999, 1), none = left(2000000, 0, 0, 1);
	struct unseen twice = left(2000000, 7000000, 7000100, 2);
	struct unseen full = left(8000000, 0, 9000000, 1);
	bool preempt;

	cr_expect_eq(unseen_out(&late, &preempt), 0);
	cr_expect_eq(unseen_out(&early, &preempt), 0);
	cr_expect_eq(unseen_out(&none, &preempt), 0);
	cr_expect_eq(unseen_out(&twice, &preempt), 0, "another run between was not shown either");
	cr_expect_eq(unseen_out(&full, &preempt), 0, "it ran all the time");
}
