/* SPDX-License-Identifier: Apache-2.0 */
/* A running Go program: its layout is judged, and found, by its own memory; its stacks are whole.
 */
#include "elf_file.h"
#include "go_fixture.h"
#include "go_tab.h"
#include "resolver.h"
#include "symbol_util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES 64
#define READERS 3 /* threads of the program that sit in a system call */

TestSuite(go_live, .timeout = 60);

Test(go_live, right_layout_is_confirmed)
{
	go_needed();
	for (int i = 0; i < GO_KINDS; i++) {
		struct go_bin *b = go_open(go_kinds[i]);
		enum go_found by = b->t.layout_by;
		struct go_proc p = go_start(go_kinds[i]);
		struct go_sample s[SAMPLES];
		struct go_verdict v;
		size_t n = go_sample(&p, b->t.tls_off, s, SAMPLES);

		cr_expect_geq(n, READERS + 1);
		cr_expect_eq(go_bin_judge(b, p.pid, s, n, &v), 0, "%s: %s", go_kinds[i], v.why);
		cr_expect_geq(v.right, READERS, "%s", go_kinds[i]);
		cr_expect_eq(v.wrong, 0, "%s: %s", go_kinds[i], v.why);
		cr_expect_eq(b->t.layout_by, by);
		go_stop(&p);
		go_bin_free(b);
	}
}

/* What a thread shows of g and m is enough to find where they keep things. */
Test(go_live, layout_is_derived)
{
	go_needed();
	for (int i = 0; i < GO_KINDS; i++) {
		struct go_bin *b = go_open(go_kinds[i]);
		struct go_layout right = b->t.layout, *l = &b->t.layout;
		struct go_proc p = go_start(go_kinds[i]);
		struct go_sample s[SAMPLES];
		struct go_verdict v;
		size_t n = go_sample(&p, b->t.tls_off, s, SAMPLES);

		b->t.layout_by = GO_FOUND_NONE;
		memset(l, 0xff, sizeof(*l));
		cr_expect_eq(go_bin_judge(b, p.pid, s, n, &v), 0, "%s: %s", go_kinds[i], v.why);
		cr_expect_eq(b->t.layout_by, GO_FOUND_LIVE);
		/* a goroutine that runs does not show where it keeps this */
		cr_expect(l->g_sched_bp == right.g_sched_bp || l->g_sched_bp == GO_NO_FIELD,
			  "%s: %u", go_kinds[i], l->g_sched_bp);
		l->g_sched_bp = right.g_sched_bp;
		/* all others of g and m; channels are not seen */
		cr_expect_arr_eq(l, &right, offsetof(struct go_layout, sudog_g), "%s", go_kinds[i]);
		cr_expect_eq(l->sudog_elem, GO_NO_FIELD);
		go_stop(&p);
		go_bin_free(b);
	}
}

