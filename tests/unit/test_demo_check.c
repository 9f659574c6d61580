// SPDX-License-Identifier: Apache-2.0
/* The demo's judge: right answers pass, and each kind of wrong answer is caught. */
#include "demo_compare.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REQS 20
#define MS 1000000ull
/* request i lies in [at(i), at(i) + 10 ms): 1 ms of work, 8 ms of the cause, 1 ms of work */
static cc_ns at(int i) { return 1000 * MS + (cc_ns)i * 100 * MS; }

struct world {
	struct demo_shared *log;
	struct snapshot s;
	struct snap_request rows[2 * REQS]; /* those judged, then those in the way */
	struct snap_piece pieces[2 * REQS][3];
	char strings[64];
};

enum { T_OWN = 100, T_HOLDER = 200, T_HOG = 300, T_PEER = 400, P_CLIENT = 5000, P_CULPRIT = 6000 };

static void add_req(struct world *w, enum demo_cause cause, int i)
{
	struct demo_req r = { .cause = (uint8_t)cause,
			      .judged = true,
			      .local_port = 80,
			      .peer_port = P_CLIENT,
			      .ordinal = (uint32_t)i + 1,
			      .tid = T_OWN,
			      .sent = at(i),
			      .start = at(i) + MS / 10,
			      .end = at(i) + 10 * MS,
			      .wait_start = at(i) + MS,
			      .wait_end = at(i) + 9 * MS,
			      .wait_ns = 8 * MS };
	demo_log_req(w->log, &r);
}

static void add_hold(struct world *w, enum demo_cause cause, int i, uint32_t tid)
{
	struct demo_hold h = { .cause = (uint8_t)cause,
			       .peer_port = P_CULPRIT,
			       .ordinal = (uint32_t)i + 1,
			       .tid = tid,
			       .start = at(i),
			       .end = at(i) + 9 * MS,
			       .off_ns = 8 * MS };
	demo_log_hold(w->log, &h);
}

static void add_row(struct world *w, int i, uint16_t peer, int ordinal)
{
	static const unsigned int from[] = { 0, 1, 9, 10 };
	struct snap_request *r = &w->rows[i];
	r->id = (struct cc_reqid){ peer, (uint32_t)ordinal, CC_REQID_SOCK };
	r->rec.local_port = 80;
	r->rec.peer.port = peer;
	r->start = at(ordinal - 1);
	r->end = r->start + 10 * MS;
	r->latency_ns = r->path_sum_ns = 10 * MS;
	r->confidence = 95;
	r->path_ok = true;
	r->first_piece = (uint32_t)i * 3;
	r->piece_cnt = 3;
	for (int k = 0; k < 3; k++) {
		struct cc_piece *p = &w->pieces[i][k].p;
		p->start = r->start + from[k] * MS;
		p->end = r->start + from[k + 1] * MS;
		p->tid = T_OWN;
		p->cls = WAIT_CPU;
	}
	r->class_ns[WAIT_CPU] = 2 * MS;
}

/* The wait of row @i, as the piece in its middle. */
static struct cc_piece *set_wait(struct world *w, int i, enum wait_class cls, enum wait_class root)
{
	w->pieces[i][1].p.cls = (uint8_t)cls;
	w->rows[i].class_ns[cls] += 8 * MS;
	w->rows[i].dominant.cls = (uint8_t)cls;
	w->rows[i].root.cls = (uint8_t)root;
	return &w->pieces[i][1].p;
}

static struct world *world_new(enum demo_cause cause, enum wait_class cls, enum wait_class root)
{
	struct world *w = calloc(1, sizeof(*w));
	w->log = calloc(1, sizeof(*w->log));
	strcpy(w->strings + 1, "127.0.0.1:7000");
	w->log->upstream_port = 7000;
	w->log->hog_pid = T_HOG;
	w->log->upstream_pid = w->log->load_pid = T_PEER;
	for (int i = 0; i < REQS; i++) {
		add_req(w, cause, i);
		add_row(w, i, P_CLIENT, i + 1);
		add_row(w, REQS + i, P_CULPRIT, i + 1);
		set_wait(w, i, cls, root);
	}
	w->s.requests = w->rows;
	w->s.request_cnt = 2 * REQS;
	w->s.pieces = &w->pieces[0][0];
	w->s.piece_cnt = 2 * REQS * 3;
	w->s.strings = w->strings;
	w->s.string_bytes = sizeof(w->strings);
	return w;
}

