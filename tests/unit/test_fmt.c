/* SPDX-License-Identifier: Apache-2.0 */
/* Durations, ids, addresses, and the sanitizer and string pool that all text goes through. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "confidence.h"
#include "fmt.h"
#include "sanitize.h"
#include "strpool.h"

#define EXPECT_TEXT(call, want)                       \
	do {                                          \
		char buf[FMT_LEN];                    \
		size_t cap = sizeof(buf), len = call; \
		cr_expect_str_eq(buf, want);          \
		cr_expect_eq(len, strlen(want));      \
	} while (0)

Test(fmt, durations)
{
	EXPECT_TEXT(fmt_ms(buf, cap, 211400000), "211.4");
	EXPECT_TEXT(fmt_ms(buf, cap, 0), "0.0");
	EXPECT_TEXT(fmt_ms(buf, cap, 20000), "0.02");
	EXPECT_TEXT(fmt_ms(buf, cap, 94999), "0.09");
	EXPECT_TEXT(fmt_ms(buf, cap, 95000), "0.1");
	EXPECT_TEXT(fmt_ms(buf, cap, 249999), "0.2");
	EXPECT_TEXT(fmt_ms(buf, cap, 250000), "0.3");
	EXPECT_TEXT(fmt_ms(buf, cap, UINT64_MAX), "18446744073709.6");
	EXPECT_TEXT(fmt_dur(buf, cap, 0), "0 ns");
	EXPECT_TEXT(fmt_dur(buf, cap, 999), "999 ns");
	EXPECT_TEXT(fmt_dur(buf, cap, 20000), "20.0 us");
	EXPECT_TEXT(fmt_dur(buf, cap, 211400000), "211.4 ms");
	EXPECT_TEXT(fmt_dur(buf, cap, CC_S(9)), "9.0 s");
	EXPECT_TEXT(fmt_dur(buf, cap, CC_S(1) - 1), "1000.0 ms");
	EXPECT_TEXT(fmt_dur(buf, cap, 12340000000ull), "12.3 s");
	EXPECT_TEXT(fmt_group(buf, cap, 18204), "18 204");
	EXPECT_TEXT(fmt_group(buf, cap, 7), "7");
	EXPECT_TEXT(fmt_group(buf, cap, UINT64_MAX), "18 446 744 073 709 551 615");
}

struct dur_case {
	char in[28];
	int err;
	cc_ns ns;
};

ParameterizedTestParameters(fmt, parse_duration)
{
	static struct dur_case cases[] = {
		{ "250us", 0, 250000 },
		{ "10ms", 0, 10000000 },
		{ "30s", 0, CC_S(30) },
		{ "1.5s", 0, 1500000000 },
		{ "0.25ms", 0, 250000 },
		{ "2m", 0, CC_S(120) },
		{ "1h", 0, CC_S(3600) },
		{ "7ns", 0, 7 },
		{ "0", 0, 0 },
		{ "0s", 0, 0 },
		{ "", -EINVAL, 7 },
		{ "-1s", -EINVAL, 7 },
		{ "+1s", -EINVAL, 7 },
		{ " 1s", -EINVAL, 7 },
		{ "1", -EINVAL, 7 },
		{ "1 s", -EINVAL, 7 },
		{ "1.s", -EINVAL, 7 },
		{ ".5s", -EINVAL, 7 },
		{ "1sx", -EINVAL, 7 },
		{ "1e3s", -EINVAL, 7 },
		{ "0x1s", -EINVAL, 7 },
		{ "18446744073709551615ns", 0, UINT64_MAX },
		{ "18446744073709551616ns", -ERANGE, 7 },
		{ "18446744074s", -ERANGE, 7 },
		{ "99999999999999999999999s", -ERANGE, 7 },
	};
	return cr_make_param_array(struct dur_case, cases, ARRAY_SIZE(cases));
}
ParameterizedTest(struct dur_case *c, fmt, parse_duration)
{
	cc_ns ns = 7;

	cr_expect_eq(fmt_parse_duration(c->in, &ns), c->err, "'%s'", c->in);
	cr_expect_eq(ns, c->ns, "'%s' gives %llu", c->in, (unsigned long long)ns);
}

struct id_case {
	char in[32];
	int err;
	struct cc_reqid id;
};

ParameterizedTestParameters(fmt, parse_reqid)
{
	static struct id_case cases[] = {
		{ "7f3a9c#3", 0, { 0x7f3a9c, 3, CC_REQID_SOCK } },
		{ "42#1", 0, { 0x42, 1, CC_REQID_SOCK } },
		{ "0x7F3a", 0, { 0x7f3a, 0, CC_REQID_SOCK } },
		{ "0x7f3a#12", 0, { 0x7f3a, 12, CC_REQID_SOCK } },
		{ "ffffffffffffffff#4294967295", 0, { UINT64_MAX, UINT32_MAX, CC_REQID_SOCK } },
		{ "4242", 0, { 4242, 0, CC_REQID_TID } },
		{ "tid:4242", 0, { 4242, 0, CC_REQID_TID } },
		{ "goid:18446744073709551615", 0, { UINT64_MAX, 0, CC_REQID_GOID } },
		{ "", -EINVAL, { 9, 9, 9 } },
		{ "#1", -EINVAL, { 9, 9, 9 } },
		{ "7f3a#", -EINVAL, { 9, 9, 9 } },
		{ "7f3a#0", -EINVAL, { 9, 9, 9 } },
		{ "7f3a#4294967296", -EINVAL, { 9, 9, 9 } },
		{ "7f3a#-1", -EINVAL, { 9, 9, 9 } },
		{ "7f3a", -EINVAL, { 9, 9, 9 } },
		{ "0x", -EINVAL, { 9, 9, 9 } },
		{ "0x0x1", -EINVAL, { 9, 9, 9 } },
		{ "0x1 ", -EINVAL, { 9, 9, 9 } },
		{ "1ffffffffffffffff#1", -EINVAL, { 9, 9, 9 } },
		{ "4294967296", -EINVAL, { 9, 9, 9 } },
		{ "tid:", -EINVAL, { 9, 9, 9 } },
		{ "tid:-1", -EINVAL, { 9, 9, 9 } },
	};
	return cr_make_param_array(struct id_case, cases, ARRAY_SIZE(cases));
}
ParameterizedTest(struct id_case *c, fmt, parse_reqid)
{
	struct cc_reqid id = { 9, 9, 9 };

	cr_expect_eq(fmt_parse_reqid(c->in, &id), c->err, "'%s'", c->in);
	cr_expect(cc_reqid_eq(id, c->id), "'%s'", c->in);
}

Test(fmt, reqid_text_and_match)
{
	struct cc_reqid id = { 0x7f3a9c, 3, CC_REQID_SOCK }, any = { 0x7f3a9c, 0, CC_REQID_SOCK };

	EXPECT_TEXT(fmt_reqid(buf, cap, id), "7f3a9c#3");
	EXPECT_TEXT(fmt_reqid(buf, cap, ((struct cc_reqid){ 12, 0, CC_REQID_TID })), "tid:12");
	EXPECT_TEXT(fmt_reqid(buf, cap, ((struct cc_reqid){ 5, 0, CC_REQID_GOID })), "goid:5");
	EXPECT_TEXT(fmt_reqid(buf, cap, ((struct cc_reqid){ 0 })), "");
	cr_expect(fmt_reqid_matches(any, id));
	cr_expect(fmt_reqid_matches(id, id));
	cr_expect_not(fmt_reqid_matches((struct cc_reqid){ 0x7f3a9c, 4, CC_REQID_SOCK }, id));
	cr_expect_not(fmt_reqid_matches((struct cc_reqid){ 0x7f3a9c, 0, CC_REQID_TID }, id));
}

Test(fmt, addresses)
{
	struct cc_addr v4 = { .family = 2, .port = 51122, .ip = { 10, 0, 0, 7 } };
	struct cc_addr one = { .family = 10, .port = 80, .ip = { [15] = 1 } };
	struct cc_addr any = { .family = 10, .port = 80 };
	struct cc_addr full = { .family = 10,
				.port = 443,
				.ip = { 0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xab,
					0xcd } };
	struct cc_addr mapped = { .family = 10,
				  .port = 8080,
				  .ip = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 } };
	struct cc_addr un = { .family = 1 }, none = { 0 };

	EXPECT_TEXT(fmt_addr(buf, cap, &v4), "10.0.0.7:51122");
	EXPECT_TEXT(fmt_addr(buf, cap, &one), "[::1]:80");
	EXPECT_TEXT(fmt_addr(buf, cap, &any), "[::]:80");
	EXPECT_TEXT(fmt_addr(buf, cap, &full), "[2001:db8:0:1::abcd]:443");
	EXPECT_TEXT(fmt_addr(buf, cap, &mapped), "127.0.0.1:8080");
	EXPECT_TEXT(fmt_addr(buf, cap, &un), "unix");
	EXPECT_TEXT(fmt_addr(buf, cap, &none), "");
}

Test(fmt, short_buffers_are_cut_and_ended)
{
	char buf[8];

	memset(buf, 'x', sizeof(buf));
	cr_expect_eq(fmt_reqid(buf, 5, (struct cc_reqid){ 0x123456, 1, CC_REQID_SOCK }), 4);
	cr_expect_str_eq(buf, "1234");
	cr_expect_eq(buf[5], 'x');
	cr_expect_eq(fmt_group(buf, 4, 123456), 2);
}

/* ---- sanitize ---- */

