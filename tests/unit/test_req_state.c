// SPDX-License-Identifier: Apache-2.0
/* The kernel's request state machine, run here: known sequences. */
#include "req_conn.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

Test(req_state, kept_connection)
{
	struct conn *c = conn_new(RQ_C_TCP);

	for (int i = 0; i < 3; i++) {
		conn_ask(c, 1, 10);
		conn_answer(c, 2, 100);
	}
	cr_expect_eq(c->told_cnt, 2, "each when the next is read");
	conn_tell(c, req_close(&c->s, CC_END_FIN, c->now));
	cr_assert_eq(c->told_cnt, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct cc_rec_req *r = &c->told[i];

		cr_expect_eq(r->ordinal, i + 1);
		cr_expect_eq(r->what, 0);
		cr_expect_eq(r->first_recv - r->arrival, MS(1));
		cr_expect_eq(r->last_send - r->arrival, MS(3), "from arrival to the last send");
		cr_expect_eq(r->bytes_in, 10);
		cr_expect_eq(r->bytes_out, 100);
	}
	cr_expect_eq(c->told[1].h.aux, CC_END_NEXT);
	cr_expect_eq(c->told[2].h.aux, CC_END_FIN);
	cr_expect_eq(req_close(&c->s, CC_END_RST, c->now), 0, "told once");
	free(c);
}

Test(req_state, further_operations_are_said_to_be)
{
	struct conn *c = conn_new(RQ_C_TCP);

	conn_data(c, 30);
	cr_expect_eq(conn_recv(c, 10, 1), 0, "the first recv is in REQ");
	cr_expect_eq(conn_recv(c, 20, 2), 1);
	cr_expect_eq(conn_send(c, 5, 1), 0, "so is the first send by the same thread");
	cr_expect_eq(conn_send(c, 5, 1), 1);
	conn_data(c, 5);
	conn_recv(c, 5, 1);
	cr_expect_eq(conn_send(c, 5, 9), 1, "by another thread: REQ may tell a later one");
	free(c);
}

Test(req_state, told_when_quiet_and_taken_back)
{
	struct conn *c = conn_new(RQ_C_TCP);

	conn_ask(c, 1, 10);
	conn_answer(c, 1, 50); /* the head */
	cr_expect_eq(req_quiet(&c->s, c->now + MS(49), 0), 0);
	c->now += MS(60);
	cr_expect_eq(req_quiet(&c->s, c->now, 0), CC_END_QUIET);
	conn_tell(c, CC_END_QUIET);
	cr_expect_eq(req_quiet(&c->s, c->now + MS(60), 0), 0, "once");
	conn_answer(c, 40, 500); /* the body: 100 ms after */
	conn_ask(c, 1, 10);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect_eq(c->told[1].ordinal, c->told[0].ordinal);
	cr_expect_eq(c->told[1].what, CC_RQ_RESUMED | CC_RQ_RETOLD);
	cr_expect_eq(c->told[1].last_send - c->told[0].last_send, MS(100));
	conn_answer(c, 1, 1);
	conn_answer(c, 60, 1);
	conn_answer(c, 60, 1);
	conn_ask(c, 60, 10);
	cr_assert_eq(c->told_cnt, 3);
	cr_expect_eq(c->told[2].what, CC_RQ_RESUMED | CC_RQ_STREAM, "without being told between");
	cr_expect_eq(c->told[2].h.aux, CC_END_QUIET, "the next event tells it too");
	free(c);
}

Test(req_state, blocked_in_sending_is_not_quiet)
{
	struct conn *c = conn_new(RQ_C_TCP);

	conn_ask(c, 1, 10);
	conn_answer(c, 1, 50);
	req_eagain(&c->s, c->now);
	c->now += MS(500);
	cr_expect_eq(req_quiet(&c->s, c->now, 1), 0);
	conn_answer(c, 0, 50);
	cr_expect_eq(c->s.eagain_ns, MS(500));
	cr_expect_eq(c->s.what & CC_RQ_RESUMED, 0);
	free(c);
}

