/* SPDX-License-Identifier: Apache-2.0 */
/* Random keys, sizes and times on the screens of a real recording; the screens must stay whole.
 * usage: fuzz RECORDING STEPS [SEED]. The same seed does the same. Closes with "N passed, N
 * failed".
 */
#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"
#include "filter.h"
#include "picker.h"
#include "source.h"
#include "trace.h"
#include "ui.h"
#include "unit/ui_fixture.c" /* programs here are made of one file */

struct fuzz {
	uint64_t rnd;
	const char *file;
	struct engine *engine;
	struct cc_source *source;
	struct ui ui;
	struct canvas canvas;
	struct tui_cmd cmd;
	struct snapshot *used[64]; /* given back: most are shown again, for to make one is dear */
	uint32_t used_cnt;
	char last[512]; /* what was done last, for the report */
	unsigned int failed;
};

static uint32_t rnd(struct fuzz *f, uint32_t below) /* xorshift64* */
{
	f->rnd ^= f->rnd >> 12;
	f->rnd ^= f->rnd << 25;
	f->rnd ^= f->rnd >> 27;
	return (uint32_t)((f->rnd * 0x2545f4914f6cdd1dull) >> 33) % below;
}

static void done(struct fuzz *f, const char *fmt, ...)
{
	char what[64];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	size_t n = strlen(f->last), add = strlen(what);
	if (n + add + 1 > sizeof(f->last)) {
		memmove(f->last, f->last + add, n - add + 1);
		n -= add;
	}
	memcpy(f->last + n, what, add + 1);
}

static void expect(struct fuzz *f, bool ok, const char *what)
{
	if (ok)
		return;
	f->failed++;
	if (f->failed <= 5)
		printf("FAILED: %s, on %s at %dx%d, after: %s\n", what,
		       screen_name(ui_screen(&f->ui)), f->ui.w, f->ui.h, f->last);
}

/* ---- the recording, refresh by refresh, for ever ---- */

static int feed(void *ctx, const struct cc_rec *rec, size_t len)
{
	int err = engine_feed(ctx, rec, len);
	return err && err != -EINVAL ? err : 0;
}

static void start_over(struct fuzz *f)
{
	struct cc_err why;
	cc_source_free(f->source);
	engine_free(f->engine);
	f->engine = NULL;
	if (trace_source_new(f->file, &why, &f->source) ||
	    engine_new(&(struct engine_opts){ .window_ns = CC_S(60) }, &f->engine)) {
		fprintf(stderr, "%s: %s\n", f->file, why.msg);
		exit(2);
	}
}

static struct snapshot *next_snapshot(struct fuzz *f)
{
	if (f->used_cnt && rnd(f, 10)) {
		uint32_t at = rnd(f, f->used_cnt);
		struct snapshot *again = f->used[at];
		f->used[at] = f->used[--f->used_cnt];
		return again;
	}
	struct cc_query q = { .window_ns = CC_S(1) + CC_MS(rnd(f, 30000)),
			      .sort = f->cmd.sort,
			      .ascending = f->cmd.ascending,
			      .group = f->cmd.group,
			      .root_causes = f->cmd.root_causes,
			      .by_port = f->cmd.by_port,
			      .selected = f->cmd.selected,
			      .also = f->cmd.also,
			      .max_rows = 1 + rnd(f, 200) };
	struct filter *filter = NULL;
	struct snapshot *s;
	struct cc_err why;
	if (rnd(f, 4) == 0) /* states that no recording has */
		return ui_fixture(rnd(f, 1u << 7));
	for (uint32_t n = rnd(f, 4); n; n--)
		if (f->source->ops->poll(f->source, 0, feed, f->engine) <= 0)
			start_over(f);
	if (filter_parse(f->cmd.filter, &why, &filter))
		expect(f, false, "a filter that does not parse was given");
	q.filter = filter;
	if (snapshot_build(f->engine, &q, &s))
		abort();
	filter_free(filter);
	return s;
}

/* ---- the owner that the UI talks to ---- */

static struct snapshot *take(void *ctx)
{
	(void)ctx;
	return NULL;
}

static void give_back(void *ctx, struct snapshot *s)
{
	struct fuzz *f = ctx;
	if (f->used_cnt < ARRAY_SIZE(f->used))
		f->used[f->used_cnt++] = s;
	else
		snapshot_free(s);
}

static int command(void *ctx, const struct tui_cmd *cmd)
{
	struct fuzz *f = ctx;
	f->cmd = *cmd;
	return rnd(f, 50) ? 0 : -ENOMEM;
}

