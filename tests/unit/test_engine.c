/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as a whole: what it keeps, for how long, and that answers do not depend on when they
 * were asked for. What the answers are is in test_known_answers and tests/oracle. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "engine.h"
#include "paths.h"

enum { TGID = 100, LOOP = 100, WORKER = 101, NR_FUTEX = 202, NR_EPOLL = 232 };

static struct engine *engine_with(size_t memory, cc_ns window)
{
	struct engine *e = NULL;

	cr_assert_eq(
		engine_new(&(struct engine_opts){ .memory_bytes = memory, .window_ns = window },
			   &e),
		0);
	return e;
}

#define FEED(e, rec) cr_assert_eq(engine_feed((e), &(rec).h, (rec).h.size), 0)

static void episode(struct engine *e, uint32_t tid, uint32_t seq, int nr, cc_ns out, cc_ns wake,
		    uint32_t waker, uint32_t key)
{
	struct cc_rec_episode r = {
		.h = { .size = sizeof(r),
		       .kind = CC_REC_EPISODE,
		       .aux = (uint16_t)nr,
		       .flags = waker ? 0 : CC_CTX_IDLE << CC_EP_CTX_SHIFT,
		       .ts = wake + 1 },
		.tid = tid,
		.seq = seq,
		.out = out,
		.wake = wake,
		.state = 1,
		.waker_tid = waker,
		.waker_tgid = waker ? TGID : 0,
		.key = key,
	};

	FEED(e, r);
}

static void open_task(struct engine *e, uint32_t tid, cc_ns now, cc_ns last_in)
{
	struct cc_rec_open_task r = {
		.h = { .size = sizeof(r),
		       .kind = CC_REC_OPEN_TASK,
		       .flags = CC_TF_TRACED,
		       .ts = now },
		.tid = tid,
		.tgid = TGID,
		.last_in = last_in,
		.fd = -1,
	};

	FEED(e, r);
}

static void request(struct engine *e, uint8_t kind, uint32_t ordinal, cc_ns arrival, cc_ns sent,
		    cc_ns told)
{
	struct cc_rec_req r = {
		.h = { .size = sizeof(r), .kind = kind, .ts = told },
		.cookie = 0xabc,
		.ordinal = ordinal,
		.arrival = arrival,
		.first_recv = arrival + 2,
		.last_recv = arrival + 2,
		.first_send = sent,
		.last_send = sent,
		.recv_cnt = 1,
		.send_cnt = sent != 0,
		.recv_tid = LOOP,
		.send_tid = sent ? LOOP : 0,
		.tgid = TGID,
		.comm = "loop",
	};

	FEED(e, r);
}

static void tick(struct engine *e, cc_ns now, cc_ns drained_to)
{
	struct cc_rec_tick r = {
		.h = { .size = sizeof(r), .kind = CC_REC_TICK, .ts = now },
		.drained_to = drained_to,
		.realtime_ns = now + 1000,
		.interval_ns = CC_S(1),
	};

	FEED(e, r);
}

static const struct cc_request *find(const struct engine *e, uint32_t ordinal)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(e, &cnt);

	for (size_t i = 0; i < cnt; i++)
		if (r[i]->id.ordinal == ordinal)
			return r[i];
	return NULL;
}

static cc_ns sum(const struct cc_request *r)
{
	const struct cc_piece *path = path_of(r);
	cc_ns ns = 0;

	for (uint32_t i = 0; i < r->path_cnt; i++)
		if (!path[i].depth)
			ns += path[i].end - path[i].start;
	return ns;
}

/* A loop thread that answers one request every 100 ns. */
static void serve(struct engine *e, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		cc_ns t = 1000 + 100 * (cc_ns)i;

		episode(e, LOOP, i, NR_EPOLL, t, t + 10, 0, 5);
		request(e, CC_REC_REQ, i + 1, t + 10, t + 60, t + 61);
	}
}

