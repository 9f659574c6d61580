/* SPDX-License-Identifier: Apache-2.0 */
/* What a wait was for, from its system call, file and kernel stack as they were recorded
 * (Linux 6.18, innermost first); and that tests/classes.txt has a test for every class. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "classify.h"

enum { FUTEX = 202, READ = 0, WRITE = 1, FAULT = -1, NO_ARGS = 1u << 31 };
enum { S = 1, D = 2 }; /* state */

struct recorded {
	const char *what;
	enum wait_class cls;
	int nr;
	int state;
	unsigned int fd_kind;
	unsigned int op, val; /* of a futex; NO_ARGS: not told */
	uint32_t owner;
	const char *stack;
	enum idle_kind idle;
	bool is_lock, guessed;
};

/* what a row does not say is 0 */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define SCHED "__schedule schedule "
#define LOCK .is_lock = true
static const struct recorded recorded[] = {
	/* futexes: by their arguments */
	{ "mutex", WAIT_LOCK, FUTEX, S, 0, 128, 2, 7, SCHED "futex_do_wait __futex_wait", LOCK },
	{ "mutex, no owner word", WAIT_LOCK, FUTEX, S, 0, 128, 2, 0, "", LOCK },
	{ "mutex with a timeout", WAIT_LOCK, FUTEX, S, 0, 128 | 9, 2, 0, "", LOCK },
	{ "PI mutex", WAIT_LOCK, FUTEX, S, 0, 128 | 6, 0, 0,
	  SCHED "rt_mutex_schedule rt_mutex_slowlock_block futex_lock_pi", LOCK },
	{ "condition variable", WAIT_COND, FUTEX, S, 0, 128 | 9, 4, 0, "", IDLE_WHEN_FREE },
	{ "parked thread", WAIT_COND, FUTEX, S, 0, 128, UINT32_MAX, 0, "", IDLE_WHEN_FREE },
	{ "semaphore of two processes", WAIT_SEMA, FUTEX, S, 0, 9, 0, 0, "", IDLE_WHEN_FREE },
	{ "futex, arguments not told", WAIT_LOCK, FUTEX, S, 0, NO_ARGS, 0, 0, "", LOCK,
	  .guessed = true },
	/* ... and where that leaves it open, by the functions that wait */
	{ "condition variable of glibc", WAIT_COND, FUTEX, S, 0, 128 | 9, 0, 0,
	  "__futex_abstimed_wait_common64 pthread_cond_wait", IDLE_WHEN_FREE },
	{ "Go, a thread without work", WAIT_IDLE, FUTEX, S, 0, 128, 0, 0,
	  "runtime.futex runtime.futexsleep runtime.notesleep runtime.mPark runtime.findRunnable",
	  IDLE_LOOP },
	{ "Go, a thread whose goroutine waits", WAIT_IDLE, FUTEX, S, 0, 128, 0, 0,
	  "runtime.futex runtime.futexsleep runtime.notesleep runtime.stoplockedm", IDLE_LOOP },
	{ "Go, until the others have stopped", WAIT_GC, FUTEX, S, 0, 128, 0, 0,
	  "runtime.futex runtime.futexsleep runtime.notetsleep_internal runtime.notetsleep "
	  "runtime.stopTheWorldWithSema" },
	{ "Go, a note of another kind", WAIT_COND, FUTEX, S, 0, 128, 0, 0,
	  "runtime.futex runtime.futexsleep runtime.notetsleep_internal runtime.notetsleepg",
	  IDLE_WHEN_FREE },
	{ "Go, a lock of the runtime", WAIT_LOCK, FUTEX, S, 0, 128, 2, 0,
	  "runtime.futex runtime.futexsleep runtime.lock2 runtime.stopm", LOCK },
	/* files */
	{ "tcp read", WAIT_NET_RECV, READ, S, CC_FD_SOCK_TCP, 0, 0, 0,
	  SCHED "schedule_timeout wait_woken sk_wait_data tcp_recvmsg_locked", IDLE_WHEN_FREE },
	{ "tcp send", WAIT_NET_SEND, 44, S, CC_FD_SOCK_TCP, 0, 0, 0,
	  SCHED "schedule_timeout wait_woken sk_stream_wait_memory tcp_sendmsg_locked" },
	{ "sendfile to a slow peer", WAIT_NET_SEND, 40, S, CC_FD_SOCK_TCP, 0, 0, 0, "" },
	{ "unix read", WAIT_UNIX, READ, S, CC_FD_SOCK_UNIX, 0, 0, 0,
	  SCHED "schedule_timeout unix_stream_read_generic" },
	{ "connect", WAIT_UPSTREAM, 42, S, CC_FD_SOCK_TCP, 0, 0, 0, "" },
	{ "accept", WAIT_NET_RECV, 288, S, CC_FD_SOCK_TCP, 0, 0, 0,
	  SCHED "schedule_timeout inet_csk_accept", IDLE_LOOP },
	{ "pipe read", WAIT_PIPE, READ, S, CC_FD_PIPE, 0, 0, 0, SCHED "anon_pipe_read vfs_read" },
	{ "pipe write", WAIT_PIPE, WRITE, S, CC_FD_PIPE, 0, 0, 0, SCHED "anon_pipe_write" },
	{ "timerfd", WAIT_SLEEP, READ, S, CC_FD_TIMERFD, 0, 0, 0, SCHED "timerfd_read_iter" },
	{ "signalfd", WAIT_SIGNAL, READ, S, CC_FD_SIGNALFD, 0, 0, 0, SCHED "signalfd_read_iter" },
	{ "eventfd", WAIT_POLL, READ, S, CC_FD_EVENTFD, 0, 0, 0, SCHED "eventfd_read", IDLE_LOOP },
	{ "buffered read", WAIT_DISK_READ, READ, D, CC_FD_FILE, 0, 0, 0,
	  SCHED "io_schedule folio_wait_bit_common filemap_get_pages filemap_read" },
	{ "direct write", WAIT_DISK_WRITE, WRITE, D, CC_FD_FILE, 0, 0, 0,
	  SCHED "io_schedule_timeout __iomap_dio_rw iomap_dio_rw" },
	{ "write held back", WAIT_DISK_WRITE, WRITE, D, CC_FD_FILE, 0, 0, 0,
	  SCHED "schedule_timeout io_schedule_timeout balance_dirty_pages" },
	{ "O_SYNC write", WAIT_FSYNC, WRITE, D, CC_FD_FILE, 0, 0, 0,
	  SCHED "io_schedule folio_wait_bit folio_wait_writeback __filemap_fdatawait_range" },
	{ "inode's lock", WAIT_KLOCK, WRITE, D, CC_FD_FILE, 0, 0, 0,
	  SCHED "schedule_preempt_disabled rwsem_down_write_slowpath down_write "
		"ext4_buffered_write_iter",
	  LOCK },
	{ "journal, write", WAIT_JOURNAL, WRITE, D, CC_FD_FILE, 0, 0, 0,
	  SCHED "do_get_write_access jbd2_journal_get_write_access" },
	{ "journal, a new handle", WAIT_JOURNAL, WRITE, D, CC_FD_FILE, 0, 0, 0,
	  SCHED "wait_transaction_locked add_transaction_credits start_this_handle" },
	{ "direct reclaim", WAIT_RECLAIM, WRITE, D, CC_FD_FILE, 0, 0, 0,
	  SCHED "schedule_timeout reclaim_throttle shrink_node do_try_to_free_pages" },
	/* system calls */
	{ "fdatasync", WAIT_FSYNC, 75, D, CC_FD_FILE, 0, 0, 0,
	  SCHED "io_schedule_timeout wait_for_completion_io_timeout submit_bio_wait "
		"blkdev_issue_flush" },
	{ "fsync, the journal's commit", WAIT_JOURNAL, 74, D, CC_FD_FILE, 0, 0, 0,
	  SCHED "jbd2_log_wait_commit ext4_sync_file" },
	{ "epoll", WAIT_EPOLL, 232, S, 0, 0, 0, 0,
	  SCHED "schedule_hrtimeout_range_clock do_epoll_wait", IDLE_LOOP },
	{ "poll", WAIT_POLL, 7, S, 0, 0, 0, 0,
	  SCHED "schedule_hrtimeout_range_clock poll_schedule_timeout do_sys_poll", IDLE_LOOP },
	{ "select", WAIT_POLL, 23, S, 0, 0, 0, 0, SCHED "poll_schedule_timeout do_select",
	  IDLE_LOOP },
	{ "io_uring", WAIT_IO_URING, 426, S, 0, 0, 0, 0, SCHED "io_cqring_wait", IDLE_LOOP },
	{ "aio", WAIT_DISK, 208, S, 0, 0, 0, 0, SCHED "read_events" },
	{ "nanosleep", WAIT_SLEEP, 230, S, 0, 0, 0, 0, SCHED "do_nanosleep hrtimer_nanosleep" },
	{ "wait4", WAIT_CHILD, 61, S, 0, 0, 0, 0, SCHED "do_wait kernel_wait4" },
	{ "vfork", WAIT_CHILD, 58, D, 0, 0, 0, 0, SCHED "wait_for_completion_state kernel_clone" },
	{ "flock", WAIT_FLOCK, 73, S, CC_FD_FILE, 0, 0, 0, SCHED "locks_lock_inode_wait", LOCK },
	{ "fcntl lock", WAIT_FLOCK, 72, S, CC_FD_FILE, 0, 0, 0, SCHED "fcntl_setlk", LOCK },
	{ "semop", WAIT_IPC, 65, S, 0, 0, 0, 0, SCHED "__do_semtimedop", IDLE_WHEN_FREE },
	{ "msgrcv", WAIT_IPC, 70, S, 0, 0, 0, 0, SCHED "do_msgrcv", IDLE_WHEN_FREE },
	{ "mq_timedreceive", WAIT_IPC, 243, S, 0, 0, 0, 0, SCHED "wq_sleep", IDLE_WHEN_FREE },
	{ "sigtimedwait", WAIT_SIGNAL, 128, S, 0, 0, 0, 0, SCHED "do_sigtimedwait" },
	{ "pause", WAIT_SIGNAL, 34, S, 0, 0, 0, 0, SCHED "__x64_sys_pause" },
	{ "getrandom at boot", WAIT_ENTROPY, 318, S, 0, 0, 0, 0,
	  SCHED "wait_for_random_bytes __x64_sys_getrandom" },
	{ "mmap", WAIT_KLOCK, 9, D, 0, 0, 0, 0,
	  SCHED "rwsem_down_write_slowpath down_write_killable vm_mmap_pgoff", LOCK },
	{ "munmap, no stack", WAIT_KLOCK, 11, D, 0, 0, 0, 0, "", LOCK, .guessed = true },
	{ "a directory's lock", WAIT_KLOCK, 82, D, 0, 0, 0, 0,
	  SCHED "rwsem_down_write_slowpath down_write lock_rename", LOCK },
	{ "path, no stack", WAIT_DISK, 257, D, 0, 0, 0, 0, "", .guessed = true },
	/* no system call */
	{ "major fault", WAIT_PAGEFAULT, FAULT, D, 0, 0, 0, 0,
	  SCHED "io_schedule folio_wait_bit_common filemap_read_folio filemap_fault" },
	{ "fault behind mmap_lock", WAIT_KLOCK, FAULT, D, 0, 0, 0, 0,
	  SCHED "rwsem_down_read_slowpath down_read lock_mm_and_find_vma", LOCK },
	{ "fault in reclaim", WAIT_RECLAIM, FAULT, D, 0, 0, 0, 0,
	  SCHED "shrink_lruvec try_to_free_pages __alloc_pages_slowpath" },
	{ "fault in compaction", WAIT_RECLAIM, FAULT, D, 0, 0, 0, 0,
	  SCHED "compact_zone try_to_compact_pages __alloc_pages_direct_compact" },
	{ "traced or stopped", WAIT_STOPPED, READ, 4, CC_FD_PIPE, 0, 0, 0, "" },
	{ "a call nobody knows", WAIT_BLOCKED, 400, S, 0, 0, 0, 0, "", .guessed = true },
};

