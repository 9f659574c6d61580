/* SPDX-License-Identifier: Apache-2.0 */
/* Votes for upstream calls of event loops: worth something within a turn of the loop, nothing
 * across turns when other requests were there, and nothing in a process that mostly calls across
 * turns. */
#include <criterion/criterion.h>

#include "answer_trace.h"
#include "snapshot.h"

TestSuite(link_turn, .timeout = 20);

/* One thread. P is read at 10. R is read at 20 and answered at 60; a call that both votes give to R
 * is made at 30, its reply read at 50. The loop waits for events up to each of these. @call_waits:
 * it did before the call, too; else that is of the turn in which R was read. @answer_waits: and
 * before R was answered. */
static struct trace a_call(bool other, bool call_waits, bool answer_waits)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	trace_wait(&t, T0, NR_EPOLL_WAIT, 1, NEVER, 9, T0);
	trace_wait(&t, T0, NR_EPOLL_WAIT, 11, NEVER, 19, T0);
	if (call_waits)
		trace_wait(&t, T0, NR_EPOLL_WAIT, 22, NEVER, 29, T0);
	trace_wait(&t, T0, NR_EPOLL_WAIT, 32, NEVER, 49, T0);
	if (answer_waits)
		trace_wait(&t, T0, NR_EPOLL_WAIT, 52, NEVER, 59, T0);
	trace_wait(&t, T0, NR_EPOLL_WAIT, 62, NEVER, 69, T0);
	trace_stop_on(&t, T0, 90);
	if (other)
		trace_request(&t, P, 9, 10, T0, 70, T0);
	trace_upstream(&t, R, T0, 30, 50);
	struct cc_rec_req r = trace_req(R, 20, 20, T0, 60, T0);

	r.up_votes = 2;
	r.up_cookie = 0x300 + R;
	r.up_calls = 1;
	r.up_peer = (struct cc_addr){ .family = 2, .port = 5432, .ip = { 10, 0, 0, 9 } };
	trace_put_req(&t, r);
	return t;
}

static unsigned int votes(struct trace *t, int id)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(trace_engine(t), &cnt);

	for (size_t i = 0; i < cnt; i++)
		if (r[i]->id.id == SOCKET(id))
			return r[i]->rec.up_votes;
	cr_assert_fail("no such request");
	return 0;
}

/* What people are told: one vote is a hint, no answer. */
static void expect_told(struct trace *t, const char *upstream, const char *hint)
{
	struct snapshot *s;
	const struct snap_request *r;

	cr_assert_eq(snapshot_build(trace_engine(t), &(struct cc_query){ .group = GROUP_SITE }, &s),
		     0);
	r = snapshot_find(s, (struct cc_reqid){ SOCKET(R), 1, CC_REQID_SOCK });
	cr_assert_not_null(r);
	cr_expect_str_eq(snapshot_str(s, r->up_peer), upstream);
	cr_expect_str_eq(snapshot_str(s, r->up_hint), hint);
	snapshot_free(s);
}

static void expect_link(struct trace t, bool linked)
{
	if (linked)
		cr_expect_not_null(trace_piece(&t, R, WAIT_UPSTREAM));
	cr_expect_eq(votes(&t, R), linked ? 2u : 1u);
	trace_done(&t);
}

Test(link_turn, within_the_turns_of_the_request) { expect_link(a_call(true, false, false), true); }
Test(link_turn, call_of_a_later_turn) { expect_link(a_call(true, true, false), false); }
Test(link_turn, answer_in_a_later_turn_than_the_reply)
{
	expect_link(a_call(true, false, true), false);
}
Test(link_turn, one_vote_is_a_hint)
{
	struct trace yes = a_call(true, false, false), no = a_call(true, true, false);

	expect_told(&yes, "10.0.0.9:5432", "");
	expect_told(&no, "", "10.0.0.9:5432");
	trace_done(&yes);
	trace_done(&no);
}
Test(link_turn, alone_nothing_is_mixed_up) { expect_link(a_call(false, true, true), true); }

