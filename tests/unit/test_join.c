/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for several that were begun together: without one of them the others still take their time.
 */
#include <criterion/criterion.h>

#include "answer_trace.h"

static struct trace begun(void)
{
	struct trace t = trace_new();

	trace_on(&t, T0, -50);
	return t;
}

/* T0 makes T1 and T2 and waits until both are over, at 95 and 100, in the order given. */
static struct trace join(bool longest_first)
{
	struct trace t = begun();

	trace_fork(&t, T1, T0, -10, -9);
	trace_fork(&t, T2, T0, -10, -9);
	if (longest_first) {
		trace_cond_wait(&t, T0, 0x80, 0, 100, T2);
	} else {
		trace_cond_wait(&t, T0, 0x40, 0, 95, T1);
		trace_cond_wait(&t, T0, 0x80, 95, 100, T2);
	}
	trace_exit(&t, T1, 95);
	trace_exit(&t, T2, 100);
	trace_stop_on(&t, T0, 110);
	return t;
}

static cc_ns saved(const struct cc_piece *p)
{
	return (p->end - CC_MAX(p->start, CC_MIN(p->end, p->sibling_end))) / UNIT;
}

Test(join, a_join_saves_what_the_last_took_longer_than_the_one_before)
{
	struct trace t = join(true);
	struct cc_piece p = trace_walk_piece(&t, T0, 0, 100, WAIT_COND);

	cr_expect_eq(p.end - p.start, 100 * UNIT);
	cr_expect_eq(saved(&p), 5);
	trace_done(&t);
}

Test(join, in_whatever_order_they_are_joined)
{
	struct trace t = join(false);
	struct cc_piece p = trace_walk_piece(&t, T0, 0, 95, WAIT_COND);

	cr_expect_eq(saved(&p), 0, "the other one was waited for after it");
	p = trace_walk_piece(&t, T0, 95, 100, WAIT_COND);
	cr_expect_eq(saved(&p), 5);
	trace_done(&t);
}

/* R's T0 gives work to T1 and T2, which wait for it at one queue, and waits for the last. */
static struct trace fan_out(int other_nr, uint32_t other_queue)
{
	struct trace t = begun();

	trace_cond_wait(&t, T1, 0xc0, -50, 1, T0);
	if (other_nr == NR_FUTEX)
		trace_cond_wait(&t, T2, other_queue, -50, 2, T0);
	else
		trace_episode(
			&t, T2,
			(struct cc_rec_episode){ .h = { .aux = (uint16_t)other_nr, .ts = AT(2) },
						 .out = AT(-50),
						 .wake = AT(2),
						 .state = 1,
						 .waker_tid = TID(T0),
						 .waker_tgid = TGID,
						 .key = other_queue });
	trace_request(&t, R, 0, 0, T0, 110, T0);
	trace_cond_wait(&t, T0, 0x80, 3, 100, T1);
	trace_stop_off_key(&t, T2, NR_POLL, 0, 95, 120);
	trace_stop_on(&t, T0, 120);
	trace_stop_on(&t, T1, 120);
	return t;
}

Test(join, workers_of_one_queue_are_a_join_too)
{
	struct trace t = fan_out(NR_FUTEX, 0xc0);
	const struct cc_piece *p = trace_piece(&t, R, WAIT_COND);

	cr_assert_not_null(p);
	cr_expect_eq(saved(p), 5);
	trace_done(&t);
}

Test(join, who_waits_elsewhere_for_other_work_is_none_of_a_join)
{
	struct trace t = fan_out(NR_FUTEX, 0xe0);
	struct trace fd = fan_out(NR_EPOLL_WAIT, 0xc0); /* a descriptor of the same number */
	const struct cc_piece *p = trace_piece(&t, R, WAIT_COND);

	cr_assert_not_null(p);
	cr_expect_eq(saved(p), 97);
	p = trace_piece(&fd, R, WAIT_COND);
	cr_assert_not_null(p);
	cr_expect_eq(saved(p), 97);
	trace_done(&t);
	trace_done(&fd);
}
