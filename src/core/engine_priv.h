/* SPDX-License-Identifier: Apache-2.0 */
/* engine_priv: what the engine's own files share. Order of work at a TICK: index wakes (wakes.c),
 * find who worked for each request (identity.c), walk back through their time (walk.c, split.c),
 * check and keep the pieces (path.c). */
#ifndef CC_ENGINE_PRIV_H
#define CC_ENGINE_PRIV_H

#include "classify.h"
#include "decode.h"
#include "engine.h"
#include "go_feed.h"
#include "names.h"
#include "path_pack.h"
#include "request.h"
#include "resource.h"
#include "task.h"

struct piece_vec {
	struct cc_piece *p;
	uint32_t cnt, cap;
};

struct loss_span {
	cc_ns from, to;
};

enum seg_kind {
	SEG_WALK,    /* the task held the request: walk */
	SEG_SPLIT,   /* its operations on both sides: it held it, split by what it touched */
	SEG_LOOP,    /* the same thread's time while it did not hold it */
	SEG_ARRIVAL, /* before the first recv: split too */
	SEG_QUEUED,
	SEG_NO_IDENTITY,
	SEG_AMBIGUOUS,
};

struct ident_seg { /* [lo, hi) of a request's time was with this task */
	cc_ns lo, hi;
	uint32_t task; /* index; UINT32_MAX: none */
	enum seg_kind kind;
	uint64_t evidence;
};

struct seg_vec {
	struct ident_seg *p;
	uint32_t cnt, cap;
};

struct idle_memo { /* the first idle episode of @task in [from, scanned) is @first */
	uint32_t task;
	bool valid;
	cc_ns from, scanned, first;
};

struct due { /* a request to work out, and its segments in e->segs */
	struct req *r;
	cc_ns from;
	uint32_t first, cnt;
};

struct standing { /* of the due at the same place: what select.c chooses by */
	struct lat_row row;
	uint64_t hash;   /* of its id */
	uint32_t weight; /* as its request has it */
	bool over, settled, explains, untimed;
};

struct link_habit { /* of a process */
	uint32_t tgid;
	uint32_t calls, elsewhere;   /* by votes; made or passed on in other turns: link_turn.c */
	uint32_t at_once, otherwise; /* replies answered in their own turn, and not ... */
	uint32_t later;              /* ... the only one, and in a later turn: link_reply.c */
};
#define LINK_HABIT_MAX 4096u /* calls: then earlier ones count half */

struct tls_port { /* see handshake.c: connections to it that begin as TLS does, and not */
	uint64_t netns;
	uint16_t port;
	uint32_t so, otherwise;
};

#define AHEAD 16 /* records: what they need comes from memory in the time of so many others */

struct served {             /* whose work a task did */
	struct cc_reqid id; /* kind NONE: nobody's, or not known */
	cc_ns since;        /* that is the answer since then */
	uint64_t evidence;
	bool ambiguous; /* it may be the work of others too */
	bool by_wakes;  /* told by the waits that it ended, which may not be all there were */
	uint32_t giver; /* tid of the goroutine that gave it the item that says so; 0: none ... */
	cc_ns given;    /* ... then */
};

