// SPDX-License-Identifier: Apache-2.0
/* Upstream calls of a thread that reads several requests before it goes on with any of them. */
#include <criterion/criterion.h>

#include "answer_trace.h"

TestSuite(link_group, .timeout = 20);

#define UP(n) (0x300 + (uint64_t)(n))

static void up_op(struct trace *t, unsigned int up, uint16_t op, int at)
{
	trace_sockop(t, (struct cc_rec_sockop){
				.h = { .aux = op, .flags = CC_SO_UPSTREAM, .ts = AT(at) },
				.cookie = UP(up),
				.tid = TID(T0),
				.tgid = TGID,
				.bytes = 100,
				.local_port = (uint16_t)(7000 + up),
				.peer = { .family = 2,
					  .port = (uint16_t)(5000 + up),
					  .ip = { 127, 0, 0, 1 } },
			});
}

/* T0 reads Q at 0 and R at 1, calls 1 at 2 and 2 at 3, has their replies at @reply[] and answers Q
 * and R at @answer[]. */
static struct trace two(const int reply[2], const int answer[2])
{
	struct trace t = trace_new();

	trace_on(&t, T0, -10);
	up_op(&t, 1, CC_OP_CONNECT, 2);
	up_op(&t, 2, CC_OP_CONNECT, 3);
	up_op(&t, 1, CC_OP_SEND, 4);
	up_op(&t, 2, CC_OP_SEND, 5);
	up_op(&t, 1, CC_OP_RECV, reply[0]);
	up_op(&t, 2, CC_OP_RECV, reply[1]);
	trace_request(&t, Q, 0, 0, T0, answer[0], T0);
	trace_request(&t, R, 1, 1, T0, answer[1], T0);
	return t;
}

/* The upstream that @id is linked to; 0: none. */
static uint64_t linked(struct trace *t, int id)
{
	struct cc_reqid rid = { .id = SOCKET(id), .ordinal = 1, .kind = CC_REQID_SOCK };
	const struct cc_request *r = engine_request(trace_engine(t), rid);

	cr_assert(r != NULL);
	if (r->rec.up_votes < 2)
		return 0;
	cr_expect_eq(r->rec.up_peer.port, 5000 + (r->rec.up_cookie - UP(0)));
	return r->rec.up_cookie;
}

static void expect(struct trace *t, uint64_t of_q, uint64_t of_r)
{
	trace_stop_on(t, T0, 50);
	cr_expect_eq(linked(t, Q), of_q);
	cr_expect_eq(linked(t, R), of_r);
	trace_done(t);
}

Test(link_group, each_answered_before_the_other_s_reply)
{
	struct trace t = two((int[]){ 10, 20 }, (int[]){ 12, 22 });

	expect(&t, UP(1), UP(2));
}

Test(link_group, the_order_of_the_calls_tells_nothing)
{
	struct trace t = two((int[]){ 10, 20 }, (int[]){ 22, 12 });

	expect(&t, UP(2), UP(1));
}

Test(link_group, both_replies_read_before_either_is_answered)
{
	struct trace t = two((int[]){ 10, 11 }, (int[]){ 12, 13 });

	expect(&t, 0, 0);
}

Test(link_group, a_call_more_than_requests)
{
	struct trace t = two((int[]){ 10, 20 }, (int[]){ 12, 22 });

	up_op(&t, 3, CC_OP_CONNECT, 6);
	expect(&t, 0, 0);
}

/* What connected in an earlier turn is no call of this one when it sends. */
Test(link_group, a_call_of_before_that_goes_on)
{
	struct trace t = two((int[]){ 10, 20 }, (int[]){ 12, 22 });

	up_op(&t, 3, CC_OP_CONNECT, -5);
	up_op(&t, 3, CC_OP_SEND, 6);
	expect(&t, UP(1), UP(2));
}

/* A connection that is kept: what is sent after the last reply is the next call. */
Test(link_group, a_kept_connection_is_called_again)
{
	struct trace t = two((int[]){ 10, 20 }, (int[]){ 12, 22 });

	up_op(&t, 3, CC_OP_SEND, -6);
	up_op(&t, 3, CC_OP_RECV, -5);
	up_op(&t, 3, CC_OP_SEND, 6);
	expect(&t, 0, 0);
}

/* The thread goes on with what it read alone: then the kernel tells. */
Test(link_group, a_request_read_alone_is_none_of_them)
{
	struct trace t = two((int[]){ 10, 20 }, (int[]){ 12, 22 });

	trace_request(&t, P, 6, 6, T0, 30, T0);
	up_op(&t, 3, CC_OP_CONNECT, 7);
	up_op(&t, 3, CC_OP_RECV, 25);
	expect(&t, UP(1), UP(2));
}

/* What is called after a wait may be for somebody of before (a timer). */
Test(link_group, calls_after_a_wait)
{
	struct trace t = two((int[]){ 10, 20 }, (int[]){ 12, 22 });

	trace_irq_wait(&t, T0, NR_EPOLL_WAIT, 1, 2, CC_CTX_IDLE, 0);
	expect(&t, 0, 0);
}

Test(link_group, a_reply_after_which_another_one_is_answered)
{
	struct trace t = two((int[]){ 10, 20 }, (int[]){ 12, 22 });

	trace_request(&t, P, -9, -8, T0, 11, T0);
	expect(&t, 0, 0);
}

Test(link_group, their_time_is_the_upstream_s)
{
	struct trace t = two((int[]){ 10, 20 }, (int[]){ 12, 22 });
	const struct cc_piece *p;

	trace_irq_wait(&t, T0, NR_EPOLL_WAIT, 6, 10, CC_CTX_IDLE, 0);
	trace_irq_wait(&t, T0, NR_EPOLL_WAIT, 13, 20, CC_CTX_IDLE, 0);
	trace_stop_on(&t, T0, 50);
	p = trace_piece(&t, R, WAIT_UPSTREAM);
	cr_assert(p != NULL);
	cr_expect(p->evidence & CC_EV_BIT(ONLY_WAY));
	cr_expect(!(p->evidence & CC_EV_BIT(VOTES2)));
	trace_done(&t);
}