Test(engine, memory_is_bounded_and_what_goes_is_counted)
{
	enum { BUDGET = 4 << 20, CNT = 40000 };
	struct engine *e = engine_with(BUDGET, 0);
	const struct cc_request *r;
	size_t cnt, most = 0;

	open_task(e, LOOP, 1000, 990);
	for (uint32_t i = 0; i < CNT; i += 500) {
		serve(e, i, i + 500);
		tick(e, 1000 + 100 * (i + 500), 1000 + 100 * (i + 500));
		most = CC_MAX(most, engine_stats(e)->memory_bytes);
	}
	cr_expect_leq(most, BUDGET, "%zu bytes", most);
	cr_expect_gt(engine_stats(e)->evicted, 0);
	engine_requests(e, &cnt);
	cr_expect_gt(cnt, 100, "%zu left", cnt);
	cr_expect_null(find(e, 1), "the oldest is gone");
	r = find(e, CNT);
	cr_assert(r && r->path_ok);
	cr_expect_eq(sum(r), r->end - r->start);
	cr_expect_eq(engine_stats(e)->episodes, CNT);
	engine_free(e);
}

Test(engine, requests_leave_the_window)
{
	struct engine *e = engine_with(0, 5000);
	size_t cnt;

	open_task(e, LOOP, 1000, 990);
	serve(e, 0, 200);
	tick(e, 21000, 21000);
	engine_requests(e, &cnt);
	cr_expect_eq(cnt, 50, "%zu", cnt);
	engine_free(e);
}

Test(engine, a_request_going_on_ends_now)
{
	struct engine *e = engine_with(0, 0);
	const struct cc_request *r;

	open_task(e, LOOP, 1000, 990);
	episode(e, LOOP, 1, NR_EPOLL, 1000, 1010, 0, 5);
	for (cc_ns now = 2000; now <= 3000; now += 1000) {
		request(e, CC_REC_OPEN_REQ, 1, 1010, 0, now);
		open_task(e, LOOP, now, 1011);
		tick(e, now, now - 10);
		r = find(e, 1);
		cr_assert(r);
		cr_expect_eq(r->state, CC_RQS_IN_FLIGHT);
		cr_expect_eq(r->end, now);
		cr_expect_eq(sum(r), now - 1010);
	}
	request(e, CC_REC_REQ, 1, 1010, 3500, 3600);
	request(e, CC_REC_OPEN_REQ, 1, 1010, 0, 3400); /* from an iterator that ran before */
	tick(e, 4000, 3990);
	r = find(e, 1);
	cr_expect_eq(r->state, CC_RQS_DONE);
	cr_expect_eq(r->end, 3500);
	engine_free(e);
}

Test(engine, an_open_request_that_is_not_told_again_goes)
{
	struct engine *e = engine_with(0, 0);

	request(e, CC_REC_OPEN_REQ, 1, CC_S(1), 0, CC_S(2));
	for (cc_ns s = 2; s < 5; s++) {
		tick(e, CC_S(s), CC_S(s));
		cr_expect_not_null(find(e, 1), "at %d s", (int)s);
	}
	tick(e, CC_S(6), CC_S(6));
	cr_expect_null(find(e, 1));
	engine_free(e);
}

/* LOOP waits for a lock that WORKER has, while WORKER serves a request that is told later. */
static void feed_blame(struct engine *e, bool ticks)
{
	struct cc_rec_req q = {
		.h = { .size = sizeof(q), .kind = CC_REC_REQ, .ts = 5000 },
		.cookie = 0xdef,
		.ordinal = 7,
		.arrival = 900,
		.first_recv = 1000,
		.last_recv = 1000,
		.first_send = 4000,
		.last_send = 4000,
		.recv_cnt = 1,
		.send_cnt = 1,
		.recv_tid = WORKER,
		.send_tid = WORKER,
		.tgid = TGID,
	};

	open_task(e, LOOP, 900, 890);
	open_task(e, WORKER, 900, 890);
	episode(e, LOOP, 1, NR_FUTEX, 1500, 1800, WORKER, 0x40);
	request(e, CC_REC_REQ, 1, 1200, 2000, 2050);
	open_task(e, LOOP, 2500, 1801);
	open_task(e, WORKER, 2500, 890);
	if (ticks)
		tick(e, 2500, 2490);
	FEED(e, q);
	open_task(e, LOOP, 5500, 1801);
	open_task(e, WORKER, 5500, 890);
	if (ticks)
		tick(e, 5500, 5490);
	cr_assert_eq(engine_finish(e), 0);
}

