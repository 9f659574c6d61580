/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's cache of unwind rules, seen from user space: what it is taught, and what becomes of
 * the stacks it tells. */
#include "resolver.h"
#include "symbol_util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OUT_MAX 256
#define RULES_MAX 256
#define NO_FP __attribute__((noinline, noclone, optimize("omit-frame-pointer")))

struct kernel { /* what the cache was told */
	struct cc_layout layout;
	uint32_t tgid, change; /* as it would be counted */
	unsigned int layouts, forgotten;
	uint64_t forgot;
	struct cc_rule_key keys[RULES_MAX];
	struct cc_rule rules[RULES_MAX];
	unsigned int rule_cnt;
};

static void on_layout(void *ctx, uint32_t tgid, const struct cc_layout *l)
{
	struct kernel *k = ctx;

	k->layout = *l;
	k->tgid = tgid;
	k->layouts++;
}

static void on_rule(void *ctx, const struct cc_rule_key *key, const struct cc_rule *r)
{
	struct kernel *k = ctx;

	cr_assert_lt(k->rule_cnt, RULES_MAX);
	k->keys[k->rule_cnt] = *key;
	k->rules[k->rule_cnt++] = *r;
}

static void on_forget(void *ctx, uint64_t key)
{
	struct kernel *k = ctx;

	k->forgot = key;
	k->forgotten++;
}

static uint32_t on_change(void *ctx, uint32_t tgid CC_UNUSED)
{
	const struct kernel *k = ctx;

	return k->change;
}

struct out {
	union {
		struct cc_rec rec;
		char room[4096];
	} v[OUT_MAX];
	size_t cnt;
};

static int collect(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct out *o = ctx;

	cr_assert_lt(o->cnt, OUT_MAX);
	cr_assert_leq(len, sizeof(o->v[0]));
	memcpy(&o->v[o->cnt++], rec, len);
	return 0;
}

static unsigned int count(const struct out *o, uint8_t kind)
{
	unsigned int n = 0;

	for (size_t i = 0; i < o->cnt; i++)
		n += o->v[i].rec.kind == kind;
	return n;
}

struct test {
	struct kernel kernel;
	struct resolver *r;
	struct out *out;
	pid_t pid; /* a child that sleeps */
	struct cc_rec_snap *snap;
};

static void feed(struct test *t, const void *rec)
{
	const struct cc_rec *h = rec;

	t->out->cnt = 0;
	cr_assert_eq(resolver_feed(t->r, h, h->size, collect, t->out), 0);
}

static struct resolver_health health(const struct test *t)
{
	struct resolver_health h;

	resolver_health(t->r, &h);
	return h;
}

static NO_FP void sleep_long(void)
{
	for (;;)
		pause();
}

/* What the kernel counts: exec_vm, from its own words in /proc. */
static uint64_t code_pages(pid_t pid)
{
	char path[32], line[128];
	unsigned long long kb, sum = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmExe: %llu", &kb) == 1 || sscanf(line, "VmLib: %llu", &kb) == 1)
			sum += kb;
	}
	fclose(f);
	return sum * 1024 / (uint64_t)sysconf(_SC_PAGESIZE);
}

static cc_ns now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return CC_S(ts.tv_sec) + (cc_ns)ts.tv_nsec;
}

static void retake(struct test *t)
{
	cr_assert_eq(snap_take(t->pid, t->pid, CC_SNAP_MAX, t->snap), 0);
	snap_release(t->pid);
	t->snap->h.ts = now_ns();
	t->snap->h.size = (uint16_t)(sizeof(*t->snap) + t->snap->byte_cnt);
	t->snap->code_pages = code_pages(t->pid);
	t->snap->change = t->kernel.change;
}

