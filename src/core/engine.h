/* SPDX-License-Identifier: Apache-2.0 */
/* engine: records in, requests with paths out. Pure and deterministic: the same records give the
 * same answers whether they come live, from a file or from a test. One thread at a time. */
#ifndef CC_ENGINE_H
#define CC_ENGINE_H

#include "path.h"

struct engine;

#define ENGINE_PATHS_PER_S 200 /* what a screen needs: see paths_per_s */

struct engine_opts {
	uint64_t memory_bytes; /* budget for timelines and requests; 0: 256 MiB */
	cc_ns window_ns;       /* keep finished requests this long; 0: all (analyze) */
	uint32_t paths_per_s;  /* paths worked out per second of the stream, of the slowest and of a
				* sample of the others; 0: all (analyze) */
	bool no_paths;         /* index only (bench) */
};

/* Returns 0 or -ENOMEM; caller owns *ret. */
CC_NODISCARD int engine_new(const struct engine_opts *opts, struct engine **ret);
void engine_free(struct engine *e); /* NULL is a no-op */

/* Takes in one record of @len bytes. Nothing of @rec is kept by pointer. Returns 0; -EINVAL for a
 * malformed one (counted, engine unchanged); -ENOMEM. A TICK moves the watermark and computes the
 * paths of requests that are complete before it. */
CC_NODISCARD int engine_feed(struct engine *e, const struct cc_rec *rec, size_t len);

/* The same, for streams: the record may be kept back while others come, so that what it needs is
 * fetched from memory meanwhile. It is taken in, in its turn, by the next TICK, engine_feed(),
 * engine_finish*() or engine_walk() at the latest; what is asked in between may not know it yet.
 * Returns 0, or -ENOMEM; a malformed one is counted only. */
CC_NODISCARD int engine_stream(struct engine *e, const struct cc_rec *rec, size_t len);

/* End of the stream: everything is complete up to the last record. Requests still open become
 * in-flight ones that end there; a stream without sockets gets one request per task. */
CC_NODISCARD int engine_finish(struct engine *e);

/* The end of the stream when what is asked for is a span: what thread @tid (0: every thread that
 * waited, if the stream has no sockets) did in [lo, hi), clipped to what is known of it, as
 * requests "tid:N" beside those of sockets. */
struct engine_span {
	uint32_t tid;
	cc_ns lo, hi;
};
CC_NODISCARD int engine_finish_span(struct engine *e, const struct engine_span *span);

/* The plain walk of what task @tid did in [lo, hi), as if it served no request: for a thread's span
 * and for tests. Returns 0, -EINVAL when lo >= hi, -ENOMEM; caller frees *ret. */
CC_NODISCARD int engine_walk(struct engine *e, uint32_t tid, cc_ns lo, cc_ns hi,
			     struct cc_piece **ret, size_t *ret_cnt);

/* The counters of records that found their ring full, in the order in which they are told. */
#define CC_DROPS(X)                       \
	X(CC_CNT_DROP_EPISODE, "episode") \
	X(CC_CNT_DROP_EXTRA, "extra")     \
	X(CC_CNT_DROP_REQ, "req")         \
	X(CC_CNT_DROP_TASK, "task")       \
	X(CC_CNT_DROP_SOCKOP, "sockop")   \
	X(CC_CNT_DROP_SNAP, "snap")       \
	X(CC_CNT_DROP_GO, "go")

