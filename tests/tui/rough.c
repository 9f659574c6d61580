/* SPDX-License-Identifier: Apache-2.0 */
/* What a terminal can do to a program: many sizes at once, an end without a signal, a stop without
 * a warning, text of others across the screen, kinds of terminals, no descriptors at all. usage:
 * rough FIXTURE_PROGRAM. Closes with "N passed, N failed". */
#include "pty.h"

#include <termios.h>

static const char *const plain[] = { "xterm-256color", "C.UTF-8" };

static void begin(struct screen *s, const char *const argv[])
{
	start(s, 120, 36, plain[0], plain[1], argv);
}

static void test_resize_storm(char *prog)
{
	struct screen s;
	struct rusage ru;
	unsigned int seed = 7;
	begin(&s, (const char *[]){ prog, "--later", "20", NULL });
	check(wait_for(&s, "7f3a9c#3"), "storm: first screen");
	for (int i = 0; i < 400; i++) {
		seed = seed * 1103515245u + 12345u;
		struct winsize ws = { .ws_row = 1 + (seed >> 16) % 70,
				      .ws_col = 1 + (seed >> 8) % 250 };
		ioctl(s.fd, TIOCSWINSZ, &ws);
		if (i % 7 == 0)
			type(&s, i % 2 ? "j" : "\t");
		pump(&s, 3, 1);
	}
	type(&s, "1");
	resize(&s, 100, 30);
	check(wait_row(&s, 29, "F10Quit"), "storm: whole at the last size");
	type(&s, "Q");
	check(finish(&s, &ru) == 0, "storm: ends with 0");
}

/* nohup and some multiplexers leave SIGHUP ignored: the end of the terminal must do. */
static void test_hang_up_ignored(char *prog)
{
	struct screen s;
	int status = 0;
	begin(&s, (const char *[]){ "/bin/sh", "-c", "trap '' HUP; exec \"$0\" --later 50", prog,
				    NULL });
	check(wait_for(&s, "7f3a9c#3"), "SIGHUP ignored: runs");
	close(s.fd);
	int64_t end = now_ms() + 20000;
	pid_t got = 0;
	while (!got && now_ms() < end) {
		got = waitpid(s.pid, &status, WNOHANG);
		poll(NULL, 0, 20);
	}
	if (!got) {
		kill(s.pid, SIGKILL);
		waitpid(s.pid, &status, 0);
	}
	check(got == s.pid, "SIGHUP ignored: ends with the terminal all the same");
	vterm_free(s.vt);
}

/* What others write to stderr while the screen is on is not on it, and comes after it. */
static void test_foreign_stderr(char *prog)
{
	struct screen s;
	struct rusage ru;
	begin(&s, (const char *[]){ prog, "--later", "50", "--noise", NULL });
	check(wait_for(&s, "7fbeef#1"), "noise: runs");
	pump(&s, 500, 0);
	check(!anywhere(&s, "a library"), "noise: not on the screen");
	type(&s, "q");
	check(finish(&s, &ru) == 0 && strstr(s.tail, "a library complains"),
	      "noise: told when the screen is gone");
	begin(&s, (const char *[]){ prog, "--later", "50", "--noise", NULL });
	wait_for(&s, "7fbeef#1");
	kill(s.pid, SIGABRT);
	int rc = finish(&s, &ru);
	check(WIFSIGNALED(rc) && WTERMSIG(rc) == SIGABRT && strstr(s.tail, "a library complains"),
	      "noise: told before it is killed");
}

/* SIGSTOP gives no chance to put the terminal back, and what stands there then is not ours. */
static void test_stop_without_warning(char *prog)
{
	struct screen s;
	struct rusage ru;
	struct termios t;
	begin(&s, (const char *[]){ prog, NULL });
	check(wait_for(&s, "7f3a9c#3"), "stop: runs");
	kill(s.pid, SIGSTOP);
	tcgetattr(s.fd, &t);
	t.c_lflag |= ICANON | ECHO;
	tcsetattr(s.fd, TCSANOW, &t);
	static const char junk[] = "\x1b[2J\x1b[Hjunk of a shell";
	vterm_input_write(s.vt, junk, sizeof(junk) - 1);
	check(anywhere(&s, "junk"), "stop: another writes");
	kill(s.pid, SIGCONT);
	check(wait_for(&s, "7f3a9c#3") && !anywhere(&s, "junk"), "stop: drawn anew");
	type(&s, "j\r");
	check(wait_for(&s, "path 211.4"), "stop: keys come one by one again");
	tcgetattr(s.fd, &t);
	check(!(t.c_lflag & (ICANON | ECHO)), "stop: modes are ours again");
	type(&s, "Q");
	check(finish(&s, &ru) == 0, "stop: ends with 0");
}

