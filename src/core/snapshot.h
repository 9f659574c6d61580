/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: everything a screen or an output shows at one moment, immutable, in one allocation
 * family with its own strings. Built on the collector's side, read by one owner at a time. */
#ifndef CC_SNAPSHOT_H
#define CC_SNAPSHOT_H

#include "engine.h"
#include "path.h"

#define SNAP_PROBES 40

typedef uint32_t cc_str; /* a string of this snapshot: snapshot_str(); 0 is "" */

struct filter; /* filter.h: a parsed filter */

enum snap_sort {
	SORT_LATENCY,
	SORT_AGE,
	SORT_CONFIDENCE,
	SORT_UNEXPLAINED,
	SORT_DOMINANT,
	SORT_CPU, /* shares of latency, as the columns have them */
	SORT_RUNQ,
};

/* ns by group of a class (WAIT_GROUPS), as parts of a million of @latency. */
uint64_t snap_group_share(const cc_ns class_ns[WAIT_CLASS_CNT], char group, cc_ns latency);
enum snap_group { GROUP_CLASS, GROUP_SITE, GROUP_RESOURCE, GROUP_WAKER, GROUP_HOLDER };
#define SNAP_GROUPS (GROUP_HOLDER + 1)

struct cc_query {                    /* what the user looks at; all zero: the default view */
	cc_ns view_ns;               /* window ends here; 0: at the watermark */
	cc_ns window_ns;             /* 0: all that is kept */
	const struct filter *filter; /* NULL: none; borrowed for the call */
	const char *status;          /* for runtime.status; NULL: none; borrowed for the call */
	enum snap_sort sort;
	bool ascending;
	enum snap_group group;
	bool root_causes;              /* waits: by the deepest partition, not depth 0 */
	uint32_t max_rows;             /* 0: 500 */
	struct cc_reqid selected;      /* kept among the rows when it is still known */
	struct cc_reqid also;          /* the same */
	const struct cc_request *span; /* a row besides these, the last one; borrowed. NULL: none */
	struct cc_reqid only;          /* nothing but this request (request_is()); kind NONE: all */
	uint8_t min_confidence;        /* pieces below it count as unknown in waits */
	bool all_in_flight;  /* rows of all requests in flight, not only of those beyond the p99 */
	int32_t tz_off_s;    /* the user's zone: local time - UTC, for at= in the filter */
	uint32_t max_pieces; /* of all rows together; 0: 65536 */
	uint32_t max_of_request; /* of each row, but depth 0 always; 0: as many as there are */
	uint32_t small_part;     /* pieces shorter than this part of their request are counted, and
				  * only those that speak for a wait are there; 0: all are */
	bool by_port;            /* ports[] too: one slow request of each is among the rows */
	bool lines;              /* lines[] and states[] too, of the time of the rows */
	bool slow_tables;        /* slow_waits[] too: each costs as much as waits[] */
};

struct snap_task {
	uint32_t tid, tgid; /* of a goroutine: the thread it was on; 0: none */
	cc_str comm;        /* sanitized; "" not known. Of a goroutine: its function */
	uint64_t goid;      /* 0: a thread */
};

struct snap_target {
	struct snap_task task;
	bool followed; /* explains only */
};

struct snap_stack {
	uint32_t first, cnt; /* in frames[] */
	uint32_t flags;      /* CC_ST_* */
};
struct snap_frame {
	cc_str text;   /* "cart_add+0x41" or "app+0x1234" */
	cc_str module; /* "libc.so.6", "app cart.c:88", "[k]" */
	uint64_t ip;
	uint32_t mapping; /* 1 + index in mappings[]; 0: none */
	bool inlined;     /* into the frame after it, which has the same ip */
};
struct snap_mapping { /* a file as it was mapped */
	uint64_t start, end, file_off;
	cc_str path;
	cc_str build_id; /* hex; "" not known */
};

/* A piece, with everything a reader needs already looked up. */
struct snap_piece {
	struct cc_piece p;
	struct snap_task task, waker, holder, occupant, last;
	cc_str site; /* the innermost user frame that names the place; "" none */
	cc_str waker_site;
	cc_str resource;
	cc_str for_request, by_request;                    /* ids as text */
	uint32_t stack, kstack, waker_stack, waker_kstack; /* 1 + index in stacks[]; 0: none */
};

struct snap_dominant {
	uint8_t cls; /* enum wait_class */
	cc_ns ns;
	double share; /* of latency */
	cc_str site, resource;
	uint32_t piece;   /* index in the request's pieces: it speaks for the wait */
	cc_ns culprit_ns; /* of ns: the part of whom that piece names */
};

