/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines as tasks: whose time it was, on a thread, in the Go run queue, in a wait. */
#include <criterion/criterion.h>
#include <errno.h>

#include "engine_priv.h"
#include "go_trace.h"
#include "snapshot.h"

TestSuite(go_walk, .timeout = 20);

/* Request R, received at @recv by the goroutine on T0, answered at @sent by the one on @sender. */
static void request(struct trace *t, int recv, int sent, int sender)
{
	trace_request(t, R, recv, recv, T0, sent, sender);
}

Test(go_walk, threads_named_by_the_socket_become_goroutines)
{
	struct trace t = go_trace(12);

	go_got(&t, 1, T0, 0);
	GO_WAITS(&t, WAIT_SLEEP, 1, T0, 3, NEVER, NOBODY, 5, T1, 0);
	go_got(&t, 2, T0, 4); /* T0 runs another one meanwhile, for nobody */
	request(&t, 1, 9, T1);
	assert_path(&t, R, "g1:cpu[1,3) g1:sleep[3,5) g1:cpu[5,9)");
}

Test(go_walk, a_wait_is_the_time_of_who_ended_it)
{
	struct trace t = go_trace(12);

	go_got(&t, 1, T0, 0);
	go_got(&t, 2, T1, 0);
	GO_WAITS(&t, WAIT_CHAN, 1, T0, 3, 5, 2, 6, T0, CH_A);
	request(&t, 1, 9, T0);
	assert_path(&t, R, "g1:cpu[1,3) g2:cpu[3,5) g1:runq[5,6) g1:cpu[6,9)");
}

Test(go_walk, the_go_run_queue_is_told_apart)
{
	struct trace t = go_trace(12);
	const struct cc_piece *p;
	char name[32];

	go_got(&t, 1, T0, 0);
	go_got(&t, 2, T1, 0);
	GO_WAITS(&t, WAIT_CHAN, 1, T0, 3, 5, 2, 6, T0, CH_A);
	request(&t, 1, 9, T0);
	p = trace_piece(&t, R, WAIT_RUNQ);
	engine_resource_name(trace_engine(&t), p->resource, name, sizeof(name));
	cr_expect_str_eq(name, "Go run queue");
	cr_expect_eq(p->goid, 1);
	trace_done(&t);
}

/* A thread that sleeps with no goroutine on it waits for no lock, also where no stack tells why. */
Test(go_walk, a_thread_without_goroutine_is_idle)
{
	struct trace t = go_trace(14);
	struct wait_kind k;

	go_got(&t, 1, T2, 0);
	go_left(&t, 1, T2, 3);
	trace_wait(&t, T2, NR_FUTEX, 4, 8, 9, T0);
	go_got(&t, 1, T2, 10);
	trace_wait(&t, T2, NR_FUTEX, 11, 12, 13, T0);
	go_tick(&t, 14);
	for (int i = 0; i < 2; i++) {
		const struct engine *e = trace_engine(&t);
		const struct task *w = tasks_find(&e->tasks, TID(T2), CC_NEVER);

		cr_assert_eq(w->eps.cnt, 2);
		k = engine_classify(e, w, &w->eps.p[i]);
		cr_expect_eq(k.cls, i ? WAIT_LOCK : WAIT_IDLE);
		cr_expect(k.guessed);
	}
	trace_done(&t);
}

/* Until there was a thread for it, it queued. */
Test(go_walk, a_thread_made_to_run_it_has_no_time_before)
{
	struct trace t = go_trace(14);

	go_got(&t, 1, T0, 0);
	go_got(&t, 2, T1, 0);
	trace_fork(&t, T4, T2, 8, 9);
	GO_WAITS(&t, WAIT_CHAN, 1, T0, 3, 5, 2, 5, T4, CH_A);
	trace_request(&t, R, 1, 1, T0, 12, T4);
	assert_path(&t, R, "g1:cpu[1,3) g2:cpu[3,5) g1:runq[5,9) g1:cpu[9,12)");
}

