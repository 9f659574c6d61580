/* SPDX-License-Identifier: Apache-2.0 */
/* The known answers of DESIGN section 5, each from records to the exact pieces. Times are written
 * as there, 0 1 2 ...; in the records they are microseconds after a base. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "answer_trace.h"

TestSuite(known_answers, .timeout = 20);

/* T0 blocked over [out, wake), woken by @waker at @wake, running again at once. */
#define WAIT(t, tid, out, wake, waker) \
	trace_wait((t), (tid), NR_POLL, (out), (wake), (wake), (waker))

Test(known_answers, 01_running)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_stop_on(&t, T0, 2);
	assert_walk(&t, T0, 0, 1, "0:cpu[0,1)");
}

Test(known_answers, 02_sleep_ended_by_its_timer)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_irq_wait(&t, T0, NR_NANOSLEEP, 2, 3, CC_CTX_IDLE, 0);
	trace_stop_on(&t, T0, 4);
	assert_walk(&t, T0, 0, 4, "0:cpu[0,2) 0:sleep[2,3) 0:cpu[3,4)");
}

Test(known_answers, 03_no_waker_stays_blocked)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_wait(&t, T0, NR_UNKNOWN, 2, NEVER, 4, 0);
	trace_stop_on(&t, T0, 6);
	assert_walk(&t, T0, 0, 6, "0:cpu[0,2) 0:blocked[2,4) 0:cpu[4,6)");
}

Test(known_answers, 04_message_from_a_task_with_no_data_before_it)
{
	struct trace t = trace_new();
	struct cc_piece p;

	trace_on(&t, T0, 0);
	trace_on(&t, T1, 3);
	trace_message(&t, T1, 3, T0, 4, 1);
	trace_recv_wait(&t, T0, 2, 4, 1);
	trace_stop_on(&t, T1, 6);
	trace_stop_on(&t, T0, 6);
	assert_walk_keep(&t, T0, 0, 6, "0:cpu[0,2) 1:unknown[2,3) transit[3,4) 0:cpu[4,6)");
	p = trace_walk_piece(&t, T0, 0, 6, WAIT_UPSTREAM);
	cr_expect_eq(p.waker_tid, TID(T1), "the softirq was the sender's");
	cr_expect_eq(p.waker_tgid, TGID);
	cr_expect_eq(p.waker_kind, CC_WAKER_TASK);
	trace_done(&t);
}

Test(known_answers, 05_woken_by_a_new_task)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_fork(&t, T1, T0, 2, 3);
	WAIT(&t, T0, 4, 6, T1);
	trace_stop_on(&t, T0, 8);
	assert_walk(&t, T0, 0, 8, "0:cpu[0,4) 1:cpu[4,6) 0:cpu[6,8)");
}

Test(known_answers, 06_woken_by_a_running_task)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_on(&t, T1, 0);
	WAIT(&t, T0, 3, 6, T1);
	trace_stop_on(&t, T1, 9);
	trace_stop_on(&t, T0, 9);
	assert_walk(&t, T0, 0, 9, "0:cpu[0,3) 1:cpu[3,6) 0:cpu[6,9)");
}

Test(known_answers, 07_message_under_way_all_the_time)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_on(&t, T1, 0);
	trace_message(&t, T1, 2, T0, 6, 1);
	trace_recv_wait(&t, T0, 3, 6, 1);
	trace_stop_on(&t, T1, 9);
	trace_stop_on(&t, T0, 9);
	assert_walk(&t, T0, 0, 9, "0:cpu[0,3) transit[3,6) 0:cpu[6,9)");
}

Test(known_answers, 08_mutual)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_on(&t, T1, 0);
	WAIT(&t, T1, 1, 2, T0);
	WAIT(&t, T0, 3, 4, T1);
	trace_stop_on(&t, T0, 5);
	trace_stop_on(&t, T1, 5);
	assert_walk(&t, T0, 0, 5, "0:cpu[0,3) 1:cpu[3,4) 0:cpu[4,5)");
}

