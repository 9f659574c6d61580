/* SPDX-License-Identifier: Apache-2.0 */
/* What the terminal really gets: the UI on a pty, its output read by libvterm and counted.
 * usage: bytes FIXTURE_PROGRAM. Closes with "N passed, N failed". */
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

struct screen {
	VTerm *vt;
	int fd, w, h;
	pid_t pid;
	size_t bytes, high_bytes, colours; /* all; >= 0x80; SGR of 256 colours */
	char tail[256];                    /* the last bytes, NUL-terminated */
	bool eof;
};

static int passed, failed;

static void check(bool ok, const char *what)
{
	passed += ok;
	failed += !ok;
	printf("%s: %s\n", ok ? "ok" : "FAILED", what);
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void start(struct screen *s, int w, int h, const char *term, const char *locale,
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

static void count(struct screen *s, const char *buf, size_t n)
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
static void pump(struct screen *s, int ms, int quiet_ms)
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

static void row_text(struct screen *s, int y, char *buf, size_t cap)
{
	VTermRect r = { .start_row = y, .end_row = y + 1, .start_col = 0, .end_col = s->w };
	size_t n = vterm_screen_get_text(vterm_obtain_screen(s->vt), buf, cap - 1, r);
	buf[n] = '\0';
}

static bool on_row(struct screen *s, int y, const char *what)
{
	char buf[4096];
	row_text(s, y, buf, sizeof(buf));
	return strstr(buf, what) != NULL;
}

static bool anywhere(struct screen *s, const char *what)
{
	for (int y = 0; y < s->h; y++)
		if (on_row(s, y, what))
			return true;
	return false;
}

static void show(struct screen *s)
{
	for (int y = 0; y < s->h; y++) {
		char buf[4096];
		row_text(s, y, buf, sizeof(buf));
		printf("    |%s\n", buf);
	}
}

static bool is_there(struct screen *s, int y, const char *what)
{
	return y < 0 ? anywhere(s, what) : on_row(s, y, what);
}

/* Until @what is on row @y, or on any (-1); a screen may come in several parts. */
static bool wait_row(struct screen *s, int y, const char *what)
{
	int64_t end = now_ms() + 20000; /* a busy machine */
	while (!is_there(s, y, what) && now_ms() < end && !s->eof)
		pump(s, 50, 0);
	return is_there(s, y, what);
}

static bool wait_for(struct screen *s, const char *what) { return wait_row(s, -1, what); }

/* Until nothing was written for half a second. */
static void settle(struct screen *s) { pump(s, 10000, 500); }

/* Until more than @bytes were written in all, and it is quiet again. */
static void wait_written(struct screen *s, size_t bytes)
{
	int64_t end = now_ms() + 20000; /* a busy machine */
	while (s->bytes <= bytes && now_ms() < end && !s->eof)
		pump(s, 50, 0);
	settle(s);
}

static void type(struct screen *s, const char *keys)
{
	if (write(s->fd, keys, strlen(keys)) < 0)
		abort();
}

static void resize(struct screen *s, int w, int h)
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
static int finish(struct screen *s, struct rusage *ru)
{
	int status = -1;
	int64_t end = now_ms() + 20000; /* a busy machine */
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

static void test_screen(char *prog)
{
	struct screen s;
	struct rusage ru;
	start(&s, 120, 36, "xterm-256color", "C.UTF-8", (const char *[]){ prog, NULL });
	check(wait_for(&s, "7f3a9c#3"), "first screen");
	check(wait_row(&s, 35, "F10Quit"), "keys are on the last line");
	check(s.colours > 0, "colours are used");
	type(&s, "jjjj\r");
	check(wait_row(&s, 1, "データ"), "wide characters arrive");
	VTermScreenCell cell = { 0 };
	bool wide = false;
	for (int x = 0; x < s.w; x++) {
		vterm_screen_get_cell(vterm_obtain_screen(s.vt), (VTermPos){ .row = 1, .col = x },
				      &cell);
		wide |= cell.chars[0] == 0x30c7 && cell.width == 2;
	}
	check(wide, "and take two columns");
	type(&s, "\x1b");
	check(wait_for(&s, "DOMINANT WAIT"), "Esc alone goes back");
	resize(&s, 80, 24);
	check(wait_row(&s, 23, "F10Quit"), "resize draws anew");
	resize(&s, 1, 1);
	pump(&s, 500, 200);
	resize(&s, 30, 5);
	check(wait_for(&s, "need 40x10"), "too small says so");
	resize(&s, 120, 36);
	bool back = wait_for(&s, "7f3a9c#3");
	check(back, "and comes back");
	if (!back)
		show(&s);
	type(&s, "q");
	check(finish(&s, &ru) == 0, "q ends with 0");
	check(strstr(s.tail, "\x1b[?1049l") != NULL, "the other screen is left");
}

static void test_paused(char *prog)
{
	struct screen s;
	struct rusage ru;
	start(&s, 120, 36, "xterm-256color", "C.UTF-8",
	      (const char *[]){ prog, "--later", "50", NULL });
	check(wait_for(&s, "7fbeef#1"), "snapshots come in");
	type(&s, "p");
	check(wait_for(&s, "PAUSED at"), "paused");
	settle(&s);
	size_t before = s.bytes;
	pump(&s, 1500, 0);
	printf("paused for 1.5 s, 30 snapshots: %zu bytes\n", s.bytes - before);
	check(s.bytes == before, "paused writes nothing");
	type(&s, "p");
	check(wait_for(&s, "LIVE"), "and goes on");
	type(&s, "Q");
	check(finish(&s, &ru) == 0, "Q ends with 0");
}

static void test_frames(char *prog)
{
	struct screen s;
	struct rusage ru;
	start(&s, 120, 36, "xterm-256color", "C.UTF-8",
	      (const char *[]){ prog, "--later", "35", NULL });
	wait_for(&s, "7fbeef#1");
	size_t before = s.bytes;
	int64_t from = now_ms();
	pump(&s, 3000, 0);
	double frames = (double)(now_ms() - from) / 100,
	       per_frame = (double)(s.bytes - before) / frames;
	type(&s, "q");
	finish(&s, &ru);
	double ms = (double)ru.ru_utime.tv_sec * 1e3 + (double)ru.ru_utime.tv_usec / 1e3 +
		    (double)ru.ru_stime.tv_sec * 1e3 + (double)ru.ru_stime.tv_usec / 1e3;
	printf("29 snapshots a second, rows moving: %.0f bytes a frame at 10 frames/s, "
	       "%.2f ms CPU a frame with the making of the snapshots\n",
	       per_frame, ms / frames);
	check(per_frame > 100 && per_frame < 6000, "at most 10 frames a second, of a few KB");

	start(&s, 120, 36, "xterm-256color", "C.UTF-8",
	      (const char *[]){ prog, "--later", "50", "--same", NULL });
	wait_for(&s, "7f3a9c#3");
	settle(&s);
	before = s.bytes;
	pump(&s, 1000, 0);
	check(s.bytes == before, "the same picture again writes nothing");
	before = s.bytes;
	type(&s, "j");
	wait_written(&s, before);
	printf("one row down: %zu bytes\n", s.bytes - before);
	check(s.bytes > before && s.bytes - before < 4000, "a key writes what changed");
	type(&s, "q");
	check(finish(&s, &ru) == 0, "ends with 0");
}

static void test_poor_terminals(char *prog)
{
	struct screen s;
	struct rusage ru;
	setenv("NO_COLOR", "1", 1);
	start(&s, 80, 24, "xterm-256color", "C.UTF-8", (const char *[]){ prog, NULL });
	check(wait_for(&s, "7f3a9c#3") && s.colours == 0, "NO_COLOR: none");
	type(&s, "q");
	finish(&s, &ru);
	unsetenv("NO_COLOR");
	start(&s, 80, 24, "vt100", "C.UTF-8", (const char *[]){ prog, NULL });
	check(wait_for(&s, "7f3a9c#3") && s.colours == 0, "vt100");
	type(&s, "q");
	check(finish(&s, &ru) == 0, "vt100 ends");
	start(&s, 80, 24, "xterm-256color", "C", (const char *[]){ prog, NULL });
	check(wait_for(&s, "7f3a9c#3"), "C locale");
	type(&s, "2"), wait_for(&s, "SHARE"), type(&s, "1\r"), wait_for(&s, "CLASS");
	check(s.high_bytes == 0, "C locale gets ASCII only");
	type(&s, "Q");
	finish(&s, &ru);
	start(&s, 80, 24, "no-such-terminal", "C.UTF-8", (const char *[]){ prog, NULL });
	check(wait_for(&s, "rc -22"), "an unknown TERM is an error, not an exit");
	finish(&s, &ru);
}

/* The copied text goes out as one OSC 52 with base64. */
static void test_copy(char *prog)
{
	struct screen s;
	struct rusage ru;
	start(&s, 80, 24, "xterm-256color", "C.UTF-8", (const char *[]){ prog, NULL });
	wait_for(&s, "7f3a9c#3");
	size_t before = s.bytes;
	type(&s, "jy");
	check(wait_for(&s, "copied 7f3a9c#3"), "y copies");
	settle(&s);
	check(s.bytes - before > 500, "the text went to the terminal");
	type(&s, "q");
	finish(&s, &ru);
}

static void test_hang_up(char *prog)
{
	struct screen s;
	int status = 0;
	start(&s, 80, 24, "xterm-256color", "C.UTF-8", (const char *[]){ prog, NULL });
	wait_for(&s, "7f3a9c#3");
	close(s.fd); /* the terminal is gone: SIGHUP, and end of file even where that is ignored */
	int64_t end = now_ms() + 20000; /* a busy machine */
	pid_t got = 0;
	while (!got && now_ms() < end) {
		got = waitpid(s.pid, &status, WNOHANG);
		poll(NULL, 0, 20);
	}
	if (!got)
		kill(s.pid, SIGKILL);
	check(got == s.pid, "ends when the terminal goes away");
	vterm_free(s.vt);
}

static void test_sigterm(char *prog)
{
	struct screen s;
	struct rusage ru;
	start(&s, 80, 24, "xterm-256color", "C.UTF-8", (const char *[]){ prog, NULL });
	wait_for(&s, "7f3a9c#3");
	kill(s.pid, SIGTERM);
	finish(&s, &ru);
	check(strstr(s.tail, "\x1b[?1049l") && strstr(s.tail, "rc -4"),
	      "SIGTERM restores and returns");
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: bytes FIXTURE_PROGRAM\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_screen(argv[1]);
	test_paused(argv[1]);
	test_frames(argv[1]);
	test_poor_terminals(argv[1]);
	test_copy(argv[1]);
	test_hang_up(argv[1]);
	test_sigterm(argv[1]);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