#define CLEAN(in) (sanitize_text(in, sizeof(in) - 1, clean, sizeof(clean)), clean)

Test(sanitize, controls_and_escapes)
{
	char clean[128];

	cr_expect_str_eq(CLEAN("worker/7"), "worker/7");
	cr_expect_str_eq(CLEAN("a\nb\tc\x7f"), "a?b?c?");
	cr_expect_str_eq(CLEAN("\x1b[31mred\x1b[0m"), "red");
	cr_expect_str_eq(CLEAN("\x1b]0;title\x07rest"), "rest");
	cr_expect_str_eq(CLEAN("\x1b]8;;http://x\x1b\\link"), "link");
	cr_expect_str_eq(CLEAN("\x1bPq#0\x1b\\z"), "z");
	cr_expect_str_eq(CLEAN("a\x1b"), "a");
	cr_expect_str_eq(CLEAN("a\x1b["), "a");
	cr_expect_str_eq(CLEAN("a\x1b]never ends"), "a");
	cr_expect_str_eq(CLEAN("\x1b"
			       "cx"),
			 "x");
	cr_expect_str_eq(CLEAN("ab\0cd"), "ab");
	/* C1 as characters, the bidirectional override, a zero-width space */
	cr_expect_str_eq(CLEAN("x\xc2\x9b"
			       "31m"),
			 "x?31m");
	cr_expect_str_eq(CLEAN("a\xe2\x80\xae"
			       "b"),
			 "a?b");
	cr_expect_str_eq(CLEAN("a\xe2\x80\x8b"
			       "b"),
			 "a?b");
}