#define KSTACK 0x77

/* STACK and NAME records of the words of @text. */
static void tell_stack(struct names *n, const char *text)
{
	_Alignas(8) char buf[1024];
	struct cc_rec_stack *s = (void *)buf;
	char words[512], *save = NULL;
	uint16_t cnt = 0;

	*s = (struct cc_rec_stack){ .key = KSTACK };
	snprintf(words, sizeof(words), "%s", text);
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		_Alignas(8) char name_buf[256];
		struct cc_rec_name *r = (void *)name_buf;
		size_t len = strlen(w);

		*r = (struct cc_rec_name){ .h = { .kind = CC_REC_NAME, .aux = CC_NAME_FRAME },
					   .id = 0xffff0000u + cnt,
					   .len = { (uint16_t)len } };
		memset(r->text, 0, len + 8);
		memcpy(r->text, w, len);
		r->h.size = (uint16_t)((sizeof(*r) + len + 7) & ~7ul);
		cr_assert_eq(names_name(n, r), 0);
		s->ip[cnt] = 0xffff0000u + cnt;
		cnt++;
	}
	s->h = (struct cc_rec){ .size = (uint16_t)(sizeof(*s) + 8 * cnt),
				.kind = CC_REC_STACK,
				.aux = cnt };
	cr_assert_eq(names_stack(n, s), 0);
}