static void world_free(struct world *w)
{
	free(w->log);
	free(w);
}

static struct demo_score judge(const struct world *w, enum demo_cause cause)
{
	struct demo_score score[DEMO_CAUSE_CNT];
	cr_assert_eq(demo_compare(w->log, &w->s, (struct demo_listener){ 0 }, score), 0);
	return score[cause];
}

/* Everything right for @cause, so that each test below breaks one thing. */
static struct world *right_lock(void)
{
	struct world *w = world_new(DEMO_LOCK, WAIT_LOCK, WAIT_FSYNC);
	for (int i = 0; i < REQS; i++) {
		add_hold(w, DEMO_LOCK, i, T_HOLDER);
		w->pieces[i][1].p.holder_tid = T_HOLDER;
	}
	return w;
}

Test(demo_check, right_holder_passes)
{
	struct world *w = right_lock();
	struct demo_score s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.requests, REQS);
	cr_assert_eq(s.class_right, REQS);
	cr_assert_eq(s.culprit_right, REQS);
	cr_assert_eq(s.high, REQS);
	cr_assert_eq(s.high_right, REQS);
	cr_assert(demo_score_ok(&s));
	world_free(w);
}

Test(demo_check, two_wrong_holders_of_twenty_fail)
{
	struct world *w = right_lock();
	w->pieces[3][1].p.holder_tid = T_OWN;
	w->pieces[7][1].p.holder_tid = 0; /* not attributed is not right either */
	struct demo_score s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.culprit_right, REQS - 2);
	cr_assert_eq(s.high_right, REQS - 2);
	cr_assert_eq(s.wrong_id.ordinal, 4);
	cr_assert_not(demo_score_ok(&s));
	world_free(w);
}

Test(demo_check, holder_by_time_not_by_majority)
{
	/* two held it, 4 ms each; naming the first for all of it is half wrong */
	struct world *w = right_lock();
	for (int i = 0; i < REQS; i++)
		w->log->hold[i].end = at(i) + 5 * MS;
	for (int i = 0; i < REQS; i++) {
		struct demo_hold h = w->log->hold[i];
		h.tid = T_HOLDER + 1;
		h.start = at(i) + 5 * MS;
		h.end = at(i) + 9 * MS;
		demo_log_hold(w->log, &h);
	}
	struct demo_score s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.requests, REQS);
	cr_assert_eq(s.culprit_right, 0);
	world_free(w);
}

Test(demo_check, wrong_root_or_class_or_length_is_wrong)
{
	struct world *w = right_lock();
	w->rows[0].root.cls = WAIT_CPU;
	w->rows[1].dominant.cls = WAIT_CPU;
	w->rows[2].class_ns[WAIT_LOCK] -= 2 * MS; /* 1 ms + 10 % is 1.8 ms */
	w->rows[3].class_ns[WAIT_LOCK] -= 17 * MS / 10;
	w->rows[4].path_ok = false;
	struct demo_score s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.class_right, REQS - 4);
	cr_assert_not(demo_score_ok(&s));
	world_free(w);
}

Test(demo_check, unknown_requests_count_as_wrong)
{
	struct world *w = right_lock();
	w->rows[5].rec.peer.port++;
	w->rows[6].rec.peer.port++;
	struct demo_score s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.requests, REQS);
	cr_assert_eq(s.missing, 2);
	cr_assert_eq(s.class_right, REQS - 2);
	cr_assert_not(demo_score_ok(&s));
	world_free(w);
}

