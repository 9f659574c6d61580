// SPDX-License-Identifier: Apache-2.0
/* ref OBJECT empty|bare PID: attaches the reference programs of bench/ref.bpf.c to PID, prints
 * "ready", and drains every 20 ms until SIGINT or SIGTERM. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int count_one(void *ctx, void *data, size_t len)
{
	(void)data;
	(void)len;
	++*(uint64_t *)ctx;
	return 0;
}

static int set_target(struct bpf_object *obj, int tgid)
{
	struct bpf_map *map = bpf_object__find_map_by_name(obj, ".rodata");
	return map ? bpf_map__set_initial_value(map, &tgid, sizeof(tgid)) : -ENOENT;
}

/* The programs whose names begin with @mode; the others are not even loaded. */
static int pick_programs(struct bpf_object *obj, const char *mode)
{
	struct bpf_program *p;
	int n = 0;
	bpf_object__for_each_program(p, obj)
	{
		bool want = !strncmp(bpf_program__name(p), mode, strlen(mode));
		bpf_program__set_autoload(p, want);
		n += want;
	}
	return n ? 0 : -EINVAL;
}

static int attach_programs(struct bpf_object *obj)
{
	struct bpf_program *p;
	bpf_object__for_each_program(p, obj)
	{
		if (bpf_program__autoload(p) && !bpf_program__attach(p))
			return -errno;
	}
	return 0;
}

static void drain_until_signal(struct ring_buffer *rb)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	puts("ready");
	fflush(stdout);
	while (sigtimedwait(&set, NULL, &(struct timespec){ .tv_nsec = 20000000 }) < 0)
		ring_buffer__consume(rb);
	ring_buffer__consume(rb);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return fprintf(stderr, "usage: ref OBJECT empty|bare PID\n"), 2;
	uint64_t events = 0;
	struct bpf_object *obj = bpf_object__open(argv[1]);
	int err = obj ? 0 : -errno;
	err = err ? err : set_target(obj, atoi(argv[3]));
	err = err ? err : pick_programs(obj, argv[2]);
	err = err ? err : bpf_object__load(obj);
	err = err ? err : attach_programs(obj);
	struct ring_buffer *rb = NULL;
	if (!err) {
		rb = ring_buffer__new(bpf_object__find_map_fd_by_name(obj, "ring"), count_one,
				      &events, NULL);
		err = rb ? 0 : -errno;
	}
	if (err) {
		fprintf(stderr, "ref: %s\n", strerror(-err));
		bpf_object__close(obj);
		return 1;
	}
	drain_until_signal(rb);
	printf("%llu events\n", (unsigned long long)events);
	ring_buffer__free(rb);
	bpf_object__close(obj);
	return 0;
}