static struct wait_kind classified(const struct recorded *r)
{
	struct mem mem = { 0 };
	struct names names;
	struct resources res;
	struct map none = { 0 };
	const struct task t = { .tid = 5, .tgid = 5 };
	struct classifier c = { .names = &names, .resources = &res, .upstreams = &none };
	struct episode ep = { .out = 10,
			      .wake = 20,
			      .in = 20,
			      .key = r->nr == FUTEX ? 0x40 : 3,
			      .syscall = (int16_t)r->nr,
			      .kind = r->state == D   ? EP_DISK
				      : r->state == S ? EP_SLEEPING
						      : EP_STOPPED };
	bool args = r->nr == FUTEX && r->op != NO_ARGS;
	struct side side = { .told = true,
			     .fd = r->fd_kind ? 3 : -1,
			     .fd_kind = (uint8_t)r->fd_kind,
			     .futex = args,
			     .uaddr = args ? 0x40 : 0,
			     .op = r->op,
			     .val = r->val,
			     .owner = r->owner,
			     .flags = r->owner ? CC_EX_OWNER : 0,
			     .ustack = args && *r->stack ? KSTACK : 0,
			     .kstack = *r->stack ? KSTACK : 0 };
	struct wait_kind k;

	names_init(&names, &mem, 1 << 20);
	resources_init(&res, &mem);
	if (*r->stack)
		tell_stack(&names, r->stack);
	k = classify(&c, &t, &ep, r->op == NO_ARGS ? NULL : &side);
	names_done(&names);
	resources_done(&res);
	return k;
}

