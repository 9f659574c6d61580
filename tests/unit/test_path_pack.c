/* SPDX-License-Identifier: Apache-2.0 */
/* Paths are kept packed: what comes out is what went in, whatever a piece holds. */
#include <criterion/criterion.h>
#include <string.h>

#include "confidence.h"
#include "digest.h"
#include "path_pack.h"

#define PIECES 400

static uint64_t rnd(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

/* Few values of many sizes: neighbours are alike and differ, as pieces do. */
static uint64_t value(uint64_t *state)
{
	static const uint64_t v[] = {
		0, 1, 2, 127, 128, 70000, UINT32_MAX, 1ull << 40, UINT64_MAX
	};

	return rnd(state, 3) ? v[rnd(state, 3)] : v[rnd(state, sizeof(v) / sizeof(v[0]))];
}

static struct cc_piece any_piece(uint64_t *state, cc_ns at)
{
	return (struct cc_piece){
		.start = at,
		.end = at + value(state) % (1ull << 50),
		.tid = (uint32_t)value(state),
		.tgid = (uint32_t)value(state),
		.goid = value(state),
		.depth = (uint16_t)rnd(state, 70),
		.cls = (uint8_t)rnd(state, WAIT_CLASS_CNT),
		.ended = (uint8_t)rnd(state, CC_ENDED_CNT),
		.waker_kind = (uint8_t)rnd(state, CC_WAKER_CNT),
		.confidence = (uint8_t)rnd(state, 101),
		.flags = (uint16_t)value(state),
		.waker_tid = (uint32_t)value(state),
		.waker_tgid = (uint32_t)value(state),
		.holder_tid = (uint32_t)value(state),
		.holder_tgid = (uint32_t)value(state),
		.last_tid = (uint32_t)value(state),
		.sibling_end = value(state),
		.occupant_tid = (uint32_t)value(state),
		.occupant_tgid = (uint32_t)value(state),
		.occupant_ns = value(state),
		.resource = (uint32_t)value(state),
		.srtt_us = (uint32_t)value(state),
		.retrans = (uint32_t)value(state),
		.on_tid = (uint32_t)value(state),
		.evidence = value(state) & ((1ull << CC_EV_CNT) - 1),
		.ustack = value(state),
		.kstack = value(state),
		.waker_ustack = value(state),
		.waker_kstack = value(state),
		.short_ns = value(state),
		.for_request = { value(state), (uint32_t)value(state), (uint32_t)rnd(state, 4) },
		.by_request = { value(state), (uint32_t)value(state), (uint32_t)rnd(state, 4) },
	};
}

static void expect_same(const struct cc_piece *a, const struct cc_piece *b)
{
#define SAME(m) cr_assert(a->m == b->m, #m)
	SAME(start);
	SAME(end);
	SAME(tid);
	SAME(tgid);
	SAME(goid);
	SAME(depth);
	SAME(cls);
	SAME(ended);
	SAME(waker_kind);
	SAME(confidence);
	SAME(flags);
	SAME(waker_tid);
	SAME(waker_tgid);
	SAME(holder_tid);
	SAME(holder_tgid);
	SAME(last_tid);
	SAME(sibling_end);
	SAME(srtt_us);
	SAME(retrans);
	SAME(occupant_tid);
	SAME(occupant_tgid);
	SAME(occupant_ns);
	SAME(resource);
	SAME(on_tid);
	SAME(evidence);
	SAME(ustack);
	SAME(kstack);
	SAME(waker_ustack);
	SAME(waker_kstack);
	SAME(short_ns);
	SAME(for_request.id);
	SAME(for_request.ordinal);
	SAME(for_request.kind);
	SAME(by_request.id);
	SAME(by_request.ordinal);
	SAME(by_request.kind);
#undef SAME
}

static struct cc_request keep(struct mem *mem, struct pack_buf *scratch, const struct cc_piece *p,
			      uint32_t cnt, cc_ns start, const struct cc_found *found)
{
	struct cc_request r = { .start = start, .path_cnt = cnt, .path_ok = true };

	r.kept = path_pack(mem, scratch, p, cnt, start, found);
	cr_assert_not_null(r.kept);
	return r;
}

Test(path_pack, whatever_goes_in_comes_out)
{
	struct cc_found found = { .dominant = { .ns = 5, .piece = 3 },
				  .root = { .cls = WAIT_FSYNC } };
	struct pack_buf scratch = { 0 };
	struct path_buf buf = { 0 };
	struct cc_piece p[PIECES];
	struct mem mem = { 0 };
	uint64_t state = 88172645463325252ull;

	found.class_ns[WAIT_LOCK] = 77;
	for (int round = 0; round < 200; round++) {
		uint32_t cnt = (uint32_t)rnd(&state, PIECES + 1);
		cc_ns at = CC_S(5);

		for (uint32_t i = 0; i < cnt; i++) {
			p[i] = any_piece(&state, rnd(&state, 4) ? at : value(&state) >> 2);
			at = p[i].end;
			if (rnd(&state, 2))
				p[i].confidence = evidence_confidence(p[i].evidence);
		}
		struct cc_request r = keep(&mem, &scratch, p, cnt, CC_S(5), &found);
		const struct cc_piece *got = request_path(&r, &buf);
		struct cc_found sum;

		cr_assert_not_null(got);
		for (uint32_t i = 0; i < cnt; i++)
			expect_same(&p[i], &got[i]);
		cr_expect_eq(request_found(&r, &sum)->class_ns[WAIT_LOCK], 77);
		cr_expect_eq(request_found(&r, &sum)->class_ns[WAIT_CPU], 0);
		cr_expect_eq(request_dominant(&r)->piece, 3);
		cr_expect_eq(request_root(&r)->cls, WAIT_FSYNC);
		path_unkeep(&mem, r.kept);
	}
	cr_expect_eq(mem.used, scratch.cap);
	path_buf_done(&buf);
	vec_done(&mem, &scratch);
}

/* The pieces of an event loop: each behind another request. This is what there are millions of. */
Test(path_pack, likely_pieces_take_few_bytes)
{
	struct pack_buf scratch = { 0 };
	struct cc_found found = { 0 };
	struct cc_piece p[100] = { 0 };
	struct mem mem = { 0 };
	size_t before;

	for (uint32_t i = 0; i < 100; i++)
		p[i] = (struct cc_piece){
			.start = CC_S(9) + i * 3000,
			.end = CC_S(9) + (i + 1) * 3000,
			.tid = 4711,
			.tgid = 4711,
			.cls = i % 2 ? WAIT_HOL : WAIT_CPU,
			.evidence = CC_EV_BIT(SOCKET) | CC_EV_BIT(SCHED),
			.confidence = evidence_confidence(CC_EV_BIT(SOCKET) | CC_EV_BIT(SCHED)),
			.by_request = { i % 2 ? 0x12345 + i : 0, i % 2 ? 900 + i : 0, i % 2 },
		};
	path_unkeep(&mem, path_pack(&mem, &scratch, p, 1, CC_S(9), &found));
	before = mem.used;
	struct cc_request r = keep(&mem, &scratch, p, 100, CC_S(9), &found);

	cr_expect_leq(scratch.cnt, 100 * 12, "%u bytes", scratch.cnt);
	cr_expect_geq(mem.used, before + scratch.cnt);
	path_unkeep(&mem, r.kept);
	vec_done(&mem, &scratch);
	cr_expect_eq(mem.used, 0);
}

Test(path_pack, a_request_without_a_path_has_none)
{
	struct cc_request r = { 0 };
	struct path_buf buf = { 0 };
	struct cc_found sum;

	cr_expect_not_null(request_path(&r, &buf), "NULL is for no memory");
	cr_expect_eq(request_found(&r, &sum)->dominant.ns, 0);
	cr_expect_eq(request_dominant(&r)->ns, 0);
	path_buf_done(&buf);
}
