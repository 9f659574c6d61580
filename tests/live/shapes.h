// SPDX-License-Identifier: Apache-2.0
/* What shapes.c can be: how a request gets from thread to thread. */
#ifndef SHAPES_H
#define SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#define STAGES 2

enum how { /* a worker hears of an item */
	   BY_PIPE,
	   BY_SIGNAL,    /* of a condition variable: nobody is woken where all are busy */
	   BY_BROADCAST, /* all that wait are woken, one gets it */
	   BY_POLLING,   /* nobody is ever woken: workers look every millisecond */
	   BY_EVENTFD,   /* a semaphore */
	   BY_FUTEX,     /* a count of their own, without a lock */
};

enum front { /* who reads requests, and who answers */
	     LOOP_AND_WORKERS,
	     LOOP_ONLY, /* workers tell the loop when they are done */
	     THREADS,   /* one each connection, which waits for the workers */
	     ACCEPTERS, /* the workers: a connection is a request, and waits to be accepted */
};

static const struct shape {
	const char *name;
	enum front front;
	enum how how;
	uint32_t workers[STAGES];
	uint32_t
		nap_us[STAGES]; /* an item takes half of it to one and a half; 0: next to nothing */
	uint32_t slow_one_in;   /* else next to nothing; 0: all are slow */
	bool lifo;
	bool monitor;    /* THREADS: one lock and one condition for all, and all are woken */
	bool batch;      /* takes all there are, works once, then tells each */
	bool own_socket; /* ACCEPTERS: each listens on one (SO_REUSEPORT); else all on one, of whom
			  * one is woken (EPOLLEXCLUSIVE) */
} shapes[] = {
	{ .name = "pipe",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_PIPE,
	  .workers = { 2 },
	  .nap_us = { 10000 } },
	{ .name = "pool",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_SIGNAL,
	  .workers = { 2 },
	  .nap_us = { 6000 } },
	{ .name = "eventfd",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_EVENTFD,
	  .workers = { 2 },
	  .nap_us = { 6000 } },
	{ .name = "futex",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_FUTEX,
	  .workers = { 2 },
	  .nap_us = { 6000 } },
	{ .name = "accepters", .front = ACCEPTERS, .workers = { 2 }, .nap_us = { 6000 } },
	{ .name = "reuseport",
	  .front = ACCEPTERS,
	  .workers = { 2 },
	  .nap_us = { 6000 },
	  .own_socket = true },
	{ .name = "lifo",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_SIGNAL,
	  .workers = { 2 },
	  .nap_us = { 6000 },
	  .lifo = true },
	{ .name = "some-slow",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_SIGNAL,
	  .workers = { 2 },
	  .nap_us = { 8000 },
	  .slow_one_in = 4 },
	{ .name = "herd",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_BROADCAST,
	  .workers = { 6 },
	  .nap_us = { 6000 } },
	{ .name = "polling",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_POLLING,
	  .workers = { 2 },
	  .nap_us = { 6000 } },
	{ .name = "batch",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_SIGNAL,
	  .workers = { 1 },
	  .nap_us = { 6000 },
	  .batch = true },
	{ .name = "executor",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_SIGNAL,
	  .workers = { 1, 3 },
	  .nap_us = { 3000 } },
	{ .name = "stages",
	  .front = LOOP_AND_WORKERS,
	  .how = BY_SIGNAL,
	  .workers = { 2, 2 },
	  .nap_us = { 3000, 4000 } },
	{ .name = "offload",
	  .front = LOOP_ONLY,
	  .how = BY_SIGNAL,
	  .workers = { 2 },
	  .nap_us = { 5000 } },
	{ .name = "helper",
	  .front = THREADS,
	  .how = BY_SIGNAL,
	  .workers = { 1 },
	  .nap_us = { 2000 } },
	{ .name = "helper-some-slow",
	  .front = THREADS,
	  .how = BY_SIGNAL,
	  .workers = { 1 },
	  .nap_us = { 4000 },
	  .slow_one_in = 4 },
	{ .name = "monitor",
	  .front = THREADS,
	  .how = BY_BROADCAST,
	  .workers = { 3 },
	  .nap_us = { 5000 },
	  .monitor = true },
	{ .name = "helper-batch",
	  .front = THREADS,
	  .how = BY_SIGNAL,
	  .workers = { 1 },
	  .nap_us = { 5000 },
	  .batch = true },
};

#endif
