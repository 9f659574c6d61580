/* SPDX-License-Identifier: Apache-2.0 */
/* go_task: goroutines as tasks. A goroutine is a struct task like a thread, with a tid of its own
 * making (a handle); its waits are episodes; while it executes, its time is that of the thread it
 * is on. What a task has besides when it is a goroutine, or a thread that runs them, is here. */
#ifndef CC_GO_TASK_H
#define CC_GO_TASK_H

#include "event.h"
#include "map.h"

struct tasks;
struct task;

/* No kernel has a tid so high (PID_MAX_LIMIT is 2^22). Handles are never used twice. */
#define GO_TID 0x80000000u
static inline bool tid_is_go(uint32_t tid) { return (tid & GO_TID) != 0; }

#define GO_NONE UINT32_MAX /* index of no task */

struct go_on {          /* in [from, to) a goroutine and a thread were together */
	cc_ns from, to; /* to CC_NEVER: its end was not told */
	uint32_t other; /* index of the other task; GO_NONE: the thread ran none */
};

/* How an item was told to have come: GO_ITEM's rules. */
enum go_how {
	GO_HOW_EXACT,  /* given or taken while the other side waited, or out of a full buffer */
	GO_HOW_PEEKED, /* matched by what lay at the head of the buffer */
};

struct go_recv { /* an item that a goroutine received */
	cc_ns t;
	uint64_t channel;
	cc_ns sent;    /* when it was sent */
	uint32_t from; /* tid of the goroutine that sent it; 0: not known */
	uint8_t how;   /* enum go_how */
	bool counted;  /* in go_tasks.had, until it puts it back */
};

#define GO_PUT_CNT 4 /* channels that a goroutine put something into last */

struct go_put {
	uint64_t channel;
	cc_ns t; /* the last time */
};

struct go_state {      /* beside a task */
	uint64_t goid; /* 0: a thread */
	uint64_t start_pc, go_pc;
	uint32_t last_thread; /* tid; of a goroutine */
	uint32_t put_at;
	struct go_put put[GO_PUT_CNT];
	uint64_t judged_at;      /* go_serve.c: engine_stats.events when it was judged */
	bool mux;                /* go_request.c: of its connection each stream is a request */
	bool shared;             /* ... to serve many requests at once */
	VEC(struct go_on) ons;   /* by from */
	VEC(struct go_recv) got; /* by t */
};

struct go_wait { /* beside an episode of a goroutine: what GO_EPISODE tells more */
	uint64_t object, ustack, fd_id, lost;
	int32_t fd;
	uint8_t fd_kind; /* CC_FD_* */
};

struct go_sent { /* lies in a buffer, or was sent and not seen to be received */
	uint64_t channel, item;
	cc_ns t;
	uint32_t tgid, from; /* tid of the sender */
	bool twice;          /* the same item is there more than once: whose it is cannot be told */
};

struct go_proc { /* a process that runs goroutines */
	uint32_t tgid;
	bool waits; /* its goroutines' waits are told, not only which is on a thread */
	bool items; /* ... and what goes through its channels */
};

struct go_tasks {
	VEC(struct go_state) states; /* [0] is unused */
	VEC(uint32_t) free_states;
	VEC(struct go_wait) waits; /* [0] is unused */
	VEC(uint32_t) free_waits;
	VEC(struct go_sent) sent; /* a ring: see go_item.c */
	uint32_t sent_at;
	VEC(uint32_t) fresh;      /* tids of goroutines whose function has become known */
	VEC(uint32_t) free_tasks; /* indexes of goroutines that are forgotten */
	VEC(struct go_proc) procs;
	struct map by_goid;  /* mix of tgid and goid -> 1 + index of the task */
	struct map by_sent;  /* mix of channel and item -> 1 + index in sent */
	struct map channels; /* mix of tgid and channel -> enum go_channel */
	struct map had;      /* ... of resources -> 1 + so many goroutines have one out of it */
	uint32_t handles;    /* given out */
	uint64_t refused;    /* goroutines for which there was no room */
};

void go_tasks_done(struct tasks *ts);

/* Records in, in order of their times as far as possible. 0, -EINVAL, -ENOMEM. */
CC_NODISCARD int go_episode(struct tasks *ts, const struct cc_rec_go_episode *r);
CC_NODISCARD int go_task(struct tasks *ts, const struct cc_rec_go_task *r);
CC_NODISCARD int go_thread_on(struct tasks *ts, const struct cc_rec_go_on *r);
CC_NODISCARD int go_item(struct tasks *ts, const struct cc_rec_go_item *r);

/* The goroutine @goid of @tgid; makes one. NULL: no memory, or no room (*ret_full). */
struct task *go_get(struct tasks *ts, uint32_t tgid, uint64_t goid, bool *ret_full);
struct task *go_find(const struct tasks *ts, uint32_t tgid, uint64_t goid);
struct go_proc *go_proc(const struct tasks *ts, uint32_t tgid); /* NULL: no Go process */

/* Index of the goroutine that thread @tid ran at @at; GO_NONE: none, or not known. */
uint32_t go_on_thread(const struct tasks *ts, uint32_t tid, cc_ns at);

/* When [from, ...) of a goroutine on a thread ended, at the latest; CC_NEVER: not known. */
cc_ns go_on_end(const struct go_state *g, uint32_t i);

/* Of a channel: what goes through it. */
enum go_channel {
	GO_CHAN_WORK = 0,
	GO_CHAN_RESOURCE, /* one goes from goroutine to goroutine, by all that was seen */
	GO_CHAN_SEVERAL,  /* a resource of which several had one at a time */
};
enum go_channel go_channel_kind(const struct tasks *ts, uint32_t tgid, uint64_t channel);
/* What @t took out of a channel of resources last, until @to. NULL: it was not seen to. */
const struct go_recv *go_took(const struct tasks *ts, const struct task *t, uint64_t channel,
			      cc_ns to);

/* Drops what was over before @before; goroutines dead by then are forgotten. */
void go_evict(struct tasks *ts, cc_ns before);
/* The wait of an episode that goes. */
void go_wait_free(struct tasks *ts, uint32_t wait);

#endif
