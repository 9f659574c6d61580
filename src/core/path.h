/* SPDX-License-Identifier: Apache-2.0 */
/* path: shapes of what the engine finds out: requests and the pieces of their time. Data only. */
#ifndef CC_PATH_H
#define CC_PATH_H

#include "base.h"
#include "event.h" /* struct cc_addr, CC_RQ_*, CC_CTX_* */
#include "wait_class.h"

/* "<cookie hex>#<ordinal>", or "tid:N" where the trace knows no sockets. */
enum cc_reqid_kind { CC_REQID_NONE = 0, CC_REQID_SOCK, CC_REQID_TID, CC_REQID_GOID };

struct cc_reqid {
	uint64_t id;      /* socket cookie, tid or goid */
	uint32_t ordinal; /* SOCK: from 1 on the connection; else 0 */
	uint32_t kind;    /* enum cc_reqid_kind */
};

static inline bool cc_reqid_eq(struct cc_reqid a, struct cc_reqid b)
{
	return a.id == b.id && a.ordinal == b.ordinal && a.kind == b.kind;
}

/* How a wait ended. Names in JSON are the lower-case words. */
#define CC_ENDED(X)           \
	X(NONE, "")           \
	X(WAKE, "wake")       \
	X(TIMEOUT, "timeout") \
	X(SIGNAL, "signal")   \
	X(RAN, "ran")         \
	X(OPEN, "open")       \
	X(LOST, "lost")
#define X(id, name) CC_ENDED_##id,
enum cc_ended { CC_ENDED(X) CC_ENDED_CNT };
#undef X

/* Who gave the wake. KTHREAD is a task too, but a kernel one. */
#define CC_WAKERS(X)          \
	X(NONE, "")           \
	X(TASK, "task")       \
	X(KTHREAD, "kthread") \
	X(SOFTIRQ, "softirq") \
	X(HARDIRQ, "hardirq") \
	X(TIMER, "timer")     \
	X(IDLE, "irq")        \
	X(UNKNOWN, "unknown") \
	X(NETPOLL, "netpoll")
#define X(id, name) CC_WAKER_##id,
enum cc_waker { CC_WAKERS(X) CC_WAKER_CNT };
#undef X

/* Evidence behind a piece, each with the rate (0..100) at which such pieces are right. A piece has
 * the lowest of its evidence. id, rate, text for the Confidence screen and JSON "reasons".
 * The rates are the only numbers: they start at DESIGN's and are rewritten by calibration. */