Test(go_live, wrong_layout_is_refused_and_replaced)
{
	/* each moved by a word: none of them may pass for right */
	static const size_t fields[] = {
		offsetof(struct go_layout, m_procid), offsetof(struct go_layout, m_curg),
		offsetof(struct go_layout, g_goid),   offsetof(struct go_layout, g_startpc),
		offsetof(struct go_layout, g_m),
	};

	go_needed();
	struct go_bin *b = go_open("strip");
	struct go_layout right = b->t.layout;
	struct go_proc p = go_start("strip");
	struct go_sample s[SAMPLES];
	struct go_verdict v;
	size_t n = go_sample(&p, b->t.tls_off, s, SAMPLES);

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct go_tab *tab;
		struct go_live live = { .read = go_live_read_process, .ctx = &p.pid, .t = &b->t };
		struct go_layout wrong = right;

		*(uint32_t *)((char *)&wrong + fields[i]) += 8;
		cr_assert_eq(elf_file_go(b->file, true, &tab), 0);
		live.tab = tab;
		cr_expect_neq(go_live_check(&live, &wrong, s, n, &v), 0, "field at %zu", fields[i]);
		cr_expect_gt(strlen(v.why), 0);
		b->t.layout = wrong;
		b->t.layout_by = GO_FOUND_TABLE;
		if (fields[i] == offsetof(struct go_layout, g_m))
			continue; /* nothing is read then, so nothing is wrong: it comes again */
		cr_expect_eq(go_bin_judge(b, p.pid, s, n, &v), 0, "field at %zu: %s", fields[i],
			     v.why);
		cr_expect_eq(b->t.layout_by, GO_FOUND_LIVE);
		cr_expect_eq(b->t.layout.m_procid, right.m_procid);
		cr_expect_eq(b->t.layout.m_curg, right.m_curg);
	}
	/* too little seen is no verdict */
	b->t.layout = right;
	b->t.layout_by = GO_FOUND_TABLE;
	cr_expect_eq(go_bin_judge(b, p.pid, s, 0, &v), -EAGAIN);
	cr_expect_gt(strlen(v.why), 0);
	go_stop(&p);
	cr_expect_lt(go_bin_judge(b, p.pid, s, n, &v), 0);
	cr_expect_gt(strlen(v.why), 0);
	go_bin_free(b);
}

struct walk { /* stacks of a program's threads */
	struct file_cache *files;
	struct unwinder *u;
	struct maps maps;
	struct go_bin *b;
	uint64_t bias;
};

static void walk_init(struct walk *w, const char *kind, const struct go_proc *p)
{
	bool changed;
	uint64_t vaddr;

	cr_assert_eq(file_cache_new(&w->files), 0);
	cr_assert_eq(unwind_rows_new(w->files, &w->u), 0);
	maps_init(&w->maps, (uint32_t)p->pid);
	cr_assert_eq(maps_refresh(&w->maps, &changed), 0);
	w->b = go_open(kind);
	for (size_t i = 0; i < w->maps.cnt; i++) {
		struct mapping *m = &w->maps.v[i];

		if (m->exec && m->ino == w->b->file->ino &&
		    !maps_vaddr(m, w->b->file, m->start, &vaddr))
			w->bias = m->start - vaddr;
	}
}

static void walk_done(struct walk *w)
{
	unwinder_free(w->u);
	maps_done(&w->maps);
	file_cache_free(w->files);
	go_bin_free(w->b);
}

static void name_at(struct walk *w, uint64_t ip, char *ret, size_t cap)
{
	struct go_tab *tab;
	struct go_func fn;

	ret[0] = '\0';
	cr_assert_eq(elf_file_go(w->b->file, true, &tab), 0);
	if (go_tab_func(tab, ip - w->bias, &fn))
		go_tab_name(tab, fn.name, ret, cap);
}

/* Unwinds thread @tid, and leaves it stopped. */
static void unwind(struct walk *w, pid_t tid, bool stopped, struct unwind_out *out)
{
	static _Alignas(8) uint8_t buf[SNAP_BUF_BYTES];
	struct cc_rec_snap *snap = (void *)buf;
	struct unwind_in in;

	cr_assert_eq(stopped ? snap_again((pid_t)w->maps.tgid, tid, CC_SNAP_MAX, snap)
			     : snap_take((pid_t)w->maps.tgid, tid, CC_SNAP_MAX, snap),
		     0);
	unwind_in_from_snap(snap, &in);
	w->u->ops->unwind(w->u, &w->maps, &in, out);
}

static bool stack_has(struct walk *w, const struct unwind_out *o, const char *name)
{
	char buf[GO_NAME_MAX];

	for (unsigned int i = 0; i < o->cnt; i++) {
		name_at(w, o->ip[i] - (i > 0), buf, sizeof(buf));
		if (!strcmp(buf, name))
			return true;
	}
	return false;
}

