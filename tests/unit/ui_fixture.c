/* SPDX-License-Identifier: Apache-2.0 */
#include "ui_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "confidence.h"
#include "fmt.h"
#include "strpool.h"

#define NOW CC_S(5000)
#define MAX_REQ 64
#define MAX_PIECE 256
#define MAX_FRAME 64

struct build {
	struct snapshot *s;
	struct strpool pool;
	struct snap_request req[MAX_REQ];
	struct snap_piece piece[MAX_PIECE];
	struct snap_stack stack[8];
	struct snap_frame frame[MAX_FRAME];
	uint32_t req_cnt, piece_cnt, stack_cnt, frame_cnt;
};

static cc_str str(struct build *b, const char *text)
{
	return strpool_add(&b->pool, text, strlen(text));
}

static struct snap_task task(struct build *b, uint32_t tid, const char *comm)
{
	return (struct snap_task){ tid, 4242, str(b, comm), 0 };
}

/* ---- stacks ---- */

struct frame_row {
	const char *text, *module;
};

static uint32_t add_stack(struct build *b, uint32_t flags, const struct frame_row *rows,
			  uint32_t cnt)
{
	b->stack[b->stack_cnt] = (struct snap_stack){ b->frame_cnt, cnt, flags };
	for (uint32_t i = 0; i < cnt; i++)
		b->frame[b->frame_cnt++] = (struct snap_frame){ .text = str(b, rows[i].text),
								.module = str(b, rows[i].module),
								.ip = 0x400000 + i * 16 };
	return ++b->stack_cnt;
}

static void lock_stacks(struct build *b, struct snap_piece *p)
{
	static const struct frame_row blocked_k[] = {
		{ "schedule+0x5e", "[k]" },      { "futex_wait_queue+0x63", "[k]" },
		{ "__futex_wait+0x151", "[k]" }, { "futex_wait+0x69", "[k]" },
		{ "do_futex+0x13a", "[k]" },     { "__x64_sys_futex+0x127", "[k]" },
	};
	static const struct frame_row blocked_u[] = {
		{ "__lll_lock_wait+0x2c", "libc.so.6" },
		{ "pthread_mutex_lock+0x112", "libc.so.6" },
		{ "cart_add+0x41", "shop cart.c:88" },
		{ "http_handler+0x210", "shop http.c:412" },
		{ "ngx_http_core_content_phase+0x2b", "nginx" },
		{ "ngx_http_process_request_line_with_a_very_long_name+0x10f", "nginx" },
		{ "start_thread+0x2f3", "libc.so.6" },
		{ "__clone3+0x2c", "libc.so.6" },
	};
	static const struct frame_row waker_k[] = {
		{ "futex_wake+0x15c", "[k]" },
		{ "do_futex+0x105", "[k]" },
		{ "__x64_sys_futex+0x127", "[k]" },
	};
	static const struct frame_row waker_u[] = {
		{ "__lll_lock_wake+0x1a", "libc.so.6" },
		{ "cart_flush+0x9c", "shop cart.c:131" },
		{ "worker_main+0x55", "shop worker.c:20" },
		{ "start_thread+0x2f3", "libc.so.6" },
	};
	p->kstack = add_stack(b, CC_ST_KERNEL | CC_ST_COMPLETE, blocked_k, ARRAY_SIZE(blocked_k));
	p->stack = add_stack(b, CC_ST_COMPLETE, blocked_u, ARRAY_SIZE(blocked_u));
	p->waker_kstack = add_stack(b, CC_ST_KERNEL | CC_ST_COMPLETE, waker_k, ARRAY_SIZE(waker_k));
	p->waker_stack = add_stack(b, 0, waker_u, ARRAY_SIZE(waker_u));
}

/* ---- requests ---- */