struct snap_request {
	struct cc_reqid id;
	cc_str id_text;
	enum cc_req_state state;
	struct cc_rec_req rec;
	cc_ns start, end, latency_ns;
	struct snap_task task, recv_task;
	cc_str peer, up_peer; /* "10.0.0.7:51122", "unix", "" */
	cc_str up_hint;       /* one vote alone says that it called there: a guess, no answer */
	cc_ns path_sum_ns, unexplained_ns, ambiguous_ns;
	cc_ns class_ns[WAIT_CLASS_CNT];
	uint8_t confidence;
	bool path_ok, lost_inside;
	struct snap_dominant dominant, root;
	struct snap_task waker, holder;  /* of the dominant wait */
	cc_str waker_text, holder_text;  /* for the two columns: "worker/7", "softirq", "-" */
	cc_str verdict;                  /* one sentence */
	uint32_t first_piece, piece_cnt; /* in pieces[] */
	uint32_t pieces_left_out; /* of the deepest levels, or all: see cc_query.max_pieces */
	uint32_t pieces_small;    /* counted only: see cc_query.small_part */
};

struct snap_wait { /* one row of Waits */
	uint8_t cls;
	cc_str site, resource, waker, holder;
	cc_ns total_ns, p50_ns, p99_ns;
	uint32_t requests;
	double share; /* of the latency of the requests counted */
	uint8_t confidence;
	cc_ns what_if_ns; /* at most this much less, summed, if this wait were gone: less than all
			   * of it where others that were begun with it took about as long */
	uint32_t herd;    /* the most that one wake woke from the same thing; 0: one each */
};
struct snap_wait_table {
	const struct snap_wait *rows; /* the largest first */
	uint32_t cnt;
};
struct snap_edge { /* who waited for whom, over all paths */
	cc_str from, to;
	uint8_t cls;    /* of its longest wait */
	cc_ns total_ns; /* with what others that waited for @from waited for it (wPerf) */
	cc_ns own_ns;   /* of it, in waits of requests themselves */
	cc_ns longest_ns;
	uint32_t waits;
};
struct snap_wait_group { /* tasks that all wait for each other, or one that is only waited for */
	uint32_t first, cnt; /* in wait_members[] */
	cc_ns inside_ns;     /* they waited for each other */
	cc_ns waited_ns;     /* others waited for them */
	cc_ns outside_ns; /* they waited for others; 0: a knot, or a sink: the bottleneck is here */
};
struct snap_shared { /* whom or what several requests waited for */
	cc_str to;
	uint32_t requests;
	cc_ns total_ns;
	double entropy; /* how evenly it is theirs: 1 all the same, 0 all of it one's */
};
struct snap_blame {
	cc_str victim, culprit;
	uint8_t cls;
	cc_ns total_ns;
};
struct snap_slow_typical { /* class by class, mean ns per request */
	uint8_t cls;
	cc_ns slow_ns, typical_ns;
};
struct snap_port {     /* requests by the local port they came to */
	uint16_t port; /* 0: all others (unix sockets) */
	cc_str kind;   /* "nginx:8080" */
	uint32_t requests;
	cc_ns p50_ns, p99_ns;
	struct cc_reqid slow; /* the slowest of the kind that most of its slow ones are of */
};
struct snap_loss { /* events were lost in [from, to] */
	cc_ns from, to;
};
struct snap_outside { /* a task outside that had the CPU while threads of targets queued for it */
	struct snap_task task;
	cc_ns delay_ns; /* of finished requests of the window */
	uint32_t requests, threads;
};
struct snap_probe { /* a program in the kernel */
	char name[32], place[40];
	bool attached;
	uint64_t runs, ns, skipped; /* runs and ns are 0 unless the kernel counts them */
};
struct snap_unwind { /* what became of stacks: see resolver.h */
	uint64_t user, user_full, cut, no_map, no_cfi, bad, code_changed, guessed, unclaimed, procs,
		bytes;
	bool known, kernel_hidden;
};
struct snap_thread { /* or a goroutine */
	struct snap_task task;
	uint32_t id;    /* the engine's number of it: engine_task() */
	uint32_t flags; /* CC_TF_* */
	uint32_t requests;
	uint8_t now_cls;   /* what it is in at the end of the window: enum wait_class */
	cc_ns now_ns;      /* for so long; 0: not known */
	bool now_seeded;   /* began before tracing did */
	cc_str now_site;   /* where it waits; "" not known */
	cc_ns mix[9];      /* by WAIT_GROUPS, over the window */
	uint8_t strip[60]; /* index in WAIT_GROUPS + 1 of what filled most of that slice; 0 none */
};

struct snap_state { /* what a task was in, with cc_query.lines */
	cc_ns start, end;
	uint8_t cls;            /* WAIT_CPU, WAIT_RUNQ, a wait's; WAIT_UNKNOWN: lost */
	uint8_t waker_kind;     /* enum cc_waker: of a wait that ended at its end */
	bool open;              /* not over at the end of what is shown */
	struct snap_task waker; /* kind TASK and KTHREAD */
};
struct snap_line { /* a traced task's time; gaps are not known */
	struct snap_task task;
	uint32_t first_state, state_cnt; /* in states[], by time */
};

