/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "task.h"

enum { TID = 7, WAKER = 9 };

static struct mem mem;
static struct tasks ts;

static void setup(void) { tasks_init(&ts, &mem); }

static void teardown(void)
{
	tasks_done(&ts);
	cr_expect_eq(mem.used, 0, "%zu bytes are counted for ever", mem.used);
}

TestSuite(task, .init = setup, .fini = teardown);

static struct cc_rec_episode ep(uint32_t seq, cc_ns out, cc_ns wake, cc_ns in)
{
	return (struct cc_rec_episode){
		.h = { .size = 64, .kind = CC_REC_EPISODE, .ts = in },
		.tid = TID,
		.seq = seq,
		.out = out,
		.wake = wake,
		.state = 1,
		.waker_tid = wake ? WAKER : 0,
	};
}

static void add(struct cc_rec_episode e) { cr_assert_eq(tasks_episode(&ts, &e), 0); }

static void task(uint16_t what, uint32_t tid, cc_ns at, uint32_t parent, uint32_t old_tid)
{
	struct cc_rec_task r = {
		.h = { .size = sizeof(r), .kind = CC_REC_TASK, .aux = what, .ts = at },
		.tid = tid,
		.tgid = 5,
		.parent = parent,
		.old_tid = old_tid,
	};

	cr_assert_eq(tasks_task(&ts, &r), 0);
}

static struct cc_rec_open_task open_now(cc_ns now, cc_ns out, cc_ns last_in, uint32_t seq)
{
	return (struct cc_rec_open_task){
		.h = { .size = 200, .kind = CC_REC_OPEN_TASK, .ts = now },
		.tid = TID,
		.out = out,
		.last_in = last_in,
		.state = out ? 1 : 0,
		.seq = seq,
		.fd = -1,
	};
}

/* [lo, hi) of the task that has @tid at hi, read backward, written forward: "R0-2 B2-3 Q3-4". */
static const char *line(uint32_t tid, cc_ns lo, cc_ns hi)
{
	static char text[512];
	const struct task *t = tasks_find(&ts, tid, hi);
	char piece[64], rest[440];

	text[0] = '\0';
	cr_assert(t);
	for (cc_ns at = hi; at > lo;) {
		struct tl_piece p;

		task_piece(t, &ts, at, false, &p);
		cr_assert_lt(p.start, at);
		cr_assert_geq(p.end, at);
		snprintf(piece, sizeof(piece), "%c%llu-%llu", "?RQBL"[p.kind],
			 (unsigned long long)CC_MAX(p.start, lo), (unsigned long long)at);
		snprintf(rest, sizeof(rest), "%.439s", text);
		snprintf(text, sizeof(text), "%s%s%s", piece, *rest ? " " : "", rest);
		at = CC_MAX(p.start, lo);
	}
	return text;
}

Test(task, running_lies_between_episodes)
{
	add(ep(1, 20, 30, 35));
	add(ep(2, 50, 0, 60));
	cr_expect_str_eq(line(TID, 10, 60), "?10-20 B20-30 Q30-35 R35-50 B50-60");
	cr_expect_str_eq(line(TID, 10, 70), "?10-20 B20-30 Q30-35 R35-50 B50-60 ?60-70");

	struct tl_piece p;

	/* who gave a wake at 70 ran until then */
	task_piece(tasks_find(&ts, TID, 70), &ts, 70, true, &p);
	cr_expect_eq(p.kind, TL_RUN);
	cr_expect_eq(p.start, 60);
}

/* Times that a hostile stream can tell: to look further back must still come to an end. */
Test(task, last_seen_before_it_was_known)
{
	struct task *t = tasks_get(&ts, TID, 10);

	t->known_from = 80;
	t->alive = 60;
	cr_expect_str_eq(line(TID, 10, 100), "?10-80 ?80-100");
	cr_expect_str_eq(line(TID, 10, 80), "?10-80");
	cr_expect_str_eq(line(TID, 10, 60), "?10-60");
}

