// SPDX-License-Identifier: Apache-2.0
/* The kernel's request state machine, run here: known sequences, then random ones. */
#include "../../bpf/req_link.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MS(n) ((uint64_t)(n)*1000000)
#define TOLD_MAX 256

/* A connection as the kernel has it, and what was told of it. */
struct conn {
	struct req_state s;
	uint64_t now;
	uint32_t rcv_nxt, copied_seq, write_seq;
	uint64_t got, given;         /* bytes that went through recv and send, splice included */
	uint32_t unseen, unseen_tid; /* written, the event is still to come */
	struct cc_rec_req told[TOLD_MAX];
	size_t told_cnt;
};

static struct conn *conn_new(uint32_t kind)
{
	struct conn *c = calloc(1, sizeof(*c));

	cr_assert(c != NULL);
	c->now = MS(1000);
	c->s.cookie = 7;
	c->s.conn = kind;
	c->s.role = RQ_ROLE_SERVER;
	return c;
}

static void tell(struct conn *c, uint16_t end)
{
	if (!end)
		return;
	cr_assert_lt(c->told_cnt, TOLD_MAX, "told without bound");
	struct cc_rec_req *r = &c->told[c->told_cnt++];

	memset(r, 0xee, sizeof(*r)); /* every byte must be set */
	memset(&r->h, 0, sizeof(r->h));
	r->h.aux = end;
	r->h.ts = c->now;
	req_fill(&c->s, end, r);
	req_told(&c->s);
}

static struct req_op op(const struct conn *c, uint64_t bytes, uint32_t tid)
{
	return (struct req_op){ .now = c->now,
				.bytes = bytes,
				.tid = tid,
				.tgid = 100,
				.copied_seq = c->copied_seq,
				.write_seq = c->write_seq,
				.left = c->rcv_nxt - c->copied_seq };
}

static void data(struct conn *c, uint32_t bytes)
{
	c->rcv_nxt += bytes;
	req_data(&c->s, c->now, c->rcv_nxt, c->write_seq, 0);
}

static int do_recv(struct conn *c, uint32_t bytes, uint32_t tid)
{
	struct req_op o;

	c->copied_seq += bytes;
	c->got += bytes;
	o = op(c, bytes, tid);
	tell(c, req_recv_ends(&c->s, &o));
	return req_recv(&c->s, &o);
}

static int send_event(struct conn *c, uint32_t bytes, uint32_t tid)
{
	struct req_op o = op(c, bytes, tid);
	int further;

	if (req_owed(&c->s, &o)) {
		c->s.conn &= ~(uint32_t)RQ_C_OWED;
		return 1;
	}
	tell(c, req_send_ends(&c->s, &o));
	further = req_send(&c->s, &o);
	tell(c, req_send_tells(&c->s));
	return further;
}

static int do_send(struct conn *c, uint32_t bytes, uint32_t tid)
{
	c->write_seq += bytes;
	c->given += bytes;
	return send_event(c, bytes, tid);
}

static void do_eof(struct conn *c)
{
	struct req_op o = op(c, 0, 1);

	tell(c, req_eof(&c->s, &o));
}

static void ask(struct conn *c, uint64_t ms, uint32_t bytes)
{
	c->now += MS(ms);
	data(c, bytes);
	c->now += MS(1);
	do_recv(c, bytes, 1);
}

static void answer(struct conn *c, uint64_t ms, uint32_t bytes)
{
	c->now += MS(ms);
	do_send(c, bytes, 1);
}

Test(req_state, kept_connection)
{
	struct conn *c = conn_new(RQ_C_TCP);

	for (int i = 0; i < 3; i++) {
		ask(c, 1, 10);
		answer(c, 2, 100);
	}
	cr_expect_eq(c->told_cnt, 2, "each when the next is read");
	tell(c, req_close(&c->s, CC_END_FIN, c->now));
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

	data(c, 30);
	cr_expect_eq(do_recv(c, 10, 1), 0, "the first recv is in REQ");
	cr_expect_eq(do_recv(c, 20, 2), 1);
	cr_expect_eq(do_send(c, 5, 1), 0, "so is the first send by the same thread");
	cr_expect_eq(do_send(c, 5, 1), 1);
	data(c, 5);
	do_recv(c, 5, 1);
	cr_expect_eq(do_send(c, 5, 9), 1, "by another thread: REQ may tell a later one");
	free(c);
}

