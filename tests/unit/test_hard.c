/* SPDX-License-Identifier: Apache-2.0 */
/* Hard cases of DESIGN section 5 that test_learned.c and test_known_answers.c do not have: wakes
 * that say less than they seem to, holders without a CPU, work whose owner is not sure, sleep. */
#include <criterion/criterion.h>

#include "answer_trace.h"

static bool has(const struct cc_piece *p, enum cc_evidence ev)
{
	return p && p->evidence >> ev & 1;
}

static struct trace running(int cnt)
{
	struct trace t = trace_new();

	for (int i = 0; i < cnt; i++)
		trace_on(&t, i, -50);
	return t;
}

static void stop(struct trace *t, int cnt, int at)
{
	for (int i = 0; i < cnt; i++)
		trace_stop_on(t, i, at);
}

/* ---- wakes -------------------------------------------------------------------------------- */

Test(hard, a_task_that_woke_itself_was_waited_for_by_nobody)
{
	struct trace t = running(1);

	trace_wait(&t, T0, NR_POLL, 2, 5, 6, T0);
	stop(&t, 1, 9);
	assert_walk_keep(&t, T0, 0, 9, "0:cpu[0,2) 0:cycle[2,5) 0:runq[5,6) 0:cpu[6,9)");
	cr_expect_eq(trace_walk_piece(&t, T0, 0, 9, WAIT_CYCLE).confidence, 0);
	trace_done(&t);
}

static void woken_by_kthread(struct trace *t)
{
	trace_episode(t, T0,
		      (struct cc_rec_episode){ .h = { .aux = NR_FSYNC,
						      .flags = CC_CTX_KTHREAD << CC_EP_CTX_SHIFT,
						      .ts = AT(8) },
					       .out = AT(2),
					       .wake = AT(8),
					       .state = 2,
					       .waker_tid = TID(T1),
					       .waker_tgid = TID(T1) });
}

Test(hard, a_kernel_thread_is_gone_into_when_it_is_traced)
{
	struct trace t = running(2);

	trace_irq_wait(&t, T1, NR_NONE, 3, 7, CC_CTX_IDLE, 0);
	woken_by_kthread(&t);
	stop(&t, 2, 9);
	assert_walk(&t, T0, 0, 9, "0:cpu[0,2) 1:cpu[2,3) 1:blocked[3,7) 1:cpu[7,8) 0:cpu[8,9)");
}

Test(hard, a_kernel_thread_is_named_when_it_is_not_traced)
{
	struct trace t = running(1);
	struct cc_piece p;

	woken_by_kthread(&t);
	stop(&t, 1, 9);
	assert_walk_keep(&t, T0, 0, 9, "0:cpu[0,2) 0:disk_fsync[2,8) 0:cpu[8,9)");
	p = trace_walk_piece(&t, T0, 0, 9, WAIT_FSYNC);
	cr_expect_eq(p.waker_tid, TID(T1));
	cr_expect_eq(p.waker_kind, CC_WAKER_KTHREAD);
	cr_expect(p.flags & CC_PC_NOT_TRACED);
	trace_done(&t);
}

Test(hard, a_softirq_s_thread_is_an_interrupt_too)
{
	struct trace t = running(2);
	struct cc_piece p;

	trace_irq_wait(&t, T0, NR_POLL, 2, 8, CC_CTX_KSOFTIRQD, T1);
	stop(&t, 2, 9);
	assert_walk_keep(&t, T0, 0, 9, "0:cpu[0,2) 0:poll[2,8) 0:cpu[8,9)");
	p = trace_walk_piece(&t, T0, 0, 9, WAIT_POLL);
	cr_expect_eq(p.waker_tid, 0);
	cr_expect_eq(p.waker_kind, CC_WAKER_SOFTIRQ);
	cr_expect_lt(p.confidence, 90);
	trace_done(&t);
}