Test(engine, what_is_told_late_changes_what_leaned_on_it)
{
	struct engine *live = engine_with(0, 0), *once = engine_with(0, 0);
	const struct cc_request *a, *b;

	feed_blame(live, true);
	feed_blame(once, false);
	a = find(live, 1);
	b = find(once, 1);
	cr_assert(a && b);
	cr_assert_eq(a->path_cnt, b->path_cnt);
	cr_expect_eq(memcmp(path_of(a), path_of(b), a->path_cnt * sizeof(*path_of(a))), 0);
	for (uint32_t i = 0; i < a->path_cnt; i++)
		if (path_of(a)[i].tid == WORKER)
			cr_expect_eq(path_of(a)[i].for_request.id, 0xdef);
	cr_expect_eq(engine_stats(live)->late, 0);
	engine_free(live);
	engine_free(once);
}

Test(engine, malformed_and_unknown_records_are_counted)
{
	struct engine *e = engine_with(0, 0);
	struct cc_rec_episode bad = { .h = { .size = 64, .kind = CC_REC_EPISODE, .ts = 5 } };
	struct cc_rec newer = { .size = 16, .kind = CC_REC_KIND_CNT + 3, .ts = 5 };

	cr_expect_eq(engine_feed(e, &bad.h, 64), -EINVAL, "no tid");
	cr_expect_eq(engine_feed(e, &bad.h, 40), -EINVAL, "cut");
	cr_expect_eq(engine_feed(e, &newer, 16), 0);
	cr_expect_eq(engine_stats(e)->malformed, 2);
	cr_expect_eq(engine_stats(e)->unknown_kind, 1);
	cr_expect_eq(engine_stats(e)->episodes, 0);
	cr_expect_eq(engine_finish(e), 0);
	engine_free(e);
}

Test(engine, tasks_are_requests_where_no_sockets_are_known)
{
	struct engine *e = engine_with(0, 0);
	const struct cc_request *const *r;
	cc_ns mix[9];
	size_t cnt;

	episode(e, LOOP, 1, NR_EPOLL, 1000, 1010, 0, 5);
	episode(e, LOOP, 2, NR_FUTEX, 1500, 1800, WORKER, 0x40);
	cr_assert_eq(engine_finish(e), 0);
	r = engine_requests(e, &cnt);
	cr_assert_eq(cnt, 1, "the waker has no episode");
	cr_expect_eq(r[0]->id.kind, CC_REQID_TID);
	cr_expect_eq(r[0]->id.id, LOOP);
	cr_expect_eq(r[0]->start, 1000);
	cr_expect_eq(r[0]->end, 1801);
	cr_expect_eq(sum(r[0]), 801);
	engine_task_mix(e, LOOP, 1000, 1801, mix);
	cr_expect_eq(mix[strchr(WAIT_GROUPS, 'C') - WAIT_GROUPS], 489);
	cr_expect_eq(mix[strchr(WAIT_GROUPS, 'R') - WAIT_GROUPS], 2);
	cr_expect_eq(mix[strchr(WAIT_GROUPS, 'L') - WAIT_GROUPS], 300);
	cr_expect_eq(mix[strchr(WAIT_GROUPS, 'S') - WAIT_GROUPS], 10);
	engine_free(e);
}

