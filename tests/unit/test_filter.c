/* SPDX-License-Identifier: Apache-2.0 */
/* The filter language: what matches, and what is said where about what does not parse. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <string.h>

#include "filter.h"
#include "fmt.h"

/* One request: lock > disk fsync on cart_mutex, 12:04:31.5 to 12:04:31.7 UTC. */
static struct cc_request shop_request(void)
{
	static const struct cc_found found = {
		.class_ns = { [WAIT_LOCK] = CC_MS(141), [WAIT_CPU] = CC_MS(2) },
		.dominant = { .cls = WAIT_LOCK, .ns = CC_MS(141) },
		.root = { .cls = WAIT_FSYNC, .ns = CC_MS(123) },
	};
	struct cc_request r = {
		.id = { 0x7f3a9c, 3, CC_REQID_SOCK },
		.start = CC_MS(500),
		.end = CC_MS(700),
		.tid = 4245,
		.recv_tid = 4246,
		.path_ok = true,
		.confidence = 71,
		.unexplained_ns = CC_MS(3),
		.found = &found,
	};

	r.rec.local_port = 8080;
	return r;
}

static bool shop_text(void *ctx, const struct cc_request *r, enum filter_key key, char *buf,
		      size_t cap)
{
	static const char *const texts[FILTER_KEY_CNT] = {
		[FK_PEER] = "10.0.0.7:51122#3",
		[FK_CONN] = "10.0.0.7:51122#3",
		[FK_SITE] = "cart_add+0x41",
		[FK_RESOURCE] = "cart_mutex",
		[FK_WAKER] = "worker/4249",
		[FK_COMM] = "nginx: worker",
		[FK_STATE] = "done",
		[FK_LABEL] = "busy period",
	};
	(void)ctx;
	(void)r;
	return texts[key] && fmt_text(buf, cap, "%s", texts[key]) > 0;
}

static bool matches(const char *text)
{
	/* 12:04:31 on some day at monotonic 0 */
	int64_t wall = (int64_t)CC_S(86400ull * 19000 + 12 * 3600 + 4 * 60 + 31);
	struct cc_request r = shop_request();
	struct filter_subject s = { .r = &r, .wall_off_ns = wall, .text = shop_text };
	struct cc_err err = { 0 };
	struct filter *f;

	cr_assert_eq(filter_parse(text, &err, &f), 0, "'%s': %s at %d", text, err.msg, err.pos);
	cr_expect_str_eq(filter_text(f), text);
	bool ret = filter_match(f, &s);

	filter_free(f);
	return ret;
}

struct match_case {
	char text[64];
	bool want;
};

