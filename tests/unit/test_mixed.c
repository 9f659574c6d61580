// SPDX-License-Identifier: Apache-2.0
/* What is told like a request and is none: busy periods of connections that carry several at once,
 * farewells. */
#include <criterion/criterion.h>

#include "answer_trace.h"
#include "latency.h"

TestSuite(mixed, .timeout = 20);

/* Request @ordinal of connection R: read at @at, answered at @at + 3. */
static void exchange(struct trace *t, uint32_t ordinal, int at)
{
	struct cc_rec_req q = trace_req(R, at, at, T0, at + 3, T0);

	q.ordinal = ordinal;
	trace_put_req(t, q);
}

/* T0 reads the reply to a call for request @ordinal of R. */
static void reply(struct trace *t, uint32_t ordinal, int at)
{
	trace_sockop(t, (struct cc_rec_sockop){
				.h = { .aux = CC_OP_RECV,
				       .flags = CC_SO_UPSTREAM | CC_SO_LINKED,
				       .ts = AT(at) },
				.cookie = 0x300 + ordinal,
				.tid = TID(T0),
				.tgid = TGID,
				.bytes = 100,
				.link_cookie = SOCKET(R),
				.link_ordinal = ordinal,
			});
}

static uint32_t labelled(struct trace *t, uint32_t of)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(trace_engine(t), &cnt);
	uint32_t n = 0;

	cr_assert_eq(cnt, of);
	for (size_t i = 0; i < cnt; i++)
		n += (r[i]->rec.what & CC_RQ_BUSY) != 0;
	return n;
}

/* Six exchanges; before the answers of the last @late, in the same turn (or after @wait), the reply
 * to a call for the one before is read. */
static struct trace passed_on(uint32_t late, bool wait)
{
	struct trace t = trace_new();

	trace_on(&t, T0, -10);
	for (uint32_t i = 1; i <= 6; i++) {
		int at = 10 * (int)i;

		exchange(&t, i, at);
		if (i <= 6 - late)
			continue;
		reply(&t, i - 1, at + 1);
		if (wait)
			trace_irq_wait(&t, T0, NR_EPOLL_WAIT, at + 2, at + 3, CC_CTX_IDLE, 0);
	}
	trace_stop_on(&t, T0, 80);
	return t;
}

Test(mixed, answers_to_earlier_ones_in_the_same_turn_say_multiplexed)
{
	struct trace t = passed_on(3, false);

	cr_assert_eq(labelled(&t, 6), 6); /* the earlier ones too */
	trace_done(&t);
}

Test(mixed, twice_is_not_believed)
{
	struct trace t = passed_on(2, false);

	cr_assert_eq(labelled(&t, 6), 0);
	trace_done(&t);
}

/* A side call that nobody waits for: its reply comes when it comes. */
Test(mixed, a_reply_in_another_turn_says_nothing)
{
	struct trace t = passed_on(5, true);

	cr_assert_eq(labelled(&t, 6), 0);
	trace_done(&t);
}

Test(mixed, a_reply_for_itself_says_nothing)
{
	struct trace t = trace_new();

	trace_on(&t, T0, -10);
	for (uint32_t i = 1; i <= 6; i++) {
		exchange(&t, i, 10 * (int)i);
		reply(&t, i, 10 * (int)i + 1);
	}
	trace_stop_on(&t, T0, 80);
	cr_assert_eq(labelled(&t, 6), 0);
	trace_done(&t);
}

Test(mixed, what_the_kernel_saw_counts_for_the_whole_connection)
{
	struct trace t = trace_new();

	trace_on(&t, T0, -10);
	for (uint32_t i = 1; i <= 6; i++) {
		struct cc_rec_req q =
			trace_req(R, 10 * (int)i, 10 * (int)i, T0, 10 * (int)i + 3, T0);

		q.ordinal = i;
		q.what = i > 2 && i < 6 ? CC_RQ_BUSY : 0;
		trace_put_req(&t, q);
	}
	trace_stop_on(&t, T0, 80);
	cr_assert_eq(labelled(&t, 6), 6);
	trace_done(&t);
}

Test(mixed, busy_periods_are_neither_counted_nor_timed)
{
	struct trace t = passed_on(3, false);
	struct lat_view v;
	struct mem mem = { 0 };
	size_t cnt;
	const struct req_untimed *u;

	trace_request(&t, Q, 0, 0, T1, 1, T1);
	u = engine_untimed(trace_engine(&t), &cnt);
	cr_assert_eq(cnt, 6);
	for (size_t i = 0; i < cnt; i++)
		cr_assert(u[i].apart);
	cr_assert_eq(lat_view_open(&mem, engine_latencies(trace_engine(&t)), 0, UINT64_MAX, &v), 0);
	cr_assert_eq(v.cnt, 1);
	lat_view_done(&mem, &v);
	trace_done(&t);
}

/* The second exchange of a connection, never answered; ended at @end after having been read at 10.
 */
static uint32_t unanswered(uint32_t ordinal, uint64_t bytes, cc_ns end, uint16_t why)
{
	struct trace t = trace_new();
	struct cc_rec_req q = trace_req(R, 10, 10, T0, 10, T0);
	const struct cc_request *const *r;
	uint32_t what;
	size_t cnt;

	q.ordinal = ordinal;
	q.bytes_in = bytes;
	q.first_send = q.last_send = q.bytes_out = 0;
	q.send_cnt = q.send_tid = 0;
	q.what = CC_RQ_NO_REPLY;
	q.h.ts = q.first_recv + end;
	q.h.aux = why;
	trace_on(&t, T0, -10);
	trace_put_req(&t, q);
	trace_stop_on(&t, T0, 20 + (int)(end / UNIT));
	r = engine_requests(trace_engine(&t), &cnt);
	cr_assert_eq(cnt, 1);
	what = r[0]->rec.what;
	trace_done(&t);
	return what & CC_RQ_APART;
}

Test(mixed, a_farewell_is_small_late_unanswered_and_the_end)
{
	cr_assert_eq(unanswered(2, 5, CC_MS(1), CC_END_FIN), CC_RQ_FAREWELL);
	cr_assert_eq(unanswered(2, 24, CC_MS(1), CC_END_EOF), CC_RQ_FAREWELL);
	cr_assert_eq(unanswered(2, 5, CC_MS(1), CC_END_EXIT), CC_RQ_FAREWELL);
	cr_assert_eq(unanswered(2, 5, CC_MS(900), CC_END_EXIT), CC_RQ_FAREWELL);
	cr_assert_eq(unanswered(2, 5, CC_MS(5000), CC_END_EXIT), 0); /* it hung, and was killed */
	cr_assert_eq(unanswered(2, 40, CC_MS(1), CC_END_EXIT), 0);   /* it may have died of it */
	cr_assert_eq(unanswered(1, 5, CC_MS(1), CC_END_FIN), 0); /* the first asks for something */
	cr_assert_eq(unanswered(2, 400, CC_MS(1), CC_END_FIN), 0); /* so large a thing does */
	cr_assert_eq(unanswered(2, 5, CC_MS(200), CC_END_FIN), 0); /* it was waited for */
	cr_assert_eq(unanswered(2, 5, CC_MS(1), CC_END_STOP), 0);  /* who knows */
}
