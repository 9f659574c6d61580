/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_pair: the records of BPF ring buffers, in the order in which each CPU wrote them, also where
 * it wrote to two: to a small ring while that had room, else to a large one. Works on mapped memory
 * alone, so that tests can lay out what a race leaves. Source: kernel/bpf/ringbuf.c.
 *
 * bpf/maps.h, pair_reserve(), is the other side: a CPU looks at *over, then takes room in the small
 * ring (0) or in the large one. Between the two it may be held up for as long as the host likes.
 * Full, the small one is left by all at once: *over becomes the large one's position then, plus 1.
 */
#ifndef CC_RING_PAIR_H
#define CC_RING_PAIR_H

#include "base.h"
#include "source.h"

struct ring {
	uint64_t *consumer;        /* ours, writable */
	const uint64_t *producer;  /* the kernel's */
	const unsigned char *data; /* mapped twice in a row: a record never wraps */
	uint64_t bytes;
	uint64_t *over; /* of a small ring behind its large one, see above; NULL: of all others */
};

/* How far rings were written, in the order in which it was looked. */
struct ring_ends {
	uint64_t small_before, large, small_after;
};

static inline uint64_t ring_end(const struct ring *g)
{
	return __atomic_load_n(g->producer, __ATOMIC_ACQUIRE);
}

/* Of @large, and of @small if there is one. */
static inline struct ring_ends ring_ends(const struct ring *large, const struct ring *small)
{
	struct ring_ends e = { 0 };

	e.small_before = small ? ring_end(small) : 0;
	e.large = ring_end(large);
	e.small_after = small ? ring_end(small) : 0;
	return e;
}

/* Gives what lies before @end and was committed. Returns the number of records or the negative
 * return of @fn; *full becomes false at one that was reserved only. */
int ring_drain(struct ring *g, uint64_t end, cc_record_fn *fn, void *ctx, bool *full);

/* The same of a pair, up to @ends; *full starts true. Both empty, the small one is used again. */
int ring_pair_drain(struct ring *large, struct ring *small, const struct ring_ends *ends,
		    cc_record_fn *fn, void *ctx, bool *full);

#endif
