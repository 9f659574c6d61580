/* SPDX-License-Identifier: Apache-2.0 */
/* Whether it can be known who had a lock: locks of several processes, locks that waiters take in
 * turn, and those that several have at a time. */
#include <criterion/criterion.h>

#include "answer_trace.h"

TestSuite(lock_kinds, .timeout = 20);

enum { WAIT = 0, WAIT_PRIVATE = 128, BITSET_PRIVATE = 128 | 9 };
#define WORD 0x40u
#define STACK_KEY 0x5eull
#define FRAME_IP 0x7000ull

/* A wait for the word @key until @wake, when @waker let go: so short that no more is told. */
static void futex_shortly(struct trace *t, int tid, uint32_t key, int out, int wake, int waker)
{
	struct cc_rec_episode ep = {
		.h = { .aux = NR_FUTEX, .ts = AT(wake) },
		.out = AT(out),
		.wake = AT(wake),
		.state = 1,
		.waker_tid = TID(waker),
		.waker_tgid = t->tgid[waker] ? t->tgid[waker] : TGID,
		.key = key,
	};

	trace_episode(t, tid, ep);
}

struct of_wait {          /* what is told of one */
	uint64_t inode;   /* of the file that its memory is of; 0: not told */
	uint64_t op, val; /* of the call: operation, and the value it expects */
	uint64_t stack;   /* 0: there was no room for it */
};

static void futex_told(struct trace *t, int tid, uint32_t key, struct of_wait of, int out, int wake,
		       int waker)
{
	struct cc_rec_extra ex = {
		.h = { .aux = NR_FUTEX, .ts = AT(wake) },
		.ustack = of.stack,
		.args = { key, of.op, of.val },
		.uaddr = key,
		.fd = -1,
		.fd_kind = of.inode ? CC_FD_SHM : CC_FD_NONE,
		.fd_id = of.inode,
		.sock_ports = 3,
	};

	futex_shortly(t, tid, key, out, wake, waker);
	trace_extra(t, tid, ex);
}

static void futex_in(struct trace *t, int tid, uint64_t inode, uint32_t key, uint64_t op,
		     uint64_t val, int out, int wake, int waker)
{
	futex_told(t, tid, key, (struct of_wait){ inode, op, val, STACK_KEY }, out, wake, waker);
}

static void futex(struct trace *t, int tid, uint32_t key, uint64_t op, uint64_t val, int out,
		  int wake, int waker)
{
	futex_in(t, tid, 0, key, op, val, out, wake, waker);
}

/* T0 and T1 are of one process, T2 and T3 of another. */
static struct trace two_processes(void)
{
	struct trace t = trace_new();

	t.tgid[T2] = t.tgid[T3] = 77;
	for (int i = T0; i <= T3; i++)
		trace_on(&t, i, 0);
	return t;
}

static void stop(struct trace *t)
{
	for (int i = T0; i <= T3; i++)
		trace_stop_on(t, i, 20);
}

static void named(struct trace *t, const char *call)
{
	struct {
		struct cc_rec_stack s;
		uint64_t ip[1];
	} s = { .s = { .h = { .kind = CC_REC_STACK, .aux = 1, .ts = AT(0) },
		       .key = STACK_KEY,
		       .tgid = TGID },
		.ip = { FRAME_IP } };
	struct {
		struct cc_rec_name n;
		char text[64];
	} n = {
		.n = { .h = { .kind = CC_REC_NAME, .aux = CC_NAME_FRAME, .ts = AT(0) },
		       .id = FRAME_IP,
		       .tgid = TGID,
		       .len = { (uint16_t)strlen(call) } },
	};

	memcpy(n.text, call, strlen(call));
	trace_put(t, &s, sizeof(s));
	trace_put(t, &n, sizeof(n));
}

Test(lock_kinds, a_release_to_another_process_ends_a_holder_s_part)
{
	struct trace t = two_processes();

	/* T1 lets go at 5 and wakes T2 of the other process, which lets go at 9 */
	futex(&t, T2, WORD, WAIT, 2, 1, 5, T1);
	futex(&t, T0, WORD, WAIT, 2, 2, 9, T2);
	stop(&t);
	assert_walk_keep(&t, T0, 0, 12, "0:cpu[0,2) 1:cpu[2,5) 2:cpu[5,9) 0:cpu[9,12)");
	cr_assert_geq(trace_walk_piece(&t, T0, 0, 12, WAIT_LOCK).confidence, 90);
	trace_done(&t);
}

