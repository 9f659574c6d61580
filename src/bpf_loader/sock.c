// SPDX-License-Identifier: Apache-2.0
/* Runs of the iterator that seeds sockets and refreshes requests. The requests themselves come by
 * the rings. */
#include "sock.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../bpf/sock_walk.h"

#include "criticast.skel.h"

#define WALK_TARGETS_MAX 32 /* beyond, one walk over all processes is cheaper */
/* A refresh looks at every open socket, 1 us each: with 100,000 of them it would take a tenth of a
 * core from a target that does nothing. One that took T comes again after so many T. */
#define WALK_PACE 50

/* Gives the whole records of l->sock->buf[0, *len) to @fn and keeps the rest. */
static int give(struct sock_side *s, size_t *len, cc_record_fn *fn, void *ctx)
{
	size_t at = 0;
	int res = 0;

	while (res >= 0 && *len - at >= sizeof(struct cc_rec)) {
		struct cc_rec rec;

		memcpy(&rec, s->buf + at, sizeof(rec));
		if (rec.size < sizeof(rec) || rec.size > *len - at)
			break;
		res = fn(ctx, (const struct cc_rec *)(s->buf + at), rec.size);
		at += rec.size;
	}
	memmove(s->buf, s->buf + at, *len - at);
	*len -= at;
	return res < 0 ? res : 0;
}

/* One run over the files of the process behind @pidfd, or of all when that is -1. */
static int walk(struct loader *l, int pidfd, cc_record_fn *fn, void *ctx)
{
	union bpf_iter_link_info info = { 0 };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);
	struct bpf_link *link;
	size_t len = 0;
	ssize_t n;
	int fd, res = 0;

	if (pidfd >= 0) {
		info.task.pid_fd = (__u32)pidfd;
		opts.link_info = &info;
		opts.link_info_len = sizeof(info);
	}
	link = bpf_program__attach_iter(l->skel->progs.cc_sock_walk, &opts);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		res = -errno;
	while (!res) {
		n = read(fd, l->sock->buf + len, sizeof(l->sock->buf) - len);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue; /* EAGAIN: it has seen many files without a record, go on */
		if (n < 0)
			res = -errno;
		if (n <= 0)
			break;
		len += (size_t)n;
		if (fn)
			res = give(l->sock, &len, fn, ctx);
		else
			len = 0;
	}
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return res;
}

static bool walk_each(const struct loader *l)
{
	if (l->target_cnt > WALK_TARGETS_MAX)
		return false;
	for (size_t i = 0; i < l->target_cnt; i++)
		if (!l->targets[i].gone && l->targets[i].pidfd < 0)
			return false;
	return true;
}

int sock_walk(struct loader *l, uint32_t mode, cc_record_fn *fn, void *ctx)
{
	bool each = walk_each(l);
	int res = 0;

	l->skel->bss->sock_walk_mode = mode;
	l->skel->bss->sock_walk_run++;
	for (size_t i = 0; each && i < l->target_cnt; i++) {
		if (l->targets[i].gone)
			continue;
		res = walk(l, l->targets[i].pidfd, fn, ctx);
		if (res == -ESRCH) {
			res = 0; /* it has just ended: nothing is open any more */
			continue;
		}
		if (res == -EINVAL) /* before Linux 6.1 an iterator takes no process */
			each = false;
		if (res)
			break;
	}
	return each ? res : walk(l, -1, fn, ctx);
}

int sock_seed(struct loader *l)
{
	int res;

	if (!l->sock)
		return 0;
	res = sock_walk(l, SOCK_WALK_LISTENERS, NULL, NULL);
	return res ? res : sock_walk(l, SOCK_WALK_CONNECTIONS, NULL, NULL);
}

/* Of this thread: what it waited for a CPU is not the walk's. */
static cc_ns cpu_time(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (cc_ns)t.tv_sec * CC_MS(1000) + (cc_ns)t.tv_nsec;
}

int sock_refresh(struct loader *l, cc_record_fn *fn, void *ctx)
{
	if (!l->sock || loader_now() < l->sock->refresh_due)
		return 0;
	cc_ns start = cpu_time();
	int res = sock_walk(l, SOCK_WALK_REFRESH, fn, ctx);
	l->sock->refresh_due = loader_now() + WALK_PACE * (cpu_time() - start);
	return res;
}

int sock_stop(struct loader *l, cc_record_fn *fn, void *ctx)
{
	return l->sock ? sock_walk(l, SOCK_WALK_STOP, fn, ctx) : 0;
}
