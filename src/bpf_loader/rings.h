/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rings: drains BPF ring buffers. Not libbpf's ring_buffer: a drain here ends at the position the
 * producers had when it began (so a storm cannot hold the collector), and says whether it got
 * there, which is what the watermark needs. It sleeps on an edge-triggered epoll: the programs
 * commit with BPF_RB_NO_WAKEUP, so a level-triggered one would spin while data is there. Source:
 * kernel/bpf/ringbuf.c, Documentation/bpf/ringbuf.rst.
 */
#ifndef CC_RINGS_H
#define CC_RINGS_H

#include "base.h"
#include "source.h"

struct ring_drain;

/* An empty set. 0 or -errno. */
CC_NODISCARD int rings_new(struct ring_drain **ret);
void rings_free(struct ring_drain *r);

/* Adds the ring map @map_fd of @bytes; rings are drained in the order added. 0 or -errno. */
CC_NODISCARD int rings_add(struct ring_drain *r, int map_fd, uint64_t bytes);

/* The same of a small ring, which takes the records of the one added last as long as they fit:
 * see ring_pair.h for both and for *over. */
CC_NODISCARD int rings_add_small(struct ring_drain *r, int map_fd, uint64_t bytes, uint64_t *over);

/* Sleeps until the programs ask to be drained or @timeout_ms is over. 0 or -errno; a signal is 0.
 */
int rings_wait(struct ring_drain *r, int timeout_ms);

/*
 * Gives all records committed before the call, ring by ring. Returns their number, or the negative
 * return of @fn. *ret_full: every record that was reserved before the call has been given.
 */
int rings_drain(struct ring_drain *r, cc_record_fn *fn, void *ctx, bool *ret_full);

/* Bytes now waiting in ring @idx, and its size. */
uint64_t rings_fill(const struct ring_drain *r, uint32_t idx, uint64_t *ret_bytes);

#endif
