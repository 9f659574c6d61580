/* SPDX-License-Identifier: Apache-2.0 */
/* A call to another traced process: what that did for the call is part of the caller's path, whose
 * own request there is neither another's nor, when the process is only followed, a row. */
#include <criterion/criterion.h>

#include "answer_trace.h"
#include "snapshot.h"

TestSuite(call, .timeout = 20);

#define OTHER 900u /* the upstream's process */

/* T0 gets R at 0, calls at 1 and sleeps in epoll; T1 of another process has the call in its socket
 * from 2, reads it at 3, sleeps in [4,7) and answers at 8; T0 has that at 9 and answers at 10. */
static struct trace called_by(uint8_t flags, struct cc_addr server, struct cc_addr client)
{
	struct trace t = trace_new();
	struct cc_rec_target other = {
		.h = { .size = sizeof(other),
		       .kind = CC_REC_TARGET,
		       .flags = flags,
		       .ts = AT(-20) },
		.tgid = OTHER,
	};
	struct cc_rec_req q = trace_req(Q, 2, 3, T1, 8, T1);

	t.tgid[T1] = OTHER;
	trace_put(&t, &other, sizeof(other));
	trace_on(&t, T0, -10);
	trace_on(&t, T1, -10);
	q.tgid = OTHER;
	q.local_port = server.port;
	q.peer = client;
	trace_irq_wait(&t, T1, NR_EPOLL_WAIT, -5, 2, CC_CTX_IDLE, 0);
	trace_irq_wait(&t, T1, NR_NANOSLEEP, 4, 7, CC_CTX_IDLE, 0);
	trace_upstream_at(&t, R, T0, 1, 9, client.port, server);
	trace_irq_wait(&t, T0, NR_EPOLL_WAIT, 1, 9, CC_CTX_IDLE, 0);
	trace_put_req(&t, q);
	trace_request(&t, R, 0, 0, T0, 10, T0);
	trace_stop_on(&t, T0, 12);
	trace_stop_on(&t, T1, 12);
	return t;
}

static struct trace called(uint8_t flags)
{
	const struct cc_addr server = { .family = 2, .port = 5432, .ip = { 127, 0, 0, 1 } };
	const struct cc_addr client = { .family = 2, .port = 7000, .ip = { 127, 0, 0, 1 } };

	return called_by(flags, server, client);
}

/* A unix socket's end as the other sees it: its inode, that of the end that sees it. */
static struct cc_addr unix_end(uint8_t ino, uint8_t of)
{
	struct cc_addr a = { .family = 1 };

	a.ip[0] = ino;
	a.ip[8] = of;
	return a;
}

Test(call, over_a_unix_socket)
{
	struct trace t = called_by(0, unix_end(21, 20), unix_end(20, 0));
	struct trace other = called_by(0, unix_end(21, 22), unix_end(20, 0));

	assert_path_keep(&t, R,
			 "0:cpu[0,1) transit[1,2) 1:sockq[2,3) 1:cpu[3,4) 1:sleep[4,7) 1:cpu[7,8) "
			 "transit[8,9) 0:cpu[9,10)");
	cr_expect_eq(trace_piece(&other, R, WAIT_UPSTREAM)->waker_tgid, 0, "another connection");
	trace_done(&t);
	trace_done(&other);
}

Test(call, what_the_upstream_did_is_in_the_path)
{
	struct trace t = called(0);

	assert_path_keep(&t, R,
			 "0:cpu[0,1) transit[1,2) 1:sockq[2,3) 1:cpu[3,4) 1:sleep[4,7) 1:cpu[7,8) "
			 "transit[8,9) 0:cpu[9,10)");
	cr_assert_eq(trace_piece(&t, R, WAIT_UPSTREAM)->waker_tgid, OTHER);
	trace_done(&t);
}

Test(call, a_followed_process_explains_and_gives_no_rows)
{
	struct trace t = called(CC_TG_CAME | CC_TG_FOLLOWED);
	size_t cnt;
	const struct cc_request *const *r;
	struct snapshot *s;

	assert_path_keep(&t, R,
			 "0:cpu[0,1) transit[1,2) 1:sockq[2,3) 1:cpu[3,4) 1:sleep[4,7) 1:cpu[7,8) "
			 "transit[8,9) 0:cpu[9,10)");
	r = engine_requests(trace_engine(&t), &cnt);
	cr_assert_eq(cnt, 1);
	cr_assert_eq(r[0]->id.id, SOCKET(R));
	cr_assert_eq(snapshot_build(trace_engine(&t), &(struct cc_query){ 0 }, &s), 0);
	cr_expect_eq(s->target_cnt, 2);
	cr_expect_eq(s->followed_cnt, 1);
	cr_expect(!s->targets[0].followed);
	cr_expect(s->targets[1].followed);
	snapshot_free(s);
	trace_done(&t);
}

/* T0 waits in recv for T1 of the same process, which wakes it at 8 and has Q's answer sent at
 * @sent: out of that send the wake came, unless T1 slept between. */
static struct trace woken_by_a_send(int sent, bool slept)
{
	struct trace t = trace_new();

	trace_on(&t, T0, -10);
	trace_on(&t, T1, -10);
	trace_request(&t, Q, 1, 1, T1, sent, T1);
	trace_request(&t, R, 0, 0, T0, 10, T0);
	trace_wait(&t, T0, NR_RECVFROM, 1, 8, 8, T1);
	if (slept)
		trace_irq_wait(&t, T1, NR_NANOSLEEP, 9, 11, CC_CTX_IDLE, 0);
	trace_stop_on(&t, T0, 20);
	trace_stop_on(&t, T1, 20);
	return t;
}

Test(call, whose_send_ended_the_wait_worked_for_it)
{
	struct trace t = woken_by_a_send(8, false), slept = woken_by_a_send(12, true);

	assert_path(&t, R, "0:cpu[0,1) 1:cpu[1,8) 0:cpu[8,10)");
	assert_path(&slept, R, "0:cpu[0,1) 1:queued(Q)[1,8) 0:cpu[8,10)");
}