/* A futex wait of @tid that its timer ended. */
static void timed_out(struct trace *t, int tid, uint32_t key, int out, int in)
{
	trace_episode(t, tid,
		      (struct cc_rec_episode){ .h = { .aux = NR_FUTEX,
						      .flags = CC_CTX_IDLE << CC_EP_CTX_SHIFT,
						      .ts = AT(in) },
					       .out = AT(out),
					       .wake = AT(in),
					       .state = 1,
					       .key = key });
	trace_extra(t, tid,
		    (struct cc_rec_extra){
			    .h = { .aux = NR_FUTEX, .flags = CC_EX_TIMEOUT, .ts = AT(in) },
			    .args = { key, 128 | 9, 2 },
			    .uaddr = key,
			    .fd = -1,
		    });
}

Test(hard, timed_slices_of_a_lock_are_one_wait_for_its_holder)
{
	struct trace t = running(2);

	timed_out(&t, T0, 0x40, 0, 10);
	timed_out(&t, T0, 0x40, 11, 20);
	trace_lock_wait(&t, T0, 0x40, 21, 25, T1);
	stop(&t, 2, 30);
	assert_walk(&t, T0, -1, 30,
		    "0:cpu[-1,0) 1:cpu[0,10) 0:cpu[10,11) 1:cpu[11,20) 0:cpu[20,21) 1:cpu[21,25) "
		    "0:cpu[25,30)");
}

Test(hard, slices_far_apart_are_two_waits)
{
	struct trace t = running(2);
	struct cc_piece p;

	timed_out(&t, T0, 0x40, 0, 10);
	trace_lock_wait(&t, T0, 0x40, 211, 225, T1);
	stop(&t, 2, 230);
	p = trace_walk_piece(&t, T0, 0, 10, WAIT_LOCK);
	cr_expect_eq(p.ended, CC_ENDED_TIMEOUT);
	cr_expect_eq(p.holder_tid, 0, "who let it go much later is not who had it");
	trace_done(&t);
}

/* T1 wakes T0 and T2 for nothing, T3 wakes T0 for something. */
static struct trace herd(int again)
{
	struct trace t = running(4);

	trace_cond_wait(&t, T0, 0xc0, 0, 10, T1);
	trace_cond_wait(&t, T2, 0xc0, 0, 10, T1);
	trace_cond_wait(&t, T0, 0xc0, again, again + 20, T3);
	stop(&t, 4, again + 30);
	return t;
}

Test(hard, a_wait_of_a_herd_ends_with_the_wake_that_was_for_it)
{
	struct trace t = herd(12);
	struct cc_piece p;

	assert_walk_keep(&t, T0, 0, 32, "3:cpu[0,10) 0:cpu[10,12) 3:cpu[12,32)");
	p = trace_walk_piece(&t, T0, 0, 32, WAIT_COND);
	cr_expect_eq(p.waker_tid, TID(T3));
	cr_expect(has(&p, CC_EV_HERD));
	cr_expect_lt(p.confidence, 90);
	trace_done(&t);
}

Test(hard, who_looks_must_wait_for_the_lock_beneath_first)
{
	struct trace t = running(4);

	trace_cond_wait(&t, T0, 0xc0, 0, 10, T1);
	trace_cond_wait(&t, T2, 0xc0, 0, 10, T1);
	trace_lock_wait(&t, T0, 0x40, 11, 13, T2);
	trace_cond_wait(&t, T0, 0xc0, 14, 34, T3);
	stop(&t, 4, 40);
	assert_walk(&t, T0, 0, 34,
		    "3:cpu[0,10) 0:cpu[10,11) 2:cpu[11,13) 0:cpu[13,14) 3:cpu[14,34)");
}

Test(hard, one_wake_of_many_is_not_sure)
{
	struct trace t = running(4);

	trace_cond_wait(&t, T0, 0xc0, 0, 10, T1);
	trace_cond_wait(&t, T2, 0xc0, 0, 10, T1);
	stop(&t, 4, 20);
	cr_expect_lt(trace_walk_piece(&t, T0, 0, 20, WAIT_COND).confidence, 90);
	cr_expect_eq(trace_walk_piece(&t, T0, 0, 20, WAIT_COND).herd, 2);
	trace_done(&t);
}

