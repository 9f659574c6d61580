// SPDX-License-Identifier: Apache-2.0
/* Two rings, and in which order their records are told, whatever a race left in them. */
#include "../../src/bpf_loader/ring_pair.h"

#include <criterion/criterion.h>
#include <linux/bpf.h>
#include <string.h>

#define BYTES 4096u

/* A ring as the kernel lays it out, both maps of its data. */
struct mem {
	uint64_t consumer, producer;
	unsigned char data[2 * BYTES];
};

struct pair {
	struct mem large_mem, small_mem;
	uint64_t over;
	struct ring large, small;
	uint64_t told[64];
	int told_cnt;
	uint64_t at;                       /* when this one is told, */
	void (*meanwhile)(struct pair *p); /* a CPU does this */
};

static struct ring ring_of(struct mem *m, uint64_t *over)
{
	return (struct ring){ .consumer = &m->consumer,
			      .producer = &m->producer,
			      .data = m->data,
			      .bytes = BYTES,
			      .over = over };
}

static void setup(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	p->large = ring_of(&p->large_mem, NULL);
	p->small = ring_of(&p->small_mem, &p->over);
}

/* Reserves a record that is told by its @nr; *ret_head is 0 until it is committed. */
static uint32_t *reserve(struct mem *m, uint64_t nr)
{
	struct cc_rec r = { .size = sizeof(r), .ts = nr };
	uint64_t at = m->producer & (BYTES - 1);
	uint32_t head[2] = { sizeof(r) | BPF_RINGBUF_BUSY_BIT, 0 };

	memcpy(m->data + at, head, sizeof(head));
	memcpy(m->data + at + sizeof(head), &r, sizeof(r));
	m->producer += sizeof(head) + sizeof(r);
	return (uint32_t *)(void *)(m->data + at);
}

static void put(struct mem *m, uint64_t nr) { *reserve(m, nr) &= ~BPF_RINGBUF_BUSY_BIT; }

static void take_over(struct pair *p) { p->over = p->large_mem.producer + 1; }

static int tell(void *ctx, const struct cc_rec *r, size_t len)
{
	struct pair *p = ctx;

	cr_assert_eq(len, sizeof(*r));
	p->told[p->told_cnt++] = r->ts;
	if (p->meanwhile && r->ts == p->at)
		p->meanwhile(p);
	return 0;
}

static bool drain(struct pair *p)
{
	struct ring_ends e = ring_ends(&p->large, &p->small);
	bool full = true;

	cr_assert_geq(ring_pair_drain(&p->large, &p->small, &e, tell, p, &full), 0);
	return full;
}

/* They were told as 1, 2, 3 ... @cnt. */
static void expect_in_order(const struct pair *p, int cnt)
{
	cr_expect_eq(p->told_cnt, cnt, "%d told of %d", p->told_cnt, cnt);
	for (int i = 0; i < p->told_cnt; i++)
		cr_expect_eq(p->told[i], (uint64_t)i + 1, "the %dth is %lu", i + 1, p->told[i]);
}

Test(ring_pair, what_found_the_small_one_full_comes_behind_it)
{
	struct pair p;

	setup(&p);
	put(&p.small_mem, 1);
	put(&p.small_mem, 2);
	take_over(&p);
	put(&p.large_mem, 3);
	put(&p.large_mem, 4);
	cr_expect(drain(&p));
	cr_expect_eq(p.over, 0, "both are empty");
	put(&p.small_mem, 5);
	cr_expect(drain(&p));
	expect_in_order(&p, 5);
}

/* It had looked while the large one was in use, and wrote after the small one was again. */
Test(ring_pair, a_straggler_comes_before_what_its_cpu_wrote_to_the_small_one)
{
	struct pair p;

	setup(&p);
	put(&p.large_mem, 1);
	put(&p.small_mem, 2);
	cr_expect(drain(&p));
	expect_in_order(&p, 2);
}

Test(ring_pair, a_straggler_comes_first_also_when_the_small_one_filled_again)
{
	struct pair p;

	setup(&p);
	put(&p.large_mem, 1);
	put(&p.small_mem, 2);
	put(&p.small_mem, 3);
	take_over(&p);
	put(&p.large_mem, 4);
	cr_expect(drain(&p));
	expect_in_order(&p, 4);
}

/* The CPU that looked last was held up before it took room in the small one. */
static void write_late(struct pair *p)
{
	put(&p->small_mem, 3);
	put(&p->large_mem, 4);
}

Test(ring_pair, what_comes_to_both_while_they_are_drained_is_in_order)
{
	struct pair p;

	setup(&p);
	put(&p.small_mem, 1);
	take_over(&p);
	put(&p.large_mem, 2);
	p.at = 2;
	p.meanwhile = write_late;
	cr_expect(drain(&p));
	expect_in_order(&p, 4);
	cr_expect_eq(p.over, 0);
}

Test(ring_pair, nothing_is_told_before_a_record_that_is_only_reserved)
{
	struct pair p;
	uint32_t *head;

	setup(&p);
	put(&p.small_mem, 1);
	head = reserve(&p.small_mem, 2);
	take_over(&p);
	put(&p.large_mem, 3);
	cr_expect_not(drain(&p), "one was held up");
	expect_in_order(&p, 1);
	cr_expect_neq(p.over, 0, "the large one is still in use");
	*head &= ~BPF_RINGBUF_BUSY_BIT;
	cr_expect(drain(&p));
	expect_in_order(&p, 3);
}

/* A straggler and its CPU's next record, both written between two looks at how far the rings are.
 */
Test(ring_pair, how_far_the_small_one_goes_is_seen_before_the_large_one)
{
	struct pair p;
	struct ring_ends before, after;
	bool full = true;

	setup(&p);
	before = ring_ends(&p.large, &p.small);
	put(&p.large_mem, 1);
	put(&p.small_mem, 2);
	after = ring_ends(&p.large, &p.small);
	after.small_before = before.small_before;
	after.large = before.large; /* as it is when they came after two of three looks */
	cr_assert_eq(ring_pair_drain(&p.large, &p.small, &after, tell, &p, &full), 0);
	cr_expect(drain(&p));
	expect_in_order(&p, 2);
}

Test(ring_pair, a_discarded_record_is_not_told)
{
	struct pair p;

	setup(&p);
	put(&p.small_mem, 1);
	*reserve(&p.small_mem, 9) = sizeof(struct cc_rec) | BPF_RINGBUF_DISCARD_BIT;
	put(&p.small_mem, 2);
	cr_expect(drain(&p));
	expect_in_order(&p, 2);
}
