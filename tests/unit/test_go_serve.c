/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work a goroutine did: lineage and items, never wakes; what cannot be told is not told. */
#include <criterion/criterion.h>

#include "go_trace.h"

TestSuite(go_serve, .timeout = 20);

/* g1 on T0 serves R over [1, end), g2 on T1 serves Q. */
static struct trace two_handlers(int end)
{
	struct trace t = go_trace(end + 5);

	go_got(&t, 1, T0, 0);
	go_got(&t, 2, T1, 0);
	trace_request(&t, R, 1, 1, T0, end, T0);
	trace_request(&t, Q, 1, 1, T1, end, T1);
	return t;
}

Test(go_serve, by_its_own_socket)
{
	struct trace t = two_handlers(20);

	assert_served(&t, 1, 1, "-");
	assert_served(&t, 1, 10, "R");
	assert_served(&t, 2, 10, "Q");
	assert_served(&t, 3, 10, "-");
	trace_done(&t);
}

Test(go_serve, children_and_their_children)
{
	struct trace t = two_handlers(20);

	go_born(&t, 5, 1, 3, 4, T2);
	go_born(&t, 6, 5, 5, 6, T3);
	/* it waits for anything, woken by anybody: it stays what it was made for */
	GO_WAITS(&t, WAIT_CHAN, 6, T3, 8, 10, 2, 11, T3, CH_A);
	assert_served(&t, 5, 10, "R");
	assert_served(&t, 6, 7, "R");
	assert_served(&t, 6, 15, "R");
	assert_served(&t, 6, 24, "-"); /* R is over */
	cr_expect(go_evidence(&t, 6, 15) & CC_EV_BIT(LINEAGE));
	trace_done(&t);
}

/* g9, of no request, loops over channel A. */
static void worker(struct trace *t) { go_got(t, 9, T2, 0); }

Test(go_serve, an_item_is_work_until_the_next_one)
{
	struct trace t = two_handlers(30);

	worker(&t);
	GO_WAITS(&t, WAIT_CHAN, 9, T2, 1, 4, 1, 5, T2, CH_A);
	go_gives(&t, 1, 9, CH_A, 77, 4);
	GO_WAITS(&t, WAIT_CHAN, 9, T2, 10, 14, 2, 15, T2, CH_A);
	go_gives(&t, 2, 9, CH_A, 78, 14);
	assert_served(&t, 9, 4, "-");
	assert_served(&t, 9, 9, "R");
	assert_served(&t, 9, 12, "-"); /* it waits for the next */
	assert_served(&t, 9, 20, "Q");
	cr_expect(go_evidence(&t, 9, 9) & CC_EV_BIT(GO_ITEM));
	trace_done(&t);
}

Test(go_serve, an_item_taken_from_a_blocked_sender)
{
	struct trace t = two_handlers(30);

	worker(&t);
	go_takes(&t, 9, 2, CH_A, 77, 5);
	go_takes(&t, 9, 1, CH_A, 78, 9);
	assert_served(&t, 9, 7, "Q");
	assert_served(&t, 9, 12, "R");
	trace_done(&t);
}

Test(go_serve, an_item_out_of_a_buffer_is_medium)
{
	struct trace t = two_handlers(30);

	worker(&t);
	go_puts(&t, 1, CH_A, 77, 3);
	go_puts(&t, 2, CH_A, 78, 4);
	go_peeks(&t, 9, CH_A, 77, 5);
	go_peeks(&t, 9, CH_A, 78, 9);
	assert_served(&t, 9, 7, "R");
	assert_served(&t, 9, 12, "Q");
	cr_expect(go_evidence(&t, 9, 7) & CC_EV_BIT(GO_PEEK));
	trace_done(&t);
}

Test(go_serve, the_same_item_twice_is_nobodys)
{
	struct trace t = two_handlers(30);

	worker(&t);
	go_puts(&t, 1, CH_A, 5, 3);
	go_puts(&t, 2, CH_A, 5, 4);
	go_peeks(&t, 9, CH_A, 5, 6);
	assert_served(&t, 9, 8, "-");
	trace_done(&t);
}

Test(go_serve, an_item_followed_by_its_place_is_exact)
{
	struct trace t = two_handlers(30);

	worker(&t);
	go_puts_at(&t, 1, CH_A, 16, 3);
	go_puts_at(&t, 2, CH_A, 8, 4);
	go_takes_at(&t, 9, CH_A, 16, 5);
	go_takes_at(&t, 9, CH_A, 8, 9);
	assert_served(&t, 9, 7, "R");
	assert_served(&t, 9, 12, "Q");
	cr_expect(go_evidence(&t, 9, 7) & CC_EV_BIT(GO_ITEM));
	trace_done(&t);
}

