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

struct wait_kind {
	enum wait_class cls;
	enum idle_kind idle;
	bool is_lock; /* a wake passes the lock, never work */
	bool guessed; /* from the syscall alone */
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

/* Class of a futex wait by the call's arguments. */
enum wait_class classify_futex(const struct side *side);

#endif