static void two_in_a_row(cc_ns t1_from, cc_ns t2_from)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_on(&t, T1, t1_from);
	trace_on(&t, T2, t2_from);
	WAIT(&t, T0, 6, 8, T1);
	WAIT(&t, T0, 8, 10, T2);
	trace_stop_on(&t, T0, 12);
	trace_stop_on(&t, T1, 12);
	trace_stop_on(&t, T2, 12);
	assert_walk(&t, T0, 0, 12, "0:cpu[0,6) 1:cpu[6,8) 2:cpu[8,10) 0:cpu[10,12)");
}

Test(known_answers, 09_embedded) { two_in_a_row(4, 2); }

Test(known_answers, 10_interleaved) { two_in_a_row(2, 4); }

Test(known_answers, 11_nested)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_fork(&t, T1, T0, 1, 1);
	trace_fork(&t, T2, T1, 2, 2);
	trace_fork(&t, T3, T2, 3, 3);
	WAIT(&t, T2, 3, 4, T3);
	WAIT(&t, T1, 2, 5, T2);
	WAIT(&t, T0, 1, 6, T1);
	trace_stop_on(&t, T0, 7);
	assert_walk(&t, T0, 0, 7,
		    "0:cpu[0,1) 1:cpu[1,2) 2:cpu[2,3) 3:cpu[3,4) 2:cpu[4,5) 1:cpu[5,6) "
		    "0:cpu[6,7)");
}

Test(known_answers, 12_messages_from_task_to_task)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_on(&t, T1, 3);
	trace_on(&t, T2, 6);
	trace_on(&t, T3, 9);
	trace_message(&t, T1, 4, T2, 7, 1);
	trace_exit(&t, T1, 5);
	trace_message(&t, T2, 8, T3, 10, 2);
	trace_exit(&t, T2, 9);
	WAIT(&t, T0, 1, 11, T3);
	trace_exit(&t, T3, 11);
	trace_stop_on(&t, T0, 12);
	assert_walk(&t, T0, 0, 12,
		    "0:cpu[0,1) 1:unknown[1,3) 1:cpu[3,4) transit[4,7) 2:cpu[7,8) "
		    "transit[8,10) 3:cpu[10,11) 0:cpu[11,12)");
}

Test(known_answers, 13_user_parser_network_disk)
{
	enum { USER = T0, PARSER = T1, NETWORK = T2 };
	struct trace t = trace_new();

	trace_on(&t, PARSER, 0);
	trace_irq_wait(&t, PARSER, NR_RECVFROM, 20, 100, CC_CTX_SOFTIRQ, 0);
	WAIT(&t, USER, 0, 100, PARSER);
	trace_stop_on(&t, USER, 101);
	assert_walk(&t, USER, 0, 100, "1:cpu[0,20) 1:net_recv[20,100)");

	t = trace_new();
	trace_on(&t, PARSER, 0);
	trace_on(&t, NETWORK, 20);
	trace_irq_wait(&t, NETWORK, NR_FSYNC, 50, 100, CC_CTX_HARDIRQ, 0);
	WAIT(&t, PARSER, 20, 100, NETWORK);
	WAIT(&t, USER, 0, 100, PARSER);
	trace_stop_on(&t, USER, 101);
	assert_walk(&t, USER, 0, 100, "1:cpu[0,20) 2:cpu[20,50) 2:disk_fsync[50,100)");
}

Test(known_answers, 14_monitor_chain)
{
	enum { MAIN = T0, A = T1, B = T2 };
	struct trace t = trace_new();

	trace_on(&t, MAIN, 0);
	trace_on(&t, B, 0);
	trace_off(&t, A, NR_FUTEX, 0);
	trace_lock_wait(&t, A, 0xb0, 0, 51440, B);
	trace_lock_wait(&t, MAIN, 0xa0, 210, 53770, A);
	trace_stop_on(&t, MAIN, 60030);
	trace_stop_on(&t, A, 60030);
	trace_stop_on(&t, B, 60030);
	assert_walk(&t, MAIN, 0, 60030,
		    "0:cpu[0,210) 2:cpu[210,51440) 1:cpu[51440,53770) 0:cpu[53770,60030)");
}

