// SPDX-License-Identifier: Apache-2.0
/* The socket side of the loader: which of its kernel programs this kernel takes, and the runs of
 * the iterator that seeds and refreshes. The requests themselves come by the rings. */
#include "loader_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "../../bpf/sock_walk.h"
#include "event.h"

#include "criticast.skel.h"

#define WALK_TARGETS_MAX 32 /* beyond, one walk over all processes is cheaper */
#define WALK_BUF (64 << 10) /* bytes read at once */

struct sock_side {
	struct bpf_link *links[4];
	size_t link_cnt;
	char buf[WALK_BUF];
};

struct sock_prog {
	struct bpf_program *prog;
	const char *need; /* a type of the kernel's BTF without which it cannot load */
};

static size_t sock_progs(const struct loader *l, struct sock_prog ret[5])
{
	const struct sock_prog p[] = {
		{ l->skel->progs.cc_sk_data_ready, "btf_trace_sk_data_ready" },
		{ l->skel->progs.cc_sock_recv_length, "btf_trace_sock_recv_length" },
		{ l->skel->progs.cc_sock_send_length, "btf_trace_sock_send_length" },
		{ l->skel->progs.cc_inet_sock_set_state, "btf_trace_inet_sock_set_state" },
		{ l->skel->progs.cc_sock_walk, "bpf_iter__task_file" },
	};

	memcpy(ret, p, sizeof(p));
	return ARRAY_SIZE(p);
}

/* What this kernel lacks of what the programs need; NULL: nothing. */
static const char *missing(const struct sock_prog *p, size_t cnt)
{
	const char *lack = NULL;
	struct btf *btf = btf__load_vmlinux_btf();

	if (!btf)
		return "BTF";
	for (size_t i = 0; i < cnt && !lack; i++)
		if (btf__find_by_name(btf, p[i].need) < 0)
			lack = p[i].need;
	btf__free(btf);
	return lack;
}

int sock_prepare(struct loader *l, struct cc_err *err)
{
	struct sock_prog p[5];
	size_t cnt = sock_progs(l, p);
	const char *lack = NULL;
	struct timespec jiffy;

	l->req_tier = l->o.req_tier == LOADER_REQ_NONE ? LOADER_REQ_NONE : LOADER_REQ_SOCK;
	if (l->req_tier == LOADER_REQ_SOCK)
		lack = missing(p, cnt);
	if (lack && l->o.req_tier == LOADER_REQ_SOCK) {
		loader_err(err, "requests: this kernel has no %s; Linux 6.3 or later", lack);
		return -EOPNOTSUPP;
	}
	if (lack)
		l->req_tier = LOADER_REQ_NONE;
	if (l->req_tier == LOADER_REQ_NONE) {
		for (size_t i = 0; i < cnt; i++)
			bpf_program__set_autoload(p[i].prog, false);
		bpf_map__set_autocreate(l->skel->maps.socks, false);
		bpf_map__set_autocreate(l->skel->maps.sock_tasks, false);
		return 0;
	}
	/* the coarse clock's step is the jiffy */
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &jiffy))
		return -errno;
	l->skel->bss->sock_jiffy_ns = (cc_ns)jiffy.tv_nsec;
	l->sock = calloc(1, sizeof(*l->sock));
	return l->sock ? 0 : -ENOMEM;
}

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

static int walk_targets(struct loader *l, __u32 mode, cc_record_fn *fn, void *ctx)
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

int sock_attach(struct loader *l, struct cc_err *err)
{
	struct sock_prog p[5];
	size_t cnt = sock_progs(l, p);

	if (!l->sock)
		return 0;
	/* The first event of a connection decides which end it is: it must find who listens. */
	int walked = walk_targets(l, SOCK_WALK_LISTENERS, NULL, NULL);
	if (walked)
		return walked;
	for (size_t i = 0; i < cnt; i++) {
		struct bpf_link *link;

		if (p[i].prog == l->skel->progs.cc_sock_walk)
			continue; /* attached for each run */
		link = bpf_program__attach(p[i].prog);
		if (!link) {
			int res = -errno;

			loader_err(err, "%s: %s; see `criticast env`", bpf_program__name(p[i].prog),
				   strerror(-res));
			return res;
		}
		l->sock->links[l->sock->link_cnt++] = link;
	}
	l->skel->bss->sock_on = 1;
	return 0;
}

int sock_seed(struct loader *l)
{
	int res;

	if (!l->sock)
		return 0;
	res = walk_targets(l, SOCK_WALK_LISTENERS, NULL, NULL);
	return res ? res : walk_targets(l, SOCK_WALK_CONNECTIONS, NULL, NULL);
}

int sock_refresh(struct loader *l, cc_record_fn *fn, void *ctx)
{
	return l->sock ? walk_targets(l, SOCK_WALK_REFRESH, fn, ctx) : 0;
}

int sock_stop(struct loader *l, cc_record_fn *fn, void *ctx)
{
	return l->sock ? walk_targets(l, SOCK_WALK_STOP, fn, ctx) : 0;
}

void sock_done(struct loader *l)
{
	if (!l->sock)
		return;
	for (size_t i = 0; i < l->sock->link_cnt; i++)
		bpf_link__destroy(l->sock->links[i]);
	free(l->sock);
	l->sock = NULL;
}
