/* SPDX-License-Identifier: Apache-2.0 */
/* resource: what tasks waited on, and for locks every wake on them in order of time: each such
 * wake is a release, and so the end of one holder's part. */
#ifndef CC_RESOURCE_H
#define CC_RESOURCE_H

#include "map.h"

enum res_kind {
	RES_NONE,
	RES_FUTEX, /* id: low 32 bits of the address, in tgid */
	RES_KLOCK, /* id: kernel address */
	RES_FILE,  /* id: inode, id2: device */
	RES_SOCK,  /* id: cookie */
	RES_FD,    /* id: number, in tgid */
	RES_GO,    /* id: address of a channel, mutex ..., id2: wait class, in tgid */
	RES_GO_RUNQ,
};

#define FUTEX_OF_ALL \
	UINT32_MAX /* as tgid: in memory that processes share, at this address in each of them */

struct lock_wake { /* @waker released, @wakee was woken */
	cc_ns t;
	uint32_t waker_tid, wakee_tid;
};

struct resource {
	uint64_t id, id2;
	uint64_t uaddr; /* FUTEX: whole address; 0: not known */
	uint32_t tgid;
	uint8_t kind;    /* enum res_kind */
	uint8_t learned; /* FUTEX: enum wait_class, FD: CC_FD_*, from the EXTRA of a slow wait on
			  * it, for short ones that have none; 0: not known */
	bool across;     /* FUTEX of a process: others have it too, its wakes are FUTEX_OF_ALL's */
	uint32_t waker_tgid; /* FUTEX_OF_ALL: the last process that ended a wait of another one */
	uint32_t sorted;     /* so many wakes are in order, those after are not yet */
	uint32_t near;       /* where wakes were asked for last */
	VEC(struct lock_wake) wakes;
	bool marked;
	uint32_t next; /* 1 + index of another with the same hash */
};

struct resources {
	struct mem *mem;
	VEC(struct resource) v; /* kind RES_NONE: free */
	VEC(uint32_t) free;
	struct map by_key;
};

void resources_init(struct resources *rs, struct mem *mem);
void resources_done(struct resources *rs);

/* 1 + index; 0: none (find) or no memory (get). */
uint32_t resources_find(const struct resources *rs, enum res_kind kind, uint64_t id, uint64_t id2,
			uint32_t tgid);
uint32_t resources_get(struct resources *rs, enum res_kind kind, uint64_t id, uint64_t id2,
		       uint32_t tgid);

CC_NODISCARD int resource_wake(struct resources *rs, uint32_t res, struct lock_wake w);

/* The wakes with lo < t <= hi, in order of time; borrowed until the next resource_wake. */
const struct lock_wake *resource_wakes(struct resources *rs, uint32_t res, cc_ns lo, cc_ns hi,
				       uint32_t *ret_cnt);

void resources_evict(struct resources *rs, cc_ns before); /* wakes before it */

/* Forgets those without wakes that were not marked since: who keeps the number of one marks it. */
void resources_mark(struct resources *rs, uint32_t res);
void resources_sweep(struct resources *rs);

#endif