Test(demo_check, a_path_that_does_not_add_up_is_inexact)
{
	struct world *w = right_lock();
	w->pieces[2][0].p.end--;              /* a gap */
	w->pieces[4][2].p.end--;              /* too short */
	w->rows[6].path_sum_ns--;             /* the shown sum is another */
	w->pieces[8][1].p.start -= MS;        /* an overlap */
	w->pieces[REQS + 1][1].p.start += MS; /* not a row of the log */
	struct demo_score s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.inexact, 4);
	cr_assert_not(demo_score_ok(&s));
	world_free(w);
}

Test(demo_check, an_answer_that_says_events_were_lost_claims_nothing)
{
	struct world *w = right_lock();
	w->rows[0].class_ns[WAIT_LOCK] = 0;
	w->rows[0].dominant.cls = WAIT_UNKNOWN;
	w->rows[0].lost_inside = true;
	w->rows[0].confidence = 59;
	struct demo_score s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.lost, 1);
	cr_assert_eq(s.requests, REQS - 1);
	cr_assert(demo_score_ok(&s));
	w->rows[0].confidence = 90; /* but what it claims is judged */
	s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.lost, 0);
	cr_assert_eq(s.class_right, REQS - 1);
	s.lost = s.requests / 5 + 1; /* and not knowing most of it is no answer */
	s.class_right = s.culprit_right = s.requests;
	cr_assert_not(demo_score_ok(&s));
	world_free(w);
}

Test(demo_check, what_the_log_does_not_show_is_not_judged)
{
	struct world *w = right_lock();
	w->log->req[0].wait_ns = 5 * MS; /* of 10: something else mattered more */
	w->log->hold[1].off_ns = MS;     /* the holder was kept from running */
	w->log->hold[1].runq_ns = 7 * MS;
	w->log->req[2].judged = false;
	w->log->req[3].wait_ns = 5 * MS; /* of 10, the rest in two parts: it is still the largest */
	w->log->req[3].cpu_ns = w->log->req[3].runq_ns = 2 * MS;
	w->rows[3].class_ns[WAIT_LOCK] = 5 * MS;
	struct demo_score s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.requests, REQS - 3);
	cr_assert_eq(s.unclear, 2);
	cr_assert(demo_score_ok(&s));
	world_free(w);
}

/* The kernel's account of a thread, and so the log, has what lies between its wake and its place in
 * a run queue as time off the CPU. */
Test(demo_check, woken_late_is_run_queue_where_the_log_has_a_wait)
{
	struct world *w = world_new(DEMO_SLEEP, WAIT_SLEEP, WAIT_SLEEP);
	for (int i = 0; i < 4; i++) { /* of the 8 ms, 2 in the run queue; 5 in that of the third */
		cc_ns late = (i == 2 ? 5 : 2) * MS;
		w->pieces[i][1].p.end -= late;
		w->pieces[i][2].p.start -= late;
		w->pieces[i][2].p.end -= MS;
		w->pieces[i][2].p.cls = WAIT_RUNQ;
		w->rows[i].class_ns[WAIT_SLEEP] -= late;
		w->rows[i].class_ns[WAIT_RUNQ] += late;
		w->rows[i].class_ns[WAIT_CPU] -= MS;
		w->rows[i].end -= MS;
		w->rows[i].latency_ns = w->rows[i].path_sum_ns = 9 * MS;
		w->log->req[i].end -= MS;
	}
	w->log->req[1].wait_ns -= 2 * MS; /* the log has it as well */
	w->log->req[1].wait_runq_ns = w->log->req[1].runq_ns = 2 * MS;
	w->rows[3].class_ns[WAIT_SLEEP] -= 3 * MS; /* but no more of it than that */
	struct demo_score s = judge(w, DEMO_SLEEP);
	cr_assert_eq(s.unclear, 1);
	cr_assert_eq(s.requests, REQS - 1);
	cr_assert_eq(s.class_right, REQS - 2);
	cr_assert_eq(s.wrong_id.ordinal, 4);
	world_free(w);
}

