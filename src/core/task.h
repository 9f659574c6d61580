/* SPDX-License-Identifier: Apache-2.0 */
/* task: who there was, and what each did when: episodes off the CPU in order of time, RUNNING
 * between them, and where nothing is known. It does not know requests or what waits were for. */
#ifndef CC_TASK_H
#define CC_TASK_H

#include <stddef.h>

#include "event.h"
#include "go_task.h"
#include "map.h"
#include "path.h"

#define CC_NEVER UINT64_MAX /* a time that has not come */

/* What an entry of a timeline is. The episode's state word is reduced to this. */
enum ep_kind {
	EP_SLEEPING = 0, /* interruptible */
	EP_DISK,         /* uninterruptible */
	EP_STOPPED,
	EP_RUNNABLE, /* [out, in) is run queue */
	EP_UNSEEN,   /* a second wake without a switch-in between: it ran, unseen */
	EP_KIND_MASK = 7,
	EP_GO = 1 << 6,      /* a goroutine's: key is its wait class, side a struct go_wait */
	EP_INDEXED = 1 << 7, /* its wake is in the indexes of wakes */
};

/* One time off the CPU: [out, wake) blocked, [wake, in) runnable; wake 0: blocked until in. */
struct episode {
	cc_ns out, wake, in;
	uint32_t seq;
	uint32_t waker_tid, waker_tgid;
	uint32_t key;
	uint32_t side;   /* index of its struct side (EP_GO: go_wait); 0: none */
	int16_t syscall; /* -1: none, -2: not known */
	uint8_t flags;   /* CC_EP_* */
	uint8_t kind;    /* enum ep_kind */
};
_Static_assert(sizeof(struct episode) == 48, "millions of them are kept");

/* What EXTRA and OPEN_TASK tell about a slow episode, and losses before it. */
struct side {
	/* what classify() reads of millions of them, in one cache line or two */
	uint64_t kstack, uaddr, fd_id;
	uint64_t op, val; /* args[1] and args[2]; of a futex: operation and expected value */
	uint64_t lost;    /* CC_LOST() before the episode */
	int32_t fd;
	uint8_t fd_kind; /* CC_FD_* */
	uint8_t flags;   /* CC_EX_* */
	uint8_t site;    /* enum futex_site, where the call's words do not tell it */
	bool told;       /* false: only lost is known */
	bool futex;      /* op and val are of a futex call */

	uint32_t fd_dev;
	uint64_t ustack, waker_ustack, waker_kstack;
	cc_ns throttled_ns, ran_ns, occupant_ns;
	uint32_t owner, owner_tgid, occupant_tid, occupant_tgid;
	uint32_t sock_ports;
	uint32_t srtt_us, retrans; /* TCP: round trip; packets sent again during the wait */
};
#define SIDE_HOT 64 /* bytes */
_Static_assert(offsetof(struct side, fd_dev) <= SIDE_HOT, "see side_prefetch()");

static inline void side_prefetch(const struct side *s)
{
	__builtin_prefetch(s);
	__builtin_prefetch((const char *)s + SIDE_HOT - 1);
}

/* A task's state as an iterator saw it. Holds until an episode tells more. */
struct open_state {
	cc_ns now;       /* seen then; 0: never */
	cc_ns out, wake; /* out 0: on the CPU, since last_in */
	cc_ns last_in;
	uint64_t lost;
	uint32_t seq;      /* of its next episode */
	struct episode ep; /* the wait, when out != 0 */
};

struct sock_touch { /* a socket operation of a thread */
	cc_ns t;
	uint64_t cookie; /* of the server socket whose request it touched; 0: none known */
	uint64_t socket; /* the socket operated on: cookie, or the upstream's */
	uint32_t ordinal;
	uint8_t op;    /* CC_OP_* */
	uint8_t flags; /* CC_SO_* */
	bool from_req; /* told by a REQ: goes when that is told again */
};

struct hold { /* the task worked for a request in [from, to) */
	cc_ns from, to;
	struct cc_reqid id;
};

struct given_wake { /* a wake that this task gave in process context */
	cc_ns t;
	uint32_t wakee_tid;
};

struct short_sum {
	cc_ns since, until, ns;
	uint32_t cnt;
};

struct cpu_sample { /* where a thread ran */
	cc_ns t;
	uint64_t ustack, kstack;
};

struct mix_cell { /* what [from, to) went to, by WAIT_GROUPS */
	cc_ns from, to;
	cc_ns mix[9];
};

struct late_work { /* it had the request in [from, to), by elimination: see late.c */
	struct cc_reqid id;
	cc_ns from, to;
};

