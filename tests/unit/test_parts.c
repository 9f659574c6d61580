// SPDX-License-Identifier: Apache-2.0
/* Answers that are given in parts: what is sent after its thread was free may be pushed. */
#include <criterion/criterion.h>

#include "answer_trace.h"
#include "confidence.h"

TestSuite(parts, .timeout = 20);

#define GAP 6000 /* 6 ms between two parts */

/* T0 reads R at 10 and answers at 12; what is sent at @last is by @by. */
static void answer(struct trace *t, uint32_t parts, int last, int by)
{
	struct cc_rec_req q = trace_req(R, 9, 10, T0, 12, T0);

	q.last_send = q.h.ts = AT(last);
	q.send_tid = TID(by);
	q.send_cnt = parts;
	trace_put_req(t, q);
}

static void part(struct trace *t, int tid, int at)
{
	trace_sockop(t, (struct cc_rec_sockop){ .h = { .aux = CC_OP_SEND, .ts = AT(at) },
						.cookie = SOCKET(R),
						.ordinal = 1,
						.tid = TID(tid),
						.tgid = TGID });
}

static uint32_t what(struct trace *t)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(trace_engine(t), &cnt);

	cr_assert_eq(cnt, 1);
	return r[0]->rec.what;
}

static void expect(struct trace t, enum wait_class cls, bool sure, bool stream)
{
	const struct cc_piece *p = trace_piece(&t, R, cls);

	cr_assert_not_null(p);
	cr_expect_eq((p->evidence & CC_EV_BIT(PARTS)) == 0, sure);
	if (!sure)
		cr_expect_lt(p->confidence, CC_CONF_HIGH);
	cr_expect_eq((what(&t) & CC_RQ_STREAM) != 0, stream);
	trace_done(&t);
}

/* An event loop that sends @more parts after the first, each after a wait that @ctx ended. */
static struct trace loop(int more, int gap, int ctx)
{
	struct trace t = trace_new();
	int at = 12;

	trace_on(&t, T0, 0);
	for (int i = 0; i < more; i++, at += gap) {
		trace_irq_wait(&t, T0, NR_EPOLL_WAIT, at + 1, at + gap - 1, ctx, 0);
		part(&t, T0, at + gap);
	}
	trace_stop_on(&t, T0, at + 10);
	answer(&t, (uint32_t)more + 1, at, T0);
	return t;
}

Test(parts, pushed_by_timers_is_a_stream)
{
	expect(loop(2, GAP, CC_CTX_IDLE), WAIT_EPOLL, false, true);
}
Test(parts, once_is_none_but_not_sure)
{
	expect(loop(1, GAP, CC_CTX_IDLE), WAIT_EPOLL, false, false);
}
Test(parts, close_together_they_are_an_answer)
{
	expect(loop(2, GAP / 2, CC_CTX_IDLE), WAIT_EPOLL, false, false);
}

Test(parts, of_a_called_server)
{
	struct trace t = loop(2, GAP, CC_CTX_IDLE);

	trace_upstream(&t, R, T0, 11, 12 + GAP - 1);
	trace_upstream(&t, R, T0, 12 + GAP, 12 + 2 * GAP - 1);
	struct cc_rec_req q = trace_req(R, 9, 10, T0, 12, T0);

	q.last_send = q.h.ts = AT(12 + 2 * GAP);
	q.send_cnt = 3;
	q.up_votes = 2;
	q.up_cookie = 0x300 + R;
	q.up_calls = 2;
	trace_put_req(&t, q);
	expect(t, WAIT_UPSTREAM, true, false);
}

/* T1 makes the second part ready and wakes the loop; @woken: T0 had woken it after the first. */
static struct trace by_another(bool woken)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	if (woken)
		trace_cond_wait(&t, T1, 77, 5, 13, T0);
	else
		trace_irq_wait(&t, T1, NR_NANOSLEEP, 5, GAP - 5, CC_CTX_IDLE, 0);
	trace_wait(&t, T0, NR_EPOLL_WAIT, 14, GAP, GAP, T1);
	part(&t, T0, GAP + 1);
	trace_stop_on(&t, T0, GAP + 10);
	trace_stop_on(&t, T1, GAP + 10);
	answer(&t, 2, GAP + 1, T0);
	return t;
}

Test(parts, handed_on_after_the_first) { expect(by_another(true), WAIT_EPOLL, true, false); }
Test(parts, another_that_was_not_asked) { expect(by_another(false), WAIT_EPOLL, false, false); }

Test(parts, a_handler_that_sleeps)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	for (int at = 12; at < 2 * GAP; at += GAP) {
		trace_irq_wait(&t, T0, NR_NANOSLEEP, at + 1, at + GAP - 1, CC_CTX_IDLE, 0);
		part(&t, T0, at + GAP);
	}
	trace_stop_on(&t, T0, 3 * GAP);
	answer(&t, 3, 12 + 2 * GAP, T0);
	expect(t, WAIT_SLEEP, true, false);
}

/* The thread waited at @idle for R, and at @between for the time of the next part. */
static struct trace waits_at(uint64_t idle, uint64_t between, bool signal)
{
	struct trace t = trace_new();
	struct cc_rec_extra ex = { .h = { .aux = NR_EPOLL_WAIT, .ts = AT(10) },
				   .fd = 3,
				   .ustack = idle };

