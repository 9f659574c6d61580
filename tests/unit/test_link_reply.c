// SPDX-License-Identifier: Apache-2.0
/* Calls that no votes tell, of an event loop that answers in the turn in which it reads the reply.
 */
#include <criterion/criterion.h>

#include "answer_trace.h"

TestSuite(link_reply, .timeout = 20);

#define MANY 60 /* requests, one after the other: enough to know the process by */
#define STEP 20

static void upstream(struct trace *t, int id, int op, int at)
{
	trace_sockop(t, (struct cc_rec_sockop){
				.h = { .aux = (uint16_t)op, .flags = CC_SO_UPSTREAM, .ts = AT(at) },
				.cookie = 0x300 + (uint64_t)id,
				.tid = TID(T0),
				.tgid = TGID,
				.bytes = 100 });
}

static void loop_waits(struct trace *t, int from, int to)
{
	trace_irq_wait(t, T0, NR_EPOLL_WAIT, from, to, CC_CTX_IDLE, 0);
}

enum between { NOTHING, ANOTHER_TURN, A_LOCK };

/* Request @id: a timer before its call, and @what between the reply and its answer. */
static void request(struct trace *t, int id, enum between what)
{
	int at = STEP * id;

	loop_waits(t, at + 1, at + 3);
	upstream(t, id, CC_OP_SEND, at + 4);
	loop_waits(t, at + 5, at + 9);
	upstream(t, id, CC_OP_RECV, at + 10);
	if (what == ANOTHER_TURN)
		loop_waits(t, at + 11, at + 12);
	if (what == A_LOCK)
		trace_lock_wait(t, T0, 0x5000, at + 11, at + 12, T1);
	trace_request(t, id, at, at, T0, at + 13, T0);
	loop_waits(t, at + 15, at + 19);
}

/* Of one in @nth (0: none) something comes between. */
static struct trace many(int nth, enum between what)
{
	struct trace t = trace_new();

	trace_on(&t, T0, 0);
	for (int id = 1; id <= MANY; id++)
		request(&t, id, nth && id % nth == 0 ? what : NOTHING);
	return t;
}

/* How long request @id waited for an upstream. *ret_ev: how that is known. */
static cc_ns upstream_of(struct trace *t, int id, uint64_t *ret_ev)
{
	static struct path_buf buf;
	size_t cnt;
	const struct cc_request *const *r = engine_requests(trace_engine(t), &cnt);
	cc_ns ns = 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct cc_piece *p = request_path(r[i], &buf);

		for (uint32_t k = 0; r[i]->id.id == SOCKET(id) && k < r[i]->path_cnt; k++) {
			if (p[k].cls != WAIT_UPSTREAM)
				continue;
			ns += p[k].end - p[k].start;
			*ret_ev = p[k].evidence;
		}
	}
	path_buf_done(&buf);
	return ns;
}

static cc_ns waited(struct trace *t, int id)
{
	uint64_t ev;

	return upstream_of(t, id, &ev);
}

static struct trace ended(struct trace t)
{
	trace_stop_on(&t, T0, STEP * (MANY + 3));
	return t;
}

Test(link_reply, answered_in_the_turn_of_its_reply_as_always)
{
	struct trace t = ended(many(0, NOTHING));
	uint64_t ev = 0;

	cr_expect_eq(upstream_of(&t, MANY, &ev), AT(10) - AT(5), "from the end of the call's turn");
	cr_expect_neq(ev & CC_EV_BIT(AT_ONCE), 0);
	trace_done(&t);
}

Test(link_reply, not_always_is_nothing_to_go_by)
{
	struct trace t = ended(many(20, ANOTHER_TURN));

	cr_expect_eq(waited(&t, MANY - 1), 0);
	trace_done(&t);
}

Test(link_reply, another_is_answered_in_the_same_turn)
{
	struct trace t = many(0, NOTHING);
	int at = STEP * (MANY + 1);

	request(&t, MANY + 1, NOTHING);
	trace_request(&t, MANY + 2, at - 2, at, T0, at + 14, T0);
	t = ended(t);
	cr_expect_eq(waited(&t, MANY + 1), 0);
	cr_expect_eq(waited(&t, MANY + 2), 0);
	trace_done(&t);
}

Test(link_reply, a_call_from_before_it_was_read_is_not_its_own)
{
	struct trace t = many(0, NOTHING);
	int at = STEP * (MANY + 1);

	upstream(&t, 99, CC_OP_SEND, at - 1);
	trace_request(&t, MANY + 1, at, at, T0, at + 13, T0);
	loop_waits(&t, at + 1, at + 9);
	upstream(&t, 99, CC_OP_RECV, at + 10);
	t = ended(t);
	cr_expect_eq(waited(&t, MANY + 1), 0);
	trace_done(&t);
}

/* Both votes name @id, in its own turns; another request is open meanwhile. */
static void voted(struct trace *t, int id)
{
	int at = STEP * id;
	struct cc_rec_req q = trace_req(id, at, at, T0, at + 13, T0);

	trace_request(t, id + 1, at - 3, at - 2, T0, at + 16, T0);
	trace_upstream(t, id, T0, at + 1, at + 10);
	loop_waits(t, at + 2, at + 9);
	q.up_votes = 2;
	q.up_cookie = 0x300 + (uint64_t)id;
	q.up_calls = 1;
	trace_put_req(t, q);
}

Test(link_reply, who_answers_later_cannot_be_told_by_votes)
{
	static const enum between what[] = { NOTHING, A_LOCK, ANOTHER_TURN };

	for (size_t i = 0; i < ARRAY_SIZE(what); i++) {
		struct trace t = many(2, what[i]);

		voted(&t, MANY + 1);
		t = ended(t);
		cr_expect_eq(waited(&t, MANY + 1) == 0, what[i] == ANOTHER_TURN, "%d", what[i]);
		trace_done(&t);
	}
}
