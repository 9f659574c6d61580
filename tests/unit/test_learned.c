/* SPDX-License-Identifier: Apache-2.0 */
/* What others learned the hard way (DESIGN section 5), each rule as the records it is about. */
#include <criterion/criterion.h>

#include "answer_trace.h"
#include "paths.h"

TestSuite(learned, .timeout = 20);

static struct trace two_running(void)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_on(&t, T1, 0);
	return t;
}

static struct cc_rec_episode off(int nr, int out, int wake, int in, uint8_t flags)
{
	return (struct cc_rec_episode){
		.h = { .aux = (uint16_t)nr, .flags = flags, .ts = AT(in) },
		.out = AT(out),
		.wake = AT(wake),
		.state = 1,
		.waker_tid = TID(T1),
		.waker_tgid = TGID,
	};
}

Test(learned, early_wake_leaves_run_queue)
{
	struct trace t = two_running();

	trace_episode(&t, T0, off(NR_POLL, 3, 3, 6, CC_EP_EARLY_WAKE));
	trace_stop_on(&t, T0, 9);
	assert_walk(&t, T0, 0, 9, "0:cpu[0,3) 0:runq[3,6) 0:cpu[6,9)");
}

Test(learned, aborted_sleep_is_run_queue_and_names_nobody)
{
	struct trace t = two_running();
	struct cc_rec_episode ep = off(NR_POLL, 3, 5, 6, 0);

	ep.state = 0;
	trace_episode(&t, T0, ep);
	trace_stop_on(&t, T0, 9);
	assert_walk(&t, T0, 0, 9, "0:cpu[0,3) 0:runq[3,6) 0:cpu[6,9)");
}

Test(learned, preempted_in_a_sleeping_state_is_run_queue)
{
	struct trace t = two_running();

	trace_episode(&t, T0, off(NR_POLL, 3, NEVER, 6, CC_EP_PREEMPT));
	trace_stop_on(&t, T0, 9);
	assert_walk(&t, T0, 0, 9, "0:cpu[0,3) 0:runq[3,6) 0:cpu[6,9)");
}

Test(learned, swapper_wake_is_a_typed_leaf)
{
	struct trace t = two_running();

	trace_irq_wait(&t, T0, NR_FSYNC, 3, 6, CC_CTX_IDLE, 0);
	trace_stop_on(&t, T0, 9);
	assert_walk_keep(&t, T0, 0, 9, "0:cpu[0,3) 0:disk_fsync[3,6) 0:cpu[6,9)");

	struct cc_piece p = trace_walk_piece(&t, T0, 0, 9, WAIT_FSYNC);

	cr_assert_eq(p.waker_kind, CC_WAKER_IDLE);
	cr_assert_eq(p.waker_tid, 0);
	trace_done(&t);
}

Test(learned, interrupted_task_is_not_to_blame)
{
	struct trace t = two_running();

	trace_irq_wait(&t, T0, NR_RECVFROM, 3, 6, CC_CTX_SOFTIRQ, T1);
	trace_stop_on(&t, T0, 9);
	trace_stop_on(&t, T1, 9);
	assert_walk_keep(&t, T0, 0, 9, "0:cpu[0,3) 0:net_recv[3,6) 0:cpu[6,9)");

	struct cc_piece p = trace_walk_piece(&t, T0, 0, 9, WAIT_NET_RECV);

	cr_assert_eq(p.waker_kind, CC_WAKER_SOFTIRQ);
	cr_assert_eq(p.waker_tid, 0);
	cr_assert_eq(p.holder_tid, 0);
	trace_done(&t);
}

Test(learned, interrupt_wake_of_another_waiter_is_no_release)
{
	struct trace t = two_running();

	/* T2 gives up at 4 by its timer, on top of T3; the lock is T1's until 9 */
	trace_on(&t, T3, 0);
	trace_episode(&t, T2,
		      (struct cc_rec_episode){
			      .h = { .aux = NR_FUTEX,
				     .flags = CC_CTX_HARDIRQ << CC_EP_CTX_SHIFT,
				     .ts = AT(4) },
			      .out = AT(1),
			      .wake = AT(4),
			      .state = 1,
			      .waker_tid = TID(T3),
			      .waker_tgid = TGID,
			      .key = 0x40,
		      });
	trace_lock_wait(&t, T0, 0x40, 2, 9, T1);
	trace_stop_on(&t, T0, 10);
	trace_stop_on(&t, T1, 10);
	trace_stop_on(&t, T2, 10);
	trace_stop_on(&t, T3, 10);
	assert_walk(&t, T0, 0, 10, "0:cpu[0,2) 1:cpu[2,9) 0:cpu[9,10)");
}

