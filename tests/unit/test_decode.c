/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "decode.h"

static struct decode_buf buf;

/* A record of @kind with @size bytes, the rest zero; until the next one. */
static struct cc_rec *rec(uint8_t kind, uint16_t size)
{
	static struct decode_buf bytes;
	struct cc_rec *r = (void *)bytes.words;

	memset(&bytes, 0, sizeof(bytes));
	r->kind = kind;
	r->size = size;
	r->ts = 1;
	return r;
}

static int try(const struct cc_rec *r, size_t len)
{
	const struct cc_rec *ret = NULL;
	int err = decode(r, len, &buf, &ret);

	cr_expect_eq(err == 0, ret != NULL);
	return err;
}

static const uint16_t sizes[CC_REC_KIND_CNT] = {
	[CC_REC_EPISODE] = 64, [CC_REC_EXTRA] = 240,     [CC_REC_SOCKOP] = 88,
	[CC_REC_REQ] = 224,    [CC_REC_STACK] = 32,      [CC_REC_SAMPLE] = 48,
	[CC_REC_TASK] = 72,    [CC_REC_OPEN_TASK] = 200, [CC_REC_OPEN_REQ] = 224,
	[CC_REC_LOSS] = 48,    [CC_REC_TICK] = 48,       [CC_REC_MODULE] = 88,
	[CC_REC_NAME] = 40,    [CC_REC_SHORT] = 40,      [CC_REC_TARGET] = 48,
	[CC_REC_OPTION] = 24,  [CC_REC_COUNTER] = 24,    [CC_REC_GO_EPISODE] = 88,
	[CC_REC_GO_TASK] = 56, [CC_REC_GO_ON] = 32,      [CC_REC_GO_ITEM] = 56,
	[CC_REC_LISTEN] = 40,  [CC_REC_WAKE] = 32,
};

Test(decode, every_kind_has_a_least_size)
{
	for (int kind = 1; kind < CC_REC_KIND_CNT; kind++) {
		cr_assert_neq(sizes[kind], 0, "kind %d is not in this test", kind);
		cr_expect_eq(try(rec(kind, sizes[kind]), sizes[kind]), 0, "kind %d", kind);
		cr_expect_eq(try(rec(kind, sizes[kind] - 8), sizes[kind]), -EINVAL, "kind %d",
			     kind);
		/* a newer writer's record: longer than this build knows */
		cr_expect_eq(try(rec(kind, sizes[kind] + 80), sizes[kind] + 80), 0, "kind %d",
			     kind);
	}
}

Test(decode, damaged_headers)
{
	cr_expect_eq(try(rec(CC_REC_EPISODE, 64), 15), -EINVAL, "not even a header");
	cr_expect_eq(try(rec(CC_REC_EPISODE, 64), 63), -EINVAL, "says more than there is");
	cr_expect_eq(try(rec(CC_REC_EPISODE, 0), 64), -EINVAL);
	cr_expect_eq(try(rec(CC_REC_EPISODE, 68), 72), -EINVAL, "not a multiple of 8");
	cr_expect_eq(try(rec(CC_REC_NONE, 64), 64), -EINVAL);
	cr_expect_eq(try(rec(CC_REC_KIND_CNT, 64), 64), -ENOTSUP);
	cr_expect_eq(try(rec(CC_REC_SNAP, 184), 184), -ENOTSUP, "never in a stream");

	struct cc_rec *r = rec(CC_REC_EPISODE, 64);

	r->ts = CC_TIME_MAX + 1;
	cr_expect_eq(try(r, 64), -EINVAL);
}

Test(decode, lengths_inside_must_fit)
{
	struct cc_rec *r = rec(CC_REC_STACK, 32 + 16);

	r->aux = 2;
	cr_expect_eq(try(r, 48), 0);
	r->aux = 3;
	cr_expect_eq(try(r, 48), -EINVAL);
	r = rec(CC_REC_STACK, 32 + 8 * (CC_STACK_MAX + 1));
	r->aux = CC_STACK_MAX + 1;
	cr_expect_eq(try(r, r->size), -EINVAL);

	struct cc_rec_module *m = (void *)rec(CC_REC_MODULE, 88 + 8);

	m->path_len = 8;
	cr_expect_eq(try(&m->h, 96), 0);
	m->path_len = 9;
	cr_expect_eq(try(&m->h, 96), -EINVAL);
	m->path_len = UINT32_MAX;
	cr_expect_eq(try(&m->h, 96), -EINVAL);
	m->path_len = 8;
	m->build_id_len = 25;
	cr_expect_eq(try(&m->h, 96), -EINVAL);

	struct cc_rec_name *n = (void *)rec(CC_REC_NAME, 40 + 8);

	n->len[0] = 5;
	n->len[1] = 3;
	cr_expect_eq(try(&n->h, 48), 0);
	n->len[1] = 4;
	cr_expect_eq(try(&n->h, 48), -EINVAL);
	n->len[0] = n->len[1] = UINT16_MAX;
	cr_expect_eq(try(&n->h, 48), -EINVAL);
}

Test(decode, what_is_not_aligned_is_copied)
{
	char *bytes = (char *)rec(CC_REC_NONE, 0) + 4;
	struct cc_rec_episode e = { .h = { .size = 64, .kind = CC_REC_EPISODE, .ts = 7 },
				    .tid = 3 };
	const struct cc_rec *ret;

	memcpy(bytes, &e, sizeof(e));
	cr_assert_eq(decode((const void *)bytes, sizeof(e), &buf, &ret), 0);
	cr_expect_eq((uintptr_t)ret % 8, 0);
	cr_expect_eq(memcmp(ret, &e, sizeof(e)), 0);

	cr_assert_eq(decode(&e.h, sizeof(e), &buf, &ret), 0);
	cr_expect_eq(ret, &e.h, "an aligned one is read in place");
}
