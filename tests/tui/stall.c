/* SPDX-License-Identifier: Apache-2.0 */
/* A key is shown from the snapshot at hand, whatever the collector does: its thread is stopped (by
 * ptrace) in the midst of a replay at full speed, again and again, wherever it is, with the locks
 * it has just then; every key must be painted all the same. Nothing is timed but the end of
 * patience. usage: stall CRITICAST RECORDING, in a directory to save into. Closes with "N passed, N
 * failed". */
#include "pty.h"

#include <dirent.h>
#include <sys/ptrace.h>

#define ROUNDS 25

struct step {
	const char *keys, *shows;
};
static const struct step steps[] = {
	{ "2", "[2 Waits]" },    { "r", "by " },           { "s", "Sort by" },
	{ "9", "sort P99" },     { "3", "[3 Threads]" },   { "n", "nothing to search for" },
	{ "F", "follow o" },     { "4", "[4 Health]" },    { "?", "type to search" },
	{ "?", "[4 Health]" },   { "1", "[1 Requests]" },  { "\\lat>1ms", "filter> lat>1ms" },
	{ "\r", "\\lat>1ms" },   { "c", "[1 Requests]" },  { "\r", "path " },
	{ "\t", "[Stacks]" },    { "\t", "[Confidence]" }, { "y", "copied " },
	{ "1", "[1 Requests]" }, { "T", "theme " },        { "m", "mark" },
	{ "+", "speed " },       { "wa", "sav" }, /* under way, or the one before still is */
};

/* The thread that is not the first; 0: none. */
static pid_t collector_of(pid_t pid)
{
	char path[64];
	pid_t found = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));)
		if (atoi(e->d_name) > 0 && atoi(e->d_name) != pid)
			found = atoi(e->d_name);
	if (d)
		closedir(d);
	return found;
}

static bool stop_thread(pid_t tid)
{
	int status;
	return !ptrace(PTRACE_SEIZE, tid, 0, 0) && !ptrace(PTRACE_INTERRUPT, tid, 0, 0) &&
	       waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status);
}

static unsigned int play(struct screen *s)
{
	unsigned int shown = 0;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		size_t before = s->bytes;
		pump(s, 20, 5); /* what the one before still writes */
		type(s, steps[i].keys);
		int64_t end = now_ms() + 20000;
		while (s->bytes == before && now_ms() < end && !s->eof)
			pump(s, 50, 1);
		if (s->bytes > before && wait_for(s, steps[i].shows)) {
			shown++;
			continue;
		}
		printf("'%s' did not show '%s'\n", steps[i].keys, steps[i].shows);
		show(s);
		break;
	}
	return shown;
}

static bool begin(struct screen *s, char *const argv[])
{
	start(s, 120, 36, "xterm-256color", "C.UTF-8",
	      (const char *[]){ argv[1], "top", "--replay", argv[2], NULL });
	if (!wait_row(s, 7, ">"))
		return false;
	for (int i = 0; i < 6; i++)
		type(s, "+"); /* 64 times as fast as it was: always at work */
	return wait_for(s, "speed 64x");
}

int main(int argc, char **argv)
{
	struct screen s;
	struct rusage ru;
	unsigned int shown = 0, rounds = 0;
	if (argc != 3) {
		fprintf(stderr, "usage: stall CRITICAST RECORDING\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	bool began = begin(&s, argv);
	check(began, "a replay runs");
	pid_t tid = began ? collector_of(s.pid) : 0;
	check(tid != 0, "it has a collector");
	for (; tid && rounds < ROUNDS; rounds++) {
		type(&s, "0"); /* from the start again, so that it does not end */
		pump(&s, 5 + (int)(rounds * 7 % 31), 0); /* stopped somewhere else each time */
		if (!stop_thread(tid)) {
			perror("ptrace");
			break;
		}
		unsigned int n = play(&s);
		shown += n;
		ptrace(PTRACE_DETACH, tid, 0, 0);
		if (n < ARRAY_SIZE(steps))
			break;
	}
	printf("%u keys shown in %u rounds\n", shown, rounds);
	check(shown == ROUNDS * ARRAY_SIZE(steps), "every key is shown while the collector stands");
	type(&s, "4"); /* clears the line */
	check(wait_for(&s, "saved criticast-"),
	      "and what was to be saved is saved once it goes on");
	type(&s, "Q");
	check(finish(&s, &ru) == 0, "Q ends it");
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
