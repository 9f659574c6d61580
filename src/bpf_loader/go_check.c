/* SPDX-License-Identifier: Apache-2.0 */
#include "go_check.h"

#include "iter.h"
#include "targets.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define THREADS_MAX 256
#define STATUS_SCAN 0x1000 /* set while the garbage collector looks at it */
#define STATUS_WAITING 4
#define STATUS_DEAD 6

static bool read_mem(uint32_t tgid, uint64_t addr, void *buf, size_t len)
{
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };
	return process_vm_readv((pid_t)tgid, &to, 1, &from, 1, 0) == (ssize_t)len;
}

bool go_check_read(const struct go_proc *p, uint64_t addr, void *buf, size_t len)
{
	return read_mem(p->tgid, addr, buf, len);
}

static bool read_word(const struct go_proc *p, uint64_t base, uint32_t off, uint64_t *ret)
{
	return base && read_mem(p->tgid, base + off, ret, sizeof(*ret));
}

/* The threads of @p, by the iterator. Returns their number or -errno. */
static int list_threads(struct loader *l, const struct go_proc *p, struct cc_bpf_go_thread *ret)
{
	const struct loader_target *t = targets_find(l, p->tgid);
	union bpf_iter_link_info info = { 0 };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);
	if (t && t->pidfd >= 0) {
		info.task.pid_fd = (__u32)t->pidfd;
		opts.link_info = &info;
		opts.link_info_len = sizeof(info);
	}
	struct bpf_link *link = bpf_program__attach_iter(l->skel->progs.go_threads, &opts);
	if (!link && errno == EINVAL) /* before 6.1 an iterator takes no process */
		link = bpf_program__attach_iter(l->skel->progs.go_threads, NULL);
	if (!link)
		return -errno;
	int fd = bpf_iter_create(bpf_link__fd(link)), err = fd < 0 ? -errno : 0;
	size_t len = 0, max = THREADS_MAX * sizeof(*ret);
	while (!err && len < max) {
		ssize_t n = read(fd, (char *)ret + len, max - len);
		if (n > 0)
			len += (size_t)n;
		else if (!n)
			break;
		else if (errno != EAGAIN && errno != EINTR)
			err = -errno;
	}
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err ? err : (int)(len / sizeof(*ret));
}

int go_check_sample(struct loader *l, const struct go_proc *p, struct loader_go_sample *ret,
		    size_t max)
{
	struct cc_bpf_go_thread t[THREADS_MAX];
	int cnt = list_threads(l, p, t);
	for (int i = 0; i < cnt && (size_t)i < max; i++) {
		uint64_t at = t[i].tp + (uint64_t)p->target.tls_off;
		ret[i] = (struct loader_go_sample){ .tid = t[i].ns_tid };
		if (!t[i].tp || !read_mem(p->tgid, at, &ret[i].g, sizeof(ret[i].g)))
			ret[i].g = 0;
	}
	return (int)CC_MIN((size_t)CC_MAX(cnt, 0), max);
}

/* ---- stacks of goroutines that wait now ----------------------------------------------------- */

struct parked { /* what must be the same before and after */
	uint64_t goid, pc, bp, stack[2];
	uint32_t status;
};

static bool read_parked(const struct go_proc *p, uint64_t g, struct parked *ret)
{
	const struct go_layout *at = &p->target.layout;
	memset(ret, 0, sizeof(*ret));
	return read_word(p, g, at->g_goid, &ret->goid) &&
	       read_word(p, g, at->g_sched_pc, &ret->pc) &&
	       read_word(p, g, at->g_sched_bp, &ret->bp) &&
	       read_mem(p->tgid, g + at->g_stack, ret->stack, sizeof(ret->stack)) &&
	       read_mem(p->tgid, g + at->g_atomicstatus, &ret->status, sizeof(ret->status)) &&
	       (ret->status & ~(uint32_t)STATUS_SCAN) == STATUS_WAITING;
}

/* As go_frames() of bpf/go_stack.h. */
static uint16_t walk(const struct go_proc *p, const struct parked *k, uint64_t *ip, bool *full)
{
	uint64_t bp = k->bp, f[2];
	uint16_t cnt = 0;
	*full = false;
	ip[cnt++] = k->pc;
	while (cnt < CC_STACK_MAX && bp >= k->stack[0] && bp < k->stack[1] && !(bp & 7) &&
	       read_mem(p->tgid, bp, f, sizeof(f))) {
		ip[cnt++] = f[1];
		*full = !f[0];
		if (f[0] <= bp)
			break;
		bp = f[0];
	}
	return cnt;
}

uint64_t go_check_stack(const struct go_proc *p, uint64_t g, struct rec_buf *b)
{
	union {
		uint64_t room[sizeof(struct cc_rec_stack) / 8 + CC_STACK_MAX];
		struct cc_rec_stack r;
	} u;
	uint64_t ip[CC_STACK_MAX], key = 0xcbf29ce484222325ull ^ p->tgid;
	struct parked before, after;
	bool full;
	if (p->target.layout.g_sched_bp == GO_NO_FIELD || !read_parked(p, g, &before) || !before.pc)
		return 0;
	uint16_t cnt = walk(p, &before, ip, &full);
	if (!read_parked(p, g, &after) || memcmp(&before, &after, sizeof(before)))
		return 0;
	for (uint16_t i = 0; i < cnt; i++)
		key = (key ^ ip[i]) * 0x100000001b3ull;
	memset(&u.r, 0, sizeof(u.r));
	u.r.h = (struct cc_rec){
		.size = (__u16)(sizeof(u.r) + cnt * sizeof(*ip)),
		.kind = CC_REC_STACK,
		.flags = full ? CC_ST_COMPLETE : 0,
		.cpu = 0xffff,
		.aux = cnt,
		.ts = loader_now(),
	};
	u.r.key = key ? key : 1;
	u.r.tgid = p->tgid;
	memcpy((char *)&u + sizeof(u.r), ip, cnt * sizeof(*ip));
	return rec_buf_put(b, &u.r.h, u.r.h.size) ? 0 : u.r.key;
}

bool go_check_ended(const struct go_proc *p, uint64_t g, uint64_t goid)
{
	const struct go_layout *at = &p->target.layout;
	uint64_t id;
	uint32_t status;
	return go_check_read(p, g + at->g_goid, &id, sizeof(id)) &&
	       go_check_read(p, g + at->g_atomicstatus, &status, sizeof(status)) &&
	       (id != goid || status == STATUS_DEAD);
}