Test(req_state, eof_in_reading_may_still_be_answered)
{
	struct conn *c = conn_new(RQ_C_TCP);

	conn_ask(c, 1, 10);
	conn_eof(c);
	cr_expect_eq(c->told_cnt, 0);
	conn_answer(c, 1, 10);
	conn_eof(c);
	cr_assert_eq(c->told_cnt, 1);
	cr_expect_eq(c->told[0].h.aux, CC_END_EOF);
	cr_expect_eq(c->told[0].what, 0);
	free(c);
	c = conn_new(RQ_C_TCP);
	conn_ask(c, 1, 10);
	conn_eof(c);
	conn_tell(c, req_close(&c->s, CC_END_FIN, c->now));
	cr_assert_eq(c->told_cnt, 1);
	cr_expect_eq(c->told[0].h.aux, CC_END_EOF, "the peer went first");
	cr_expect_eq(c->told[0].what, CC_RQ_NO_REPLY);
	free(c);
}

Test(req_state, pipelined_is_labelled_and_a_split_body_is_not)
{
	struct conn *c = conn_new(RQ_C_TCP);

	conn_data(c, 10);
	conn_recv(c, 10, 1);
	conn_data(c, 10); /* before any answer, and read after it */
	conn_answer(c, 1, 5);
	conn_recv(c, 10, 1);
	conn_answer(c, 1, 5);
	conn_data(c, 10);
	conn_recv(c, 10, 1); /* a body in two parts */
	conn_data(c, 10);
	conn_recv(c, 10, 1);
	conn_answer(c, 1, 5);
	conn_eof(c);
	cr_assert_eq(c->told_cnt, 3);
	cr_expect_eq(c->told[0].what, CC_RQ_BUSY);
	cr_expect_eq(c->told[1].what, CC_RQ_BUSY);
	cr_expect_eq(c->told[2].what, 0);
	free(c);
}

/* A batch larger than the server reads at once: the rest lies there when the first are answered. */
Test(req_state, answered_before_all_was_read_is_pipelined)
{
	struct conn *c = conn_new(RQ_C_TCP);

	conn_data(c, 30);
	conn_recv(c, 20, 1);
	conn_answer(c, 1, 5);
	conn_recv(c, 10, 1);
	conn_answer(c, 1, 5);
	conn_data(c, 30); /* read in two parts, then answered */
	conn_recv(c, 20, 1);
	conn_recv(c, 10, 1);
	conn_answer(c, 1, 5);
	conn_eof(c);
	cr_assert_eq(c->told_cnt, 3);
	cr_expect_eq(c->told[0].what, CC_RQ_BUSY);
	cr_expect_eq(c->told[1].what, CC_RQ_BUSY);
	cr_expect_eq(c->told[2].what, 0);
	free(c);
	c = conn_new(RQ_C_UNIX);
	conn_data(c, 30);
	conn_recv(c, 20, 1);
	conn_answer(c, 1, 5);
	conn_recv(c, 10, 1);
	conn_answer(c, 1, 5);
	conn_eof(c);
	cr_expect(c->told[c->told_cnt - 1].what & CC_RQ_BUSY, "unix sockets too");
	free(c);
}

/* TLS 1.3: the end of the handshake and the first request come together, the server answers the
 * former by tickets before it reads the latter. */
Test(req_state, request_that_comes_with_the_end_of_a_handshake)
{
	struct conn *c = conn_new(RQ_C_TCP);

	conn_data(c, 500);
	conn_recv(c, 5, 1);
	conn_recv(c, 495, 1);
	conn_answer(c, 1, 3000);
	conn_data(c, 58 + 100);
	conn_recv(c, 5, 1);
	conn_recv(c, 53, 1);
	conn_answer(c, 1, 500);
	conn_recv(c, 5, 1);
	conn_recv(c, 95, 1);
	conn_answer(c, 1, 1000);
	conn_eof(c);
	cr_assert_eq(c->told_cnt, 3);
	cr_expect_eq(c->told[0].what, CC_RQ_SETUP);
	cr_expect_eq(c->told[1].what, CC_RQ_SETUP);
	cr_expect_eq(c->told[2].what, 0);
	free(c);
}

/* What the exchange after the hello is: @in bytes. */
static uint32_t after_hello(uint32_t in)
{
	struct conn *c = conn_new(RQ_C_TCP);
	uint32_t what;

	conn_ask(c, 1, 517);
	conn_answer(c, 1, 141);
	conn_ask(c, 1, in);
	conn_answer(c, 1, 181);
	conn_eof(c);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect_eq(c->told[0].what, CC_RQ_SETUP);
	what = c->told[1].what;
	free(c);
	return what;
}