Test(learned, timeout_keeps_the_class_of_what_was_waited_for)
{
	struct trace t = two_running();
	struct cc_rec_episode ep = off(NR_FUTEX, 3, 6, 6, CC_CTX_IDLE << CC_EP_CTX_SHIFT);

	ep.waker_tid = ep.waker_tgid = 0;
	ep.key = 0x40;
	trace_episode(&t, T0, ep);
	trace_extra(&t, T0,
		    (struct cc_rec_extra){
			    .h = { .aux = NR_FUTEX, .flags = CC_EX_TIMEOUT, .ts = AT(6) },
			    .args = { 0x40, 128, 2 },
			    .uaddr = 0x40,
			    .fd = -1,
		    });
	trace_stop_on(&t, T0, 9);
	assert_walk_keep(&t, T0, 0, 9, "0:cpu[0,3) 0:lock[3,6) 0:cpu[6,9)");
	cr_assert_eq(trace_walk_piece(&t, T0, 0, 9, WAIT_LOCK).ended, CC_ENDED_TIMEOUT);
	trace_done(&t);
}

Test(learned, second_wake_proves_an_unseen_run)
{
	struct trace t = two_running();

	trace_wait(&t, T0, NR_POLL, 10, 12, 30, T1);
	trace_wake(&t, T0, 20, T1);
	trace_stop_on(&t, T0, 31);
	trace_stop_on(&t, T1, 31);
	assert_walk(&t, T0, 5, 31,
		    "0:cpu[5,10) 1:cpu[10,12) 0:unknown[12,20) 0:runq[20,30) 0:cpu[30,31)");
}

Test(learned, second_wake_is_not_forgotten_at_a_refresh)
{
	struct trace t = two_running();

	trace_wake(&t, T0, 20, T1);
	trace_refresh_woken(&t, T0, NR_POLL, 10, 12, 25);
	trace_wait(&t, T0, NR_POLL, 10, 12, 30, T1);
	trace_stop_on(&t, T0, 31);
	trace_stop_on(&t, T1, 31);
	assert_walk(&t, T0, 5, 31,
		    "0:cpu[5,10) 1:cpu[10,12) 0:unknown[12,20) 0:runq[20,30) 0:cpu[30,31)");
}

Test(learned, stacked_task_met_again_is_a_cycle)
{
	struct trace t = trace_new();

	trace_on(&t, T1, 0);
	trace_wait(&t, T1, NR_POLL, 2, 9, 9, T0); /* T0 is asleep at 9: one edge must be wrong */
	trace_wait(&t, T0, NR_POLL, 0, 10, 10, T1);
	trace_stop_on(&t, T0, 11);
	trace_stop_on(&t, T1, 11);
	assert_walk_keep(&t, T0, 0, 11, "1:cpu[0,2) 1:cycle[2,9) 1:cpu[9,10) 0:cpu[10,11)");
	cr_assert_eq(trace_walk_piece(&t, T0, 0, 11, WAIT_CYCLE).confidence, 0);
	cr_assert_geq(engine_stats(t.e)->cycles, 1);
	trace_done(&t);
}

Test(learned, exit_closes_the_timeline)
{
	struct trace t = two_running();

	trace_exit(&t, T0, 5);
	trace_stop_on(&t, T1, 9);
	assert_walk(&t, T0, 0, 9, "0:cpu[0,5) 0:unknown[5,9)");
}

Test(learned, tid_is_reused)
{
	struct trace t = two_running();

	trace_fork(&t, T2, T1, 0, 0);
	trace_wait(&t, T0, NR_POLL, 1, 4, 4, T2);
	trace_exit(&t, T2, 5);
	trace_fork(&t, T2, T1, 8, 9);
	trace_stop_on(&t, T0, 12);
	trace_stop_on(&t, T1, 12);
	trace_stop_on(&t, T2, 12);
	/* the wake at 4 was the first task's */
	assert_walk_keep(&t, T0, 0, 6, "0:cpu[0,1) 2:cpu[1,4) 0:cpu[4,6)");
	/* the second was born at 8, of T1 */
	assert_walk_keep(&t, T2, 6, 12, "1:cpu[6,8) 2:runq[8,9) 2:cpu[9,12)");
	trace_done(&t);
}

Test(learned, exec_of_a_non_leader_changes_its_tid)
{
	struct trace t = trace_new();
	struct engine_task task;

	trace_on(&t, T1, 0);
	trace_off(&t, T0, NR_POLL, 0); /* the leader sleeps, and dies of the exec */
	trace_wait(&t, T1, NR_NANOSLEEP, 1, 2, 2, T0);
	trace_exec(&t, T0, T1, 4);
	trace_irq_wait(&t, T0, NR_FSYNC, 6, 7, CC_CTX_IDLE, 0);
	trace_stop_on(&t, T0, 9);
	assert_walk_keep(&t, T0, 5, 9, "0:cpu[5,6) 0:disk_fsync[6,7) 0:cpu[7,9)");
	/* nothing of the old leader's sleep in the time of the one that took its tid */
	assert_walk_keep(&t, T0, 4, 6, "0:cpu[4,6)");
	cr_assert(engine_task(t.e, TID(T0), AT(8), &task));
	trace_done(&t);
}

