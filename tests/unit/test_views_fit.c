/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the values are: no number is shown in part, no sentence loses its middle. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "ui_util.h"

/* The screen as one string without line ends and repeated blanks: sentences read on. */
static char *flat(struct ui_test *t)
{
	char *text = ui_test_screen(t), *out = text;
	for (const char *p = text; *p; p++) {
		char ch = *p == '\n' ? ' ' : *p;
		if (ch != ' ' || out == text || out[-1] != ' ')
			*out++ = ch;
	}
	*out = '\0';
	return text;
}

static bool shows(struct ui_test *t, const char *what)
{
	char *text = ui_test_screen(t);
	bool found = strstr(text, what) != NULL;
	free(text);
	return found;
}

/* What a day under load, a hang of a week, and hostile files may give. */
static void make_extreme(struct snapshot *s)
{
	struct snap_request *r = (struct snap_request *)s->requests;
	struct snap_piece *p = (struct snap_piece *)s->pieces;
	struct snap_wait *w = (struct snap_wait *)s->waits;
	struct snap_thread *t = (struct snap_thread *)s->threads;
	struct snap_port *port = (struct snap_port *)s->ports;
	static const cc_ns took[] = { CC_S(9), CC_S(60), CC_S(99999), CC_S(86400u * 300),
				      UINT64_MAX };
	for (uint32_t i = 0; i < s->request_cnt; i++) {
		r[i].latency_ns = took[i % ARRAY_SIZE(took)];
		r[i].unexplained_ns = r[i].latency_ns / 5000;
		r[i].class_ns[WAIT_RUNQ] = r[i].class_ns[WAIT_CPU] = r[i].latency_ns / 3000;
		r[i].confidence = 100;
	}
	for (uint32_t i = 0; i < s->piece_cnt; i++)
		p[i].p.end = p[i].p.start + took[i % ARRAY_SIZE(took)] / 4;
	for (uint32_t i = 0; i < s->wait_cnt; i++) {
		w[i].total_ns = w[i].p50_ns = w[i].p99_ns = w[i].what_if_ns =
			took[i % ARRAY_SIZE(took)];
		w[i].requests = UINT32_MAX;
		w[i].share = 0.0004;
		w[i].confidence = 100;
	}
	for (uint32_t i = 0; i < s->thread_cnt; i++) {
		t[i].requests = UINT32_MAX;
		t[i].mix[0] = UINT64_MAX / 4;
		t[i].mix[1] = t[i].mix[2] = 1;
	}
	for (uint32_t i = 0; i < s->port_cnt; i++) {
		port[i].requests = UINT32_MAX;
		port[i].p50_ns = port[i].p99_ns = took[i % ARRAY_SIZE(took)];
	}
	s->stats.events = s->stats.episodes = s->stats.short_cnt = UINT64_MAX;
	s->stats.lost_ns = UINT64_MAX;
	s->stats.counter[CC_CNT_DROP_REQ] = UINT64_MAX / 2;
}

Test(views_fit, no_number_is_cut)
{
	static const char *const screens[] = { "", "t", "2", "2t", "2ttttt", "3", "4", "<Enter>" };
	for (size_t i = 0; i < ARRAY_SIZE(screens); i++)
		for (int w = 40; w <= 170; w++) {
			struct ui_test t;
			ui_test_init(&t, w, 30, true);
			struct snapshot *s = ui_fixture(SNAP_LOSS);
			make_extreme(s);
			ui_snapshot(&t.ui, s);
			ui_test_keys(&t, screens[i]);
			cr_expect_not(shows(&t, "##"), "'%s' %d", screens[i], w);
			if (!i)
				cr_expect(shows(&t, " H100"), "%d", w);
			if (!i && w >= 80)
				cr_expect(shows(&t, " <0.1 H100"), "%d", w);
			ui_test_done(&t);
		}
}

Test(views_fit, a_number_without_room_is_no_other_number)
{
	struct canvas c = { 0 };
	char *text = NULL;
	size_t len;
	cr_assert_eq(canvas_init(&c, 12, 1), 0);
	canvas_right(&c, 1, 0, 4, ROLE_FG, "1234");
	canvas_right(&c, 6, 0, 4, ROLE_FG, "12345");
	FILE *f = open_memstream(&text, &len);
	canvas_dump(&c, f);
	fclose(f);
	cr_expect_str_eq(text, " 1234 ####\n");
	free(text);
	canvas_done(&c);
}

