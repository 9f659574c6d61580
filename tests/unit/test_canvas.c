/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "canvas.h"

static struct canvas c;

static void setup(void)
{
	cr_assert(setlocale(LC_CTYPE, "C.UTF-8"));
	cr_assert_eq(canvas_init(&c, 10, 2), 0);
}

static void teardown(void) { canvas_done(&c); }

TestSuite(canvas, .init = setup, .fini = teardown);

/* The text of row @y, trailing blanks cut. */
static const char *row(int y)
{
	static char buf[256];
	char *text = NULL, *line;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	canvas_dump(&c, f);
	fclose(f);
	line = text;
	while (y--)
		line = strchr(line, '\n') + 1;
	snprintf(buf, sizeof(buf), "%.*s", (int)strcspn(line, "\n"), line);
	free(text);
	return buf;
}

Test(canvas, clips_on_both_sides)
{
	cr_expect_eq(canvas_text(&c, -2, 0, 20, 0, "abcdefghijklmnop"), 12);
	cr_expect_str_eq(row(0), "cdefghijkl");
	cr_expect_eq(canvas_text(&c, 8, 1, 20, 0, "xyz"), 2);
	cr_expect_str_eq(row(1), "        xy");
	cr_expect_eq(canvas_text(&c, 0, 5, 3, 0, "out"), 0);
	cr_expect_eq(canvas_text(&c, 0, -1, 3, 0, "out"), 0);
	cr_expect_eq(canvas_text(&c, 0, 0, 0, 0, "out"), 0);
}

Test(canvas, wide_characters_take_two_cells)
{
	cr_expect_eq(canvas_text(&c, 0, 0, 10, 0, "日本x"), 5);
	cr_expect_eq(canvas_at(&c, 0, 0)->width, 2);
	cr_expect_eq(canvas_at(&c, 1, 0)->width, 0);
	cr_expect_eq(canvas_at(&c, 4, 0)->ch, 'x');
	cr_expect_str_eq(row(0), "日本x");
	/* half of a wide character that is written over leaves a blank, not half a glyph */
	canvas_text(&c, 1, 0, 1, 0, "y");
	cr_expect_str_eq(row(0), " y本x");
	canvas_text(&c, 2, 0, 1, 0, "z");
	cr_expect_str_eq(row(0), " yz x");
	/* a wide one that does not fit whole is left out */
	cr_expect_eq(canvas_text(&c, 9, 1, 5, 0, "日"), 0);
	cr_expect_eq(canvas_width("日本x"), 5);
}

Test(canvas, bad_bytes_and_controls_do_no_harm)
{
	canvas_text(&c, 0, 0, 10, 0, "a\x1b[b\x07\xff\xc3(c");
	const char *got = row(0);
	cr_expect_str_eq(got, "a[b\xef\xbf\xbd\xef\xbf\xbd(c", "'%s'", got);
	/* overlong, surrogate, beyond Unicode, cut short */
	static const char *const bad[] = { "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
					   "\xe2\x82" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *s = bad[i];
		cr_expect_eq(canvas_decode(&s), 0xfffd, "%zu", i);
	}
}

Test(canvas, encode_and_decode_agree)
{
	for (uint32_t ch = 1; ch < 0x110000; ch += ch < 0x3000 ? 1 : 97) {
		char buf[5];
		const char *s = buf;
		if (ch >= 0xd800 && ch < 0xe000)
			continue;
		int n = canvas_encode(ch, buf);
		cr_assert_eq(canvas_decode(&s), ch, "%x", ch);
		cr_assert_eq(s - buf, n);
	}
}

Test(canvas, fit_keeps_both_ends)
{
	cr_expect_eq(canvas_fit(&c, 0, 0, 7, 0, "abcdefghij"), 7);
	cr_expect_str_eq(row(0), "abc…hij");
	canvas_clear(&c);
	canvas_fit(&c, 0, 0, 10, 0, "abcdefghij");
	cr_expect_str_eq(row(0), "abcdefghij");
	canvas_clear(&c);
	int n = canvas_fit(&c, 0, 0, 6, 0, "日本語日本語");
	cr_expect(n <= 6);
	cr_expect_str_eq(row(0), "日…語");
	canvas_clear(&c);
	canvas_cut(&c, 0, 0, 5, 0, "abcdefghij");
	cr_expect_str_eq(row(0), "abcd…");
	canvas_clear(&c);
	canvas_right(&c, 0, 0, 5, 0, "xy");
	cr_expect_str_eq(row(0), "   xy");
}