struct snapshot {
	cc_ns now_ns, window_ns; /* window actually covered: [now - window, now) */
	cc_ns first_ns, last_ns; /* of the stream */
	int64_t realtime_off_ns;
	struct engine_stats stats;
	struct snap_task target;
	uint32_t target_cnt;   /* of targets[] */
	uint32_t followed_cnt; /* of these */
	const struct snap_target *targets;
	cc_str host, filter_text;
	uint32_t note_cnt;
	const cc_str *notes;

	uint32_t total_cnt; /* rows: what finished in the window, before the filter */
	uint32_t match_cnt; /* after it */
	uint32_t in_flight_cnt;
	uint32_t stream_cnt; /* of total_cnt, kept out of percentiles */
	uint32_t apart_cnt;  /* of total_cnt, no single requests: CC_RQ_APART */
	cc_ns p50_ns, p95_ns, p99_ns, max_ns;
	double rate;          /* finished requests per second */
	double conf_share[3]; /* H, M, L of finished requests, 0..1 */
	cc_ns p99_line[60];   /* p99 of equal slices of the window, oldest first; 0: none */
	cc_ns p99_mix[9];     /* ns by WAIT_GROUPS in requests >= p95: "where p99 went" */
	cc_str verdict;       /* for the window, slow versus typical */

	uint32_t request_cnt;
	const struct snap_request *requests; /* rows, in the query's order */
	bool has_span;                       /* the last row is the query's span: no request */
	uint32_t piece_cnt;
	const struct snap_piece *pieces;
	uint32_t stack_cnt, frame_cnt;
	const struct snap_stack *stacks;
	const struct snap_frame *frames;
	uint32_t mapping_cnt; /* of those in which frames lie */
	const struct snap_mapping *mappings;
	uint32_t line_cnt, state_cnt; /* with cc_query.lines */
	const struct snap_line *lines;
	const struct snap_state *states;
	uint32_t wait_cnt, blame_cnt, slow_cnt, thread_cnt, port_cnt, loss_cnt, outside_cnt;
	/* of threads: all of the window, also those that no row is for; of goroutines: alive */
	uint32_t thread_all, goroutine_all;
	const struct snap_wait *waits;
	const struct snap_blame *blame;
	uint32_t edge_cnt, wait_group_cnt, wait_member_cnt, shared_cnt;
	const struct snap_edge *edges;             /* the heaviest first */
	const struct snap_wait_group *wait_groups; /* knots and sinks first */
	const cc_str *wait_members;
	const struct snap_shared *shared; /* the most waited for first */
	uint32_t false_wakes;             /* woken, looked, waited for the same thing again */
	const struct snap_slow_typical *slow;
	/* with cc_query.slow_tables: where the time of the slow requests (the p95 and over,
	 * whatever the filter takes) went, by what was felt [0] and by root cause [1] */
	bool has_slow_tables;
	uint32_t slow_requests; /* that these are of */
	struct snap_wait_table slow_waits[2][SNAP_GROUPS];
	const struct snap_thread *threads;
	const struct snap_port *ports;      /* the largest p99 first */
	const struct snap_loss *losses;     /* by time; close ones are one */
	const struct snap_outside *outside; /* the largest delay first */

	const char *strings; /* use snapshot_str() */
	uint32_t string_bytes;

	/* Of this process, not of the trace: outside the live/replay comparison. */
	struct {
		double cpu_share;
		uint64_t rss_bytes;
		double ring_fill; /* 0..1 */
		cc_ns built_ns;   /* when, CLOCK_MONOTONIC */
		cc_ns lag_ns;     /* the stream's end is so far behind the clock; 0: it keeps up */
		cc_ns slowed_ns;  /* refreshes come only this often: the host is busy; 0: no */
		cc_ns newest_ns;  /* live: how far the stream is; now_ns is before it in the past */
		cc_ns kept_from_ns; /* since then it is in memory; 0: it is not */
		uint64_t kept_bytes;
		struct snap_unwind unwind;
		uint32_t probe_cnt;
		struct snap_probe probe[SNAP_PROBES];
		bool live; /* not of a file: only then JSON tells what tracing costs */
		bool paused, ended, target_gone;
		bool filling; /* a first look, from a part of the window: the rest is being read */
		char listens[64]; /* where the targets do, while no request came: ":8080, :8443" */
		cc_str status;    /* "pid 4242 exited 12:06:02" or "" */
	} runtime;
};

/* Builds what @q asks for. Returns 0 or -ENOMEM; caller owns *ret. */
CC_NODISCARD int snapshot_build(const struct engine *e, const struct cc_query *q,
				struct snapshot **ret);
void snapshot_free(struct snapshot *s); /* NULL is a no-op */

/* A string of @s, never NULL; "" for anything out of range. Already sanitized. */
const char *snapshot_str(const struct snapshot *s, cc_str str);

/* Finished requests in the window: of all that is told like one, those that are. */
static inline uint32_t snapshot_requests(const struct snapshot *s)
{
	return s->total_cnt - s->apart_cnt;
}

/* Row with this id, or NULL. */
const struct snap_request *snapshot_find(const struct snapshot *s, struct cc_reqid id);

#endif