struct engine {
	struct mem mem;
	struct engine_opts opts;
	struct engine_stats stats;
	bool begun; /* more than names and tasks was told */
	struct tasks tasks;
	struct requests reqs;
	struct resources res;
	struct names names;
	struct classifier cls;
	struct decode_buf *buf;
	struct cc_rec_episode ahead[AHEAD]; /* of engine_stream(): not taken in yet */
	uint32_t ahead_cnt;
	VEC(struct cc_rec_wake) wakes; /* that wait until their time is known */
	VEC(struct loss_span) losses;
	VEC(struct loss_span) gaps;   /* of parts.c: of one request at a time */
	VEC(struct loss_span) asleep; /* the machine was suspended at some moment of it */
	cc_ns boot_at;                /* at the last TICK: its ts, CLOCK_BOOTTIME - ts */
	int64_t boot_off;
	VEC(struct due) due;        /* at this TICK */
	bool due_second, due_parts; /* among them: the second of a connection, one sent in parts */
	VEC(struct standing) standings;        /* of these */
	VEC(struct lat_row) rows;              /* scratch of select.c */
	VEC(const struct cc_request *) sorted; /* shown and going on: by end, then id */
	struct piece_vec scratch;              /* of one path at a time */
	struct pack_buf pack;                  /* the same, packed */
	struct seg_vec segs;                   /* of the requests being worked out */
	VEC(struct held) old_holds;            /* of one request at a time */
	size_t evict_at;                       /* memory in use at which to evict next */
	cc_ns aged_to;                         /* timelines before it went by age */
	cc_ns tick_ns;                         /* refresh interval, by the last TICK */
	struct go_feed go;
	VEC(uint32_t) handlers;  /* of go_request.c: tids of goroutines that are requests */
	enum engine_serve serve; /* of go_serve.c: by which evidence it judges now */
	VEC(struct link_habit) habits;
	VEC(struct tls_port) tls_ports;
	struct idle_memo idle;   /* of owner.c; void when a record has come */
	struct engine_span span; /* what threads' requests are clipped to */
};

/* ---- engine.c ----------------------------------------------------------------------------- */

/* A REQ, OPEN_REQ, SOCKOP or LISTEN. */
CC_NODISCARD int engine_on_socket(struct engine *e, const struct cc_rec *r);

/* ---- wakes.c ------------------------------------------------------------------------------ */

/* Files the wakes of episodes that came since: by the lock they were on, by who gave them. */
CC_NODISCARD int wakes_index(struct engine *e);
/* Files all anew: from now on it matters who gave them. */
CC_NODISCARD int wakes_reindex(struct engine *e);
/* Gives the wakes that no episode carries to the timelines; all of them when @all. */
CC_NODISCARD int wakes_apply(struct engine *e, bool all);
/* Wakes given by @t, by time. */
const struct given_wake *wakes_given(struct task *t, cc_ns lo, cc_ns hi, uint32_t *ret_cnt);

/* The wait of @t that a wake at @at ended; NULL: none is known. */
const struct episode *wakes_episode_of(const struct task *t, cc_ns at);

/* The wake that ended @ep released what it waited for: no timer or signal did. */
bool wakes_is_release(const struct engine *e, const struct episode *ep);

/* @res is of several processes, and who ended a wait on it was of one that is not seen to wait for
 * it: it may do so at another address, or too shortly to be told where, and not all wakes are
 * known. */
bool wakes_are_apart(const struct engine *e, uint32_t res);

/* Where @ep's lock wakes are; 0: no lock, or no wakes. */
uint32_t wakes_lock_of(const struct engine *e, const struct task *t, const struct episode *ep);

/* ---- owner.c: whose work a thread's time was ---------------------------------------------- */

struct wait_kind engine_classify(const struct engine *e, const struct task *t,
				 const struct episode *ep);

/* @ep is a wait in which @t had let go of what it worked on. */
bool owner_is_idle(const struct engine *e, const struct task *t, const struct episode *ep);

/* @t did not wait in [from, to). */
bool owner_one_turn(const struct task *t, cc_ns from, cc_ns to);

/* When the first idle wait begins in [from, to); CC_NEVER: none. */
cc_ns owner_first_idle(struct engine *e, const struct task *t, cc_ns from, cc_ns to);

/* The end of the last idle wait that was over at @at, and not before @lo; *ret_out: when it began.
 * 0: none. */
cc_ns owner_idle_end(const struct engine *e, const struct task *t, cc_ns lo, cc_ns at,
		     cc_ns *ret_out);

/* The request that @t touched last before @at, unless it was idle since; kind NONE: none.
 * *ret_since: when it touched. A server socket without a known request gives ordinal 0. */
