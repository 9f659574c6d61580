/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the Path screen: whatever is folded, nothing is lost or shown twice. */
#include <criterion/criterion.h>
#include <string.h>

#include "path_rows.h"

#define PIECES 400

static struct snap_piece piece[PIECES];
static struct snap_request request;
static struct snapshot snap;

/* A tree of pieces like a walk's: 100 of depth 0 that add up to 100 ms, three below each. */
static void make(void)
{
	cc_ns at = CC_S(1);
	memset(piece, 0, sizeof(piece));
	request = (struct snap_request){ .start = at, .piece_cnt = PIECES, .path_ok = true };
	for (int i = 0; i < PIECES; i += 4) {
		cc_ns ns = i == 200 ? CC_MS(60) : (CC_MS(40) / 99) + (i == 0 ? CC_MS(40) % 99 : 0);
		piece[i].p = (struct cc_piece){ .start = at, .end = at + ns, .cls = WAIT_LOCK };
		for (int k = 1; k < 4; k++)
			piece[i + k].p =
				(struct cc_piece){ .start = at + ns / 3 * (cc_ns)(k - 1),
						   .end = k == 3 ? at + ns : at + ns / 3 * (cc_ns)k,
						   .depth = 1,
						   .cls = WAIT_CPU };
		at += ns;
	}
	request.end = at;
	snap = (struct snapshot){
		.pieces = piece, .piece_cnt = PIECES, .requests = &request, .request_cnt = 1
	};
}

TestSuite(path_rows, .init = make);

Test(path_rows, every_piece_is_in_one_row_and_sums_are_exact)
{
	for (int room = 0; room < 120; room++) {
		struct path_view v = path_view(&snap, &request, 0, UINT32_MAX, room);
		struct path_row row;
		uint32_t next = 0;
		cc_ns top = 0;
		int rows = 0;
		for (uint32_t at = v.from; path_next(&v, &at, &row); rows++) {
			cr_assert_eq(row.first, next);
			next = row.first + row.cnt;
			top += piece[row.first].p.depth == 0 ? row.ns : 0;
			cr_assert_eq(path_row_of(&v, row.first), rows);
			cr_assert_eq(path_row_of(&v, next - 1), rows);
		}
		cr_expect_eq(next, PIECES, "room %d", room);
		cr_expect_eq(top, request.end - request.start);
		cr_expect_eq(rows, path_row_cnt(&v));
		cr_expect(room == 0 || room >= 7 ? rows <= (room ? room : PIECES) : rows >= 4,
			  "room %d: %d rows", room, rows);
	}
}

Test(path_rows, the_long_piece_stays_on_its_own)
{
	struct path_view v = path_view(&snap, &request, 0, UINT32_MAX, 10);
	struct path_row row;
	cr_assert(path_row_at(&v, path_row_of(&v, 200), &row));
	cr_expect_eq(row.first, 200);
	cr_expect_eq(row.tops, 1);
	cr_expect_eq(row.ns, CC_MS(60));
}

Test(path_rows, a_part_has_its_own_time)
{
	struct path_view v = path_view(&snap, &request, 200, path_after(piece, 200, PIECES), 0);
	cr_expect_eq(v.from, 200);
	cr_expect_eq(v.to, 204);
	cr_expect_eq(v.hi - v.lo, CC_MS(60));
	v = path_view(&snap, &request, 900, 1000, 0); /* of another path, that was longer */
	cr_expect_eq(v.from, 0);
	cr_expect_eq(v.to, PIECES);
	request.piece_cnt = 0;
	v = path_view(&snap, &request, 0, UINT32_MAX, 5);
	cr_expect_eq(path_row_cnt(&v), 0);
	cr_expect_eq(path_row_of(&v, 7), 0);
	cr_expect_lt(v.lo, v.hi);
}