Test(lock_kinds, a_private_word_at_the_same_address_is_another_lock)
{
	struct trace t = two_processes();

	futex(&t, T2, WORD, WAIT_PRIVATE, 2, 1, 5, T3);
	futex(&t, T0, WORD, WAIT_PRIVATE, 2, 2, 9, T1);
	stop(&t);
	assert_walk(&t, T0, 0, 12, "0:cpu[0,2) 1:cpu[2,9) 0:cpu[9,12)");
}

Test(lock_kinds, at_another_address_in_another_process_nobody_is_sure)
{
	struct trace t = two_processes();

	/* the same, but there the lock is at another address: that T1 let go at 5 is not seen */
	futex(&t, T2, WORD + 64, WAIT, 2, 1, 5, T1);
	futex(&t, T0, WORD, WAIT, 2, 2, 9, T2);
	stop(&t);

	struct cc_piece p = trace_walk_piece(&t, T0, 5, 9, WAIT_LOCK);

	cr_assert(p.evidence & CC_EV_BIT(APART));
	cr_assert_lt(p.confidence, 90);
	trace_done(&t);
}

#define OF_FILE 99
#define ELSEWHERE 0x7000 /* pages away */

Test(lock_kinds, memory_of_one_file_is_one_lock_wherever_it_is)
{
	struct trace t = two_processes();

	futex_in(&t, T2, OF_FILE, WORD + ELSEWHERE, WAIT, 2, 1, 5, T1);
	futex_in(&t, T0, OF_FILE, WORD, WAIT, 2, 2, 9, T2);
	stop(&t);
	assert_walk_keep(&t, T0, 0, 12, "0:cpu[0,2) 1:cpu[2,5) 2:cpu[5,9) 0:cpu[9,12)");
	cr_assert_geq(trace_walk_piece(&t, T0, 0, 12, WAIT_LOCK).confidence, 90);
	trace_done(&t);
}

Test(lock_kinds, another_place_or_another_file_is_another_lock)
{
	struct trace t = two_processes();

	futex_in(&t, T2, OF_FILE, WORD + ELSEWHERE + 8, WAIT, 2, 1, 5, T3);
	futex_in(&t, T3, OF_FILE + 1, WORD, WAIT, 2, 1, 4, T2);
	futex_in(&t, T0, OF_FILE, WORD, WAIT, 2, 2, 9, T1);
	stop(&t);
	assert_walk(&t, T0, 0, 12, "0:cpu[0,2) 1:cpu[2,9) 0:cpu[9,12)");
}

/* T3's short wait is told by its address alone, which a slow one of its process has explained. */
Test(lock_kinds, what_a_slow_wait_tells_of_a_place_holds_for_short_ones)
{
	struct trace t = two_processes();

	futex_in(&t, T2, OF_FILE, WORD + ELSEWHERE, WAIT, 2, 1, 5, T1);
	futex_shortly(&t, T3, WORD + ELSEWHERE, 5, 6, T2);
	futex_in(&t, T0, OF_FILE, WORD, WAIT, 2, 2, 9, T3);
	stop(&t);
	assert_walk(&t, T0, 0, 12, "0:cpu[0,2) 1:cpu[2,5) 2:cpu[5,6) 3:cpu[6,9) 0:cpu[9,12)");
}

Test(lock_kinds, who_waited_for_its_turn_had_the_lock_since_then)
{
	struct trace t = two_processes();

	/* each waits on a word of its own: T1 for its turn until 5, T0 until T1 lets go at 9 */
	futex(&t, T1, WORD, WAIT_PRIVATE, 1, 1, 5, T3);
	futex(&t, T0, WORD + 64, WAIT_PRIVATE, 1, 2, 9, T1);
	stop(&t);
	assert_walk_keep(&t, T0, 0, 12, "0:cpu[0,2) 3:cpu[2,5) 1:cpu[5,9) 0:cpu[9,12)");
	cr_assert_eq(trace_walk_piece(&t, T0, 0, 5, WAIT_LOCK).holder_tid, 0);
	cr_assert_eq(trace_walk_piece(&t, T0, 5, 12, WAIT_LOCK).holder_tid, TID(T1));
	trace_done(&t);
}