struct cc_reqid owner_before(struct engine *e, const struct task *t, cc_ns at, cc_ns *ret_since);

/* The same at @at, where it gave a wake: what it touched or began at that very moment counts as
 * before it and after it. */
struct cc_reqid owner_at(struct engine *e, const struct task *t, cc_ns at, cc_ns *ret_since);

/* When @t let go of @id that it touched at @at: its next foreign operation or idle wait, its end,
 * at the latest @limit. */
cc_ns owner_let_go(struct engine *e, const struct task *t, struct cc_reqid id, cc_ns at,
		   cc_ns limit);

/* The first time in [*at, hi) at which @t touched @id again, by an upstream called for it; it is
 * the owner until *ret_until. Returns false: none. */
bool owner_regained(struct engine *e, const struct task *t, struct cc_reqid id, cc_ns *at, cc_ns hi,
		    cc_ns *ret_until);

/* The request that @t worked for right before @at, by what identity found; *ret_start: since when
 * that is the answer. */
struct cc_reqid owner_serving(struct engine *e, const struct task *t, cc_ns at, cc_ns lo,
			      cc_ns *ret_start);

/* The same with how it is known, and whether it may be the work of others too. */
void owner_served(struct engine *e, const struct task *t, cc_ns at, cc_ns lo, struct served *ret);

/* ---- identity.c --------------------------------------------------------------------------- */

/* Finds out who held @r, when, and keeps it as holds of these tasks. Adds to e->segs what
 * partitions [start, end), last first. */
CC_NODISCARD int identity_find(struct engine *e, struct req *r);

/* Links the upstream calls of requests that a thread read together with @r, when the last vote for
 * them is in. *ret: these, @r among them. */
#define LINK_GROUP_MAX 16
CC_NODISCARD int link_group(struct engine *e, struct req *r, struct req **ret, uint32_t *ret_cnt);

/* Learns from @r's upstream calls how far votes of its process can be trusted; then takes back
 * those for calls that are of other turns of its thread's event loop. In link_turn.c. */
CC_NODISCARD int link_learn(struct engine *e, const struct req *r);
CC_NODISCARD int link_turn(struct engine *e, struct req *r);

/* The same for servers that answer in the very turn in which they read the reply. In link_reply.c.
 */
CC_NODISCARD int link_reply_learn(struct engine *e, const struct req *r);
CC_NODISCARD int link_reply(struct engine *e, struct req *r);

/* What @by did on upstream @socket in [from, to] was for @r. */
CC_NODISCARD int link_give(struct engine *e, const struct task *by, struct req *r, uint64_t socket,
			   cc_ns from, cc_ns to);
/* NULL: no memory. */
struct link_habit *link_habit_of(struct engine *e, uint32_t tgid);

/* Labels @r when its connection is known to carry several requests at once. True: it is since this
 * one, and what was told of it before, mixed_earlier(1), (2) ... (NULL: no more), needs the label.
 */
bool mixed_is_new(struct engine *e, struct req *r);
struct req *mixed_earlier(struct engine *e, const struct req *r, uint32_t nth);

/* @r may be the end of a TLS handshake: labels it. *ret: the exchange before it, for which it is
 * known now that it began one; NULL: none. */
CC_NODISCARD int handshake_of(struct engine *e, struct req *r, struct req **ret);

/* ---- parts.c: requests and answers in parts
 * ------------------------------------------------------ */

/* Labels @r a stream when it went on several times after its thread had been free of it. */
void parts_label(struct engine *e, struct req *r);
/* Marks the pieces of its path, @v, between parts: that time may not be its own. */
CC_NODISCARD int parts_mark(struct engine *e, const struct req *r, struct piece_vec *v);

/* ---- walk.c, walk_wait.c ------------------------------------------------------------------ */

#define WALK_DEPTH_MAX 64
#define WALK_PIECES_MAX (1u << 17) /* of one path: then waits are not explained further */
#define WALK_NESTED_MAX (1u << 15)