static void test_init(struct test *t)
{
	const struct cc_rule_cache cache = { .layout = on_layout,
					     .rule = on_rule,
					     .forget = on_forget,
					     .change = on_change,
					     .ctx = &t->kernel };
	const struct resolver_opts ro = { .names = true, .rules = &cache };

	memset(t, 0, sizeof(*t));
	t->kernel.change = 1;
	t->out = calloc(1, sizeof(*t->out));
	t->snap = calloc(1, SNAP_BUF_BYTES);
	cr_assert_eq(resolver_new(&ro, &t->r), 0);
	t->pid = fork();
	if (!t->pid) {
		sleep_long();
		_exit(0);
	}
	cr_assert_eq(wait_sleeping(t->pid, t->pid), 0);
	retake(t);
}

static void test_done(struct test *t)
{
	resolver_free(t->r);
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
	free(t->out);
	free(t->snap);
}

static const struct cc_rec_stack *told_stack(const struct test *t)
{
	for (size_t i = 0; i < t->out->cnt; i++) {
		if (t->out->v[i].rec.kind == CC_REC_STACK)
			return (const void *)&t->out->v[i];
	}
	cr_assert_fail("no stack was told");
	return NULL;
}

Test(symbol_rules, a_chain_is_taught)
{
	struct test t;
	const struct cc_rec_stack *s;

	test_init(&t);
	feed(&t, t.snap);
	s = told_stack(&t);
	cr_expect(s->h.flags & CC_ST_COMPLETE);
	cr_assert_eq(t.kernel.layouts, 1);
	cr_expect_eq(t.kernel.tgid, (uint32_t)t.pid);
	cr_expect_eq(t.kernel.layout.code_pages, t.snap->code_pages,
		     "pages of code are counted as the kernel does");
	cr_assert_eq(t.kernel.rule_cnt, s->h.aux, "a rule for each frame");
	for (unsigned int i = 0; i < s->h.aux; i++) {
		cr_expect_eq(t.kernel.keys[i].layout, t.kernel.layout.id);
		cr_expect_eq(t.kernel.keys[i].ip, s->ip[i] | (i ? 0 : CC_RULE_EXACT));
		cr_expect(t.kernel.rules[i].what & CC_RULE_KNOWN);
	}
	cr_expect(t.kernel.rules[s->h.aux - 1].what & CC_RULE_END);

	t.snap->layout = t.kernel.layout.id;
	feed(&t, t.snap);
	cr_expect_eq(t.kernel.rule_cnt, s->h.aux, "once is enough ...");
	t.snap->miss = t.kernel.keys[2].ip;
	feed(&t, t.snap);
	cr_expect_eq(t.kernel.rule_cnt, s->h.aux + 1, "... but for one it has dropped");
	cr_expect_eq(t.kernel.keys[s->h.aux].ip, t.snap->miss);
	cr_expect_eq(t.kernel.layouts, 1);
	test_done(&t);
}

Test(symbol_rules, other_code_is_not_believed)
{
	struct test t;

	test_init(&t);
	t.snap->code_pages++;
	feed(&t, t.snap);
	cr_expect_eq(t.kernel.layouts, 0, "mappings that do not add up are not given");
	cr_expect_eq(t.kernel.rule_cnt, 0);
	t.snap->code_pages = t.snap->change = 0; /* nobody looked */
	feed(&t, t.snap);
	cr_expect_eq(t.kernel.layouts, 0);
	test_done(&t);
}

/* The kernel has seen a change: the mappings must be read again before it gets a layout. */
Test(symbol_rules, a_layout_is_given_again_after_a_change)
{
	struct test t;

	test_init(&t);
	feed(&t, t.snap);
	cr_assert_eq(t.kernel.layouts, 1);
	cr_expect_eq(t.kernel.layout.change, 1);
	feed(&t, t.snap); /* taken before it was given */
	cr_expect_eq(t.kernel.layouts, 1);
	t.kernel.change = t.snap->change = 2;
	t.snap->h.ts = now_ns();
	feed(&t, t.snap);
	cr_expect_eq(t.kernel.layouts, 2);
	cr_expect_eq(t.kernel.layout.change, 2);
	t.snap->h.ts = now_ns(); /* it was lost, or written over by another's */
	feed(&t, t.snap);
	cr_expect_eq(t.kernel.layouts, 3);
	test_done(&t);
}

