/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver: what comes out, in which order, with which keys. */
#include "resolver.h"
#include "symbol_util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

pthread_mutex_t resolver_test_mutex = PTHREAD_MUTEX_INITIALIZER;

#define OUT_MAX 4096

struct out { /* what came out */
	const struct cc_rec *v[OUT_MAX];
	size_t cnt;
	int fail; /* returned instead of 0 */
};

static int collect(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct out *o = ctx;

	if (o->fail)
		return o->fail;
	cr_assert_eq(rec->size, len);
	cr_assert_eq(len % 8, 0);
	cr_assert_lt(o->cnt, OUT_MAX);
	o->v[o->cnt++] = memcpy(malloc(len), rec, len);
	return 0;
}

static void out_clear(struct out *o)
{
	while (o->cnt)
		free((void *)o->v[--o->cnt]);
}

static char kallsyms_path[32];

static struct resolver *make(bool hidden)
{
	static const char shown[] =
		"ffffffff81000000 T schedule\nffffffff81001000 T futex_do_wait\n"
		"ffffffff81002000 T do_syscall_64\n"
		"ffffffff81010000 t bpf_prog_0123_sched_waking\t[bpf]\n"
		"ffffffff81020000 T __traceiter_sched_waking\n";
	static const char zeros[] = "0000000000000000 T schedule\n";
	struct resolver_opts o = { .names = true, .kallsyms = kallsyms_path };
	struct resolver *r = NULL;
	int fd = memfd_create("kallsyms", 0);

	snprintf(kallsyms_path, sizeof(kallsyms_path), "/proc/self/fd/%d", fd);
	cr_assert_gt(write(fd, hidden ? zeros : shown, strlen(hidden ? zeros : shown)), 0);
	cr_assert_eq(resolver_new(&o, &r), 0);
	return r;
}

static void feed(struct resolver *r, const void *rec, struct out *o)
{
	const struct cc_rec *h = rec;

	cr_assert_eq(resolver_feed(r, h, h->size, collect, o), 0);
}

/* A snapshot of this very function's caller, without a stack: only the ip can be told. */
static struct cc_rec_snap *snap_here(uint16_t what, uint32_t tid, uint32_t seq,
				     unsigned int kframes)
{
	struct cc_rec_snap *s = calloc(1, SNAP_BUF_BYTES);

	s->h.kind = CC_REC_SNAP;
	s->h.aux = what;
	s->h.ts = 5000;
	s->tid = tid;
	s->seq = seq;
	s->owner_tid = tid;
	s->owner_tgid = (uint32_t)getpid();
	s->ip = (uintptr_t)snap_take + 1;
	s->sp = 0x7fff00000000;
	s->kframe_cnt = kframes;
	for (unsigned int i = 0; i < kframes; i++)
		s->data[i] = 0xffffffff81000010 + i * 0x1000;
	s->h.size = (uint16_t)(sizeof(*s) + 8 * kframes);
	return s;
}

static struct cc_rec_extra extra_of(uint32_t tid, uint32_t seq)
{
	return (struct cc_rec_extra){
		.h = { .size = sizeof(struct cc_rec_extra), .kind = CC_REC_EXTRA, .ts = 6000 },
		.tid = tid,
		.seq = seq,
		.fd = -1
	};
}

static const char *program_name(void)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = '\0';
	return strrchr(path, '/') + 1;
}

static bool name_is(const struct cc_rec *rec, const char *text, const char *place)
{
	const struct cc_rec_name *n = (const void *)rec;

	return rec->kind == CC_REC_NAME && n->len[0] == strlen(text) &&
	       !memcmp(n->text, text, n->len[0]) && n->len[1] == strlen(place) &&
	       !memcmp(n->text + n->len[0], place, n->len[1]);
}