Test(req_state, told_when_quiet_and_taken_back)
{
	struct conn *c = conn_new(RQ_C_TCP);

	ask(c, 1, 10);
	answer(c, 1, 50); /* the head */
	cr_expect_eq(req_quiet(&c->s, c->now + MS(49), 0), 0);
	c->now += MS(60);
	cr_expect_eq(req_quiet(&c->s, c->now, 0), CC_END_QUIET);
	tell(c, CC_END_QUIET);
	cr_expect_eq(req_quiet(&c->s, c->now + MS(60), 0), 0, "once");
	answer(c, 40, 500); /* the body: 100 ms after */
	ask(c, 1, 10);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect_eq(c->told[1].ordinal, c->told[0].ordinal);
	cr_expect_eq(c->told[1].what, CC_RQ_RESUMED | CC_RQ_RETOLD);
	cr_expect_eq(c->told[1].last_send - c->told[0].last_send, MS(100));
	answer(c, 1, 1);
	answer(c, 60, 1);
	answer(c, 60, 1);
	ask(c, 60, 10);
	cr_assert_eq(c->told_cnt, 3);
	cr_expect_eq(c->told[2].what, CC_RQ_RESUMED | CC_RQ_STREAM, "without being told between");
	cr_expect_eq(c->told[2].h.aux, CC_END_QUIET, "the next event tells it too");
	free(c);
}

Test(req_state, blocked_in_sending_is_not_quiet)
{
	struct conn *c = conn_new(RQ_C_TCP);

	ask(c, 1, 10);
	answer(c, 1, 50);
	req_eagain(&c->s, c->now);
	c->now += MS(500);
	cr_expect_eq(req_quiet(&c->s, c->now, 1), 0);
	answer(c, 0, 50);
	cr_expect_eq(c->s.eagain_ns, MS(500));
	cr_expect_eq(c->s.what & CC_RQ_RESUMED, 0);
	free(c);
}

Test(req_state, eof_in_reading_may_still_be_answered)
{
	struct conn *c = conn_new(RQ_C_TCP);

	ask(c, 1, 10);
	do_eof(c);
	cr_expect_eq(c->told_cnt, 0);
	answer(c, 1, 10);
	do_eof(c);
	cr_assert_eq(c->told_cnt, 1);
	cr_expect_eq(c->told[0].h.aux, CC_END_EOF);
	cr_expect_eq(c->told[0].what, 0);
	free(c);
	c = conn_new(RQ_C_TCP);
	ask(c, 1, 10);
	do_eof(c);
	tell(c, req_close(&c->s, CC_END_FIN, c->now));
	cr_assert_eq(c->told_cnt, 1);
	cr_expect_eq(c->told[0].h.aux, CC_END_EOF, "the peer went first");
	cr_expect_eq(c->told[0].what, CC_RQ_NO_REPLY);
	free(c);
}

Test(req_state, pipelined_is_labelled_and_a_split_body_is_not)
{
	struct conn *c = conn_new(RQ_C_TCP);

	data(c, 10);
	do_recv(c, 10, 1);
	data(c, 10); /* before any answer, and read after it */
	answer(c, 1, 5);
	do_recv(c, 10, 1);
	answer(c, 1, 5);
	data(c, 10);
	do_recv(c, 10, 1); /* a body in two parts */
	data(c, 10);
	do_recv(c, 10, 1);
	answer(c, 1, 5);
	do_eof(c);
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

	data(c, 30);
	do_recv(c, 20, 1);
	answer(c, 1, 5);
	do_recv(c, 10, 1);
	answer(c, 1, 5);
	data(c, 30); /* read in two parts, then answered */
	do_recv(c, 20, 1);
	do_recv(c, 10, 1);
	answer(c, 1, 5);
	do_eof(c);
	cr_assert_eq(c->told_cnt, 3);
	cr_expect_eq(c->told[0].what, CC_RQ_BUSY);
	cr_expect_eq(c->told[1].what, CC_RQ_BUSY);
	cr_expect_eq(c->told[2].what, 0);
	free(c);
	c = conn_new(RQ_C_UNIX);
	data(c, 30);
	do_recv(c, 20, 1);
	answer(c, 1, 5);
	do_recv(c, 10, 1);
	answer(c, 1, 5);
	do_eof(c);
	cr_expect(c->told[c->told_cnt - 1].what & CC_RQ_BUSY, "unix sockets too");
	free(c);
}

/* TLS 1.3: the end of the handshake and the first request come together, the server answers the
 * former by tickets before it reads the latter. */
