/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are a goroutine's life: handlers of HTTP/2 and gRPC. */
#include <criterion/criterion.h>

#include "go_trace.h"
#include "paths.h"

TestSuite(go_request, .timeout = 20);

static const struct cc_request *of(struct trace *t, uint64_t goid)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(trace_engine(t), &cnt);

	for (size_t i = 0; i < cnt; i++)
		if (r[i]->id.kind == CC_REQID_GOID && r[i]->id.id == goid)
			return r[i];
	return NULL;
}

/* Stream 5 of connection 1, handled over [3, 15). */
static struct trace stream(const char *function)
{
	struct trace t = go_trace(25);

	go_got(&t, 1, T0, 0);
	go_got(&t, 9, T2, 0);
	trace_request(&t, Q, 1, 1, T0, 20, T0); /* all that the socket tells of its streams */
	go_named(&t, 5, 0x401000, function);
	go_born(&t, 5, 1, 3, 4, T1);
	GO_WAITS(&t, WAIT_CHAN, 5, T1, 6, 10, 9, 11, T1, CH_A);
	go_born(&t, 6, 5, 12, 13, T3);
	go_dead(&t, 5, 15);
	return t;
}

/* That it ended may be noticed only when another one has its g: it ended when it was last seen. */
Test(go_request, an_end_noticed_later)
{
	struct trace t = go_trace(40);
	struct cc_rec_go_task end = {
		.h = { .kind = CC_REC_GO_TASK, .aux = 3, .flags = CC_GT_ABOUT, .ts = AT(30) },
		.goid = 5,
		.tgid = TGID,
		.born = AT(15),
	};
	const struct cc_request *r;

	go_got(&t, 1, T0, 0);
	go_named(&t, 5, 0x401000, "golang.org/x/net/http2.(*serverConn).runHandler");
	go_born(&t, 5, 1, 3, 4, T1);
	GO_WAITS(&t, WAIT_CHAN, 5, T1, 6, 10, 9, 11, T1, CH_A);
	trace_put(&t, &end, sizeof(end));
	r = of(&t, 5);
	cr_assert(r);
	cr_expect_eq(r->start, AT(3));
	cr_expect_eq(r->end, AT(15));
	trace_done(&t);
}

Test(go_request, a_handlers_life)
{
	static const char *const names[] = {
		"net/http.(*http2serverConn).processHeaders.func1",
		"net/http.(*http2serverConn).scheduleHandler.gowrap1",
		"golang.org/x/net/http2.(*serverConn).runHandler",
		"google.golang.org/grpc.(*Server).serveStreams.func2.1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct trace t = stream(names[i]);
		const struct cc_request *r = of(&t, 5);
		struct engine_served s;

		cr_assert(r, "%s", names[i]);
		cr_expect_eq(r->start, AT(3));
		cr_expect_eq(r->end, AT(15));
		cr_expect_eq(r->state, CC_RQS_DONE);
		cr_assert(r->path_ok);
		cr_assert_eq(r->path_cnt, 6);
		cr_expect_eq(path_of(r)[0].cls, WAIT_RUNQ);
		cr_expect_eq(path_of(r)[1].cls, WAIT_CPU);
		cr_expect_eq(path_of(r)[2].cls, WAIT_CHAN);
		cr_expect_eq(path_of(r)[2].end - path_of(r)[2].start, 4 * UNIT);
		cr_expect_eq(path_of(r)[3].depth, 1);
		cr_expect_eq(path_of(r)[3].goid, 9);
		cr_expect_eq(path_of(r)[4].cls, WAIT_RUNQ);
		/* its children work for it */
		cr_assert(
			engine_go_served(trace_engine(&t), TGID, 6, AT(14), ENGINE_SERVE_FULL, &s));
		cr_expect(s.id.kind == CC_REQID_GOID && s.id.id == 5);
		trace_done(&t);
	}
}

Test(go_request, its_connection_is_none)
{
	struct trace t = stream("net/http.(*http2serverConn).runHandler");

	assert_path_keep(&t, Q, "g1:ambiguous[1,20)");
	cr_expect(trace_piece(&t, Q, WAIT_AMBIGUOUS)->evidence & CC_EV_BIT(GO_SHARED));
	trace_done(&t);
}

Test(go_request, others_are_none)
{
	struct trace t = stream("main.handler.func1");

	cr_expect_null(of(&t, 5));
	trace_done(&t);
}

Test(go_request, one_that_goes_on)
{
	struct trace t = go_trace(25);
	const struct cc_request *r;

	go_got(&t, 1, T0, 0);
	go_named(&t, 5, 0x401000, "net/http.(*http2serverConn).runHandler");
	go_born(&t, 5, 1, 3, 4, T1);
	go_parked(&t, 5, WAIT_SELECT, T1, 6, 0, 10);
	go_tick(&t, 12);
	r = of(&t, 5);
	cr_assert(r);
	cr_expect_eq(r->state, CC_RQS_IN_FLIGHT);
	cr_assert(r->path_ok);
	cr_expect_eq(path_of(r)[r->path_cnt - 1].cls, WAIT_SELECT);
	cr_expect(path_of(r)[r->path_cnt - 1].flags & CC_PC_OPEN);
	trace_done(&t);
}
