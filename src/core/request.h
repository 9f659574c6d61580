/* SPDX-License-Identifier: Apache-2.0 */
/* request: requests and sockets as records told them, and the operations of threads on them. What
 * a request's time went to is found out elsewhere. */
#ifndef CC_REQUEST_H
#define CC_REQUEST_H

#include "latency.h"
#include "path.h"
#include "task.h"

struct req_op { /* an operation on the request's own socket */
	cc_ns t;
	uint32_t tid;
	uint8_t op; /* CC_OP_RECV, CC_OP_SEND, CC_OP_EAGAIN */
	bool from_req;
};

struct up_op { /* an operation on an upstream socket that is linked to the request */
	cc_ns t;
	uint64_t cookie;
	uint8_t op;  /* CC_OP_* */
	bool agreed; /* its reply's side votes for the link too */
};

struct held {
	cc_ns from, to;
	uint32_t task; /* index */
};

struct req {
	struct cc_request pub;
	bool told;          /* a REQ came */
	bool open;          /* an OPEN_REQ came, no REQ yet */
	bool explains;      /* of a followed process: no row, in no sum */
	bool computed;      /* worked out as it is told now */
	bool due;           /* is being worked out */
	bool identified;    /* its holders are known */
	bool mixed_sign;    /* counted in its socket's mixed_signs */
	bool hand_shaken;   /* counted in its port's tls_port */
	bool settled;       /* was worked out when it was over: its weight stays */
	bool finished;      /* in latencies (or untimed), and in shown if it has a weight */
	uint8_t lists;      /* 1 << enum req_list */
	uint32_t slot;      /* in struct requests.v */
	cc_ns seen;         /* ts of its last record */
	uint32_t silent[4]; /* tasks that were not heard of up to its end when it was worked out */
	uint32_t silent_cnt;
	uint64_t linked_up;     /* upstream socket called for it, though no votes say so; 0: none */
	uint8_t linked_by;      /* CC_EV_*: how that is known */
	uint64_t leaned;        /* threads whose operations its path leans on: bit tid % 64 */
	uint64_t leaned_open;   /* requests not over that it leans on: reqid_bit()s */
	VEC(struct req_op) ops; /* by t */
	VEC(struct up_op) ups;  /* by t */
	VEC(struct held) holds; /* of tasks that worked for it */
	uint32_t next;
};

/* What has to be looked at at a TICK, so that it costs nothing to have the others. */
enum req_list {
	LIST_DUE,     /* told, not worked out as they are told now */
	LIST_OPEN,    /* going on */
	LIST_FRESH,   /* worked out a short while ago: paths of others may need them */
	LIST_SILENT,  /* with silent_cnt */
	LIST_LEANING, /* with leaned_open */
	LIST_CNT,
};

struct sock_io {
	cc_ns t;
	uint32_t tid;
	uint8_t op;
};

struct sock {
	uint64_t cookie;
	struct cc_addr peer;
	uint16_t local_port;
	bool upstream;          /* the target is the client */
	bool placed;            /* is in by_ports */
	bool closed;            /* upstream: told so */
	uint8_t mixed_signs;    /* requests that say that it carries several at once; see mixed.c */
	cc_ns seen;             /* worked on last */
	uint32_t tid;           /* that received its last request */
	struct cc_reqid link;   /* request that its last send is for */
	VEC(struct sock_io) io; /* by t */
	uint64_t ends;          /* its key in by_ports */
	uint32_t next_ports;    /* 1 + index of another with the same key */
};

struct req_news { /* work of a thread in [from, to] that was told after that was worked out */
	cc_ns from, to;
	uint32_t tid;
	bool exact; /* false: it matters until the thread touches something else */
};

struct req_vec {
	struct req **p;
	uint32_t cnt, cap;
};

struct receiver {      /* a thread that receives requests: a worker */
	uint32_t task; /* index */
	uint32_t tgid;
	uint16_t port;
};
#define RECEIVERS_MAX 64 /* more are not asked whether they were idle */

struct requests {
	struct mem *mem;
	struct tasks *tasks; /* borrowed */
	VEC(struct req *) v; /* NULL: free */
	VEC(uint32_t) free;
	struct slab slab;
	struct slab op_slab, held_slab; /* of their first ops and holds */
	struct map by_id;
	VEC(struct sock) socks; /* cookie 0: free */
	VEC(uint32_t) free_socks;
	struct map by_cookie, by_ports;
	struct map upstreams; /* cookies of sockets on which the target is the client */
	VEC(struct req_news) news;
	struct req_vec list[LIST_CNT];
	VEC(const struct cc_request *) shown; /* finished, with a weight: by end, then id */
	struct latencies lat;                 /* of the finished, but for ... */
	VEC(struct req_untimed) untimed;      /* ... CC_RQ_UNTIMED ones, by time */
	VEC(cc_ns) fresh_ends; /* of what LIST_FRESH has: when each ended, as it was listed */
	bool calls_told;       /* something was told of upstream calls, */
	bool busy_told;        /* or that a connection carries several requests at once */
	uint32_t sweep;        /* slot to look at next for what was never told */
	struct receiver receivers[RECEIVERS_MAX];
	uint32_t receiver_cnt;
	cc_ns worked_to;  /* paths of what ended before it are worked out */
	cc_ns working_to; /* the same, for the work going on */
};

void requests_init(struct requests *rs, struct mem *mem, struct tasks *tasks);
void requests_done(struct requests *rs);