Test(req_state, request_that_comes_with_the_end_of_a_handshake)
{
	struct conn *c = conn_new(RQ_C_TCP);

	data(c, 500);
	do_recv(c, 5, 1);
	do_recv(c, 495, 1);
	answer(c, 1, 3000);
	data(c, 58 + 100);
	do_recv(c, 5, 1);
	do_recv(c, 53, 1);
	answer(c, 1, 500);
	do_recv(c, 5, 1);
	do_recv(c, 95, 1);
	answer(c, 1, 1000);
	do_eof(c);
	cr_assert_eq(c->told_cnt, 3);
	cr_expect_eq(c->told[0].what, CC_RQ_SETUP);
	cr_expect_eq(c->told[1].what, CC_RQ_SETUP);
	cr_expect_eq(c->told[2].what, 0);
	free(c);
}

Test(req_state, what_another_thread_did_is_said)
{
	struct conn *c = conn_new(RQ_C_TCP);
	struct req_op o;

	data(c, 10);
	c->copied_seq += 10;
	o = op(c, 10, 1);
	o.proxy = CC_RQ_BY_PROXY;
	req_recv(&c->s, &o);
	cr_expect_eq(c->s.what, CC_RQ_BY_PROXY);
	c->now += MS(1);
	do_send(c, 5, 1);
	ask(c, 1, 10);
	cr_expect_eq(c->told[0].what, CC_RQ_BY_PROXY);
	cr_expect_eq(c->s.what, 0, "each request by itself");
	free(c);
}

Test(req_state, data_left_unread_keeps_its_arrival)
{
	struct conn *c = conn_new(RQ_C_TCP);
	uint64_t came = c->now;

	data(c, 20); /* two at once, read one by one */
	c->now += MS(1);
	do_recv(c, 10, 1);
	answer(c, 30, 5);
	do_recv(c, 10, 1);
	answer(c, 1, 5);
	do_eof(c);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect_eq(c->told[0].arrival, came);
	cr_expect_eq(c->told[1].arrival, came, "it waited 31 ms behind the first");
	free(c);
}

Test(req_state, answer_whose_event_comes_after_the_next_recv)
{
	struct conn *c = conn_new(RQ_C_TCP);

	ask(c, 1, 10);
	c->now += MS(1);
	c->write_seq += 100; /* thread 1 is inside send; the client has the bytes */
	ask(c, 0, 10);
	cr_assert_eq(c->told_cnt, 1);
	cr_expect_eq(c->told[0].what, 0, "it was answered");
	cr_expect_eq(c->told[0].bytes_out, 100);
	cr_expect_eq(c->told[0].send_tid, 0, "by whom is not known yet");
	send_event(c, 100, 1); /* now its event: not of request 2 */
	cr_expect_eq(c->s.phase, RQ_READING);
	cr_expect_eq(c->s.send_cnt, 0);
	answer(c, 1, 5);
	do_eof(c);
	cr_expect_eq(c->told[1].bytes_out, 5);
	free(c);
}

Test(req_state, spliced_unsolicited_and_late)
{
	struct conn *c = conn_new(RQ_C_TCP);

	answer(c, 1, 9); /* a banner */
	data(c, 20);
	c->copied_seq += 20; /* by splice */
	c->now += MS(5);
	answer(c, 0, 7);
	do_eof(c);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect_eq(c->told[0].what, CC_RQ_UNSOLICITED);
	cr_expect_eq(c->told[1].what, CC_RQ_SPLICE_IN);
	cr_expect_eq(c->told[1].bytes_in, 20);
	cr_expect_eq(c->told[1].last_send - c->told[1].arrival, MS(5));
	free(c);
	c = conn_new(RQ_C_TCP | RQ_C_LATE);
	answer(c, 1, 9);
	ask(c, 1, 3);
	cr_expect_eq(c->told[0].what, CC_RQ_LATE | CC_RQ_ORDINAL_GE);
	free(c);
}

Test(req_state, stale_arrival_is_not_believed)
{
	struct conn *c = conn_new(RQ_C_UNIX);

	c->rcv_nxt += 5;
	do_recv(c, 5, 1); /* read before its data_ready ran ... */
	c->s.pend_first = c->s.pend_last = c->now - 1;
	c->now += MS(5000);
	c->rcv_nxt += 5;
	do_send(c, 5, 1);
	do_recv(c, 5, 1); /* ... which must not make the next one 5 s old */
	cr_expect_eq(c->s.arrival, 0);
	free(c);
}

