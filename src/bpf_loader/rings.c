/* SPDX-License-Identifier: Apache-2.0 */
#include "rings.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#define RINGS_MAX 4
/* Room is given back in such parts of a ring: each time costs every CPU that writes to it a miss.
 */
#define TOLD_PARTS 256
#define TOLD_MIN 16384u

struct ring {
	uint64_t *consumer;        /* ours, writable */
	const uint64_t *producer;  /* the kernel's */
	const unsigned char *data; /* mapped twice in a row: a record never wraps */
	uint64_t bytes;
	uint32_t *over; /* it takes records of the ring before it; NULL: it does not */
};

struct ring_drain {
	int epoll_fd;
	uint32_t cnt;
	struct ring rings[RINGS_MAX];
};

int rings_new(struct ring_drain **ret)
{
	struct ring_drain *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->epoll_fd < 0) {
		int err = -errno;
		free(r);
		return err;
	}
	*ret = r;
	return 0;
}

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static void ring_unmap(struct ring *g)
{
	if (g->consumer)
		munmap(g->consumer, page_size());
	if (g->producer)
		munmap((void *)g->producer, page_size() + 2 * g->bytes);
}

void rings_free(struct ring_drain *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->cnt; i++)
		ring_unmap(&r->rings[i]);
	close(r->epoll_fd);
	free(r);
}

int rings_add(struct ring_drain *r, int map_fd, uint64_t bytes)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	size_t page = page_size();
	if (r->cnt == RINGS_MAX)
		return -E2BIG;
	struct ring *g = &r->rings[r->cnt];
	*g = (struct ring){ .bytes = bytes };
	void *m = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (m == MAP_FAILED)
		return -errno;
	g->consumer = m;
	m = mmap(NULL, page + 2 * bytes, PROT_READ, MAP_SHARED, map_fd, (off_t)page);
	if (m == MAP_FAILED) {
		int err = -errno;
		ring_unmap(g);
		return err;
	}
	g->producer = m;
	g->data = (const unsigned char *)m + page;
	if (epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, map_fd, &ev)) {
		int err = -errno;
		ring_unmap(g);
		return err;
	}
	r->cnt++;
	return 0;
}

int rings_add_small(struct ring_drain *r, int map_fd, uint64_t bytes, uint32_t *over)
{
	int ret = rings_add(r, map_fd, bytes);
	if (!ret)
		r->rings[r->cnt - 1].over = over;
	return ret;
}

int rings_wait(struct ring_drain *r, int timeout_ms)
{
	struct epoll_event ev[RINGS_MAX];
	if (epoll_wait(r->epoll_fd, ev, RINGS_MAX, timeout_ms) >= 0 || errno == EINTR)
		return 0;
	return -errno;
}

/* Gives what lies before @end. */
static int ring_drain_one(struct ring *g, uint64_t end, cc_record_fn *fn, void *ctx, bool *full)
{
	uint64_t at = *g->consumer; /* only we write it */
	uint64_t told = at, part = CC_MAX(g->bytes / TOLD_PARTS, TOLD_MIN);
	int cnt = 0, err = 0;

	while (at < end && err >= 0) {
		const unsigned char *p = g->data + (at & (g->bytes - 1));
		uint32_t head = __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
		if (head & BPF_RINGBUF_BUSY_BIT) { /* reserved, not yet committed */
			*full = false;
			break;
		}
		uint32_t len = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		if (!(head & BPF_RINGBUF_DISCARD_BIT)) {
			err = fn(ctx, (const struct cc_rec *)(p + BPF_RINGBUF_HDR_SZ), len);
			cnt++;
		}
		at += (len + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
		if (at - told > part) {
			__atomic_store_n(g->consumer, at, __ATOMIC_RELEASE);
			told = at;
		}
	}
	__atomic_store_n(g->consumer, at, __ATOMIC_RELEASE);
	return err < 0 ? err : cnt;
}

/* So often a large ring that took over is drained again, each time of what came meanwhile. */
#define AGAIN_MAX 8

static uint64_t ring_end(const struct ring *g)
{
	return __atomic_load_n(g->producer, __ATOMIC_ACQUIRE);
}

/* Both of a pair were drained: the small one is used again when nothing lies in the large one, @g.
 * Else what comes into the small one would be told before it. */
static int ring_back(struct ring *g, uint32_t *over, cc_record_fn *fn, void *ctx)
{
	int sum = 0;
	bool full = true;

	for (int i = 0; i < AGAIN_MAX && full; i++) {
		uint64_t end = ring_end(g);
		if (end == *g->consumer) {
			__atomic_store_n(over, 0, __ATOMIC_RELEASE);
			break;
		}
		int n = ring_drain_one(g, end, fn, ctx, &full);
		if (n < 0)
			return n;
		sum += n;
	}
	return sum;
}

/* Ring @g and, behind it, the small one @s that takes its records, up to the two ends. In order:
 * what lies in the large one is older, unless it took over. */
static int pair_drain(struct ring *g, struct ring *s, const uint64_t end[2], cc_record_fn *fn,
		      void *ctx, bool *full)
{
	/* after the ends were taken: who writes to the large one says so before */
	bool over = __atomic_load_n(s->over, __ATOMIC_ACQUIRE), drained = true;
	int n = ring_drain_one(over ? s : g, end[over], fn, ctx, &drained);
	int m = n < 0 ? 0 : ring_drain_one(over ? g : s, end[!over], fn, ctx, &drained);
	int k = n < 0 || m < 0 || !over || !drained ? 0 : ring_back(g, s->over, fn, ctx);

	*full &= drained;
	return n < 0 ? n : m < 0 ? m : k < 0 ? k : n + m + k;
}

int rings_drain(struct ring_drain *r, cc_record_fn *fn, void *ctx, bool *ret_full)
{
	uint64_t end[RINGS_MAX];
	int sum = 0;

	*ret_full = true;
	for (uint32_t i = 0; i < r->cnt; i++)
		end[i] = ring_end(&r->rings[i]);
	for (uint32_t i = 0; i < r->cnt;) {
		struct ring *g = &r->rings[i];
		bool pair = i + 1 < r->cnt && g[1].over;
		int n = pair ? pair_drain(g, &g[1], &end[i], fn, ctx, ret_full)
			     : ring_drain_one(g, end[i], fn, ctx, ret_full);
		if (n < 0) {
			*ret_full = false;
			return n;
		}
		sum += n;
		i += pair ? 2 : 1;
	}
	return sum;
}

uint64_t rings_fill(const struct ring_drain *r, uint32_t idx, uint64_t *ret_bytes)
{
	if (idx >= r->cnt) {
		*ret_bytes = 0;
		return 0;
	}
	const struct ring *g = &r->rings[idx];
	*ret_bytes = g->bytes;
	return __atomic_load_n(g->producer, __ATOMIC_ACQUIRE) -
	       __atomic_load_n(g->consumer, __ATOMIC_ACQUIRE);
}
