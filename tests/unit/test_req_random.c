// SPDX-License-Identifier: Apache-2.0
/* The kernel's request state machine: whatever the events of a socket, each request is told once,
 * in order, without overlap, no time is negative, no byte is counted twice or never, and at the end
 * nothing is left. */
#include "req_conn.h"

#include <criterion/criterion.h>
#include <stdlib.h>

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
		conn_send_event(c, bytes, c->unseen_tid);
}

static void read_some(struct conn *c, uint64_t *seed, uint32_t tid)
{
	uint32_t left = c->rcv_nxt - c->copied_seq;

	if (left)
		conn_recv(c, 1 + rnd(seed, left), tid);
}

static void splice_or_eagain(struct conn *c, uint32_t tid)
{
	uint32_t left = c->rcv_nxt - c->copied_seq;

	if (left && (c->s.conn & RQ_C_TCP) && c->s.phase != RQ_READING && !c->unseen) {
		c->copied_seq += left;
		c->got += left;
		conn_send(c, 1, tid);
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
			conn_data(c, 1 + rnd(seed, 100));
		break;
	case 2:
	case 3:
		read_some(c, seed, tid);
		break;
	case 4:
		see_written(c);
		conn_send(c, 1 + rnd(seed, 100), tid);
		break;
	case 5:
		splice_or_eagain(c, tid);
		break;
	case 6:
		conn_tell(c, req_quiet(&c->s, c->now, (int)rnd(seed, 2)));
		break;
	case 7:
		if (c->unseen)
			see_written(c);
		else if (c->s.conn & RQ_C_TCP)
			write_unseen(c, 1 + rnd(seed, 100), tid);
		break;
	default:
		if (c->rcv_nxt == c->copied_seq && !c->unseen && !rnd(seed, 20))
			conn_eof(c);
		break;
	}
}

/* The end, as sock_conn.bpf.c has it: what was written counts, what lies unread is a request that
 * was never begun. Nothing is left to be told, whoever asks. */
static void end(struct conn *c, uint64_t *seed)
{
	uint16_t why = rnd(seed, 2) ? CC_END_FIN : CC_END_RST;
	struct req_op o = conn_op(c, 0, 0);

	see_written(c);
	conn_tell(c, req_close(&c->s, why, c->now));
	if (why == CC_END_RST && c->rcv_nxt != c->copied_seq && c->s.pend_first) {
		req_begin_unread(&c->s, &o);
		conn_tell(c, why);
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
	struct req_op o = conn_op(c, 0, 0);

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