Test(lock_kinds, of_an_rwlock_no_holder_is_named)
{
	static const char *const calls[] = { "pthread_rwlock_wrlock", "__pthread_rwlock_rdlock" };

	for (uint64_t val = 2; val <= 3; val++) { /* for readers to go; for a writer */
		struct trace t = two_processes();

		named(&t, calls[val - 2]);
		trace_irq_wait(&t, T1, NR_NANOSLEEP, 3, 8, CC_CTX_IDLE, 0);
		futex(&t, T0, WORD, BITSET_PRIVATE, val, 2, 9, T1);
		stop(&t);

		struct cc_piece p = trace_walk_piece(&t, T0, 0, 12, WAIT_LOCK);

		cr_assert_eq(p.holder_tid, 0);
		cr_assert_eq(p.waker_tid, TID(T1));
		cr_assert_geq(p.confidence, 90);
		/* but not that it alone had it all the while */
		p = trace_walk_piece(&t, T0, 0, 12, WAIT_SLEEP);
		cr_assert_eq(p.tid, TID(T1));
		cr_assert(p.evidence & CC_EV_BIT(LET_GO_LAST));
		trace_done(&t);
	}
}

Test(lock_kinds, what_may_be_an_rwlock_s_writer_is_not_sure)
{
	struct trace t = two_processes();

	futex(&t, T0, WORD, BITSET_PRIVATE, 2, 2, 9, T1);
	stop(&t);

	struct cc_piece p = trace_walk_piece(&t, T0, 0, 12, WAIT_LOCK);

	cr_assert_eq(p.holder_tid, TID(T1));
	cr_assert_lt(p.confidence, 90);
	trace_done(&t);
}

/* A wait of which less is told than of another one on the same futex is for the same thing: one
 * that was short, one whose stack there was no room for. */
Test(lock_kinds, what_a_stack_tells_of_a_futex_holds_for_waits_without_one)
{
	static const struct {
		const char *call;
		uint64_t op, val;
		enum wait_class cls;
	} known[] = {
		{ "pthread_rwlock_wrlock", BITSET_PRIVATE, 2, WAIT_LOCK },
		{ "pthread_rwlock_rdlock", BITSET_PRIVATE, 3, WAIT_LOCK },
		{ "__new_sem_wait_slow64", BITSET_PRIVATE, 0, WAIT_SEMA },
		{ "pthread_cond_wait", BITSET_PRIVATE, 2, WAIT_COND },
		{ "pthread_barrier_wait", WAIT_PRIVATE, 1, WAIT_COND },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(known); i++) {
		struct trace t = two_processes();
		struct of_wait of = { 0, known[i / 2].op, known[i / 2].val, STACK_KEY };
		struct cc_piece p;

		named(&t, known[i / 2].call);
		futex_told(&t, T1, WORD, of, 0, 1, T0);
		of.stack = 0;
		if (i % 2)
			futex_told(&t, T0, WORD, of, 2, 9, T1);
		else
			futex_shortly(&t, T0, WORD, 2, 9, T1);
		stop(&t);
		p = trace_walk_piece(&t, T0, 0, 12, known[i / 2].cls);
		cr_assert(!p.holder_tid || p.confidence < 90, "%s", known[i / 2].call);
		cr_assert_eq(p.waker_tid, TID(T1));
		trace_done(&t);
	}
}

/* Nobody is surer of a wait of which nothing is told than of the one that told what it is for. */
Test(lock_kinds, a_doubt_about_a_futex_holds_for_waits_of_which_nothing_is_told)
{
	static const struct {
		uint64_t op, val;
		bool sure;
	} of[] = {
		{ WAIT_PRIVATE, 2, true },
		{ WAIT_PRIVATE, 7, false },   /* a count, maybe */
		{ BITSET_PRIVATE, 2, false }, /* a writer's, maybe */
	};

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		struct trace t = two_processes();
		struct cc_piece p;

		futex(&t, T1, WORD, of[i].op, of[i].val, 0, 1, T0);
		futex_shortly(&t, T0, WORD, 2, 9, T1);
		stop(&t);
		p = trace_walk_piece(&t, T0, 0, 12, WAIT_LOCK);
		cr_assert_eq(p.holder_tid, TID(T1));
		cr_assert_eq(p.confidence >= 90, of[i].sure, "%zu", i);
		trace_done(&t);
	}
}

