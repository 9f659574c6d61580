/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: keys, signals and snapshots in; frames out. */
#include "tui.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "term.h"
#include "ui.h"

#define LAG_NS CC_S(1)
#define FRAME_MIN_NS CC_MS(100) /* between frames that no key asked for */

struct loop {
	struct ui ui;
	struct term *term;
	struct canvas canvas;
	int signal_fd;
	bool dirty, quit;
	cc_ns painted_ns;
	int err;
};

void tui_signals(sigset_t *set)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH };
	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		sigaddset(set, all[i]);
}

static cc_ns now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return CC_S(ts.tv_sec) + (cc_ns)ts.tv_nsec;
}

static int paint(struct loop *l)
{
	int w, h, err = 0;
	term_size(l->term, &w, &h);
	if (w != l->canvas.w || h != l->canvas.h) {
		canvas_done(&l->canvas);
		err = canvas_init(&l->canvas, w, h);
		if (err)
			return err;
		l->canvas.ascii = l->ui.opts.ascii;
		ui_resize(&l->ui, l->canvas.w, l->canvas.h);
	}
	ui_draw(&l->ui, &l->canvas);
	l->dirty = false;
	l->painted_ns = now_ns();
	return term_paint(l->term, &l->canvas);
}

static void take_effects(struct loop *l, unsigned int effects)
{
	if (effects & UI_QUIT)
		l->quit = true;
	if (effects & UI_THEME)
		term_theme(l->term, &l->ui.theme);
	if (effects & UI_MOUSE)
		term_mouse(l->term, l->ui.mouse);
	if (effects & UI_COPY) {
		int err = term_copy(l->term, l->ui.clip);
		if (err)
			l->err = err;
	}
	if (effects & UI_REPAINT)
		term_repaint(l->term);
	if (effects & UI_SUSPEND)
		term_suspend(l->term);
	if (effects)
		l->dirty = true;
}

static void on_signal(struct loop *l)
{
	struct signalfd_siginfo si;
	while (read(l->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGINT)
			l->quit = true;
		else if (si.ssi_signo == SIGTERM || si.ssi_signo == SIGHUP)
			l->err = -EINTR;
		else if (si.ssi_signo == SIGTSTP)
			term_suspend(l->term);
		else if (si.ssi_signo == SIGCONT)
			term_resumed(l->term);
		l->dirty = true;
	}
}

static void on_snapshot(struct loop *l)
{
	uint64_t cnt;
	/* the count does not matter: the newest snapshot replaces all before it */
	ssize_t n = read(l->ui.opts.event_fd, &cnt, sizeof(cnt));
	struct snapshot *s = n > 0 || errno == EAGAIN ? l->ui.opts.ops->take(l->ui.opts.ctx) : NULL;
	if (!s)
		return;
	cc_ns now = now_ns(), built = s->runtime.built_ns;
	if (built && now > built + LAG_NS) /* this thread did not get to run */
		s->runtime.lag_ns = CC_MAX(s->runtime.lag_ns, now - built);
	take_effects(l, ui_snapshot(&l->ui, s));
}

static unsigned int on_mouse(struct loop *l, int key)
{
	int x, y;
	term_mouse_at(l->term, &x, &y);
	return ui_mouse(&l->ui, key, x, y);
}

/* Keys show at once, so that a typed-ahead burst costs one frame. */
static int on_input(struct loop *l)
{
	int key, cnt = 0;
	while ((key = term_key(l->term)) > TK_NONE) {
		cnt++;
		take_effects(l, key >= TK_CLICK ? on_mouse(l, key) : ui_key(&l->ui, key));
		if (l->quit || l->err)
			return 0;
	}
	if (key < 0)
		return key;
	return l->dirty && cnt ? paint(l) : 0;
}

static int wait_ms(const struct loop *l)
{
	cc_ns since = now_ns() - l->painted_ns;
	if (!l->dirty)
		return -1;
	return since >= FRAME_MIN_NS ? 0 : (int)((FRAME_MIN_NS - since) / CC_MS(1)) + 1;
}

static int run(struct loop *l)
{
	struct pollfd fds[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = l->signal_fd, .events = POLLIN },
		{ .fd = l->ui.opts.event_fd, .events = POLLIN },
		{ .events = POLLIN },
	};
	while (!l->err && !l->quit) {
		fds[3].fd = l->ui.save_fd;
		int n = poll(fds, ARRAY_SIZE(fds), wait_ms(l));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && fds[1].revents)
			on_signal(l);
		if (n > 0 && fds[2].revents)
			on_snapshot(l);
		if (n > 0 && fds[3].revents)
			take_effects(l, ui_saved(&l->ui));
		if (l->err || l->quit)
			break;
		if (n > 0 && fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return -EIO;
		if (n > 0 && fds[0].revents & POLLIN) {
			int err = on_input(l);
			if (err)
				return err;
		}
		if (l->dirty && !l->quit && wait_ms(l) == 0) {
			int err = paint(l);
			if (err)
				return err;
		}
	}
	return l->err;
}

static int run_on_terminal(struct loop *l)
{
	int err = term_open(&l->term);
	if (err)
		return err;
	l->ui.opts.ascii |= term_ascii(l->term);
	term_theme(l->term, &l->ui.theme);
	struct snapshot *s = l->ui.opts.ops->take(l->ui.opts.ctx);
	if (s)
		take_effects(l, ui_snapshot(&l->ui, s));
	err = paint(l);
	if (!err)
		err = run(l);
	term_close(l->term);
	canvas_done(&l->canvas);
	return err;
}

int tui_check_theme(const char *name, struct cc_err *err)
{
	struct theme t;
	return theme_load(name, &t, err);
}

int tui_run(const struct tui_opts *o)
{
	struct loop l = { .signal_fd = -1 };
	sigset_t set, old;
	int err = ui_init(&l.ui, o);
	if (err)
		return err;
	tui_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	l.signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	err = l.signal_fd < 0 ? -errno : run_on_terminal(&l);
	if (l.signal_fd >= 0)
		close(l.signal_fd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	ui_done(&l.ui);
	return err;
}
