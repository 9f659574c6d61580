/* SPDX-License-Identifier: Apache-2.0 */
/* From records through the engine to the rows. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "filter.h"
#include "folded.h"
#include "json.h"
#include "markdown.h"
#include "pprof.h"
#include "report.h"
#include "shop_stream.h"
#include "snapshot.h"

static int feed(void *ctx, const struct cc_rec *rec, size_t len)
{
	return engine_feed(ctx, rec, len);
}

static struct engine *shop(void)
{
	struct engine_opts o = { 0 };
	struct engine *e;

	cr_assert_eq(engine_new(&o, &e), 0);
	cr_assert_eq(shop_stream(feed, e), 0);
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
	cr_expect_eq(r->holder.tid, SHOP_WORKER);
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
	cr_expect(s->thread_all == 2 && s->goroutine_all == 0);
	cr_expect_eq(s->threads[0].task.tid, SHOP_NGINX);
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

static const struct snap_wait *wait_of(const struct snap_wait_table *t, enum wait_class cls)
{
	for (uint32_t i = 0; i < t->cnt; i++) {
		if (t->rows[i].cls == cls)
			return &t->rows[i];
	}
	return NULL;
}

/* Twice the same time: as it was felt, and by what was beneath; told by each column. */
Test(snapshot, slow_requests_by_symptom_and_root_cause)
{
	struct engine *e = shop();
	struct snapshot *s = look(e, &(struct cc_query){ .slow_tables = true });

	cr_assert(s->has_slow_tables);
	cr_expect_eq(s->slow_requests, 2);
	for (int root = 0; root < 2; root++)
		for (int g = 0; g < SNAP_GROUPS; g++) {
			const struct snap_wait_table *t = &s->slow_waits[root][g];
			cc_ns sum = 0;

			for (uint32_t i = 0; i < t->cnt; i++)
				sum += t->rows[i].total_ns;
			cr_expect_eq(sum, 2 * CC_MS(102), "table %d of %d", g, root);
		}
	for (int g = 0; g < SNAP_GROUPS; g++) {
		const struct snap_wait *felt = wait_of(&s->slow_waits[0][g], WAIT_LOCK);
		const struct snap_wait *beneath = wait_of(&s->slow_waits[1][g], WAIT_FSYNC);

		cr_assert(felt && beneath);
		cr_expect_eq(felt->total_ns, CC_MS(200));
		cr_expect_eq(beneath->total_ns, CC_MS(180));
		cr_expect_null(wait_of(&s->slow_waits[0][g], WAIT_FSYNC));
		cr_expect_null(wait_of(&s->slow_waits[1][g], WAIT_LOCK));
	}
	cr_expect_str_eq(STR(wait_of(&s->slow_waits[0][GROUP_SITE], WAIT_LOCK)->site),
			 "cart_add+0x41");
	cr_expect_str_eq(STR(wait_of(&s->slow_waits[0][GROUP_WAKER], WAIT_LOCK)->waker),
			 "worker/4249");
	snapshot_free(s);
	s = look(e, &(struct cc_query){ 0 });
	cr_expect_not(s->has_slow_tables, "nobody asked");
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
	cr_expect_eq(s->match_cnt, 1, "request 19 runs at SHOP_T0 + 3.8 s: 1003.8 s of the day");
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
	cr_expect_eq(s->requests[0].piece_cnt, 0, "not even depth 0 fits");
	snapshot_free(s);

	s = look(e, &(struct cc_query){ .only = first });
	cr_expect_eq(s->request_cnt, 1);
	cr_expect_eq(s->requests[0].id.ordinal, 1);
	snapshot_free(s);
	s = look(e, &(struct cc_query){ .only = { SHOP_NGINX, 0, CC_REQID_TID } });
	cr_expect_eq(s->request_cnt, 20);
	snapshot_free(s);

	s = look(e, &(struct cc_query){ .sort = SORT_AGE });
	cr_expect_eq(s->requests[0].id.ordinal, 1);
	snapshot_free(s);
	s = look(e, &(struct cc_query){ .ascending = true });
	cr_expect_eq(s->requests[0].latency_ns, CC_MS(2));
	snapshot_free(s);

	/* [4.0 s, 4.1 s): the last one ended at 4.102 s, the one before at 3.902 s */
	s = look(e,
		 &(struct cc_query){ .view_ns = SHOP_T0 + CC_MS(4100), .window_ns = CC_MS(300) });
	cr_expect_eq(s->total_cnt, 1);
	cr_expect_eq(s->requests[0].id.ordinal, 19);
	cr_expect_eq(s->window_ns, CC_MS(300));
	snapshot_free(s);
	engine_free(e);
}

