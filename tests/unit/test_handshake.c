// SPDX-License-Identifier: Apache-2.0
/* TLS handshakes that are known by the sizes of many connections' first exchanges. */
#include <criterion/criterion.h>

#include "answer_trace.h"

TestSuite(handshake, .timeout = 20);

struct exchange {
	uint64_t in, out;
};

static const struct exchange TLS13[] = { { 225, 1321 }, { 80, 558 }, { 102, 174 } },
			     TLS12[] = { { 162, 1164 }, { 93, 258 }, { 58, 181 } },
			     PLAIN[] = { { 225, 1321 }, { 81, 558 }, { 80, 558 } },
			     TOGETHER[] = { { 225, 1321 }, { 182, 764 }, { 102, 174 } };

/* Connection @conn: three exchanges. */
static void connection(struct trace *t, int conn, const struct exchange *x, uint32_t what)
{
	for (int i = 0; i < 3; i++) {
		int at = conn * 100 + 10 * i;
		struct cc_rec_req q = trace_req(conn, at, at, T0, at + 3, T0);

		q.ordinal = 1 + (uint32_t)i;
		q.bytes_in = x[i].in;
		q.bytes_out = x[i].out;
		q.what = i ? 0 : what;
		trace_put_req(t, q);
	}
}

/* How many exchanges of connection @conn are set-up; the last one never is. */
static uint32_t setups(struct trace *t, int conn)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(trace_engine(t), &cnt);
	uint32_t n = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (r[i]->id.id != SOCKET(conn) || !(r[i]->rec.what & CC_RQ_SETUP))
			continue;
		cr_expect_lt(r[i]->id.ordinal, 3);
		n++;
	}
	return n;
}

#define MANY 12

static struct trace many_and(const struct exchange *x, const struct exchange *last)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	for (int i = 1; i <= MANY; i++)
		connection(&t, i, x, 0);
	connection(&t, MANY + 1, last, 0);
	trace_stop_on(&t, T0, 100 * MANY + 300);
	return t;
}

static void expect(const struct exchange *x, const struct exchange *last, uint32_t want)
{
	struct trace t = many_and(x, last);

	cr_expect_eq(setups(&t, MANY + 1), want);
	trace_done(&t);
}

Test(handshake, of_known_sizes_on_every_connection)
{
	expect(TLS13, TLS13, 2);
	expect(TLS12, TLS12, 2);
	expect(TLS12, TLS13, 2);
}

Test(handshake, end_that_came_with_a_request_is_that_request) { expect(TLS13, TOGETHER, 1); }
Test(handshake, one_that_looks_so_is_none) { expect(PLAIN, TLS13, 0); }

Test(handshake, before_the_fourth_it_is_not_believed)
{
	struct trace t = many_and(TLS13, TLS13);

	cr_expect_eq(setups(&t, 1), 0);
	cr_expect_eq(setups(&t, 4), 2);
	trace_done(&t);
}

Test(handshake, what_the_kernel_labels_is_left_alone)
{
	struct trace t = many_and(TLS13, TLS13);

	connection(&t, MANY + 2, TOGETHER, CC_RQ_SETUP);
	cr_expect_eq(setups(&t, MANY + 2), 1);
	trace_done(&t);
}