/* Records in. 0, -EINVAL for times that cannot be, -ENOMEM. */
CC_NODISCARD int requests_req(struct requests *rs, const struct cc_rec_req *r);
CC_NODISCARD int requests_sockop(struct requests *rs, const struct cc_rec_sockop *r);

struct req *requests_find(const struct requests *rs, struct cc_reqid id); /* NULL: none */
struct req *requests_get(struct requests *rs, struct cc_reqid id); /* makes it; NULL: no memory */
const struct sock *requests_sock(const struct requests *rs, uint64_t cookie);
struct sock *requests_sock_of(struct requests *rs, struct cc_reqid id); /* NULL: none */

/* The other end of @s when both are known, by its ports; NULL: none, or more than one fit. */
const struct sock *requests_mirror(const struct requests *rs, const struct sock *s);

/* Both votes say that @cookie was called for @id. */
bool requests_link_agreed(const struct requests *rs, struct cc_reqid id, uint64_t cookie);

/* ---- between request.c and socket.c ------------------------------------------------------- */

/* Keeps what thread @tid (0: none) did. */
CC_NODISCARD int requests_touch(struct requests *rs, uint32_t tid, uint32_t tgid,
				struct sock_touch s);
/* A SOCKOP on the request's own socket; -EEXIST: told before. */
CC_NODISCARD int requests_own_op(struct requests *rs, const struct cc_rec_sockop *q);
/* One on an upstream socket, linked to @link. */
CC_NODISCARD int requests_up_op(struct requests *rs, struct cc_reqid link, struct up_op op);
/* The socket of a REQ, and its operations on it. */
CC_NODISCARD int requests_req_io(struct requests *rs, const struct cc_rec_req *q);

/* Forgets the path. In path.c. */
void path_drop(struct mem *mem, struct cc_request *p);

/* ---- care: finished.c
 * --------------------------------------------------------------------------------- */

/* Puts @r on a list, once. */
CC_NODISCARD int requests_list(struct requests *rs, enum req_list which, struct req *r);
/* Takes those off it for which @stay says no; frees what nothing needs any more. */
typedef bool req_stay_fn(void *ctx, const struct req *r);
void requests_unlist(struct requests *rs, enum req_list which, req_stay_fn *stay, void *ctx);
/* The same for LIST_FRESH: what ended before @before; @open: what is to be worked out, too. */
void requests_unlist_fresh(struct requests *rs, cc_ns before, bool open);

/* @r is over and worked out: from now on it counts, and is shown when it has a weight. Its latency
 * is for the caller to keep. */
CC_NODISCARD int requests_finish(struct requests *rs, struct req *r);
/* It is told otherwise: takes it back. */
void requests_unfinish(struct requests *rs, struct req *r);

/* Order of what is shown: by end, then id. */
int request_by_end(const struct cc_request *a, const struct cc_request *b);

/* Those shown that ended before @before go. Returns how many did. */
uint64_t requests_evict_shown(struct requests *rs, cc_ns before);
/* So do latencies. */
void requests_evict_latencies(struct requests *rs, cc_ns before);
/* And what was never told and not heard of since @before: looks at a part of all at a time. */
uint64_t requests_sweep(struct requests *rs, cc_ns before, uint32_t cnt);

/* Takes the request away. */
void requests_drop(struct requests *rs, struct req *r);

/* Socket operations before @before. */
void requests_evict_io(struct requests *rs, cc_ns before);
/* Forgets receivers whose place another task may have now. */
void requests_evict_receivers(struct requests *rs);
/* Connections that nothing happened on since @before; upstream ones only when they are closed: a
 * thread may wait on them. They are learned anew by their next record. */
void requests_evict_socks(struct requests *rs, cc_ns before);

/* Every TICK goes through what came, several times, and that is more than a cache holds. */
#define REQ_PREFETCH 8 /* ahead */
static inline void req_prefetch(const struct req *r)
{
	__builtin_prefetch(&r->pub.rec.first_recv);
	__builtin_prefetch(&r->pub.end);
	__builtin_prefetch(&r->told);
	__builtin_prefetch(&r->ops);
}

static inline struct cc_reqid reqid_of(uint64_t cookie, uint32_t ordinal)
{
	return (struct cc_reqid){ cookie, ordinal, CC_REQID_SOCK };
}
/* More is to be told of it. */
static inline bool requests_is_open(const struct requests *rs, const struct req *r)
{
	return !r->told || r->pub.end >= rs->working_to;
}
static inline uint64_t reqid_hash(struct cc_reqid id) { return map_mix2(id.id, id.ordinal); }
static inline uint64_t reqid_bit(struct cc_reqid id) { return 1ull << (reqid_hash(id) % 64); }
static inline struct cc_reqid touch_id(const struct sock_touch *s)
{
	return s->cookie ? reqid_of(s->cookie, s->ordinal) : (struct cc_reqid){ 0 };
}

/* The thread of the first send, where no SOCKOP tells it: of several the REQ knows the last one's,
 * and a first one by another thread than received is told. */
static inline uint32_t request_first_sender(const struct cc_rec_req *q)
{
	return q->first_send != q->last_send && q->recv_tid ? q->recv_tid : q->send_tid;
}

/* A few bytes that were never answered and with which the connection ended. */
bool request_is_farewell(const struct cc_rec_req *q);

/* @q, not told yet, began to be answered so lately that it is not known whether more follows. */
bool request_is_answered(const struct cc_rec_req *q);

/* A recv or send on a server socket: what "foreign" is judged by. */
static inline bool touch_is_server(const struct sock_touch *s)
{
	return !(s->flags & CC_SO_UPSTREAM);
}

#endif