Test(link_turn, an_answered_one_is_nobody_to_mix_up_with)
{
	struct trace t = a_call(false, true, true);

	trace_request(&t, P, 9, 10, T0, 11, T0);
	expect_link(t, true);
}

Test(link_turn, one_that_is_still_open_is)
{
	struct trace t = a_call(false, true, false);
	struct cc_rec_req open = trace_req(P, 9, 10, T0, NEVER, T0);

	open.h.kind = CC_REC_OPEN_REQ;
	open.h.aux = CC_END_NONE;
	open.h.ts = AT(90);
	open.send_tid = open.send_cnt = 0;
	trace_put_req(&t, open);
	expect_link(t, false);
}

/* A second call, from the turn in which the reply to the first was read, is of a turn of the
 * request. */
Test(link_turn, call_after_call)
{
	struct trace t = a_call(true, false, false);
	struct cc_addr peer = { .family = 2, .port = 9000, .ip = { 127, 0, 0, 1 } };
	struct cc_rec_sockop op = {
		.h = { .aux = CC_OP_SEND, .flags = CC_SO_UPSTREAM | CC_SO_LINKED, .ts = AT(29) },
		.cookie = 0x500,
		.tid = TID(T0),
		.tgid = TGID,
		.bytes = 9,
		.link_cookie = SOCKET(R),
		.link_ordinal = 1,
		.local_port = 7001,
		.peer = peer,
	};

	trace_done(&t);
	t = trace_new();
	trace_on(&t, T0, 0);
	trace_wait(&t, T0, NR_EPOLL_WAIT, 11, NEVER, 19, T0);
	trace_wait(&t, T0, NR_EPOLL_WAIT, 23, NEVER, 28, T0);
	trace_wait(&t, T0, NR_EPOLL_WAIT, 32, NEVER, 49, T0);
	trace_stop_on(&t, T0, 90);
	trace_request(&t, P, 9, 10, T0, 70, T0);
	op.h.ts = AT(22);
	trace_sockop(
		&t,
		op); /* this one has no second vote, as another reply is read before the answer */
	op.h.aux = CC_OP_RECV;
	op.h.ts = AT(29);
	trace_sockop(&t, op);
	trace_upstream(&t, R, T0, 30, 50);
	struct cc_rec_req r = trace_req(R, 20, 20, T0, 60, T0);

	r.up_votes = 2;
	r.up_cookie = 0x300 + R;
	trace_put_req(&t, r);
	expect_link(t, true);
}

/* Most of its calls are of other turns: in R's turn it may be chance. Once or twice is no habit. */
static struct trace and_calls_elsewhere(int cnt)
{
	struct trace t = a_call(true, false, false);

	for (int i = 0; i < cnt; i++) {
		int id = P + 1 + i, at = 71 + 6 * i;
		struct cc_rec_req r = trace_req(id, at, at, T0, at + 5, T0);

		trace_wait(&t, T0, NR_EPOLL_WAIT, at + 1, NEVER, at + 2, T0);
		trace_upstream(&t, id, T0, at + 3, at + 4);
		r.up_votes = 2;
		r.up_cookie = 0x300 + (uint64_t)id;
		trace_put_req(&t, r);
	}
	return t;
}

Test(link_turn, habit_of_the_process) { expect_link(and_calls_elsewhere(3), false); }
Test(link_turn, twice_is_no_habit) { expect_link(and_calls_elsewhere(2), true); }

Test(link_turn, answered_next_to_a_reply_without_a_call)
{
	struct trace t = a_call(false, false, false);
	struct cc_rec_req p = trace_req(P, 9, 10, T0, 70, T0);

	p.up_votes = 1;
	p.up_cookie = 0x300 + R;
	trace_put_req(&t, p);
	cr_expect_eq(votes(&t, P), 0);
	expect_link(t, true);
}