static struct snap_request *add_request(struct build *b, uint64_t cookie, uint32_t ordinal,
					const char *peer, cc_ns age, cc_ns latency)
{
	char id[FMT_LEN];
	struct snap_request *r = &b->req[b->req_cnt++];
	r->id = (struct cc_reqid){ cookie, ordinal, CC_REQID_SOCK };
	fmt_reqid(id, sizeof(id), r->id);
	r->id_text = str(b, id);
	r->peer = str(b, peer);
	r->end = NOW - age;
	r->start = r->end - latency;
	r->latency_ns = latency;
	r->rec.local_port = 8080;
	r->rec.bytes_in = 312;
	r->rec.bytes_out = 48213;
	r->task = r->recv_task = task(b, 4245, "nginx");
	r->path_ok = true;
	r->confidence = 97;
	r->first_piece = b->piece_cnt;
	r->waker_text = r->holder_text = str(b, "-");
	return r;
}

/* The next depth-0 piece of @r, or one nested in it that starts @off after the last depth-0 one. */
static struct snap_piece *add_piece(struct build *b, struct snap_request *r, unsigned int depth,
				    enum wait_class cls, cc_ns off, cc_ns ns)
{
	struct snap_piece *p = &b->piece[b->piece_cnt++];
	cc_ns start = r->start;
	for (uint32_t i = 0; i < r->piece_cnt; i++) {
		const struct cc_piece *q = &b->piece[r->first_piece + i].p;
		if (q->depth == 0)
			start = depth ? q->start : q->end;
	}
	p->task = task(b, 4245, "nginx");
	p->p = (struct cc_piece){ .start = start + off,
				  .end = start + off + ns,
				  .tid = 4245,
				  .tgid = 4242,
				  .depth = (uint16_t)depth,
				  .cls = (uint8_t)cls,
				  .confidence = 98,
				  .ended = cls == WAIT_CPU ? CC_ENDED_RAN : CC_ENDED_WAKE,
				  .evidence = CC_EV_BIT(SCHED) };
	r->piece_cnt++;
	if (depth)
		return p;
	r->class_ns[cls] += ns;
	r->path_sum_ns += ns;
	if (wait_class_unexplained(cls))
		r->unexplained_ns += ns;
	if (ns > r->dominant.ns)
		r->dominant = r->root =
			(struct snap_dominant){ .cls = (uint8_t)cls,
						.ns = ns,
						.share = (double)ns / (double)r->latency_ns,
						.piece = r->piece_cnt - 1,
						.culprit_ns = ns };
	return p;
}

static void woken(struct snap_piece *p, enum cc_waker kind, struct snap_task by)
{
	p->p.waker_kind = (uint8_t)kind;
	p->p.waker_tid = by.tid;
	p->waker = by;
	p->p.evidence |= kind == CC_WAKER_TASK ? CC_EV_BIT(WAKER_TASK) : CC_EV_BIT(WAKER_IRQ);
}

static void add_lock_request(struct build *b)
{
	struct snap_request *r =
		add_request(b, 0x7f3a9c, 3, "10.0.0.7:51122", CC_S(3), CC_US(211400));
	struct snap_task worker = task(b, 4249, "worker");
	add_piece(b, r, 0, WAIT_CPU, 0, CC_US(2100));
	struct snap_piece *lock = add_piece(b, r, 0, WAIT_LOCK, 0, CC_US(141000));
	lock->site = str(b, "cart_add+0x41");
	lock->waker_site = str(b, "cart_flush+0x9c");
	lock->resource = str(b, "cart_mutex");
	lock->holder = worker;
	lock->p.holder_tid = worker.tid;
	lock->p.flags = CC_PC_NESTED;
	lock->p.evidence |= CC_EV_BIT(HOLDER_OWNER) | CC_EV_BIT(HOLDER_CUT);
	lock->p.confidence = 95;
	woken(lock, CC_WAKER_TASK, worker);
	lock_stacks(b, lock);
	struct snap_piece *cpu = add_piece(b, r, 1, WAIT_CPU, 0, CC_US(18000));
	cpu->task = worker;
	struct snap_piece *disk = add_piece(b, r, 1, WAIT_FSYNC, CC_US(18000), CC_US(123000));
	disk->task = worker;
	disk->site = str(b, "wal_sync+0x1b");
	disk->resource = str(b, "/srv/shop/wal");
	disk->p.evidence |= CC_EV_BIT(CLASS_GUESSED);
	disk->p.confidence = 75;
	woken(disk, CC_WAKER_HARDIRQ, (struct snap_task){ 0 });
	struct snap_piece *net = add_piece(b, r, 0, WAIT_UPSTREAM, 0, CC_US(62200));
	net->resource = str(b, "10.0.0.20:5432");
	net->site = str(b, "pg_recv+0x77");
	woken(net, CC_WAKER_SOFTIRQ, (struct snap_task){ 0 });
	add_piece(b, r, 0, WAIT_CPU, 0, CC_US(6100));
	r->dominant.site = lock->site;
	r->dominant.resource = lock->resource;
	r->root = (struct snap_dominant){ .cls = WAIT_FSYNC,
					  .ns = CC_US(123000),
					  .share = 0.58,
					  .site = disk->site,
					  .resource = disk->resource,
					  .piece = 3,
					  .culprit_ns = CC_US(123000) };
	r->waker = r->holder = worker;
	r->waker_text = r->holder_text = str(b, "worker/4249");
	r->confidence = 91;
	r->verdict =
		str(b, "lock 141.0 ms of 211.4 (67%): cart_mutex held by worker/4249, which was "
		       "itself in disk fsync for 123.0 ms: the root cause is the disk, not the "
		       "lock.");
}

