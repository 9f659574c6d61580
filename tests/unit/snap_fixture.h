/* SPDX-License-Identifier: Apache-2.0 */
/* snap_fixture: a snapshot made by hand, as the outputs get it: one request of nginx/4245 that
 * waited for cart_mutex, held by worker/4249, which was in fsync meanwhile. */
#ifndef CC_SNAP_FIXTURE_H
#define CC_SNAP_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "snapshot.h"
#include "strpool.h"

struct snap_fixture {
	struct snapshot s;
	struct snap_request r;
	struct snap_piece p[6];
	struct snap_stack stacks[3];
	struct snap_frame frames[6];
	struct snap_wait wait;
	struct snap_blame blame;
	struct snap_slow_typical slow[3];
	struct strpool pool;
};

static inline cc_str fx(struct snap_fixture *f, const char *text)
{
	return strpool_add(&f->pool, text, strlen(text));
}

static inline struct snap_piece fixture_piece(const struct snap_fixture *f, unsigned int from_us,
					      unsigned int to_us, unsigned int depth,
					      enum wait_class cls, struct snap_task task)
{
	struct snap_piece p = { .task = task };

	p.p = (struct cc_piece){ .start = f->r.start + CC_US(from_us),
				 .end = f->r.start + CC_US(to_us),
				 .tid = task.tid,
				 .tgid = task.tgid,
				 .depth = (uint16_t)depth,
				 .cls = (uint8_t)cls,
				 .confidence = 98,
				 .evidence = CC_EV_BIT(SCHED) };
	return p;
}

static inline void fixture_pieces(struct snap_fixture *f)
{
	struct snap_task nginx = { 4245, 4242, fx(f, "nginx"), 0 };
	struct snap_task worker = { 4249, 4242, fx(f, "worker"), 0 };
	struct snap_task disk = { 33, 33, fx(f, "kworker/1:2"), 0 };
	struct snap_piece *p = f->p;

	p[0] = fixture_piece(f, 0, 2100, 0, WAIT_CPU, nginx);
	p[1] = fixture_piece(f, 2100, 143100, 0, WAIT_LOCK, nginx);
	p[2] = fixture_piece(f, 2100, 20100, 1, WAIT_CPU, worker);
	p[3] = fixture_piece(f, 20100, 143100, 1, WAIT_FSYNC, worker);
	p[4] = fixture_piece(f, 143100, 205300, 0, WAIT_NET_RECV, nginx);
	p[5] = fixture_piece(f, 205300, 211400, 0, WAIT_CPU, nginx);
	p[1].p.flags = CC_PC_NESTED;
	p[1].p.ended = CC_ENDED_WAKE;
	p[1].p.holder_tid = p[1].p.waker_tid = 4249;
	p[1].p.waker_kind = CC_WAKER_TASK;
	p[1].holder = p[1].waker = worker;
	p[1].site = fx(f, "cart_add+0x41");
	p[1].resource = fx(f, "cart_mutex");
	p[1].stack = 1;
	p[3].p.waker_tid = 33;
	p[3].p.waker_kind = CC_WAKER_KTHREAD;
	p[3].waker = disk;
	p[3].site = fx(f, "cart_flush+0x9c");
	p[3].stack = 2;
	p[3].kstack = 3;
	p[4].p.waker_kind = CC_WAKER_SOFTIRQ;
	p[4].p.confidence = 75;
	p[4].p.evidence |= CC_EV_BIT(WAKER_IRQ);
}

static inline void fixture_stacks(struct snap_fixture *f)
{
	static const char *const names[][2] = {
		{ "__lll_lock_wait+0x2c", "libc.so.6" }, { "cart_add+0x41", "app cart.c:88" },
		{ "fdatasync+0x14", "libc.so.6" },       { "cart_flush+0x9c", "app cart.c:131" },
		{ "io_schedule+0x46", "[k]" },           { "ext4_sync_file+0x1a0", "[k]" }
	};

	for (int i = 0; i < 6; i++)
		f->frames[i] = (struct snap_frame){ .text = fx(f, names[i][0]),
						    .module = fx(f, names[i][1]),
						    .ip = 0x1000u + (unsigned int)i };
	for (unsigned int i = 0; i < 3; i++)
		f->stacks[i] = (struct snap_stack){ 2 * i, 2, CC_ST_COMPLETE };
}

/* Call again after the pool has grown. */
static inline void fixture_strings(struct snap_fixture *f)
{
	f->s.strings = f->pool.bytes;
	f->s.string_bytes = f->pool.len;
}

static inline struct snap_fixture *fixture_new(void)
{
	struct snap_fixture *f = calloc(1, sizeof(*f));
	struct snap_request *r = &f->r;

	strpool_init(&f->pool);
	r->id = (struct cc_reqid){ 0xfedcba9876543210ull, 3, CC_REQID_SOCK };
	r->id_text = fx(f, "fedcba9876543210#3");
	r->start = 9007199254740993ull; /* 2^53 + 1: a double cannot hold it */
	r->latency_ns = CC_US(211400);
	r->end = r->start + r->latency_ns;
	fixture_pieces(f);
	fixture_stacks(f);
	r->task = f->p[0].task;
	r->recv_task = f->p[0].task;
	r->peer = fx(f, "10.0.0.7:51122");
	r->rec.local_port = 8080;
	r->rec.first_recv = r->start + CC_US(50);
	r->rec.what = CC_RQ_RESUMED | CC_RQ_RETOLD;
	r->path_ok = true;
	r->path_sum_ns = r->latency_ns;
	r->confidence = 91;
	r->dominant = (struct snap_dominant){ .cls = WAIT_LOCK,
					      .ns = CC_MS(141),
					      .share = 141.0 / 211.4,
					      .site = f->p[1].site,
					      .resource = f->p[1].resource,
					      .piece = 1,
					      .culprit_ns = CC_MS(141) };
	r->root = (struct snap_dominant){ .cls = WAIT_FSYNC,
					  .ns = CC_MS(123),
					  .share = 123.0 / 211.4,
					  .site = f->p[3].site,
					  .piece = 3,
					  .culprit_ns = CC_MS(123) };
	r->piece_cnt = 6;
	f->s.requests = r;
	f->s.request_cnt = 1;
	f->s.pieces = f->p;
	f->s.piece_cnt = 6;
	f->s.stacks = f->stacks;
	f->s.stack_cnt = 3;
	f->s.frames = f->frames;
	f->s.frame_cnt = 6;
	f->s.total_cnt = f->s.match_cnt = 1;
	fixture_strings(f);
	return f;
}

static inline void fixture_free(struct snap_fixture *f)
{
	strpool_done(&f->pool);
	free(f);
}

#endif