#define CC_EVIDENCE(X)                                                                            \
	X(SCHED, 98, "scheduler events of this task, none lost")                                  \
	X(SOCKET, 98, "bounded by this request's own socket operations")                          \
	X(LINEAGE, 95, "task created by a task that served this request")                         \
	X(SAME_THREAD, 98, "received and sent by this thread")                                    \
	X(WAKER_TASK, 98, "the waker is a task in process context")                               \
	X(WAKER_IRQ, 75, "woken from an interrupt: what it was for is known by class only")       \
	X(WAKER_NONE, 60, "no wake was seen for this wait")                                       \
	X(WAKER_UNTRACED, 75, "the waker is outside the traced processes")                        \
	X(HOLDER_CUT, 98, "holder known by the wake that released the lock")                      \
	X(HOLDER_OWNER, 98, "holder confirmed by the lock's owner word")                          \
	X(HOLDER_CONFLICT, 0, "owner word and releasing wake name different tasks")               \
	X(HANDOFF_LOCK, 75, "the lock was passed to this waiter, which did not run yet")          \
	X(INFERRED, 98, "work handed over: inferred from who woke whom")                          \
	X(QUEUE_INFERRED, 98, "no hand-over seen: it lay queued until its thread was free")       \
	X(SLICES, 75, "a wait that timed out and began anew, until this one ended it")            \
	X(OCCUPANT, 95, "the task that held the CPU longest meanwhile")                           \
	X(OCCUPANT_PART, 75, "several had the CPU meanwhile: the longest of those known")         \
	X(MIGRATED, 75, "moved to another CPU while queued")                                      \
	X(CLASS_GUESSED, 75, "class from the syscall alone")                                      \
	X(VOTES2, 98, "upstream linked by its send and by its reply")                             \
	X(VOTES1, 0, "upstream linked one way only")                                              \
	X(LOOPBACK, 95, "sender known by the mirror connection")                                  \
	X(LOST, 0, "events of this task were lost here")                                          \
	X(EXECUTOR, 0, "one waker for many requests: cannot tell whose work it was")              \
	X(CYCLE, 0, "tasks wait for each other: one edge must be wrong")                          \
	X(NO_DATA, 0, "no events for this task here")                                             \
	X(NO_IDENTITY, 0, "not known which task worked for this request")                         \
	X(OPEN, 85, "still going on, or cut by the end of the interval")                          \
	X(SEEDED, 75, "began before tracing: start known to about 40 us")                         \
	X(SHORT, 95, "short waits inside are summed, not shown")                                  \
	X(STACKLESS, 98, "no stack was taken")                                                    \
	X(GO_ITEM, 95, "this goroutine received its item, seen exactly")                          \
	X(GO_PEEK, 75, "its item lay at the head of the channel's buffer")                        \
	X(GO_SELECT, 0, "woken without an item: whose work that passed is not known")             \
	X(GO_SHARED, 0, "one goroutine works for many requests at a time")                        \
	X(GO_OFF, 0, "the goroutine was on no thread: its waits are not traced")                  \
	X(GO_RUNTIME, 95, "ended by the network poller or a timer of the Go runtime")             \
	X(GO_HANDLER, 95, "the life of a handler's goroutine")                                    \
	X(WAKER_IMPORT, 60, "the imported trace does not tell a waker from whom it interrupted")  \
	X(NAGLE, 75, "about 40 ms: maybe a small write, held back until one is acknowledged")     \
	X(SUSPENDED, 75, "the machine slept meanwhile: its clock stood still")                    \
	X(HERD, 80, "woken with others: who of them it was for, what they did next tells")        \
	X(QUEUE_UNFED, 75, "no hand-over seen, nor who gives its thread work: it lay queued")     \
	X(TOGETHER, 0, "maybe worked on together with the one that was over right before it")     \
	X(ELSEWHERE, 0, "its thread was free, or is fed by another: some other task had it")      \
	X(WAKE_MISSED, 60, "events of others were lost meanwhile: a wake may be missing")         \
	X(BY_PROXY, 75,                                                                           \
	  "received or sent by a thread of io_uring, for this one: its ring's owner")             \
	X(ONLY_WAY, 75, "the only way to give each of several requests its own upstream call")    \
	X(LATE_ONLY_ONE, 95,                                                                      \
	  "was read before tracing began: no other thread of its process ran since it came")      \
	X(LATE_SOON, 75,                                                                          \
	  "was read before tracing began: this thread alone went to sleep right after it came")   \
	X(LATE_SENT, 75,                                                                          \
	  "was read before tracing began: this thread did nothing else before it answered")       \
	X(LATE_LEFT, 43, "was read before tracing began: this thread alone was at work since")    \
	X(LATE_MANY, 0, "was read before tracing began: which thread has which cannot be told")   \
	X(LATE_NONE, 0, "was read before tracing began: no thread seems to have it")              \
	X(LATE_SHARED, 0, "was read before tracing began: several processes have its connection") \
	X(READER, 75, "lies unread: this thread reads requests there, by all that is known")      \
	X(LET_GO_LAST, 89, "who let the lock go last: others may have had it with it or before")  \
	X(IN_TURN, 89, "it is taken in turn: who ended this had it since it was let go before")   \
	X(APART, 89,                                                                              \
	  "a lock of several processes, not all at this address: a holder may be missing")        \
	X(PARTS, 60,                                                                              \
	  "sent in parts, its thread was free in between: what came later may be a push")         \
	X(AT_ONCE, 75,                                                                            \
	  "answered in the turn in which that reply was read, as this process always does")       \
	X(READ_PARTS, 75,                                                                         \
	  "read in parts: what came first may have been a message nothing answers")               \
	X(AGAIN, 75, "woken, it looked and waited for the same again: maybe not for this wake")