enum nest_kind {
	NEST_HELP, /* the waiter waits for this task's work */
	NEST_LOCK, /* this task has what the waiter needs */
};

struct walk_frame { /* a task whose time is being walked, or waits for one that is */
	uint32_t task;
	cc_ns handoff; /* a wake of the task at this time gave it the lock; 0: none */
};

struct walk {
	struct engine *e;
	const struct req *r;     /* NULL: for no request */
	struct cc_reqid serving; /* the request that the time being walked is for */
	struct cc_reqid blame;   /* for_request of its pieces */
	uint64_t evidence;       /* that every piece has */
	uint64_t leaned;         /* threads whose operations were looked at: bit tid % 64 */
	uint64_t leaned_open;    /* requests not over whose work was met: reqid_bit()s */
	struct piece_vec out;    /* last first; the pieces within one come before it */
	struct walk_frame stack[WALK_DEPTH_MAX];
	cc_ns until; /* the wait being explained goes on until then; 0: it ends where it is told */
	uint32_t depth;                  /* frames on the stack */
	uint32_t pieces_max, nested_max; /* WALK_PIECES_MAX, WALK_NESTED_MAX or less */
	int err;
};

/* Puts the pieces of what task @ti did in [lo, hi) on w->out, at @depth. @ran: it is known to have
 * run right before @hi. The caller has put the task on the stack. */
void walk_span(struct walk *w, uint32_t ti, cc_ns lo, cc_ns hi, bool ran, uint16_t depth);

/* A piece with what all have; the caller adds the rest and walk_emit()s it. */
struct cc_piece walk_piece(const struct walk *w, const struct task *t, cc_ns start, cc_ns end,
			   uint16_t depth, enum wait_class cls);
void walk_emit(struct walk *w, const struct cc_piece *p);
/* Who ended a thread's wait. @s: NULL without an EXTRA. */
enum cc_waker walk_waker_kind(const struct episode *ep, const struct side *s);
/* The path leans on what is known of request @id so far. */
void walk_lean_on(struct walk *w, struct cc_reqid id);
void walk_runq(struct walk *w, const struct task *t, cc_ns a, cc_ns b, const struct tl_piece *tp,
	       uint16_t depth);
void walk_wait(struct walk *w, uint32_t ti, cc_ns a, cc_ns b, const struct tl_piece *tp,
	       uint16_t depth);
/* What task @ti did in [lo, hi), one deeper than @depth, as the explanation of a wait. */
void walk_nest(struct walk *w, uint32_t ti, cc_ns lo, cc_ns hi, uint16_t depth, enum nest_kind kind,
	       cc_ns handoff);
/* Task @ti was busy in [lo, hi) while the request lay queued for it. */
void walk_queued(struct walk *w, uint32_t ti, cc_ns lo, cc_ns hi);
/* @t waited in [a, b) for @waker. Until when it would have waited anyway, for others that it had
 * begun together with that one; 0: for none. In walk_join.c. */
cc_ns walk_sibling_end(struct walk *w, const struct task *t, const struct task *waker, cc_ns a,
		       cc_ns b);
/* Task @ti may be gone into. *ret_cycle: it may not, because it is being walked already. */
bool walk_may_nest(const struct walk *w, uint32_t ti, uint16_t depth, bool *ret_cycle);

/* ---- whole_wait.c -------------------------------------------------------------------------- */

/* Two waits for one thing. A condition variable of glibc has two words that it uses in turn, side
 * by side in 8 bytes. */
bool wait_same_object(const struct episode *a, const struct episode *b);

/* When the wait is really over: slices of a wait with a timeout that begins anew are one wait. */
const struct episode *wait_last_slice(const struct engine *e, const struct task *t,
				      const struct episode *ep);

/* Woken with others, found nothing, waits again at once: one wait, until a wake was for it. What is
 * only tried again after a wake for it alone is none: who gave that had the thing. */
const struct episode *wait_last_of_herd(struct engine *e, const struct task *t,
					const struct episode *ep);

