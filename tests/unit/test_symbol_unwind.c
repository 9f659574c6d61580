/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinding real, stopped processes: known chains, and libunwind as the judge. */
#include "symbol_util.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_FP __attribute__((noinline, noclone, optimize("omit-frame-pointer")))
#define KEEP __asm__ volatile("" ::: "memory") /* after a call: so that it is no tail call */

struct look { /* all that is needed to look into one process */
	struct file_cache *files;
	struct unwinder *rows, *judge;
	struct maps maps;
	struct cc_rec_snap *snap;
	unsigned int no_rule; /* frames that a rule cannot say, so far */
};

static void look_init(struct look *l, pid_t tgid)
{
	bool changed;

	l->no_rule = 0;
	cr_assert_eq(file_cache_new(&l->files), 0);
	cr_assert_eq(unwind_rows_new(l->files, &l->rows), 0);
	cr_assert_eq(unwind_libunwind_new(l->files, &l->judge), 0);
	maps_init(&l->maps, (uint32_t)tgid);
	cr_assert_eq(maps_refresh(&l->maps, &changed), 0);
	l->snap = malloc(SNAP_BUF_BYTES);
	cr_assert_not_null(l->snap);
}

static void look_done(struct look *l)
{
	free(l->snap);
	maps_done(&l->maps);
	unwinder_free(l->rows);
	unwinder_free(l->judge);
	file_cache_free(l->files);
}

static void look_unwind(struct look *l, struct unwinder *u, struct unwind_out *out)
{
	struct unwind_in in;

	unwind_in_from_snap(l->snap, &in);
	in.learn = u == l->rows;
	u->ops->unwind(u, &l->maps, &in, out);
	if (in.learn)
		l->no_rule += expect_rules(l->snap, out);
}

static void frame_name(struct look *l, const struct unwind_out *o, unsigned int i, char *name,
		       size_t size)
{
	uint64_t at = o->ip[i] - (i > 0), vaddr, off;
	struct mapping *p = maps_find(&l->maps, at);
	struct elf_file *f = p ? maps_file(&l->maps, p, l->files) : NULL;

	if (!f || maps_vaddr(p, f, at, &vaddr) || elf_file_name(f, vaddr, false, name, size, &off))
		snprintf(name, size, "?");
}

/* Where @want stands in the stack, from @from on; -1: nowhere. */
static int find_frame(struct look *l, const struct unwind_out *o, unsigned int from,
		      const char *want)
{
	for (unsigned int i = from; i < o->cnt; i++) {
		char name[128];

		frame_name(l, o, i, name, sizeof(name));
		if (!strcmp(name, want))
			return (int)i;
	}
	return -1;
}

/* ---- children with a known chain ---------------------------------------------------------- */

static NO_FP long chain_c(int fd)
{
	char buf[300];
	long n = read(fd, buf, sizeof(buf));

	KEEP;
	return n + buf[0];
}

static NO_FP long chain_b(int fd, int depth)
{
	char room[64];
	long n;

	memset(room, depth, sizeof(room));
	n = depth ? chain_b(fd, depth - 1) : chain_c(fd);
	KEEP;
	return n + room[depth % 64];
}

static NO_FP long chain_a(int fd)
{
	long n = chain_b(fd, 5);

	KEEP;
	return n;
}

static int quiet_fd(void)
{
	int fds[2];

	return pipe(fds) ? -1 : fds[0];
}

static void child_main_thread(void) { chain_a(quiet_fd()); }

static NO_FP void *thread_start(void *arg)
{
	chain_a(*(int *)arg);
	KEEP;
	return NULL;
}

static void child_second_thread(void)
{
	int fd = quiet_fd();
	pthread_t t;

	if (!pthread_create(&t, NULL, thread_start, &fd))
		pthread_join(t, NULL);
}

static NO_FP void on_signal(int sig)
{
	chain_a(quiet_fd());
	(void)sig;
	KEEP;
}

static NO_FP void interrupted(void)
{
	raise(SIGUSR1);
	KEEP;
}

static void child_signal(void)
{
	signal(SIGUSR1, on_signal);
	interrupted();
}

static void child_other_stack(void)
{
	static char room[65536];
	stack_t st = { .ss_sp = room, .ss_size = sizeof(room) };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	sigaltstack(&st, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	interrupted();
}

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* On the CPU all the time, in many functions of libc. */
static void child_busy(void)
{
	static char text[4096];
	int v[500];

	for (unsigned int i = 0;; i++) {
		for (unsigned int j = 0; j < 500; j++)
			v[j] = (int)(j * 7919 + i) % 1000;
		qsort(v, 500, sizeof(v[0]), by_value);
		snprintf(text, sizeof(text), "%d %s %.3f", v[3], "text", (double)i / 7);
		free(strdup(text));
		strtod(text, NULL);
	}
}

static __attribute__((noinline, noclone)) pid_t start_child(void (*body)(void))
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		body();
	_exit(0);
}