Test(known_answers, 15_only_the_time_waited_counts)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 100);
	trace_on(&t, T1, 100);
	trace_on(&t, T2, 100);
	WAIT(&t, T0, 200, 300, T1);
	WAIT(&t, T1, 300, 500, T2);
	trace_stop_on(&t, T0, 600);
	trace_stop_on(&t, T1, 600);
	trace_stop_on(&t, T2, 600);
	assert_walk(&t, T0, 200, 300, "1:cpu[200,300)");
}

Test(known_answers, 16_no_wake_seen)
{
	struct trace t = trace_new();

	trace_on(&t, T2, 10);
	trace_wait(&t, T2, NR_UNKNOWN, 20, NEVER, 30, 0);
	trace_stop_on(&t, T2, 40);
	assert_walk_keep(&t, T2, 10, 40, "2:cpu[10,20) 2:blocked[20,30) 2:cpu[30,40)");
	cr_expect_eq(trace_walk_piece(&t, T2, 10, 40, WAIT_BLOCKED).ended, CC_ENDED_RAN);
	trace_done(&t);
}

Test(known_answers, 17_woken_while_running)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_on(&t, T1, 0);
	trace_wake(&t, T0, 3, T1);
	trace_irq_wait(&t, T0, NR_NANOSLEEP, 5, 6, CC_CTX_IDLE, 0);
	trace_stop_on(&t, T0, 9);
	trace_stop_on(&t, T1, 9);
	assert_walk_keep(&t, T0, 0, 9, "0:cpu[0,5) 0:sleep[5,6) 0:cpu[6,9)");
	cr_assert_eq(engine_stats(t.e)->wake_running, 1);
	trace_done(&t);
}

Test(known_answers, 17_on_two_cpus_at_once)
{
	struct trace t = trace_new();

	/* in on CPU 0 at 1; in on CPU 1 at 2, the switch-out between was not seen */
	trace_episode_cpu(&t, T0, 0, 1, 0);
	trace_episode_cpu(&t, T0, 2, 2, 1);
	trace_episode_cpu(&t, T0, 4, 5, 1);
	trace_stop_on(&t, T0, 9);
	assert_walk(&t, T0, 1, 6, "0:cpu[1,4) 0:runq[4,5) 0:cpu[5,6)");

	t = trace_new();
	/* the second one tells of a time at which the first says it had not come back yet */
	trace_on(&t, T0, 0);
	trace_episode_cpu(&t, T0, 1, 5, 0);
	trace_episode_cpu(&t, T0, 3, 7, 1);
	trace_stop_on(&t, T0, 9);
	assert_walk(&t, T0, 0, 9, "0:cpu[0,1) 0:runq[1,7) 0:cpu[7,9)");
}

/* ---- with requests: A receives, W answers ------------------------------------------------- */

enum { A = T0, W = T1, H = T5 };

Test(known_answers, 18_handed_over)
{
	struct trace t = trace_new();

	trace_on(&t, A, 0);
	trace_off(&t, W, NR_FUTEX, -5);
	trace_cond_wait(&t, W, 0xc0, -5, 2, A);
	trace_request(&t, R, 0, 0, A, 6, W);
	trace_stop_off(&t, A, NR_EPOLL_WAIT, 2, 9);
	trace_stop_on(&t, W, 9);
	assert_path(&t, R, "0:cpu[0,2) 1:cpu[2,6)");
}