Test(hard, who_was_busy_after_a_broadcast_was_not_woken_for_nothing)
{
	struct trace t = herd(150);

	assert_walk(&t, T0, 0, 12, "1:cpu[0,10) 0:cpu[10,12)");
}

Test(hard, a_wake_for_one_that_waits_again_was_for_it)
{
	struct trace t = running(3);
	struct cc_piece first, last;

	trace_cond_wait(&t, T0, 0xc0, 0, 10, T1);
	trace_cond_wait(&t, T0, 0xc0, 12, 30, T2);
	stop(&t, 3, 40);
	assert_walk_keep(&t, T0, 0, 30, "1:cpu[0,10) 0:cpu[10,12) 2:cpu[12,30)");
	/* and yet: of a broadcast to one that is the same, and says nothing */
	first = trace_walk_piece(&t, T0, 0, 10, WAIT_COND);
	last = trace_walk_piece(&t, T0, 12, 30, WAIT_COND);
	cr_expect(has(&first, CC_EV_AGAIN) && !has(&last, CC_EV_AGAIN));
	cr_expect(first.confidence < 90 && last.confidence >= 90);
	trace_done(&t);
}

Test(hard, a_wake_at_the_moment_of_a_switch_in_counts_before_it)
{
	struct trace t = running(2);

	trace_wait(&t, T0, NR_POLL, 2, 6, 6, T1);
	trace_wait(&t, T0, NR_POLL, 6, 8, 8, T1);
	stop(&t, 2, 9);
	assert_walk(&t, T0, 0, 9, "0:cpu[0,2) 1:cpu[2,8) 0:cpu[8,9)");
}

/* ---- holders ------------------------------------------------------------------------------ */

Test(hard, a_holder_s_time_is_told_apart_running_queued_and_blocked)
{
	struct trace t = running(2);

	/* T1 has the lock: runs, is preempted, is blocked on a disk, runs and lets go */
	trace_episode_cpu(&t, T1, 2, 5, 0);
	trace_irq_wait(&t, T1, NR_FSYNC, 6, 9, CC_CTX_IDLE, 0);
	trace_lock_wait(&t, T0, 0x40, 1, 10, T1);
	stop(&t, 2, 12);
	assert_walk(&t, T0, 0, 12,
		    "0:cpu[0,1) 1:cpu[1,2) 1:runq[2,5) 1:cpu[5,6) 1:disk_fsync[6,9) 1:cpu[9,10) "
		    "0:cpu[10,12)");
}

Test(hard, a_holder_that_waits_for_another_lock_is_followed_there)
{
	struct trace t = running(3);

	trace_lock_wait(&t, T1, 0x80, 3, 8, T2);
	trace_lock_wait(&t, T0, 0x40, 1, 10, T1);
	stop(&t, 3, 12);
	assert_walk(&t, T0, 0, 12, "0:cpu[0,1) 1:cpu[1,3) 2:cpu[3,8) 1:cpu[8,10) 0:cpu[10,12)");
}

Test(hard, two_that_have_each_other_s_lock_are_a_cycle_and_end)
{
	struct trace t = running(2);

	trace_lock_wait(&t, T1, 0x80, 2, 9, T0);
	trace_lock_wait(&t, T0, 0x40, 1, 10, T1);
	stop(&t, 2, 12);
	assert_walk(&t, T0, 0, 12, "0:cpu[0,1) 1:cpu[1,2) 1:cycle[2,9) 1:cpu[9,10) 0:cpu[10,12)");
}

/* ---- whose work it was -------------------------------------------------------------------- */

/* T1 has a queue of waiters: it works in [2, 20) and then wakes Q's T2 at 20 and R's T0 at 21. */
static struct trace helper_of(int asked)
{
	struct trace t = running(3);

