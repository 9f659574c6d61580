/* SPDX-License-Identifier: Apache-2.0 */
/* The picker on a terminal: keys and signals in, the list anew every second. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "picker.h"
#include "term.h"
#include "tui.h"

#define REFRESH_MS 1000

struct run {
	const struct picker_opts *o;
	struct picker picker;
	struct theme theme;
	struct term *term;
	struct canvas canvas;
	int signal_fd;
};

static int refresh(struct run *r)
{
	struct picker_server *servers = NULL;
	size_t cnt = 0;
	int err = r->o->list(r->o->ctx, &servers, &cnt);
	if (!err)
		picker_take(&r->picker, servers, cnt);
	return err;
}

static int paint(struct run *r)
{
	int w, h, err = 0;
	term_size(r->term, &w, &h);
	if (w != r->canvas.w || h != r->canvas.h) {
		canvas_done(&r->canvas);
		err = canvas_init(&r->canvas, w, h);
		if (err)
			return err;
		r->canvas.ascii = r->o->ascii || term_ascii(r->term);
	}
	picker_draw(&r->picker, &r->canvas);
	return term_paint(r->term, &r->canvas);
}

/* 0, -ECANCELED or -EINTR. */
static int on_signals(struct run *r)
{
	struct signalfd_siginfo si;
	int err = 0;
	while (read(r->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGINT)
			err = -ECANCELED;
		else if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGHUP)
			err = -EINTR;
		else if (si.ssi_signo == SIGTSTP)
			term_suspend(r->term);
		else if (si.ssi_signo == SIGCONT)
			term_resumed(r->term);
	}
	return err;
}

static int on_keys(struct run *r)
{
	int key;
	while (r->picker.end == PICKER_ON && (key = term_key(r->term)) != TK_NONE) {
		if (key < 0)
			return key;
		enum action a = keymap_find(r->picker.keys, SCREEN_REQUESTS, key);
		if (key == TK_CTRL('c'))
			return -ECANCELED;
		if (a == ACT_SUSPEND)
			term_suspend(r->term);
		else if (a == ACT_REDRAW)
			term_repaint(r->term);
		else
			picker_key(&r->picker, key, r->canvas.h / 2);
	}
	return 0;
}

static int choose(struct run *r)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = r->signal_fd, .events = POLLIN } };
	int err = refresh(r);
	while (!err && r->picker.end == PICKER_ON) {
		err = paint(r);
		if (err)
			return err;
		int n = poll(fds, ARRAY_SIZE(fds), REFRESH_MS);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			err = refresh(r);
		if (n > 0 && fds[1].revents)
			err = on_signals(r);
		if (!err && n > 0 && fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			err = -EIO;
		if (!err && n > 0 && fds[0].revents & POLLIN)
			err = on_keys(r);
	}
	return err;
}

static int on_terminal(struct run *r)
{
	int err = term_open(&r->term);
	if (err)
		return err;
	term_theme(r->term, &r->theme);
	err = choose(r);
	term_close(r->term);
	canvas_done(&r->canvas);
	return err;
}

int picker_run(const struct picker_opts *o, struct picker_server *ret)
{
	struct run r = { .o = o, .signal_fd = -1, .picker = { .keys = &o->config->keys } };
	struct cc_err why;
	sigset_t set, old;
	int err = theme_load(theme_first(o->theme, o->config->theme), &r.theme, &why);
	if (err)
		return err;
	tui_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	r.signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	err = r.signal_fd < 0 ? -errno : on_terminal(&r);
	if (r.signal_fd >= 0)
		close(r.signal_fd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err && r.picker.end == PICKER_LEFT)
		err = -ECANCELED;
	if (!err)
		*ret = *picker_selected(&r.picker);
	picker_done(&r.picker);
	return err;
}