Test(req_state, end_of_a_resumed_handshake_comes_with_the_request)
{
	cr_expect_eq(after_hello(51 + 58), 0, "TLS 1.2: nothing answers it alone");
	cr_expect_eq(after_hello(80 + 102), 0, "TLS 1.3");
	cr_expect_eq(after_hello(80), CC_RQ_SETUP);
	cr_expect_eq(after_hello(93), CC_RQ_SETUP);
}

Test(req_state, what_another_thread_did_is_said)
{
	struct conn *c = conn_new(RQ_C_TCP);
	struct req_op o;

	conn_data(c, 10);
	c->copied_seq += 10;
	o = conn_op(c, 10, 1);
	o.proxy = CC_RQ_BY_PROXY;
	req_recv(&c->s, &o);
	cr_expect_eq(c->s.what, CC_RQ_BY_PROXY);
	c->now += MS(1);
	conn_send(c, 5, 1);
	conn_ask(c, 1, 10);
	cr_expect_eq(c->told[0].what, CC_RQ_BY_PROXY);
	cr_expect_eq(c->s.what, 0, "each request by itself");
	free(c);
}

Test(req_state, data_left_unread_keeps_its_arrival)
{
	struct conn *c = conn_new(RQ_C_TCP);
	uint64_t came = c->now;

	conn_data(c, 20); /* two at once, read one by one */
	c->now += MS(1);
	conn_recv(c, 10, 1);
	conn_answer(c, 30, 5);
	conn_recv(c, 10, 1);
	conn_answer(c, 1, 5);
	conn_eof(c);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect_eq(c->told[0].arrival, came);
	cr_expect_eq(c->told[1].arrival, came, "it waited 31 ms behind the first");
	free(c);
}

Test(req_state, answer_whose_event_comes_after_the_next_recv)
{
	struct conn *c = conn_new(RQ_C_TCP);

	conn_ask(c, 1, 10);
	c->now += MS(1);
	c->write_seq += 100; /* thread 1 is inside send; the client has the bytes */
	conn_ask(c, 0, 10);
	cr_assert_eq(c->told_cnt, 1);
	cr_expect_eq(c->told[0].what, 0, "it was answered");
	cr_expect_eq(c->told[0].bytes_out, 100);
	cr_expect_eq(c->told[0].send_tid, 0, "by whom is not known yet");
	conn_send_event(c, 100, 1); /* now its event: not of request 2 */
	cr_expect_eq(c->s.phase, RQ_READING);
	cr_expect_eq(c->s.send_cnt, 0);
	conn_answer(c, 1, 5);
	conn_eof(c);
	cr_expect_eq(c->told[1].bytes_out, 5);
	free(c);
}

Test(req_state, spliced_unsolicited_and_late)
{
	struct conn *c = conn_new(RQ_C_TCP);

	conn_answer(c, 1, 9); /* a banner */
	conn_data(c, 20);
	c->copied_seq += 20; /* by splice */
	c->now += MS(5);
	conn_answer(c, 0, 7);
	conn_eof(c);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect_eq(c->told[0].what, CC_RQ_UNSOLICITED);
	cr_expect_eq(c->told[1].what, CC_RQ_SPLICE_IN);
	cr_expect_eq(c->told[1].bytes_in, 20);
	cr_expect_eq(c->told[1].last_send - c->told[1].arrival, MS(5));
	free(c);
	c = conn_new(RQ_C_TCP | RQ_C_LATE);
	conn_answer(c, 1, 9);
	conn_ask(c, 1, 3);
	cr_expect_eq(c->told[0].what, CC_RQ_LATE | CC_RQ_ORDINAL_GE);
	free(c);
}

/* A proxy reads the head of a large request, the rest goes on by splice; the answer is in parts. */
Test(req_state, the_rest_of_a_body_is_spliced)
{
	struct conn *c = conn_new(RQ_C_TCP);

	for (int i = 0; i < 5; i++) {
		conn_ask(c, 1, 100);
		conn_data(c, 900);
		c->copied_seq += 900;
		conn_answer(c, 5, 7);
		conn_answer(c, 1, 7);
		c->now += MS(1);
	}
	conn_eof(c);
	cr_assert_eq(c->told_cnt, 5);
	for (int i = 0; i < 5; i++) {
		cr_expect_eq(c->told[i].what, 0);
		cr_expect_eq(c->told[i].bytes_in, 1000);
		cr_expect_eq(c->told[i].bytes_out, 14);
		cr_expect_eq(c->told[i].last_send - c->told[i].arrival, MS(7));
	}
	free(c);
}

