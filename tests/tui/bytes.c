/* SPDX-License-Identifier: Apache-2.0 */
/* What the terminal really gets: the UI on a pty, its output read by libvterm and counted.
 * usage: bytes FIXTURE_PROGRAM. Closes with "N passed, N failed". */
#include "pty.h"

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
	/* as a terminal does that wraps its lines anew */
	static const char moved[] = "\x1b[3;50HMOVED\x1b[9;1HMOVED\x1b[20;70HMOVED";
	vterm_input_write(s.vt, moved, sizeof(moved) - 1);
	resize(&s, 80, 24);
	check(wait_row(&s, 23, "F10Quit"), "resize draws anew");
	check(wait_row(&s, 0, "criticast") && !anywhere(&s, "MOVED"), "all of it");
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