Test(req_state, no_close_is_seen_on_unix_so_a_send_tells)
{
	struct conn *c = conn_new(RQ_C_UNIX);

	ask(c, 1, 10);
	answer(c, 1, 5);
	cr_assert_eq(c->told_cnt, 1);
	answer(c, 1, 5);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect_eq(c->told[1].what, CC_RQ_UNIX | CC_RQ_RETOLD);
	cr_expect_eq(c->told[1].bytes_out, 10);
	for (int i = 0; i < 1000; i++)
		answer(c, 1, 5);
	cr_expect_lt(c->told_cnt, 20, "ever less often");
	ask(c, 1, 10);
	cr_expect_eq(c->told[c->told_cnt - 1].bytes_out, 5010, "and in the end rightly");
	free(c);
}

Test(req_state, udp_datagrams_that_overlap)
{
	struct conn *c = conn_new(RQ_C_UDP);

	ask(c, 1, 10);
	ask(c, 1, 10);
	answer(c, 1, 5);
	cr_assert_eq(c->told_cnt, 2);
	cr_expect(c->told[0].what & CC_RQ_CONCURRENT);
	cr_expect(c->told[1].what & CC_RQ_CONCURRENT);
	free(c);
}

Test(req_state, start_up_exchanges)
{
	struct conn *c = conn_new(RQ_C_TCP);

	data(c, 500);
	do_recv(c, 5, 1); /* OpenSSL: the record's head, then the rest */
	do_recv(c, 495, 1);
	answer(c, 1, 3000);
	ask(c, 1, 80);
	answer(c, 1, 500);
	ask(c, 1, 100);
	answer(c, 1, 100);
	do_eof(c);
	cr_expect_eq(c->told[0].what, CC_RQ_SETUP);
	cr_expect_eq(c->told[1].what, CC_RQ_SETUP);
	cr_expect_eq(c->told[2].what, 0);
	free(c);
	c = conn_new(RQ_C_TCP);
	ask(c, 1,
	    517); /* with read-ahead; then a resumed session: finished and a request at once */
	answer(c, 1, 1100);
	ask(c, 1, 580);
	answer(c, 1, 100);
	do_eof(c);
	cr_expect_eq(c->told[0].what, CC_RQ_SETUP);
	cr_expect_eq(c->told[1].what, 0);
	free(c);
	c = conn_new(RQ_C_TCP | RQ_C_PG);
	ask(c, 1, 8); /* SSLRequest, start-up, two SASL steps, a query */
	answer(c, 1, 1);
	ask(c, 1, 80);
	answer(c, 1, 24);
	ask(c, 1, 55);
	answer(c, 1, 93);
	ask(c, 1, 109);
	answer(c, 1, 400);
	ask(c, 1, 30);
	answer(c, 1, 60);
	do_eof(c);
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

/* ---- random sequences --------------------------------------------------------------------- */

static uint32_t rnd(uint64_t *seed, uint32_t n)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33) % n;
}

/* A write whose event comes later, as a send ends after its delivery. */
static void write_unseen(struct conn *c, uint32_t bytes, uint32_t tid)
{
	c->write_seq += bytes;
	c->given += bytes;
	c->unseen += bytes;
	c->unseen_tid = tid;
}

static void see_written(struct conn *c)
{
	uint32_t bytes = c->unseen;

	c->unseen = 0;
	if (bytes && !(c->s.conn & RQ_C_CLOSED))
		send_event(c, bytes, c->unseen_tid);
}

static void read_some(struct conn *c, uint64_t *seed, uint32_t tid)
{
	uint32_t left = c->rcv_nxt - c->copied_seq;

	if (left)
		do_recv(c, 1 + rnd(seed, left), tid);
}

static void splice_or_eagain(struct conn *c, uint32_t tid)
{
	uint32_t left = c->rcv_nxt - c->copied_seq;

	if (left && (c->s.conn & RQ_C_TCP) && c->s.phase != RQ_READING && !c->unseen) {
		c->copied_seq += left;
		c->got += left;
		do_send(c, 1, tid);
	} else {
		req_eagain(&c->s, c->now);
	}
}

static void step(struct conn *c, uint64_t *seed)
{
	uint32_t tid = 1 + rnd(seed, 3);

	c->now += rnd(seed, 10) ? rnd(seed, 100000) + 1 : MS(rnd(seed, 120));
	switch (rnd(seed, 9)) {
	case 0:
	case 1:
		if (!(c->s.conn & RQ_C_EOF))
			data(c, 1 + rnd(seed, 100));
		break;
	case 2:
	case 3:
		read_some(c, seed, tid);
		break;
	case 4:
		see_written(c);
		do_send(c, 1 + rnd(seed, 100), tid);
		break;
	case 5:
		splice_or_eagain(c, tid);
		break;
	case 6:
		tell(c, req_quiet(&c->s, c->now, (int)rnd(seed, 2)));
		break;
	case 7:
		if (c->unseen)
			see_written(c);
		else if (c->s.conn & RQ_C_TCP)
			write_unseen(c, 1 + rnd(seed, 100), tid);
		break;
	default:
		if (c->rcv_nxt == c->copied_seq && !c->unseen && !rnd(seed, 20))
			do_eof(c);
		break;
	}
}

