/* SPDX-License-Identifier: Apache-2.0 */
/* Code that changes under way: a stack is read, and named, as things were when it was taken. */
#include "decode.h"
#include "procs.h"
#include "resolver.h"
#include "symbol_util.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACE ((uint8_t *)0x7e0000000000)
#define CODE (16 * 4096)
#define CODE_AT (64 * 4096) /* in the code of both */
#define OUT_MAX 64

static const char *const files[] = { "/proc/self/exe", "/lib/x86_64-linux-gnu/libc.so.6" };

struct kernel {
	uint32_t change;
	struct cc_layout layout;
};

static void on_layout(void *ctx, uint32_t tgid CC_UNUSED, const struct cc_layout *l)
{
	((struct kernel *)ctx)->layout = *l;
}

static void on_rule(void *ctx CC_UNUSED, const struct cc_rule_key *k CC_UNUSED,
		    const struct cc_rule *r CC_UNUSED)
{
}

static void on_forget(void *ctx CC_UNUSED, uint64_t key CC_UNUSED) {}

static uint32_t on_change(void *ctx, uint32_t tgid CC_UNUSED)
{
	return ((const struct kernel *)ctx)->change;
}

struct test {
	struct kernel kernel;
	struct resolver *r;
	pid_t pid; /* has one of the files at PLACE */
	int to, from;
	struct { /* told last */
		unsigned int stacks;
		uint64_t key;
		uint32_t gen;
		uint64_t name_gen, module_gen;
		char module[64];
	} told;
};

static int collect(void *ctx, const struct cc_rec *rec, size_t len CC_UNUSED)
{
	const struct cc_rec_module *m = (const void *)rec;
	struct test *t = ctx;
	const char *slash;

	switch (rec->kind) {
	case CC_REC_STACK:
		t->told.stacks++;
		t->told.key = ((const struct cc_rec_stack *)rec)->key;
		t->told.gen = ((const struct cc_rec_stack *)rec)->gen;
		break;
	case CC_REC_NAME:
		t->told.name_gen = ((const struct cc_rec_name *)rec)->id2;
		break;
	case CC_REC_MODULE:
		slash = memrchr(m->path, '/', m->path_len);
		snprintf(t->told.module, sizeof(t->told.module), "%.*s",
			 (int)(m->path + m->path_len - slash - 1), slash + 1);
		t->told.module_gen = cc_module_gen(m);
		break;
	}
	return 0;
}

static void map_code(int i)
{
	int fd = open(files[i], O_RDONLY);

	if (fd < 0 ||
	    mmap(PLACE, CODE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, CODE_AT) != PLACE)
		_exit(1);
	close(fd);
}

static void child(int from, int to)
{
	char c;

	map_code(0);
	do { /* a file's number, or 2: nothing */
		if (write(to, "", 1) != 1 || read(from, &c, 1) != 1)
			_exit(0);
		munmap(PLACE, CODE);
		if (c < 2)
			map_code(c);
	} while (1);
}

static void swap(struct test *t, char what)
{
	char c;

	cr_assert_eq(write(t->to, &what, 1), 1);
	cr_assert_eq(read(t->from, &c, 1), 1);
}