Test(go_live, stacks_of_goroutines_are_whole)
{
	go_needed();
	for (int i = 0; i < GO_KINDS; i++) {
		struct go_proc p = go_start(go_kinds[i]);
		struct walk w = { 0 };
		pid_t tids[SAMPLES];
		size_t n = thread_list(p.pid, tids, SAMPLES);
		unsigned int handlers = 0;

		walk_init(&w, go_kinds[i], &p);
		for (size_t k = 0; k < n; k++) {
			struct unwind_out o;
			char last[GO_NAME_MAX];

			unwind(&w, tids[k], false, &o);
			name_at(&w, o.ip[o.cnt - 1] - (o.cnt > 1), last, sizeof(last));
			cr_expect_eq(o.end, UNWIND_START, "%s: a thread's stack ends (%d) at %s",
				     go_kinds[i], o.end, last);
			cr_expect_not(o.guessed, "%s", go_kinds[i]);
			if (stack_has(&w, &o, "main.handler")) {
				handlers++;
				cr_expect(!strncmp(last, "runtime.goexit", 14), "%s", last);
			}
		}
		cr_expect_eq(handlers, READERS, "%s", go_kinds[i]);
		go_stop(&p);
		walk_done(&w);
	}
}

static bool changes_stack(struct walk *w, uint64_t ip)
{
	struct go_tab *tab;
	struct go_func fn;

	cr_assert_eq(elf_file_go(w->b->file, true, &tab), 0);
	return go_tab_func(tab, ip - w->bias, &fn) && fn.flags & GO_FUNC_SP_WRITE;
}

#define STEPS 4000 /* at most */
#define WORK 200   /* of them in the program's own recursion are enough */

/* Lets @tid go on, by one instruction (PTRACE_SINGLESTEP) or to its next stop. Returns false if
 * that takes long: it gave its goroutine to another thread and sleeps. */
static bool go_on(pid_t tid, int how)
{
	int status;

	if (ptrace(how, tid, NULL, NULL))
		return false;
	for (int i = 0; i < 2000; i++) {
		if (waitpid(tid, &status, __WALL | WNOHANG) == tid)
			return WIFSTOPPED(status);
		if (i > 100)
			usleep(1000);
	}
	return false;
}

static uint64_t reg_of(pid_t tid, size_t off)
{
	return (uint64_t)ptrace(PTRACE_PEEKUSER, tid, off, NULL);
}

#define RIP offsetof(struct user_regs_struct, rip)

/* One instruction, but a call of the vDSO whole: it reads the kernel's clock again and again while
 * that ticks, and a slow reader never ends. */
static bool step(struct walk *w, pid_t tid)
{
	struct mapping *m;
	uint64_t back;
	bool ok;

	if (!go_on(tid, PTRACE_SINGLESTEP))
		return false;
	m = maps_find(&w->maps, reg_of(tid, RIP));
	if (!m || strcmp(maps_path(&w->maps, m), "[vdso]"))
		return true;
	/* it was called just now: stop it where it comes back to. Not by a changed instruction:
	 * other threads come there too */
	back = (uint64_t)ptrace(PTRACE_PEEKDATA, tid,
				reg_of(tid, offsetof(struct user_regs_struct, rsp)), NULL);
	ok = !ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, u_debugreg[0]), back) &&
	     !ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, u_debugreg[7]), 1);
	for (int i = 0; i < 8 && ok && reg_of(tid, RIP) != back; i++)
		ok = go_on(tid, PTRACE_CONT); /* a signal may come first */
	return !ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, u_debugreg[7]), 0) && ok;
}

/* The table tells every address: a thread that goes on instruction by instruction, out of a system
 * call, into calls, their stack checks, growing its stack, into the scheduler, has a whole stack,
 * or one that goes on on another one. */