/* ---- locks ---------------------------------------------------------------------------------*/

Test(learned, woken_waiter_has_the_lock_before_it_runs)
{
	struct trace t = two_running();

	/* T1 frees at 5 and wakes T2, which runs at 7 and frees at 9 */
	trace_owned_wait(&t, T2, 0x40, 1, 5, 7, T1, T1);
	trace_owned_wait(&t, T0, 0x40, 2, 9, 9, T2, T1);
	trace_stop_on(&t, T0, 10);
	trace_stop_on(&t, T1, 10);
	trace_stop_on(&t, T2, 10);
	assert_walk_keep(&t, T0, 0, 10,
			 "0:cpu[0,2) 1:cpu[2,5) 2:lock_handoff[5,7) 2:cpu[7,9) 0:cpu[9,10)");
	/* also in a span that begins after that wake */
	assert_walk_keep(&t, T0, 6, 10, "2:lock_handoff[6,7) 2:cpu[7,9) 0:cpu[9,10)");
	trace_done(&t);
}

Test(learned, owner_word_against_the_wake_is_no_holder)
{
	struct trace t = two_running();

	trace_on(&t, T3, 0);
	trace_owned_wait(&t, T0, 0x40, 2, 9, 9, T1, T3);
	trace_stop_on(&t, T0, 10);
	trace_stop_on(&t, T1, 10);
	trace_stop_on(&t, T3, 10);
	assert_walk_keep(&t, T0, 0, 10, "0:cpu[0,2) 0:lock[2,9) 0:cpu[9,10)");
	cr_assert_eq(trace_walk_piece(&t, T0, 0, 10, WAIT_LOCK).holder_tid, 0);
	cr_assert_eq(trace_walk_piece(&t, T0, 0, 10, WAIT_LOCK).confidence, 0);
	trace_done(&t);
}

Test(learned, owner_word_is_about_the_first_part_only)
{
	struct trace t = two_running();

	/* T1 has it until 4 (wakes T2), T3 barges in and frees it at 9; the span asked for begins
	 * after the first release, where T1's name in the owner word says nothing any more */
	trace_on(&t, T3, 0);
	trace_owned_wait(&t, T2, 0x40, 1, 4, 5, T1, T1);
	trace_owned_wait(&t, T0, 0x40, 2, 9, 9, T3, T1);
	trace_stop_on(&t, T0, 10);
	trace_stop_on(&t, T1, 10);
	trace_stop_on(&t, T2, 10);
	trace_stop_on(&t, T3, 10);
	assert_walk_keep(&t, T0, 0, 10, "0:cpu[0,2) 1:cpu[2,4) 3:cpu[4,9) 0:cpu[9,10)");
	assert_walk_keep(&t, T0, 6, 10, "3:cpu[6,9) 0:cpu[9,10)");
	trace_done(&t);
}

Test(learned, same_address_in_another_process_is_another_lock)
{
	struct trace t = trace_new();

	t.tgid[T2] = t.tgid[T3] = 77;
	trace_on(&t, T0, 0);
	trace_on(&t, T1, 0);
	trace_on(&t, T2, 0);
	trace_on(&t, T3, 0);
	trace_lock_wait(&t, T2, 0x40, 1, 5, T3);
	trace_lock_wait(&t, T0, 0x40, 2, 9, T1);
	trace_stop_on(&t, T0, 10);
	trace_stop_on(&t, T1, 10);
	trace_stop_on(&t, T2, 10);
	trace_stop_on(&t, T3, 10);
	assert_walk(&t, T0, 0, 10, "0:cpu[0,2) 1:cpu[2,9) 0:cpu[9,10)");
}

/* Whose work all of @tid's pieces in R's path were, or 0. */
static uint64_t served_by(struct trace *t, int tid)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(t->e, &cnt);
	uint64_t id = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (r[i]->id.id != SOCKET(R))
			continue;
		const struct cc_piece *path = path_of(r[i]);

		for (uint32_t k = 0; k < r[i]->path_cnt; k++) {
			const struct cc_piece *p = &path[k];

			if (p->tid != TID(tid))
				continue;
			cr_assert(!id || id == p->for_request.id);
			id = p->for_request.id;
		}
	}
	return id;
}