struct engine_stats {
	uint64_t events; /* records taken in */
	uint64_t malformed, unknown_kind;
	uint64_t episodes;
	uint64_t late;         /* came later than their watermark */
	uint64_t lost_cnt;     /* folded episodes + LOSS records */
	uint64_t loss_records; /* of these, told by LOSS */
	cc_ns lost_ns;
	uint64_t clamped, wake_running, cycles;
	uint64_t suspends; /* times that the machine slept, how long: no clock here ran */
	cc_ns suspended_ns;
	uint64_t evicted;                      /* episodes and requests dropped for memory or age */
	uint64_t paths_left_out;               /* finished requests whose path was not worked out */
	uint64_t stacks_user, stacks_complete; /* episodes with a user stack; complete ones */
	uint64_t short_cnt;
	cc_ns short_ns;
	cc_ns first_ns,
		last_ns; /* of all records; first_ns: but names and tasks, if there are others */
	cc_ns watermark_ns;
	int64_t realtime_off_ns; /* realtime - monotonic, at the last TICK */
	uint64_t counter[32];    /* latest COUNTER values, by CC_CNT_* */
	uint64_t option[32];     /* OPTION values, by CC_OPT_* */
	bool has_sockets;        /* some REQ, OPEN_REQ, SOCKOP or LISTEN came */
	bool has_servers;        /* and not only of sockets on which the target is the client */
	size_t memory_bytes;     /* in use */
};

/* Records and switches that are known to be missing: what records tell, or what the kernel counted,
 * whichever is more, for these are the same losses from two sides. */
static inline uint64_t engine_lost(const struct engine_stats *st)
{
	uint64_t dropped = 0;
#define X(cnt, name) dropped += st->counter[cnt];
	CC_DROPS(X)
#undef X
	return CC_MAX(st->lost_cnt, dropped);
}
const struct engine_stats *engine_stats(const struct engine *e);

/* Requests that are shown, in order of end time; borrowed until the next feed. With
 * opts.paths_per_s they are the slowest, those going on, and a sample of the others: see weight. */
const struct cc_request *const *engine_requests(const struct engine *e, size_t *ret_cnt);
/* The request with this id, shown or not; NULL: not known, or forgotten. */
const struct cc_request *engine_request(const struct engine *e, struct cc_reqid id);

/* What is known of a connection, also when its requests were forgotten. */
struct engine_conn {
	uint16_t local_port;
	uint32_t tid; /* that received its last request; 0: none */
};
bool engine_conn(const struct engine *e, uint64_t cookie, struct engine_conn *ret);

/* Latencies of all finished requests, and those that are in no percentile, by time. */
struct latencies;
const struct latencies *engine_latencies(const struct engine *e);
const struct req_untimed *engine_untimed(const struct engine *e, size_t *ret_cnt);

/* The names and facts below are borrowed until the next feed; NULL: not known. */
struct engine_task {
	uint32_t tid, tgid;
	cc_ns start, born, dead; /* 0: not known / alive */
	const char *comm;        /* raw bytes from the kernel: sanitize at the sink */
	uint32_t flags;          /* CC_TF_* */
	/* a goroutine: tid is a handle that means nothing outside the engine */
	uint64_t goid;        /* 0: a thread */
	uint64_t start_pc;    /* its function; 0: not known */
	uint32_t last_thread; /* tid */
};
/* The task that had @tid at @at (0: latest). Returns false if none is known. */
bool engine_task(const struct engine *e, uint32_t tid, cc_ns at, struct engine_task *ret);
/* i-th known task, for the Threads screen; false beyond the last. */
bool engine_task_at(const struct engine *e, size_t i, struct engine_task *ret);

/* By which evidence: all (what paths are made of), or the lesser models that `eval` compares. */
#define ENGINE_SERVE_MODES(X)                                                        \
	X(FULL, "e3-suppress", "sockets, lineage and items; resources pass nothing") \
	X(LINEAGE, "e1-lineage", "sockets and lineage only")                         \
	X(ITEMS, "e2-sudog", "an item passes its sender's request, whatever it is")  \
	X(NAIVE, "e4-naive", "who is woken works for what the waker worked for")
#define X(id, name, help) ENGINE_SERVE_##id,
enum engine_serve { ENGINE_SERVE_MODES(X) ENGINE_SERVE_CNT };
#undef X

/* Which request a goroutine worked for right before @at, and how that is known. False: no such
 * goroutine, or nobody's. */