Test(go_live, stacks_are_whole_at_every_instruction)
{
	struct go_proc p;
	struct walk w = { 0 };
	pid_t tids[SAMPLES], reader = 0;
	unsigned int steps = 0, whole = 0, guessed = 0, changes = 0, work = 0;

	go_needed();
	p = go_start("strip");
	walk_init(&w, "strip", &p);
	size_t n = thread_list(p.pid, tids, SAMPLES);

	/* the one reader that is stopped gets the byte: the others must not take it */
	for (size_t k = 0; k < n; k++) {
		struct unwind_out o;

		unwind(&w, tids[k], false, &o);
		if (stack_has(&w, &o, "main.handler"))
			reader = tids[k];
		else
			snap_release(tids[k]);
	}
	cr_assert_neq(reader, 0);
	cr_assert_eq(write(p.in, "x", 1), 1);
	usleep(100000); /* main gives it on; what it is not, the first steps wait for */
	for (unsigned int i = 0; i < STEPS && work < WORK; i++) {
		struct unwind_out o;

		if (!step(&w, reader))
			break;
		unwind(&w, reader, true, &o);
		steps++;
		whole += o.end == UNWIND_START;
		/* the one reason not to be whole: it goes on on another stack */
		changes += o.end == UNWIND_CUT && changes_stack(&w, o.ip[o.cnt - 1] - (o.cnt > 1));
		guessed += o.guessed;
		work += stack_has(&w, &o, "main.work");
	}
	cr_expect_gt(steps, 150);
	cr_expect_eq(guessed, 0);
	cr_expect_eq(whole + changes, steps, "%u whole, %u on two stacks", whole, changes);
	cr_expect_gt(whole, 50, "%u of %u", whole, steps);
	go_stop(&p);
	walk_done(&w);
}

struct told {
	char text[4096], place[4096];
	unsigned int cnt;
};

static int note_name(void *ctx, const struct cc_rec *rec, size_t len CC_UNUSED)
{
	const struct cc_rec_name *n = (const void *)rec;
	struct told *t = ctx;
	char text[4096];

	if (rec->kind != CC_REC_NAME || rec->aux != CC_NAME_FRAME)
		return 0;
	snprintf(text, sizeof(text), "%.*s", n->len[0], n->text);
	if (!strstr(text, "main.handler"))
		return 0;
	t->cnt++;
	snprintf(t->text, sizeof(t->text), "%s", text);
	snprintf(t->place, sizeof(t->place), "%.*s", n->len[1], n->text + n->len[0]);
	return 0;
}

/* One address, three calls: what was inlined into the function is told, each with its line. */
Test(go_live, frames_are_named_with_what_was_inlined)
{
	static _Alignas(8) uint8_t buf[SNAP_BUF_BYTES];
	struct resolver_opts o = { .names = true, .kallsyms = "/dev/null" };
	struct cc_rec_snap *snap = (void *)buf;
	struct resolver *r;
	struct told t = { .cnt = 0 };
	pid_t tids[SAMPLES];

	go_needed();
	struct go_proc p = go_start("strip");
	size_t n = thread_list(p.pid, tids, SAMPLES);

	cr_assert_eq(resolver_new(&o, &r), 0);
	for (size_t k = 0; k < n; k++) {
		cr_assert_eq(snap_take(p.pid, tids[k], CC_SNAP_MAX, snap), 0);
		snap->h.kind = CC_REC_SNAP;
		snap->h.aux = CC_SNAP_BLOCKED;
		snap->owner_tgid = (uint32_t)p.pid;
		snap->tid = (uint32_t)tids[k];
		cr_assert_eq(resolver_feed(r, &snap->h, snap->h.size, note_name, &t), 0);
	}
	cr_expect_eq(t.cnt, 1, "told %u times", t.cnt);
	cr_expect(!strncmp(t.text, "syscall.Read\nmain.readOne\nmain.handler+0x", 41), "%s",
		  t.text);
	cr_expect(strstr(t.place, "\nwaits-strip main.go:") &&
			  !strncmp(t.place, "waits-strip syscall_unix.go:", 28),
		  "%s", t.place);
	resolver_free(r);
	go_stop(&p);
}