/* That it is a Go program is told before its first goroutine: until then nobody's work is known,
 * and it is not said to be the thread's. */
Test(go_walk, before_the_first_goroutine_nobody_is_named)
{
	for (int told = 0; told < 2; told++) {
		struct trace t = go_trace(12);
		const struct cc_request *const *r;
		size_t cnt;

		if (told)
			go_left(&t, 0, T0, 0);
		request(&t, 1, 9, T0);
		go_tick(&t, 12);
		r = engine_requests(trace_engine(&t), &cnt);
		cr_assert_eq(cnt, 1);
		cr_expect_eq(r[0]->tid, told ? 0 : TID(T0));
		cr_expect(!told || r[0]->unexplained_ns == r[0]->end - r[0]->start);
		trace_done(&t);
	}
}

/* What ended a select is a channel like any other. */
Test(go_walk, a_select_is_for_the_channel_that_ended_it)
{
	struct trace t = go_trace(12);
	const struct cc_piece *p;
	char name[32];

	go_got(&t, 1, T0, 0);
	GO_WAITS(&t, WAIT_SELECT, 1, T0, 3, NEVER, NOBODY, 5, T0, CH_A);
	request(&t, 1, 9, T0);
	p = trace_piece(&t, R, WAIT_SELECT);
	engine_resource_name(trace_engine(&t), p->resource, name, sizeof(name));
	cr_expect_str_eq(name, "chan 0xa000");
	trace_done(&t);
}

Test(go_walk, on_a_thread_it_is_the_threads_time)
{
	struct trace t = go_trace(20);
	const struct cc_piece *p;

	go_got(&t, 1, T0, 0);
	trace_episode_cpu(&t, T0, 3, 5, 1);                         /* the kernel's run queue */
	trace_irq_wait(&t, T0, NR_FSYNC, 7, 11, CC_CTX_HARDIRQ, 0); /* a blocking call */
	request(&t, 1, 14, T0);
	assert_path_keep(&t, R,
			 "g1:cpu[1,3) g1:runq[3,5) g1:cpu[5,7) g1:disk_fsync[7,11) "
			 "g1:cpu[11,14)");
	p = trace_piece(&t, R, WAIT_FSYNC);
	cr_expect_eq(p->on_tid, TID(T0));
	cr_expect_neq(p->tid, TID(T0));
	p = trace_piece(&t, R, WAIT_RUNQ);
	cr_expect_eq(p->resource, 0, "the kernel's queue, not Go's");
	trace_done(&t);
}

Test(go_walk, preempted_it_queues)
{
	struct trace t = go_trace(12);

	go_got(&t, 1, T0, 0);
	GO_WAITS(&t, WAIT_SLEEP, 2, T1, 1, NEVER, NOBODY, 4, T0, 0); /* takes T0 */
	go_got(&t, 1, T1, 6);
	request(&t, 1, 9, T1);
	assert_path(&t, R, "g1:cpu[1,4) g1:runq[4,6) g1:cpu[6,9)");
}

Test(go_walk, on_the_system_stack_it_has_not_left)
{
	struct trace t = go_trace(12);

	GO_WAITS(&t, WAIT_SLEEP, 1, T1, -2, NEVER, NOBODY, 0, T0, 0);
	go_left(&t, 1, T0, 3); /* the thread was seen without it */
	go_got(&t, 1, T0, 6);
	trace_request(&t, R, 1, 4, T0, 9, T0);
	assert_path(&t, R, "g1:sockq[1,4) g1:cpu[4,9)");
}

Test(go_walk, identity_alone_does_not_know_waits)
{
	struct trace t = go_trace(12);
	const struct cc_piece *p;

	go_got(&t, 1, T0, 0);
	go_left(&t, 1, T0, 4);
	go_got(&t, 1, T1, 6);
	request(&t, 1, 9, T1);
	assert_path_keep(&t, R, "g1:cpu[1,4) g1:unknown[4,6) g1:cpu[6,9)");
	p = trace_piece(&t, R, WAIT_UNKNOWN);
	cr_expect(p->evidence & CC_EV_BIT(GO_OFF));
	cr_expect_eq(p->confidence, 0);
	trace_done(&t);
}

