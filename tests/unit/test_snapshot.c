/* SPDX-License-Identifier: Apache-2.0 */
/* From records through the engine to the rows: nginx/4245 serves requests on :8080, and some wait
 * for cart_mutex, which worker/4249 holds while it is in fsync. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "filter.h"
#include "json.h"
#include "snapshot.h"

enum { NGINX = 4245, WORKER = 4249, PID = 4242, SYS_FUTEX = 202, SYS_FSYNC = 74 };
#define T0 CC_S(1000)

static void put(struct engine *e, const void *rec)
{
	const struct cc_rec *h = rec;

	cr_assert_eq(engine_feed(e, h, h->size), 0, "kind %u", h->kind);
}

static void put_task(struct engine *e, uint32_t tid, const char *comm)
{
	struct cc_rec_open_task t = { .h = { .size = sizeof(t),
					     .kind = CC_REC_OPEN_TASK,
					     .flags = CC_TF_TRACED | CC_TF_ATTACH,
					     .ts = T0 },
				      .tid = tid,
				      .tgid = PID,
				      .start = 1,
				      .seq = 1,
				      .fd = -1,
				      .last_in = T0 };

	memcpy(t.comm, comm, strlen(comm));
	put(e, &t);
}

static void put_tick(struct engine *e, cc_ns at, bool last)
{
	struct cc_rec_tick t = {
		.h = { .size = sizeof(t), .kind = CC_REC_TICK, .flags = last, .ts = at },
		.drained_to = at,
		.realtime_ns = at + CC_S(86400ull * 19000),
		.boottime_ns = at,
		.interval_ns = CC_S(1)
	};

	put(e, &t);
}

static void put_stack(struct engine *e, uint64_t key, unsigned int flags, uint64_t ip0,
		      uint64_t ip1)
{
	struct {
		struct cc_rec_stack s;
		uint64_t ip[2];
	} r = { .s = { .h = { .size = 48,
			      .kind = CC_REC_STACK,
			      .flags = (uint8_t)(flags | CC_ST_COMPLETE),
			      .aux = 2,
			      .ts = T0 },
		       .key = key,
		       .tgid = flags & CC_ST_KERNEL ? 0 : PID },
		.ip = { ip0, ip1 } };

	put(e, &r);
}

static void put_name(struct engine *e, unsigned int what, uint32_t tgid, uint64_t id,
		     const char *text, const char *module)
{
	struct {
		struct cc_rec_name n;
		char text[88];
	} r = { .n = { .h = { .size = 128, .kind = CC_REC_NAME, .aux = (uint16_t)what, .ts = T0 },
		       .id = id,
		       .tgid = tgid,
		       .len = { (uint16_t)strlen(text), (uint16_t)strlen(module) } } };

	snprintf(r.text, sizeof(r.text), "%s%s", text, module);
	put(e, &r);
}

/* An episode with its EXTRA. */
static void put_wait(struct engine *e, uint32_t tid, uint32_t seq, cc_ns out, cc_ns wake, cc_ns in,
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
				    .waker_tgid = waker ? PID : 0,
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
		x.owner = WORKER;
		x.owner_tgid = PID;
	}
	put(e, &p);
	put(e, &x);
}

static void put_req(struct engine *e, uint32_t ordinal, cc_ns start, cc_ns end)
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
				.recv_tid = NGINX,
				.send_tid = NGINX,
				.tgid = PID,
				.local_port = 8080,
				.peer = { .family = 2, .port = 51122, .ip = { 10, 0, 0, 7 } },
				.comm = "nginx" };

	put(e, &r);
}

/* Request i of 20 starts at 200 * i ms: 2 ms of cpu; the last two wait 100 ms for the mutex
 * between, while the worker is in fsync for 90 of these. */
static struct engine *shop(void)
{
	struct engine_opts o = { 0 };
	struct engine *e;

	cr_assert_eq(engine_new(&o, &e), 0);
	struct cc_rec_target t = { .h = { .size = sizeof(t), .kind = CC_REC_TARGET, .ts = T0 },
				   .tgid = PID,
				   .start = 1,
				   .comm = "nginx\x1b[31m" };

	put(e, &t);
	put_task(e, NGINX, "nginx");
	put_task(e, WORKER, "worker");
	put_stack(e, 11, 0, 0x100, 0x200);
	put_stack(e, 12, 0, 0x300, 0x400);
	put_name(e, CC_NAME_FRAME, PID, 0x100, "__lll_lock_wait+0x2c", "libc.so.6");
	put_name(e, CC_NAME_FRAME, PID, 0x200, "cart_add+0x41", "app cart.c:88");
	put_name(e, CC_NAME_FRAME, PID, 0x300, "fsync+0x14", "libc.so.6");
	put_name(e, CC_NAME_FRAME, PID, 0x400, "cart_flush+0x9c", "app cart.c:131");
	put_name(e, CC_NAME_ADDR, PID, 0x5000, "cart_mutex", "");
	put_name(e, CC_NAME_NOTE, 0, 0, "a note", "");
	uint32_t nginx_seq = 1, worker_seq = 1;