static int save(void *ctx, const struct tui_save *what, char *msg, size_t cap)
{
	(void)what;
	snprintf(msg, cap, "saved");
	return rnd(ctx, 3) ? 0 : rnd(ctx, 2) ? 1000 : -ENOSPC;
}

static int saved(void *ctx, char *msg, size_t cap)
{
	snprintf(msg, cap, "saved later");
	return rnd(ctx, 2) ? 0 : -EIO;
}

static const struct tui_ops ops = {
	.take = take, .give_back = give_back, .command = command, .save = save, .saved = saved
};

/* ---- what must hold ---- */

static void check_canvas(struct fuzz *f, const struct canvas *c)
{
	bool wide = true, shown = true;
	for (int y = 0; y < c->h; y++)
		for (int x = 0; x < c->w; x++) {
			const struct cell *cell = canvas_at(c, x, y);
			if (cell->width == 0) {
				wide &= x > 0 && cell[-1].width == 2;
				continue;
			}
			wide &= cell->width == 1 ||
				(cell->width == 2 && x + 1 < c->w && cell[1].width == 0);
			shown &= cell->ch >= 0x20 && cell->ch < 0x110000 &&
				 !(cell->ch >= 0x7f && cell->ch < 0xa0) &&
				 !(c->ascii && cell->ch >= 0x7f) && CELL_ROLE(cell->st) < ROLE_CNT;
		}
	expect(f, wide, "a half of a wide character");
	expect(f, shown, "a cell that no terminal may get");
	expect(f, c->cur_y < c->h && c->cur_x >= 0 && c->cur_x < c->w, "the cursor is outside");
}

/* @asked: the user asked to go elsewhere, once the snapshot is there that knows it, or has chosen
 * no row yet: then it is the first. */
static void check_selection(struct fuzz *f, struct cc_reqid before, bool asked)
{
	const struct snapshot *s;
	if (before.kind != CC_REQID_NONE && !asked)
		expect(f, cc_reqid_eq(before, f->ui.want.selected),
		       "the selection moved by itself");
	if (f->ui.w < UI_MIN_W || f->ui.h < UI_MIN_H)
		return; /* no row is shown */
	const struct snap_request *r = ui_row(&f->ui, f->ui.pos[SCREEN_REQUESTS].row, &s);
	if (r && ui_screen(&f->ui) == SCREEN_REQUESTS && !f->ui.want.by_port)
		expect(f, cc_reqid_eq(r->id, f->ui.want.selected),
		       "the row shown as selected is another");
}

static void draw(struct fuzz *f)
{
	ui_draw(&f->ui, &f->canvas);
	check_canvas(f, &f->canvas);
	expect(f, f->ui.depth >= 1 && f->ui.depth <= UI_DEPTH, "screens without end");
}

/* ---- steps ---- */

static int random_key(struct fuzz *f)
{
	static const char text[] =
		"lat>10ms wait=lock |!peer~127 conf=H 12:04:31 +5s -1m 50% \"\xc3";
	const int *keys = f->ui.keys.keys[1 + rnd(f, ACT_CNT - 1)];
	uint32_t cnt = 0;
	while (cnt < KEYMAP_KEYS && keys[cnt])
		cnt++;
	switch (rnd(f, 12)) {
	case 0:
		return (int)rnd(f, 0x110000);
	case 1:
		return TK_UP + (int)rnd(f, TK_F12 - TK_UP + 2);
	case 2:
	case 3:
		return text[rnd(f, sizeof(text) - 1)] & 0x7f;
	case 4:
		return (int)rnd(f, 128);
	case 5:
		return TK_ENTER;
	case 6:
		return TK_ESC;
	default:
		return cnt ? keys[rnd(f, cnt)] : 'j';
	}
}

static void step_key(struct fuzz *f)
{
	int key = random_key(f);
	char name[16];
	keymap_key_name(key, name);
	done(f, " %s", name);
	unsigned int effects = ui_key(&f->ui, key);
	expect(f, key != TK_CTRL('c') || effects & UI_QUIT, "^C quits");
	if (effects & UI_COPY)
		expect(f, f->ui.clip && *f->ui.clip, "nothing to copy");
}

