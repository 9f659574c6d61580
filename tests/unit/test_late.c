/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that were read before tracing began: who is said to have them, and when nobody is. */
#include <criterion/criterion.h>

#include "answer_trace.h"
#include "snapshot.h"

TestSuite(late, .timeout = 20);

#define MS(x) ((x)*1000) /* in units of the trace */
#define NOW MS(900)
#define SERVER_PORTS (8080u << 16 | 40001)

/* A request that came at @arrival and still runs. */
static void put_late(struct trace *t, int id, int arrival, uint32_t what)
{
	struct cc_rec_req r = trace_req(id, arrival, NEVER, T0, NEVER, T0);

	r.h.kind = CC_REC_OPEN_REQ;
	r.h.aux = CC_END_NONE;
	r.h.ts = AT(NOW);
	r.what = CC_RQ_LATE | what;
	r.accepted = 0;
	r.bytes_in = r.bytes_out = 0;
	r.recv_cnt = r.send_cnt = 0;
	r.recv_tid = r.send_tid = 0;
	trace_put_req(t, r);
}

static void seen_off(struct trace *t, int tid, int nr, int since, uint32_t ports, int at,
		     uint8_t flags)
{
	struct cc_rec_open_task o = {
		.h = { .kind = CC_REC_OPEN_TASK,
		       .flags = CC_TF_TRACED | flags,
		       .aux = (uint16_t)nr,
		       .ts = AT(at) },
		.tid = TID(tid),
		.tgid = TGID,
		.start = 1,
		.seq = 1,
		.out = AT(since),
		.state = 1,
		.fd = ports ? 7 : -1,
		.fd_kind = ports ? CC_FD_SOCK_TCP : CC_FD_NONE,
		.fd_id = ports ? 0x77 : 0,
		.sock_ports = ports,
	};

	trace_put(t, &o, sizeof(o));
}

/* Off since @since, from when it is first seen, at 500 ms, to the end. */
static void off_all_the_time(struct trace *t, int tid, int nr, int since, uint32_t ports)
{
	seen_off(t, tid, nr, since, ports, MS(500), CC_TF_ATTACH);
	seen_off(t, tid, nr, since, ports, NOW, CC_TF_STOP);
}

/* The path of R, and that the piece of class @cls has evidence @ev and no other of this file's. */
static void expect(struct trace *t, const char *path, enum wait_class cls, enum cc_evidence ev)
{
	const uint64_t ours = CC_EV_BIT(LATE_ONLY_ONE) | CC_EV_BIT(LATE_SOON) |
			      CC_EV_BIT(LATE_SENT) | CC_EV_BIT(LATE_LEFT) | CC_EV_BIT(LATE_MANY) |
			      CC_EV_BIT(LATE_NONE) | CC_EV_BIT(LATE_SHARED) | CC_EV_BIT(READER);
	const struct cc_piece *p;

	assert_path_keep(t, R, path);
	p = trace_piece(t, R, cls);
	cr_assert_not_null(p);
	cr_expect_eq(p->evidence & ours, 1ull << ev, "evidence %llx",
		     (unsigned long long)(p->evidence & ours));
	trace_done(t);
}

Test(late, only_thread_of_its_process_has_it)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_NANOSLEEP, MS(420), 0);
	put_late(&t, R, MS(419), 0);
	expect(&t, "0:unknown[419000,420000) 0:sleep[420000,900000)", WAIT_SLEEP,
	       CC_EV_LATE_ONLY_ONE);
}

Test(late, who_slept_since_before_it_came_has_not_read_it)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_FUTEX, MS(3), 0);
	off_all_the_time(&t, T1, NR_FSYNC, MS(490), 0); /* long after: no matter, nobody else ran */
	off_all_the_time(&t, T2, NR_NANOSLEEP, MS(402), 0);
	put_late(&t, R, MS(420), 0);
	expect(&t, "1:unknown[420000,490000) 1:disk_fsync[490000,900000)", WAIT_FSYNC,
	       CC_EV_LATE_ONLY_ONE);
}

Test(late, a_jiffy_does_not_rule_out)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_NANOSLEEP, MS(418), 0);
	off_all_the_time(&t, T1, NR_EPOLL_WAIT, MS(3), 0);
	put_late(&t, R, MS(420), 0);
	expect(&t, "0:sleep[420000,900000)", WAIT_SLEEP, CC_EV_LATE_ONLY_ONE);
}

