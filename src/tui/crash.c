/* SPDX-License-Identifier: Apache-2.0 */
#include "crash.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture.h"

static const int fatal[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT };

struct crash {
	char text[256];
	size_t len;
	struct termios saved;
	struct capture capture;
	struct sigaction old[ARRAY_SIZE(fatal)];
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
	for (size_t i = 0; k && i < ARRAY_SIZE(fatal); i++)
		if (fatal[i] == sig)
			sigaction(sig, &k->old[i], NULL);
	raise(sig); /* blocked until this returns, then as it would have been without us */
}

struct crash *crash_arm(const struct termios *saved, const char *text, size_t len)
{
	struct crash *k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	size_t size = (size_t)sysconf(_SC_SIGSTKSZ);
	k->saved = *saved;
	k->len = CC_MIN(len, sizeof(k->text));
	memcpy(k->text, text, k->len);
	k->stack = malloc(size);
	if (k->stack)
		sigaltstack(&(stack_t){ .ss_sp = k->stack, .ss_size = size }, NULL);
	capture_begin(&k->capture);
	crashing = k;
	struct sigaction sa = { .sa_handler = on_fatal, .sa_flags = k->stack ? SA_ONSTACK : 0 };
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
		sigaction(fatal[i], &sa, &k->old[i]);
	return k;
}

void crash_disarm(struct crash *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
		sigaction(fatal[i], &k->old[i], NULL);
	crashing = NULL;
	capture_end(&k->capture);
	if (k->stack)
		sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL);
	free(k->stack);
	free(k);
}