/* Sums over many waits at once are those of going through each. */
Test(engine, a_busy_task_s_time_is_summed_once)
{
	struct engine *e = engine_with(0, 0);
	cc_ns all[9], part[9], again[9], off = 0;

	open_task(e, LOOP, 1000, 990);
	for (uint32_t i = 0; i < 5000; i++)
		episode(e, LOOP, i, i % 3 ? NR_EPOLL : NR_FUTEX, 1000 + 100 * (cc_ns)i,
			1000 + 100 * (cc_ns)i + 10 + i % 50, i % 2 ? WORKER : 0, 5);
	engine_task_mix(e, LOOP, 1000, 501000, all);
	engine_task_mix(e, LOOP, 123456, 345678, part);
	tick(e, 501000, 501000);
	engine_task_mix(e, LOOP, 1000, 501000, again);
	cr_expect_eq(memcmp(all, again, sizeof(all)), 0);
	engine_task_mix(e, LOOP, 123456, 345678, again);
	for (int i = 0; i < 9; i++) /* the edges lie within sums: by their time */
		off += part[i] > again[i] ? part[i] - again[i] : again[i] - part[i];
	cr_expect_lt(off, (345678 - 123456) / 50, "%llu", (unsigned long long)off);
	engine_free(e);
}

/* A cut of a longer recording begins with names and tasks told long before: its time does not. */
Test(engine, what_lasts_is_no_part_of_the_time_that_is_known)
{
	struct engine *e = engine_with(0, 0);
	struct cc_rec_task t = { .h = { .size = sizeof(t), .kind = CC_REC_TASK, .ts = CC_S(5) },
				 .tid = WORKER,
				 .tgid = TGID };

	FEED(e, t);
	cr_expect_eq(engine_stats(e)->first_ns, CC_S(5), "there is nothing else");
	episode(e, WORKER, 1, NR_FUTEX, CC_S(60), CC_S(61), 0, 1);
	cr_expect_eq(engine_stats(e)->first_ns, CC_S(61) + 1);
	t.h.ts = CC_S(7);
	FEED(e, t);
	cr_expect_eq(engine_stats(e)->first_ns, CC_S(61) + 1);
	episode(e, WORKER, 2, NR_FUTEX, CC_S(59), CC_S(60), 0, 1);
	cr_expect_eq(engine_stats(e)->first_ns, CC_S(60) + 1, "told later, was before");
	cr_expect_eq(engine_stats(e)->last_ns, CC_S(61) + 1);
	engine_free(e);
}

Test(engine, an_empty_stream_has_no_requests)
{
	struct engine *e = engine_with(0, 0);
	struct cc_piece *p;
	size_t cnt;

	cr_assert_eq(engine_finish(e), 0);
	engine_requests(e, &cnt);
	cr_expect_eq(cnt, 0);
	cr_expect_eq(engine_walk(e, 1, 5, 5, &p, &cnt), -EINVAL);
	cr_assert_eq(engine_walk(e, 1, 5, 9, &p, &cnt), 0);
	cr_assert_eq(cnt, 1);
	cr_expect_eq(p[0].cls, WAIT_UNKNOWN);
	free(p);
	engine_free(e);
}

static void sample(struct engine *e, uint32_t tid, cc_ns t, uint64_t ustack)
{
	struct cc_rec_sample r = {
		.h = { .size = sizeof(r), .kind = CC_REC_SAMPLE, .ts = t },
		.tid = tid,
		.tgid = TGID,
		.ustack = ustack,
		.kstack = ustack + 100,
	};

	FEED(e, r);
}

