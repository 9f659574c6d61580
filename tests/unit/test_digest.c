/* SPDX-License-Identifier: Apache-2.0 */
/* What paths add up to, on hand-made paths with exact values. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "confidence.h"
#include "digest.h"

static struct cc_found found; /* of the request at hand; each test is a process */

/* A piece of [start, end) ms at a depth; nested ones follow. */
static struct cc_piece piece(unsigned int start, unsigned int end, unsigned int depth,
			     enum wait_class cls, unsigned int confidence)
{
	return (struct cc_piece){ .start = CC_MS(start),
				  .end = CC_MS(end),
				  .depth = (uint16_t)depth,
				  .cls = (uint8_t)cls,
				  .confidence = (uint8_t)confidence };
}

static struct cc_request request(struct cc_piece *path, uint32_t cnt)
{
	return (struct cc_request){ .start = path[0].start,
				    .end = path[cnt - 1].end,
				    .path = path,
				    .path_cnt = cnt,
				    .path_ok = true };
}

/* cpu 2, lock 141 (holder: cpu 18, fsync 123), net 62, cpu 6 */
static void shop(struct cc_piece p[6])
{
	p[0] = piece(0, 2, 0, WAIT_CPU, 98);
	p[1] = piece(2, 143, 0, WAIT_LOCK, 95);
	p[2] = piece(2, 20, 1, WAIT_CPU, 95);
	p[3] = piece(20, 143, 1, WAIT_FSYNC, 75);
	p[4] = piece(143, 205, 0, WAIT_NET_RECV, 75);
	p[5] = piece(205, 211, 0, WAIT_CPU, 98);
	p[1].ustack = 11;
	p[1].resource = 5;
	p[3].ustack = 33;
	p[3].kstack = 34;
	p[3].resource = 6;
}

Test(digest, sums_dominant_and_root)
{
	struct cc_piece p[6];

	shop(p);
	struct cc_request r = request(p, 6);

	request_digest(&r, &found);
	cr_expect_eq(r.path_sum_ns, CC_MS(211));
	cr_expect_eq(r.unexplained_ns, 0);
	cr_expect_eq(r.found->class_ns[WAIT_CPU], CC_MS(8));
	cr_expect_eq(r.found->class_ns[WAIT_LOCK], CC_MS(141));
	cr_expect_eq(r.found->class_ns[WAIT_FSYNC], 0, "class_ns is of depth 0");
	cr_expect_eq(r.found->class_ns[WAIT_NET_RECV], CC_MS(62));
	cr_expect_eq(r.found->dominant.cls, WAIT_LOCK);
	cr_expect_eq(r.found->dominant.ns, CC_MS(141));
	cr_expect_eq(r.found->dominant.piece, 1);
	cr_expect_eq(r.found->dominant.ustack, 11);
	cr_expect_eq(r.found->dominant.resource, 5);
	cr_expect_eq(r.found->root.cls, WAIT_FSYNC);
	cr_expect_eq(r.found->root.ns, CC_MS(123));
	cr_expect_eq(r.found->root.piece, 3);
	cr_expect_eq(r.found->root.ustack, 33);
	cr_expect_eq(r.found->root.kstack, 34);
	/* (2*98 + 18*95 + 123*75 + 62*75 + 6*98) / 211 = 16369 / 211 = 77.57 */
	cr_expect_eq(r.confidence, 77);
}

Test(digest, dominant_is_a_sum_and_ties_go_to_the_earlier)
{
	struct cc_piece p[5] = { piece(0, 40, 0, WAIT_LOCK, 90), piece(40, 70, 0, WAIT_FSYNC, 90),
				 piece(70, 80, 0, WAIT_CPU, 90), piece(80, 110, 0, WAIT_FSYNC, 90),
				 piece(110, 130, 0, WAIT_LOCK, 90) };
	struct cc_request r = request(p, 5);

	request_digest(&r, &found); /* lock 40 + 20, fsync 30 + 30 */
	cr_expect_eq(r.found->dominant.cls, WAIT_LOCK);
	cr_expect_eq(r.found->dominant.ns, CC_MS(60));
	p[4].resource = 9; /* another lock now: 40 against 60 */
	request_digest(&r, &found);
	cr_expect_eq(r.found->dominant.cls, WAIT_FSYNC);
	cr_expect_eq(r.found->dominant.piece, 1);
	p[3].ustack = 4; /* another place */
	request_digest(&r, &found);
	cr_expect_eq(r.found->dominant.cls, WAIT_LOCK);
	cr_expect_eq(r.found->dominant.ns, CC_MS(40));
	cr_expect_eq(r.found->root.cls, WAIT_LOCK, "nothing beneath: the root is the wait itself");
	cr_expect_eq(r.found->root.ns, CC_MS(40));
	cr_expect_eq(r.found->root.piece, 0);
}