Test(sanitize, utf8)
{
	char clean[128];

	cr_expect_str_eq(CLEAN("caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80"),
			 "caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80");
	cr_expect_str_eq(CLEAN("\xc0\xaf"), "??");           /* overlong */
	cr_expect_str_eq(CLEAN("\xe0\x80\xaf"), "???");      /* overlong */
	cr_expect_str_eq(CLEAN("\xed\xa0\x80"), "???");      /* surrogate */
	cr_expect_str_eq(CLEAN("\xf4\x90\x80\x80"), "????"); /* beyond */
	cr_expect_str_eq(CLEAN("\xff\xfe"), "??");
	cr_expect_str_eq(CLEAN("a\xc3"), "a?"); /* cut */
	cr_expect_str_eq(CLEAN("a\x9b"), "a?"); /* C1 as a byte */
}

Test(sanitize, cut_at_a_whole_character)
{
	char clean[5];

	cr_expect_eq(sanitize_text("abc\xc3\xa9", 5, clean, sizeof(clean)), 3);
	cr_expect_str_eq(clean, "abc");
	cr_expect_eq(sanitize_text("abcd", 4, clean, 1), 0);
	cr_expect_str_eq(clean, "");
}

/* Whatever goes in, out comes printable UTF-8 that stays what it is. */
Test(sanitize, fuzz_is_idempotent)
{
	uint64_t seed = 5;

	for (int round = 0; round < 100000; round++) {
		char in[24], once[64], twice[64];

		for (size_t i = 0; i < sizeof(in); i++) {
			static const unsigned char hot[] = { 0x1b, '[',  ']',  0x07, 0xc2,
							     0x9b, 0xe2, 0x80, 0xae, 'm',
							     ';',  '\\', 0xf0 };

			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			in[i] = (char)(seed >> 60 < 12 ? hot[(seed >> 33) % sizeof(hot)]
						       : seed >> 40);
		}
		size_t n = sanitize_text(in, sizeof(in), once, sizeof(once));

		cr_assert_eq(n, strlen(once));
		for (size_t i = 0; i < n; i++)
			cr_assert((unsigned char)once[i] >= 0x20 && once[i] != 0x7f);
		sanitize_text(once, n, twice, sizeof(twice));
		cr_assert_str_eq(once, twice);
	}
}