Test(learned, holder_that_served_another_request_is_blamed_for_it)
{
	struct trace t = two_running();

	trace_request(&t, Q, -2, -2, T1, 20, T1);
	trace_request(&t, R, 0, 0, T0, 12, T0);
	trace_lock_wait(&t, T0, 0x40, 2, 9, T1);
	trace_stop_on(&t, T0, 21);
	trace_stop_on(&t, T1, 21);
	assert_path_keep(&t, R, "0:cpu[0,2) 1:cpu[2,9) 0:cpu[9,12)");
	cr_assert_eq(served_by(&t, T1), SOCKET(Q));
	trace_done(&t);
}

Test(learned, holder_works_for_the_request_it_touched_last)
{
	struct trace t = two_running();

	/* T1 takes in P, then the upstream's reply for Q, and answers Q: from the reply on its time
	 * is Q's again */
	trace_request(&t, Q, -9, -9, T1, 20, T1);
	trace_upstream(&t, Q, T1, -8, -2);
	trace_request(&t, P, -5, -5, T1, 30, T1);
	trace_request(&t, R, 0, 0, T0, 12, T0);
	trace_lock_wait(&t, T0, 0x40, 2, 9, T1);
	trace_stop_on(&t, T0, 31);
	trace_stop_on(&t, T1, 31);
	assert_path_keep(&t, R, "0:cpu[0,2) 1:cpu[2,9) 0:cpu[9,12)");
	cr_assert_eq(served_by(&t, T1), SOCKET(Q));
	trace_done(&t);
}

Test(learned, open_wait_says_who_ended_such_a_wait_last)
{
	struct trace t = two_running();
	struct cc_rec_episode ep = off(NR_POLL, 1, 3, 3, 0);

	ep.key = 7;
	trace_episode(&t, T0, ep);
	trace_stop_off_key(&t, T0, NR_POLL, 7, 5, 9);
	cr_assert_eq(trace_walk_piece(&t, T0, 5, 9, WAIT_POLL).last_tid, TID(T1));
	trace_done(&t);
}

Test(learned, open_wait_on_something_else_names_nobody)
{
	struct trace t = two_running();
	struct cc_rec_episode ep = off(NR_POLL, 1, 3, 3, 0);

	ep.key = 6;
	trace_episode(&t, T0, ep);
	trace_stop_off_key(&t, T0, NR_POLL, 7, 5, 9);
	cr_assert_eq(trace_walk_piece(&t, T0, 5, 9, WAIT_POLL).last_tid, 0);
	trace_done(&t);
}

/* A recording goes on after the moment that is looked at, a live picture does not. */
Test(learned, open_wait_says_the_same_however_much_comes_later)
{
	struct trace t = two_running();
	struct cc_rec_episode ep = off(NR_POLL, 1, 3, 3, 0), later = off(NR_POLL, 5, 10, 11, 0);

	ep.key = later.key = 7;
	trace_episode(&t, T0, ep);
	trace_episode(&t, T0, later);
	for (int i = 0; i < 300; i++)
		trace_wait(&t, T0, NR_NANOSLEEP, 12 + 2 * i, 13 + 2 * i, 13 + 2 * i, T1);
	cr_assert_eq(trace_walk_piece(&t, T0, 5, 9, WAIT_POLL).last_tid, TID(T1));
	trace_done(&t);
}

Test(learned, who_had_the_cpu_longest_had_it_of_a_part_at_least)
{
	struct trace t = two_running();
	struct cc_rec_extra ex = {
		.h = { .aux = NR_POLL, .ts = AT(13) },
		.occupant_tid = 999,
		.occupant_ns = 6 * UNIT,
		.fd = -1,
	};
	/* queued over [3,13), of which 999 had the CPU for 6: at least 3 of the last 7, none of 4
	 */
	static const struct {
		int lo;
		uint32_t occupant;
		cc_ns had;
		uint64_t evidence;
	} parts[] = {
		{ 0, 999, 6, CC_EV_BIT(OCCUPANT) },
		{ 6, 999, 3, CC_EV_BIT(OCCUPANT_PART) },
		{ 9, 0, 0, 0 },
	};

	trace_episode(&t, T0, off(NR_POLL, 2, 3, 13, 0));
	trace_extra(&t, T0, ex);
	trace_stop_on(&t, T0, 20);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct cc_piece p = trace_walk_piece(&t, T0, parts[i].lo, 20, WAIT_RUNQ);

		cr_assert_eq(p.occupant_tid, parts[i].occupant, "%zu", i);
		cr_assert_eq(p.evidence & (CC_EV_BIT(OCCUPANT) | CC_EV_BIT(OCCUPANT_PART)),
			     parts[i].evidence, "%zu", i);
		cr_assert_eq(p.occupant_ns, parts[i].had * UNIT, "%zu", i);
	}
	trace_done(&t);
}