Test(task, order_of_arrival_does_not_matter)
{
	enum { CNT = 5 };
	struct cc_rec_episode e[CNT] = { ep(1, 10, 12, 14), ep(2, 20, 0, 22), ep(3, 30, 31, 31),
					 ep(5, 40, 41, 45), ep(6, 45, 47, 48) };
	char first[512] = "";

	e[3].lost = CC_LOST(1, 3);
	for (int order = 0; order < 120; order++) {
		int left[CNT] = { 0, 1, 2, 3, 4 }, n = order;

		setup();
		for (int i = CNT; i > 0; i--) {
			int pick = n % i;

			n /= i;
			add(e[left[pick]]);
			memmove(&left[pick], &left[pick + 1], (i - 1 - pick) * sizeof(int));
		}
		if (!order)
			snprintf(first, sizeof(first), "%s", line(TID, 5, 48));
		cr_expect_str_eq(line(TID, 5, 48), first);
		cr_expect_eq(ts.episodes, CNT);
		teardown();
	}
	cr_expect_str_eq(first, "?5-10 B10-12 Q12-14 R14-20 B20-22 R22-30 B30-31 R31-37 L37-40 "
				"B40-41 Q41-45 B45-47 Q47-48");
	setup();
}

Test(task, the_same_episode_again_changes_nothing)
{
	for (int i = 0; i < 3; i++) {
		add(ep(1, 10, 12, 14));
		add(ep(2, 20, 20, 20)); /* of no length */
		add(ep(1, 10, 12, 14));
		add(ep(3, 30, 31, 32));
	}
	cr_expect_eq(ts.episodes, 3);
	cr_expect_str_eq(line(TID, 10, 32), "B10-12 Q12-14 R14-20 R20-30 B30-31 Q31-32");
}

Test(task, on_two_cpus_the_first_ends)
{
	add(ep(1, 10, 12, 20));
	add(ep(2, 15, 16, 18));
	cr_expect_str_eq(line(TID, 10, 18), "B10-12 Q12-15 B15-16 Q16-18");
	cr_expect_eq(ts.clamped, 1);
}

Test(task, times_out_of_order_are_clamped_and_counted)
{
	add(ep(1, 10, 8, 14));
	add(ep(2, 20, 30, 24));
	cr_expect_eq(ts.clamped, 2);
	cr_expect_str_eq(line(TID, 10, 24), "Q10-14 R14-20 B20-24");

	struct cc_rec_episode bad = ep(3, 1ull << 63, 0, 50);

	cr_expect_eq(tasks_episode(&ts, &bad), -EINVAL);
	bad = ep(3, 40, 0, 50);
	bad.tid = 0;
	cr_expect_eq(tasks_episode(&ts, &bad), -EINVAL);
	cr_expect_eq(ts.episodes, 2);
}

Test(task, loss_is_never_running)
{
	struct cc_rec_episode e = ep(4, 50, 0, 52);

	add(ep(1, 10, 0, 14));
	e.lost = CC_LOST(2, 7);
	add(e);
	cr_expect_str_eq(line(TID, 10, 52), "B10-14 R14-43 L43-50 B50-52");
	add(ep(6, 60, 0, 61)); /* one is missing that nobody accounts for */
	cr_expect_str_eq(line(TID, 50, 61), "B50-52 L52-60 B60-61");
	e = ep(7, 70, 0, 71);
	e.lost = CC_LOST(1, 1000); /* more than there is room for */
	add(e);
	cr_expect_str_eq(line(TID, 60, 71), "B60-61 L61-70 B70-71");
	cr_expect_eq(ts.lost_cnt, 3);
	cr_expect_eq(ts.lost_ns, 1007);
}

Test(task, preempted_and_early_woken_are_queued)
{
	struct cc_rec_episode e = ep(1, 10, 0, 14);

	e.state = 0;
	add(e);
	e = ep(2, 20, 0, 24);
	e.h.flags = CC_EP_PREEMPT;
	add(e);
	e = ep(3, 30, 28, 34);
	e.h.flags = CC_EP_EARLY_WAKE;
	add(e);
	cr_expect_str_eq(line(TID, 10, 34), "Q10-14 R14-20 Q20-24 R24-30 Q30-34");
}

