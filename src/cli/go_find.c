/* SPDX-License-Identifier: Apache-2.0 */
#if HAVE_BPF
#include "go_find.h"

#include "go_bin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One file that was looked at. A prefork server's children, or the same program exec'd again, are
 * the same file. */
struct known {
	dev_t dev;
	ino_t ino;
	struct timespec mtime;
	struct go_bin *bin; /* NULL: no Go program, or not to be followed: why */
	int err;
	struct cc_err why;
};

struct go_find {
	struct go_bin_opts o;
	const char *binary; /* NULL: /proc/PID/exe */
	struct known *known;
	size_t cnt, cap;
};

static struct known *look_up(struct go_find *f, const struct stat *st)
{
	for (size_t i = 0; i < f->cnt; i++) {
		struct known *k = &f->known[i];
		if (k->dev == st->st_dev && k->ino == st->st_ino &&
		    k->mtime.tv_sec == st->st_mtim.tv_sec &&
		    k->mtime.tv_nsec == st->st_mtim.tv_nsec)
			return k;
	}
	return NULL;
}

/* Takes @fd. Returns NULL when out of memory. */
static struct known *read_file(struct go_find *f, int fd, const struct stat *st)
{
	if (f->cnt == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 8;
		struct known *v = realloc(f->known, cap * sizeof(*v));
		if (!v) {
			close(fd);
			return NULL;
		}
		f->known = v;
		f->cap = cap;
	}
	struct known *k = &f->known[f->cnt];
	*k = (struct known){ .dev = st->st_dev, .ino = st->st_ino, .mtime = st->st_mtim };
	k->err = go_bin_open(fd, &f->o, &k->bin, &k->why);
	if (k->err == -ENOMEM)
		return NULL;
	f->cnt++;
	return k;
}

static int find(void *ctx, uint32_t tgid, const struct go_target **ret, struct cc_err *why)
{
	struct go_find *f = ctx;
	char path[32];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	int fd = open(f->binary ? f->binary : path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		int err = errno;
		if (fd >= 0)
			close(fd);
		if (err == ENOENT || err == ESRCH) /* it ended, or is a kernel thread */
			return 0;
		snprintf(why->msg, sizeof(why->msg), "cannot read its program: %s", strerror(err));
		return -err;
	}
	struct known *k = look_up(f, &st);
	if (k)
		close(fd);
	else
		k = read_file(f, fd, &st);
	if (!k)
		return -ENOMEM;
	if (k->err == -ENOEXEC)
		return 0;
	if (k->err) {
		*why = k->why;
		return k->err;
	}
	*ret = &k->bin->t;
	return 1;
}

static int judge(void *ctx, uint32_t tgid, const struct loader_go_sample *s, size_t cnt,
		 const struct go_target **ret, struct loader_go_verdict *v)
{
	struct go_find *f = ctx;
	struct go_sample samples[GO_LIVE_SAMPLES];
	struct go_verdict verdict = { 0 };
	struct stat st;
	char path[32];
	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	struct known *k = stat(f->binary ? f->binary : path, &st) ? NULL : look_up(f, &st);
	if (!k || !k->bin)
		return -ESRCH; /* it ended, or runs another program by now */
	cnt = CC_MIN(cnt, (size_t)GO_LIVE_SAMPLES);
	for (size_t i = 0; i < cnt; i++)
		samples[i] = (struct go_sample){ .tid = s[i].tid, .g = s[i].g };
	int err = go_bin_judge(k->bin, (pid_t)tgid, samples, cnt, &verdict);
	v->right = verdict.right;
	v->wrong = verdict.wrong;
	snprintf(v->why.msg, sizeof(v->why.msg), "%s", verdict.why);
	*ret = &k->bin->t;
	return err;
}

static void done(void *ctx)
{
	struct go_find *f = ctx;
	for (size_t i = 0; i < f->cnt; i++)
		go_bin_free(f->known[i].bin);
	free(f->known);
	free(f);
}

int go_find_new(const struct cli_opts *o, enum loader_go_tier tier, struct loader_go *ret)
{
	struct go_find *f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->o.offsets = o->go_offsets;
	f->o.version = o->go_version;
	f->binary = o->go_binary;
	*ret = (struct loader_go){
		.find = find,
		.judge = judge,
		.done = done,
		.ctx = f,
		.tier = tier,
		.force = o->force,
	};
	return 0;
}
#endif