/* Time on the CPU has the stack that most samples of it have; samples outside say nothing. */
Test(engine, samples_of_the_cpu)
{
	struct engine *e = engine_with(0, 0);
	struct cc_piece *p;
	size_t cnt;

	open_task(e, LOOP, 100, 90);
	sample(e, LOOP, 400, 9);
	sample(e, LOOP, 120, 7); /* from another CPU's part of the ring */
	sample(e, LOOP, 200, 8);
	sample(e, LOOP, 300, 8);
	episode(e, LOOP, 0, NR_FUTEX, 1000, 1500, WORKER, 5);
	sample(e, LOOP, 1700, 6);
	episode(e, LOOP, 1, NR_FUTEX, 2000, 2500, WORKER, 5);
	cr_assert_eq(engine_finish(e), 0);
	cr_assert_eq(engine_walk(e, LOOP, 110, 2000, &p, &cnt), 0);
	for (size_t i = 0; i < cnt; i++) {
		uint64_t want = p[i].depth || p[i].cls != WAIT_CPU ? 0 : p[i].end <= 1000 ? 8 : 6;

		if (want) {
			cr_expect_eq(p[i].ustack, want, "%zu", i);
			cr_expect_eq(p[i].kstack, want + 100);
			cr_expect_eq(piece_site(&p[i]), 0);
		}
	}
	free(p);
	cr_assert_eq(engine_walk(e, LOOP, 410, 1000, &p, &cnt), 0);
	cr_assert_eq(cnt, 1);
	cr_expect_eq(p[0].cls, WAIT_CPU);
	cr_expect_eq(p[0].ustack, 0);
	free(p);
	engine_free(e);
}

/* Whoever counts what each record says is missing (record) comes to what the engine says (analyze):
 * also of what came after a task's exit, and twice. */
Test(engine, what_is_lost_is_counted_the_same_by_all)
{
	struct cc_rec_episode ep = { .h = { sizeof(ep), CC_REC_EPISODE, 0, 0, NR_FUTEX, CC_MS(2) },
				     .tid = WORKER,
				     .seq = 4,
				     .out = CC_MS(1),
				     .wake = CC_MS(2) - 1,
				     .state = 1,
				     .lost = CC_LOST(3, CC_US(10)) };
	struct cc_rec_task gone = { .h = { sizeof(gone), CC_REC_TASK, 0, 0, CC_TASK_EXIT,
					   CC_MS(3) },
				    .tid = WORKER,
				    .tgid = TGID };
	struct cc_rec_episode late = ep;
	struct cc_rec_loss loss = { .h = { sizeof(loss), CC_REC_LOSS, 0, 0, 0, CC_MS(5) },
				    .from = CC_MS(4),
				    .to = CC_MS(5),
				    .cnt = 7 };
	struct cc_rec_go_episode go = { .h = { sizeof(go), CC_REC_GO_EPISODE, 0, 0, 0, CC_MS(6) },
					.goid = 9,
					.tgid = TGID,
					.tid = LOOP,
					.out = CC_MS(4),
					.wake = CC_MS(5),
					.seq = 3,
					.lost = CC_LOST(2, 5) };
	struct cc_rec_go_episode open = go;
	const struct cc_rec *recs[] = { &ep.h, &gone.h, &late.h, &loss.h, &go.h, &open.h };
	struct engine *e = engine_with(0, 0);
	struct engine_stats told = { 0 };

	late.out = CC_MS(4);
	late.h.ts = CC_MS(5);
	late.seq = 9;
	late.lost = CC_LOST(4, 100);
	open.h.flags = CC_GE_OPEN;
	open.h.ts = CC_MS(8);
	open.out = CC_MS(7);
	open.seq = 6;
	open.lost = CC_LOST(1, 5);
	for (size_t i = 0; i < ARRAY_SIZE(recs); i++) {
		told.lost_cnt += decode_lost(recs[i]);
		cr_assert_eq(engine_feed(e, recs[i], recs[i]->size), 0, "%zu", i);
	}
	cr_assert_eq(engine_finish(e), 0);
	cr_expect_eq(told.lost_cnt, 3 + 4 + 7 + 2);
	cr_expect_eq(engine_stats(e)->lost_cnt, told.lost_cnt);
	cr_expect_eq(engine_lost(engine_stats(e)), told.lost_cnt);
	engine_free(e);
	told.counter[CC_CNT_DROP_EPISODE] = 10;
	told.counter[CC_CNT_DROP_SNAP] = 9;
	told.counter[CC_CNT_RECURSION] = 1000; /* skipped, not dropped */
	cr_expect_eq(engine_lost(&told), 19, "the kernel counted more than records tell");
}