Test(task, a_second_wake_proves_an_unseen_run)
{
	struct cc_rec_wake w = { .h = { .size = 32, .kind = CC_REC_WAKE, .ts = 12 }, .tid = TID };

	add(ep(1, 10, 12, 20));
	cr_expect_eq(tasks_wake(&ts, &w), 1, "the episode's own, told again");
	cr_expect_eq(ts.v.p[0].eps.cnt, 1);
	w.h.ts = 15;
	cr_expect_eq(tasks_wake(&ts, &w), 1);
	cr_expect_str_eq(line(TID, 10, 20), "B10-12 L12-15 Q15-20");
	w.h.ts = 17;
	cr_expect_eq(tasks_wake(&ts, &w), 1, "a third");
	cr_expect_str_eq(line(TID, 10, 20), "B10-12 L12-17 Q17-20");
	w.h.ts = 25;
	cr_expect_eq(tasks_wake(&ts, &w), -EAGAIN, "what it did then is not known yet");
	add(ep(2, 30, 0, 31));
	cr_expect_eq(tasks_wake(&ts, &w), 0, "it was running");
	cr_expect_str_eq(line(TID, 20, 31), "R20-30 B30-31");
	add(ep(3, 40, 0, 50));
	w.h.ts = 44;
	cr_expect_eq(tasks_wake(&ts, &w), 1, "the wake that its episode did not have");
	cr_expect_str_eq(line(TID, 31, 50), "R31-40 B40-44 Q44-50");
}

Test(task, birth_and_exit_bound_a_timeline)
{
	struct cc_rec_episode e = ep(1, 10, 10, 13);

	e.h.flags = CC_EP_BORN;
	e.state = 0;
	add(e); /* through another ring than the fork: first or second */
	task(CC_TASK_FORK, TID, 10, 3, 0);
	add(ep(2, 20, 0, 22));
	task(CC_TASK_EXIT, TID, 25, 0, 0);
	add(ep(3, 26, 0, 30)); /* sleeps while it is taken apart */
	cr_expect_str_eq(line(TID, 5, 40), "?5-10 Q10-13 R13-20 B20-22 R22-25 ?25-40");
	cr_expect_eq(ts.v.cnt, 1);
}

Test(task, a_reused_tid_is_another_task)
{
	add(ep(1, CC_S(1), 0, CC_S(2)));
	task(CC_TASK_EXIT, TID, CC_S(3), 0, 0);
	task(CC_TASK_FORK, TID, CC_S(5), 3, 0);
	add(ep(1, CC_S(6), 0, CC_S(7)));
	cr_assert_eq(ts.v.cnt, 2);
	cr_expect_eq(tasks_find(&ts, TID, CC_S(2)), &ts.v.p[0]);
	cr_expect_eq(tasks_find(&ts, TID, CC_S(5)), &ts.v.p[1]);
	cr_expect_eq(ts.v.p[0].eps.cnt, 1);
	cr_expect_eq(ts.v.p[1].eps.cnt, 1);

	struct cc_rec_open_task o = open_now(CC_S(9), 0, CC_S(8), 3);

	o.start = CC_S(5);
	ts.v.p[1].start = CC_S(5);
	cr_assert_eq(tasks_open(&ts, &o), 0);
	cr_expect_eq(ts.v.cnt, 2, "the one that is known");
	o.start = CC_S(8);
	cr_assert_eq(tasks_open(&ts, &o), 0);
	cr_expect_eq(ts.v.cnt, 3, "a later start: another one");
}

Test(task, exec_by_a_thread_takes_the_leaders_tid)
{
	enum { LEADER = 5, THREAD = 6 };
	struct cc_rec_episode e = ep(1, 10, 0, 20);

	e.tid = LEADER;
	add(e);
	e.tid = THREAD;
	e.out = 15;
	e.h.ts = 30;
	add(e);
	task(CC_TASK_EXEC, LEADER, 40, 0, THREAD);
	task(CC_TASK_EXEC, LEADER, 40, 0, THREAD); /* told again */
	e = ep(2, 50, 0, 60);
	e.tid = LEADER;
	add(e);
	cr_expect_eq(ts.v.cnt, 2);
	cr_expect_str_eq(line(LEADER, 10, 20), "B10-20");
	cr_expect_str_eq(line(LEADER, 15, 60), "B15-30 R30-50 B50-60",
			 "after it: the thread's own");
	cr_expect_str_eq(line(THREAD, 15, 30), "B15-30", "its old tid still leads to it");
}

