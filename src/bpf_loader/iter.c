/* SPDX-License-Identifier: Apache-2.0 */
#include "iter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define EACH_MAX 32u  /* targets; beyond, one walk over all tasks is cheaper */
#define SNAP_MAX 128u /* stacks of sleeping tasks per run */
#define SNAP_MIN_NS CC_MS(20)
#define READ_BYTES (64u << 10)

int rec_buf_put(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct rec_buf *b = ctx;
	if (b->cap - b->len < len) {
		size_t cap = CC_MAX(b->cap * 2, b->len + len + 4096);
		unsigned char *d = realloc(b->data, cap);
		if (!d)
			return -ENOMEM;
		b->data = d;
		b->cap = cap;
	}
	memcpy(b->data + b->len, rec, len);
	b->len += len;
	return 0;
}

int rec_buf_give(const struct rec_buf *b, cc_record_fn *fn, void *ctx)
{
	int cnt = 0;
	for (size_t at = 0; at + sizeof(struct cc_rec) <= b->len; cnt++) {
		const struct cc_rec *r = (const struct cc_rec *)(b->data + at);
		int ret;
		if (r->size < sizeof(*r) || r->size % 8 || r->size > b->len - at)
			return -EBADMSG;
		ret = fn(ctx, r, r->size);
		if (ret < 0)
			return ret;
		at += r->size;
	}
	return cnt;
}

void rec_buf_done(struct rec_buf *b)
{
	free(b->data);
	*b = (struct rec_buf){ 0 };
}

/* Reads iterator @fd to its end. */
static int read_all(int fd, struct rec_buf *b)
{
	for (;;) {
		if (b->cap - b->len < READ_BYTES) {
			size_t cap = CC_MAX(b->cap * 2, b->len + 2 * READ_BYTES);
			unsigned char *d = realloc(b->data, cap);
			if (!d)
				return -ENOMEM;
			b->data = d;
			b->cap = cap;
		}
		ssize_t n = read(fd, b->data + b->len, READ_BYTES);
		if (n > 0)
			b->len += (size_t)n;
		else if (!n)
			return 0;
		else if (errno != EAGAIN && errno != EINTR) /* EAGAIN: many tasks, none ours yet */
			return -errno;
	}
}

int iter_read(const struct bpf_program *p, int pidfd, struct rec_buf *b)
{
	union bpf_iter_link_info info = { 0 };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);
	if (pidfd >= 0) {
		info.task.pid_fd = (__u32)pidfd;
		opts.link_info = &info;
		opts.link_info_len = sizeof(info);
	}
	struct bpf_link *link = bpf_program__attach_iter(p, &opts);
	if (!link)
		return -errno;
	int fd = bpf_iter_create(bpf_link__fd(link));
	int ret = fd < 0 ? -errno : read_all(fd, b);
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return ret;
}

static int run(struct loader *l, int pidfd, struct rec_buf *b)
{
	return iter_read(l->iter_sleepable ? l->skel->progs.open_task_sleepable
					   : l->skel->progs.open_task,
			 pidfd, b);
}

static bool can_walk_each(const struct loader *l)
{
	size_t alive = 0;
	for (size_t i = 0; i < l->target_cnt; i++) {
		if (l->targets[i].gone)
			continue;
		if (l->targets[i].pidfd < 0 || ++alive > EACH_MAX)
			return false;
	}
	return true;
}

int iter_tasks(struct loader *l, uint32_t flags, struct rec_buf *b)
{
	struct cc_bpf_iter_ctl ctl = {
		.snap_min_ns = SNAP_MIN_NS,
		.snap_left = l->stack_tier == LOADER_STACK_NONE ? 0 : SNAP_MAX,
		.flags = flags,
	};
	__u32 zero = 0;
	if (bpf_map_update_elem(bpf_map__fd(l->skel->maps.iter_ctl), &zero, &ctl, BPF_ANY))
		return -errno;
	if (!can_walk_each(l))
		return run(l, -1, b);
	for (size_t i = 0; i < l->target_cnt; i++) {
		int ret = l->targets[i].gone ? 0 : run(l, l->targets[i].pidfd, b);
		if (ret == -EINVAL) /* before 6.1 (f0d74c4da1f0) an iterator takes no process */
			return run(l, -1, b);
		if (ret && ret != -ESRCH)
			return ret;
	}
	return 0;
}