static void test_init(struct test *t)
{
	const struct cc_rule_cache cache = { .layout = on_layout,
					     .rule = on_rule,
					     .forget = on_forget,
					     .change = on_change,
					     .ctx = &t->kernel };
	const struct resolver_opts ro = { .names = true, .rules = &cache };
	int down[2], up[2];
	char c;

	*t = (struct test){ .kernel.change = 1 };
	cr_assert_eq(pipe(down) | pipe(up), 0);
	t->pid = fork();
	if (!t->pid) {
		close(down[1]);
		child(down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	t->to = down[1];
	t->from = up[0];
	cr_assert_eq(read(t->from, &c, 1), 1);
	cr_assert_eq(resolver_new(&ro, &t->r), 0);
}

static void test_done(struct test *t)
{
	resolver_free(t->r);
	close(t->to);
	waitpid(t->pid, NULL, 0);
}

/* A stack of one frame in the code that was at PLACE after @change changes. */
static void take_at(struct test *t, uint32_t change, uint64_t layout)
{
	struct cc_rec_snap s = { .h = { .size = sizeof(s), .kind = CC_REC_SNAP, .ts = 5000 },
				 .tid = 1,
				 .owner_tid = 1,
				 .owner_tgid = (uint32_t)t->pid,
				 .ip = (uintptr_t)PLACE + 64,
				 .sp = 0x7fff00000000,
				 .change = change,
				 .layout = layout,
				 .code_pages = t->kernel.layout.code_pages };

	memset(&t->told, 0, sizeof(t->told));
	cr_assert_eq(resolver_feed(t->r, &s.h, s.h.size, collect, t), 0);
}

static uint64_t lost(const struct test *t)
{
	struct resolver_health h;

	resolver_health(t->r, &h);
	return h.code_changed;
}

/* One file at a place, then another: each stack is named by its own. */
Test(symbol_swap, names_of_both)
{
	struct test t;
	uint64_t first;

	test_init(&t);
	take_at(&t, 1, 0);
	cr_assert_eq(t.told.stacks, 1);
	cr_expect_eq(t.told.gen, 0);
	cr_expect_eq(t.told.name_gen, 0);
	cr_expect_neq(strcmp(t.told.module, "libc.so.6"), 0);
	first = t.told.key;
	take_at(&t, 1, 0);
	cr_expect_eq(t.told.stacks, 0, "it is known");
	swap(&t, 1);
	t.kernel.change = 3;
	take_at(&t, 3, 0);
	cr_assert_eq(t.told.stacks, 1);
	cr_expect_neq(t.told.key, first);
	cr_expect_gt(t.told.gen, 0);
	cr_expect_eq(t.told.name_gen, t.told.gen);
	cr_expect_eq(t.told.module_gen, t.told.gen);
	cr_expect_str_eq(t.told.module, "libc.so.6");
	/* one of before that comes late is the one that was told before */
	take_at(&t, 1, 0);
	cr_expect_eq(t.told.stacks, 0);
	cr_expect_eq(lost(&t), 0);
	test_done(&t);
}

/* It was swapped after its mappings were read, and before its file was opened. */
Test(symbol_swap, the_file_is_not_the_next_one)
{
	struct file_cache *c;
	struct mapping *p;
	struct maps m;
	struct test t;
	bool changed;

	test_init(&t);
	cr_assert_eq(file_cache_new(&c), 0);
	for (int i = 0; i < 2; i++) {
		maps_init(&m, (uint32_t)t.pid);
		cr_assert_eq(maps_refresh(&m, &changed), 0);
		p = maps_find(&m, (uintptr_t)PLACE);
		cr_assert_not_null(p);
		if (!i)
			swap(&t, 1);
		cr_expect_eq(maps_file(&m, p, c) != NULL, i, "%d", i);
		maps_done(&m);
	}
	file_cache_free(c);
	test_done(&t);
}

/* It was unloaded before anybody saw what it was: what is there now is not it. */
Test(symbol_swap, code_never_seen_has_no_name)
{
	struct test t;

	test_init(&t);
	swap(&t, 2);
	take_at(&t, 1, 0);
	swap(&t, 1);
	t.kernel.change = 4;
	take_at(&t, 4, 0);
	cr_expect_str_eq(t.told.module, "libc.so.6");
	take_at(&t, 2, 0); /* the program's own, for a moment */
	cr_expect_eq(t.told.stacks, 0);
	cr_expect_eq(lost(&t), 1);
	take_at(&t, 5, 0); /* newer than what can be read */
	cr_expect_eq(t.told.stacks, 0);
	cr_expect_eq(lost(&t), 2);
	test_done(&t);
}

/* What was read before and after is the same, and what was there in between is not known. */
Test(symbol_swap, equal_ones_with_changes_in_between)
{
	struct test t;

	test_init(&t);
	take_at(&t, 1, 0);
	swap(&t, 1); /* and nobody looks */
	swap(&t, 0);
	t.kernel.change = 4;
	take_at(&t, 3, 0);
	cr_expect_eq(lost(&t), 1);
	take_at(&t, 4, 0);
	take_at(&t, 1, 0);
	cr_expect_eq(lost(&t), 1);
	t.kernel.change = 5;
	take_at(&t, 5, 0);
	take_at(&t, 4, 0);
	cr_expect_eq(lost(&t), 1);
	test_done(&t);
}

/* While they are read, something changes: they are of no one time. */
static uint32_t restless(void *ctx, uint32_t tgid CC_UNUSED)
{
	return ++((struct kernel *)ctx)->change;
}

Test(symbol_swap, mappings_that_change_while_they_are_read)
{
	struct kernel k = { 0 };
	const struct cc_rule_cache cache = { .change = restless, .ctx = &k };
	struct cc_rec_snap s = { .owner_tgid = (uint32_t)getpid() };
	struct procs *p;

	cr_assert_eq(procs_new(&cache, &p), 0);
	s.change = 1;
	cr_expect_null(procs_maps(p, procs_get(p, s.owner_tgid), &s));
	procs_free(p);
}

/* What the kernel unwound is named by the layout it unwound in. */
Test(symbol_swap, chains_of_before)
{
	union {
		struct cc_rec_chain c;
		__u64 room[sizeof(struct cc_rec_chain) / 8 + 1];
	} b = { 0 };
	struct cc_layout first;
	struct test t;

	test_init(&t);
	take_at(&t, 1, 0);
	t.kernel.layout.code_pages = 0;
	b.c = (struct cc_rec_chain){ .h = { .size = sizeof(b),
					    .kind = CC_REC_CHAIN,
					    .flags = CC_ST_COMPLETE,
					    .ts = 5000 },
				     .tid = 1,
				     .owner_tgid = (uint32_t)t.pid,
				     .ucnt = 1,
				     .layout = 12345,
				     .ukey = 77 };
	b.c.ip[0] = (uintptr_t)PLACE + 128;
	memset(&t.told, 0, sizeof(t.told));
	cr_assert_eq(resolver_feed(t.r, &b.c.h, sizeof(b), collect, &t), 0);
	cr_expect_eq(t.told.stacks, 0, "of a layout that nobody knows");
	first = t.kernel.layout;
	cr_assert_neq(first.id, 0, "it is told the one of now");
	swap(&t, 1);
	t.kernel.change = 3;
	take_at(&t, 3, 0);
	cr_expect_str_eq(t.told.module, "libc.so.6");
	b.c.layout = first.id;
	memset(&t.told, 0, sizeof(t.told));
	cr_assert_eq(resolver_feed(t.r, &b.c.h, sizeof(b), collect, &t), 0);
	cr_expect_eq(t.told.stacks, 1);
	cr_expect_eq(t.told.gen, 0);
	cr_expect_eq(t.told.name_gen, 0);
	test_done(&t);
}

/* The number of a process comes again: nothing that was told of the other one is meant. */
Test(symbol_swap, numbers_of_processes_come_again)
{
	uint32_t self = (uint32_t)getpid(), first;
	struct procs *p;

	cr_assert_eq(procs_new(NULL, &p), 0);
	cr_expect_eq(procs_get(p, self)->first_gen, 0);
	cr_expect_eq(procs_get(p, (uint32_t)getppid())->first_gen, 0);
	procs_reborn(p, self, 1);
	first = procs_get(p, self)->first_gen;
	cr_expect_gt(first, 0);
	procs_exited(p, self);
	for (int i = 0; i < 3; i++)
		procs_tick(p);
	cr_expect_gt(procs_get(p, self)->first_gen, first);
	procs_free(p);
}

/* ---- since when -------------------------------------------------------------------------------
 */

static struct maps_news renew(struct maps *m, const char *text, uint32_t gen)
{
	struct maps_news n = { .gen = gen };

	cr_assert_eq(maps_renew_by(m, text, strlen(text), &n), 0);
	maps_done(&n.old);
	return n;
}

Test(symbol_swap, since)
{
	struct maps m;

	maps_init(&m, 1);
	cr_expect(renew(&m,
			"1000-3000 r-xp 00001000 08:01 5 /a\n5000-6000 r-xp 00000000 00:00 0 \n"
			"9000-a000 r-xp 00000000 08:01 6 /b\n",
			0)
			  .fresh);
	cr_expect(!renew(&m,
			 "1000-2000 r-xp 00001000 08:01 5 /a\n2000-4000 r-xp 00002000 08:01 5 /a\n"
			 "5000-8000 r-xp 00000000 00:00 0 \n9000-a000 r-xp 00000000 08:01 6 /b\n",
			 1)
			   .fresh,
		  "split and grown");
	for (size_t i = 0; i < m.cnt; i++)
		cr_expect_eq(m.v[i].since, 0);
	cr_expect(renew(&m,
			"1000-2000 r-xp 00003000 08:01 5 /a\n5000-8000 r-xp 00000000 00:00 0 \n"
			"9000-a000 r-xp 00000000 08:01 7 /b\nb000-c000 r-xp 00000000 08:01 8 /c\n",
			2)
			  .fresh);
	cr_expect_eq(maps_find(&m, 0x1000)->since, 2, "another part of the file");
	cr_expect_eq(maps_find(&m, 0x5000)->since, 0, "a JIT's own business");
	cr_expect_eq(maps_find(&m, 0x9000)->since, 2, "another file of that name");
	cr_expect_eq(maps_find(&m, 0xb000)->since, 2, "nothing was there");
	cr_expect(renew(&m, "1000-9800 r-xp 00003000 08:01 5 /a\n", 3).fresh);
	cr_expect_eq(maps_find(&m, 0x1000)->since, 3, "it lies where others were, too");
	maps_done(&m);
}

/* A JIT puts other code where some was. */
Test(symbol_swap, jit_code_is_replaced)
{
	char path[64];
	const char *name;
	uint64_t off;
	struct perf_map *m;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	FILE *f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs("1000 100 first\n2000 100 second\n", f);
	fflush(f);
	cr_assert_eq(perf_map_new((uint32_t)getpid(), &m), 0);
	cr_expect(!perf_map_renew(m, CC_S(1), 5));
	cr_expect_eq(perf_map_find(m, 0x1004, CC_S(1), &name, &off), 0);
	fputs("2000 100 third\n1080 20 first\n", f); /* nobody asked for it; the same */
	fflush(f);
	cr_expect(!perf_map_renew(m, CC_S(3), 6));
	fputs("1080 100 fourth\n", f);
	fflush(f);
	cr_expect(!perf_map_renew(m, CC_S(3), 7), "too soon");
	cr_expect(perf_map_renew(m, CC_S(5), 8));
	cr_expect_eq(perf_map_since(m, 0x1004), 0);
	cr_expect_eq(perf_map_since(m, 0x1084), 8);
	cr_expect_eq(perf_map_find(m, 0x1084, CC_S(5), &name, &off), 0);
	cr_expect_str_eq(name, "fourth");
	cr_expect(!perf_map_renew(m, CC_S(7), 9), "once");
	for (int i = 1; i < 6000; i++) /* so many that its end is not searched for among them */
		fprintf(f, "%x 1 tiny\n", 0x2000 + i * 0x100);
	fputs("2000 600000 huge\n", f);
	fflush(f);
	cr_expect(!perf_map_renew(m, CC_S(9), 10), "what was told is as it was");
	cr_expect_eq(perf_map_find(m, 0x2004, CC_S(9), &name, &off), 0);
	fputs("10 1 more\n", f);
	fflush(f);
	cr_expect(!perf_map_renew(m, CC_S(11), 11));
	fclose(f);
	/* another file, as of a program that was started anew */
	unlink(path);
	f = fopen(path, "w");
	fputs("1000 100 other\n", f);
	fclose(f);
	cr_expect(perf_map_renew(m, CC_S(13), 12));
	cr_expect_eq(perf_map_since(m, 0x1004), 12);
	perf_map_free(m);
	unlink(path);
}