struct task {
	/* what every episode touches, in two cache lines */
	VEC(struct episode) eps; /* by out; they do not overlap */
	uint32_t tid, tgid;
	cc_ns born, dead;  /* CC_NEVER: not known, alive */
	cc_ns exec_at;     /* got its tid by exec then; 0: always had it */
	cc_ns alive;       /* the last time it was seen in any way */
	uint32_t older;    /* 1 + index of the task that had the tid before */
	uint32_t exec_tid; /* the tid it had before exec; 0: the same */
	uint32_t indexed;  /* episodes before this one are in the indexes of wakes */
	cc_ns known_from;  /* running or more from here on; CC_NEVER: from its first episode */
	uint32_t extra_seq, extra_side; /* an EXTRA that waits for its EPISODE; side 0: none */
	bool timeline;                  /* records of its own time came: it is traced */
	bool dirty;                     /* has episodes that are not in the indexes of wakes */
	bool cut; /* its beginning was evicted: born is not where known_from is */
	bool goroutine;
	uint32_t near_ep, near_touch; /* where eps and touches were asked for last: a hint */
	uint32_t given_sorted; /* so many given wakes are in order, those after are not yet */
	uint32_t flags;        /* CC_TF_* */
	uint32_t go; /* index of its go_state: a goroutine, or a thread that runs them; 0: none */
	struct open_state open;

	cc_ns start;           /* start time; 0: not known */
	cc_ns slept_since;     /* when first seen it slept, since then; 0: it did not */
	struct late_work late; /* kind NONE: nothing */
	uint64_t cgroup;
	uint32_t parent_tid;
	uint32_t feeder; /* tid that gave it the last work before fed_to; 0: none is known */
	cc_ns fed_to;
	char extra_comm[CC_COMM_LEN];   /* of the waker that the waiting EXTRA tells */
	VEC(struct sock_touch) touches; /* by t */
	VEC(struct hold) holds;         /* by from */
	VEC(struct given_wake) given;
	VEC(struct short_sum) shorts;   /* by until */
	VEC(struct mix_cell) cells;     /* of mix.c: by time, one ends where the next begins */
	VEC(struct cpu_sample) samples; /* by t */
	char comm[CC_COMM_LEN + 1];
};

struct late_span { /* what @tid did in [from, to) is otherwise than was thought */
	cc_ns from, to;
	uint32_t tid;
};

struct gap_span { /* episodes of @tid are missing in it, and with them the wakes it was given */
	cc_ns from, to;
	uint32_t tid, tgid;
};

#define TASKS_NEAR 1024u
struct near_task {
	uint32_t tid, task; /* task: 1 + index; 0: none */
};

struct tasks {
	struct mem *mem;
	VEC(struct task) v;
	VEC(uint32_t) free; /* places in v: tid is 0 there */
	struct map by_tid;  /* tid -> 1 + index of the task that has it last */
	/* The same of tids asked for lately, by their last bits: the only task that ever had it. */
	struct near_task near[TASKS_NEAR];
	VEC(struct side) sides; /* [0] is unused */
	VEC(uint32_t) free_sides;
	VEC(struct late_span) late; /* since the owner emptied it */
	VEC(struct gap_span) gaps;  /* by to */
	VEC(uint32_t) dirty;        /* indexes of tasks with dirty set */
	uint64_t episodes, clamped, lost_cnt;
	cc_ns lost_ns;
	uint64_t stacks_user;
	struct go_tasks go;
};

void tasks_init(struct tasks *ts, struct mem *mem);
void tasks_done(struct tasks *ts);

/* Records in. All return 0 or -ENOMEM, or -EINVAL for times that cannot be. Idempotent: the same
 * episode again changes nothing. */
CC_NODISCARD int tasks_episode(struct tasks *ts, const struct cc_rec_episode *r);
CC_NODISCARD int tasks_extra(struct tasks *ts, const struct cc_rec_extra *r);
CC_NODISCARD int tasks_task(struct tasks *ts, const struct cc_rec_task *r);
CC_NODISCARD int tasks_open(struct tasks *ts, const struct cc_rec_open_task *r);
CC_NODISCARD int tasks_short(struct tasks *ts, const struct cc_rec_short *r);
CC_NODISCARD int tasks_sample(struct tasks *ts, const struct cc_rec_sample *r);

/* Puts @ep into the timeline of task @idx, clamped, after @lost of what came before it. Returns
 * where it went; -EEXIST: it is there already; -ENOMEM. */
int64_t tasks_insert(struct tasks *ts, uint32_t idx, struct episode *ep, uint64_t lost);
/* A new task. NULL: no memory, or too many. */
struct task *tasks_add(struct tasks *ts, uint32_t tid, uint32_t older);

/* The task that had @tid at @at (CC_NEVER: the latest); makes one when there is none. NULL: no
 * memory. Pointers hold until the next record. */
struct task *tasks_get(struct tasks *ts, uint32_t tid, cc_ns at);
struct task *tasks_find(const struct tasks *ts, uint32_t tid, cc_ns at); /* NULL: none */

/* Fetches what a record of thread @tid that is to come needs: where the task is found; the task, of
 * which 1 + its index is returned, 0: none; where its next episode goes. Each needs what the one
 * before has fetched. */
#define TASKS_FAR 1024u /* tasks: fewer are in the caches anyway */
void tasks_prefetch_slot(const struct tasks *ts, uint32_t tid);
uint32_t tasks_prefetch(const struct tasks *ts, uint32_t tid);
void tasks_prefetch_end(const struct tasks *ts, uint32_t task);