/* The bytes that were taken end before the stack does; the kernel went on, and met a frame it has
 * no rule for. */
Test(symbol_rules, rules_of_frames_beyond_the_bytes)
{
	struct cc_rule_key key;
	struct cc_rule rule;
	struct test t;
	unsigned int cnt;

	test_init(&t);
	feed(&t, t.snap);
	cr_assert_gt(t.kernel.rule_cnt, 3);
	cnt = t.kernel.rule_cnt;
	key = t.kernel.keys[cnt - 2];
	rule = t.kernel.rules[cnt - 2];
	t.snap->byte_cnt = 8;
	t.snap->h.size = (uint16_t)(sizeof(*t.snap) + t.snap->byte_cnt);
	t.snap->layout = t.kernel.layout.id;
	t.snap->miss = key.ip;
	feed(&t, t.snap);
	cr_assert_eq(t.kernel.rule_cnt, cnt + 1);
	cr_expect_eq(t.kernel.keys[cnt].ip, key.ip);
	cr_expect_eq(t.kernel.keys[cnt].layout, key.layout);
	cr_expect_arr_eq(&t.kernel.rules[cnt], &rule, sizeof(rule));
	t.snap->miss = 0x1000; /* no code there */
	feed(&t, t.snap);
	cr_expect_eq(t.kernel.rule_cnt, cnt + 1);
	test_done(&t);
}

static struct cc_rec_chain *chain_of(const struct test *t, const struct cc_rec_stack *s)
{
	struct cc_rec_chain *c = calloc(1, sizeof(*c) + 8 * (CC_STACK_MAX + CC_SNAP_KFRAMES));

	c->h.kind = CC_REC_CHAIN;
	c->h.flags = CC_ST_COMPLETE;
	c->h.ts = now_ns();
	c->tid = (uint32_t)t->pid;
	c->owner_tgid = (uint32_t)t->pid;
	c->layout = t->kernel.layout.id;
	c->ukey = 77;
	c->ucnt = s->h.aux;
	memcpy(c->ip, s->ip, s->h.aux * 8u);
	c->h.size = (uint16_t)(sizeof(*c) + 8u * c->ucnt);
	return c;
}

static uint64_t key_of(struct test *t, uint32_t seq, bool kernel)
{
	struct cc_rec_extra e = { .h = { .size = sizeof(e), .kind = CC_REC_EXTRA, .ts = 5 },
				  .tid = (uint32_t)t->pid,
				  .seq = seq,
				  .fd = -1 },
			    got;

	feed(t, &e);
	memcpy(&got, &t->out->v[t->out->cnt - 1], sizeof(got));
	return kernel ? got.kstack : got.ustack;
}

