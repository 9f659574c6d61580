// SPDX-License-Identifier: Apache-2.0
/* trap OBJECT: what a hit of a uprobe costs beside what its program does: calls a function whose
 * first instruction the kernel emulates (push), with an empty program on it and without, in turns.
 * Prints the median difference in ns of CPU time. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALLS 20000
#define ROUNDS 15

/* As Go's functions begin behind their stack check. */
void hit_me(void);
__asm__(".text\n.globl hit_me\n.type hit_me, @function\nhit_me:\n"
#if defined(__x86_64__)
	"push %rbp\nmov %rsp, %rbp\npop %rbp\nret\n"
#else
	"nop\nret\n"
#endif
	".size hit_me, . - hit_me\n");

static int64_t calls_ns(void)
{
	struct timespec a, b;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	for (int i = 0; i < CALLS; i++)
		hit_me();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return (b.tv_sec - a.tv_sec) * 1000000000ll + (b.tv_nsec - a.tv_nsec);
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int fail(const char *what)
{
	fprintf(stderr, "trap: %s: %s\n", what, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	int64_t diff[ROUNDS];
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = "hit_me");
	struct bpf_object *obj = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
	struct bpf_program *p, *empty = NULL;
	if (!obj)
		return fail("usage: trap OBJECT");
	bpf_object__for_each_program(p, obj)
	{
		bpf_program__set_autoload(p, !strcmp(bpf_program__name(p), "trap_uprobe"));
		if (bpf_program__autoload(p))
			empty = p;
	}
	if (!empty || bpf_object__load(obj))
		return fail("cannot load");
	for (int i = 0; i < ROUNDS; i++) {
		int64_t without = calls_ns();
		struct bpf_link *l = bpf_program__attach_uprobe_opts(empty, getpid(),
								     "/proc/self/exe", 0, &opts);
		if (!l)
			return fail("cannot attach");
		diff[i] = calls_ns() - without;
		bpf_link__destroy(l);
	}
	bpf_object__close(obj);
	qsort(diff, ROUNDS, sizeof(*diff), by_size);
	printf("%.0f\n", (double)diff[ROUNDS / 2] / CALLS);
	return 0;
}