Test(symbol_resolver, order_and_keys)
{
	struct resolver *r = make(false);
	struct out o = { 0 };
	struct cc_rec_snap *s = snap_here(CC_SNAP_BLOCKED, 100, 7, 3);
	struct cc_rec_snap *w = snap_here(CC_SNAP_WAKER, 100, 7, 1);
	struct cc_rec_extra e = extra_of(100, 7), other = extra_of(100, 8);
	struct cc_rec_extra got;

	feed(r, s, &o);
	/* STACK, MODULE, NAME of the user stack, then STACK, MODULE, 3 NAMEs of the kernel's */
	cr_assert_eq(o.cnt, 8);
	const struct cc_rec_stack *u = (const void *)o.v[0], *k = (const void *)o.v[3];

	cr_expect_eq(u->h.kind, CC_REC_STACK);
	cr_expect_eq(u->tgid, (uint32_t)getpid());
	cr_expect_eq(u->ip[0], s->ip);
	cr_expect_not(u->h.flags & CC_ST_COMPLETE);
	cr_expect_neq(u->key, 0);
	cr_expect_eq(o.v[1]->kind, CC_REC_MODULE);
	cr_expect(name_is(o.v[2], "snap_take+0x1", program_name()));
	cr_expect_eq(k->h.kind, CC_REC_STACK);
	cr_expect_eq(k->h.flags, CC_ST_KERNEL | CC_ST_COMPLETE);
	cr_expect_eq(k->h.aux, 3);
	cr_expect_eq(o.v[4]->kind, CC_REC_MODULE);
	cr_expect(name_is(o.v[5], "schedule+0x10", "[k]"));
	cr_expect(name_is(o.v[6], "futex_do_wait+0x10", "[k]"));
	cr_expect(name_is(o.v[7], "do_syscall_64+0x10", "[k]"));

	feed(r, w, &o); /* the user stack is known, the kernel stack is new, its frame is not */
	cr_assert_eq(o.cnt, 9);
	cr_expect_eq(o.v[8]->kind, CC_REC_STACK);
	feed(r, &other, &o);
	feed(r, &e, &o);
	feed(r, &e, &o);
	memcpy(&got, o.v[9], sizeof(got));
	cr_expect_eq(got.ustack, 0, "another episode");
	memcpy(&got, o.v[10], sizeof(got));
	cr_expect_eq(got.ustack, u->key);
	cr_expect_eq(got.kstack, k->key);
	cr_expect_eq(got.waker_ustack, u->key);
	cr_expect_eq(got.waker_kstack, ((const struct cc_rec_stack *)o.v[8])->key);
	memcpy(&got, o.v[11], sizeof(got));
	cr_expect_eq(got.ustack, 0, "claimed once");
	free(s);
	free(w);
	out_clear(&o);
	resolver_free(r);
}

Test(symbol_resolver, own_probes_are_no_part_of_a_stack)
{
	struct resolver *r = make(false);
	struct out o = { 0 };
	struct cc_rec_snap *s = snap_here(CC_SNAP_BLOCKED, 1, 1, 5);

	s->owner_tgid = 0;
	s->data[0] = 0xffffffff81010010;
	s->data[1] = 0xffffffff90000000; /* a trampoline without a name */
	s->data[2] = 0xffffffff81020010;
	s->data[3] = 0xffffffff81001010;
	s->data[4] = 0xffffffff81002010;
	feed(r, s, &o);
	const struct cc_rec_stack *k = (const void *)o.v[0];

	cr_assert_eq(k->h.aux, 2);
	cr_expect_eq(k->ip[0], 0xffffffff81001010);
	cr_expect(name_is(o.v[2], "futex_do_wait+0x10", "[k]"));
	free(s);
	out_clear(&o);
	resolver_free(r);
}

Test(symbol_resolver, others_pass_unchanged)
{
	struct resolver *r = make(false);
	struct out o = { 0 };
	struct cc_rec_episode e = { .h = { .size = sizeof(e), .kind = CC_REC_EPISODE, .ts = 3 },
				    .tid = 9,
				    .lost = 77 };
	_Alignas(8) uint8_t longer[sizeof(struct cc_rec_extra) + 16] = { 0 };
	struct cc_rec *x = (struct cc_rec *)longer;
	struct cc_rec_tick t = { .h = { .size = sizeof(t), .kind = CC_REC_TICK, .ts = 9 } };

	*x = (struct cc_rec){ .size = sizeof(longer), .kind = CC_REC_EXTRA };
	feed(r, &e, &o);
	feed(r, x, &o);
	feed(r, &t, &o);
	cr_assert_eq(o.cnt, 5);
	cr_expect_eq(memcmp(o.v[0], &e, sizeof(e)), 0);
	cr_expect_eq(memcmp(o.v[1], longer, sizeof(longer)), 0);
	cr_expect_eq(o.v[2]->aux, CC_CNT_UNWOUND);
	cr_expect_eq(o.v[3]->aux, CC_CNT_UNWOUND_FULL);
	cr_expect_eq(memcmp(o.v[4], &t, sizeof(t)), 0);
	o.fail = -EIO;
	cr_expect_eq(resolver_feed(r, &e.h, sizeof(e), collect, &o), -EIO);
	out_clear(&o);
	resolver_free(r);
}