Test(go_walk, off_its_thread_and_not_heard_of_again)
{
	struct trace t = go_trace(12);

	go_got(&t, 1, T0, 0);
	GO_WAITS(&t, WAIT_SLEEP, 2, T1, 1, NEVER, NOBODY, 4, T0, 0); /* takes T0 */
	trace_put_req(&t, ({
		struct cc_rec_req q = trace_req(R, 1, 1, T0, 0, T0);
		q.h.kind = CC_REC_OPEN_REQ;
		q.h.ts = AT(9);
		q.first_send = q.last_send = q.send_tid = q.send_cnt = 0;
		q;
	}));
	go_tick(&t, 9);
	assert_path_keep(&t, R, "g1:cpu[1,4) g1:unknown[4,12)");
	trace_done(&t);
}

Test(go_walk, parked_and_told_so)
{
	struct trace t = go_trace(12);
	const struct cc_piece *p;
	struct cc_rec_req q = trace_req(R, 1, 1, T0, 0, T0);

	q.h.kind = CC_REC_OPEN_REQ;
	q.h.ts = AT(9);
	q.first_send = q.last_send = q.send_tid = q.send_cnt = 0;
	go_got(&t, 1, T0, 0);
	go_parked(&t, 1, WAIT_MUTEX, T0, 4, MU, 9);
	trace_put_req(&t, q);
	go_tick(&t, 9);
	assert_path_keep(&t, R, "g1:cpu[1,4) g1:mutex[4,12)");
	p = trace_piece(&t, R, WAIT_MUTEX);
	cr_expect(p->flags & CC_PC_OPEN);
	trace_done(&t);
}

Test(go_walk, a_network_wait_is_the_pollers)
{
	struct trace t = go_trace(20);
	const struct cc_piece *p;

	go_got(&t, 1, T0, 0);
	trace_upstream(&t, R, T0, 3, 9);
	go_io(&t, 1, T0, 4, 8, T0, 0x300 + R);
	go_io(&t, 1, T0, 10, 12, T0, SOCKET(R));
	request(&t, 1, 14, T0);
	assert_path_keep(
		&t, R,
		"g1:cpu[1,4) g1:upstream[4,8) g1:cpu[8,10) g1:net_send[10,12) g1:cpu[12,14)");
	p = trace_piece(&t, R, WAIT_UPSTREAM);
	cr_expect_eq(p->waker_kind, CC_WAKER_NETPOLL);
	cr_expect_geq(p->confidence, 90);
	trace_done(&t);
}

Test(go_walk, a_sleep_is_its_timers)
{
	struct trace t = go_trace(12);
	const struct cc_piece *p;

	go_got(&t, 1, T0, 0);
	GO_WAITS(&t, WAIT_SLEEP, 1, T0, 3, NEVER, NOBODY, 5, T0, 0);
	request(&t, 1, 9, T0);
	p = trace_piece(&t, R, WAIT_SLEEP);
	cr_expect_eq(p->waker_kind, CC_WAKER_TIMER);
	cr_expect_eq(p->ended, CC_ENDED_TIMEOUT);
	trace_done(&t);
}

Test(go_walk, a_mutex_is_cut_at_each_release)
{
	struct trace t = go_trace(20);
	const struct cc_piece *p;

	go_got(&t, 1, T0, 0);
	go_got(&t, 2, T1, 0);
	go_got(&t, 3, T2, 0);
	GO_WAITS(&t, WAIT_MUTEX, 3, T2, 2, 6, 2, 7, T2, MU);   /* g2 releases at 6 */
	GO_WAITS(&t, WAIT_MUTEX, 1, T0, 3, 10, 3, 11, T0, MU); /* g3 at 10 */
	request(&t, 1, 14, T0);
	assert_path_keep(&t, R,
			 "g1:cpu[1,3) g2:cpu[3,6) g3:lock_handoff[6,7) g3:cpu[7,10) g1:runq[10,11) "
			 "g1:cpu[11,14)");
	p = trace_piece(&t, R, WAIT_MUTEX);
	cr_expect(p->holder_tid && p->holder_tid != p->tid);
	trace_done(&t);
}