	trace_request(&t, Q, -10, -10, T2, 30, T2);
	trace_request(&t, R, asked, asked, T0, 30, T0);
	trace_cond_wait(&t, T1, 0xd0, -9, 1, T2);
	trace_cond_wait(&t, T2, 0xc0, 1, 20, T1);
	trace_irq_wait(&t, T1, NR_NANOSLEEP, 2, 19, CC_CTX_IDLE, 0);
	trace_on(&t, T3, -50);
	stop(&t, 4, 40);
	return t;
}

static struct trace helper(int asked)
{
	struct trace t = helper_of(asked);

	trace_cond_wait(&t, T0, 0xc8, asked, 21, T1);
	return t;
}

static struct trace helper_polled(void) /* what R's T0 waits for goes to nobody else */
{
	struct trace t = helper_of(10);

	trace_wait(&t, T0, NR_POLL, 10, 21, 21, T1);
	return t;
}

Test(hard, what_a_helper_did_for_two_at_once_is_not_sure_for_whom)
{
	struct trace t = helper(-1); /* R asked before the work began */
	const struct cc_piece *p;

	assert_path_keep(&t, R,
			 "2:queued(Q)[-1,1) 1:cpu[1,2) 1:sleep[2,19) 1:cpu[19,21) 0:cpu[21,30)");
	p = trace_piece(&t, R, WAIT_SLEEP);
	cr_expect(has(p, CC_EV_TOGETHER));
	cr_expect_lt(p->confidence, 90);
	trace_done(&t);
}

/* Two of T3's episodes are lost while T1 works: a wake by it may be one of them. */
Test(hard, where_a_wake_may_be_missing_it_is_less_sure_for_whom_a_helper_worked)
{
	struct trace t = helper_polled(), sure = helper_polled();

	trace_lost_wait(&t, T3, NR_NANOSLEEP, 15, 16, 2, 7);
	cr_expect(has(trace_piece(&t, R, WAIT_QUEUED), CC_EV_WAKE_MISSED));
	cr_expect(!has(trace_piece(&sure, R, WAIT_QUEUED), CC_EV_WAKE_MISSED));
	trace_done(&t);
	trace_done(&sure);
}

Test(hard, who_asked_after_the_work_began_waited_behind_it)
{
	struct trace t = helper(10);

	assert_path_keep(&t, R, "1:queued(Q)[10,20) 1:cpu[20,21) 0:cpu[21,30)");
	cr_expect(!has(trace_piece(&t, R, WAIT_QUEUED), CC_EV_TOGETHER));
	trace_done(&t);
}

/* T1 is done for Q's T2 at 20 and wakes all; R's T0, woken too, waits on, until 39. */
Test(hard, who_was_woken_for_nothing_was_not_worked_for)
{
	struct trace t = running(3);

	trace_request(&t, Q, -10, -10, T2, 30, T2);
	trace_request(&t, R, 5, 5, T0, 50, T0);
	trace_cond_wait(&t, T1, 0xd0, -9, 1, T2);
	trace_cond_wait(&t, T2, 0xc0, 1, 20, T1);
	trace_irq_wait(&t, T1, NR_NANOSLEEP, 2, 19, CC_CTX_IDLE, 0);
	trace_cond_wait(&t, T0, 0xc0, 6, 20, T1);
	trace_cond_wait(&t, T0, 0xc0, 22, 39, T1);
	trace_irq_wait(&t, T1, NR_NANOSLEEP, 23, 38, CC_CTX_IDLE, 0);
	stop(&t, 3, 60);
	assert_path(&t, R,
		    "0:cpu[5,6) 1:queued(Q)[6,20) 0:cpu[20,22) 1:cpu[22,23) 1:sleep[23,38) "
		    "1:cpu[38,39) 0:cpu[39,50)");
}