#define X(id, rate, text) CC_EV_##id,
enum cc_evidence { CC_EVIDENCE(X) CC_EV_CNT };
#undef X
_Static_assert(CC_EV_CNT <= 64, "a piece's evidence is one 64-bit set");
#define CC_EV_BIT(id) (1ull << CC_EV_##id)

enum {                            /* cc_piece.flags */
       CC_PC_OPEN = 1 << 0,       /* the wait was not over at the piece's end */
       CC_PC_NOT_TRACED = 1 << 1, /* the waker (or holder) is outside: explained no further */
       CC_PC_NESTED = 1 << 2,     /* deeper pieces follow that explain this one */
       CC_PC_MIGRATED = 1 << 3,
       CC_PC_IDLE_SIBLING = 1 << 4, /* SOCKQ: another worker was idle meanwhile */
       CC_PC_SEEDED = 1 << 5,
};

/* One piece of time on one task. Depth-0 pieces of a request partition [start, end) of it; the
 * pieces of depth d+1 that follow a piece of depth d with CC_PC_NESTED partition that one. */
struct cc_piece {
	cc_ns start, end; /* [start, end) */
	uint32_t tid;     /* whose time */
	uint32_t tgid;
	uint64_t goid; /* 0: a thread */
	uint16_t depth;
	uint8_t cls;                          /* enum wait_class */
	uint8_t ended;                        /* enum cc_ended */
	uint8_t waker_kind;                   /* enum cc_waker */
	uint8_t confidence;                   /* 0..100, from evidence */
	uint16_t flags;                       /* CC_PC_* */
	uint32_t waker_tid, waker_tgid;       /* ended the wait; 0: none or not a task */
	uint32_t holder_tid, holder_tgid;     /* had the resource meanwhile; 0: not known */
	uint32_t last_tid;                    /* still waiting: who last ended such a wait on the
					       * same resource, no more than a hint; 0: nobody */
	uint32_t occupant_tid, occupant_tgid; /* RUNQ: had the CPU longest */
	uint32_t herd; /* so many were woken with it from the same thing, itself too; 0: it alone */
	cc_ns occupant_ns;
	uint32_t resource;       /* index from engine_resource_name(); 0: none */
	uint32_t srtt_us;        /* of the TCP connection waited on: round trip; 0: not known ... */
	uint32_t retrans;        /* ... and packets that had to be sent again meanwhile */
	uint32_t on_tid;         /* of a goroutine: the thread it ran on; 0: none */
	uint64_t evidence;       /* CC_EV_BIT() set */
	uint64_t ustack, kstack; /* STACK keys of the wait, or of a sample on the CPU; 0: none */
	uint64_t waker_ustack, waker_kstack;
	cc_ns short_ns;    /* CPU: waits below --min-block inside */
	cc_ns sibling_end; /* depth 0: others begun with whom it waited for were busy until then: it
			    * would have lasted so long anyway; 0: none */
	struct cc_reqid
		for_request;        /* the request that tid served here, when not this one: blame */
	struct cc_reqid by_request; /* HOL, QUEUED: the request that was in the way */
};

/* The stack that tells where a wait was. That of a CPU piece is of a sample, one moment of it: it
 * does not tell the pieces of a request's CPU time apart. */
static inline uint64_t piece_site(const struct cc_piece *p)
{
	return p->cls == WAIT_CPU ? 0 : p->ustack;
}

enum cc_req_state { CC_RQS_DONE, CC_RQS_IN_FLIGHT, CC_RQS_RESUMED };