/* A blocking call is a thread's wait; who ends it is the goroutine on the other thread, whose time
 * before that need not have been there. */
Test(go_walk, a_thread_is_woken_by_a_goroutine)
{
	struct trace t = go_trace(14);
	const struct cc_piece *p;

	go_got(&t, 1, T0, 0);
	go_got(&t, 3, T1, 0);
	go_got(&t, 2, T2, 0);
	GO_WAITS(&t, WAIT_SLEEP, 2, T2, 2, NEVER, NOBODY, 6, T1, 0);
	go_left(&t, 3, T1, 5);
	trace_wait(&t, T0, NR_POLL, 3, 7, 7, T1);
	request(&t, 1, 9, T0);
	assert_path_keep(&t, R, "g1:cpu[1,3) g2:sleep[3,6) g2:cpu[6,7) g1:cpu[7,9)");
	p = trace_piece(&t, R, WAIT_POLL);
	cr_expect_eq(p->waker_tid, trace_piece(&t, R, WAIT_SLEEP)->tid);
	trace_done(&t);
}

/* g3 and g4 are no readers for all that the runtime tells: the stack says what it is. */
Test(go_walk, of_an_rwmutex_no_holder_is_named)
{
	for (int rw = 0; rw < 2; rw++) {
		struct trace t = go_trace(14);
		const struct cc_piece *p;

		go_stack(&t, 0x77, rw ? "sync.(*RWMutex).Lock" : "sync.(*Mutex).lockSlow");
		go_got(&t, 1, T0, 0);
		go_got(&t, 2, T1, 0);
		GO_WAITS(&t, WAIT_SLEEP, 2, T1, 2, NEVER, NOBODY, 6, T1, 0);
		go_waits_in(&t, (struct go_wait_args){ WAIT_MUTEX, 1, T0, 3, 7, 2, 8, T0, MU },
			    0x77);
		request(&t, 1, 10, T0);
		assert_path_keep(&t, R,
				 "g1:cpu[1,3) g2:sleep[3,6) g2:cpu[6,7) g1:runq[7,8) g1:cpu[8,10)");
		p = trace_piece(&t, R, WAIT_MUTEX);
		cr_expect_eq(p->holder_tid, rw ? 0 : p->waker_tid);
		cr_expect_geq(p->confidence, 90);
		p = trace_piece(&t, R, WAIT_SLEEP);
		cr_expect_eq(!!(p->evidence & CC_EV_BIT(LET_GO_LAST)), rw);
		trace_done(&t);
	}
}

/* The one connection goes from g2 to g3 at 6, to g1 at 9. With a second one, that g4 has, others
 * than they had what g1 waited for. */