Test(req_state, unread_and_shared_are_told)
{
	struct conn *c = conn_new(RQ_C_TCP | RQ_C_LATE | RQ_C_SHARED);
	struct cc_rec_req r = { 0 };

	conn_answer(c, 1, 9); /* to before our time: who read that? */
	conn_data(c, 20);
	cr_assert(req_fill_unread(&c->s, &r));
	cr_expect_eq(r.what, CC_RQ_UNREAD | CC_RQ_ORDINAL_GE);
	conn_recv(c, 20, 1);
	conn_answer(c, 1, 3);
	conn_ask(c, 1, 3);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect_eq(c->told[0].what, CC_RQ_LATE | CC_RQ_ORDINAL_GE | CC_RQ_SHARED);
	cr_expect_eq(c->told[1].what, CC_RQ_ORDINAL_GE, "what was seen is known");
	free(c);
}

Test(req_state, stale_arrival_is_not_believed)
{
	struct conn *c = conn_new(RQ_C_UNIX);

	c->rcv_nxt += 5;
	conn_recv(c, 5, 1); /* read before its data_ready ran ... */
	c->s.pend_first = c->s.pend_last = c->now - 1;
	c->now += MS(5000);
	c->rcv_nxt += 5;
	conn_send(c, 5, 1);
	conn_recv(c, 5, 1); /* ... which must not make the next one 5 s old */
	cr_expect_eq(c->s.arrival, 0);
	free(c);
}

Test(req_state, no_close_is_seen_on_unix_so_a_send_tells)
{
	struct conn *c = conn_new(RQ_C_UNIX);

	conn_ask(c, 1, 10);
	conn_answer(c, 1, 5);
	cr_assert_eq(c->told_cnt, 1);
	conn_answer(c, 1, 5);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect_eq(c->told[1].what, CC_RQ_UNIX | CC_RQ_RETOLD);
	cr_expect_eq(c->told[1].bytes_out, 10);
	for (int i = 0; i < 1000; i++)
		conn_answer(c, 1, 5);
	cr_expect_lt(c->told_cnt, 20, "ever less often");
	conn_ask(c, 1, 10);
	cr_expect_eq(c->told[c->told_cnt - 1].bytes_out, 5010, "and in the end rightly");
	free(c);
}

Test(req_state, udp_datagrams_that_overlap)
{
	struct conn *c = conn_new(RQ_C_UDP);

	conn_ask(c, 1, 10);
	conn_ask(c, 1, 10);
	conn_answer(c, 1, 5);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect(c->told[0].what & CC_RQ_CONCURRENT);
	cr_expect(c->told[1].what & CC_RQ_CONCURRENT);
	free(c);
}

static bool told_concurrent(const struct conn *c)
{
	return c->told[c->told_cnt - 1].what & CC_RQ_CONCURRENT;
}

/* Two clients by turns, one always open: what is sent answers the one before. */
Test(req_state, udp_answers_may_be_others_until_all_are_out)
{
	struct conn *c = conn_new(RQ_C_UDP);

	conn_ask(c, 1, 10);
	for (int i = 0; i < 20; i++) {
		conn_ask(c, 1, 10);
		conn_answer(c, 1, 5);
		cr_expect(told_concurrent(c));
	}
	conn_answer(c, 1, 5);
	conn_ask(c, 1, 10);
	conn_answer(c, 1, 5);
	cr_expect_not(told_concurrent(c), "serial again");
	free(c);
}

Test(req_state, udp_datagrams_without_an_answer_are_owed_none_after_a_pause)
{
	struct conn *c = conn_new(RQ_C_UDP);

	conn_ask(c, 1, 10);
	conn_ask(c, 400, 10);
	conn_answer(c, 1, 5);
	conn_ask(c, 400, 10);
	conn_answer(c, 1, 5);
	cr_expect(told_concurrent(c));
	conn_ask(c, 1001, 10);
	conn_answer(c, 1, 5);
	cr_expect_not(told_concurrent(c));
	free(c);
}