Test(symbol_resolver, damaged_snaps_are_counted)
{
	struct resolver *r = make(false);
	struct resolver_health h;
	struct out o = { 0 };
	struct cc_rec_snap *s = snap_here(CC_SNAP_BLOCKED, 1, 1, 0);

	s->kframe_cnt = CC_SNAP_KFRAMES + 1;
	feed(r, s, &o);
	s->kframe_cnt = 1; /* more than its size holds */
	feed(r, s, &o);
	s->kframe_cnt = 0;
	s->byte_cnt = UINT32_MAX;
	feed(r, s, &o);
	s->byte_cnt = 0;
	s->h.aux = 99;
	feed(r, s, &o);
	s->h.size = 24;
	feed(r, s, &o);
	resolver_health(r, &h);
	cr_expect_eq(h.damaged, 5);
	cr_expect_eq(o.cnt, 0);
	free(s);
	resolver_free(r);
}

Test(symbol_resolver, hidden_kernel_says_so_once)
{
	struct resolver *r = make(true);
	struct resolver_health h;
	struct out o = { 0 };
	struct cc_rec_snap *s = snap_here(CC_SNAP_BLOCKED, 1, 1, 2);
	unsigned int notes = 0;

	s->owner_tgid = 0;
	feed(r, s, &o);
	s->data[0]++;
	feed(r, s, &o);
	for (size_t i = 0; i < o.cnt; i++)
		notes += o.v[i]->kind == CC_REC_NAME && o.v[i]->aux == CC_NAME_NOTE;
	cr_expect_eq(notes, 1);
	cr_expect_eq(o.cnt, 4, "two stacks, a module, a note");
	resolver_health(r, &h);
	cr_expect(h.kernel_hidden);
	free(s);
	out_clear(&o);
	resolver_free(r);
}

Test(symbol_resolver, names_locks_and_files)
{
	struct resolver *r = make(false);
	struct out o = { 0 };
	struct cc_rec_open_task t = { .h = { .size = sizeof(t), .kind = CC_REC_OPEN_TASK },
				      .tid = 50,
				      .tgid = (uint32_t)getpid(),
				      .out = 1,
				      .seq = 3,
				      .uaddr = (uintptr_t)&resolver_test_mutex + 8 };
	struct cc_rec_snap *s = snap_here(CC_SNAP_BLOCKED, 51, 1, 0);
	struct cc_rec_extra e = extra_of(51, 1);
	char dir[] = "/tmp/cc_resolver_XXXXXX";
	struct stat st;
	int fd = mkstemp(dir);
	void *heap = malloc(64);

	t.fd = -1;
	feed(r, &t, &o);
	cr_assert_eq(o.cnt, 2);
	cr_expect(name_is(o.v[0], "resolver_test_mutex+0x8", program_name()));
	t.uaddr = (uintptr_t)heap;
	feed(r, &t, &o);
	cr_expect_eq(o.cnt, 3, "the heap has no names");

	cr_assert_eq(fstat(fd, &st), 0);
	e.fd = fd;
	e.fd_kind = CC_FD_FILE;
	e.fd_id = st.st_ino;
	e.fd_dev = (uint32_t)(major(st.st_dev) << 20 | minor(st.st_dev));
	feed(r, s, &o);
	out_clear(&o);
	feed(r, &e, &o);
	cr_assert_eq(o.cnt, 2);
	cr_expect(name_is(o.v[0], dir, ""));
	cr_expect_eq(((const struct cc_rec_name *)o.v[0])->id, st.st_ino);
	/* the number means another file by now: no name */
	s->seq = e.seq = 2;
	e.fd_id = st.st_ino + 1;
	feed(r, s, &o);
	out_clear(&o);
	feed(r, &e, &o);
	cr_expect_eq(o.cnt, 1);
	close(fd);
	unlink(dir);
	free(heap);
	free(s);
	out_clear(&o);
	resolver_free(r);
}