Test(classify, waits_as_they_were_recorded)
{
	for (size_t i = 0; i < ARRAY_SIZE(recorded); i++) {
		const struct recorded *r = &recorded[i];
		struct wait_kind k = classified(r);

		cr_expect_eq(k.cls, r->cls, "%s: %s, not %s", r->what, wait_class_name(k.cls),
			     wait_class_name(r->cls));
		cr_expect_eq(k.is_lock, r->is_lock, "%s: lock %d", r->what, k.is_lock);
		cr_expect_eq(k.idle, r->idle, "%s: idle %d", r->what, k.idle);
		cr_expect_eq(k.guessed, r->guessed, "%s: guessed %d", r->what, k.guessed);
	}
}

/* The rwsem that the kernel told beats what the call alone would say. */
Test(classify, a_lock_that_the_kernel_read)
{
	struct mem mem = { 0 };
	struct resources res;
	struct names names;
	struct map none = { 0 };
	const struct task t = { .tid = 5, .tgid = 5 };
	struct classifier c = { .names = &names, .resources = &res, .upstreams = &none };
	const struct episode ep = { .out = 1, .wake = 2, .in = 2, .syscall = 257, .kind = EP_DISK };
	const struct side side = { .told = true, .fd = -1, .uaddr = 0xffff8880 };

	names_init(&names, &mem, 1 << 20);
	resources_init(&res, &mem);
	cr_expect_eq(classify(&c, &t, &ep, &side).cls, WAIT_KLOCK);
	cr_expect(!classify(&c, &t, &ep, &side).guessed);
	names_done(&names);
	resources_done(&res);
}