static void stop_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The last started thread of @pid, once there are @cnt and it sleeps. */
static pid_t sleeping_thread(pid_t pid, size_t cnt)
{
	pid_t tids[8], last = 0;
	size_t n = 0;

	for (int i = 0; i < 5000 && n < cnt; i++) {
		n = thread_list(pid, tids, 8);
		usleep(1000);
	}
	cr_assert_geq(n, cnt);
	for (size_t i = 0; i < n; i++)
		last = CC_MAX(last, tids[i]);
	cr_assert_eq(wait_sleeping(pid, last), 0);
	return last;
}

static void expect_chain(struct look *l, const struct unwind_out *o)
{
	int c = find_frame(l, o, 0, "chain_c");
	int a = find_frame(l, o, 0, "chain_a");

	cr_assert_gt(c, 0, "chain_c is the caller of read");
	cr_assert_eq(a, c + 7, "six times chain_b between");
	for (int i = c + 1; i < a; i++)
		cr_expect_eq(find_frame(l, o, (unsigned int)i, "chain_b"), i);
}

static void expect_same(const struct unwind_out *a, const struct unwind_out *b)
{
	cr_expect_eq(a->cnt, b->cnt, "%u frames, libunwind has %u", a->cnt, b->cnt);
	for (unsigned int i = 0; i < a->cnt && i < b->cnt; i++)
		cr_expect_eq(a->ip[i], b->ip[i], "frame %u", i);
	cr_expect_eq(a->end, b->end);
}

Test(symbol_unwind, main_thread_has_its_chain)
{
	pid_t pid = start_child(child_main_thread), tid = sleeping_thread(pid, 1);
	struct unwind_out o, judge;
	struct look l;

	look_init(&l, pid);
	cr_assert_eq(snap_take(pid, tid, CC_SNAP_MAX, l.snap), 0);
	snap_release(tid);
	look_unwind(&l, l.rows, &o);
	look_unwind(&l, l.judge, &judge);
	stop_child(pid);
	expect_chain(&l, &o);
	cr_expect_gt(find_frame(&l, &o, 0, "start_child"), 8);
	cr_expect_eq(o.end, UNWIND_START);
	cr_expect_not(o.guessed);
	expect_same(&o, &judge);
	cr_expect_eq(l.no_rule, 0, "the kernel side can follow it");
	look_done(&l);
}

Test(symbol_unwind, second_thread_has_its_chain)
{
	pid_t pid = start_child(child_second_thread), tid = sleeping_thread(pid, 2);
	struct unwind_out o, judge;
	struct look l;

	look_init(&l, pid);
	cr_assert_eq(snap_take(pid, tid, 8192, l.snap), 0);
	snap_release(tid);
	look_unwind(&l, l.rows, &o);
	look_unwind(&l, l.judge, &judge);
	stop_child(pid);
	expect_chain(&l, &o);
	cr_expect_gt(find_frame(&l, &o, 0, "thread_start"), 8);
	cr_expect_eq(o.end, UNWIND_START);
	expect_same(&o, &judge);
	cr_expect_eq(l.no_rule, 0, "the kernel side can follow it");
	look_done(&l);
}

Test(symbol_unwind, signal_frame_is_crossed)
{
	pid_t pid = start_child(child_signal), tid = sleeping_thread(pid, 1);
	struct unwind_out o;
	struct look l;
	int handler, body;

	look_init(&l, pid);
	cr_assert_eq(snap_take(pid, tid, CC_SNAP_MAX, l.snap), 0);
	snap_release(tid);
	look_unwind(&l, l.rows, &o);
	stop_child(pid);
	expect_chain(&l, &o);
	handler = find_frame(&l, &o, 0, "on_signal");
	body = find_frame(&l, &o, 0, "interrupted");
	cr_expect_gt(handler, 0);
	cr_expect_gt(body, handler);
	cr_expect_geq(find_frame(&l, &o, 0, "start_child"), body);
	cr_expect_eq(o.end, UNWIND_START);
	cr_expect_eq(l.no_rule, 0, "the kernel side can follow it");
	look_done(&l);
}

/* The handler's stack is elsewhere, and the one below it was not taken: say so. */
Test(symbol_unwind, other_stack_is_incomplete)
{
	pid_t pid = start_child(child_other_stack), tid = sleeping_thread(pid, 1);
	struct unwind_out o;
	struct look l;

	look_init(&l, pid);
	cr_assert_eq(snap_take(pid, tid, 8192, l.snap), 0);
	snap_release(tid);
	look_unwind(&l, l.rows, &o);
	stop_child(pid);
	expect_chain(&l, &o);
	cr_expect_gt(find_frame(&l, &o, 0, "on_signal"), 0);
	cr_expect_neq(o.end, UNWIND_START);
	look_done(&l);
}

