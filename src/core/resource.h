/* SPDX-License-Identifier: Apache-2.0 */
/* resource: what tasks waited on, and for locks every wake on them in order of time: each such
 * wake is a release, and so the end of one holder's part. */
#ifndef CC_RESOURCE_H
#define CC_RESOURCE_H

#include "map.h"

enum res_kind {
	RES_NONE,
	RES_FUTEX,  /* id: low 32 bits of the address, in tgid */
	RES_SHARED, /* a futex in memory of several processes, wherever each has it. id: inode of
		     * its file, id2: offset in it, tgid: device */
	RES_KLOCK,  /* id: kernel address */
	RES_FILE,   /* id: inode, id2: device */
	RES_SOCK,   /* id: cookie */
	RES_FD,     /* id: number, in tgid */
	RES_GO,     /* id: address of a channel, mutex ..., id2: wait class, in tgid */
	RES_GO_RUNQ,
};

#define FUTEX_OF_ALL                                                                            \
	UINT32_MAX /* as tgid: in memory that processes share, at this address in each of them: \
		    * all that is known where its file was not told */

struct lock_wake { /* @waker released, @wakee was woken */
	cc_ns t;
	uint32_t waker_tid, wakee_tid;
};

struct sharer { /* a process that has what several have in common */
	uint32_t tgid;
	bool waited; /* its waits are known to be for it */
	bool woke;   /* it ended a wait of another one */
};

struct futex_kind {           /* what waits on a futex are for */
	uint8_t cls;          /* enum wait_class; 0: not known */
	uint8_t site;         /* enum futex_site */
	bool guessed, shared; /* see struct wait_kind */
};

struct resource {
	uint64_t id, id2;
	uint64_t uaddr; /* FUTEX: whole address; 0: not known */
	uint32_t tgid;
	uint8_t kind;    /* enum res_kind */
	uint8_t learned; /* FD: CC_FD_*, from the EXTRA of a slow wait on it, for short ones that
			  * have none; 0: not known */
	struct futex_kind futex; /* the same of a FUTEX; its stack tells more than the call */
	bool shared; /* GO: a lock that several may have at a time, as its waits' stacks tell */
	bool across; /* FUTEX of a process: others have it too, its wakes are with shm_* */
	uint32_t shm_dev;
	uint64_t shm_id, shm_off; /* of its RES_SHARED; 0: FUTEX_OF_ALL, by address */
	uint32_t sorted;          /* so many wakes are in order, those after are not yet */
	uint32_t near;            /* where wakes were asked for last */
	VEC(struct sharer) sharers;
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
