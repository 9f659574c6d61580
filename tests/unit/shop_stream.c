/* SPDX-License-Identifier: Apache-2.0 */
#include "shop_stream.h"

#include <stdio.h>
#include <string.h>

struct shop {
	cc_record_fn *fn;
	void *ctx;
	int err;
};

enum { SYS_FUTEX = 202, SYS_FSYNC = 74 };

static void put(struct shop *s, const void *rec)
{
	const struct cc_rec *h = rec;

	if (!s->err)
		s->err = s->fn(s->ctx, h, h->size);
}

static void put_task(struct shop *s, uint32_t tid, const char *comm)
{
	struct cc_rec_open_task t = { .h = { .size = sizeof(t),
					     .kind = CC_REC_OPEN_TASK,
					     .flags = CC_TF_TRACED | CC_TF_ATTACH,
					     .ts = SHOP_T0 },
				      .tid = tid,
				      .tgid = SHOP_PID,
				      .start = 1,
				      .seq = 1,
				      .fd = -1,
				      .last_in = SHOP_T0 };

	memcpy(t.comm, comm, strlen(comm));
	put(s, &t);
}

static void put_tick(struct shop *s, cc_ns at, bool last)
{
	struct cc_rec_tick t = {
		.h = { .size = sizeof(t), .kind = CC_REC_TICK, .flags = last, .ts = at },
		.drained_to = at,
		.realtime_ns = at + CC_S(86400ull * 19000),
		.boottime_ns = at,
		.interval_ns = CC_S(1)
	};

	put(s, &t);
}

static void put_stack(struct shop *s, uint64_t key, unsigned int flags, uint64_t ip0, uint64_t ip1)
{
	union {
		struct cc_rec_stack s;
		uint64_t room[sizeof(struct cc_rec_stack) / 8 + 2];
	} r = { .s = { .h = { .size = 48,
			      .kind = CC_REC_STACK,
			      .flags = (uint8_t)(flags | CC_ST_COMPLETE),
			      .aux = 2,
			      .ts = SHOP_T0 },
		       .key = key,
		       .tgid = flags & CC_ST_KERNEL ? 0 : SHOP_PID } };

	r.s.ip[0] = ip0;
	r.s.ip[1] = ip1;
	put(s, &r);
}

static void put_name(struct shop *s, unsigned int what, uint32_t tgid, uint64_t id,
		     const char *text, const char *module)
{
	union {
		struct cc_rec_name n;
		char room[128];
	} r = { .n = { .h = { .size = 128,
			      .kind = CC_REC_NAME,
			      .aux = (uint16_t)what,
			      .ts = SHOP_T0 },
		       .id = id,
		       .tgid = tgid,
		       .len = { (uint16_t)strlen(text), (uint16_t)strlen(module) } } };

	snprintf(r.room + sizeof(r.n), sizeof(r.room) - sizeof(r.n), "%s%s", text, module);
	put(s, &r);
}

/* An episode with its EXTRA. */
static void put_wait(struct shop *s, uint32_t tid, uint32_t seq, cc_ns out, cc_ns wake, cc_ns in,
		     int nr, uint32_t waker, unsigned int ctx, uint64_t ustack)
{
	bool futex = nr == SYS_FUTEX;
	struct cc_rec_episode p = { .h = { .size = sizeof(p),
					   .kind = CC_REC_EPISODE,
					   .flags = (uint8_t)(ctx << CC_EP_CTX_SHIFT),
					   .aux = (uint16_t)nr,
					   .ts = in },
				    .tid = tid,
				    .seq = seq,
				    .out = out,
				    .wake = wake,
				    .state = futex ? 1 : 2,
				    .waker_tid = waker,
				    .waker_tgid = waker ? SHOP_PID : 0,
				    .key = futex ? 0x5000 : 7 };
	struct cc_rec_extra x = {
		.h = { .size = sizeof(x), .kind = CC_REC_EXTRA, .aux = (uint16_t)nr, .ts = in },
		.tid = tid,
		.seq = seq,
		.ustack = ustack,
		.fd = futex ? -1 : 7,
		.fd_kind = futex ? CC_FD_NONE : CC_FD_FILE
	};

	if (futex) {
		x.h.flags = CC_EX_OWNER;
		x.args[0] = x.uaddr = 0x5000;
		x.owner = SHOP_WORKER;
		x.owner_tgid = SHOP_PID;
	}
	put(s, &p);
	put(s, &x);
}

static void put_req(struct shop *s, uint32_t ordinal, cc_ns start, cc_ns end)
{
	struct cc_rec_req r = { .h = { .size = sizeof(r),
				       .kind = CC_REC_REQ,
				       .aux = CC_END_NEXT,
				       .ts = end + CC_MS(1) },
				.cookie = 0x7f3a,
				.ordinal = ordinal,
				.arrival = start,
				.first_recv = start,
				.last_recv = start,
				.first_send = end,
				.last_send = end,
				.recv_cnt = 1,
				.send_cnt = 1,
				.bytes_in = 100,
				.bytes_out = 200,
				.recv_tid = SHOP_NGINX,
				.send_tid = SHOP_NGINX,
				.tgid = SHOP_PID,
				.local_port = 8080,
				.peer = { .family = 2, .port = 51122, .ip = { 10, 0, 0, 7 } },
				.comm = "nginx" };

	put(s, &r);
}

int shop_stream(cc_record_fn *fn, void *ctx)
{
	struct shop shop = { fn, ctx, 0 }, *s = &shop;
	struct cc_rec_target t = { .h = { .size = sizeof(t), .kind = CC_REC_TARGET, .ts = SHOP_T0 },
				   .tgid = SHOP_PID,
				   .start = 1,
				   .comm = "nginx\x1b[31m" };

	put(s, &t);
	put_task(s, SHOP_NGINX, "nginx");
	put_task(s, SHOP_WORKER, "worker");
	put_stack(s, 11, 0, 0x100, 0x200);
	put_stack(s, 12, 0, 0x300, 0x400);
	put_name(s, CC_NAME_FRAME, SHOP_PID, 0x100, "__lll_lock_wait+0x2c", "libc.so.6");
	put_name(s, CC_NAME_FRAME, SHOP_PID, 0x200, "cart_add+0x41", "app cart.c:88");
	put_name(s, CC_NAME_FRAME, SHOP_PID, 0x300, "fsync+0x14", "libc.so.6");
	put_name(s, CC_NAME_FRAME, SHOP_PID, 0x400, "cart_flush+0x9c", "app cart.c:131");
	put_name(s, CC_NAME_ADDR, SHOP_PID, 0x5000, "cart_mutex", "");
	put_name(s, CC_NAME_NOTE, 0, 0, "a note", "");
	uint32_t nginx_seq = 1, worker_seq = 1;

	for (uint32_t i = 0; i < 20; i++) {
		cc_ns start = SHOP_T0 + CC_MS(200) * (i + 1);

		if (i >= 18) {
			put_wait(s, SHOP_WORKER, worker_seq++, start + CC_MS(5), start + CC_MS(95),
				 start + CC_MS(95), SYS_FSYNC, 0, CC_CTX_IRQ, 12);
			put_wait(s, SHOP_NGINX, nginx_seq++, start + CC_MS(1), start + CC_MS(101),
				 start + CC_MS(101), SYS_FUTEX, SHOP_WORKER, CC_CTX_TASK, 11);
			put_req(s, i + 1, start, start + CC_MS(102));
		} else {
			put_req(s, i + 1, start, start + CC_MS(2));
		}
	}
	put_tick(s, SHOP_T0 + CC_S(5), true);
	return s->err;
}