Test(demo_check, a_lock_that_nobody_has_is_another_ones_wait_for_a_cpu)
{
	struct world *w = right_lock();
	w->log->hold[1].end = at(1) + 4 * MS; /* of 8 ms, 3: then nobody had it */
	w->log->hold[2].end = at(2) + 8 * MS;
	struct demo_score s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.unclear, 1);
	cr_assert_eq(s.requests, REQS - 1);
	world_free(w);
}

/* A sync waits for the disk in two ways, which are summed apart: either may be less than what else
 * the one that has the lock did. */
Test(demo_check, of_several_kinds_of_wait_none_has_to_be_the_largest)
{
	struct world *w = right_lock();
	struct cc_piece *mid = &w->pieces[5][1].p;
	w->rows[5].root.cls = WAIT_RUNQ;
	cr_assert_eq(judge(w, DEMO_LOCK).class_right, REQS - 1);
	/* the last two pieces of that row are beneath the first */
	w->pieces[5][0].p.end = w->rows[5].end;
	w->pieces[5][0].p.cls = WAIT_LOCK;
	w->pieces[5][0].p.holder_tid = T_HOLDER;
	mid->depth = w->pieces[5][2].p.depth = 1;
	mid->cls = WAIT_FSYNC;
	cr_assert_eq(judge(w, DEMO_LOCK).class_right, REQS);
	mid->cls = WAIT_CPU;
	cr_assert_eq(judge(w, DEMO_LOCK).class_right, REQS - 1);
	world_free(w);

	w = world_new(DEMO_FSYNC, WAIT_FSYNC, WAIT_FSYNC);
	w->rows[5].dominant.cls = WAIT_CPU; /* 2 ms, for a site of the disk's 8 has less */
	cr_assert_eq(judge(w, DEMO_FSYNC).class_right, REQS);
	w->rows[5].class_ns[WAIT_CPU] = 9 * MS;
	cr_assert_eq(judge(w, DEMO_FSYNC).class_right, REQS - 1);
	world_free(w);
}

/* Another one may take a lock that was passed to somebody who does not run yet. */
Test(demo_check, until_who_is_named_ran_nobody_is_said_to_have_the_lock)
{
	struct world *w = right_lock();
	struct demo_hold barger = { .cause = DEMO_LOCK,
				    .tid = T_HOLDER + 1,
				    .start = at(5) + MS,
				    .end = at(5) + 3 * MS,
				    .off_ns = 2 * MS };
	w->log->hold[5].start = at(5) + 3 * MS;
	demo_log_hold(w->log, &barger);
	cr_assert_eq(judge(w, DEMO_LOCK).culprit_right, REQS - 1);
	w->pieces[5][2].p.depth = 1;
	w->pieces[5][2].p.cls = WAIT_LOCK_HANDOFF;
	w->pieces[5][2].p.end = at(5) + 3 * MS;
	cr_assert_eq(judge(w, DEMO_LOCK).culprit_right, REQS);
	world_free(w);
}

Test(demo_check, the_load_goes_on_until_enough_is_clear)
{
	struct world *w = right_lock();
	w->log->req[0].wait_ns = 5 * MS;
	w->log->hold[1].end = at(1) + 4 * MS;
	w->log->req[2].judged = false;
	cr_assert_eq(demo_clear_cnt(w->log, DEMO_LOCK), REQS - 3);
	cr_assert_eq(demo_clear_cnt(w->log, DEMO_BARGE), 0);
	world_free(w);
}

Test(demo_check, too_few_requests_prove_nothing)
{
	struct world *w = right_lock();
	w->log->req_cnt = DEMO_REQUESTS_MIN - 1;
	struct demo_score s = judge(w, DEMO_LOCK);
	cr_assert_eq(s.requests, s.culprit_right);
	cr_assert_not(demo_score_ok(&s));
	world_free(w);
}