Test(req_state, start_up_exchanges)
{
	struct conn *c = conn_new(RQ_C_TCP);

	conn_data(c, 500);
	conn_recv(c, 5, 1); /* OpenSSL: the record's head, then the rest */
	conn_recv(c, 495, 1);
	conn_answer(c, 1, 3000);
	conn_ask(c, 1, 80);
	conn_answer(c, 1, 500);
	conn_ask(c, 1, 100);
	conn_answer(c, 1, 100);
	conn_eof(c);
	cr_expect_eq(c->told[0].what, CC_RQ_SETUP);
	cr_expect_eq(c->told[1].what, CC_RQ_SETUP);
	cr_expect_eq(c->told[2].what, 0);
	free(c);
	c = conn_new(RQ_C_TCP);
	conn_ask(c, 1,
		 517); /* with read-ahead; then a resumed session: finished and a request at once */
	conn_answer(c, 1, 1100);
	conn_ask(c, 1, 580);
	conn_answer(c, 1, 100);
	conn_eof(c);
	cr_expect_eq(c->told[0].what, CC_RQ_SETUP);
	cr_expect_eq(c->told[1].what, 0);
	free(c);
	c = conn_new(RQ_C_TCP | RQ_C_PG);
	conn_ask(c, 1, 8); /* SSLRequest, start-up, two SASL steps, a query */
	conn_answer(c, 1, 1);
	conn_ask(c, 1, 80);
	conn_answer(c, 1, 24);
	conn_ask(c, 1, 55);
	conn_answer(c, 1, 93);
	conn_ask(c, 1, 109);
	conn_answer(c, 1, 400);
	conn_ask(c, 1, 30);
	conn_answer(c, 1, 60);
	conn_eof(c);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(c->told[i].what, CC_RQ_SETUP, "%d", i);
	cr_expect_eq(c->told[4].what, 0);
	free(c);
}

Test(req_state, votes)
{
	struct req_state a = { .cookie = 1, .ordinal = 4 }, b = { .cookie = 2, .ordinal = 1 };
	struct req_state u = { .cookie = 9 }, v = { .cookie = 10 };
	struct req_task t = { 0 };

	link_server_recv(&t, &a); /* two requests, their calls interleaved in one loop */
	link_call(&t, &u, 1);
	link_server_recv(&t, &b);
	link_call(&t, &v, 1);
	link_call(&t, &u, 0); /* connected meanwhile: still for a */
	link_call(&t, &v, 0);
	cr_expect_eq(u.link_cookie, 1);
	cr_expect_eq(v.link_cookie, 2);
	link_reply(&t, &v, 5);
	cr_expect_eq(link_server_send(&t, &b), 1);
	cr_expect_eq(b.up_votes, 2);
	cr_expect_eq(b.up_cookie, 10);
	link_reply(&t, &u, 6);
	cr_expect_eq(link_server_send(&t, &a), 1);
	link_reply(&t, &u, 7); /* more of the same reply */
	cr_expect_eq(link_server_send(&t, &a), 0, "counted once");
	cr_expect_eq(a.up_calls, 1);
	link_call(&t, &u, 0); /* a call for b, whose reply goes to a: the votes differ */
	link_reply(&t, &u, 8);
	a.ordinal++;
	a.up_votes = a.up_calls = 0;
	a.up_cookie = 0;
	cr_expect_eq(link_server_send(&t, &a), 0);
	cr_expect_eq(a.up_votes, 1);
	cr_expect_eq(a.up_calls, 0);
}

Test(req_state, forward_vote_needs_one_candidate)
{
	struct req_state a = { .cookie = 1, .ordinal = 1 }, b = { .cookie = 2, .ordinal = 1 };
	struct req_state u = { .cookie = 9 }, v = { .cookie = 10 };
	struct req_task t = { 0 };

	link_server_recv(&t, &a); /* both are read before either goes on */
	link_server_recv(&t, &b);
	link_call(&t, &u, 1);
	link_call(&t, &v, 1);
	link_server_recv(&t, &b); /* connected meanwhile; that b is read now tells nothing of it */
	link_call(&t, &u, 0);
	cr_expect_eq(u.link_cookie, 0);
	cr_expect_eq(v.link_cookie, 0);
	link_reply(&t, &u, 5);
	cr_expect_eq(link_server_send(&t, &b), 0);
	cr_expect_neq(b.up_votes, 2);
	a.ordinal++; /* the next call of the same connection: one candidate again */
	link_server_recv(&t, &a);
	link_server_recv(&t, &a);
	link_call(&t, &u, 0);
	cr_expect_eq(u.link_cookie, 1);
	link_reply(&t, &u, 6);
	cr_expect_eq(link_server_send(&t, &a), 1);
	cr_expect_eq(a.up_votes, 2);
}