Test(snapshot, ports_and_rows_asked_for)
{
	struct engine *e = shop();
	struct cc_reqid first = { 0x7f3a, 1, CC_REQID_SOCK }, third = { 0x7f3a, 3, CC_REQID_SOCK };
	struct cc_query q = { .max_rows = 2, .selected = first, .also = third, .by_port = true };
	struct snapshot *s = look(e, &q);

	cr_assert_eq(s->port_cnt, 1);
	cr_expect_eq(s->ports[0].port, 8080);
	cr_expect_eq(s->ports[0].requests, 20);
	cr_expect_eq(s->ports[0].p50_ns, CC_MS(2));
	cr_expect_eq(s->ports[0].p99_ns, CC_MS(102));
	cr_expect_str_eq(STR(s->ports[0].kind), "nginx:8080");
	/* two of 20 are slow, and these wait for the lock */
	cr_expect_geq(s->ports[0].slow.ordinal, 19);
	cr_expect_eq(s->request_cnt, 2);
	snapshot_free(s);
	q.max_rows = 4;
	s = look(e, &q);
	cr_expect_not_null(snapshot_find(s, first));
	cr_expect_not_null(snapshot_find(s, third));
	cr_expect_not_null(snapshot_find(s, s->ports[0].slow));
	cr_expect_not(s->has_span);
	snapshot_free(s);

	/* a thread's time stands last, after all requests, and is none of these */
	struct cc_request span = { .id = { SHOP_WORKER, 0, CC_REQID_TID },
				   .start = SHOP_T0,
				   .end = SHOP_T0 + CC_S(5),
				   .tid = SHOP_WORKER };
	size_t cnt;
	cr_assert_eq(engine_walk(e, SHOP_WORKER, span.start, span.end, &span.path, &cnt), 0);
	span.path_cnt = (uint32_t)cnt;
	span.path_ok = true;
	s = look(e, &(struct cc_query){ .span = &span });
	cr_expect(s->has_span);
	cr_assert_eq(s->request_cnt, 21);
	cr_expect_str_eq(STR(s->requests[20].id_text), "tid:4249");
	cr_expect_eq(s->requests[20].piece_cnt, cnt);
	cr_expect_eq(s->total_cnt, 20);
	snapshot_free(s);
	free(span.path);
	engine_free(e);
}

/* What is too short for who asked is counted; what speaks for a wait is there however short. */
Test(snapshot, small_pieces_are_only_counted)
{
	struct engine *e = shop();
	struct snapshot *whole = look(e, &(struct cc_query){ 0 });

	for (uint32_t part = 1; part <= 64; part *= 4) {
		struct snapshot *s = look(e, &(struct cc_query){ .small_part = part });

		cr_assert_eq(s->request_cnt, whole->request_cnt);
		for (uint32_t i = 0; i < s->request_cnt; i++) {
			const struct snap_request *all = &whole->requests[i], *r = &s->requests[i];
			const struct snap_piece *from = &whole->pieces[all->first_piece];
			const struct snap_piece *kept = &s->pieces[r->first_piece];
			uint32_t k = 0;

			cr_expect_eq(r->piece_cnt + r->pieces_small, all->piece_cnt);
			cr_expect_eq(r->pieces_left_out, 0);
			for (uint32_t j = 0; j < all->piece_cnt; j++) {
				bool speaks = j == all->dominant.piece || j == all->root.piece;
				cc_ns ns = from[j].p.end - from[j].p.start;

				if (!speaks && ns < all->latency_ns / part)
					continue;
				cr_assert_lt(k, r->piece_cnt);
				cr_expect_eq(memcmp(&kept[k].p, &from[j].p, sizeof(kept[k].p)), 0);
				if (j == all->dominant.piece)
					cr_expect_eq(r->dominant.piece, k);
				if (j == all->root.piece)
					cr_expect_eq(r->root.piece, k);
				k++;
			}
			cr_expect_eq(k, r->piece_cnt);
			cr_expect_str_eq(snapshot_str(s, r->verdict),
					 snapshot_str(whole, all->verdict));
		}
		snapshot_free(s);
	}
	snapshot_free(whole);
	engine_free(e);
}