static void step_size(struct fuzz *f)
{
	int w = rnd(f, 3) ? 20 + (int)rnd(f, 180) : 1 + (int)rnd(f, 45);
	int h = rnd(f, 3) ? 8 + (int)rnd(f, 60) : 1 + (int)rnd(f, 14);
	bool ascii = f->canvas.ascii;
	done(f, " %dx%d", w, h);
	canvas_done(&f->canvas);
	if (canvas_init(&f->canvas, w, h))
		abort();
	f->canvas.ascii = ascii;
	ui_resize(&f->ui, w, h);
}

static void step_snapshot(struct fuzz *f)
{
	const struct tui_cmd *want = &f->ui.want;
	struct cc_reqid before = want->selected;
	bool asked =
		f->ui.follow || !f->ui.chosen || want->by_port || want->also.kind || want->span_tid;
	done(f, " *");
	struct snapshot *s = next_snapshot(f);
	s->runtime.paused = f->cmd.paused;
	s->runtime.live = f->ui.opts.live;
	ui_snapshot(&f->ui, s);
	check_selection(f, before, asked);
	if (f->ui.save_fd >= 0)
		ui_saved(&f->ui);
}

static void start_ui(struct fuzz *f)
{
	struct tui_opts o = { .ops = &ops,
			      .ctx = f,
			      .event_fd = -1,
			      .live = rnd(f, 2),
			      .replay_file = "incident.criticast",
			      .ascii = rnd(f, 4) == 0 };
	f->cmd = (struct tui_cmd){ 0 };
	if (ui_init(&f->ui, &o))
		abort();
	f->last[0] = '\0';
	f->canvas.ascii = o.ascii;
	step_size(f);
	f->canvas.ascii = o.ascii;
	draw(f); /* before the first snapshot, too */
}

static void run_screens(struct fuzz *f, long steps)
{
	start_over(f);
	for (long i = 0; i < steps; i++) {
		if (i % 2500 == 0) {
			if (i)
				ui_done(&f->ui);
			start_ui(f);
		}
		uint32_t what = rnd(f, 100);
		if (what < 4)
			step_snapshot(f);
		else if (what < 8)
			step_size(f);
		else
			step_key(f);
		if (what < 50)
			draw(f);
	}
	ui_done(&f->ui);
	while (f->used_cnt)
		snapshot_free(f->used[--f->used_cnt]);
	cc_source_free(f->source);
	engine_free(f->engine);
}

static void run_picker(struct fuzz *f, long steps)
{
	struct keymap keys;
	keymap_init(&keys);
	struct picker p = { .keys = &keys };
	if (ui_init(&f->ui, &(struct tui_opts){ .ops = &ops, .ctx = f, .event_fd = -1 }))
		abort();
	for (long i = 0; i < steps; i++) {
		if (rnd(f, 20) == 0) {
			size_t cnt = rnd(f, 40);
			struct picker_server *v = calloc(cnt + 1, sizeof(*v));
			for (size_t k = 0; k < cnt; k++) {
				v[k] = (struct picker_server){ .port = 1 + rnd(f, 300), .pid = 7 };
				snprintf(v[k].comm, sizeof(v[k].comm), "データ%u", rnd(f, 99));
			}
			picker_take(&p, v, cnt);
		}
		if (rnd(f, 20) == 0 || !f->canvas.cells)
			step_size(f);
		picker_key(&p, random_key(f), (int)rnd(f, 50));
		expect(f, p.end != PICKER_CHOSEN || picker_selected(&p), "nothing was chosen");
		p.end = PICKER_ON;
		picker_draw(&p, &f->canvas);
		check_canvas(f, &f->canvas);
	}
	picker_done(&p);
	ui_done(&f->ui);
	while (f->used_cnt)
		snapshot_free(f->used[--f->used_cnt]);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: fuzz RECORDING STEPS [SEED]\n");
		return 2;
	}
	long steps = atol(argv[2]);
	struct fuzz f = { .file = argv[1], .rnd = argc > 3 ? strtoull(argv[3], NULL, 0) : 1 };
	f.rnd = f.rnd * 0x9e3779b97f4a7c15ull | 1;
	setenv("TZ", "UTC", 1);
	setenv("XDG_CONFIG_HOME", "/proc/none", 1); /* Setup's save must not write the real file */
	setlocale(LC_CTYPE, "C.UTF-8");
	setvbuf(stdout, NULL, _IOLBF, 0);
	run_screens(&f, steps);
	printf("screens: %ld steps\n", steps);
	run_picker(&f, steps / 10);
	printf("picker: %ld steps\n", steps / 10);
	canvas_done(&f.canvas);
	printf("%d passed, %d failed\n", !f.failed, f.failed != 0);
	return f.failed != 0;
}