ParameterizedTestParameters(filter, match)
{
	static struct match_case cases[] = {
		{ "", true },
		{ "   ", true },
		{ "wait=lock", true },
		{ "wait=LOCK", true },
		{ "wait=klock", false },
		{ "wait=disk", false },
		{ "wait!=disk", true },
		{ "root=disk", true },
		{ "root=disk_fsync", true },
		{ "root=\"disk fsync\"", true },
		{ "root=disk_read", false },
		{ "root~fsync", true },
		{ "wait~ock", true },
		{ "lat>20ms", true },
		{ "lat>200ms", false },
		{ "lat>=200ms", true },
		{ "lat=200ms", true },
		{ "lat!=200ms", false },
		{ "lat<0.2s", false },
		{ "lat<=0.2s", true },
		{ "lock>100ms", true },
		{ "lock>141ms", false },
		{ "cpu<3ms", true },
		{ "net_recv=0", true },
		{ "peer=10.0.0.7", true },
		{ "peer=10.0.0.7:51122", true },
		{ "peer=10.0.0.7:51122#3", true },
		{ "peer=10.0.0.7:5112", false },
		{ "peer=10.0.0", false },
		{ "peer!=10.0.0", true },
		{ "conn~10.0.0", true },
		{ "port=8080", true },
		{ "port!=8080", false },
		{ "port>8000", true },
		{ "conf=M", true },
		{ "conf=m", true },
		{ "conf=H", false },
		{ "conf!=H", true },
		{ "conf>=M", true },
		{ "conf<H", true },
		{ "conf>70", true },
		{ "conf=71", true },
		{ "!conf=L", true },
		{ "!conf=M", false },
		{ "site~cart", true },
		{ "site~CART", true },
		{ "site=cart_add+0x41", true },
		{ "site=cart", false },
		{ "resource=cart_mutex", true },
		{ "waker~worker", true },
		{ "comm=\"nginx: worker\"", true },
		{ "comm~\"x: w\"", true },
		{ "holder=x", false },
		{ "holder!=x", false }, /* none known: neither is true ... */
		{ "!holder=x", true },  /* ... but this is */
		{ "tid=4245", true },
		{ "tid=4246", true },
		{ "tid!=4245", false },
		{ "tid=1", false },
		{ "id=7f3a9c#3", true },
		{ "id=7f3a9c#4", false },
		{ "id=0x7f3a9c", true },
		{ "id=4246", true },
		{ "id!=7f3a9c#3", false },
		{ "state=done", true },
		{ "label=\"busy period\"", true },
		{ "label~busy", true },
		{ "label=stream", false },
		{ "up~10", false },
		{ "unexplained>2ms", true },
		{ "unexplained>3ms", false },
		{ "at=12:04", true },
		{ "at=12:04:31", true },
		{ "at=12:04:30", false },
		{ "at=12:04:32", false },
		{ "at=12:04:31.6", true },
		{ "at=12:04:31.8", false },
		{ "at=12:04:31.499", false },
		{ "at=00:00", false },
		{ "wait=lock lat>20ms !conf=L site~cart", true },
		{ "wait=lock lat>20s", false },
		{ "lat>20s | wait=lock", true },
		{ "lat>20s|wait=lock", true },
		{ "wait=lock lat>20s | port=1", false },
		{ "port=1 | wait=lock lat>20ms", true },
		{ "port=1 wait=lock | lat>20s", false },
		{ "port=1 | port=2 | port=8080", true },
		{ "WAIT=lock", true },
	};
	return cr_make_param_array(struct match_case, cases, ARRAY_SIZE(cases));
}
ParameterizedTest(struct match_case *c, filter, match)
{
	cr_expect_eq(matches(c->text), c->want, "'%s' should be %d", c->text, c->want);
}

struct error_case {
	char text[64];
	int pos;
	char says[40];
};

ParameterizedTestParameters(filter, errors)
{
	static struct error_case cases[] = {
		{ "=5", 0, "starts with a key" },
		{ "wait", 4, "wanted one of" },
		{ "wait=", 5, "value is missing" },
		{ "wait=\"\"", 5, "value is missing" },
		{ "wait=nothing", 5, "no such wait class 'nothing'" },
		{ "nokey=1", 0, "no such key 'nokey'" },
		{ "lat>20ms nokey=1", 9, "no such key" },
		{ "lat>20", 4, "not a duration" },
		{ "lat~20ms", 3, "~ is for text" },
		{ "wait>lock", 4, "no order" },
		{ "site>a", 4, "no order" },
		{ "port=http", 5, "not a number" },
		{ "port=99999999999999999999", 5, "not a number" },
		{ "port>65536", 5, "no port" },
		{ "conf=X", 5, "not H, M, L" },
		{ "conf=101", 5, "not H, M, L" },
		{ "at=25:00", 3, "not a time" },
		{ "at=12", 3, "not a time" },
		{ "at=12:04:31x", 3, "not a time" },
		{ "at!=12:04", 2, "use = here" },
		{ "at>12:04", 2, "no order" },
		{ "id=zz", 3, "not a request id" },
		{ "comm=\"open", 5, "not closed" },
		{ "comm=\"a\"b", 8, "after the quote" },
		{ "| wait=lock", 0, "before it" },
		{ "wait=lock |", 10, "after it" },
		{ "wait=lock || port=1", 11, "before it" },
		{ "!", 1, "starts with a key" },
		{ "!!wait=lock", 1, "starts with a key" },
		{ "x\x1b[31m=1", 0, "no such key 'x'" },
	};
	return cr_make_param_array(struct error_case, cases, ARRAY_SIZE(cases));
}
ParameterizedTest(struct error_case *c, filter, errors)
{
	struct cc_err err = { 0 };
	struct filter *f = (struct filter *)1;

	cr_expect_eq(filter_parse(c->text, &err, &f), -EINVAL, "'%s'", c->text);
	cr_expect_eq(f, (struct filter *)1, "untouched on error");
	cr_expect_eq(err.pos, c->pos, "'%s': at %d: %s", c->text, err.pos, err.msg);
	cr_expect_not_null(strstr(err.msg, c->says), "'%s': %s", c->text, err.msg);
}