Test(go_walk, a_channel_of_things_is_cut_where_they_change_hands)
{
	for (int several = 0; several < 2; several++) {
		struct trace t = go_trace(14);
		const struct cc_piece *path, *p[2] = { 0 };
		const struct cc_request *const *r;
		struct path_buf buf = { 0 };
		size_t cnt;

		for (int g = 1; g <= 3; g++)
			go_got(&t, g, T0 + g - 1, 0);
		go_takes_at(&t, 2, CH_A, 0x10, 1);
		go_puts_at(&t, 2, CH_A, 0x10, 1);
		go_takes_at(&t, 2, CH_A, 0x10, 2);
		if (several)
			go_takes_at(&t, 4, CH_A, 0x18, 2);
		GO_WAITS(&t, WAIT_CHAN, 3, T2, 3, 6, 2, 6, T2, CH_A);
		go_gives(&t, 2, 3, CH_A, 0x99, 6);
		GO_WAITS(&t, WAIT_CHAN, 1, T0, 4, 9, 3, 9, T0, CH_A);
		go_gives(&t, 3, 1, CH_A, 0x98, 9);
		request(&t, 1, 12, T0);
		assert_path_keep(&t, R, "g1:cpu[1,4) g2:cpu[4,6) g3:cpu[6,9) g1:cpu[9,12)");
		r = engine_requests(trace_engine(&t), &cnt);
		path = request_path(r[0], &buf);
		cnt = 0;
		for (size_t i = 0; i < r[0]->path_cnt && cnt < 2; i++)
			if (path[i].cls == WAIT_CHAN)
				p[cnt++] = &path[i];
		cr_assert_eq(cnt, 2);
		cr_expect(p[0]->holder_tid && p[0]->holder_tid != p[1]->holder_tid);
		cr_expect_eq(p[1]->holder_tid, p[1]->waker_tid);
		for (int i = 0; i < 2; i++)
			cr_expect_eq(!!(p[i]->evidence & CC_EV_BIT(LET_GO_LAST)), several);
		path_buf_done(&buf);
		trace_done(&t);
	}
}

/* g2 does R's work and gives what came out of it to g3, who gave Q its own just before: that is no
 * time of R's. */
Test(go_walk, work_that_goes_on_was_with_whom_it_comes_from)
{
	struct trace t = go_trace(16);

	for (int g = 1; g <= 3; g++)
		go_got(&t, g, T0 + g - 1, 0);
	go_got(&t, 5, T3, 0);
	trace_request(&t, Q, 1, 1, T3, 9, T3);
	GO_WAITS(&t, WAIT_CHAN, 2, T1, 1, 2, 1, 2, T1, CH_A);
	go_gives(&t, 1, 2, CH_A, 0x91, 2);
	GO_WAITS(&t, WAIT_CHAN, 3, T2, 1, 5, 5, 5, T2, CH_B);
	go_gives(&t, 5, 3, CH_B, 0x92, 5);
	GO_WAITS(&t, WAIT_CHAN, 5, T3, 5, 6, 3, 6, T3, CH_A + 8);
	go_gives(&t, 3, 5, CH_A + 8, 0x93, 6);
	GO_WAITS(&t, WAIT_SLEEP, 2, T1, 3, NEVER, NOBODY, 7, T1, 0);
	GO_WAITS(&t, WAIT_CHAN, 3, T2, 6, 8, 2, 8, T2, CH_B);
	go_gives(&t, 2, 3, CH_B, 0x94, 8);
	GO_WAITS(&t, WAIT_CHAN, 1, T0, 3, 10, 3, 10, T0, CH_C);
	go_gives(&t, 3, 1, CH_C, 0x95, 10);
	request(&t, 1, 12, T0);
	assert_path(&t, R, "g1:cpu[1,3) g2:sleep[3,7) g2:cpu[7,8) g3:cpu[8,10) g1:cpu[10,12)");
}

/* time.AfterFunc, the end of a context: who ends the wait was made when it was time. */
Test(go_walk, a_goroutine_that_none_made_is_a_timers)
{
	struct trace t = go_trace(14);
	const struct cc_piece *p;

	go_got(&t, 1, T0, 0);
	go_born(&t, 2, NOBODY, 6, 7, T1);
	GO_WAITS(&t, WAIT_CHAN, 1, T0, 3, 8, 2, 8, T0, CH_A);
	request(&t, 1, 10, T0);
	assert_path_keep(&t, R, "g1:cpu[1,3) g2:sleep[3,6) g2:runq[6,7) g2:cpu[7,8) g1:cpu[8,10)");
	p = trace_piece(&t, R, WAIT_SLEEP);
	cr_expect_eq(p->waker_kind, CC_WAKER_TIMER);
	cr_expect_eq(p->ended, CC_ENDED_TIMEOUT);
	cr_expect_geq(p->confidence, 90);
	trace_done(&t);
}