/* ---- the table of tests -------------------------------------------------------------------- */

static bool file_has(const char *file, const char *word)
{
	char path[512], line[1024];
	bool found = false;

	snprintf(path, sizeof(path), "%s/tests/%s", CC_SRC_DIR, file);
	FILE *f = fopen(path, "r");

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, word) != NULL;
	if (f)
		fclose(f);
	return found;
}

/* "file:word", or "-" and why not. */
static void check_reference(const char *cls, char *ref)
{
	char *colon = strchr(ref, ':');

	if (*ref == '-') {
		cr_expect_gt(strlen(ref), 10, "%s: no test and no reason", cls);
		return;
	}
	cr_assert_not_null(colon, "%s: %s", cls, ref);
	*colon = 0;
	cr_expect(file_has(ref, colon + 1), "%s: %s has no %s", cls, ref, colon + 1);
}

Test(classify, every_class_has_its_tests)
{
	bool seen[WAIT_CLASS_CNT] = { false };
	char line[512];
	FILE *f = fopen(CC_SRC_DIR "/tests/classes.txt", "r");

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *save = NULL, *cls = strtok_r(line, "|\n", &save);
		char *unit = strtok_r(NULL, "|\n", &save), *live = strtok_r(NULL, "|\n", &save);

		if (!cls || *cls == '#')
			continue;
		cr_assert(unit && live, "%s", cls);
		int c = wait_class_parse(cls);

		cr_assert_geq(c, 0, "%s", cls);
		seen[c] = true;
		check_reference(cls, unit);
		check_reference(cls, live);
	}
	fclose(f);
	for (unsigned int c = 0; c < WAIT_CLASS_CNT; c++)
		cr_expect(seen[c], "%s is not in tests/classes.txt", wait_class_name(c));
}

/* Lines of tests/@file: what|a reference. Returns how many. */
static int check_list(const char *file)
{
	char line[512];
	int cnt = 0;
	FILE *f = fopen(file, "r");

	cr_assert_not_null(f, "%s", file);
	while (fgets(line, sizeof(line), f)) {
		char *save = NULL, *name = strtok_r(line, "|\n", &save);
		char *ref = strtok_r(NULL, "|\n", &save);

		if (!name || *name == '#')
			continue;
		cr_assert_not_null(ref, "%s", name);
		check_reference(name, ref);
		cnt++;
	}
	fclose(f);
	return cnt;
}

Test(classify, every_field_case_has_a_test_or_a_reason)
{
	cr_expect_geq(check_list(CC_SRC_DIR "/tests/cases.txt"), 30);
}

Test(classify, every_hard_case_has_a_test)
{
	cr_expect_geq(check_list(CC_SRC_DIR "/tests/hard.txt"), 40);
}