/* Of a path that is too long the deepest levels go: what is left still adds up. */
Test(snapshot, deepest_pieces_are_left_out_first)
{
	struct engine *e = shop();
	struct cc_reqid slow = { 0x7f3a, 20, CC_REQID_SOCK };
	struct snapshot *whole = look(e, &(struct cc_query){ .only = slow }), *s;
	const struct snap_request *r = &whole->requests[0], *cut;
	uint32_t top = 0;
	cc_ns sum = 0;

	cr_assert_eq(whole->request_cnt, 1);
	cr_expect_eq(r->pieces_left_out, 0);
	for (uint32_t i = 0; i < r->piece_cnt; i++)
		top += whole->pieces[r->first_piece + i].p.depth == 0;
	cr_assert_lt(top, r->piece_cnt, "the lock's holder is told beneath it");
	s = look(e, &(struct cc_query){ .only = slow, .max_of_request = r->piece_cnt - 1 });
	cut = &s->requests[0];
	cr_assert_eq(cut->piece_cnt, top);
	cr_expect_eq(cut->pieces_left_out, r->piece_cnt - top);
	for (uint32_t i = 0; i < top; i++) {
		const struct snap_piece *p = &s->pieces[cut->first_piece + i];

		cr_expect_eq(p->p.depth, 0);
		cr_expect_not(p->p.flags & CC_PC_NESTED, "nothing follows that explains it");
		sum += p->p.end - p->p.start;
	}
	cr_expect_eq(sum, cut->latency_ns);
	cr_expect_eq(s->pieces[cut->first_piece + cut->dominant.piece].p.cls, r->dominant.cls);
	cr_expect_lt(cut->root.piece, top, "the piece that it explains speaks for the root");
	cr_expect_eq(cut->root.cls, r->root.cls);
	snapshot_free(s);
	s = look(e, &(struct cc_query){ .only = slow, .max_of_request = top - 1 });
	cr_expect_eq(s->requests[0].piece_cnt, top, "depth 0 is shown all the same");
	snapshot_free(s);
	s = look(e, &(struct cc_query){ .only = slow, .max_pieces = top - 1 });
	cr_expect_eq(s->requests[0].piece_cnt, 0);
	cr_expect_eq(s->requests[0].pieces_left_out, r->piece_cnt);
	snapshot_free(s);
	snapshot_free(whole);
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

/* ---- a hostile recording: good records with bytes changed, whatever they then say ---- */

struct mutation {
	struct engine *e;
	uint64_t seed;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

static int feed_mutated(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct mutation *m = ctx;
	uint64_t copy[64];

	cr_assert_leq(len, sizeof(copy));
	memcpy(copy, rec, len);
	for (uint64_t n = next_random(&m->seed) % 8; n >= 6; n--) {
		/* the size in the first two bytes is the file's to check */
		size_t at = 2 + next_random(&m->seed) % (len - 2);

		((uint8_t *)copy)[at] =
			(uint8_t)(next_random(&m->seed) >> next_random(&m->seed) % 8);
	}
	int err = engine_feed(m->e, (const struct cc_rec *)copy, len);

	return err == -EINVAL ? 0 : err;
}

Test(snapshot, of_hostile_records, .timeout = 120)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct engine_opts o = { .memory_bytes = 16 << 20 };
		struct mutation m = { NULL, seed };
		struct snapshot *s;
		char *text = NULL;
		size_t len;

		cr_assert_eq(engine_new(&o, &m.e), 0);
		cr_assert_eq(shop_stream(feed_mutated, &m), 0);
		cr_assert_eq(engine_finish(m.e), 0);
		cr_assert_eq(snapshot_build(m.e,
					    &(struct cc_query){ .all_in_flight = true,
								.group = seed % 5,
								.root_causes = seed % 2 },
					    &s),
			     0);
		FILE *out = open_memstream(&text, &len);

		cr_expect_eq(json_snapshot_line(s, out), 0);
		cr_expect_eq(report_text(s, true, out), 0);
		cr_expect_eq(pprof_write(s, out), 0);
		cr_expect_eq(folded_write(s, out), 0);
		for (uint32_t i = 0; i < s->request_cnt; i++) {
			const struct snap_request *r = &s->requests[i];
			cc_ns sum = 0;

			cr_expect_eq(markdown_request(s, r, out), 0);
			for (uint32_t k = 0; k < r->piece_cnt; k++) {
				const struct cc_piece *p = &s->pieces[r->first_piece + k].p;

				sum += p->depth ? 0 : p->end - p->start;
			}
			if (r->path_ok && !r->pieces_left_out)
				cr_assert_eq(sum, r->latency_ns, "seed %llu, request %s",
					     (unsigned long long)seed, STR(r->id_text));
		}
		fclose(out);
		free(text);
		snapshot_free(s);
		engine_free(m.e);
	}
}
