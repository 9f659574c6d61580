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

/* A wait for the word @key with expected value @val, until @wake, when @waker let go. */
static void futex(struct trace *t, int tid, uint32_t key, uint64_t op, uint64_t val, int out,
		  int wake, int waker)
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
	struct cc_rec_extra ex = {
		.h = { .aux = NR_FUTEX, .ts = AT(wake) },
		.ustack = STACK_KEY,
		.args = { key, op, val },
		.uaddr = key,
		.fd = -1,
	};

	trace_episode(t, tid, ep);
	trace_extra(t, tid, ex);
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
		futex(&t, T0, WORD, BITSET_PRIVATE, val, 2, 9, T1);
		stop(&t);

		struct cc_piece p = trace_walk_piece(&t, T0, 0, 12, WAIT_LOCK);

		cr_assert_eq(p.holder_tid, 0);
		cr_assert_eq(p.waker_tid, TID(T1));
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
