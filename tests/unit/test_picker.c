/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "picker.h"
#include "ui_util.h"

struct fixture {
	struct keymap keys;
	struct picker p;
};

static struct picker_server server(uint32_t port, uint32_t conns, const char *comm)
{
	struct picker_server s = {
		.port = port, .pid = port + 1000, .conns = conns, .netns = 1, .more = port % 3
	};
	strcpy(s.comm, comm);
	strcpy(s.user, "www-data");
	snprintf(s.command, sizeof(s.command), "/usr/sbin/%s --port %u", comm, port);
	return s;
}

static void give(struct fixture *f, const struct picker_server *v, size_t cnt)
{
	struct picker_server *own = calloc(cnt + 1, sizeof(*own));
	memcpy(own, v, cnt * sizeof(*v));
	picker_take(&f->p, own, cnt);
}

static void three(struct fixture *f)
{
	keymap_init(&f->keys);
	f->p = (struct picker){ .keys = &f->keys };
	const struct picker_server v[] = { server(80, 3, "nginx"), server(5432, 9, "postgres"),
					   server(6379, 0, "redis-server") };
	give(f, v, 3);
}

static void type(struct fixture *f, const char *keys)
{
	while (*keys)
		picker_key(&f->p, keymap_next_key(&keys), 5);
}

static uint32_t chosen(const struct fixture *f)
{
	const struct picker_server *s = picker_selected(&f->p);
	return s ? s->port : 0;
}

Test(picker, the_busiest_is_selected_and_keys_move)
{
	struct fixture f;
	three(&f);
	cr_expect_eq(chosen(&f), 5432);
	type(&f, "j");
	cr_expect_eq(chosen(&f), 6379);
	type(&f, "jj");
	cr_expect_eq(chosen(&f), 6379);
	type(&f, "g");
	cr_expect_eq(chosen(&f), 80);
	type(&f, "<PgDn>");
	cr_expect_eq(chosen(&f), 6379);
	type(&f, "<Up><Esc>");
	cr_expect_eq(f.p.end, PICKER_ON, "Esc never quits");
	type(&f, "<Enter>");
	cr_expect_eq(f.p.end, PICKER_CHOSEN);
	cr_expect_eq(chosen(&f), 5432);
	picker_done(&f.p);
}

Test(picker, the_choice_stays_while_rows_come_and_go)
{
	struct fixture f;
	three(&f);
	const struct picker_server more[] = { server(22, 1, "sshd"), server(80, 99, "nginx"),
					      server(5432, 9, "postgres") };
	give(&f, more, 3);
	cr_expect_eq(chosen(&f), 5432);
	give(&f, more, 2);
	cr_expect_eq(chosen(&f), 22, "it is gone: the first one");
	give(&f, more, 3);
	cr_expect_eq(chosen(&f), 5432, "it is back");
	give(&f, more, 0);
	cr_expect_eq(chosen(&f), 0);
	type(&f, "<Enter>");
	cr_expect_eq(f.p.end, PICKER_ON, "nothing to choose");
	type(&f, "q");
	cr_expect_eq(f.p.end, PICKER_LEFT);
	picker_done(&f.p);
}

Test(picker, a_filter_asks_every_column)
{
	static const struct {
		char typed[16];
		uint32_t port;
	} want[] = {
		{ "redis", 6379 }, { "6379", 6379 }, { "7379", 6379 }, { "REDIS", 6379 },
		{ "www", 5432 },   { "nope", 0 },    { "sbin/n", 80 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct fixture f;
		three(&f);
		type(&f, "/");
		type(&f, want[i].typed);
		cr_expect_eq(chosen(&f), want[i].port, "%s: %u", want[i].typed, chosen(&f));
		type(&f, "<Enter>");
		cr_expect_eq(f.p.end, want[i].port ? PICKER_CHOSEN : PICKER_ON);
		picker_done(&f.p);
	}
	struct fixture f;
	three(&f);
	type(&f, "/qq<Bksp><Bksp>ngi<Up>");
	cr_expect_eq(chosen(&f), 80, "a letter that is a key elsewhere is typed here");
	type(&f, "<Esc>");
	cr_expect_str_eq(f.p.filter, "");
	cr_expect_eq(f.p.end, PICKER_ON);
	picker_done(&f.p);
}

Test(picker, bound_keys_are_the_ones_of_the_screens)
{
	struct fixture f;
	three(&f);
	f.keys.keys[ACT_DOWN][0] = 'n';
	type(&f, "n");
	cr_expect_eq(chosen(&f), 6379);
	picker_done(&f.p);
}

Test(picker, every_size_is_drawn)
{
	struct ui_test t; /* for its locale */
	struct fixture f;
	ui_test_init(&t, 80, 24, true);
	three(&f);
	for (int w = 1; w < 140; w += w < 60 ? 1 : 7)
		for (int h = 1; h < 40; h += h < 14 ? 1 : 5) {
			struct canvas c;
			cr_assert_eq(canvas_init(&c, w, h), 0);
			picker_draw(&f.p, &c);
			char *text = NULL;
			size_t len;
			FILE *out = open_memstream(&text, &len);
			canvas_dump(&c, out);
			fclose(out);
			bool small = w < UI_MIN_W || h < UI_MIN_H;
			cr_expect(small || (strstr(text, "postgres") && strstr(text, "> ")),
				  "%dx%d:\n%s", w, h, text);
			cr_expect(w < 120 || small ||
					  strstr(text, "/usr/sbin/redis-server --port 6379"),
				  "%s", text);
			free(text);
			canvas_done(&c);
		}
	picker_done(&f.p);
	ui_test_done(&t);
}