Test(symbol_rules, a_chain_is_told_once_then_by_its_key)
{
	struct cc_rec_stack *s = malloc(sizeof(*s) + 8 * CC_STACK_MAX);
	struct cc_rec_chain *c;
	struct test t;
	uint64_t key;

	test_init(&t);
	feed(&t, t.snap);
	memcpy(s, told_stack(&t), told_stack(&t)->h.size);
	key = s->key;
	cr_expect_eq(key_of(&t, 0, false), key);

	c = chain_of(&t, s);
	c->seq = 1;
	feed(&t, c);
	cr_expect_eq(t.out->cnt, 0, "it is the same stack as the snapshot's");
	cr_expect_eq(key_of(&t, 1, false), key);

	c->ukey = 78; /* another one */
	c->ucnt--;
	c->seq = 2;
	feed(&t, c);
	cr_expect_eq(count(t.out, CC_REC_STACK), 1);
	key = told_stack(&t)->key;
	cr_expect_neq(key, s->key);
	cr_expect_eq(key_of(&t, 2, false), key);

	c->ucnt = 0;
	c->seq = 3;
	c->h.size = sizeof(*c);
	feed(&t, c);
	cr_expect_eq(t.out->cnt, 0);
	cr_expect_eq(key_of(&t, 3, false), key, "by its key");
	c->ukey = 77;
	c->seq = 4;
	feed(&t, c);
	cr_expect_eq(key_of(&t, 4, false), s->key);
	cr_expect_eq(t.kernel.forgotten, 0);
	cr_expect_eq(health(&t).chains, 4);

	c->ukey = 79; /* never told */
	c->seq = 5;
	feed(&t, c);
	cr_expect_eq(key_of(&t, 5, false), 0);
	cr_expect_eq(t.kernel.forgotten, 1);
	cr_expect_eq(t.kernel.forgot, 79);
	cr_expect_eq(health(&t).chains_unknown, 1);

	c->ukey = 77; /* of another layout: its addresses may mean other functions here */
	c->layout++;
	c->seq = 6;
	feed(&t, c);
	cr_expect_eq(key_of(&t, 6, false), 0);
	cr_expect_eq(health(&t).chains_unknown, 2);
	free(c);
	free(s);
	test_done(&t);
}

Test(symbol_rules, exec_makes_chains_of_before_void)
{
	struct cc_rec_stack *s = malloc(sizeof(*s) + 8 * CC_STACK_MAX);
	struct cc_rec_task exec = {
		.h = { .size = sizeof(exec), .kind = CC_REC_TASK, .aux = CC_TASK_EXEC }
	};
	struct cc_rec_chain *c;
	struct test t;

	test_init(&t);
	feed(&t, t.snap);
	memcpy(s, told_stack(&t), told_stack(&t)->h.size);
	c = chain_of(&t, s);
	exec.h.ts = c->h.ts + 1;
	exec.tid = exec.tgid = (uint32_t)t.pid;
	feed(&t, &exec);
	feed(&t, c);
	cr_expect_eq(count(t.out, CC_REC_STACK), 0);
	cr_expect_eq(key_of(&t, 0, false), 0);
	free(c);
	free(s);
	test_done(&t);
}

Test(symbol_rules, kernel_stacks_by_key)
{
	struct cc_rec_chain *c = calloc(1, sizeof(*c) + 8 * 4);
	struct test t;
	uint64_t key;

	test_init(&t);
	c->h = (struct cc_rec){ .kind = CC_REC_CHAIN, .size = sizeof(*c) + 8 * 4, .ts = now_ns() };
	c->tid = (uint32_t)t.pid;
	c->kkey = 5;
	c->kcnt = 4;
	for (unsigned int i = 0; i < 4; i++)
		c->ip[i] = 0xffffffff81000010 + i;
	feed(&t, c);
	cr_assert_eq(count(t.out, CC_REC_STACK), 1);
	cr_expect(told_stack(&t)->h.flags & CC_ST_KERNEL);
	key = told_stack(&t)->key;
	cr_expect_eq(key_of(&t, 0, true), key);
	c->kcnt = 0;
	c->seq = 1;
	c->h.size = sizeof(*c);
	feed(&t, c);
	cr_expect_eq(key_of(&t, 1, true), key);
	cr_expect_eq(key_of(&t, 1, false), 0);
	free(c);
	test_done(&t);
}

Test(symbol_rules, damaged_chains_are_counted)
{
	struct cc_rec_chain c = { .h = { .kind = CC_REC_CHAIN, .size = sizeof(c) } };
	struct test t;

	test_init(&t);
	c.ukey = 1;
	c.ucnt = 1; /* more than its size holds */
	feed(&t, &c);
	c.ucnt = CC_STACK_MAX + 1;
	feed(&t, &c);
	c.ucnt = 0;
	c.kcnt = CC_SNAP_KFRAMES + 1;
	feed(&t, &c);
	c.kcnt = 0;
	c.h.aux = 99;
	feed(&t, &c);
	c.h.aux = 0;
	c.h.size = 24;
	feed(&t, &c);
	cr_expect_eq(health(&t).damaged, 5);
	cr_expect_eq(t.out->cnt, 0);
	test_done(&t);
}