Test(known_answers, 19_queued_behind_another)
{
	struct trace t = trace_new();

	trace_on(&t, A, -5);
	trace_off(&t, W, NR_FUTEX, -8);
	trace_cond_wait(&t, W, 0xc0, -8, -2, A);
	trace_request(&t, Q, -3, -3, A, 5, W);
	trace_request(&t, R, 0, 0, A, 9, W);
	trace_stop_off(&t, A, NR_EPOLL_WAIT, 2, 12);
	trace_stop_on(&t, W, 12);
	assert_path(&t, R, "0:cpu[0,2) 1:queued(Q)[2,5) 1:cpu[5,9)");
}

Test(known_answers, 20_lock_of_a_task_not_traced)
{
	struct trace t = trace_new();

	trace_on(&t, A, 0);
	trace_off(&t, W, NR_FUTEX, -5);
	trace_cond_wait(&t, W, 0xc0, -5, 2, A);
	trace_lock_wait(&t, W, 0x40, 3, 5, H);
	trace_request(&t, R, 0, 0, A, 6, W);
	trace_stop_off(&t, A, NR_EPOLL_WAIT, 2, 9);
	trace_stop_on(&t, W, 9);
	assert_path_keep(&t, R, "0:cpu[0,2) 1:cpu[2,3) 1:lock[3,5) 1:cpu[5,6)");

	const struct cc_piece *p = trace_piece(&t, R, WAIT_LOCK);

	cr_assert_eq(p->holder_tid, TID(H));
	cr_assert(p->flags & CC_PC_NOT_TRACED);
	trace_done(&t);
}

Test(known_answers, 21_head_of_line)
{
	struct trace t = trace_new();

	trace_on(&t, T0, -5);
	trace_request(&t, Q, 0, 0, T0, 4, T0);
	trace_request(&t, R, 1, 4, T0, 6, T0);
	trace_stop_on(&t, T0, 9);
	assert_path(&t, R, "0:hol(Q)[1,4) 0:cpu[4,6)");
}

Test(known_answers, 22_busy_helper)
{
	struct trace t = trace_new();

	trace_on(&t, T0, -5);
	trace_on(&t, W, -5);
	trace_request(&t, Q, -2, -2, W, 6, W);
	trace_request(&t, R, -1, -1, T0, 11, T0);
	trace_cond_wait(&t, T0, 0xc0, 0, 10, W);
	trace_stop_on(&t, T0, 12);
	trace_stop_on(&t, W, 12);
	assert_path(&t, R, "0:cpu[-1,0) 1:queued(Q)[0,6) 1:cpu[6,10) 0:cpu[10,11)");
}

Test(known_answers, 23_barging)
{
	enum { T = T0, HOLDER = T1, X = T2, BARGER = T3 };
	struct trace t = trace_new();

	trace_on(&t, HOLDER, -5);
	trace_on(&t, T, -5);
	trace_on(&t, X, -5);
	trace_irq_wait(&t, BARGER, NR_NANOSLEEP, -20, 55, CC_CTX_IDLE, 0);
	trace_lock_wait(&t, X, 0x40, -1, 60, HOLDER); /* runs, finds it taken, sleeps again */
	trace_lock_wait(&t, T, 0x40, 0, 100, BARGER);
	trace_stop_off_key(&t, X, NR_FUTEX, 0x40, 61, 110);
	trace_stop_on(&t, T, 110);
	trace_stop_on(&t, HOLDER, 110);
	trace_stop_on(&t, BARGER, 110);
	assert_walk(&t, T, 0, 100, "1:cpu[0,60) 3:cpu[60,100)");
}

Test(known_answers, 24_lost_is_not_cpu)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_lost_wait(&t, T0, NR_NANOSLEEP, 20, 25, 2, 7);
	trace_stop_on(&t, T0, 30);
	assert_walk_keep(&t, T0, 0, 30, "0:cpu[0,13) 0:unknown[13,20) 0:sleep[20,25) 0:cpu[25,30)");
	cr_assert_eq(engine_stats(t.e)->lost_ns, 7 * UNIT);
	cr_assert_eq(engine_stats(t.e)->lost_cnt, 2);
	trace_done(&t);
}