/* That something was taken out of the place was not seen: it must have been. */
Test(go_serve, a_place_is_filled_again)
{
	struct trace t = two_handlers(30);

	worker(&t);
	go_puts_at(&t, 1, CH_A, 8, 3);
	go_puts_at(&t, 2, CH_A, 8, 6);
	go_takes_at(&t, 9, CH_A, 8, 7);
	go_takes_at(&t, 9, CH_A, 8, 12); /* by whom it was put is not known */
	assert_served(&t, 9, 9, "Q");
	assert_served(&t, 9, 14, "-");
	trace_done(&t);
}

Test(go_serve, a_signal_without_content_is_no_item)
{
	struct trace t = two_handlers(30);

	worker(&t);
	go_gives(&t, 1, 9, CH_A, 0, 4);
	assert_served(&t, 9, 8, "-");
	trace_done(&t);
}

Test(go_serve, an_old_item_in_reused_memory)
{
	struct trace t = two_handlers(11000000);

	worker(&t);
	go_puts(&t, 1, CH_A, 77, 3);
	go_peeks(&t, 9, CH_A, 77, 10500000); /* more than 10 s later */
	assert_served(&t, 9, 10600000, "-");
	trace_done(&t);
}

Test(go_serve, what_another_wakes_is_not_its)
{
	struct trace t = two_handlers(30);

	worker(&t);
	GO_WAITS(&t, WAIT_MUTEX, 9, T2, 1, 4, 1, 5, T2, MU);
	GO_WAITS(&t, WAIT_SEMA, 9, T2, 6, 8, 1, 9, T2, MU);
	GO_WAITS(&t, WAIT_SELECT, 9, T2, 10, 12, 1, 13, T2, 0);
	GO_WAITS(&t, WAIT_COND, 9, T2, 14, 16, 1, 17, T2, 0);
	GO_WAITS(&t, WAIT_CHAN, 9, T2, 18, 20, 1, 21, T2, CH_A);
	for (int at = 5; at < 25; at += 4)
		assert_served(&t, 9, at, "-");
	trace_done(&t);
}

Test(go_serve, a_pool_passes_no_work)
{
	struct trace t = two_handlers(30);

	worker(&t);
	go_got(&t, 10, T3, 0);
	/* g10 takes a connection out of B and puts it back; g9, with R's item, gets it */
	go_takes(&t, 10, 2, CH_B, 500, 2);
	go_gives(&t, 1, 9, CH_A, 77, 4);
	go_gives(&t, 2, 10, CH_C, 78, 5);
	go_gives(&t, 10, 9, CH_B, 500, 8);
	assert_served(&t, 9, 7, "R");
	assert_served(&t, 10, 7, "Q");
	assert_served(&t, 9, 12, "R");
	trace_done(&t);
}

Test(go_serve, lineage_is_stronger_than_an_item)
{
	struct trace t = two_handlers(30);

	go_born(&t, 5, 1, 3, 4, T2);
	go_gives(&t, 2, 5, CH_A, 77, 6);
	assert_served(&t, 5, 10, "R");
	trace_done(&t);
}

Test(go_serve, made_by_a_request_to_stay)
{
	struct trace t = go_trace(60);

	go_got(&t, 1, T0, 0);
	go_got(&t, 2, T1, 0);
	trace_request(&t, R, 1, 1, T0, 20, T0);
	trace_request(&t, Q, 1, 1, T1, 50, T1);
	go_born(&t, 5, 1, 3, 4, T2);
	go_gives(&t, 2, 5, CH_A, 77, 6);  /* while R goes on */
	go_gives(&t, 2, 5, CH_A, 78, 30); /* and after it: it is no child of R's */
	assert_served(&t, 5, 10, "Q");
	assert_served(&t, 5, 35, "Q");
	trace_done(&t);
}

