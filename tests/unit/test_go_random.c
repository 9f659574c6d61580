/* SPDX-License-Identifier: Apache-2.0 */
/* Random schedules of goroutines over threads, with requests, items, losses and late records: every
 * path must partition its request exactly, whatever is told. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "paths.h"

#define PID 100u
#define THREADS 4
#define GOROUTINES 12
#define STEPS 300
#define START 1000000ull

struct world {
	struct engine *e;
	uint64_t seed;
	cc_ns now;
	uint64_t on[THREADS]; /* goid on that thread; 0: none */
	cc_ns parked[GOROUTINES + 1], woken[GOROUTINES + 1];
	uint32_t at[GOROUTINES + 1]; /* thread it was on */
	uint64_t waker[GOROUTINES + 1];
	uint32_t seq[GOROUTINES + 1], tseq[THREADS];
	uint32_t requests;
	struct {
		cc_ns recv;
		uint32_t tid;
	} open[GOROUTINES + 1];
};

static uint64_t rnd(struct world *w, uint64_t n)
{
	w->seed = w->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (w->seed >> 33) % n;
}

static void feed(struct world *w, struct cc_rec *r, size_t len)
{
	int err;

	r->size = (uint16_t)len;
	if (rnd(w, 40) == 0)
		return; /* lost */
	err = engine_feed(w->e, r, len);
	cr_assert(err == 0 || err == -22, "%d", err);
}
#define FEED(w, rec) feed((w), &(rec).h, sizeof(rec))

static void run_on(struct world *w, uint64_t g, uint32_t th)
{
	static const uint32_t classes[] = { WAIT_CHAN,  WAIT_SELECT,   WAIT_MUTEX, WAIT_SEMA,
					    WAIT_SLEEP, WAIT_NET_RECV, WAIT_COND,  WAIT_GC };
	struct cc_rec_go_episode ep = {
		.h = { .kind = CC_REC_GO_EPISODE, .ts = w->now },
		.goid = g,
		.tgid = PID,
		.tid = PID + w->at[g],
		.out = w->parked[g],
		.wake = w->woken[g],
		.waker_goid = w->waker[g],
		.wait_class = classes[rnd(w, 8)],
		.object = 0x1000 * (1 + rnd(w, 3)),
		.in_tid = PID + th,
		.seq = ++w->seq[g],
	};
	struct cc_rec_go_on on = {
		.h = { .kind = CC_REC_GO_ON, .aux = 1, .ts = w->now },
		.goid = g,
		.tgid = PID,
		.tid = PID + th,
	};

	if (w->parked[g])
		FEED(w, ep);
	else
		FEED(w, on);
	w->on[th] = g;
	w->at[g] = th;
	w->parked[g] = w->woken[g] = w->waker[g] = 0;
}

static bool is_running(const struct world *w, uint64_t g)
{
	for (int i = 0; i < THREADS; i++)
		if (w->on[i] == g)
			return true;
	return false;
}

static void socket_op(struct world *w, uint64_t g, uint32_t th)
{
	struct cc_rec_req q = {
		.h = { .kind = CC_REC_REQ, .ts = w->now },
		.cookie = 100 + g,
		.ordinal = w->seq[g] + 1,
		.arrival = w->open[g].recv - rnd(w, 500),
		.first_recv = w->open[g].recv,
		.last_recv = w->open[g].recv,
		.first_send = w->now,
		.last_send = w->now,
		.recv_tid = w->open[g].tid,
		.send_tid = PID + th,
		.tgid = PID,
		.local_port = 80,
	};

	if (!w->open[g].recv) {
		w->open[g].recv = w->now;
		w->open[g].tid = PID + th;
		return;
	}
	w->open[g].recv = 0;
	w->requests++;
	FEED(w, q);
}

static void send_item(struct world *w, uint64_t g)
{
	struct cc_rec_go_item it = {
		.h = { .kind = CC_REC_GO_ITEM,
		       .aux = (uint16_t)(1 + rnd(w, 2)),
		       .flags = (uint8_t)rnd(w, 3),
		       .ts = w->now },
		.goid = g,
		.peer_goid = rnd(w, 3) ? 1 + rnd(w, GOROUTINES) : 0,
		.channel = 0x1000 * (1 + rnd(w, 3)),
		.item = rnd(w, 6),
		.tgid = PID,
	};

	FEED(w, it);
}

