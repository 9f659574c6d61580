/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads, many connections, many that come and go: memory follows what is there. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "snapshot.h"

enum { TGID = 100, NR_FUTEX = 202, NR_EPOLL = 232, THREADS = 10000, CONNECTIONS = 100000 };

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

/* The @i th of many waits of many threads for each other; now and then one that cannot be. */
static struct cc_rec_episode wait_nr(uint32_t i)
{
	cc_ns at = CC_S(100) + i * CC_US(1);

	return (struct cc_rec_episode){
		.h = { .size = sizeof(struct cc_rec_episode),
		       .kind = CC_REC_EPISODE,
		       .aux = NR_FUTEX,
		       .ts = at + CC_US(2) },
		.tid = i % 1000 == 999 ? 0 : TGID + 1 + i * 7 % THREADS,
		.seq = i / THREADS,
		.out = at - CC_US(900),
		.wake = at,
		.state = 1,
		.waker_tid = TGID + 1 + i * 13 % THREADS,
		.waker_tgid = TGID,
		.key = 0x1000 + i % 64 * 64,
	};
}

/* What is kept back on the way in changes nothing of what is known in the end. */
Test(scale, streamed_is_as_fed_one_by_one)
{
	enum { CNT = 5 * THREADS + 7 };
	struct engine *fed = live_engine(0), *streamed = live_engine(0);
	const struct cc_rec_episode last = wait_nr(CNT - 1);
	const struct cc_request *const *a, *const *b;
	struct path_buf pa = { 0 }, pb = { 0 };
	struct cc_piece *walked;
	size_t cnt, other, malformed = 0;

	for (uint32_t i = 0; i < THREADS; i++) {
		task(fed, CC_TASK_FORK, TGID + 1 + i, CC_S(99) + i);
		task(streamed, CC_TASK_FORK, TGID + 1 + i, CC_S(99) + i);
	}
	for (uint32_t i = 0; i < CNT; i++) {
		struct cc_rec_episode r = wait_nr(i);

		malformed += engine_feed(fed, &r.h, sizeof(r)) == -EINVAL;
		cr_assert_eq(engine_stream(streamed, &r.h, sizeof(r)), 0);
	}
	cr_expect_eq(malformed, CNT / 1000);
	cr_assert_eq(engine_walk(streamed, last.tid, last.out, last.h.ts, &walked, &cnt), 0);
	cr_expect_eq(cnt ? walked[cnt - 1].cls : WAIT_CLASS_CNT, WAIT_RUNQ,
		     "the last one is known");
	free(walked);
	cr_assert_eq(engine_finish(fed), 0);
	cr_assert_eq(engine_finish(streamed), 0);
	cr_expect_eq(engine_stats(streamed)->malformed, malformed);
	cr_expect_eq(engine_stats(streamed)->events, engine_stats(fed)->events);
	cr_expect_eq(engine_stats(streamed)->episodes, CNT - malformed);
	a = engine_requests(fed, &cnt);
	b = engine_requests(streamed, &other);
	cr_assert_eq(cnt, other);
	cr_assert_gt(cnt, 0);
	for (size_t i = 0; i < cnt; i++) {
		cr_assert_eq(a[i]->tid, b[i]->tid);
		cr_assert_eq(a[i]->path_cnt, b[i]->path_cnt);
		cr_assert(!memcmp(request_path(a[i], &pa), request_path(b[i], &pb),
				  a[i]->path_cnt * sizeof(struct cc_piece)));
	}
	path_buf_done(&pa);
	path_buf_done(&pb);
	engine_free(fed);
	engine_free(streamed);
}
