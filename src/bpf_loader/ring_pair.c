/* SPDX-License-Identifier: Apache-2.0 */
#include "ring_pair.h"

#include <linux/bpf.h>

/* Room is given back in such parts of a ring: each time costs every CPU that writes to it a miss.
 */
#define TOLD_PARTS 256
#define TOLD_MIN 16384u

int ring_drain(struct ring *g, uint64_t end, cc_record_fn *fn, void *ctx, bool *full)
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

/* So much of a ring is due. */
struct part {
	struct ring *ring;
	uint64_t end;
};

/* One part after the other: behind one that is not there yet, nothing is told. */
static int drain_parts(const struct part *parts, size_t cnt, cc_record_fn *fn, void *ctx,
		       bool *full)
{
	int sum = 0;

	for (size_t i = 0; i < cnt && *full; i++) {
		int n = ring_drain(parts[i].ring, parts[i].end, fn, ctx, full);
		if (n < 0)
			return n;
		sum += n;
	}
	return sum;
}

/* So often a pair whose large ring took over is drained again, each time of what came meanwhile. */
#define AGAIN_MAX 8

/* The large ring took over and both were drained. The small one is used again as soon as nothing
 * lies in the large one. */
static int back_to_small(struct ring *large, struct ring *small, cc_record_fn *fn, void *ctx,
			 bool *full)
{
	int sum = 0;

	for (int i = 0; i < AGAIN_MAX && *full; i++) {
		struct ring_ends e = ring_ends(large, small);
		if (e.large == *large->consumer) {
			__atomic_store_n(small->over, 0, __ATOMIC_RELEASE);
			break;
		}
		const struct part parts[] = { { small, e.small_after }, { large, e.large } };
		int n = drain_parts(parts, ARRAY_SIZE(parts), fn, ctx, full);
		if (n < 0)
			return n;
		sum += n;
	}
	return sum;
}

int ring_pair_drain(struct ring *large, struct ring *small, const struct ring_ends *ends,
		    cc_record_fn *fn, void *ctx, bool *full)
{
	/* Read after the ends: who wrote to the large one before them, as it had taken over, had
	 * said so. */
	uint64_t over = __atomic_load_n(small->over, __ATOMIC_ACQUIRE);

	if (!over) {
		/* In the large one are stragglers at most, each older than what its CPU wrote to
		 * the small one; that is cut off first, so that none is missing here. */
		const struct part parts[] = { { large, ends->large },
					      { small, ends->small_before } };
		return drain_parts(parts, ARRAY_SIZE(parts), fn, ctx, full);
	}
	/* Stragglers, the small one, and what came when it was full: that is cut off first. */
	const struct part parts[] = { { large, over - 1 },
				      { small, ends->small_after },
				      { large, ends->large } };
	int n = drain_parts(parts, ARRAY_SIZE(parts), fn, ctx, full);
	int m = n < 0 ? 0 : back_to_small(large, small, fn, ctx, full);
	return n < 0 ? n : m < 0 ? m : n + m;
}