static uint64_t one_place(void *ctx, const struct cc_piece *p)
{
	(void)ctx;
	return p->ustack ? 1 : 0;
}

Test(digest, places_by_name_join_callers)
{
	struct cc_piece p[3] = { piece(0, 30, 0, WAIT_LOCK, 90), piece(30, 70, 0, WAIT_FSYNC, 90),
				 piece(70, 100, 0, WAIT_LOCK, 90) };
	struct cc_dominant d, root;

	p[0].ustack = 1;
	p[2].ustack = 2;
	digest_dominant(p, 3, NULL, NULL, &d, &root);
	cr_expect_eq(d.cls, WAIT_FSYNC);
	digest_dominant(p, 3, one_place, NULL, &d, &root);
	cr_expect_eq(d.cls, WAIT_LOCK);
	cr_expect_eq(d.ns, CC_MS(60));
}

/* A wait of many names: the one with the most of it, by its longest piece. */
Test(digest, culprit_has_the_largest_part)
{
	struct cc_piece p[6] = { piece(0, 20, 0, WAIT_LOCK, 90),  piece(20, 55, 0, WAIT_LOCK, 90),
				 piece(20, 55, 1, WAIT_CPU, 90),  piece(55, 80, 0, WAIT_LOCK, 90),
				 piece(80, 85, 0, WAIT_LOCK, 90), piece(80, 85, 1, WAIT_CPU, 90) };
	struct cc_dominant d, root;

	p[0].holder_tid = p[3].holder_tid = 7; /* 20 + 25 */
	p[1].holder_tid = p[4].holder_tid = 8; /* 35 + 5 */
	p[2].tid = 8;
	p[5].tid = 9;
	digest_dominant(p, 6, NULL, NULL, &d, &root);
	cr_expect_eq(d.ns, CC_MS(85));
	cr_expect_eq(d.culprit_ns, CC_MS(45));
	cr_expect_eq(d.piece, 3);
	cr_expect_eq(root.cls, WAIT_LOCK);
	cr_expect_eq(root.culprit_ns, CC_MS(45));
	p[0].cls = p[3].cls = WAIT_SLEEP; /* 45 of sleep, 40 of lock, and beneath it the two */
	digest_dominant(p, 6, NULL, NULL, &d, &root);
	cr_expect_eq(d.cls, WAIT_SLEEP);
	p[0].cls = WAIT_PIPE;
	digest_dominant(p, 6, NULL, NULL, &d, &root);
	cr_expect_eq(d.culprit_ns, CC_MS(40));
	cr_expect_eq(root.cls, WAIT_CPU);
	cr_expect_eq(root.ns, CC_MS(40));
	cr_expect_eq(root.culprit_ns, CC_MS(35));
	cr_expect_eq(root.piece, 2);
}

Test(digest, unknown_and_cycle_never_replace_their_parent)
{
	struct cc_piece p[5] = { piece(0, 100, 0, WAIT_LOCK, 95), piece(0, 60, 1, WAIT_UNKNOWN, 0),
				 piece(60, 100, 1, WAIT_SLEEP, 95),
				 piece(60, 100, 2, WAIT_CYCLE, 0),
				 piece(100, 110, 0, WAIT_CPU, 98) };
	struct cc_request r = request(p, 5);

	request_digest(&r, &found);
	cr_expect_eq(r.found->root.cls, WAIT_LOCK);
	cr_expect_eq(r.found->root.ns, CC_MS(60));
	cr_expect_eq(r.unexplained_ns, CC_MS(100), "the deepest partition tells what is explained");
	cr_expect_eq(r.ambiguous_ns, 0);
	cr_expect_leq(r.confidence, CC_CONF_GAPS);
	p[1].cls = WAIT_FSYNC;
	request_digest(&r, &found);
	cr_expect_eq(r.found->root.cls, WAIT_FSYNC);
	cr_expect_eq(r.found->root.ns, CC_MS(60));
	p[2].end = p[3].end = CC_MS(190); /* 130 of sleep, whose cycle says nothing */
	p[0].end = CC_MS(190);
	request_digest(&r, &found);
	cr_expect_eq(r.found->root.cls, WAIT_SLEEP);
	cr_expect_eq(r.found->root.piece, 2);
}