/* What @ep, a wait of @t, was for was had by several at a time not long before @to: one that was
 * woken for it was at something else when another one let it go, while somebody had waited for it
 * since before that, who would have been woken had the first one let it go too. */
bool wait_is_for_several(struct engine *e, const struct task *t, const struct episode *ep,
			 cc_ns to);

/* How many the waker of @ep woke then from the same thing, the task itself too; 0: it alone. */
uint32_t wait_herd(struct engine *e, const struct task *t, const struct episode *ep);

/* Was @t woken, looked, and waited for the same thing again? Where it was woken alone that is no
 * herd, and yet what it waits for may come from somebody else. */
bool wait_is_tried_again(const struct engine *e, const struct task *t, const struct episode *ep);

/* The wait that @ep, whose wake was with others and for nothing, goes on to be, which a task ended.
 * NULL: it was for something, as far as is known. */
const struct episode *wait_goes_on(struct engine *e, const struct task *t,
				   const struct episode *ep);

/* The wakes on what a task waits for, the latest first: of the word, and of a condition variable of
 * its other word. */
struct wakes_back {
	const struct lock_wake *v[2];
	uint32_t left[2], cnt[2];
};
void wakes_back_of(struct engine *e, const struct task *t, const struct episode *ep, cc_ns lo,
		   cc_ns hi, struct wakes_back *ret);

/* The one before; NULL: there is none. *ret_of: of which word. */
const struct lock_wake *wakes_back_next(struct wakes_back *b, uint32_t *ret_of);

/* ---- go_walk.c ---------------------------------------------------------------------------- */

/* [a, b) in which goroutine @ti did not wait: what its threads did, or the Go run queue. */
void go_walk_run(struct walk *w, uint32_t ti, cc_ns a, cc_ns b, uint16_t depth);
/* Who ended the wait of @t, its place and what it was for; p->flags are set. */
void go_walk_describe(const struct walk *w, const struct task *t, const struct episode *ep,
		      struct cc_piece *p);
/* The wait @ep of thread @t, of which nothing told more than the call, @k: it had no goroutine. */
bool go_walk_is_idle(const struct engine *e, const struct task *t, const struct episode *ep,
		     const struct wait_kind *k);
/* The wait was for a thing that others have meanwhile, though its class is that of work. */
bool go_walk_is_resource(const struct engine *e, const struct task *t, const struct episode *ep);
/* Of such a wait: since when in it @holder, who put the thing back at @to, had it (0: all of it),
 * and who had it until then (tid; 0: nobody is known to have). */
struct go_turn {
	cc_ns since;
	uint32_t before;
	bool several; /* there is more than one of them: others had one too */
};
struct go_turn go_walk_turn(const struct engine *e, const struct task *t, const struct episode *ep,
			    uint32_t holder, cc_ns to);
/* There is a timeline of @t, which may be NULL. */
static inline bool is_traced(const struct task *t) { return t && t->timeline; }
/* Whose doing it is what thread @tid did at @at: the goroutine's that was on it, else its own.
 * NULL: it is not known. */
struct task *go_walk_doer(const struct engine *e, uint32_t tid, cc_ns at);
uint32_t go_runq_resource(struct engine *e);
/* What a goroutine waited on; 0: not told. */
uint32_t go_resource(struct engine *e, const struct task *t, const struct episode *ep);
uint32_t go_resource_find(const struct engine *e, const struct task *t, const struct episode *ep);
struct wait_kind go_classify(const struct engine *e, const struct task *t,
			     const struct episode *ep);

/* ---- go_request.c ------------------------------------------------------------------------- */

/* Requests that are the life of a handler's goroutine; those that go on end at @now. */
CC_NODISCARD int go_requests(struct engine *e, cc_ns now);
/* @t works for a connection that carries such requests: what its socket tells is none of them. */
bool go_request_is_mux(const struct engine *e, const struct task *t);
/* All of such a request is its goroutine's. */
CC_NODISCARD int go_request_seg(struct engine *e, const struct req *r);

