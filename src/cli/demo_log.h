/* SPDX-License-Identifier: Apache-2.0 */
/* demo_log: what the demo's own processes say happened, in memory they share. It is the truth that
 * criticast's answers are held against, so nothing of criticast's output ever goes in here. */
#ifndef CC_DEMO_LOG_H
#define CC_DEMO_LOG_H

#include "base.h"
#include "demo_journal.h"

#include <stdatomic.h>
#include <sys/types.h>

/* id, key (option, rows), what makes it slow, for people. In the order the load drives them. */
#define DEMO_CAUSES(X)                                                \
	X(LOCK, "lock", "lock held by a request that syncs to disk")  \
	X(BARGE, "barging", "mutex shared by 16 threads")             \
	X(POOL, "pool", "worker pool too small")                      \
	X(UPSTREAM, "upstream", "slow upstream process")              \
	X(FSYNC, "fsync", "sync to disk in the handler")              \
	X(SLEEP, "sleep", "handler sleeps")                           \
	X(CPU, "cpu", "handler computes")                             \
	X(HOG, "hog", "CPU hog pinned beside it")                     \
	X(HOL, "event-loop", "event loop blocked by another request") \
	X(CLIENT, "slow-client", "client reads slowly")
#define X(id, key, title) DEMO_##id,
enum demo_cause { DEMO_CAUSES(X) DEMO_CAUSE_CNT };
#undef X

const char *demo_cause_key(unsigned int cause);   /* "?" beyond the table */
const char *demo_cause_title(unsigned int cause); /* "" beyond the table */

struct demo_shared;
/* Whether this machine can show @cause: those that wait for a disk need one. */
bool demo_cause_here(const struct demo_shared *sh, unsigned int cause);

/* One request as its server saw it. Times are CLOCK_MONOTONIC ns. */
struct demo_req {
	atomic_bool ready;          /* all fields are written */
	uint8_t cause;              /* enum demo_cause */
	bool judged;                /* shows the cause; false: it makes others slow */
	uint16_t local_port;        /* of the server */
	uint16_t peer_port;         /* of the client */
	uint32_t ordinal;           /* on its connection, from 1 */
	uint32_t tid;               /* that sent the answer */
	cc_ns sent;                 /* the client's send began */
	cc_ns start, end;           /* received; answered */
	cc_ns wait_start, wait_end; /* the span in which the cause worked */
	cc_ns wait_ns; /* the cause's: by its kind, time off the CPU, on it, or queued for it */
	cc_ns wait_runq_ns; /* in that span its thread was queued for a CPU, by the kernel's account
			     */
	/* of its thread from start to end, the cause's own included; of an event loop that was busy
	   for another, while this one waited for it */
	cc_ns cpu_ns, runq_ns;
};

/* Somebody had what others wanted: a lock, a worker, the event loop, the CPU. */
struct demo_hold {
	atomic_bool ready;
	uint8_t cause;
	uint16_t peer_port; /* of the request served meanwhile; 0: none */
	uint32_t ordinal;
	uint32_t tid;
	cc_ns start, end;
	cc_ns off_ns, cpu_ns, runq_ns; /* of it: blocked, running, waiting for a CPU */
};

#define DEMO_REQS_MAX (1u << 16)
#define DEMO_HOLDS_MAX (1u << 18)

struct demo_shared {
	uint16_t port[DEMO_CAUSE_CNT]; /* where the server listens, 127.0.0.1 */
	uint16_t upstream_port;
	int cpu; /* that the hog and its victim are pinned to */
	struct demo_journal journal;
	atomic_int server_pid, upstream_pid, load_pid, hog_pid;
	atomic_bool started;   /* the pids above are set */
	atomic_bool go;        /* the load may begin */
	atomic_bool load_done; /* one round of all causes is over */
	atomic_bool hog_on;
	atomic_int driving;            /* enum demo_cause, for progress */
	atomic_uint req_cnt, hold_cnt; /* taken; above the maximum: lost */
	struct demo_req req[DEMO_REQS_MAX];
	struct demo_hold hold[DEMO_HOLDS_MAX];
};

/* Appends; a full log counts on, and the check then refuses to judge. */
void demo_log_req(struct demo_shared *sh, const struct demo_req *r);
void demo_log_hold(struct demo_shared *sh, const struct demo_hold *h);

/* A thread's clock, CPU time and time spent runnable (/proc/thread-self/schedstat: the kernel's own
 * account, exact at switch-in). */
struct demo_usage {
	cc_ns now, cpu, runq;
};
struct demo_meter {
	int fd; /* of the thread that opened it; -1: this kernel does not tell, runq stays 0 */
};
void demo_meter_open(struct demo_meter *m);
void demo_meter_close(struct demo_meter *m);
struct demo_usage demo_meter_read(const struct demo_meter *m);

/* ns between @a and @b neither running nor runnable. */
cc_ns demo_off_ns(const struct demo_usage *a, const struct demo_usage *b);

cc_ns demo_now(void);
void demo_sleep(cc_ns ns);
#endif
