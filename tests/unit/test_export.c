/* SPDX-License-Identifier: Apache-2.0 */
/* CSV, folded stacks with wakers, profile tables, Perfetto: names from outside stay within their
 * cell or frame; what was inlined is one location; the same snapshot gives the same bytes; a full
 * disk is told. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "formats.h"
#include "profile.h"
#include "snap_fixture.h"

static char *text_of(struct snap_fixture *f, enum export_format format, size_t *ret_len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	fixture_strings(f);
	cr_assert_eq(format_write(format, &f->s, out), 0);
	fclose(out);
	return text;
}

Test(export, every_format_is_deterministic_and_tells_of_a_full_disk)
{
	for (unsigned int i = 0; i < FORMAT_CNT; i++) {
		struct snap_fixture *f = fixture_new();
		size_t a_len, b_len;
		char *a = text_of(f, i, &a_len), *b = text_of(f, i, &b_len);
		FILE *full = fopen("/dev/full", "w");

		cr_expect_gt(a_len, 0);
		cr_expect(a_len == b_len && !memcmp(a, b, a_len), "%s", format_name(i));
		setvbuf(full, NULL, _IONBF, 0);
		cr_expect_eq(format_write(i, &f->s, full), -EIO, "%s", format_name(i));
		fclose(full);
		free(a);
		free(b);
		fixture_free(f);
	}
}

Test(export, csv_cells_keep_what_is_in_them)
{
	struct snap_fixture *f = fixture_new();
	size_t len;

	f->p[1].resource = fx(f, "a,\"b\"");
	f->p[1].site = fx(f, "=cmd|' /C calc'!A0");
	char *text = text_of(f, FORMAT_CSV, &len);

	cr_expect_not_null(
		strstr(text, ",\"'=cmd|' /C calc'!A0\",\"a,\"\"b\"\"\",worker/4249,task,"));
	cr_expect_not_null(strstr(text, "\r\nfedcba9876543210#3,3,1,1,"));
	free(text);
	fixture_free(f);
}

Test(export, a_waker_stands_below_upside_down)
{
	struct snap_fixture *f = fixture_new();
	size_t len;

	f->p[3].waker_stack = 1;
	char *text = text_of(f, FORMAT_FOLDED_WAKERS, &len);

	cr_expect_not_null(strstr(text, "io_schedule;[disk fsync];--;__lll_lock_wait;cart_add;"
					"kworker/1:2/33 123000000\n"));
	cr_expect_not_null(strstr(text, "[net recv];--;softirq 62200000\n"));
	cr_expect_not_null(strstr(text, "nginx/4245;[cpu];[cpu] 8200000\n"));
	free(text);
	fixture_free(f);
}

Test(export, inlined_frames_are_lines_of_one_location)
{
	struct snap_fixture *f = fixture_new();
	struct snap_mapping m = { .start = 0x1000, .end = 0x2000 };
	struct profile p;

	m.path = fx(f, "/opt/app");
	m.build_id = fx(f, "abcd");
	f->frames[2].inlined = true; /* fdatasync into cart_flush */
	f->frames[3].ip = f->frames[2].ip;
	f->frames[2].mapping = f->frames[3].mapping = 1;
	f->s.mappings = &m;
	f->s.mapping_cnt = 1;
	fixture_strings(f);
	cr_assert_eq(profile_build(&f->s, &p), 0);
	const struct prof_location *two = NULL;

	for (uint32_t i = 0; i < p.locations.cnt; i++) {
		if (p.locations.p[i].cnt == 2) {
			cr_expect_null(two, "only one");
			two = &p.locations.p[i];
		}
	}
	cr_assert_not_null(two);
	const struct prof_line *l = &p.lines.p[two->first];

	cr_expect_str_eq(profile_string(&p, p.functions.p[l[0].function - 1].name), "fdatasync");
	cr_expect_str_eq(profile_string(&p, p.functions.p[l[1].function - 1].name), "cart_flush");
	cr_expect_str_eq(profile_string(&p, p.functions.p[l[1].function - 1].file), "cart.c");
	cr_expect_eq(l[1].line, 131);
	cr_expect_eq(two->address, 0x1002);
	cr_assert_eq(two->mapping, 1);
	cr_expect_str_eq(profile_string(&p, p.mappings.p[0].build_id), "abcd");
	profile_done(&p);
	fixture_free(f);
}
