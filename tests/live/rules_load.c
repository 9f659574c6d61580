/* SPDX-License-Identifier: Apache-2.0 */
/* A load whose code changes under way, for tests of the kernel's cache of unwind rules.
 * rules_load LIB_A LIB_B SECONDS EACH:
 * - the first process loads one library, uses it for EACH seconds, unloads it, loads the other at
 *   the same place, and so on;
 * - two children, made before, keep one each, at the same place too;
 * - a third one runs code that it wrote itself, with frame pointers;
 * - a fourth one becomes this program again and again.
 * - a fifth one waits in frames larger than what is taken of a stack.
 * Every wait is in one of swap_a() (poll), swap_b() (nanosleep), jit_wait(), exec_wait(),
 * deep_wait(). */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __asm__ volatile("" ::: "memory")

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void use_library(const char *path, double until)
{
	void *lib = dlopen(path, RTLD_NOW);
	void (*run)(void) = lib ? (void (*)(void))dlsym(lib, "run") : NULL;

	if (!run) {
		fprintf(stderr, "%s: %s\n", path, dlerror());
		exit(1);
	}
	while (now() < until)
		run();
	dlclose(lib);
}

__attribute__((noinline)) static void jit_wait(void)
{
	usleep(1000);
	KEEP;
}

static void run_own_code(double until)
{
	/* push rbp; mov rbp, rsp; call rdi; pop rbp; ret */
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*call)(void (*fn)(void));

	if (p == MAP_FAILED)
		exit(1);
	memcpy(p, code, sizeof(code));
	if (mprotect(p, 4096, PROT_READ | PROT_EXEC))
		exit(1);
	call = (void (*)(void (*)(void)))p;
	while (now() < until)
		call(jit_wait);
}

__attribute__((noinline)) static void exec_wait(void)
{
	usleep(1100); /* another number, or the linker makes it one with jit_wait() */
	KEEP;
}

__attribute__((noinline)) static void deep_wait(int depth)
{
	volatile char room[20000];

	room[0] = (char)depth;
	if (depth)
		deep_wait(depth - 1);
	else
		usleep(1200);
	KEEP;
	room[1] = room[0];
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

int main(int argc, char **argv)
{
	double begin = now(), until;

	if (argc == 3 && !strcmp(argv[1], "again")) { /* the one that execs */
		until = atof(argv[2]);
		for (int i = 0; i < 100 && now() < until; i++)
			exec_wait();
		if (now() < until)
			execl("/proc/self/exe", argv[0], "again", argv[2], NULL);
		return 0;
	}
	if (argc != 5)
		return 2;
	until = begin + atof(argv[3]);
	if (!child()) {
		use_library(argv[1], until);
		return 0;
	}
	if (!child()) {
		use_library(argv[2], until);
		return 0;
	}
	if (!child()) {
		run_own_code(until);
		return 0;
	}
	if (!child()) {
		while (now() < until)
			deep_wait(3);
		return 0;
	}
	if (!child()) {
		char text[32];

		snprintf(text, sizeof(text), "%f", until);
		execl("/proc/self/exe", argv[0], "again", text, NULL);
		return 1;
	}
	for (int i = 0; now() < until; i++) {
		double to = now() + atof(argv[4]);

		use_library(argv[1 + i % 2], to < until ? to : until);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