Test(symbol_unwind, few_bytes_are_incomplete)
{
	pid_t pid = start_child(child_main_thread), tid = sleeping_thread(pid, 1);
	struct unwind_out all, o;
	struct look l;

	look_init(&l, pid);
	cr_assert_eq(snap_take(pid, tid, CC_SNAP_MAX, l.snap), 0);
	snap_release(tid);
	look_unwind(&l, l.rows, &all);
	for (uint32_t bytes = 0; bytes < 2048; bytes += 8) {
		l.snap->byte_cnt = bytes;
		look_unwind(&l, l.rows, &o);
		cr_assert_eq(o.end, UNWIND_CUT, "%u bytes", bytes);
		cr_assert_lt(o.cnt, all.cnt);
		cr_assert_eq(memcmp(o.ip, all.ip, o.cnt * sizeof(o.ip[0])), 0);
	}
	stop_child(pid);
	look_done(&l);
}

static int never(void *arg CC_UNUSED) { return 0; }

/* A thread that has not run yet, and the one that makes it, stand where glibc has no CFI. */
Test(symbol_unwind, new_thread)
{
	struct cc_rec_snap *s;
	struct unwind_out o;
	struct look l;
	const uint8_t *p = dlsym(RTLD_DEFAULT, "clone"), *fn = (const uint8_t *)never;
	Dl_info info;
	size_t found = 0;

	look_init(&l, getpid());
	s = l.snap;
	memset(s, 0, sizeof(*s));
	cr_assert_neq(dladdr(p, &info), 0);
	/* clone3 lies beside clone and is not exported: look for their system calls */
	for (const uint8_t *at = p - 4096; at < p + 4096; at++) {
		if (at[0] != 0x0f || at[1] != 0x05)
			continue;
		s->ip = (uintptr_t)(at + 2);
		s->sp = (uintptr_t)fn;
		s->regs[0] = 0;
		look_unwind(&l, l.rows, &o);
		if (o.cnt != 1 || o.end != UNWIND_START)
			continue;
		found++;
		s->regs[0] = 5; /* the maker: its caller is on the stack */
		look_unwind(&l, l.rows, &o);
		cr_expect_neq(o.end, UNWIND_START);
	}
	cr_expect_geq(found, 1);
	cr_expect_leq(found, 3, "only clone, clone3 and vfork are like this");
	look_done(&l);
}

/* Anywhere in a function, between any two instructions. */
Test(symbol_unwind, on_cpu_as_libunwind, .timeout = 60)
{
	pid_t pid = start_child(child_busy);
	unsigned int same = 0, full = 0, total = 300;
	struct look l;

	usleep(20000);
	look_init(&l, pid);
	for (unsigned int i = 0; i < total; i++) {
		struct unwind_out o, judge;

		usleep(500 + i);
		cr_assert_eq(snap_take(pid, pid, CC_SNAP_MAX, l.snap), 0);
		snap_release(pid);
		look_unwind(&l, l.rows, &o);
		look_unwind(&l, l.judge, &judge);
		full += o.end == UNWIND_START && !o.guessed;
		same += o.cnt == judge.cnt && !memcmp(o.ip, judge.ip, o.cnt * sizeof(o.ip[0]));
	}
	stop_child(pid);
	cr_log_info("on the CPU: %u of %u as libunwind, %u complete", same, total, full);
	cr_expect_geq(same, total * 99 / 100);
	cr_expect_geq(full, total * 99 / 100);
	cr_expect_leq(l.no_rule, total / 50, "%u", l.no_rule);
	look_done(&l);
}

/* Registers and stack may hold anything. */
Test(symbol_unwind, garbage_ends)
{
	struct unwind_out o;
	struct look l;
	unsigned int seed = 4711;

	look_init(&l, getpid());
	for (int i = 0; i < 3000; i++) {
		struct cc_rec_snap *s = l.snap;
		const struct mapping *p = &l.maps.v[(unsigned int)rand_r(&seed) % l.maps.cnt];

		memset(s, 0, sizeof(*s));
		s->byte_cnt = 1024;
		for (int j = 0; j < 128; j++)
			s->data[j] =
				rand_r(&seed) % 4
					? p->start + (unsigned int)rand_r(&seed) % 65536
					: 0x7ff000000000ull + (unsigned int)rand_r(&seed) % 1024;
		s->sp = 0x7ff000000000;
		s->bp = 0x7ff000000000 + (unsigned int)rand_r(&seed) % 1024;
		s->ip = p->start + (unsigned int)rand_r(&seed) % 65536;
		look_unwind(&l, l.rows, &o);
		cr_assert_leq(o.cnt, CC_STACK_MAX);
		cr_assert_lt(o.end, UNWIND_END_CNT);
	}
	look_done(&l);
}