	trace_on(&t, T0, 0);
	trace_irq_wait(&t, T0, NR_EPOLL_WAIT, 2, 10, CC_CTX_IDLE, 0);
	trace_extra(&t, T0, ex);
	trace_irq_wait(&t, T0, NR_EPOLL_WAIT, 13, GAP, CC_CTX_IDLE, 0);
	ex.h.ts = AT(GAP);
	ex.ustack = between;
	ex.h.flags = signal ? CC_EX_SIGNAL : 0;
	trace_extra(&t, T0, ex);
	part(&t, T0, GAP + 1);
	trace_stop_on(&t, T0, GAP + 10);
	answer(&t, 2, GAP + 1, T0);
	return t;
}

Test(parts, waits_elsewhere_than_for_requests)
{
	expect(waits_at(0xa1, 0xb2, false), WAIT_EPOLL, true, false);
	expect(waits_at(0xa1, 0xa1, false), WAIT_EPOLL, false, false);
	expect(waits_at(0xa1, 0xa1, true), WAIT_EPOLL, false, false);
	expect(waits_at(0xa1, 0, true), WAIT_EPOLL, true, false);
}

Test(parts, a_signal_ended_the_wait)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_wait(&t, T0, NR_EPOLL_WAIT, 13, GAP, GAP, T1);
	trace_extra(&t, T0,
		    (struct cc_rec_extra){
			    .h = { .aux = NR_EPOLL_WAIT, .flags = CC_EX_SIGNAL, .ts = AT(GAP) },
			    .fd = 3,
		    });
	part(&t, T0, GAP + 1);
	trace_stop_on(&t, T0, GAP + 10);
	answer(&t, 2, GAP + 1, T0);
	expect(t, WAIT_EPOLL, true, false);
}

/* T0 reads the connection on, T1 sends what comes by its own clock: one such part says so. */
static struct trace reader_and_pusher(void)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_irq_wait(&t, T0, NR_RECVFROM, 14, 3 * GAP, CC_CTX_IDLE, 0);
	trace_extra(&t, T0,
		    (struct cc_rec_extra){ .h = { .aux = NR_RECVFROM, .ts = AT(3 * GAP) },
					   .fd = 5,
					   .fd_kind = CC_FD_SOCK_TCP,
					   .fd_id = SOCKET(R) });
	trace_irq_wait(&t, T1, NR_NANOSLEEP, 2, GAP, CC_CTX_IDLE, 0);
	part(&t, T1, GAP + 1);
	trace_stop_on(&t, T0, 3 * GAP + 10);
	trace_stop_on(&t, T1, 3 * GAP + 10);
	answer(&t, 2, GAP + 1, T1);
	return t;
}

Test(parts, its_thread_reads_the_next) { expect(reader_and_pusher(), WAIT_SLEEP, false, true); }

/* T0 still wants something else when the first part is pushed; then it reads the connection on. */
Test(parts, its_thread_reads_the_next_a_little_later)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_wait(&t, T0, NR_NANOSLEEP, 13, GAP + 2, GAP + 2, T1);
	trace_irq_wait(&t, T0, NR_RECVFROM, GAP + 5, 4 * GAP, CC_CTX_IDLE, 0);
	trace_extra(&t, T0,
		    (struct cc_rec_extra){ .h = { .aux = NR_RECVFROM, .ts = AT(4 * GAP) },
					   .fd = 5,
					   .fd_kind = CC_FD_SOCK_TCP,
					   .fd_id = SOCKET(R) });
	trace_irq_wait(&t, T1, NR_NANOSLEEP, 2, GAP, CC_CTX_IDLE, 0);
	part(&t, T1, GAP + 1);
	trace_irq_wait(&t, T1, NR_NANOSLEEP, GAP + 3, 3 * GAP, CC_CTX_IDLE, 0);
	part(&t, T1, 3 * GAP + 1);
	trace_stop_on(&t, T0, 4 * GAP + 10);
	trace_stop_on(&t, T1, 4 * GAP + 10);
	answer(&t, 3, 3 * GAP + 1, T1);
	cr_expect_neq(what(&t) & CC_RQ_STREAM, 0);
	trace_done(&t);
}

Test(parts, the_first_is_of_who_read_it)
{
	struct trace t = reader_and_pusher();

	/* up to its own part T0 ran for it, not T1, which sent the last */
	const struct cc_piece *p = trace_piece(&t, R, WAIT_CPU);

	cr_assert_not_null(p);
	cr_expect_eq(p->tid, TID(T0));
	trace_done(&t);
}

/* R's first bytes are read at 10, the rest at 5000; the loop waits in between. */
Test(parts, read_in_parts_may_be_two_messages)
{
	struct trace t = trace_new();
	struct cc_rec_req q = trace_req(R, 9, 10, T0, 5003, T0);
	const struct cc_piece *p;

	q.last_recv = AT(5000);
	q.recv_cnt = 2;
	trace_on(&t, T0, 0);
	trace_irq_wait(&t, T0, NR_EPOLL_WAIT, 12, 4999, CC_CTX_IDLE, 0);
	trace_stop_on(&t, T0, 5010);
	trace_put_req(&t, q);
	p = trace_piece(&t, R, WAIT_NET_RECV);
	cr_assert_not_null(p);
	cr_expect_neq(p->evidence & CC_EV_BIT(READ_PARTS), 0);
	cr_expect_lt(p->confidence, CC_CONF_HIGH);
	trace_done(&t);
}