	for (uint32_t i = 0; i < 20; i++) {
		cc_ns start = T0 + CC_MS(200) * (i + 1);

		if (i >= 18) {
			put_wait(e, WORKER, worker_seq++, start + CC_MS(5), start + CC_MS(95),
				 start + CC_MS(95), SYS_FSYNC, 0, CC_CTX_IRQ, 12);
			put_wait(e, NGINX, nginx_seq++, start + CC_MS(1), start + CC_MS(101),
				 start + CC_MS(101), SYS_FUTEX, WORKER, CC_CTX_TASK, 11);
			put_req(e, i + 1, start, start + CC_MS(102));
		} else {
			put_req(e, i + 1, start, start + CC_MS(2));
		}
	}
	put_tick(e, T0 + CC_S(5), true);
	cr_assert_eq(engine_finish(e), 0);
	return e;
}

static struct snapshot *look(struct engine *e, const struct cc_query *q)
{
	struct snapshot *s;

	cr_assert_eq(snapshot_build(e, q, &s), 0);
	return s;
}

#define STR(str) snapshot_str(s, str)

Test(snapshot, rows_names_and_sums)
{
	struct engine *e = shop();
	struct snapshot *s = look(e, &(struct cc_query){ .group = GROUP_SITE });

	cr_expect_eq(s->total_cnt, 20);
	cr_expect_eq(s->match_cnt, 20);
	cr_expect_eq(s->in_flight_cnt, 0);
	cr_expect_eq(s->request_cnt, 20);
	cr_expect_eq(s->p50_ns, CC_MS(2));
	cr_expect_eq(s->max_ns, CC_MS(102));
	cr_expect_str_eq(STR(s->target.comm), "nginx", "sanitized");
	cr_expect_eq(s->note_cnt, 1);
	cr_expect_str_eq(STR(s->notes[0]), "a note");
	const struct snap_request *r = &s->requests[0];

	cr_expect_eq(r->latency_ns, CC_MS(102));
	cr_expect_str_eq(STR(r->id_text), "7f3a#20", "equal latency: the later first");
	cr_expect_str_eq(STR(r->peer), "10.0.0.7:51122");
	cr_expect_eq(r->path_sum_ns, r->latency_ns);
	cr_expect_eq(r->dominant.cls, WAIT_LOCK);
	cr_expect_eq(r->dominant.ns, CC_MS(100));
	cr_expect_str_eq(STR(r->dominant.site), "cart_add+0x41", "libc is not the place");
	cr_expect_not_null(strstr(STR(r->dominant.resource), "cart_mutex"));
	cr_expect_eq(r->root.cls, WAIT_FSYNC);
	cr_expect_eq(r->root.ns, CC_MS(90));
	cr_expect_str_eq(STR(r->waker_text), "worker/4249");
	cr_expect_str_eq(STR(r->holder_text), "worker/4249");
	cr_expect_eq(r->holder.tid, WORKER);
	cr_expect_not_null(strstr(STR(r->verdict),
				  "lock 100.0 of 102.0 ms (98%): cart_mutex held by "
				  "worker/4249, itself in disk fsync 90.0 ms"),
			   "%s", STR(r->verdict));
	cc_ns sum = 0;

	for (uint32_t i = 0; i < r->piece_cnt; i++) {
		const struct snap_piece *p = &s->pieces[r->first_piece + i];

		if (!p->p.depth)
			sum += p->p.end - p->p.start;
	}
	cr_expect_eq(sum, CC_MS(102));
	const struct snap_piece *lock = &s->pieces[r->first_piece + r->dominant.piece];

	cr_assert_neq(lock->stack, 0);
	const struct snap_stack *st = &s->stacks[lock->stack - 1];

	cr_expect_eq(st->cnt, 2);
	cr_expect_str_eq(STR(s->frames[st->first].text), "__lll_lock_wait+0x2c");
	cr_expect_str_eq(STR(s->frames[st->first + 1].module), "app cart.c:88");
	cr_expect_eq(snapshot_find(s, r->id), r);
	cr_expect_null(snapshot_find(s, (struct cc_reqid){ 1, 1, CC_REQID_SOCK }));
	cr_expect_str_eq(snapshot_str(s, UINT32_MAX), "");
	snapshot_free(s);
	engine_free(e);
}

