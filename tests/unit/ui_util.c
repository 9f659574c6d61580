/* SPDX-License-Identifier: Apache-2.0 */
#include "ui_util.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct snapshot *take(void *ctx)
{
	(void)ctx;
	return NULL;
}

static int command(void *ctx, const struct tui_cmd *cmd)
{
	struct ui_test *t = ctx;
	t->last = *cmd;
	t->cmd_cnt++;
	return 0;
}

static int save(void *ctx, const struct tui_save *what, char *msg, size_t cap)
{
	struct ui_test *t = ctx;
	t->saved = *what;
	t->save_cnt++;
	snprintf(msg, cap, t->save_fd ? "saving" : "saved as test.pb.gz");
	return t->save_fd;
}

static int saved(void *ctx, char *msg, size_t cap)
{
	struct ui_test *t = ctx;
	snprintf(msg, cap, "saved as test.pb.gz, later");
	return t->save_end;
}

static const struct tui_ops ops = {
	.take = take, .command = command, .save = save, .saved = saved
};

void ui_test_init(struct ui_test *t, int w, int h, bool live)
{
	setenv("TZ", "UTC", 1);
	tzset();
	unsetenv("NO_COLOR");
	setenv("XDG_CONFIG_HOME", "/proc/none", 1); /* no key may write the real file */
	cr_assert(setlocale(LC_CTYPE, "C.UTF-8"), "no C.UTF-8 locale");
	memset(t, 0, sizeof(*t));
	struct tui_opts o = { .ops = &ops,
			      .ctx = t,
			      .event_fd = -1,
			      .live = live,
			      .replay_file = live ? NULL : "/tmp/incident.criticast" };
	cr_assert_eq(ui_init(&t->ui, &o), 0);
	ui_test_size(t, w, h);
}

void ui_test_done(struct ui_test *t)
{
	ui_done(&t->ui);
	canvas_done(&t->canvas);
}

void ui_test_snapshot(struct ui_test *t, unsigned int how)
{
	t->effects |= ui_snapshot(&t->ui, ui_fixture(how));
}

void ui_test_size(struct ui_test *t, int w, int h)
{
	canvas_done(&t->canvas);
	cr_assert_eq(canvas_init(&t->canvas, w, h), 0);
	t->effects |= ui_resize(&t->ui, w, h);
}

void ui_test_keys(struct ui_test *t, const char *keys)
{
	while (*keys) {
		int key = keymap_next_key(&keys);
		cr_assert(key, "no key '%s'", keys);
		t->effects |= ui_key(&t->ui, key);
	}
}

char *ui_test_screen(struct ui_test *t)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	cr_assert(f);
	ui_draw(&t->ui, &t->canvas);
	canvas_dump(&t->canvas, f);
	fclose(f);
	return text;
}