Test(digest, caps_of_confidence)
{
	struct cc_piece p[2] = { piece(0, 95, 0, WAIT_CPU, 98), piece(95, 100, 0, WAIT_ASYNC, 98) };
	struct cc_request r = request(p, 2);

	request_digest(&r, &found);
	cr_expect_eq(r.confidence, 98);
	cr_expect_eq(r.unexplained_ns, CC_MS(5));
	r.rec.what = CC_RQ_CONCURRENT; /* its answer may be another's */
	request_digest(&r, &found);
	cr_expect_eq(r.confidence, 59);
	r.rec.what = 0;
	r.lost_inside = true;
	request_digest(&r, &found);
	cr_expect_eq(r.confidence, 89);
	p[0].end = p[1].start = CC_MS(90); /* 90 % accounted: enough */
	request_digest(&r, &found);
	cr_expect_eq(r.confidence, 89);
	p[0].end -= 1;
	p[1].start -= 1;
	request_digest(&r, &found);
	cr_expect_eq(r.confidence, 59);
	p[1].cls = WAIT_AMBIGUOUS;
	request_digest(&r, &found);
	cr_expect_eq(r.ambiguous_ns, CC_MS(10) + 1);
	/* a path that does not reach the request's end is not accounted either */
	struct cc_piece one = piece(0, 50, 0, WAIT_CPU, 98);

	r = request(&one, 1);
	r.end = CC_MS(100);
	request_digest(&r, &found);
	cr_expect_eq(r.path_sum_ns, CC_MS(50));
	cr_expect_eq(r.confidence, 59);
}

Test(digest, no_path_says_nothing)
{
	struct cc_piece p[6];

	shop(p);
	struct cc_request r = request(p, 6);

	request_digest(&r, &found);
	r.path_ok = false;
	request_digest(&r, &found);
	cr_expect_eq(r.confidence, 0);
	cr_expect_eq(r.path_sum_ns, 0);
	cr_expect_eq(r.found->dominant.ns, 0);
	cr_expect_eq(r.found->dominant.cls, WAIT_UNKNOWN);
	cr_expect_eq(r.found->class_ns[WAIT_LOCK], 0);
	r.path_ok = true;
	r.path_cnt = 0;
	request_digest(&r, &found);
	cr_expect_eq(r.confidence, 0);
}

/* More groups than the small table holds, against a plain sum. */
Test(digest, long_paths)
{
	enum { CNT = 5000, PLACES = 700 };
	struct cc_piece *p = calloc(CNT, sizeof(*p));
	cc_ns sums[PLACES] = { 0 }, best = 0;
	uint64_t seed = 3;
	cc_ns t = 0;

	for (int i = 0; i < CNT; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		cc_ns len = seed >> 50;
		uint64_t place = (seed >> 20) % PLACES;

		p[i] = (struct cc_piece){ .start = t, .end = t + len, .cls = WAIT_LOCK };
		p[i].ustack = place << 40; /* keys that share their low bits */
		sums[place] += len;
		t += len;
	}
	for (int i = 0; i < PLACES; i++)
		best = CC_MAX(best, sums[i]);
	struct cc_request r = request(p, CNT);

	request_digest(&r, &found);
	cr_expect_eq(r.found->dominant.ns, best);
	cr_expect_eq(sums[r.found->dominant.ustack >> 40], best);
	cr_expect_eq(r.path_sum_ns, t);
	free(p);
}

Test(digest, times_of_any_size_do_not_overflow)
{
	struct cc_piece p[2] = {
		{ .start = 0, .end = UINT64_MAX / 2, .cls = WAIT_CPU, .confidence = 90 },
		{ .start = UINT64_MAX / 2, .end = UINT64_MAX, .cls = WAIT_CPU, .confidence = 90 }
	};
	struct cc_request r = request(p, 2);

	request_digest(&r, &found);
	cr_expect_eq(r.confidence, 90);
	p[0].end = 0; /* an end before its start counts as nothing */
	p[0].start = 5;
	request_digest(&r, &found);
	cr_expect_eq(r.path_sum_ns, UINT64_MAX - UINT64_MAX / 2);
}

Test(digest, leaves_of_a_deep_path)
{
	enum { DEEP = 200 };
	struct cc_piece p[DEEP];
	struct leaf_iter it;
	int leaves = 0;

	for (int i = 0; i < DEEP; i++)
		p[i] = piece(0, 100, (unsigned int)i, i ? WAIT_UNKNOWN : WAIT_LOCK, 90);
	for (leaf_iter_init(&it, p, DEEP); leaf_iter_next(&it); leaves++) {
		cr_expect_eq(it.leaf, DEEP - 1);
		cr_expect_eq(it.top, 0);
		cr_expect_eq(it.known, 0);
	}
	cr_expect_eq(leaves, 1);
}