Test(go_serve, a_reply_does_not_end_the_item)
{
	struct trace t = two_handlers(40);

	worker(&t);
	go_got(&t, 10, T3, 0);
	go_gives(&t, 1, 9, CH_A, 77, 4);
	go_gives(&t, 9, 10, CH_B, 1, 6);
	GO_WAITS(&t, WAIT_CHAN, 9, T2, 7, 9, 10, 10, T2, CH_C);
	go_gives(&t, 10, 9, CH_C, 2, 9);
	GO_WAITS(&t, WAIT_CHAN, 9, T2, 13, 15, 10, 16, T2, CH_C);
	go_gives(&t, 10, 9, CH_C, 3, 15);
	assert_served(&t, 9, 8, "R");
	assert_served(&t, 9, 12, "R");
	assert_served(&t, 9, 14, "R");
	assert_served(&t, 9, 20, "R");
	trace_done(&t);
}

Test(go_serve, one_that_answers_many_at_once_is_shared)
{
	struct trace t = two_handlers(60);

	worker(&t);
	/* takes R's and Q's together, answers both while it has the later one */
	for (int i = 0; i < 3; i++) {
		int at = 5 + 15 * i;

		go_gives(&t, 1, 9, CH_A, 10 + (uint64_t)i, at);
		go_gives(&t, 2, 9, CH_A, 20 + (uint64_t)i, at + 1);
		GO_WAITS(&t, WAIT_CHAN, 1, T0, at, at + 8, 9, at + 9, T0, CH_B);
		GO_WAITS(&t, WAIT_CHAN, 2, T1, at + 1, at + 10, 9, at + 11, T1, CH_C);
	}
	assert_served(&t, 9, 10, "Q?");
	cr_expect(go_evidence(&t, 9, 10) & CC_EV_BIT(GO_SHARED));
	trace_done(&t);
}

Test(go_serve, one_that_answers_each_is_not)
{
	struct trace t = two_handlers(60);

	worker(&t);
	for (int i = 0; i < 3; i++) {
		int at = 5 + 15 * i;

		go_gives(&t, 1, 9, CH_A, 10 + (uint64_t)i, at);
		GO_WAITS(&t, WAIT_CHAN, 1, T0, at, at + 4, 9, at + 5, T0, CH_B);
		go_gives(&t, 2, 9, CH_A, 20 + (uint64_t)i, at + 7);
		GO_WAITS(&t, WAIT_CHAN, 2, T1, at + 7, at + 10, 9, at + 11, T1, CH_C);
	}
	assert_served(&t, 9, 8, "R");
	assert_served(&t, 9, 14, "Q");
	trace_done(&t);
}

/* Both stood in line, and it takes the next one when it is through with the one before. */
Test(go_serve, one_that_takes_from_who_waits_is_not)
{
	struct trace t = two_handlers(60);

	worker(&t);
	for (int i = 0; i < 3; i++) {
		int at = 5 + 15 * i;

		GO_WAITS(&t, WAIT_SELECT, 1, T0, at - 2, at, 9, at + 1, T0, CH_A);
		go_takes(&t, 9, 1, CH_A, 10 + (uint64_t)i, at);
		GO_WAITS(&t, WAIT_CHAN, 1, T0, at + 2, at + 4, 9, at + 5, T0, CH_B);
		/* out of a full buffer, into which Q's comes a little later */
		GO_WAITS(&t, WAIT_CHAN, 2, T1, at, at + 7, 9, at + 8, T1, CH_A);
		go_takes(&t, 9, 2, CH_A, 20 + (uint64_t)i, i ? at + 7 : at + 8);
		GO_WAITS(&t, WAIT_CHAN, 2, T1, at + 9, at + 10, 9, at + 11, T1, CH_C);
	}
	assert_served(&t, 9, 8, "R");
	assert_served(&t, 9, 14, "Q");
	trace_done(&t);
}

Test(go_serve, an_item_of_a_request_that_is_over)
{
	struct trace t = go_trace(60);

	go_got(&t, 1, T0, 0);
	worker(&t);
	trace_request(&t, R, 1, 1, T0, 20, T0);
	go_gives(&t, 1, 9, CH_A, 77, 4);
	assert_served(&t, 9, 20, "R");
	assert_served(&t, 9, 30, "-");
	trace_done(&t);
}

/* What it waited for came before its wake was told: until that it worked for nobody, and so the
 * wait is whole and says who ended it. */
Test(go_serve, work_on_an_item_begins_when_the_wait_is_over)
{
	struct trace t = two_handlers(30);

	worker(&t);
	GO_WAITS(&t, WAIT_CHAN, 9, T2, 2, 8, 1, 9, T2, CH_A);
	go_gives(&t, 1, 9, CH_A, 77, 6);
	assert_served(&t, 9, 8, "-");
	assert_served(&t, 9, 9, "R");
	trace_done(&t);
}