Test(demo_check, a_full_log_is_refused)
{
	struct world *w = right_lock();
	struct demo_score score[DEMO_CAUSE_CNT];
	w->log->req_cnt = DEMO_REQS_MAX + 1;
	cr_assert_eq(demo_compare(w->log, &w->s, (struct demo_listener){ 0 }, score), -EOVERFLOW);
	w->log->req_cnt = REQS;
	w->log->hold_cnt = DEMO_HOLDS_MAX + 1;
	cr_assert_eq(demo_compare(w->log, &w->s, (struct demo_listener){ 0 }, score), -EOVERFLOW);
	world_free(w);
}

Test(demo_check, request_in_the_way)
{
	struct world *w = world_new(DEMO_HOL, WAIT_HOL, WAIT_HOL);
	for (int i = 0; i < REQS; i++) {
		add_hold(w, DEMO_HOL, i, T_OWN); /* one thread does everything */
		w->pieces[i][1].p.by_request = w->rows[REQS + i].id;
	}
	w->pieces[1][1].p.by_request = w->rows[REQS].id;       /* an older one */
	w->pieces[2][1].p.by_request = w->rows[2].id;          /* itself */
	w->pieces[3][1].p.by_request = (struct cc_reqid){ 0 }; /* nobody */
	struct demo_score s = judge(w, DEMO_HOL);
	cr_assert_eq(s.class_right, REQS);
	cr_assert_eq(s.culprit_right, REQS - 3);
	world_free(w);
}

Test(demo_check, occupant_by_the_hogs_own_clock)
{
	struct world *w = world_new(DEMO_HOG, WAIT_RUNQ, WAIT_RUNQ);
	for (int i = 0; i < REQS; i++) {
		if (i != 1)
			add_hold(w, DEMO_HOG, i, T_HOG);
		w->pieces[i][1].p.occupant_tid = T_HOG;
	}
	w->pieces[1][1].p.occupant_tid = 999; /* and indeed the hog did not run then */
	w->pieces[2][1].p.occupant_tid = 999;
	struct demo_score s = judge(w, DEMO_HOG);
	cr_assert_eq(s.unclear, 1);
	cr_assert_eq(s.requests, REQS - 1);
	cr_assert_eq(s.culprit_right, REQS - 2);
	world_free(w);
}

Test(demo_check, upstream_by_port_or_by_process)
{
	struct world *w = world_new(DEMO_UPSTREAM, WAIT_UPSTREAM, WAIT_UPSTREAM);
	for (int i = 0; i < REQS; i++)
		w->pieces[i][1].resource = 1;
	w->pieces[0][1].resource = 0;                 /* not named */
	w->pieces[1][1].p.waker_kind = CC_WAKER_TASK; /* another's process */
	w->pieces[1][1].p.waker_tgid = T_PEER + 1;
	w->pieces[2][1].p.waker_kind = CC_WAKER_TASK;
	w->pieces[2][1].p.waker_tgid = T_PEER;
	struct demo_score s = judge(w, DEMO_UPSTREAM);
	cr_assert_eq(s.culprit_right, REQS - 2);
	world_free(w);
}

Test(demo_check, nobody_to_blame)
{
	struct world *w = world_new(DEMO_SLEEP, WAIT_SLEEP, WAIT_SLEEP);
	w->pieces[0][1].p.holder_tid = T_HOLDER;
	w->pieces[1][1].p.waker_kind = CC_WAKER_TASK;
	w->pieces[2][1].p.by_request = w->rows[0].id;
	w->pieces[3][1].p.tid = T_HOLDER;
	struct demo_score s = judge(w, DEMO_SLEEP);
	cr_assert_eq(s.class_right, REQS);
	cr_assert_eq(s.culprit_right, REQS - 4);
	world_free(w);
}

Test(demo_check, usage_counts_what_is_neither_running_nor_runnable)
{
	struct demo_usage a = { .now = 100, .cpu = 10, .runq = 5 };
	struct demo_usage b = { .now = 200, .cpu = 40, .runq = 25 };
	cr_assert_eq(demo_off_ns(&a, &b), 50);
	b.cpu = 200; /* clocks are read one after the other */
	cr_assert_eq(demo_off_ns(&a, &b), 0);
}
