/* SPDX-License-Identifier: Apache-2.0 */
/* demo_shop: the inside of the demo's server: a thread per connection for most causes, a worker
 * pool and an event loop for the others. */
#ifndef CC_DEMO_SHOP_H
#define CC_DEMO_SHOP_H

#include "demo_log.h"
#include "demo_net.h"

/* A call site that must read well in a stack: its own function, under its own name. */
#define DEMO_SITE __attribute__((noinline, noclone, used))

struct demo_conn {
	struct demo_shared *sh;
	int fd, cause;
	uint16_t peer_port;
	uint32_t ordinal; /* of the request being served */
	struct demo_meter meter;
	cc_ns runq_seen; /* of the thread, before the last answer: what comes after is the next
			    one's */
	cc_ns woken_ns;  /* the request had come, its thread waited for a CPU to receive it */
	int upstream_fd; /* -1: not connected yet */
	unsigned int seed;
};

/* Does the work of one request and answers it. False: the connection is to be closed. */
typedef bool demo_handler(struct demo_conn *c, const struct demo_msg *m, struct demo_req *r);

struct demo_service {
	const char *thread_name;
	demo_handler *handle;
	void (*begin)(struct demo_conn *c); /* once per connection; may be NULL */
};

/* NULL handle: not of the thread-per-connection kind. */
extern const struct demo_service demo_services[DEMO_CAUSE_CNT];

/* A thread's whole life; @arg is a struct demo_port, which lives as long as the process. */
struct demo_port {
	struct demo_shared *sh;
	int listen_fd, cause;
};
void *demo_pool_run(void *arg);
void *demo_loop_run(void *arg);

/* What every kind of server knows of a request when it has received it. */
struct demo_req demo_req_begin(const struct demo_conn *c, const struct demo_msg *m);

#endif
