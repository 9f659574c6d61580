/* SPDX-License-Identifier: Apache-2.0 */
/* What an address is called: as it was when the stack was taken. */
#include "decode.h"
#include "names.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define TGID 7
#define IP 0x5000

struct test {
	struct mem mem;
	struct names n;
};

static void test_init(struct test *t)
{
	*t = (struct test){ 0 };
	names_init(&t->n, &t->mem, 1 << 20);
}

static void tell_name(struct test *t, unsigned int what, uint64_t id, uint64_t gen,
		      const char *text)
{
	union {
		struct cc_rec_name r;
		char room[256];
	} b = { 0 };

	b.r.h = (struct cc_rec){ .size = 256, .kind = CC_REC_NAME, .aux = (uint16_t)what };
	b.r.id = id;
	b.r.id2 = gen;
	b.r.tgid = TGID;
	b.r.len[0] = (uint16_t)strlen(text);
	memcpy(b.r.text, text, strlen(text));
	cr_assert_eq(names_name(&t->n, &b.r), 0);
}

static void tell_module(struct test *t, uint64_t start, uint64_t end, uint64_t gen,
			const char *path)
{
	union {
		struct cc_rec_module r;
		char room[256];
	} b = { 0 };
	size_t len = strlen(path), at = sizeof(b.r) + (len + 7) / 8 * 8;

	b.r.h = (struct cc_rec){ .size = (uint16_t)at, .kind = CC_REC_MODULE };
	b.r.start = start;
	b.r.end = end;
	b.r.tgid = TGID;
	b.r.path_len = (uint32_t)len;
	memcpy(b.r.path, path, len);
	if (gen) {
		memcpy(b.room + at, &gen, sizeof(gen));
		b.r.h.size += sizeof(gen);
	}
	cr_expect_eq(cc_module_gen(&b.r), gen);
	cr_assert_eq(names_module(&t->n, &b.r), 0);
}

static void expect(struct test *t, uint32_t gen, uint64_t ip, const char *text, const char *module)
{
	struct engine_frame f;
	bool named = names_get_frame(&t->n, TGID, gen, ip, &f);

	cr_expect_eq(named, text != NULL, "%#lx in %u", ip, gen);
	if (text)
		cr_expect_arr_eq(f.text, text, strlen(text) + 1, "%#lx in %u: %s", ip, gen, f.text);
	if (module)
		cr_expect_arr_eq(f.module, module, strlen(module), "%#lx in %u: %s", ip, gen,
				 f.module);
	else if (!text)
		cr_expect_eq(f.module_len, 0, "%#lx in %u: %s", ip, gen, f.module);
}

/* One library, then another at the same place, then the first again. */
Test(names, frames_of_their_time)
{
	struct test t;

	test_init(&t);
	tell_name(&t, CC_NAME_FRAME, IP, 0, "a+0x1");
	tell_name(&t, CC_NAME_FRAME, IP, 4, "b+0x1");
	tell_name(&t, CC_NAME_FRAME, IP, 9, "a+0x1");
	expect(&t, 0, IP, "a+0x1", "");
	expect(&t, 3, IP, "a+0x1", "");
	expect(&t, 4, IP, "b+0x1", "");
	expect(&t, 8, IP, "b+0x1", "");
	expect(&t, 9, IP, "a+0x1", "");
	expect(&t, ENGINE_GEN_NOW, IP, "a+0x1", "");
	/* what was inlined there is known later: of its own time only */
	tell_name(&t, CC_NAME_FRAME, IP, 4, "in\nb+0x1");
	expect(&t, 0, IP, "a+0x1", "");
	expect(&t, 5, IP, "in\nb+0x1", "");
	expect(&t, 9, IP, "a+0x1", "");
	names_done(&t.n);
}

Test(names, modules_of_their_time)
{
	struct test t;

	test_init(&t);
	tell_module(&t, 0x1000, 0x8000, 0, "/lib/a.so");
	tell_module(&t, 0x4000, 0x6000, 3, "/lib/b.so");
	tell_module(&t, 0x1000, 0x8000, 5, "/lib/c.so");
	expect(&t, 0, IP, NULL, "a.so");
	expect(&t, 2, IP, NULL, "a.so");
	expect(&t, 3, IP, NULL, "b.so");
	expect(&t, 4, 0x2000, NULL, "a.so");
	expect(&t, 5, IP, NULL, "c.so");
	tell_module(&t, 0x4000, 0x5800, 7, ""); /* a JIT's memory */
	expect(&t, 7, IP, NULL, NULL);
	expect(&t, 7, 0x5900, NULL, "c.so");
	names_done(&t.n);
}

/* The library of before had a name there, the one of now has none: it is not the old one's. */
Test(names, no_name_is_left_over)
{
	struct test t;

	test_init(&t);
	tell_module(&t, 0x1000, 0x8000, 0, "/lib/a.so");
	tell_name(&t, CC_NAME_FRAME, IP, 0, "a+0x1");
	tell_module(&t, 0x1000, 0x8000, 3, "/lib/b.so");
	expect(&t, 2, IP, "a+0x1", NULL);
	expect(&t, 3, IP, NULL, "b.so");
	names_done(&t.n);
}

Test(names, stack_has_its_generation)
{
	struct cc_rec_stack r = {
		.h = { .size = sizeof(r), .kind = CC_REC_STACK }, .key = 5, .tgid = TGID, .gen = 6
	};
	struct engine_stack s;
	struct test t;

	test_init(&t);
	cr_assert_eq(names_stack(&t.n, &r), 0);
	cr_assert(names_get_stack(&t.n, 5, &s));
	cr_expect_eq(s.gen, 6);
	names_done(&t.n);
}

/* Waits have no generation: a lock's address that has meant two locks has no name. */
Test(names, address_that_meant_two_things)
{
	char buf[64];
	struct test t;

	test_init(&t);
	tell_name(&t, CC_NAME_ADDR, IP, 0, "a_lock");
	tell_name(&t, CC_NAME_ADDR, IP, 0, "a_lock");
	cr_expect_gt(names_text(&t.n, CC_NAME_ADDR, IP, 0, TGID, buf, sizeof(buf)), 0);
	cr_expect_str_eq(buf, "a_lock");
	tell_name(&t, CC_NAME_ADDR, IP, 0, "b_lock");
	cr_expect_eq(names_text(&t.n, CC_NAME_ADDR, IP, 0, TGID, buf, sizeof(buf)), 0);
	tell_name(&t, CC_NAME_ADDR, IP, 0, "a_lock");
	cr_expect_eq(names_text(&t.n, CC_NAME_ADDR, IP, 0, TGID, buf, sizeof(buf)), 0);
	names_done(&t.n);
}
