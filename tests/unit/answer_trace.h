/* SPDX-License-Identifier: Apache-2.0 */
/* answer_trace: a small trace written by hand, in the time units of DESIGN's known answers, and
 * what the engine answers to it as one line of text: "0:cpu[0,2) 1:queued(Q)[2,5)", the deepest
 * partition, neighbours that say the same joined, T0 = 0. */
#ifndef ANSWER_TRACE_H
#define ANSWER_TRACE_H

#include "engine.h"

enum { T0, T1, T2, T3, T4, T5, T_CNT = 16 };
enum { Q = 1, R = 2, P = 3 }; /* requests: ordinal 1 on socket SOCKET() */
#define SOCKET(id) (0x10 + (uint64_t)(id))

#define TGID 100u
#define TID(t) (TGID + (uint32_t)(t))
#define BASE 1000000
#define UNIT 1000
#define AT(x) ((cc_ns)(BASE + UNIT * (int64_t)(x)))
#define NEVER (-BASE / UNIT) /* AT() is 0 */

/* System calls of x86-64, which the trace says it is from. */
enum {
	NR_UNKNOWN = -2,
	NR_NONE = -1,
	NR_POLL = 7,
	NR_NANOSLEEP = 35,
	NR_RECVFROM = 45,
	NR_FSYNC = 74,
	NR_FUTEX = 202,
	NR_EPOLL_WAIT = 232,
};

struct rec_list {
	size_t cnt;
	struct cc_rec *rec[512]; /* owned */
};

struct trace {
	struct engine *e; /* made by the first question */
	struct rec_list *recs;
	uint32_t seq[T_CNT];
	uint32_t tgid[T_CNT]; /* 0: TGID */
};

struct trace trace_new(void);
void trace_done(struct trace *t);
/* Any record; its size is filled in. */
void trace_put(struct trace *t, const void *rec, size_t len);

/* States at attach: on the CPU since, off since. */
void trace_on(struct trace *t, int tid, int since);
void trace_off(struct trace *t, int tid, int nr, int since);
/* States at the stop. */
void trace_stop_on(struct trace *t, int tid, int at);
void trace_stop_off(struct trace *t, int tid, int nr, int since, int at);
void trace_stop_off_key(struct trace *t, int tid, int nr, uint32_t key, int since, int at);

/* Off over [out, in), woken at @wake by @waker in process context; wake NEVER: no wake seen. */
void trace_wait(struct trace *t, int tid, int nr, int out, int wake, int in, int waker);
/* The same, on again at once, woken in context @ctx (CC_CTX_*) on top of @current. */
void trace_irq_wait(struct trace *t, int tid, int nr, int out, int wake, int ctx, int current);
/* A futex lock (op FUTEX_WAIT, val 2) or condition variable (FUTEX_WAIT_BITSET), on at once. */
void trace_lock_wait(struct trace *t, int tid, uint32_t key, int out, int wake, int waker);
void trace_cond_wait(struct trace *t, int tid, uint32_t key, int out, int wake, int waker);
/* As trace_lock_wait, on at @in, with the owner word (0: not known). */
void trace_owned_wait(struct trace *t, int tid, uint32_t key, int out, int wake, int in, int waker,
		      int owner);
/* Runnable over [out, in) on @cpu. */
void trace_episode_cpu(struct trace *t, int tid, int out, int in, uint16_t cpu);
/* As trace_wait to an interrupt, with @cnt episodes of @ns units in all lost before it. */
void trace_lost_wait(struct trace *t, int tid, int nr, int out, int in, unsigned int cnt, int ns);
/* Any EPISODE or EXTRA, for what the above cannot say; seq is filled in. */
void trace_episode(struct trace *t, int tid, struct cc_rec_episode ep);
void trace_extra(struct trace *t, int tid, struct cc_rec_extra ex);

void trace_fork(struct trace *t, int tid, int parent, int forked, int in);
void trace_exit(struct trace *t, int tid, int at);
void trace_exec(struct trace *t, int tid, int old_tid, int at);
void trace_wake(struct trace *t, int tid, int at, int waker);
/* A refresh with its TICK: @tid off since @out, woken at @wake, not on yet. */
void trace_refresh_woken(struct trace *t, int tid, int nr, int out, int wake, int at);

/* A message over a loopback connection: @from sends at @sent, it reaches @to at @arrived. */
void trace_message(struct trace *t, int from, int sent, int to, int arrived, unsigned int conn);
/* The wait of the receiver of such a message, ended in the sender's softirq. */
void trace_recv_wait(struct trace *t, int tid, int out, int in, unsigned int conn);

/* A request that came and went; more of it through the record. */
struct cc_rec_req trace_req(int id, int arrival, int recv, int recv_tid, int sent, int send_tid);
void trace_put_req(struct trace *t, struct cc_rec_req r);
void trace_request(struct trace *t, int id, int arrival, int recv, int recv_tid, int sent,
		   int send_tid);
void trace_sockop(struct trace *t, struct cc_rec_sockop op);
/* A call to an upstream for request @id by @tid, linked by both votes. */
void trace_upstream(struct trace *t, int id, int tid, int sent, int received);
/* The same on a connection of these ends. */
void trace_upstream_at(struct trace *t, int id, int tid, int sent, int received,
		       uint16_t local_port, struct cc_addr peer);

/* Ask. Without _keep the trace ends with the answer. Both also check that all pieces partition
 * their parents and all of [lo, hi). */
void assert_walk(struct trace *t, int tid, int lo, int hi, const char *want);
void assert_walk_keep(struct trace *t, int tid, int lo, int hi, const char *want);
void assert_path(struct trace *t, int id, const char *want);
void assert_path_keep(struct trace *t, int id, const char *want);

/* The engine, with all records taken in. */
struct engine *trace_engine(struct trace *t);

/* First piece of that class in a request's path, or in a walk (static until the next call). */
const struct cc_piece *trace_piece(struct trace *t, int id, enum wait_class cls);
struct cc_piece trace_walk_piece(struct trace *t, int tid, int lo, int hi, enum wait_class cls);

#endif
