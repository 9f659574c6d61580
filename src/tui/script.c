/* SPDX-License-Identifier: Apache-2.0 */
/* A UI without a terminal: keys from a file, screens to files. One command a line:
 *
 *	size 120x36      of the screen; 80x24 at first
 *	keys j<Enter>    as typed; named keys in <>, "<<" is '<'
 *	wait TEXT        until the screen has this text, 30 s at most; "quoted" for blanks around it
 *	gone TEXT        until it no longer has it
 *	text FILE        writes the screen as text
 *	svg FILE         writes it as a picture
 *
 * '#' begins a comment at the start of a line. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "svg.h"
#include "ui.h"

#define WAIT_MS 30000

struct run {
	struct ui ui;
	struct canvas canvas;
	struct cc_err *err;
	bool quit;
};

CC_PRINTF(3, 4) static int wrong(struct run *r, int code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(r->err->msg, sizeof(r->err->msg), fmt, ap);
	va_end(ap);
	return code;
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void take_snapshot(struct run *r)
{
	uint64_t cnt;
	ssize_t n = read(r->ui.opts.event_fd, &cnt, sizeof(cnt));
	(void)n; /* not readable: what there is, is taken all the same */
	struct snapshot *s = r->ui.opts.ops->take(r->ui.opts.ctx);
	if (!s)
		return;
	if (!r->ui.opts.live) { /* its cost is this run's: a saved screen is the same each time */
		s->runtime.cpu_share = 0;
		s->runtime.rss_bytes = 0;
	}
	r->quit |= (ui_snapshot(&r->ui, s) & UI_QUIT) != 0;
}

static int on_screen(struct run *r, const char *what, bool *ret)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return -ENOMEM;
	ui_draw(&r->ui, &r->canvas);
	canvas_dump(&r->canvas, f);
	int err = fclose(f) ? -ENOMEM : 0;
	*ret = !err && strstr(text, what);
	free(text);
	return err;
}

static int wait_for(struct run *r, const char *what, bool there)
{
	int64_t end = now_ms() + WAIT_MS;
	for (;;) {
		struct pollfd p[] = { { .fd = r->ui.opts.event_fd, .events = POLLIN },
				      { .fd = r->ui.save_fd, .events = POLLIN } };
		bool seen;
		take_snapshot(r);
		if (poll(p, 2, 0) > 0 && p[1].revents)
			ui_saved(&r->ui);
		int err = on_screen(r, what, &seen);
		if (err || seen == there)
			return err;
		int64_t left = end - now_ms();
		if (left <= 0)
			return wrong(r, -ETIMEDOUT, "'%.100s' %s within %d s", what,
				     there ? "did not appear" : "did not go", WAIT_MS / 1000);
		p[1].fd = r->ui.save_fd;
		poll(p, 2, (int)left);
	}
}

static int run_wait(struct run *r, char *arg) { return wait_for(r, arg, true); }
static int run_gone(struct run *r, char *arg) { return wait_for(r, arg, false); }

static int run_size(struct run *r, char *arg)
{
	int w, h, used = 0;
	if (sscanf(arg, "%4dx%4d%n", &w, &h, &used) != 2 || arg[used] || w < 1 || h < 1 ||
	    w > 1000 || h > 1000)
		return wrong(r, -EBADMSG, "size '%.40s': wanted WxH, as 120x36", arg);
	canvas_done(&r->canvas);
	int err = canvas_init(&r->canvas, w, h);
	if (err)
		return err;
	r->canvas.ascii = r->ui.opts.ascii;
	ui_resize(&r->ui, w, h);
	return 0;
}

static int run_keys(struct run *r, char *arg)
{
	const char *s = arg;
	while (*s && !r->quit) {
		int key = keymap_next_key(&s);
		if (!key)
			return wrong(r, -EBADMSG, "no key '%.40s'", s);
		r->quit |= (ui_key(&r->ui, key) & UI_QUIT) != 0;
	}
	return 0;
}

static int write_text(const struct run *r, FILE *f)
{
	canvas_dump(&r->canvas, f);
	return 0;
}

static int write_svg(const struct run *r, FILE *f)
{
	return svg_write(&r->canvas, &r->ui.theme, f);
}

static int save_screen(struct run *r, const char *path, int (*write)(const struct run *r, FILE *f))
{
	FILE *f = fopen(path, "we");
	if (!f)
		return wrong(r, -errno, "%.120s: %s", path, strerror(errno));
	ui_draw(&r->ui, &r->canvas);
	int err = write(r, f);
	if (fclose(f) && !err)
		err = -errno;
	return err ? wrong(r, err, "%.120s: %s", path, strerror(-err)) : 0;
}

static int run_text(struct run *r, char *arg) { return save_screen(r, arg, write_text); }
static int run_svg(struct run *r, char *arg) { return save_screen(r, arg, write_svg); }

static int run_line(struct run *r, char *line)
{
	static const struct {
		const char *name;
		int (*run)(struct run *r, char *arg);
	} commands[] = {
		{ "size", run_size }, { "keys", run_keys }, { "wait", run_wait },
		{ "gone", run_gone }, { "text", run_text }, { "svg", run_svg },
	};
	line += strspn(line, " \t");
	line[strcspn(line, "\r\n")] = '\0';
	if (!*line || *line == '#')
		return 0;
	size_t len = strcspn(line, " \t");
	char *arg = line + len + strspn(line + len, " \t");
	size_t arg_len = strlen(arg);
	if (arg_len > 1 && *arg == '"' && arg[arg_len - 1] == '"') {
		arg[arg_len - 1] = '\0';
		arg++;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (strlen(commands[i].name) == len && !strncmp(commands[i].name, line, len))
			return *arg ? commands[i].run(r, arg)
				    : wrong(r, -EBADMSG, "%s what?", commands[i].name);
	return wrong(r, -EBADMSG, "no command '%.*s': there are size, keys, wait, gone, text, svg",
		     (int)CC_MIN(len, 40), line);
}

static int run_file(struct run *r, FILE *f)
{
	char line[4096];
	int err = run_size(r, (char[]){ "80x24" });
	for (r->err->pos = 1; !err && !r->quit && fgets(line, sizeof(line), f); r->err->pos++) {
		err = strchr(line, '\n') || feof(f) ? run_line(r, line)
						    : wrong(r, -EBADMSG, "the line is too long");
		if (err)
			return err; /* with its line */
	}
	r->err->pos = 0;
	if (!err && ferror(f))
		return wrong(r, -EIO, "it cannot be read: %s", strerror(errno));
	return err;
}

int tui_script(const struct tui_opts *o, const char *path, struct cc_err *err)
{
	struct run r = { .err = err };
	*err = (struct cc_err){ .pos = 0 };
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	if (!f)
		return wrong(&r, -errno, "%s", strerror(errno));
	/* the files are UTF-8, whatever the terminal would be */
	setlocale(LC_CTYPE, "C.UTF-8");
	int e = ui_init(&r.ui, o);
	if (!e) {
		e = run_file(&r, f);
		ui_done(&r.ui);
	}
	canvas_done(&r.canvas);
	if (f != stdin)
		fclose(f);
	if (e && !*err->msg)
		wrong(&r, e, "%s", strerror(-e));
	return e;
}