/* More chains than are remembered: those pushed out are asked for again, none is taken for another.
 */
Test(symbol_rules, forgotten_chains_come_again)
{
	enum { CHAINS = 200000 };
	struct cc_rec_chain *c = calloc(1, sizeof(*c) + 8);
	unsigned int wrong = 0, known = 0;
	uint64_t *keys = calloc(CHAINS, sizeof(*keys));
	struct test t;

	test_init(&t);
	c->h = (struct cc_rec){ .kind = CC_REC_CHAIN, .ts = now_ns() };
	c->tid = (uint32_t)t.pid;
	for (unsigned int i = 0; i < CHAINS; i++) {
		c->kkey = i + 1;
		c->kcnt = 1;
		c->ip[0] = 0xffffffff80000000 + i;
		c->h.size = sizeof(*c) + 8;
		feed(&t, c);
		keys[i] = told_stack(&t)->key;
		key_of(&t, 0, true);
	}
	c->kcnt = 0;
	c->h.size = sizeof(*c);
	for (unsigned int i = 0; i < CHAINS; i++) {
		uint64_t key;

		c->kkey = i + 1;
		feed(&t, c);
		key = key_of(&t, 0, true);
		known += key != 0;
		wrong += key && key != keys[i];
	}
	cr_expect_eq(wrong, 0);
	cr_expect_eq(known + t.kernel.forgotten, CHAINS);
	cr_expect_geq(known, 65536, "at least as many as the kernel remembers");
	free(c);
	free(keys);
	test_done(&t);
}

Test(symbol_rules, layouts_differ_where_code_does)
{
	static const char a[] =
		"1000-3000 r-xp 00000000 08:01 7 /lib/a\n"
		"5000-6000 rw-p 00000000 00:00 0 [heap]\n"
		"7000-8000 rwxp 00000000 00:00 0 \n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
	static const char *const other[] = {
		"1000-3000 r-xp 00000000 08:01 8 /lib/a\n7000-8000 rwxp 00000000 00:00 0 \n",
		"1000-3000 r-xp 00001000 08:01 7 /lib/a\n7000-8000 rwxp 00000000 00:00 0 \n",
		"2000-4000 r-xp 00000000 08:01 7 /lib/a\n7000-8000 rwxp 00000000 00:00 0 \n",
		"1000-3000 r-xp 00000000 08:02 7 /lib/a\n7000-8000 rwxp 00000000 00:00 0 \n",
		"1000-3000 r-xp 00000000 08:01 7 /lib/a\n",
	};
	static const char same[] =
		"1000-3000 r-xp 00000000 08:01 7 /lib/a (deleted)\n"
		"5000-9000 rw-p 00000000 00:00 0 [heap]\n"
		"7000-8000 rwxp 00000000 00:00 0 \n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
	struct cc_layout first, l;
	struct maps m;
	bool changed;

	maps_init(&m, 1);
	cr_assert_eq(maps_parse(&m, a, sizeof(a) - 1, &changed), 0);
	maps_layout(&m, &first);
	cr_expect_eq(first.code_pages, 2, "neither writable code nor the vsyscall page");
	cr_expect_neq(first.id, 0);
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		cr_assert_eq(maps_parse(&m, other[i], strlen(other[i]), &changed), 0);
		maps_layout(&m, &l);
		cr_expect_neq(l.id, first.id, "%zu", i);
	}
	/* the heap grew, but it begins where it did; and a file lost its name */
	cr_assert_eq(maps_parse(&m, a, sizeof(a) - 1, &changed), 0);
	maps_layout(&m, &l);
	cr_expect_eq(l.id, first.id);
	cr_assert_eq(maps_parse(&m, same, sizeof(same) - 1, &changed), 0);
	maps_done(&m);
}