Test(snapshot, waits_slow_threads_and_verdict)
{
	struct engine *e = shop();
	struct snapshot *s = look(e, &(struct cc_query){ .group = GROUP_SITE });

	cr_assert_geq(s->wait_cnt, 2);
	cr_expect_eq(s->waits[0].cls, WAIT_LOCK);
	cr_expect_eq(s->waits[0].total_ns, CC_MS(200));
	cr_expect_eq(s->waits[0].requests, 2);
	cr_expect_str_eq(STR(s->waits[0].site), "cart_add+0x41");
	cr_expect_str_eq(STR(s->waits[0].holder), "worker/4249");
	cr_expect_eq(s->slow[0].cls, WAIT_LOCK);
	cr_expect_eq(s->slow[0].slow_ns, CC_MS(100));
	cr_expect_eq(s->slow[0].typical_ns, 0);
	cr_expect_not_null(strstr(STR(s->verdict),
				  "slow requests (102.0 ms and over): lock +100.0 ms "
				  "on cart_mutex, held by worker/4249 in disk fsync"),
			   "%s", STR(s->verdict));
	cr_assert_eq(s->thread_cnt, 2);
	cr_expect_eq(s->threads[0].task.tid, NGINX);
	cr_expect_eq(s->threads[0].requests, 20);
	cc_ns busy = 0;

	for (int i = 0; i < 9; i++)
		busy += s->threads[0].mix[i];
	/* to its last record: what it did after that is not known, and in no group */
	cr_expect_eq(busy, CC_MS(4102));
	cr_expect_leq(busy, s->window_ns);
	snapshot_free(s);
	s = look(e, &(struct cc_query){ .root_causes = true });
	cr_expect_eq(s->waits[0].cls, WAIT_FSYNC);
	cr_expect_eq(s->waits[0].total_ns, CC_MS(180));
	snapshot_free(s);
	engine_free(e);
}

Test(snapshot, filter_sort_window_and_selection)
{
	struct engine *e = shop();
	struct cc_err err;
	struct filter *f;
	struct cc_reqid first = { 0x7f3a, 1, CC_REQID_SOCK };

	cr_assert_eq(filter_parse("wait=lock site~cart at=00:16:43", &err, &f), 0);
	struct cc_query q = { .filter = f };
	struct snapshot *s = look(e, &q);

	cr_expect_eq(s->total_cnt, 20);
	cr_expect_eq(s->match_cnt, 1, "request 19 runs at T0 + 3.8 s: 1003.8 s of the day");
	cr_expect_eq(s->request_cnt, 1);
	cr_expect_str_eq(STR(s->filter_text), "wait=lock site~cart at=00:16:43");
	snapshot_free(s);
	q.tz_off_s = 3600;
	s = look(e, &q);
	cr_expect_eq(s->match_cnt, 0, "an hour later on the user's clock");
	snapshot_free(s);
	filter_free(f);

	s = look(e, &(struct cc_query){ .max_rows = 3, .selected = first, .max_pieces = 3 });
	cr_expect_eq(s->request_cnt, 3);
	const struct snap_request *r = snapshot_find(s, first);

	cr_assert_not_null(r);
	cr_expect_eq(r, &s->requests[2]);
	cr_expect_gt(r->piece_cnt, 0, "the selected one has its path before all others");
	cr_expect(s->requests[0].pieces_left_out);
	snapshot_free(s);

	s = look(e, &(struct cc_query){ .only = first });
	cr_expect_eq(s->request_cnt, 1);
	cr_expect_eq(s->requests[0].id.ordinal, 1);
	snapshot_free(s);
	s = look(e, &(struct cc_query){ .only = { NGINX, 0, CC_REQID_TID } });
	cr_expect_eq(s->request_cnt, 20);
	snapshot_free(s);

	s = look(e, &(struct cc_query){ .sort = SORT_AGE });
	cr_expect_eq(s->requests[0].id.ordinal, 1);
	snapshot_free(s);
	s = look(e, &(struct cc_query){ .ascending = true });
	cr_expect_eq(s->requests[0].latency_ns, CC_MS(2));
	snapshot_free(s);

	/* [4.0 s, 4.1 s): the last one ended at 4.102 s, the one before at 3.902 s */
	s = look(e, &(struct cc_query){ .view_ns = T0 + CC_MS(4100), .window_ns = CC_MS(300) });
	cr_expect_eq(s->total_cnt, 1);
	cr_expect_eq(s->requests[0].id.ordinal, 19);
	cr_expect_eq(s->window_ns, CC_MS(300));
	snapshot_free(s);
	engine_free(e);
}

Test(snapshot, same_records_same_bytes)
{
	char *text[2] = { NULL, NULL };
	size_t len[2];

	for (int i = 0; i < 2; i++) {
		struct engine *e = shop();
		struct snapshot *s = look(e, &(struct cc_query){ 0 });
		FILE *out = open_memstream(&text[i], &len[i]);

		cr_expect_eq(json_snapshot_line(s, out), 0);
		fclose(out);
		snapshot_free(s);
		engine_free(e);
	}
	cr_expect_eq(len[0], len[1]);
	cr_expect_str_eq(text[0], text[1]);
	free(text[0]);
	free(text[1]);
}

Test(snapshot, of_nothing)
{
	struct engine_opts o = { 0 };
	struct engine *e;

	cr_assert_eq(engine_new(&o, &e), 0);
	struct snapshot *s = look(e, &(struct cc_query){ 0 });

	cr_expect_eq(s->request_cnt, 0);
	cr_expect_str_eq(STR(s->verdict), "no finished request in this window");
	snapshot_free(s);
	cr_assert_eq(engine_finish(e), 0);
	s = look(e, &(struct cc_query){ .view_ns = 5, .window_ns = 100 });
	cr_expect_eq(s->total_cnt, 0);
	snapshot_free(s);
	engine_free(e);
	snapshot_free(NULL);
}