Test(lock_kinds, the_call_tells_a_semaphore_from_a_condition_variable)
{
	static const struct {
		const char *call;
		uint64_t val;
		enum wait_class cls;
	} known[] = {
		{ "__new_sem_wait_slow64", 0, WAIT_SEMA },
		{ "sem_clockwait", 0, WAIT_SEMA },
		{ "pthread_cond_wait", 0, WAIT_COND },
		{ "pthread_cond_timedwait", 2, WAIT_COND }, /* newer ones count in it */
		{ "main", 0, WAIT_COND },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct trace t = two_processes();

		named(&t, known[i].call);
		futex(&t, T0, WORD, BITSET_PRIVATE, known[i].val, 2, 9, T1);
		stop(&t);
		cr_assert_eq(trace_walk_piece(&t, T0, 0, 12, known[i].cls).waker_tid, TID(T1), "%s",
			     known[i].call);
		trace_done(&t);
	}
}

/* ---- a condition variable by which a thing goes from one to the next ---- */

#define COND 0xc0u

static struct trace four(void)
{
	struct trace t = trace_new();

	for (int i = T0; i <= T3; i++)
		trace_on(&t, i, -30);
	return t;
}

static void assert_turns(struct trace *t, const char *want)
{
	stop(t);
	assert_walk(t, T0, 0, 12, want);
}

Test(lock_kinds, a_condition_taken_in_turn_is_cut_where_it_is_let_go)
{
	for (uint32_t word = COND; word <= COND + 4; word += 4) { /* it has two, used in turn */
		struct trace t = four();
		struct cc_piece p;

		trace_cond_wait(&t, T1, word, 1, 5, T2);
		trace_cond_wait(&t, T0, COND, 2, 9, T1);
		stop(&t);
		assert_walk_keep(&t, T0, 0, 12, "0:cpu[0,2) 2:cpu[2,5) 1:cpu[5,9) 0:cpu[9,12)");
		p = trace_walk_piece(&t, T0, 0, 12, WAIT_COND);
		cr_assert_eq(p.holder_tid, TID(T2));
		cr_assert_lt(p.confidence, 90);
		trace_done(&t);
	}
}

Test(lock_kinds, a_semaphore_taken_in_turn_is_cut_there_too)
{
	struct trace t = four();

	futex(&t, T1, WORD, 9, 0, 1, 5, T2); /* a shared one's word, when nobody may have it */
	futex(&t, T0, WORD, 9, 0, 2, 9, T1);
	stop(&t);
	assert_walk_keep(&t, T0, 0, 12, "0:cpu[0,2) 2:cpu[2,5) 1:cpu[5,9) 0:cpu[9,12)");
	cr_expect_eq(trace_walk_piece(&t, T0, 0, 12, WAIT_SEMA).holder_tid, TID(T2));
	trace_done(&t);
}

Test(lock_kinds, who_gives_work_and_waits_for_none_takes_no_turn)
{
	struct trace t = four();

	trace_cond_wait(&t, T3, COND, 1, 5, T2);
	trace_cond_wait(&t, T0, COND, 2, 9, T1);
	assert_turns(&t, "0:cpu[0,2) 1:cpu[2,9) 0:cpu[9,12)");
}

/* T1 had a turn before T0 waited at all: whether it came by at 5, or worked all the time, nothing
 * tells. */
Test(lock_kinds, who_may_have_come_by_explains_nothing_before)
{
	struct trace t = four();

	trace_cond_wait(&t, T1, COND, -9, -1, T3);
	trace_cond_wait(&t, T3, COND, 0, 5, T2);
	trace_cond_wait(&t, T0, COND, 2, 9, T1);
	assert_turns(&t, "0:cpu[0,2) 0:cond[2,5) 1:cpu[5,9) 0:cpu[9,12)");
}

/* As in a monitor, where workers and those that wait for them have one condition: T1 has been at
 * work since 3 and let nobody go; that T2 was done for T3 at 5 is no concern of its. */
Test(lock_kinds, who_was_at_work_all_the_time_goes_on)
{
	struct trace t = four();

	trace_cond_wait(&t, T1, COND, 1, 3, T3);
	trace_cond_wait(&t, T3, COND, 4, 5, T2);
	trace_cond_wait(&t, T0, COND, 2, 9, T1);
	assert_turns(&t, "0:cpu[0,2) 3:cpu[2,3) 1:cpu[3,9) 0:cpu[9,12)");
}

