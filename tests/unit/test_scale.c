/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads, many connections, many that come and go: memory follows what is there. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "engine.h"
#include "snapshot.h"

enum { TGID = 100, NR_EPOLL = 232, THREADS = 10000, CONNECTIONS = 100000 };

static struct engine *live_engine(cc_ns window)
{
	struct engine_opts o = { .window_ns = window, .paths_per_s = ENGINE_PATHS_PER_S };
	struct engine *e;

	cr_assert_eq(engine_new(&o, &e), 0);
	return e;
}

static void feed(struct engine *e, const void *rec)
{
	const struct cc_rec *r = rec;

	cr_assert_eq(engine_feed(e, r, r->size), 0);
}

static void task(struct engine *e, uint16_t what, uint32_t tid, cc_ns at)
{
	struct cc_rec_task r = {
		.h = { .size = sizeof(r),
		       .kind = CC_REC_TASK,
		       .aux = what,
		       .flags = CC_TF_TRACED,
		       .ts = at },
		.tid = tid,
		.tgid = TGID,
		.start = what == CC_TASK_FORK ? at : 0,
		.parent = TGID,
		.comm = "worker",
	};

	feed(e, &r);
}

static void episode(struct engine *e, uint32_t tid, uint32_t seq, cc_ns out, cc_ns in)
{
	struct cc_rec_episode r = {
		.h = { .size = sizeof(r),
		       .kind = CC_REC_EPISODE,
		       .aux = NR_EPOLL,
		       .flags = CC_CTX_IDLE << CC_EP_CTX_SHIFT,
		       .ts = in },
		.tid = tid,
		.seq = seq,
		.out = out,
		.wake = in - 1,
		.state = 1,
		.key = 5,
	};

	feed(e, &r);
}

static void request(struct engine *e, uint64_t cookie, uint32_t ordinal, uint32_t tid, cc_ns from,
		    cc_ns to)
{
	struct cc_rec_req r = {
		.h = { .size = sizeof(r), .kind = CC_REC_REQ, .ts = to + 1 },
		.cookie = cookie,
		.ordinal = ordinal,
		.arrival = from,
		.first_recv = from + 1,
		.last_recv = from + 1,
		.first_send = to,
		.last_send = to,
		.recv_cnt = 1,
		.send_cnt = 1,
		.recv_tid = tid,
		.send_tid = tid,
		.tgid = TGID,
		.local_port = 80,
		.peer = { .family = 2, .port = (uint16_t)(1024 + cookie % 60000) },
		.comm = "worker",
	};

	feed(e, &r);
}

static void tick(struct engine *e, cc_ns now)
{
	struct cc_rec_tick r = {
		.h = { .size = sizeof(r), .kind = CC_REC_TICK, .ts = now },
		.drained_to = now,
		.interval_ns = CC_S(1),
	};

	feed(e, &r);
}

/* Each thread serves ten connections, each of which asks once. */
Test(scale, ten_thousand_threads_and_a_hundred_thousand_connections, .timeout = 120)
{
	struct engine *e = live_engine(CC_S(120));
	struct snapshot *s;
	cc_ns sum = 0;

	for (uint32_t i = 0; i < THREADS; i++)
		task(e, CC_TASK_FORK, TGID + 1 + i, CC_S(99) + i);
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		uint32_t tid = TGID + 1 + i % THREADS, round = i / THREADS;
		cc_ns at = CC_S(100 + round) + (i % THREADS) * CC_US(90);

		if (i && i % THREADS == 0)
			tick(e, CC_S(100 + round));
		episode(e, tid, round, at - CC_US(50), at);
		request(e, 1 + i, 1, tid, at - CC_US(10), at + CC_US(20 + i % 100));
	}
	tick(e, CC_S(110));
	cr_assert_eq(snapshot_build(e, &(struct cc_query){ .window_ns = CC_S(60) }, &s), 0);
	cr_expect_eq(s->total_cnt, CONNECTIONS);
	cr_expect_eq(s->max_ns, CC_US(129));
	cr_expect_eq(s->request_cnt, 500);
	for (uint32_t i = 0; i < s->requests[0].piece_cnt; i++)
		sum += s->pieces[i].p.depth ? 0 : s->pieces[i].p.end - s->pieces[i].p.start;
	cr_expect_eq(sum, s->requests[0].latency_ns);
	cr_expect_lt(s->stats.memory_bytes, 128ull << 20);
	cr_expect_eq(s->stats.evicted, 0);
	snapshot_free(s);
	engine_free(e);
}

/* A thread and a connection for each request, 200 s of 1,000 a second. */
Test(scale, what_comes_and_goes_leaves_nothing, .timeout = 120)
{
	struct engine *e = live_engine(CC_S(10));
	size_t after_30 = 0;

	for (uint32_t i = 0; i < 200000; i++) {
		cc_ns at = CC_S(100) + (cc_ns)i * CC_MS(1);
		uint32_t tid = 1000 + i % 30000;

		task(e, CC_TASK_FORK, tid, at);
		episode(e, tid, 0, at + CC_US(10), at + CC_US(20));
		request(e, 1 + i, 1, tid, at + CC_US(15), at + CC_US(90));
		task(e, CC_TASK_EXIT, tid, at + CC_US(100));
		if (i % 1000 == 999)
			tick(e, at + CC_US(900));
		if (i == 30000)
			after_30 = engine_stats(e)->memory_bytes;
	}
	cr_expect_leq(engine_stats(e)->memory_bytes, after_30 + after_30 / 4, "%zu, then %zu",
		      after_30, engine_stats(e)->memory_bytes);
	engine_free(e);
}