Test(go_walk, a_new_goroutine_queues_first)
{
	struct trace t = go_trace(20);

	go_got(&t, 1, T0, 0);
	go_born(&t, 5, 1, 3, 5, T1);
	GO_WAITS(&t, WAIT_SEMA, 1, T0, 4, 8, 5, 9, T0, 0); /* a join */
	request(&t, 1, 12, T0);
	assert_path(&t, R, "g1:cpu[1,4) g5:runq[4,5) g5:cpu[5,8) g1:runq[8,9) g1:cpu[9,12)");
}

Test(go_walk, gc_is_gc)
{
	struct trace t = go_trace(12);

	go_got(&t, 1, T0, 0);
	GO_WAITS(&t, WAIT_GC, 1, T0, 3, NEVER, NOBODY, 5, T0, 0);
	request(&t, 1, 9, T0);
	assert_path(&t, R, "g1:cpu[1,3) g1:gc[3,5) g1:cpu[5,9)");
}

Test(go_walk, rings_come_in_any_order)
{
	struct trace t = go_trace(20);

	/* answer_trace sorts by time: a REQ long before what it names needs a queue */
	request(&t, 1, 9, T1);
	GO_WAITS(&t, WAIT_SLEEP, 1, T0, 3, NEVER, NOBODY, 5, T1, 0);
	go_got(&t, 1, T0, 0);
	assert_path(&t, R, "g1:cpu[1,3) g1:sleep[3,5) g1:cpu[5,9)");
}

Test(go_walk, a_lost_wait_is_unknown)
{
	struct trace t = go_trace(20);
	struct cc_rec_go_episode r = {
		.h = { .kind = CC_REC_GO_EPISODE, .ts = AT(8) },
		.goid = 1,
		.tgid = TGID,
		.tid = TID(T0),
		.out = AT(6),
		.wait_class = WAIT_SLEEP,
		.in_tid = TID(T0),
		.lost = CC_LOST(1, 2 * UNIT),
		.seq = 9,
	};

	go_got(&t, 1, T0, 0);
	trace_put(&t, &r, sizeof(r));
	request(&t, 1, 12, T0);
	assert_path(&t, R, "g1:cpu[1,4) g1:unknown[4,6) g1:sleep[6,8) g1:cpu[8,12)");
}

Test(go_walk, hostile_thread_numbers_are_no_goroutines)
{
	struct trace t = go_trace(12);
	struct cc_rec_task r = { .h = { .kind = CC_REC_TASK, .aux = CC_TASK_EXEC, .ts = AT(3) },
				 .tid = TID(T0),
				 .old_tid = 0x80000001u,
				 .tgid = TGID };

	go_got(&t, 1, T0, 0);
	r.h.size = sizeof(r);
	cr_assert_eq(engine_feed(trace_engine(&t), &r.h, sizeof(r)), -EINVAL);
	trace_done(&t);
}

/* The title says how many threads there are, and how many goroutines live: not of both together,
 * nor the dead. */
Test(go_walk, threads_and_goroutines_are_counted_apart)
{
	struct trace t = go_trace(60);
	struct cc_query q = { 0 };
	struct snapshot *s;

	go_got(&t, 1, T0, 0);
	go_got(&t, 2, T1, 0);
	for (int g = 3; g < 33; g++)
		go_born(&t, g, 1, g, g, T2);
	for (int g = 3; g < 23; g++)
		go_dead(&t, g, 50);
	cr_assert_eq(snapshot_build(trace_engine(&t), &q, &s), 0);
	cr_expect_eq(s->thread_all, 4, "%u threads", s->thread_all);
	cr_expect_eq(s->goroutine_all, 12, "%u goroutines", s->goroutine_all);
	snapshot_free(s);
	trace_done(&t);
}
