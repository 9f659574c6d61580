/* SPDX-License-Identifier: Apache-2.0 */
/* A program on a pseudo terminal, its output read by libvterm. Programs here are made of one file:
 * each includes this once. */
#ifndef PTY_H
#define PTY_H

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vterm.h>

#include "base.h"

struct screen {
	VTerm *vt;
	int fd, w, h;
	pid_t pid;
	size_t bytes, high_bytes, colours; /* all; >= 0x80; SGR of 256 colours */
	char tail[256];                    /* the last bytes, NUL-terminated */
	bool eof;
};

static int passed, failed;

CC_UNUSED static void check(bool ok, const char *what)
{
	passed += ok;
	failed += !ok;
	printf("%s: %s\n", ok ? "ok" : "FAILED", what);
}

CC_UNUSED static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

CC_UNUSED static void start(struct screen *s, int w, int h, const char *term, const char *locale,
			    const char *const argv[])
{
	struct winsize ws = { .ws_row = (unsigned short)h, .ws_col = (unsigned short)w };
	*s = (struct screen){ .w = w, .h = h };
	s->pid = forkpty(&s->fd, NULL, NULL, &ws);
	if (s->pid < 0)
		abort();
	if (s->pid == 0) {
		setenv("TERM", term, 1);
		setenv("LC_ALL", locale, 1);
		setenv("TZ", "UTC", 1);
		unsetenv("LINES");
		unsetenv("COLUMNS");
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	s->vt = vterm_new(h, w);
	vterm_set_utf8(s->vt, 1);
	VTermScreen *vs = vterm_obtain_screen(s->vt);
	vterm_screen_enable_altscreen(vs, 1);
	vterm_screen_reset(vs, 1);
}

CC_UNUSED static void count(struct screen *s, const char *buf, size_t n)
{
	s->bytes += n;
	for (size_t i = 0; i < n; i++) {
		s->high_bytes += (unsigned char)buf[i] >= 0x80;
		s->colours += i + 5 <= n &&
			      (!memcmp(buf + i, "38;5;", 5) || !memcmp(buf + i, "48;5;", 5));
	}
	size_t keep = strlen(s->tail), room = sizeof(s->tail) - 1;
	if (n >= room) {
		keep = 0;
		buf += n - room;
		n = room;
	} else if (keep + n > room) {
		memmove(s->tail, s->tail + (keep + n - room), room - n);
		keep = room - n;
	}
	memcpy(s->tail + keep, buf, n);
	s->tail[keep + n] = '\0';
}

/* Reads what comes within @ms; with @quiet_ms stops earlier, once nothing came for that long. */
CC_UNUSED static void pump(struct screen *s, int ms, int quiet_ms)
{
	int64_t end = now_ms() + ms;
	while (!s->eof && now_ms() < end) {
		char buf[65536];
		struct pollfd p = { .fd = s->fd, .events = POLLIN };
		int left = (int)(end - now_ms());
		int n = poll(&p, 1, quiet_ms && quiet_ms < left ? quiet_ms : left);
		if (n == 0)
			return;
		ssize_t got = n > 0 ? read(s->fd, buf, sizeof(buf)) : -1;
		if (got <= 0) {
			s->eof = errno != EINTR;
			continue;
		}
		count(s, buf, (size_t)got);
		vterm_input_write(s->vt, buf, (size_t)got);
	}
}

CC_UNUSED static void row_text(struct screen *s, int y, char *buf, size_t cap)
{
	VTermRect r = { .start_row = y, .end_row = y + 1, .start_col = 0, .end_col = s->w };
	size_t n = vterm_screen_get_text(vterm_obtain_screen(s->vt), buf, cap - 1, r);
	buf[n] = '\0';
}

CC_UNUSED static bool on_row(struct screen *s, int y, const char *what)
{
	char buf[4096];
	row_text(s, y, buf, sizeof(buf));
	return strstr(buf, what) != NULL;
}

CC_UNUSED static bool anywhere(struct screen *s, const char *what)
{
	for (int y = 0; y < s->h; y++)
		if (on_row(s, y, what))
			return true;
	return false;
}

CC_UNUSED static void show(struct screen *s)
{
	for (int y = 0; y < s->h; y++) {
		char buf[4096];
		row_text(s, y, buf, sizeof(buf));
		printf("    |%s\n", buf);
	}
}

CC_UNUSED static bool is_there(struct screen *s, int y, const char *what)
{
	return y < 0 ? anywhere(s, what) : on_row(s, y, what);
}

/* Until @what is on row @y, or on any (-1); a screen may come in several parts. */
CC_UNUSED static bool wait_row(struct screen *s, int y, const char *what)
{
	int64_t end = now_ms() + 60000; /* a busy machine */
	while (!is_there(s, y, what) && now_ms() < end && !s->eof)
		pump(s, 50, 0);
	return is_there(s, y, what);
}

CC_UNUSED static bool wait_for(struct screen *s, const char *what) { return wait_row(s, -1, what); }

/* Until nothing was written for half a second. */
CC_UNUSED static void settle(struct screen *s) { pump(s, 10000, 500); }

/* Until more than @bytes were written in all, and it is quiet again. */
CC_UNUSED static void wait_written(struct screen *s, size_t bytes)
{
	int64_t end = now_ms() + 60000; /* a busy machine */
	while (s->bytes <= bytes && now_ms() < end && !s->eof)
		pump(s, 50, 0);
	settle(s);
}

CC_UNUSED static void type(struct screen *s, const char *keys)
{
	if (write(s->fd, keys, strlen(keys)) < 0)
		abort();
}

CC_UNUSED static void resize(struct screen *s, int w, int h)
{
	struct winsize ws = { .ws_row = (unsigned short)h, .ws_col = (unsigned short)w };
	pump(s, 1000, 120); /* what was written for the old size must not be read with the new */
	vterm_set_size(s->vt, h, w);
	vterm_input_write(s->vt, "\x1b[2J", 4); /* what is seen from here on was drawn anew */
	s->w = w;
	s->h = h;
	ioctl(s->fd, TIOCSWINSZ, &ws);
}

/* Ends the program; returns its wait status, -1 when it had to be killed. */
CC_UNUSED static int finish(struct screen *s, struct rusage *ru)
{
	int status = -1;
	int64_t end = now_ms() + 60000; /* a busy machine */
	while (now_ms() < end) {
		pump(s, 20, 0);
		if (wait4(s->pid, &status, WNOHANG, ru) == s->pid) {
			pump(s, 200, 50);
			close(s->fd);
			vterm_free(s->vt);
			return status;
		}
	}
	kill(s->pid, SIGKILL);
	waitpid(s->pid, &status, 0);
	close(s->fd);
	vterm_free(s->vt);
	return -1;
}

#endif