/* ---- in paths ---- */

Test(go_serve, busy_with_another_is_queued)
{
	struct trace t = two_handlers(30);

	worker(&t);
	go_gives(&t, 2, 9, CH_A, 77, 4);
	go_takes(&t, 9, 1, CH_A, 78, 10);
	GO_WAITS(&t, WAIT_CHAN, 1, T0, 5, 10, 9, 11, T0, CH_A);  /* to hand it over */
	GO_WAITS(&t, WAIT_CHAN, 1, T0, 12, 18, 9, 19, T0, CH_B); /* for the answer */
	assert_path_keep(&t, R,
			 "g1:cpu[1,5) g9:queued(Q)[5,10) g1:runq[10,11) g1:cpu[11,12) "
			 "g9:cpu[12,18) g1:runq[18,19) g1:cpu[19,30)");
	cr_expect_eq(trace_piece(&t, R, WAIT_QUEUED)->by_request.id, SOCKET(Q));
	trace_done(&t);
}

Test(go_serve, a_pooled_thing_keeps_who_has_it)
{
	struct trace t = two_handlers(40);
	const struct cc_piece *p;

	go_puts(&t, 2, CH_B, 1, 1); /* filled */
	go_peeks(&t, 2, CH_B, 1, 3);
	GO_WAITS(&t, WAIT_CHAN, 1, T0, 5, 20, 2, 21, T0, CH_B);
	GO_WAITS(&t, WAIT_SLEEP, 2, T1, 6, NEVER, NOBODY, 18, T1, 0);
	go_gives(&t, 2, 1, CH_B, 1, 20);
	assert_path_keep(&t, R,
			 "g1:cpu[1,5) g2:cpu[5,6) g2:sleep[6,18) g2:cpu[18,20) g1:runq[20,21) "
			 "g1:cpu[21,40)");
	p = trace_piece(&t, R, WAIT_CHAN);
	cr_expect(p->holder_tid);
	cr_expect_eq(trace_piece(&t, R, WAIT_SLEEP)->for_request.id, SOCKET(Q));
	trace_done(&t);
}

Test(go_serve, the_answer_is_sent_by_another_goroutine)
{
	struct trace t = go_trace(40);
	const struct cc_piece *p;

	/* g1 reads, g9 works, g10 writes */
	go_got(&t, 1, T0, 0);
	go_got(&t, 9, T1, 0);
	go_got(&t, 10, T2, 0);
	GO_WAITS(&t, WAIT_CHAN, 9, T1, 1, 5, 1, 6, T1, CH_A);
	go_gives(&t, 1, 9, CH_A, 77, 5);
	GO_WAITS(&t, WAIT_CHAN, 10, T2, 1, 12, 9, 13, T2, CH_B);
	go_gives(&t, 9, 10, CH_B, 78, 12);
	trace_request(&t, R, 2, 2, T0, 20, T2);
	assert_path_keep(&t, R,
			 "g1:cpu[2,5) g9:runq[5,6) g9:cpu[6,12) g10:runq[12,13) "
			 "g10:cpu[13,20)");
	p = trace_piece(&t, R, WAIT_CPU);
	cr_expect_geq(p->confidence, 90);
	trace_done(&t);
}

/* A signal, or a channel that is closed: it says that something is to do, not for whom. */
Test(go_serve, handed_over_by_a_wake_without_an_item_is_ambiguous)
{
	struct trace t = go_trace(40);

	go_got(&t, 1, T0, 0);
	go_got(&t, 9, T1, 0);
	GO_WAITS(&t, WAIT_CHAN, 9, T1, 1, 5, 1, 6, T1, CH_A);
	trace_request(&t, R, 2, 2, T0, 20, T1);
	assert_path_keep(&t, R, "g1:cpu[2,5) g9:ambiguous[5,20)");
	cr_expect_eq(trace_piece(&t, R, WAIT_AMBIGUOUS)->confidence, 0);
	trace_done(&t);
}

Test(go_serve, handed_over_by_a_select_is_ambiguous)
{
	struct trace t = go_trace(40);

	go_got(&t, 1, T0, 0);
	go_got(&t, 9, T1, 0);
	GO_WAITS(&t, WAIT_SELECT, 9, T1, 1, 5, 1, 6, T1, 0);
	trace_request(&t, R, 2, 2, T0, 20, T1);
	assert_path(&t, R, "g1:cpu[2,5) g9:ambiguous[5,20)");
}