Test(symbol_resolver, exec_makes_names_new)
{
	struct resolver *r = make(false);
	struct out o = { 0 };
	struct cc_rec_snap *s = snap_here(CC_SNAP_BLOCKED, 1, 1, 0);
	struct cc_rec_task t = {
		.h = { .size = sizeof(t), .kind = CC_REC_TASK, .aux = CC_TASK_EXEC, .ts = 7000 },
		.tid = (uint32_t)getpid(),
		.tgid = (uint32_t)getpid()
	};

	feed(r, s, &o);
	cr_assert_eq(o.cnt, 3);
	feed(r, s, &o);
	cr_expect_eq(o.cnt, 3, "known");
	feed(r, &t, &o);
	feed(r, s, &o);
	cr_expect_eq(o.cnt, 4, "a stack of the program before says nothing now");
	s->h.ts = 8000;
	feed(r, s, &o);
	cr_assert_eq(o.cnt, 7, "told anew");
	cr_expect_eq(o.v[4]->kind, CC_REC_STACK);
	cr_expect_eq(o.v[6]->kind, CC_REC_NAME);
	free(s);
	out_clear(&o);
	resolver_free(r);
}

static int drop(void *ctx CC_UNUSED, const struct cc_rec *rec CC_UNUSED, size_t len CC_UNUSED)
{
	return 0;
}

Test(symbol_resolver, memory_is_bounded, .timeout = 60)
{
	struct resolver *r = make(false);
	struct resolver_health h;
	struct cc_rec_snap *s = snap_here(CC_SNAP_BLOCKED, 1, 1, 8);

	for (uint32_t i = 0; i < 600000; i++) {
		s->seq = i;
		s->tid = i % 1000;
		s->owner_tgid = 0;
		s->data[7] = 0xffffffff81000000 + i;
		cr_assert_eq(resolver_feed(r, &s->h, s->h.size, drop, NULL), 0);
	}
	resolver_health(r, &h);
	cr_expect_eq(h.stacks, 600000);
	cr_expect_lt(h.bytes, 16u << 20);
	cr_expect_gt(h.unclaimed, 500000);
	free(s);
	resolver_free(r);
}

/* ---- in a handler -----------------------------------------------------------------------------
 */

/* One function right behind another, interrupted at its first instruction. */
void resolver_trap(void);
#if defined(__x86_64__)
__asm__(".text\n.type resolver_no_trap, @function\nresolver_no_trap:\n.cfi_startproc\nret\n"
	".cfi_endproc\n.size resolver_no_trap, .-resolver_no_trap\n"
	".globl resolver_trap\n.type resolver_trap, @function\nresolver_trap:\n.cfi_startproc\n"
	"ud2\nret\n.cfi_endproc\n.size resolver_trap, .-resolver_trap\n");

static void wait_in_handler(int sig)
{
	(void)sig;
	for (;;)
		pause();
}

Test(symbol_resolver, what_a_handler_interrupted_is_named_by_where_it_stood, .timeout = 60)
{
	struct cc_rec_snap *s = calloc(1, SNAP_BUF_BYTES);
	struct resolver *r = make(false);
	struct out o = { 0 };
	unsigned int trap = 0, before = 0, called = 0;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGILL, wait_in_handler);
		resolver_trap();
		_exit(1);
	}
	cr_assert_eq(wait_sleeping(pid, pid), 0);
	cr_assert_eq(snap_take(pid, pid, CC_SNAP_MAX, s), 0);
	s->h.kind = CC_REC_SNAP;
	feed(r, s, &o);
	for (size_t i = 0; i < o.cnt; i++) {
		trap += name_is(o.v[i], "resolver_trap+0x0", program_name());
		before += name_is(o.v[i], "resolver_no_trap+0x1", program_name());
		called += name_is(o.v[i], "<signal handler called>", "libc.so.6") ||
			  name_is(o.v[i], "__restore_rt+0x0", "libc.so.6");
	}
	cr_expect_eq(trap, 1);
	cr_expect_eq(before, 0);
	cr_expect_eq(called, 1);
	snap_release(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	out_clear(&o);
	resolver_free(r);
	free(s);
}
#endif