Test(strpool, interns_and_moves_out)
{
	struct strpool p;
	uint32_t len, a, b;

	strpool_init(&p);
	cr_expect_eq(strpool_add(&p, "", 0), 0);
	cr_expect_eq(strpool_add(&p, NULL, 0), 0);
	a = strpool_add(&p, "cart_add", 8);
	b = strpool_add(&p, "cart_flush", 10);
	cr_expect_neq(a, 0);
	cr_expect_neq(a, b);
	cr_expect_eq(strpool_add(&p, "cart_add\x1b[0m", 12), a);
	cr_expect_eq(strpool_addf(&p, "cart_%s", "flush"), b);
	cr_expect_str_eq(strpool_str(&p, b), "cart_flush");
	cr_expect_str_eq(strpool_str(&p, 1u << 30), "");
	for (int i = 0; i < 5000; i++)
		cr_assert_eq(strpool_addf(&p, "s%d", i), strpool_addf(&p, "s%d", i));
	char *bytes = strpool_take(&p, &len);

	cr_assert_not_null(bytes);
	cr_expect_str_eq(bytes, "");
	cr_expect_str_eq(bytes + a, "cart_add");
	cr_expect_lt(a, len);
	strpool_done(&p);
	free(bytes);
	bytes = strpool_take(&p, &len);
	cr_expect_eq(len, 1);
	free(bytes);
	strpool_done(&p);
}

Test(confidence, table)
{
	cr_expect_eq(evidence_confidence(0), 0);
	cr_expect_eq(evidence_confidence(CC_EV_BIT(SCHED)), evidence_rate(CC_EV_SCHED));
	cr_expect_eq(evidence_confidence(CC_EV_BIT(SCHED) | CC_EV_BIT(INFERRED)),
		     CC_MIN(evidence_rate(CC_EV_SCHED), evidence_rate(CC_EV_INFERRED)));
	cr_expect_eq(evidence_confidence(CC_EV_BIT(SCHED) | CC_EV_BIT(LOST)), 0);
	cr_expect_eq(evidence_confidence(1ull << 63), 0, "a bit beyond the table proves nothing");
	cr_expect_eq(evidence_rate(CC_EV_CNT), 0);
	cr_expect_str_eq(evidence_text(CC_EV_CNT), "");
	for (unsigned int i = 0; i < CC_EV_CNT; i++)
		cr_expect(evidence_rate(i) <= 100 && evidence_text(i)[0]);
	cr_expect_eq(confidence_letter(90), 'H');
	cr_expect_eq(confidence_letter(89), 'M');
	cr_expect_eq(confidence_letter(60), 'M');
	cr_expect_eq(confidence_letter(59), 'L');
}
