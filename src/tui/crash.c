/* SPDX-License-Identifier: Apache-2.0 */
#include "crash.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"

/* Every signal ends a program that does not care, but these; INT, TERM and HUP the loop reads, and
 * nobody KILL. */
static bool kills(int sig)
{
	static const int others[] = { SIGKILL, SIGSTOP, SIGINT,  SIGTERM, SIGHUP, SIGCHLD,
				      SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH };
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i] == sig)
			return false;
	return sig < 32 || sig >= SIGRTMIN; /* those between are the C library's */
}

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGABRT || sig == SIGBUS || sig == SIGFPE || sig == SIGILL;
}

struct crash {
	char text[256];
	size_t len;
	struct termios saved;
	struct capture capture;
	struct sigaction old[NSIG];
	void *stack; /* a handler for an overflown stack needs its own */
};

/* The one global of this layer: a signal handler has no other way to its data. */
static struct crash *volatile crashing;

static void on_fatal(int sig)
{
	struct crash *k = crashing;
	if (k) {
		crashing = NULL;
		ssize_t n = write(STDOUT_FILENO, k->text, k->len);
		(void)n; /* nothing can be done about it here */
		tcsetattr(STDIN_FILENO, TCSANOW, &k->saved);
		capture_end(&k->capture); /* an assertion's text, say */
	}
	if (k)
		sigaction(sig, &k->old[sig], NULL);
	raise(sig); /* blocked until this returns, then as it would have been without us */
}

size_t crash_stack_size(void) { return (size_t)sysconf(_SC_SIGSTKSZ); }

void crash_thread_stack(void *stack, size_t size)
{
	stack_t old;
	if (!sigaltstack(NULL, &old) && old.ss_flags & SS_DISABLE) /* a sanitizer has its own */
		sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = size }, NULL);
}

struct crash *crash_arm(const struct termios *saved, const char *text, size_t len)
{
	struct crash *k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	size_t size = crash_stack_size();
	k->saved = *saved;
	k->len = CC_MIN(len, sizeof(k->text));
	memcpy(k->text, text, k->len);
	k->stack = malloc(size);
	if (k->stack)
		crash_thread_stack(k->stack, size);
	capture_begin(&k->capture);
	crashing = k;
	struct sigaction sa = { .sa_handler = on_fatal, .sa_flags = k->stack ? SA_ONSTACK : 0 };
	sigemptyset(&sa.sa_mask);
	for (int sig = 1; sig < NSIG; sig++) {
		if (!kills(sig) || sigaction(sig, &sa, &k->old[sig]))
			continue;
		/* what somebody has a use for, or ignores, stays */
		if (k->old[sig].sa_handler != SIG_DFL && !is_fault(sig))
			sigaction(sig, &k->old[sig], NULL);
	}
	return k;
}

void crash_disarm(struct crash *k)
{
	if (!k)
		return;
	for (int sig = 1; sig < NSIG; sig++)
		if (kills(sig))
			sigaction(sig, &k->old[sig], NULL);
	crashing = NULL;
	capture_end(&k->capture);
	if (k->stack)
		sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL);
	free(k->stack);
	free(k);
}