static void add_special_requests(struct build *b)
{
	struct snap_request *r = add_request(b, 0x7f3b01, 1, "10.0.0.9:40011", CC_S(9), CC_MS(187));
	add_piece(b, r, 0, WAIT_CPU, 0, CC_MS(1));
	struct snap_piece *p = add_piece(b, r, 0, WAIT_UPSTREAM, 0, CC_MS(176));
	p->resource = r->dominant.resource = str(b, "10.0.0.20:5432");
	woken(p, CC_WAKER_SOFTIRQ, (struct snap_task){ 0 });
	add_piece(b, r, 0, WAIT_ASYNC, 0, CC_MS(10));
	r->waker_text = str(b, "softirq");
	r->confidence = 71;
	r->verdict = str(b, "upstream 176.0 ms of 187.0 (94%): waiting for 10.0.0.20:5432.");

	r = add_request(b, 0x7f39e0, 2, "10.0.0.4:33210", CC_S(21), CC_US(88100));
	add_piece(b, r, 0, WAIT_CPU, 0, CC_US(30300));
	p = add_piece(b, r, 0, WAIT_RUNQ, 0, CC_US(57800));
	p->occupant = task(b, 911, "backup");
	p->p.occupant_ns = CC_US(55000);
	r->dominant.resource = str(b, "cpu5");
	r->confidence = 95;
	r->verdict = str(b, "runq 57.8 ms of 88.1 (66%): backup/911 had cpu5 for 55.0 ms of it.");

	r = add_request(b, 0x7f3c10, 7, "[2001:db8:85a3::8a2e:370:7334]:60100", CC_S(1),
			CC_US(61700));
	add_piece(b, r, 0, WAIT_FSYNC, 0, CC_US(35800));
	add_piece(b, r, 0, WAIT_NET_RECV, 0, CC_US(9000));
	add_piece(b, r, 0, WAIT_UNKNOWN, 0, CC_US(16900))->p.evidence = CC_EV_BIT(LOST);
	r->lost_inside = true;
	r->confidence = 44;
	r->task.comm = str(b, "データ");

	r = add_request(b, 0x7f3e11, 4, "10.0.0.7:51190", CC_S(5), CC_US(43000));
	p = add_piece(b, r, 0, WAIT_QUEUED, 0, CC_US(40000));
	p->p.by_request = FIXTURE_ID;
	p->by_request = str(b, "7f3a9c#3");
	add_piece(b, r, 0, WAIT_CPU, 0, CC_US(3000));
	r->verdict = str(b, "queued 40.0 ms of 43.0 (93%): its thread served 7f3a9c#3.");

	r = add_request(b, 0x7f4a00, 1, "unix", CC_S(2), CC_US(41000));
	r->path_ok = false;
	r->confidence = 0;
}