static void thread_waits(struct world *w, uint32_t th)
{
	struct cc_rec_episode ep = {
		.h = { .kind = CC_REC_EPISODE, .aux = 0 },
		.tid = PID + th,
		.seq = ++w->tseq[th],
		.out = w->now,
		.state = rnd(w, 2) ? 2 : 0,
	};

	w->now += 1 + rnd(w, 300);
	ep.wake = w->now - 1;
	ep.h.ts = w->now;
	FEED(w, ep);
}

static void tick(struct world *w)
{
	struct cc_rec_tick r = {
		.h = { .kind = CC_REC_TICK, .ts = w->now },
		.drained_to = w->now - rnd(w, 2000),
		.interval_ns = 1000000,
	};

	FEED(w, r);
}

static void birth_or_death(struct world *w, uint64_t g)
{
	struct cc_rec_go_task r = {
		.h = { .kind = CC_REC_GO_TASK, .aux = (uint16_t)(1 + rnd(w, 3)), .ts = w->now },
		.goid = g + GOROUTINES * rnd(w, 3),
		.parent_goid = 1 + rnd(w, GOROUTINES),
		.tgid = PID,
	};

	FEED(w, r);
}

static void step(struct world *w)
{
	uint32_t th = (uint32_t)rnd(w, THREADS);
	uint64_t g = w->on[th], other = 1 + rnd(w, GOROUTINES);

	w->now += 1 + rnd(w, 400);
	switch (rnd(w, 8)) {
	case 0: /* parks */
	case 1:
		if (g) {
			w->parked[g] = w->now;
			w->on[th] = 0;
		}
		break;
	case 2: /* wakes */
		if (g && w->parked[other] && !w->woken[other]) {
			w->woken[other] = w->now;
			w->waker[other] = g;
		}
		break;
	case 3:
		if (g)
			socket_op(w, g, th);
		break;
	case 4:
		if (g)
			send_item(w, g);
		break;
	case 5:
		thread_waits(w, th);
		break;
	case 6:
		birth_or_death(w, other);
		break;
	default:
		if (!is_running(w, other))
			run_on(w, other, th);
	}
	if (rnd(w, 60) == 0)
		tick(w);
}

/* Pieces of one depth follow on each other from @start to @end, and what is within them too. */
static size_t check(const struct cc_piece *p, size_t cnt, size_t i, unsigned int depth, cc_ns start,
		    cc_ns end)
{
	cc_ns at = start;

	while (i < cnt && p[i].depth == depth) {
		size_t me = i++;

		cr_assert_eq(p[me].start, at);
		cr_assert_gt(p[me].end, at);
		at = p[me].end;
		if (i < cnt && p[i].depth > depth)
			i = check(p, cnt, i, depth + 1, p[me].start, p[me].end);
	}
	cr_assert_eq(at, end);
	return i;
}

Test(go_random, every_path_sums_up, .timeout = 60)
{
	uint32_t requests = 0, pieces = 0, of_goroutines = 0;

	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct world w = { .seed = seed * 7919, .now = START };
		struct engine_opts o = { .memory_bytes = seed % 4 ? 0 : 1 << 16 };
		const struct cc_request *const *r;
		size_t cnt;

		cr_assert_eq(engine_new(&o, &w.e), 0);
		for (int i = 0; i < STEPS; i++)
			step(&w);
		cr_assert_eq(engine_finish(w.e), 0);
		r = engine_requests(w.e, &cnt);
		for (size_t i = 0; i < cnt; i++) {
			const struct cc_piece *path = path_of(r[i]);

			if (!r[i]->path_ok || !r[i]->path_cnt)
				continue;
			requests++;
			pieces += r[i]->path_cnt;
			check(path, r[i]->path_cnt, 0, 0, r[i]->start, r[i]->end);
			cr_assert_eq(r[i]->path_sum_ns, r[i]->end - r[i]->start);
			for (uint32_t k = 0; k < r[i]->path_cnt; k++)
				of_goroutines += path[k].goid != 0;
		}
		engine_free(w.e);
	}
	cr_expect_gt(requests, 400, "%u", requests);
	cr_expect_gt(of_goroutines, pieces / 2, "%u of %u", of_goroutines, pieces);
}