/* Dominant wait: the largest sum of pieces of one (class, site, resource). */
struct cc_dominant {
	cc_ns ns;
	cc_ns culprit_ns; /* of ns: that culprit's part */
	uint64_t ustack, kstack;
	uint32_t piece; /* index in path[]: the longest piece of its largest culprit, who speaks for
			   it */
	uint32_t resource;
	uint8_t cls;
};

/* What a path adds up to. */
struct cc_found {
	cc_ns class_ns[WAIT_CLASS_CNT];    /* depth 0 */
	struct cc_dominant dominant, root; /* first wait; beneath it */
};

/* What is told like a request and is none, or several at once: neither counted as one nor in
 * percentiles. A stream is one, without an end: counted, but in no percentile. */
#define CC_RQ_APART \
	(CC_RQ_SETUP | CC_RQ_UNSOLICITED | CC_RQ_BUSY | CC_RQ_FAREWELL | CC_RQ_CONCURRENT)
#define CC_RQ_UNTIMED (CC_RQ_APART | CC_RQ_STREAM)

struct req_untimed {
	cc_ns end;
	bool apart; /* CC_RQ_APART; else a stream */
};

/* What such a one is called: "stream", "busy period" ...; "" for one that is a request. */
const char *request_label(const struct cc_rec_req *q);

/* A request with its path, as the engine keeps it. Owned by the engine. */
struct cc_request {
	struct cc_reqid id;
	enum cc_req_state state;
	struct cc_rec_req rec; /* as told; zero but comm for kind TID */
	cc_ns start, end;      /* arrival (or first_recv), last_send (in flight: now) */
	uint32_t tid, tgid;    /* the task that holds it at its end */
	uint32_t recv_tid;
	uint32_t weight; /* requests that it stands for among those with a path: 1, or more when
			  * most had none worked out; 0: it is one of these */
	uint32_t path_cnt;
	/* pre-order, read with request_path(): NULL when the engine keeps it, packed */
	struct cc_piece *path;
	struct kept_path *kept;
	bool path_ok;     /* a path was computed (false: sampled out or too old) */
	bool lost_inside; /* records were lost within [start, end) */
	/* from the path, by request_digest() */
	uint8_t confidence;
	cc_ns path_sum_ns;                  /* of depth 0; == end - start */
	cc_ns unexplained_ns, ambiguous_ns; /* over the deepest partition */
	const struct cc_found *found;       /* read with request_found(): NULL when packed */
};

/* How many requests it stands for, at least 1. */
static inline uint32_t request_weight(const struct cc_request *r)
{
	return r->weight ? r->weight : 1;
}

/* Room for a path at a time; all zero is an empty one. */
struct path_buf {
	struct cc_piece *p;
	uint32_t cap;
};
void path_buf_done(struct path_buf *buf);

/* Its path_cnt pieces, in @buf or where they are; NULL: no memory. */
const struct cc_piece *request_path(const struct cc_request *r, struct path_buf *buf);

/* Its pieces one after the other, without room for all of them: faster where none is looked at
 * twice. for (path_iter_init(&it, r); (p = path_iter_next(&it));) ... */
struct path_iter {
	const struct cc_piece *path; /* where it is not packed: the next one */
	uint32_t left;
	const uint8_t *from;
	uint64_t met; /* bit by class: there is a last one */
	const struct cc_piece *prev;
	struct cc_piece first, last[64]; /* of each class */
};
void path_iter_init(struct path_iter *it, const struct cc_request *r);
const struct cc_piece *
path_iter_next(struct path_iter *it); /* borrowed until the next; NULL: end */

/* What its path adds up to, in @buf or where it is; all zero without a path. */
const struct cc_found *request_found(const struct cc_request *r, struct cc_found *buf);
const struct cc_dominant *request_dominant(const struct cc_request *r);
const struct cc_dominant *request_root(const struct cc_request *r);

#endif