Test(filter, limits)
{
	char text[4096] = "";
	struct cc_err err;
	struct filter *f;

	for (int i = 0; i < 64; i++)
		strcat(text, "port=1 ");
	cr_assert_eq(filter_parse(text, &err, &f), 0);
	filter_free(f);
	strcat(text, "port=1");
	cr_expect_eq(filter_parse(text, &err, &f), -EINVAL);
	cr_expect_not_null(strstr(err.msg, "too many"));
	memset(text, 'a', 300);
	memcpy(text, "site=", 5);
	text[300] = '\0';
	cr_expect_eq(filter_parse(text, &err, &f), -EINVAL);
	cr_expect_not_null(strstr(err.msg, "too long"));
	filter_free(NULL);
}

Test(filter, a_request_without_path_or_text_matches_no_term_on_them)
{
	struct cc_request r = { .start = 0, .end = CC_MS(1) };
	struct filter_subject s = { .r = &r, .text = shop_text };
	static const char *const texts[] = { "wait=unknown", "wait!=lock",     "cpu<1s",
					     "port<9",       "unexplained<1s", "tid<9" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct cc_err err;
		struct filter *f;

		cr_assert_eq(filter_parse(texts[i], &err, &f), 0, "%s", texts[i]);
		cr_expect_not(filter_match(f, &s), "%s", texts[i]);
		filter_free(f);
	}
}

Test(filter, midnight)
{
	int64_t wall = (int64_t)CC_S(86400ull * 19000 - 1); /* 23:59:59, a day before */
	struct cc_request r = { .start = 0, .end = CC_S(3) };
	struct filter_subject s = { .r = &r, .wall_off_ns = wall, .text = shop_text };
	static const struct {
		const char *text;
		bool want;
	} cases[] = { { "at=23:59:59", true },  { "at=00:00:00", true },  { "at=00:00:02", true },
		      { "at=00:00:03", false }, { "at=23:59:58", false }, { "at=00:00", true } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cc_err err;
		struct filter *f;

		cr_assert_eq(filter_parse(cases[i].text, &err, &f), 0);
		cr_expect_eq(filter_match(f, &s), cases[i].want, "%s", cases[i].text);
		filter_free(f);
	}
}

Test(filter, fuzz_never_crashes)
{
	static const char *const parts[] = { "wait=lock", "lat>20ms", "port=1", " ", " ",
					     " ",         "|",        "\"",     "!", "~",
					     "#",         "at=12:04", "conf=M", "=", "\xff" };
	uint64_t seed = 17, good = 0;

	for (int round = 0; round < 20000; round++) {
		char text[256] = "";
		struct cc_err err;
		struct filter *f;

		for (int i = 0; i < 10; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			strcat(text, parts[(seed >> 33) % ARRAY_SIZE(parts)]);
		}
		if (filter_parse(text, &err, &f) == 0) {
			good++;
			filter_free(f);
		} else {
			cr_assert(err.pos >= 0 && err.pos <= (int)strlen(text), "'%s'", text);
		}
	}
	cr_expect_gt(good, 0);
}