Test(late, idle_loop_of_the_only_thread_waits_for_any_event)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_EPOLL_WAIT, MS(421), 0);
	put_late(&t, R, MS(420), 0);
	expect(&t, "0:unknown[420000,421000) 0:epoll[421000,900000)", WAIT_EPOLL,
	       CC_EV_LATE_ONLY_ONE);
}

Test(late, idle_loop_of_one_of_several_says_nothing)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_EPOLL_WAIT, MS(421), 0);
	off_all_the_time(&t, T1, NR_EPOLL_WAIT, MS(430), 0);
	put_late(&t, R, MS(420), 0);
	expect(&t, "-100:unknown[420000,900000)", WAIT_UNKNOWN, CC_EV_LATE_NONE);
}

Test(late, of_several_the_one_that_slept_right_after)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_NANOSLEEP, MS(421), 0);
	off_all_the_time(&t, T1, NR_NANOSLEEP, MS(495), 0);
	off_all_the_time(&t, T2, NR_RECVFROM, MS(422), SERVER_PORTS); /* waits for its next */
	put_late(&t, R, MS(420), 0);
	expect(&t, "0:unknown[420000,421000) 0:sleep[421000,900000)", WAIT_SLEEP, CC_EV_LATE_SOON);
}

Test(late, two_that_slept_right_after_are_not_told_apart)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_NANOSLEEP, MS(421), 0);
	off_all_the_time(&t, T1, NR_FSYNC, MS(425), 0);
	put_late(&t, R, MS(420), 0);
	expect(&t, "-100:ambiguous[420000,900000)", WAIT_AMBIGUOUS, CC_EV_LATE_MANY);
}

Test(late, a_thread_has_the_request_that_came_last)
{
	for (int asked = 0; asked < 2; asked++) {
		struct trace t = trace_new();

		off_all_the_time(&t, T0, NR_NANOSLEEP, MS(441), 0);
		put_late(&t, asked ? R : Q, MS(420), 0); /* waits for something else */
		put_late(&t, asked ? Q : R, MS(440), 0);
		if (asked)
			expect(&t, "-100:ambiguous[420000,900000)", WAIT_AMBIGUOUS,
			       CC_EV_LATE_MANY);
		else
			expect(&t, "0:unknown[440000,441000) 0:sleep[441000,900000)", WAIT_SLEEP,
			       CC_EV_LATE_SOON);
	}
}

Test(late, one_that_waits_for_its_own_upstream_may_have_it)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_RECVFROM, MS(421), 33000u << 16 | 5432);
	off_all_the_time(&t, T1, NR_RECVFROM, MS(422), SERVER_PORTS);
	put_late(&t, R, MS(420), 0);
	expect(&t, "0:unknown[420000,421000) 0:net_recv[421000,900000)", WAIT_NET_RECV,
	       CC_EV_LATE_SOON);
}

Test(late, several_processes_have_its_connection)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_NANOSLEEP, MS(420), 0);
	put_late(&t, R, MS(419), CC_RQ_SHARED);
	expect(&t, "-100:unknown[419000,900000)", WAIT_UNKNOWN, CC_EV_LATE_SHARED);
}

/* It answers in the end: what it did before was for it, unless it may have been idle. */
static struct trace answered(int nr)
{
	struct trace t = trace_new();
	struct cc_rec_req r = trace_req(R, MS(420), NEVER, T0, MS(700), T0);

	seen_off(&t, T0, nr, MS(421), 0, MS(500), CC_TF_ATTACH);
	off_all_the_time(&t, T1, NR_NANOSLEEP, MS(422), 0);
	trace_irq_wait(&t, T0, nr, MS(421), MS(699), CC_CTX_IDLE, 0);
	r.recv_tid = 0;
	r.recv_cnt = 0;
	r.what = CC_RQ_LATE;
	trace_put_req(&t, r);
	trace_stop_on(&t, T0, NOW);
	return t;
}

Test(late, who_answered_and_did_nothing_else_before)
{
	struct trace t = answered(NR_FSYNC);

	expect(&t, "0:unknown[420000,421000) 0:disk_fsync[421000,699000) 0:cpu[699000,700000)",
	       WAIT_FSYNC, CC_EV_LATE_SENT);
}