Test(hard, a_thread_that_was_free_had_nothing_queued)
{
	enum { FRONT = T0, SENDER = T1, STAGE = T2 };
	struct trace t = running(3);

	/* FRONT takes R in; STAGE, busy, gives it to SENDER, which had been idle all the time */
	trace_cond_wait(&t, SENDER, 0xc0, -20, 10, STAGE);
	trace_request(&t, R, 0, 0, FRONT, 12, SENDER);
	trace_stop_off(&t, FRONT, NR_EPOLL_WAIT, 2, 20);
	trace_stop_on(&t, SENDER, 20);
	trace_stop_on(&t, STAGE, 20);
	assert_path_keep(&t, R, "0:cpu[0,2) 1:ambiguous[2,10) 1:cpu[10,12)");
	cr_expect(has(trace_piece(&t, R, WAIT_AMBIGUOUS), CC_EV_ELSEWHERE));
	trace_done(&t);
}

Test(hard, behind_a_stage_the_time_before_is_nobody_s)
{
	enum { FRONT = T0, SENDER = T1, STAGE = T2 };
	struct trace t = running(3);

	/* SENDER is busy with Q when R comes, but what it does it gets from STAGE */
	trace_cond_wait(&t, SENDER, 0xc0, -20, -8, STAGE);
	trace_request(&t, Q, -15, -15, FRONT, 6, SENDER);
	trace_request(&t, R, 0, 0, FRONT, 12, SENDER);
	trace_stop_off(&t, FRONT, NR_EPOLL_WAIT, 2, 20);
	trace_stop_on(&t, SENDER, 20);
	trace_stop_on(&t, STAGE, 20);
	assert_path(&t, R, "0:cpu[0,2) 1:ambiguous[2,6) 1:cpu[6,12)");
}

/* SENDER was never idle, so that nobody is seen to give it work. But FRONT gives its own to STAGE,
 * which answers nobody: it may have been there. */
Test(hard, behind_a_stage_that_is_seen_from_the_front_too)
{
	enum { FRONT = T0, SENDER = T1, STAGE = T2 };

	for (int stage = 0; stage <= 1; stage++) {
		struct trace t = running(3);

		if (stage)
			trace_cond_wait(&t, STAGE, 0xc0, -20, -14, FRONT);
		trace_request(&t, Q, -15, -15, FRONT, 6, SENDER);
		trace_request(&t, R, 0, 0, FRONT, 12, SENDER);
		trace_stop_off(&t, FRONT, NR_EPOLL_WAIT, 2, 20);
		trace_stop_on(&t, SENDER, 20);
		trace_stop_on(&t, STAGE, 20);
		assert_path_keep(&t, R,
				 stage ? "0:cpu[0,2) 1:ambiguous[2,6) 1:cpu[6,12)"
				       : "0:cpu[0,2) 1:queued(Q)[2,6) 1:cpu[6,12)");
		trace_done(&t);
	}
}

Test(hard, a_loop_s_wait_that_ends_with_another_request_s_answer_was_not_for_this_one)
{
	enum { LOOP = T0, WORKER = T1 };
	struct trace t = running(2);

	trace_request(&t, Q, -10, -10, LOOP, 9, LOOP);
	trace_request(&t, R, 0, 0, LOOP, 30, LOOP);
	trace_wait(&t, LOOP, NR_EPOLL_WAIT, 1, 8, 8, WORKER);
	trace_wait(&t, LOOP, NR_EPOLL_WAIT, 10, 28, 28, WORKER);
	trace_stop_on(&t, LOOP, 40);
	trace_stop_on(&t, WORKER, 40);
	assert_path(&t, R, "0:cpu[0,1) 0:async[1,9) 0:hol(Q)[9,10) 0:async[10,28) 0:cpu[28,30)");
}

/* T1's part of the lock ends with its wake of T0; a wake that T2 was given is lost. */
Test(hard, where_a_wake_may_be_missing_the_holder_is_less_sure)
{
	struct trace t = running(3);
	struct cc_piece p;

	trace_lock_wait(&t, T0, 0x40, 0, 20, T1);
	trace_lost_wait(&t, T2, NR_NANOSLEEP, 15, 16, 2, 7);
	stop(&t, 3, 30);
	p = trace_walk_piece(&t, T0, 0, 20, WAIT_LOCK);
	cr_expect_eq(p.holder_tid, TID(T1));
	cr_expect(has(&p, CC_EV_WAKE_MISSED));
	cr_expect_lt(p.confidence, 90);
	trace_done(&t);
}

