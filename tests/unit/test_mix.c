/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread's time went to, by group of wait classes. */
#include <criterion/criterion.h>
#include <string.h>

#include "answer_trace.h"

static cc_ns group(struct trace *t, int tid, int lo, int hi, char letter)
{
	cc_ns mix[9];

	engine_task_mix(trace_engine(t), TID(tid), AT(lo), AT(hi), mix);
	return mix[strchr(WAIT_GROUPS, letter) - WAIT_GROUPS] / UNIT;
}

/* As redis' bio threads, which wait for jobs. */
Test(mix, a_thread_without_a_request_sleeps_at_a_condition_variable)
{
	struct trace t = trace_new();

	trace_cond_wait(&t, T1, 0xc0, 0, 10, T0);
	cr_expect_eq(group(&t, T1, 0, 10, 'S'), 10);
	cr_expect_eq(group(&t, T1, 0, 10, 'L'), 0);
	trace_done(&t);
}

Test(mix, at_a_lock_it_waits_with_a_request_or_without)
{
	struct trace t = trace_new();

	trace_lock_wait(&t, T1, 0x10, 0, 10, T0);
	cr_expect_eq(group(&t, T1, 0, 10, 'L'), 10);
	cr_expect_eq(group(&t, T1, 0, 10, 'S'), 0);
	trace_done(&t);
}

/* The first wait is the request's, the second begins when it has been answered. */
Test(mix, a_request_s_wait_at_a_condition_variable_is_no_sleep)
{
	struct trace t = trace_new();

	trace_request(&t, R, 0, 0, T1, 6, T1);
	trace_cond_wait(&t, T1, 0xc0, 1, 4, T0);
	trace_cond_wait(&t, T1, 0xc0, 7, 12, T0);
	cr_expect_eq(group(&t, T1, 0, 12, 'L'), 3);
	cr_expect_eq(group(&t, T1, 0, 12, 'S'), 5);
	cr_expect_eq(group(&t, T1, 0, 12, 'C'), 4);
	trace_done(&t);
}