struct engine_served {
	struct cc_reqid id;
	uint64_t evidence; /* CC_EV_BIT() set */
	bool ambiguous;    /* it may have been the work of others too */
};
bool engine_go_served(struct engine *e, uint32_t tgid, uint64_t goid, cc_ns at,
		      enum engine_serve mode, struct engine_served *ret);

struct engine_stack {
	uint32_t tgid, flags, cnt; /* CC_ST_* */
	uint32_t gen;              /* of its process's mappings: engine_frame() */
	const uint64_t *ip;
};
bool engine_stack(const struct engine *e, uint64_t key, struct engine_stack *ret);

/* Name of a frame: text "fn+0x41", module "libc.so.6 cart.c:88" or "". False: no NAME came; then
 * module and offset come from MODULE when the address lies in one ("app", off). */
struct engine_frame {
	const char *text, *module;
	size_t text_len, module_len; /* not NUL-terminated */
	uint64_t module_off;
	uint32_t mapping; /* for engine_mapping(); 0: the address lies in none */
	bool named;
};
#define ENGINE_GEN_NOW UINT32_MAX /* for @gen: as it was told last */
bool engine_frame(const struct engine *e, uint32_t tgid, uint32_t gen, uint64_t ip,
		  struct engine_frame *ret);

/* A file as it was mapped; false: no such number. */
struct engine_mapping {
	uint64_t start, end, file_off;
	const char *path; /* not NUL-terminated, raw */
	size_t path_len;
	const uint8_t *build_id;
	uint32_t build_id_len; /* 0: not known */
};
bool engine_mapping(const struct engine *e, uint32_t mapping, struct engine_mapping *ret);

/* Resource of a piece, for people: "0x7f..c0", "cart_mutex", "10.0.0.7:5432", "fd 7 pipe". Writes
 * at most @cap bytes, NUL-terminated; returns the length. 0 or unknown: "". */
size_t engine_resource_name(const struct engine *e, uint32_t resource, char *buf, size_t cap);

/* Targets in order of their records. */
struct engine_target {
	uint32_t tgid;
	bool followed; /* explains only: its requests are no rows */
	const char *comm;
};
bool engine_target_at(const struct engine *e, size_t i, struct engine_target *ret);

/* When events were lost, in order of the records; false: no more. */
bool engine_loss_at(const struct engine *e, size_t i, cc_ns *ret_from, cc_ns *ret_to);

/* What task @tid is in right before @at. False: not known. */
struct engine_now {
	enum wait_class cls;
	cc_ns since; /* not before tracing, unless seeded */
	bool seeded;
	uint64_t ustack; /* of a wait; 0: none was taken */
};
bool engine_task_now(const struct engine *e, uint32_t tid, cc_ns at, struct engine_now *ret);

/* What task @tid was in during [lo, hi), the latest first, gaps where nothing is known. Of a
 * goroutine on a thread: what that thread was in. @fn < 0 ends it, and that is returned. */
struct engine_state {
	cc_ns start, end;
	uint8_t cls;        /* WAIT_CPU, WAIT_RUNQ, a wait's; WAIT_UNKNOWN: events were lost */
	uint8_t waker_kind; /* enum cc_waker: who ended the wait at its end; NONE: see open */
	bool open;          /* it was not over at hi */
	uint32_t waker_tid, waker_tgid; /* kind TASK and KTHREAD */
};
typedef int engine_state_fn(void *ctx, const struct engine_state *state);
CC_NODISCARD int engine_states(const struct engine *e, uint32_t tid, cc_ns lo, cc_ns hi,
			       engine_state_fn *fn, void *ctx);

/* Host text and notes (CC_NAME_HOST, CC_NAME_NOTE), NUL-terminated; NULL: no more. */
const char *engine_host(const struct engine *e);
const char *engine_note_at(const struct engine *e, size_t i);

/* Shares of a task's time over [lo, hi) by group letter in WAIT_GROUPS order, for timelines; ns. */
void engine_task_mix(const struct engine *e, uint32_t tid, cc_ns lo, cc_ns hi, cc_ns mix[9]);

#endif
