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

struct ring {
	uint64_t *consumer;        /* ours, writable */
	const uint64_t *producer;  /* the kernel's */
	const unsigned char *data; /* mapped twice in a row: a record never wraps */
	uint64_t bytes;
};

struct ring_drain {
	int epoll_fd;
	uint32_t cnt;
	struct ring rings[RINGS_MAX];
	uint32_t small, large, *over; /* over NULL: there is no such pair */
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

int rings_wait(struct ring_drain *r, int timeout_ms)
{
	struct epoll_event ev[RINGS_MAX];
	if (epoll_wait(r->epoll_fd, ev, RINGS_MAX, timeout_ms) >= 0 || errno == EINTR)
		return 0;
	return -errno;
}

void rings_overflow(struct ring_drain *r, uint32_t small, uint32_t large, uint32_t *over)
{
	r->small = small;
	r->large = large;
	r->over = over;
}

/* Gives what lies before @end. */
static int ring_drain_one(struct ring *g, uint64_t end, cc_record_fn *fn, void *ctx, bool *full)
{
	uint64_t at = *g->consumer; /* only we write it */
	uint64_t told = at;
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
		if (at - told > g->bytes / TOLD_PARTS) {
			__atomic_store_n(g->consumer, at, __ATOMIC_RELEASE);
			told = at;
		}
	}
	__atomic_store_n(g->consumer, at, __ATOMIC_RELEASE);
	return err < 0 ? err : cnt;
}

int rings_drain(struct ring_drain *r, cc_record_fn *fn, void *ctx, bool *ret_full)
{
	uint64_t end[RINGS_MAX];
	int sum = 0;

	*ret_full = true;
	for (uint32_t i = 0; i < r->cnt; i++)
		end[i] = __atomic_load_n(&r->rings[i].producer[0], __ATOMIC_ACQUIRE);
	/* what lies in the small one is older then; else the other has what comes first: who is
	 * traced, which names they have */
	bool over = r->over && __atomic_load_n(r->over, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < r->cnt; i++) {
		uint32_t k = over && i == r->small   ? r->large
			     : over && i == r->large ? r->small
						     : i;
		int n = ring_drain_one(&r->rings[k], end[k], fn, ctx, ret_full);
		if (n < 0) {
			*ret_full = false;
			return n;
		}
		sum += n;
	}
	if (over)
		__atomic_store_n(r->over, 0, __ATOMIC_RELEASE);
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