/* T3 is woken for it at 3 and sleeps from 4 on. At 6 T1 lets it go as well, for which T2 has waited
 * all the while: two had it then. When T3 is the one that lets it go, one had it at a time. */
Test(lock_kinds, what_two_are_seen_to_have_at_a_time_is_not_taken_in_turn)
{
	for (int two = 0; two <= 1; two++) {
		struct trace t = four();
		struct cc_piece p;

		trace_cond_wait(&t, T1, COND, -9, -5, T2);
		trace_cond_wait(&t, T3, COND, -8, 3, T0);
		trace_irq_wait(&t, T3, NR_NANOSLEEP, 4, two ? 15 : 5, CC_CTX_IDLE, 0);
		trace_cond_wait(&t, T2, COND, -2, 6, two ? T1 : T3);
		trace_cond_wait(&t, T0, COND, 4, 9, T2);
		stop(&t);
		p = trace_walk_piece(&t, T0, 0, 12, WAIT_COND);
		cr_assert_eq(!!(p.evidence & CC_EV_BIT(LET_GO_LAST)), two);
		cr_assert_eq(!!(p.evidence & CC_EV_BIT(IN_TURN)), !two);
		trace_done(&t);
	}
}

/* ---- barriers, and words of which nothing is known ---- */

Test(lock_kinds, a_barrier_is_no_lock_and_nobody_has_it)
{
	static const char *const calls[] = {
		"pthread_barrier_wait+0x109", "futex_wait\nfutex_wait_simple\npthread_barrier_wait"
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		struct trace t = two_processes();
		struct cc_piece p;

		named(&t, calls[i]);
		futex(&t, T1, WORD, WAIT_PRIVATE, 6, 0, 1, T0);
		futex(&t, T0, WORD, WAIT_PRIVATE, 7, 2, 9, T1);
		stop(&t);
		assert_walk_keep(&t, T0, 0, 12, "0:cpu[0,2) 1:cpu[2,9) 0:cpu[9,12)");
		p = trace_walk_piece(&t, T0, 0, 12, WAIT_COND);
		cr_assert_eq(p.holder_tid, 0);
		cr_assert_eq(p.waker_tid, TID(T1));
		cr_assert_geq(p.confidence, 90);
		trace_done(&t);
	}
}

Test(lock_kinds, a_word_with_any_value_may_be_a_lock_or_a_count)
{
	for (uint64_t val = 1; val <= 3; val++) {
		struct trace t = two_processes();
		struct cc_piece p;

		futex(&t, T0, WORD, WAIT_PRIVATE, val, 2, 9, T1);
		stop(&t);
		p = trace_walk_piece(&t, T0, 0, 12, WAIT_LOCK);
		cr_assert_eq(p.confidence >= 90, val <= 2);
		trace_done(&t);
	}
}

/* ---- a token that lies in a pipe ---- */

#define NR_READ 0
#define PIPE_INODE 77

static void read_wait(struct trace *t, int tid, uint64_t inode, int out, int wake, int waker)
{
	struct cc_rec_extra ex = {
		.h = { .aux = NR_READ, .ts = AT(wake) },
		.fd = 5,
		.fd_kind = CC_FD_PIPE,
		.fd_id = inode,
	};

	trace_wait(t, tid, NR_READ, out, wake, wake, waker);
	trace_extra(t, tid, ex);
}

Test(lock_kinds, since_when_one_had_a_token_that_it_also_takes_is_not_sure)
{
	for (int takes = 0; takes <= 1; takes++) {
		struct trace t = four();

		read_wait(&t, T1, PIPE_INODE + !takes, -9, -5, T2);
		trace_irq_wait(&t, T1, NR_NANOSLEEP, 3, 8, CC_CTX_IDLE, 0);
		read_wait(&t, T0, PIPE_INODE, 2, 9, T1);
		stop(&t);
		/* who ended the wait is known all the same */
		cr_assert_geq(trace_walk_piece(&t, T0, 0, 12, WAIT_PIPE).confidence, 90);

		struct cc_piece p = trace_walk_piece(&t, T0, 0, 12, WAIT_SLEEP);

		cr_assert_eq(p.tid, TID(T1));
		cr_assert_eq(!!(p.evidence & CC_EV_BIT(LET_GO_LAST)), takes);
		trace_done(&t);
	}
}
