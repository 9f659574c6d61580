/* SPDX-License-Identifier: Apache-2.0 */
/* classify: what a wait was for: syscall and kind of file first, the kernel stack refines. */
#ifndef CC_CLASSIFY_H
#define CC_CLASSIFY_H

#include "names.h"
#include "resource.h"
#include "task.h"
#include "wait_class.h"

/* Whether a thread that waits so has let go of what it worked on. */
enum idle_kind {
	IDLE_NO,
	IDLE_WHEN_FREE, /* a queue, a socket: idle when the request it touched last is over */
	IDLE_LOOP,      /* event loop, accept */
};

/* Which of the C library's calls, or of the Go scheduler's, waits on a futex, by the functions on
 * its stack. */
enum futex_site {
	FUTEX_SITE_NONE,
	FUTEX_SITE_RWLOCK,
	FUTEX_SITE_SEM,
	FUTEX_SITE_COND,
	FUTEX_SITE_BARRIER,
	FUTEX_SITE_GO_IDLE,  /* a thread of Go's without work */
	FUTEX_SITE_GO_WORLD, /* ... that waits until all others have stopped */
	FUTEX_SITE_CNT
};

struct wait_kind {
	enum wait_class cls;
	enum idle_kind idle;
	bool is_lock; /* a wake passes the lock, never work */
	bool guessed; /* from the syscall alone */
	bool shared;  /* a lock that several may have at a time, or may be: who let go last had it
		       * last, no more */
	/* of a futex: its own stack's, or that of others on the same one; RWLOCK of Go's, too */
	enum futex_site site;
};

struct classifier { /* borrowed */
	const struct names *names;
	const struct resources *resources;
	const struct map *upstreams; /* cookies of sockets on which the target is the client */
	uint16_t machine;            /* ELF e_machine of the traced host; 0: x86-64 */
};

struct wait_kind classify(const struct classifier *c, const struct task *t,
			  const struct episode *ep, const struct side *side);

/* The syscall of @ep is a futex wait: its key names a futex. */
bool classify_is_futex(const struct classifier *c, const struct episode *ep);

/* Of a wait that classify_futex() cannot tell without, once its stack has names. */
enum futex_site classify_site(const struct names *n, const struct side *side);

/* Of a goroutine's wait for a lock, by the functions on its stack: whether several may have that at
 * a time, 1 or 0; -1: no stack, or no names. */
int classify_go_lock(const struct names *n, uint64_t ustack);

/* The call says that other processes may have the futex too. */
bool classify_futex_is_across(const struct side *side);

/* Class of a futex wait by the call's arguments, and side->site. */
enum wait_class classify_futex(const struct side *side);

/* All that they tell, also of the waits on the same futex of which nothing is told. */
struct futex_kind classify_futex_kind(const struct side *side);

#endif