static void add_hang(struct build *b)
{
	struct snap_request *r = add_request(b, 0x7f3d00, 12, "10.0.0.8:60100", 0, CC_S(5));
	r->state = CC_RQS_IN_FLIGHT;
	add_piece(b, r, 0, WAIT_CPU, 0, CC_MS(1));
	struct snap_piece *p = add_piece(b, r, 0, WAIT_LOCK, 0, CC_MS(4999));
	p->p.flags = CC_PC_OPEN;
	p->p.ended = CC_ENDED_OPEN;
	p->p.evidence |= CC_EV_BIT(OPEN) | CC_EV_BIT(HOLDER_OWNER);
	p->holder = task(b, 4250, "worker");
	p->resource = r->dominant.resource = str(b, "stock_mutex");
	r->holder_text = str(b, "worker/4250");
	r->confidence = 75;
	r->verdict = str(b, "lock 4999.0 ms so far (100%): stock_mutex held by worker/4250.");
}

static void add_plain_requests(struct build *b, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++) {
		char peer[32];
		snprintf(peer, sizeof(peer), "10.0.1.%u:4%04u", i + 1, i * 7);
		struct snap_request *r = add_request(b, 0x7f5000 + i, i % 5 + 1, peer, CC_S(4 + i),
						     CC_US(39000 - 1300 * i));
		add_piece(b, r, 0, WAIT_CPU, 0, r->latency_ns / 4);
		struct snap_piece *p = add_piece(b, r, 0, i % 3 ? WAIT_NET_RECV : WAIT_DISK_READ, 0,
						 r->latency_ns - r->latency_ns / 4);
		p->site = r->dominant.site = str(b, i % 3 ? "recv_header+0x1c" : "read_page+0x88");
		woken(p, CC_WAKER_SOFTIRQ, (struct snap_task){ 0 });
		r->waker_text = str(b, "softirq");
	}
}

/* ---- the rest of a snapshot ---- */

static void *keep(const void *data, size_t size, size_t cnt)
{
	void *copy = malloc(size * (cnt ? cnt : 1));
	if (!copy)
		abort();
	memcpy(copy, data, size * cnt);
	return copy;
}

static void add_waits(struct build *b)
{
	struct snap_wait waits[] = {
		{ .cls = WAIT_LOCK,
		  .total_ns = CC_MS(3840),
		  .requests = 41,
		  .p50_ns = CC_MS(71),
		  .p99_ns = CC_MS(139),
		  .share = 0.46,
		  .confidence = 95,
		  .what_if_ns = CC_MS(3000) },
		{ .cls = WAIT_UPSTREAM,
		  .total_ns = CC_MS(1800),
		  .requests = 120,
		  .p50_ns = CC_MS(12),
		  .p99_ns = CC_MS(48),
		  .share = 0.22,
		  .confidence = 75 },
		{ .cls = WAIT_CPU,
		  .total_ns = CC_MS(1160),
		  .requests = 302,
		  .p50_ns = CC_MS(3),
		  .p99_ns = CC_MS(21),
		  .share = 0.14,
		  .confidence = 98 },
		{ .cls = WAIT_UNKNOWN,
		  .total_ns = CC_MS(330),
		  .requests = 52,
		  .p50_ns = CC_MS(4),
		  .p99_ns = CC_MS(11),
		  .share = 0.04,
		  .confidence = 0 },
	};
	waits[0].resource = str(b, "cart_mutex");
	waits[1].resource = str(b, "10.0.0.20:5432");
	struct snap_blame blame[] = {
		{ str(b, "nginx:8080"), str(b, "worker[4242]"), WAIT_LOCK, CC_MS(3100) },
		{ str(b, "nginx:8080"), str(b, "backup[911]"), WAIT_RUNQ, CC_MS(750) },
	};
	struct snap_slow_typical slow[] = {
		{ WAIT_LOCK, CC_US(41500), CC_US(500) },
		{ WAIT_UPSTREAM, CC_US(12200), CC_US(12000) },
	};
	b->s->waits = keep(waits, sizeof(waits[0]), b->s->wait_cnt = ARRAY_SIZE(waits));
	b->s->blame = keep(blame, sizeof(blame[0]), b->s->blame_cnt = ARRAY_SIZE(blame));
	b->s->slow = keep(slow, sizeof(slow[0]), b->s->slow_cnt = ARRAY_SIZE(slow));
}