Test(canvas, wrap_breaks_at_words)
{
	cr_expect_eq(canvas_wrap(&c, 0, 0, 10, 2, 0, "one two three"), 2);
	cr_expect_str_eq(row(0), "one two");
	cr_expect_str_eq(row(1), "three");
	canvas_clear(&c);
	cr_expect_eq(canvas_wrap(&c, 0, 0, 10, 2, 0, "abcdefghijklmnopqrstuvwxyz"), 2);
	cr_expect_str_eq(row(0), "abcdefghi…");
	cr_expect_str_eq(row(1), "qrstuvwxyz");
	canvas_clear(&c);
	cr_expect_eq(canvas_lines("cause /var/tmp/a/very/long/name", 10), 4);
	canvas_done(&c);
	cr_assert_eq(canvas_init(&c, 24, 2), 0);
	cr_expect_eq(canvas_wrap(&c, 0, 0, 24, 2, 0, "it is on disk /var/tmp/a/longer/name at end"),
		     2);
	cr_expect_str_eq(row(0), "it is on disk");
	cr_expect_str_eq(row(1), "/var/tm…ger/name at end", "the name gives way: %s", row(1));
	cr_expect_eq(canvas_lines("one two three", 10), 2);
	cr_expect_eq(canvas_lines("", 10), 0);
	cr_expect_eq(canvas_wrap(&c, 0, 0, 1, 2, 0, "日本"), 0);
	cr_expect_eq(canvas_wrap(&c, 0, 0, 10, 2, 0, ""), 0);
}

Test(canvas, pan_shows_the_rest_and_stops_at_the_end)
{
	static const struct {
		int pan;
		char want[24];
	} cases[] = {
		{ 0, "0123…efghi" }, { -3, "0123…efghi" }, { 2, "…3456789a…" },
		{ 8, "…9abcdefg…" }, { 9, "…abcdefghi" },  { 400, "…abcdefghi" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		canvas_clear(&c);
		canvas_pan(&c, 0, 0, 10, 0, "0123456789abcdefghi", cases[i].pan);
		cr_expect_str_eq(row(0), cases[i].want, "%d: %s", cases[i].pan, row(0));
	}
	canvas_clear(&c);
	canvas_pan(&c, 0, 0, 10, 0, "has room", 8);
	cr_expect_str_eq(row(0), "has room");
}

Test(canvas, ascii_replaces_every_glyph)
{
	c.ascii = true;
	canvas_text(&c, 0, 0, 10, 0, "a…─│▁█└日é");
	for (int x = 0; x < c.w; x++)
		cr_expect_lt(canvas_at(&c, x, 0)->ch, 0x7f);
	cr_expect_str_eq(row(0), "a.-|_#`???");
	canvas_clear(&c);
	canvas_cut(&c, 0, 0, 10, 0, "a longer text");
	cr_expect_str_eq(row(0), "a longer..", "one dot would be a part of it");
	canvas_clear(&c);
	canvas_fit(&c, 0, 0, 10, 0, "/tmp/a.file.aof");
	cr_expect_str_eq(row(0), "/tmp...aof");
}

Test(canvas, size_is_checked)
{
	struct canvas other = { 0 };
	cr_expect_eq(canvas_init(&other, 0, 5), -EINVAL);
	cr_expect_eq(canvas_init(&other, 5, -1), -EINVAL);
	cr_expect_null(other.cells);
	cr_assert_eq(canvas_init(&other, 10, 2), 0);
	cr_expect(canvas_same(&c, &other));
	canvas_add(&other, 3, 1, 1, CELL_SEL);
	cr_expect_not(canvas_same(&c, &other));
	canvas_done(&other);
}