/* @tid leads to task @i from now on; to none. */
CC_NODISCARD int tasks_point_tid(struct tasks *ts, uint32_t tid, uint32_t i);
void tasks_forget_tid(struct tasks *ts, uint32_t tid);

/* It ran at @t, as a socket operation shows. */
void task_ran_at(struct task *t, cc_ns at);
void task_set_tgid(struct tasks *ts, struct task *t, uint32_t tgid);
void task_set_comm(struct task *t, const char comm[CC_COMM_LEN]);

/* Another task has @t's tid since @at. NULL: no memory. */
struct task *tasks_reborn(struct tasks *ts, struct task *t, cc_ns at);

/* A wake at @at that no episode carries. Returns 1 taken, 0 the task was running, -EAGAIN what it
 * did then is not known yet, -ENOMEM. */
CC_NODISCARD int tasks_wake(struct tasks *ts, const struct cc_rec_wake *r);

/* Takes the places of those that were gone before @before; after tasks_evict(). Their indexes may
 * be used again. In task_gone.c. */
void tasks_free_gone(struct tasks *ts, cc_ns before);
void task_done(struct mem *mem, struct task *t);
void task_free_side(struct tasks *ts, uint32_t *side); /* 0: a no-op; becomes 0 */

/* Drops what ended before @before. Returns how many episodes went. */
uint64_t tasks_evict(struct tasks *ts, cc_ns before);

static inline bool ep_is_go(const struct episode *ep) { return (ep->kind & EP_GO) != 0; }
static inline const struct side *ep_side(const struct tasks *ts, const struct episode *ep)
{
	return ep->side && !ep_is_go(ep) ? &ts->sides.p[ep->side] : NULL;
}
static inline const struct go_wait *ep_go_wait(const struct tasks *ts, const struct episode *ep)
{
	return ep->side && ep_is_go(ep) ? &ts->go.waits.p[ep->side] : NULL;
}
/* CC_LOST() before @ep. */
static inline uint64_t ep_lost(const struct tasks *ts, const struct episode *ep)
{
	if (!ep->side)
		return 0;
	return ep_is_go(ep) ? ts->go.waits.p[ep->side].lost : ts->sides.p[ep->side].lost;
}
/* NULL: neither a goroutine nor a thread that ran one. */
static inline struct go_state *task_go(const struct tasks *ts, const struct task *t)
{
	return t->go ? &ts->go.states.p[t->go] : NULL;
}
static inline bool task_is_go(const struct task *t) { return t->goroutine; }
static inline enum ep_kind ep_kind(const struct episode *ep)
{
	return (enum ep_kind)(ep->kind & EP_KIND_MASK);
}
static inline unsigned int ep_ctx(const struct episode *ep)
{
	return (ep->flags & CC_EP_CTX_MASK) >> CC_EP_CTX_SHIFT;
}
/* A task gave the wake, in process context. */
static inline bool ep_task_wake(const struct episode *ep)
{
	return ep->wake && ep->waker_tid &&
	       (ep_ctx(ep) == CC_CTX_TASK || ep_ctx(ep) == CC_CTX_KTHREAD);
}
static inline bool ep_blocked(const struct episode *ep)
{
	return ep_kind(ep) < EP_RUNNABLE && (!ep->wake || ep->wake > ep->out);
}
static inline cc_ns ep_blocked_end(const struct episode *ep)
{
	return ep->wake ? ep->wake : ep->in;
}

/* ---- reading a timeline ------------------------------------------------------------------- */

enum tl_kind { TL_NODATA, TL_RUN, TL_RUNQ, TL_BLOCKED, TL_LOST };

struct tl_piece {
	enum tl_kind kind;
	cc_ns start, end;         /* end: where the piece ends by itself; CC_NEVER: not yet */
	const struct episode *ep; /* BLOCKED, RUNQ: of it. RUN, LOST: the one after; NULL: none */
	bool open;                /* BLOCKED, RUNQ: of the open state, not over */
	bool exact;               /* RUN: from one episode's in to the next one's out, none lost */
};

/* Episodes of a task of process @tgid are missing somewhere in [lo, hi). */
bool tasks_gap_within(const struct tasks *ts, uint32_t tgid, cc_ns lo, cc_ns hi);

/* Index of the first episode that begins at @at or later, that ends then or later, of the first
 * touch then or later; the count: none. Cheap near where the last one asked for was. */
uint32_t task_ep_from(const struct task *t, cc_ns at);
uint32_t task_ep_until(const struct task *t, cc_ns at);
uint32_t task_touch_from(const struct task *t, cc_ns at);

/* @t did not wait in [a, b). *ret_cpu: how long it had the CPU in it. */
bool task_ran_through(const struct task *t, cc_ns a, cc_ns b, cc_ns *ret_cpu);

/* What @t did right before @at: the piece with start < at <= end. @ran: it is known to have run up
 * to @at (it gave a wake, sent, forked). @at > 0. */
void task_piece(const struct task *t, const struct tasks *ts, cc_ns at, bool ran,
		struct tl_piece *ret);

#endif