Test(late, who_answered_after_an_idle_wait_was_given_it)
{
	struct trace t = answered(NR_EPOLL_WAIT);

	assert_path(&t, R, "0:unknown[420000,699000) 0:cpu[699000,700000)");
}

Test(late, unread_is_for_the_only_thread_behind_what_that_does)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_NANOSLEEP, MS(420), 0);
	put_late(&t, Q, MS(419), 0);
	put_late(&t, R, MS(600), CC_RQ_UNREAD);
	assert_path_keep(&t, R, "0:hol(Q)[600000,900000)");
	trace_done(&t);
}

Test(late, unread_is_for_the_thread_known_to_read_there)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_NANOSLEEP, MS(420), 0);
	off_all_the_time(&t, T1, NR_FUTEX, MS(3), 0);
	put_late(&t, Q, MS(419), 0);
	put_late(&t, R, MS(600), CC_RQ_UNREAD);
	expect(&t, "0:hol(Q)[600000,900000)", WAIT_HOL, CC_EV_READER);
}

Test(late, unread_lies_in_the_socket_when_nobody_is_known_to_read)
{
	struct trace t = trace_new();
	const struct cc_piece *p;

	off_all_the_time(&t, T0, NR_NANOSLEEP, MS(420), 0);
	off_all_the_time(&t, T1, NR_NANOSLEEP, MS(450), 0);
	put_late(&t, R, MS(600), CC_RQ_UNREAD);
	assert_path_keep(&t, R, "-100:sockq[600000,900000)");
	p = trace_piece(&t, R, WAIT_SOCKQ);
	cr_expect_eq(p->tid, 0);
	cr_expect_gt(p->confidence, 60);
	trace_done(&t);
}

Test(late, one_that_was_never_read_and_never_accepted)
{
	struct trace t = trace_new();
	struct cc_rec_req r = trace_req(R, MS(600), NEVER, T0, NEVER, T0);

	off_all_the_time(&t, T0, NR_NANOSLEEP, MS(420), 0);
	off_all_the_time(&t, T1, NR_NANOSLEEP, MS(450), 0);
	r.h.aux = CC_END_RST;
	r.h.ts = AT(MS(700));
	r.what = CC_RQ_UNREAD | CC_RQ_ACCEPTQ | CC_RQ_NO_REPLY;
	r.accepted = 0;
	r.recv_tid = r.send_tid = 0;
	trace_put_req(&t, r);
	assert_path_keep(&t, R, "-100:acceptq[600000,700000)");
	cr_expect_gt(trace_piece(&t, R, WAIT_ACCEPTQ)->confidence, 90);
	trace_done(&t);
}

Test(late, a_reader_that_waits_for_its_next_data_may_have_handed_it_on)
{
	struct trace t = trace_new();

	off_all_the_time(&t, T0, NR_RECVFROM, MS(421), SERVER_PORTS); /* read it */
	off_all_the_time(&t, T1, NR_NANOSLEEP, MS(422), 0);
	off_all_the_time(&t, T2, NR_NANOSLEEP, MS(495), 0);
	put_late(&t, R, MS(420), 0);
	expect(&t, "1:unknown[420000,422000) 1:sleep[422000,900000)", WAIT_SLEEP, CC_EV_LATE_SOON);
}

/* How many requests go on, when one that came at 1 ms began to be answered at 2. */
static uint32_t in_flight_at(int now)
{
	struct cc_rec_req r = trace_req(R, MS(1), MS(1), T0, MS(2), T0);
	struct trace t = trace_new();
	struct snapshot *s;

	trace_on(&t, T0, 0);
	r.h.kind = CC_REC_OPEN_REQ;
	r.h.aux = CC_END_NONE;
	r.h.ts = AT(now);
	trace_put_req(&t, r);
	cr_assert_eq(
		snapshot_build(trace_engine(&t), &(struct cc_query){ .all_in_flight = true }, &s),
		0);
	uint32_t ret = s->in_flight_cnt;

	cr_expect_eq(s->request_cnt, ret);
	snapshot_free(s);
	trace_done(&t);
	return ret;
}

/* Its time since then is nobody's, until it is sure that more follows. */
Test(late, a_connection_between_two_requests_is_none_in_flight)
{
	cr_expect_eq(in_flight_at(MS(40)), 0);
	cr_expect_eq(in_flight_at(MS(60)), 1);
}