static void add_threads(struct build *b)
{
	static const struct {
		uint32_t tid, requests;
		const char *comm, *strip;
		cc_ns mix[9];
	} rows[] = {
		{ 4245, 44, "nginx", "CCLLLLLLLNNNCCLLLLNNCC", { 22, 3, 51, 20, 1, 3, 0, 0, 0 } },
		{ 4249, 0, "worker", "DDDDDDDCDDDDDDDDDDDDDC", { 9, 1, 0, 0, 86, 4, 0, 0, 0 } },
		{ 4246, 51, "nginx", "CCNNNNCNNNNCCNNNNLLNNC", { 31, 2, 12, 40, 0, 15, 0, 0, 0 } },
	};
	struct snap_thread out[ARRAY_SIZE(rows)];
	memset(out, 0, sizeof(out));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		out[i].task = task(b, rows[i].tid, rows[i].comm);
		out[i].requests = rows[i].requests;
		out[i].flags = CC_TF_TRACED;
		if (i == 2) { /* a goroutine */
			out[i].task.goid = 17;
			out[i].task.comm = str(b, "main.serve");
		}
		out[i].now_cls = i == 1 ? WAIT_FSYNC : WAIT_NET_RECV;
		out[i].now_ns = i == 1 ? CC_S(75) : CC_MS(3 + 40 * i);
		out[i].now_seeded = i == 1;
		for (int g = 0; g < 9; g++)
			out[i].mix[g] = CC_MS(rows[i].mix[g]);
		size_t n = strlen(rows[i].strip);
		for (size_t k = 0; k < sizeof(out[i].strip) && n; k++)
			out[i].strip[k] = (uint8_t)(strchr(WAIT_GROUPS, rows[i].strip[k % n]) -
						    WAIT_GROUPS + 1);
	}
	struct snap_outside outside = { task(b, 911, "backup"), CC_MS(750), 12, 3 };
	b->s->outside = keep(&outside, sizeof(outside), b->s->outside_cnt = 1);
	b->s->threads = keep(out, sizeof(out[0]), b->s->thread_cnt = ARRAY_SIZE(out));
	b->s->thread_all = b->s->thread_cnt;
}

static void add_totals(struct build *b)
{
	static const cc_ns mix[9] = { 14, 9, 46, 22, 5, 0, 0, 0, 4 };
	struct snapshot *s = b->s;
	s->total_cnt = s->match_cnt = 18204;
	s->in_flight_cnt = 7;
	s->p50_ns = CC_US(1900);
	s->p95_ns = CC_MS(20);
	s->p99_ns = CC_US(48200);
	s->max_ns = CC_US(211400);
	s->rate = 302;
	s->conf_share[0] = 0.91;
	s->conf_share[1] = 0.06;
	s->conf_share[2] = 0.03;
	for (int i = 0; i < 60; i++)
		s->p99_line[i] = CC_MS(8 + (i * 7) % 13 + (i > 34 && i < 42 ? 40 : 0));
	for (int i = 0; i < 9; i++)
		s->p99_mix[i] = CC_MS(mix[i]);
	s->verdict =
		str(b, "slow requests: lock +41.0 ms on cart_mutex, held by worker/4249 in disk "
		       "fsync; upstream as always");
	add_waits(b);
	add_threads(b);
	struct snap_port ports[] = {
		{ 8080, str(b, "nginx:8080"), 17000, CC_US(1900), CC_MS(48), FIXTURE_ID },
		{ 8443,
		  str(b, "nginx:8443"),
		  1204,
		  CC_US(900),
		  CC_US(88100),
		  { 0x7f39e0, 2, CC_REQID_SOCK } },
	};
	s->ports = keep(ports, sizeof(ports[0]), s->port_cnt = ARRAY_SIZE(ports));
}