/* ---- the machine slept -------------------------------------------------------------------- */

static void tick(struct trace *t, int at, int64_t asleep_ns)
{
	struct cc_rec_tick r = {
		.h = { .kind = CC_REC_TICK, .ts = AT(at) },
		.drained_to = AT(at),
		.boottime_ns = (uint64_t)((int64_t)AT(at) + asleep_ns),
	};

	trace_put(t, &r, sizeof(r));
}

Test(hard, what_the_machine_slept_through_says_so)
{
	struct trace t = running(1);
	struct cc_piece before, over;

	trace_irq_wait(&t, T0, NR_NANOSLEEP, 1, 4, CC_CTX_IDLE, 0);
	tick(&t, 5, 1000);
	trace_irq_wait(&t, T0, NR_POLL, 7, 20, CC_CTX_IDLE, 0);
	tick(&t, 21, 1000 + 3600 * (int64_t)CC_S(1));
	tick(&t, 25,
	     2000 + 3600 * (int64_t)CC_S(1)); /* the readings of two clocks differ a little */
	stop(&t, 1, 30);
	before = trace_walk_piece(&t, T0, 0, 30, WAIT_SLEEP);
	over = trace_walk_piece(&t, T0, 0, 30, WAIT_POLL);
	cr_expect(!has(&before, CC_EV_SUSPENDED));
	cr_expect(has(&over, CC_EV_SUSPENDED));
	cr_expect_eq(engine_stats(t.e)->suspends, 1);
	cr_expect_eq(engine_stats(t.e)->suspended_ns, 3600 * CC_S(1));
	trace_done(&t);
}

/* ---- a CPU that was not its ---------------------------------------------------------------- */

Test(hard, time_on_a_cpu_that_was_not_its)
{
	struct trace t = running(1);

	trace_irq_wait(&t, T0, NR_POLL, 0, 1, CC_CTX_IDLE, 0);
	trace_irq_wait(&t, T0, NR_POLL, 1001, 1002, CC_CTX_IDLE, 0);
	/* 1000 on the CPU by the clock, 700 by the scheduler's book: a host had it, or interrupts
	 */
	trace_extra(
		&t, T0,
		(struct cc_rec_extra){ .h = { .aux = NR_POLL, .flags = CC_EX_EXEC, .ts = AT(1002) },
				       .ran_ns = 700 * UNIT,
				       .fd = -1 });
	stop(&t, 1, 1010);
	assert_walk(&t, T0, 1, 1010,
		    "0:cpu[1,701) 0:stolen[701,1001) 0:poll[1001,1002) 0:cpu[1002,1010)");
}

Test(hard, a_quota_is_told_apart_from_a_run_queue)
{
	struct trace t = running(1);

	trace_episode_cpu(&t, T0, 10, 60, 0);
	trace_extra(
		&t, T0,
		(struct cc_rec_extra){
			.h = { .aux = (uint16_t)NR_NONE, .flags = CC_EX_THROTTLED, .ts = AT(60) },
			.throttled_ns = 45 * UNIT,
			.fd = -1 });
	stop(&t, 1, 70);
	assert_walk(&t, T0, 0, 70, "0:cpu[0,10) 0:throttle[10,55) 0:runq[55,60) 0:cpu[60,70)");
}

Test(hard, what_lay_in_the_socket_before_it_was_accepted_and_after)
{
	struct trace t = running(1);
	struct cc_rec_req r = trace_req(R, 0, 8, T0, 12, T0);

	r.accepted = AT(5);
	trace_irq_wait(&t, T0, NR_EPOLL_WAIT, -10, 5, CC_CTX_IDLE, 0);
	trace_put_req(&t, r);
	stop(&t, 1, 20);
	assert_path(&t, R, "0:acceptq[0,5) 0:sockq[5,8) 0:cpu[8,12)");
}