static bool known(const char *term)
{
	char cmd[128];
	snprintf(cmd, sizeof(cmd), "infocmp %s >/dev/null 2>&1", term);
	return system(cmd) == 0;
}

static void test_kinds(char *prog)
{
	static const struct {
		const char *term;
		bool ascii;
	} kinds[] = {
		{ "xterm", false }, { "screen", false },        { "screen-256color", false },
		{ "tmux", false },  { "tmux-256color", false }, { "xterm-direct", false },
		{ "linux", true },  { "vt100", true },          { "vt220", true },
		{ "rxvt", false },  { "ansi", true },
	};
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct screen s;
		struct rusage ru;
		char what[64];
		if (!known(kinds[i].term)) {
			printf("not installed here: %s\n", kinds[i].term);
			continue;
		}
		start(&s, 100, 30, kinds[i].term, "C.UTF-8", (const char *[]){ prog, NULL });
		bool ok = wait_for(&s, "7f3a9c#3");
		type(&s, "j\r");
		ok &= wait_for(&s, "path 211.4");
		ok &= !kinds[i].ascii || s.high_bytes == 0;
		type(&s, "Q");
		ok &= finish(&s, &ru) == 0;
		snprintf(what, sizeof(what), "a terminal of the kind %s", kinds[i].term);
		check(ok, what);
	}
	static const char *const none[] = { "dumb", "", "no-such-terminal" };
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		struct screen s;
		struct rusage ru;
		char what[64];
		start(&s, 80, 24, none[i], "C.UTF-8", (const char *[]){ prog, NULL });
		snprintf(what, sizeof(what), "TERM='%s' is refused, and nothing is broken",
			 none[i]);
		check(wait_for(&s, "rc -22") && s.bytes < 300, what);
		finish(&s, &ru);
	}
	struct screen s;
	struct rusage ru;
	begin(&s, (const char *[]){ "/bin/sh", "-c", "unset TERM; exec \"$0\"", prog, NULL });
	check(wait_for(&s, "rc -22"), "no TERM at all is refused");
	finish(&s, &ru);
	begin(&s, (const char *[]){ "/bin/sh", "-c", "exec \"$0\" <&-", prog, NULL });
	check(wait_for(&s, "rc -25"), "a stdin that is closed is no terminal");
	finish(&s, &ru);
}

/* Keys sent faster than they can be read, then one that matters. */
static void test_typing_ahead(char *prog)
{
	struct screen s;
	struct rusage ru;
	begin(&s, (const char *[]){ prog, "--later", "20", NULL });
	wait_for(&s, "7f3a9c#3");
	for (int i = 0; i < 40; i++)
		type(&s, "jkjkjkjk\x1b[A\x1b[B\x1bOP\x1b?\x1b");
	type(&s, "\x1b");
	pump(&s, 300, 100);
	type(&s, "1g");
	check(wait_for(&s, "7f3a9c#3"), "a burst of keys is taken");
	type(&s, "Q");
	check(finish(&s, &ru) == 0, "and Q after it ends");
}

/* A click selects a row and a second one opens it, in both ways that terminals tell it. */
static void test_mouse(char *prog)
{
	static const struct {
		const char *term, *click; /* on column 20 of line 12 */
	} kinds[] = { { "xterm-256color", "\x1b[<0;20;12M\x1b[<0;20;12m" },
		      { "screen", "\x1b[M 4,\x1b[M#4," } };
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct screen s;
		struct rusage ru;
		char what[80];
		start(&s, 120, 36, kinds[i].term, "C.UTF-8", (const char *[]){ prog, NULL });
		bool ok = wait_for(&s, "7f3a9c#3") && !on_row(&s, 11, " >");
		type(&s, "M");
		ok &= wait_for(&s, "mouse on");
		type(&s, kinds[i].click);
		ok &= wait_row(&s, 11, " >");
		type(&s, kinds[i].click);
		ok &= wait_for(&s, "[Path]");
		type(&s, "M");
		ok &= wait_for(&s, "mouse off");
		type(&s, "Q");
		ok &= finish(&s, &ru) == 0;
		snprintf(what, sizeof(what), "the mouse of a terminal of the kind %s",
			 kinds[i].term);
		check(ok, what);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: rough FIXTURE_PROGRAM\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	test_resize_storm(argv[1]);
	test_hang_up_ignored(argv[1]);
	test_foreign_stderr(argv[1]);
	test_stop_without_warning(argv[1]);
	test_kinds(argv[1]);
	test_typing_ahead(argv[1]);
	test_mouse(argv[1]);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