static void extra(uint32_t seq, cc_ns in, uint64_t ustack)
{
	struct cc_rec_extra x = { .h = { .size = 240, .kind = CC_REC_EXTRA, .ts = in },
				  .tid = TID,
				  .seq = seq,
				  .ustack = ustack,
				  .fd = -1 };

	cr_assert_eq(tasks_extra(&ts, &x), 0);
}

static uint64_t stack_of(cc_ns out)
{
	struct task *t = tasks_find(&ts, TID, out);

	for (uint32_t i = 0; i < t->eps.cnt; i++)
		if (t->eps.p[i].out == out)
			return t->eps.p[i].side ? ep_side(&ts, &t->eps.p[i])->ustack : 0;
	return 0;
}

Test(task, extra_comes_before_or_after_its_episode)
{
	struct cc_rec_episode lossy = ep(5, 50, 0, 52);

	extra(1, 14, 111);
	add(ep(1, 10, 12, 14));
	add(ep(2, 20, 22, 24));
	extra(2, 24, 222);
	extra(3, 34, 333); /* its episode is lost */
	add(ep(4, 40, 42, 44));
	lossy.lost = CC_LOST(1, 2);
	add(lossy);
	extra(5, 52, 555);
	extra(2, 24, 223); /* for an earlier one, late */
	cr_expect_eq(stack_of(10), 111);
	cr_expect_eq(stack_of(20), 223);
	cr_expect_eq(stack_of(40), 0);
	cr_expect_eq(stack_of(50), 555);
	cr_expect_str_eq(line(TID, 44, 52), "R44-48 L48-50 B50-52", "the loss is still known");
	cr_expect_eq(ts.stacks_user, 4);
}

Test(task, what_an_iterator_saw_holds_until_an_episode_tells)
{
	struct cc_rec_open_task o = open_now(30, 20, 0, 1);

	cr_assert_eq(tasks_open(&ts, &o), 0);
	cr_expect_str_eq(line(TID, 10, 40), "?10-20 B20-40");
	o = open_now(50, 20, 0, 1);
	o.wake = 45;
	cr_assert_eq(tasks_open(&ts, &o), 0);
	cr_expect_str_eq(line(TID, 20, 60), "B20-45 Q45-60");
	add(ep(1, 20, 45, 55));
	cr_expect_str_eq(line(TID, 20, 55), "B20-45 Q45-55");
	o = open_now(70, 0, 55, 2);
	cr_assert_eq(tasks_open(&ts, &o), 0);
	cr_expect_str_eq(line(TID, 20, 80), "B20-45 Q45-55 R55-70 ?70-80");
	o = open_now(90, 0, 85, 4);
	o.lost = CC_LOST(2, 6);
	cr_assert_eq(tasks_open(&ts, &o), 0);
	cr_expect_str_eq(line(TID, 55, 90), "R55-79 L79-85 R85-90", "folded, not told yet");
	o = open_now(90, 95, 0, 4);
	cr_expect_eq(tasks_open(&ts, &o), -EINVAL, "off since a time that has not come");
}

Test(task, eviction_keeps_what_is_later)
{
	for (uint32_t i = 0; i < 100; i++) {
		extra(i, 10 * i + 18, 1000 + i);
		add(ep(i, 10 * i + 12, 0, 10 * i + 18));
	}
	cr_expect_eq(tasks_evict(&ts, 500), 49);
	cr_expect_str_eq(line(TID, 480, 512), "?480-498 R498-502 B502-508 R508-512");
	cr_expect_eq(stack_of(502), 1049);
	uint32_t sides = ts.sides.cnt;

	for (uint32_t i = 100; i < 140; i++) {
		extra(i, 10 * i + 18, 1000 + i);
		add(ep(i, 10 * i + 12, 0, 10 * i + 18));
	}
	cr_expect_eq(ts.sides.cnt, sides, "what was evicted is used again");
	cr_expect_eq(stack_of(1392), 1138);
}