Test(views_fit, the_sorted_columns_title_is_whole)
{
	static const struct {
		const char *keys, *title;
	} sorts[] = {
		{ "", "LAT ms▾" },   { ">", " AGE▾" },   { ">>", " CONF▾" },  { ">>>", " ?%▾" },
		{ ">>>>", "WAIT▾" }, { "sp", " CPU▾ " }, { "sr", " RUNQ▾ " },
	};
	for (size_t i = 0; i < ARRAY_SIZE(sorts); i++) {
		struct ui_test t;
		ui_test_init(&t, 160, 24, true);
		ui_test_snapshot(&t, 0);
		ui_test_keys(&t, sorts[i].keys);
		cr_expect(shows(&t, sorts[i].title), "%s", sorts[i].title);
		ui_test_done(&t);
	}
}

Test(views_fit, where_the_time_went_ends_with_its_unit)
{
	for (unsigned int seed = 1; seed <= 60; seed++)
		for (int w = 40; w <= 160; w += 1 + (int)(seed % 3)) {
			struct ui_test t;
			unsigned int x = seed;
			ui_test_init(&t, w, 24, true);
			struct snapshot *s = ui_fixture(0);
			for (int i = 0; i < 9; i++) {
				x = x * 1103515245 + 12345;
				s->p99_mix[i] = x >> 16 & 1 ? 0 : 1ull << (x >> 20 & 31);
			}
			s->p99_mix[seed % 9] = 1000000;
			ui_snapshot(&t.ui, s);
			cr_expect(shows(&t, "(%)\n"), "%u at %d", seed, w);
			ui_test_done(&t);
		}
}

static const char long_sentence[] =
	"lock 117.7 of 120.3 ms (98%): boost::asio::detail::scheduler::do_run_one held by "
	"stock/14472 for 15.1 of it, stock/14467 for 9.1 in sleep 12.1 of 106.1 ms, waits for "
	"std::pair<std::string, std::vector<int>> held by keeper/14468, itself in disk fsync 88.0 "
	"ms behind kworker/u8:2 -> the root cause is disk fsync in journal_commit_transaction+0x4d "
	"of /srv/data/journal/0000000000000017.log; events were lost meanwhile";

static void set_sentence(struct snapshot *s, const char *text)
{
	size_t len = strlen(text) + 1;
	char *more = realloc((char *)s->strings, s->string_bytes + len);
	cr_assert(more);
	memcpy(more + s->string_bytes, text, len);
	for (uint32_t i = 0; i < s->request_cnt; i++)
		((struct snap_request *)s->requests)[i].verdict = s->string_bytes;
	s->strings = more;
	s->string_bytes += (uint32_t)len;
}

Test(views_fit, a_long_sentence_is_whole_where_it_is_the_answer)
{
	static const char *const screens[] = { "t", "<Enter>", "j<Enter>", "j<Enter>z" };
	static const int sizes[][2] = { { 80, 24 }, { 100, 30 }, { 120, 36 } };
	for (size_t i = 0; i < ARRAY_SIZE(screens); i++)
		for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
			struct ui_test t;
			ui_test_init(&t, sizes[k][0], sizes[k][1], true);
			struct snapshot *s = ui_fixture(0);
			set_sentence(s, long_sentence);
			ui_snapshot(&t.ui, s);
			ui_test_keys(&t, screens[i]);
			char *text = flat(&t);
			cr_expect(strstr(text, long_sentence), "'%s' at %d:\n%s", screens[i],
				  sizes[k][0], text);
			free(text);
			ui_test_done(&t);
		}
}

Test(views_fit, labels_have_a_column_for_who_asks)
{
	struct ui_test t;
	ui_test_init(&t, 120, 36, true);
	struct snapshot *s = ui_fixture(0);
	((struct snap_request *)s->requests)[1].rec.what |= CC_RQ_BUSY;
	ui_snapshot(&t.ui, s);
	cr_expect_not(shows(&t, "LABEL"));
	ui_test_keys(&t, "/busy<Enter>");
	cr_expect_eq(t.ui.pos[SCREEN_REQUESTS].row, 1, "it is found also while it is not shown");
	t.ui.columns |= 1u << COL_LABEL;
	cr_expect(shows(&t, "LABEL"));
	cr_expect(shows(&t, "busy period"));
	ui_test_done(&t);
}