/* The end, as sock_conn.bpf.c has it: what was written counts, what lies unread is a request that
 * was never begun. Nothing is left to be told, whoever asks. */
static void end(struct conn *c, uint64_t *seed)
{
	uint16_t why = rnd(seed, 2) ? CC_END_FIN : CC_END_RST;
	struct req_op o = op(c, 0, 0);

	see_written(c);
	tell(c, req_close(&c->s, why, c->now));
	if (why == CC_END_RST && c->rcv_nxt != c->copied_seq && c->s.pend_first) {
		req_begin_unread(&c->s, &o);
		tell(c, why);
	}
	cr_assert_eq(req_close(&c->s, CC_END_RST, c->now), 0);
	cr_assert_eq(req_quiet(&c->s, c->now + MS(1000), 0), 0);
	cr_assert_eq(c->s.phase, RQ_IDLE, "a closed socket has no request under way");
}

static void check_row(const struct cc_rec_req *r)
{
	if (r->arrival && r->first_recv)
		cr_assert_leq(r->arrival, r->first_recv);
	cr_assert_leq(r->first_recv, r->last_recv);
	cr_assert_leq(r->first_send, r->last_send);
	if (r->last_send) {
		cr_assert_leq(r->first_recv, r->first_send);
		cr_assert_leq(r->arrival, r->first_send);
		cr_assert_leq(r->eagain_ns, r->last_send - (r->arrival ? r->arrival : 1));
	}
	cr_assert_leq(r->last_send, r->h.ts);
	cr_assert_eq(!r->last_send, !!(r->what & CC_RQ_NO_REPLY));
	cr_assert_eq(!r->bytes_out, !r->send_cnt);
	cr_assert(!(r->what & CC_RQ_STREAM) || (r->what & CC_RQ_RESUMED));
}

/* All of one connection: every request told, in order, without overlap, no byte twice or never. */
static void check_all(struct conn *c)
{
	const struct cc_rec_req *last = NULL;
	uint64_t in = 0, out = 0;

	for (size_t i = 0; i < c->told_cnt; i++) {
		const struct cc_rec_req *r = &c->told[i];

		check_row(r);
		if (last && r->ordinal == last->ordinal) {
			cr_assert(r->what & CC_RQ_RETOLD);
			cr_assert_geq(r->last_send, last->last_send);
			in -= last->bytes_in;
			out -= last->bytes_out;
		} else {
			cr_assert_eq(r->ordinal, last ? last->ordinal + 1 : 1);
			cr_assert(!last || !r->first_recv || r->first_recv >= last->last_send);
		}
		in += r->bytes_in;
		out += r->bytes_out;
		last = r;
	}
	cr_assert_eq(c->s.ordinal, last ? last->ordinal : 0, "one was never told");
	cr_assert_eq(in, c->got);
	cr_assert_eq(out, c->given);
}

/* What the iterator found at attach. */
static void begin_late(struct conn *c, uint64_t *seed)
{
	uint64_t arrival = c->now - MS(rnd(seed, 500));
	struct req_op o = op(c, 0, 0);

	switch (rnd(seed, 3)) {
	case 0:
		req_seed(&c->s, &o, arrival);
		break;
	case 1:
		c->rcv_nxt += 10;
		c->s.pend_seq = c->rcv_nxt;
		req_seed_unread(&c->s, arrival);
		break;
	}
}

Test(req_state, random_sequences)
{
	static const uint32_t kinds[] = { RQ_C_TCP, RQ_C_UNIX, RQ_C_TCP | RQ_C_LATE, RQ_C_UDP };
	uint64_t seed = 1;

	for (int i = 0; i < 50000; i++) {
		struct conn *c = conn_new(kinds[i % 4]);

		if (c->s.conn & RQ_C_LATE)
			begin_late(c, &seed);
		for (uint32_t n = 10 + rnd(&seed, 150); n > 0; n--)
			step(c, &seed);
		end(c, &seed);
		check_all(c);
		free(c);
	}
}
