/* SPDX-License-Identifier: Apache-2.0 */
#include "rings.h"
#include "ring_pair.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#define RINGS_MAX 4

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

int rings_add_small(struct ring_drain *r, int map_fd, uint64_t bytes, uint64_t *over)
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

/* Is ring @i one of two, with the small one behind it? */
static bool is_pair(const struct ring_drain *r, uint32_t i)
{
	return i + 1 < r->cnt && r->rings[i + 1].over;
}

int rings_drain(struct ring_drain *r, cc_record_fn *fn, void *ctx, bool *ret_full)
{
	struct ring_ends ends[RINGS_MAX];
	int sum = 0;

	*ret_full = true;
	for (uint32_t i = 0; i < r->cnt; i += is_pair(r, i) ? 2 : 1)
		ends[i] = ring_ends(&r->rings[i], is_pair(r, i) ? &r->rings[i + 1] : NULL);
	for (uint32_t i = 0; i < r->cnt; i += is_pair(r, i) ? 2 : 1) {
		struct ring *g = &r->rings[i];
		bool full = true;
		int n = is_pair(r, i) ? ring_pair_drain(g, &g[1], &ends[i], fn, ctx, &full)
				      : ring_drain(g, ends[i].large, fn, ctx, &full);
		*ret_full &= full && n >= 0;
		if (n < 0)
			return n;
		sum += n;
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
	return ring_end(g) - __atomic_load_n(g->consumer, __ATOMIC_ACQUIRE);
}