static void add_stats(struct build *b, unsigned int how)
{
	struct snapshot *s = b->s;
	s->now_ns = NOW + (how & SNAP_LATER ? CC_S(1) : 0);
	s->window_ns = CC_S(60);
	s->first_ns = NOW - CC_S(131);
	s->last_ns = s->now_ns;
	s->realtime_off_ns = (int64_t)CC_S(1700000000) - (int64_t)NOW + (int64_t)CC_MS(250);
	s->target = task(b, 4242, "nginx");
	s->target.tgid = 4242;
	s->targets = keep(&(struct snap_target){ .task = s->target }, sizeof(*s->targets),
			  s->target_cnt = 1);
	s->host = str(b, "Linux 6.18.0 x86_64 shop-1");
	cc_str note = str(b, "stacks: late, by sched_exit_tp; requests: tier 2");
	s->notes = keep(&note, sizeof(note), s->note_cnt = 1);
	s->stats.events = 812345;
	s->stats.episodes = how & SNAP_EMPTY ? 4812 : 402118;
	s->stats.stacks_user = 22104;
	s->stats.stacks_complete = 22090;
	s->runtime.cpu_share = 0.004;
	s->runtime.rss_bytes = 21 << 20;
	s->runtime.ring_fill = 0.02;
	s->runtime.live = !(how & SNAP_ENDED);
	s->runtime.newest_ns = s->now_ns;
	strcpy(s->runtime.listens, ":8080, :8443");
	if (how & SNAP_LAG) {
		s->runtime.lag_ns = CC_MS(2400);
		s->runtime.slowed_ns = CC_S(4);
	}
	s->runtime.kept_from_ns = s->first_ns;
	s->runtime.kept_bytes = 12 << 20;
	s->runtime.unwind = (struct snap_unwind){ .user = 40000,
						  .user_full = 39900,
						  .cut = 60,
						  .no_cfi = 40,
						  .procs = 3,
						  .bytes = 7 << 20,
						  .known = true };
	static const struct snap_probe probes[] = {
		{ "sched_switch", "tp_btf/sched_switch", true, 0, 0, 0 },
		{ "sched_waking", "tp_btf/sched_waking", true, 0, 0, 2 },
		{ "open_task", "iter/task", false, 0, 0, 0 },
	};
	memcpy(s->runtime.probe, probes, sizeof(probes));
	s->runtime.probe_cnt = ARRAY_SIZE(probes);
	s->runtime.paused = how & SNAP_PAUSED;
	s->runtime.ended = how & (SNAP_ENDED | SNAP_GONE);
	s->runtime.target_gone = how & SNAP_GONE;
	if (how & SNAP_GONE)
		s->runtime.status = str(b, "pid 4242 exited 12:06:02 (status 0)");
	if (how & SNAP_LOSS) {
		s->stats.lost_cnt = s->stats.counter[CC_CNT_DROP_EPISODE] = 1204;
		s->stats.lost_ns = CC_MS(900);
		struct snap_loss loss = { NOW - CC_S(12), NOW - CC_S(11) };
		s->losses = keep(&loss, sizeof(loss), s->loss_cnt = 1);
	}
}

/* One block for the strings, one for each table. */
static void finish(struct build *b)
{
	struct snapshot *s = b->s;
	s->requests = keep(b->req, sizeof(b->req[0]), s->request_cnt = b->req_cnt);
	s->pieces = keep(b->piece, sizeof(b->piece[0]), s->piece_cnt = b->piece_cnt);
	s->stacks = keep(b->stack, sizeof(b->stack[0]), s->stack_cnt = b->stack_cnt);
	s->frames = keep(b->frame, sizeof(b->frame[0]), s->frame_cnt = b->frame_cnt);
	s->strings = strpool_take(&b->pool, &s->string_bytes);
	if (!s->strings)
		abort();
	strpool_done(&b->pool);
}

struct snapshot *ui_fixture(unsigned int how)
{
	struct build *b = calloc(1, sizeof(*b));
	if (!b || !(b->s = calloc(1, sizeof(*b->s))))
		abort();
	struct snapshot *s = b->s;
	strpool_init(&b->pool);
	add_stats(b, how);
	if (!(how & SNAP_EMPTY)) {
		if (how & SNAP_LATER)
			add_request(b, 0x7fbeef, 1, "10.0.9.9:1", 0, CC_MS(300));
		add_hang(b);
		if (!(how & SNAP_FORGOT))
			add_lock_request(b);
		add_special_requests(b);
		add_plain_requests(b, 22);
		add_totals(b);
	}
	finish(b);
	free(b);
	return s;
}