/* ---- go_serve.c --------------------------------------------------------------------------- */

/* Right before @at, and no more than @lo back. */
void go_serving(struct engine *e, const struct task *t, cc_ns at, cc_ns lo, struct served *ret);

/* The same by one of the models that are compared. */
void go_serving_by(struct engine *e, const struct task *t, cc_ns at, enum engine_serve mode,
		   struct served *ret);

/* The item that @t worked on right before @at, not before @lo; NULL: none is known. */
const struct go_recv *go_item_before(const struct engine *e, const struct task *t, cc_ns lo,
				     cc_ns at);

/* ---- split.c ------------------------------------------------------------------------------ */

/* [lo, hi) between operations of the request on one thread, or before its first recv. */
void split_span(struct walk *w, const struct ident_seg *seg);

/* ---- message.c ---------------------------------------------------------------------------- */

struct message {
	uint32_t sender_tid;
	cc_ns sent, arrived;
	const struct sock *sock; /* where it came in; NULL: not said */
};
/* The message of a traced sender that ended @ep, a wait of @t for the network. */
bool message_of_wake(const struct engine *e, const struct task *t, const struct episode *ep,
		     const struct side *side, struct message *ret);
/* The first message that @t received in (lo, hi]. */
bool message_received(const struct engine *e, const struct task *t, cc_ns lo, cc_ns hi,
		      struct message *ret);

/* ---- walk_call.c -------------------------------------------------------------------------- */

/* Puts down @p, a wait for the answer on socket @s, explained by what the other end did. False:
 * that is not known, nothing was put down. */
bool walk_call(struct walk *w, struct cc_piece *p, const struct sock *s);

/* The request whose answer woke: @waker was sending it at @wake. Kind NONE: it was not. */
struct cc_reqid walk_answered(const struct walk *w, const struct task *waker, cc_ns wake);

/* ---- path.c ------------------------------------------------------------------------------- */

/* Works out the path of @r, whose @cnt segments are @segs, last first. */
CC_NODISCARD int path_of_request(struct engine *e, struct req *r, const struct ident_seg *segs,
				 uint32_t cnt);
/* The plain walk of a task's time. Caller frees *ret. */
CC_NODISCARD int path_of_span(struct engine *e, uint32_t ti, cc_ns lo, cc_ns hi,
			      struct cc_piece **ret, uint32_t *ret_cnt);
/* One request per task with an episode, for streams that know no sockets. */
CC_NODISCARD int path_of_tasks(struct engine *e);
/* Resource of a wait, for people; 0: none. */
uint32_t path_resource(struct engine *e, const struct task *t, const struct episode *ep);

/* ---- mix.c -------------------------------------------------------------------------------- */

/* Sums up what busy tasks did up to @to, for engine_task_mix(). */
CC_NODISCARD int mix_add_cells(struct engine *e, cc_ns to);

/* ---- work.c, select.c, evict.c ------------------------------------------------------------ */

/* Works out what is complete before @to; requests going on end at @now (0: leave them). */
CC_NODISCARD int work_paths(struct engine *e, cc_ns to, cc_ns now);
/* Notes what request @r that is due is chosen by. Once for each, in their order. */
CC_NODISCARD int select_note(struct engine *e, const struct req *r, cc_ns to);
/* Gives a weight to those of e->due whose paths are to be worked out; keeps the latencies of all.
 */
CC_NODISCARD int select_shown(struct engine *e);
/* The same where that is done once, for all that there was. */
CC_NODISCARD int select_shown_once(struct engine *e);
/* Takes off the lists what needs no more work. */
void work_tidy(struct engine *e, cc_ns to, cc_ns now);
/* Keeps to the budget and the window. */
void work_evict(struct engine *e, cc_ns now);
/* Puts the requests in order for engine_requests(). */
CC_NODISCARD int work_sort(struct engine *e);

#endif
