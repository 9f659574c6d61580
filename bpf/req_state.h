/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * req_state: from socket operations to requests. Pure: a struct and its transitions, without maps,
 * helpers or clocks, so that the kernel programs and the unit tests run the same code.
 *
 * One req_state per socket. A request is the time from the data's arrival to the last byte of its
 * answer; nobody tells us where an answer ends, so a request is over when the next one is read,
 * when the connection ends, or, as a report that a later send takes back, after 50 ms without a
 * send.
 *
 *     IDLE --recv--> READING --send--> RESP --recv--> READING (the next request)
 *
 * Use: ask *_ends() whether the request so far must be told first (CC_END_*; 0: no), tell it with
 * req_fill() and req_told(), then apply the transition.
 *
 * Two threads may work on one socket at once, and nothing here is locked: pend_* are exchanged
 * atomically because a softirq writes them, the rest can at worst give one wrong row.
 */
#ifndef CC_REQ_STATE_H
#define CC_REQ_STATE_H

#include "event.h"
#include "handshake.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define RQ_QUIET_NS 50000000ull
#define RQ_TLS_HEAD 5        /* OpenSSL without read-ahead reads the head of a record alone */
#define RQ_TLS_HELLO_MIN 100 /* no ClientHello is smaller */
#define RQ_TLS_HELLO 517     /* what clients pad it to, with the record's head (RFC 7685) */
#define RQ_BUSY_STICKY 3     /* early data this often: the connection is multiplexed */
#define RQ_EAGER_SENDS 8
#define RQ_OWING_NS \
	1000000000ull /* UDP: what is owed is not answered any more after so long idle */

enum { RQ_IDLE = 0, RQ_READING = 1, RQ_RESP = 2 }; /* req_state.phase */

enum { /* req_state.role */
       RQ_ROLE_NEW = 0,
       RQ_ROLE_SERVER = 1,
       RQ_ROLE_UPSTREAM = 2, /* the target is the client */
       RQ_ROLE_LISTEN = 3,
       RQ_ROLE_OTHER = 4, /* looked at, not ours: a socket pair, datagrams of a client */
};

enum { /* req_state.conn: facts about the connection */
       RQ_C_TCP = 1 << 0,
       RQ_C_UNIX = 1 << 1,
       RQ_C_UDP = 1 << 2,
       RQ_C_LATE = 1 << 3,    /* older than our attach */
       RQ_C_CLOSED = 1 << 4,  /* we sent FIN, or it is gone: nothing more can be answered */
       RQ_C_EOF = 1 << 5,     /* the peer will send no more */
       RQ_C_LEFT = 1 << 6,    /* the last recv left announced data unread */
       RQ_C_OWED = 1 << 7,    /* a send was seen by write_seq; its event is still to come */
       RQ_C_PG = 1 << 8,      /* read by a process named postgres */
       RQ_C_CALLING = 1 << 9, /* upstream: a call was sent, its reply not read yet */
       RQ_C_FRESH = 1 << 10,  /* upstream: connected for a call that is not sent yet */
       RQ_C_SHARED = 1 << 11, /* LATE: several targets have it */
};

enum {                        /* req_state.pend_flags */
       RQ_P_ACCEPTQ = 1 << 0, /* came before accept() */
       RQ_P_EARLY = 1 << 1,   /* came before any answer to what was read before */
       RQ_P_LATE = 1 << 2,    /* came before our attach */
};

struct req_state {
	/* The first 64 bytes are all that a softirq touches. Data that came and was not read yet:
	 */
	__u64 pend_first, pend_last; /* first and last arrival; first 0: none */
	__u32 pend_seq;              /* TCP: rcv_nxt at pend_last */
	__u32 pend_flags;            /* RQ_P_* */

	/* the connection */
	__u32 conn;                  /* RQ_C_* */
	__u32 owner;                 /* tgid that last worked on it: known to be a target */
	__u32 copied_seq, write_seq; /* TCP: as of the last operation we saw */
	__u8 role, phase;            /* RQ_ROLE_*, RQ_IDLE.. */
	__u8 early_cnt, setup_left, resumed_cnt;
	__u8 owing_cnt; /* UDP: datagrams that were read before this one and not answered yet */
	__u16 local_port;
	__u64 last_recv_op; /* when the socket was last read from, for whichever request */
	__u64 cookie;
	__u64 netns;
	struct cc_addr peer;

	/* the request; the names are those of struct cc_rec_req */
	__u64 arrival, first_recv, last_recv, first_send, last_send;
	__u64 bytes_in, bytes_out;
	__u64 eagain_ns, eagain_since; /* since 0: not blocked in sending */
	__u32 ordinal;                 /* upstream: number of calls */
	__u32 what;
	__u32 recv_cnt, send_cnt, eagain_cnt;
	__u32 recv_tid, send_tid, tgid;
	__u32 told;      /* told as it is now */
	__u32 labelled;  /* ordinal that req_label() was last asked about */
	__u32 first_len; /* bytes of the first recv */
	__u32 up_votes, up_calls;
	__u32 up_call;      /* number of the call on up_cookie that was counted last */
	__u32 link_ordinal; /* upstream: with link_cookie, the request this call is for */
	__u64 link_cookie;  /* 0: not known */
	__u64 up_cookie;
	struct cc_addr up_peer;
	char comm[CC_COMM_LEN];
	__u32 walk_run; /* number of the iterator's run that told it last */
	__u64 udp_op;   /* when a datagram was last read or sent */
};

struct req_op {
	__u64 now, bytes;
	__u32 tid, tgid;
	__u32 copied_seq, write_seq; /* TCP */
	__u32 left;                  /* recv: something is still unread (not TCP: see req_left) */
	__u32 full;                  /* send: no room is left */
	__u32 proxy;                 /* CC_RQ_BY_PROXY: another works for tid; 0: it does */
};

static __always_inline void req_copy_addr(struct cc_addr *to, const struct cc_addr *from)
{
	__builtin_memcpy(to, from, sizeof(*to));
}

/* Data arrived. @queued: the connection was not accepted yet. Softirq, any CPU. */
static __always_inline void req_data(struct req_state *s, __u64 now, __u32 rcv_nxt, __u32 write_seq,
				     int queued)
{
	__u32 flags = queued ? RQ_P_ACCEPTQ : 0;

	if ((s->conn & RQ_C_TCP) && s->phase == RQ_READING && write_seq == s->write_seq)
		flags |= RQ_P_EARLY;
	s->pend_last = now;
	s->pend_seq = rcv_nxt;
	if (flags)
		s->pend_flags |= flags;
	if (!s->pend_first)
		__sync_val_compare_and_swap(&s->pend_first, 0, now);
}

static __always_inline int req_left(const struct req_state *s, const struct req_op *op)
{
	/* TCP: only data whose arrival was announced; the rest will be, and then sets pend_first */
	if (s->conn & RQ_C_TCP)
		return (__s32)(s->pend_seq - op->copied_seq) > 0;
	return op->left != 0;
}

/* Takes what is pending as read by @op; returns the arrival of its first byte, 0: not known. */
static __always_inline __u64 req_take(struct req_state *s, const struct req_op *op, __u32 *flags)
{
	__u64 first = __sync_lock_test_and_set(&s->pend_first, 0);
	__u64 last = s->pend_last;

	/* Set by a softirq after its data had already been read: stale. */
	if (first && !(s->conn & RQ_C_LEFT) && first < s->last_recv_op)
		first = last > s->last_recv_op ? last : 0;
	*flags = s->pend_flags;
	s->pend_flags = 0;
	if (req_left(s, op)) {
		s->conn |= RQ_C_LEFT;
		if (!(s->conn & RQ_C_UDP)) /* there before any answer to what is read now */
			s->pend_flags |= RQ_P_EARLY;
		__sync_val_compare_and_swap(&s->pend_first, 0, last);
	} else {
		s->conn &= ~(__u32)RQ_C_LEFT;
	}
	s->last_recv_op = op->now;
	return first < op->now ? first : op->now;
}

static __always_inline void req_begin(struct req_state *s, const struct req_op *op, __u64 arrival,
				      __u32 what)
{
	s->ordinal++;
	if (s->conn & RQ_C_LATE)
		what |= CC_RQ_ORDINAL_GE;
	if (s->conn & RQ_C_UNIX)
		what |= CC_RQ_UNIX;
	if (s->conn & RQ_C_UDP)
		what |= CC_RQ_UDP;
	if (s->early_cnt >= RQ_BUSY_STICKY)
		what |= CC_RQ_BUSY;
	s->what = what;
	s->arrival = arrival;
	s->first_recv = s->last_recv = s->first_send = s->last_send = 0;
	s->bytes_in = s->bytes_out = 0;
	s->eagain_ns = s->eagain_since = 0;
	s->recv_cnt = s->send_cnt = s->eagain_cnt = 0;
	s->recv_tid = s->send_tid = 0;
	s->tgid = op->tgid;
	s->told = 0;
	s->resumed_cnt = 0;
	s->first_len = 0;
	s->up_cookie = 0;
	s->up_votes = s->up_calls = 0;
	s->phase = RQ_READING; /* also when a send begins it, which then moves on */
}

/* A socket from before attach: a request that began at about @arrival is under way. */
static __always_inline void req_seed(struct req_state *s, const struct req_op *op, __u64 arrival)
{
	req_begin(s, op, arrival, CC_RQ_LATE);
}

/* A socket from before attach: what arrived at about @arrival was not read yet. */
static __always_inline void req_seed_unread(struct req_state *s, __u64 arrival)
{
	s->pend_first = s->pend_last = arrival;
	s->pend_flags = RQ_P_LATE;
	s->conn |= RQ_C_LEFT;
}

/* Over, by event time: not one more send for 50 ms, and none was waiting for room. */
static __always_inline int req_is_quiet(const struct req_state *s, __u64 now)
{
	return s->phase == RQ_RESP && !s->eagain_since && now > s->last_send + RQ_QUIET_NS;
}

/* Bytes beyond those we know were written: the answer is out, its event comes later on another
 * thread (a send ends after loopback delivery) or not at all (splice on old kernels). */
static __always_inline void req_saw_write(struct req_state *s, const struct req_op *op)
{
	s->first_send = s->last_send = op->now;
	s->bytes_out += op->write_seq - s->write_seq;
	s->send_cnt = 1;
	s->write_seq = op->write_seq;
	s->conn |= RQ_C_OWED;
	s->phase = RQ_RESP;
}

/* ---- set-up exchanges ---------------------------------------------------------------------- */

/* Does the connection's first exchange look like a TLS handshake? */
static __always_inline int req_tls_hello(const struct req_state *s)
{
	if (s->bytes_in < RQ_TLS_HELLO_MIN)
		return 0;
	return s->first_len == RQ_TLS_HEAD || s->bytes_in == RQ_TLS_HELLO || s->local_port == 443 ||
	       s->local_port == 8443;
}

/* How many set-up exchanges are still to come after this one, postgres. */
static __always_inline int req_pg_more(const struct req_state *s)
{
	if (s->bytes_in == 8 && s->bytes_out == 1) /* SSLRequest: S or N */
		return 1;
	if (s->bytes_out == 24) /* AuthenticationSASL, SCRAM-SHA-256 */
		return 2;
	return s->bytes_out == 13; /* AuthenticationMD5Password */
}

/* Labels TLS and postgres start-up exchanges by their sizes: no payload is ever looked at. */
static __always_inline void req_label(struct req_state *s)
{
	if (s->labelled == s->ordinal || (s->conn & RQ_C_LATE))
		return;
	s->labelled = s->ordinal;
	if (s->ordinal == 1) {
		if (s->conn & RQ_C_PG)
			s->setup_left = 1;
		else if (req_tls_hello(s))
			s->setup_left = 2; /* hello, finished */
	} else if (!(s->conn & RQ_C_PG) && !handshake_is_end13(s->bytes_in) &&
		   !handshake_is_end12(s->bytes_in)) {
		s->setup_left = 0; /* a short handshake, or its end came with the first request */
	}
	if (!s->setup_left)
		return;
	if (s->conn & RQ_C_PG)
		s->setup_left += req_pg_more(s);
	s->what |= CC_RQ_SETUP;
	s->setup_left--;
}

/* ---- recv --------------------------------------------------------------------------------- */

/* Did what is read next come before the exchange so far was answered? In a start-up it does by
 * right: a client sends its first request with the end of the handshake. */
static __always_inline int req_early(const struct req_state *s, __u32 flags)
{
	return (flags & RQ_P_EARLY) && !(s->what & CC_RQ_SETUP);
}

/* @op received > 0 bytes (UDP: >= 0). Why the request so far must be told first; 0: it need not. */
static __always_inline __u16 req_recv_ends(struct req_state *s, const struct req_op *op)
{
	if (s->phase == RQ_READING) {
		if (s->conn & RQ_C_UDP) { /* a datagram is a request: several are open */
			s->what |= CC_RQ_CONCURRENT;
			return CC_END_NEXT;
		}
		if (!(s->conn & RQ_C_TCP) || op->write_seq == s->write_seq)
			return 0;
		req_saw_write(s, op);
	}
	if (s->phase == RQ_IDLE)
		return 0;
	req_label(s);
	if (s->pend_first && req_early(s, s->pend_flags)) {
		s->what |= CC_RQ_BUSY;
		if (s->told)
			s->what |= CC_RQ_RETOLD;
		s->told = 0;
	}
	if (s->told)
		return 0;
	return req_is_quiet(s, op->now) ? CC_END_QUIET : CC_END_NEXT;
}

/* UDP: nothing says which datagram is answered, so an answer is given to the one that was read
 * last. While earlier ones are owed one it may be theirs: until as many were sent as were read. Is
 * that so for what is read now? */
static __always_inline int req_owing(struct req_state *s, __u64 now)
{
	if (now > s->udp_op + RQ_OWING_NS)
		s->owing_cnt = 0;
	s->udp_op = now;
	if (s->phase == RQ_READING && s->owing_cnt < 255)
		s->owing_cnt++;
	return s->owing_cnt != 0;
}

static __always_inline void req_repay(struct req_state *s, __u64 now)
{
	s->udp_op = now;
	if (s->send_cnt > 0 && s->owing_cnt)
		s->owing_cnt--;
}

/* Applies it. Returns 1 when REQ will not tell this operation by itself: a further recv. */
static __always_inline int req_recv(struct req_state *s, const struct req_op *op)
{
	int further = s->phase == RQ_READING && !(s->conn & RQ_C_UDP);
	__u32 flags, what = 0;
	__u64 arrival = req_take(s, op, &flags);

	s->copied_seq = op->copied_seq;
	if (!further) {
		if (flags & RQ_P_ACCEPTQ)
			what |= CC_RQ_ACCEPTQ;
		if (flags & RQ_P_LATE)
			what |= CC_RQ_LATE;
		if (s->phase == RQ_RESP && req_early(s, flags)) {
			what |= CC_RQ_BUSY;
			if (s->early_cnt < RQ_BUSY_STICKY)
				s->early_cnt++;
		}
		if ((s->conn & RQ_C_UDP) && req_owing(s, op->now))
			what |= CC_RQ_CONCURRENT;
		req_begin(s, op, arrival, what);
		s->first_recv = op->now;
		s->first_len = (__u32)op->bytes;
		s->recv_tid = op->tid;
	}
	s->what |= op->proxy;
	s->last_recv = op->now;
	s->bytes_in += op->bytes;
	s->recv_cnt++;
	return further;
}

/* recv of 0 bytes: the peer will send no more. A request that was read and not answered stays open
 * (a server may read to the end before it answers), except on unix sockets, whose close is unseen.
 */
static __always_inline __u16 req_eof(struct req_state *s, const struct req_op *op)
{
	__u32 flags;

	s->conn |= RQ_C_EOF;
	req_take(s, op, &flags);
	s->copied_seq = op->copied_seq; /* reading a FIN moves it by one */
	if (s->phase == RQ_IDLE || s->told)
		return 0;
	if (s->phase == RQ_READING && !(s->conn & RQ_C_UNIX))
		return 0;
	return req_is_quiet(s, op->now) ? CC_END_QUIET : CC_END_EOF;
}

/* ---- send --------------------------------------------------------------------------------- */

/* Bytes were read from the socket without recv since the last operation (splice, tcp_read_sock). */
static __always_inline int req_read_unseen(const struct req_state *s, const struct req_op *op)
{
	return (s->conn & (RQ_C_TCP | RQ_C_EOF)) == RQ_C_TCP && op->copied_seq != s->copied_seq;
}

static __always_inline int req_spliced(const struct req_state *s, const struct req_op *op)
{
	return s->phase != RQ_READING && req_read_unseen(s, op);
}

/* The event of a send that req_saw_write() has credited to the request before. */
static __always_inline int req_owed(const struct req_state *s, const struct req_op *op)
{
	return (s->conn & RQ_C_OWED) && op->write_seq == s->write_seq;
}

static __always_inline __u16 req_send_ends(const struct req_state *s, const struct req_op *op)
{
	if (!req_spliced(s, op) || s->phase != RQ_RESP || s->told)
		return 0;
	return req_is_quiet(s, op->now) ? CC_END_QUIET : CC_END_NEXT;
}

/* What a send without a recv before it belongs to. */
static __always_inline void req_begin_by_send(struct req_state *s, const struct req_op *op)
{
	__u32 flags = 0;

	if (s->phase == RQ_READING && req_read_unseen(s, op)) { /* the rest of its body */
		req_take(s, op, &flags);
		s->bytes_in += op->copied_seq - s->copied_seq;
		s->copied_seq = op->copied_seq;
	} else if (req_spliced(s, op)) {
		__u64 arrival = req_take(s, op, &flags);

		req_begin(s, op, arrival,
			  CC_RQ_SPLICE_IN | (flags & RQ_P_ACCEPTQ ? CC_RQ_ACCEPTQ : 0));
		s->bytes_in = op->copied_seq - s->copied_seq;
		s->copied_seq = op->copied_seq;
	} else if (s->phase == RQ_IDLE) { /* a banner, a push, or the answer to before our time */
		int late = (s->conn & RQ_C_LATE) && !s->ordinal;

		req_begin(s, op, 0, late ? CC_RQ_LATE : CC_RQ_UNSOLICITED);
	}
}

/* @op sent > 0 bytes. Returns 1 when REQ will not tell this operation by itself. */
static __always_inline int req_send(struct req_state *s, const struct req_op *op)
{
	int further;

	req_begin_by_send(s, op);
	if (req_is_quiet(s, op->now)) {
		s->what |= CC_RQ_RESUMED;
		if (s->resumed_cnt < 2)
			s->resumed_cnt++;
		if (s->resumed_cnt == 2)
			s->what |= CC_RQ_STREAM;
	}
	if (s->told) {
		s->told = 0;
		s->what |= CC_RQ_RETOLD;
	}
	if (s->eagain_since) {
		s->eagain_ns += op->now - s->eagain_since;
		s->eagain_since = 0;
	}
	further = s->send_cnt > 0 || (s->recv_cnt > 0 && op->tid != s->recv_tid);
	s->what |= op->proxy;
	if (s->conn & RQ_C_UDP)
		req_repay(s, op->now);
	if (!s->first_send)
		s->first_send = op->now;
	s->last_send = op->now;
	s->bytes_out += op->bytes;
	s->send_cnt++;
	s->send_tid = op->tid;
	s->write_seq = op->write_seq;
	s->conn &= ~(__u32)RQ_C_OWED;
	s->phase = RQ_RESP;
	return further;
}

/* After a send: CC_END_QUIET when it must be told at once, since the end of the connection cannot
 * be seen (unix, UDP). Later sends tell it again, ever less often. */
static __always_inline __u16 req_send_tells(const struct req_state *s)
{
	if (!(s->conn & (RQ_C_UNIX | RQ_C_UDP)) || s->told)
		return 0;
	return s->send_cnt <= RQ_EAGER_SENDS || !(s->send_cnt & (s->send_cnt - 1)) ? CC_END_QUIET
										   : 0;
}

/* A send found no room, or took only a part. */
static __always_inline void req_eagain(struct req_state *s, __u64 now)
{
	if (s->phase == RQ_IDLE)
		return;
	s->eagain_cnt++;
	if (!s->eagain_since)
		s->eagain_since = now;
}

/* ---- the end ------------------------------------------------------------------------------ */

/* We sent FIN, or the connection is gone. Returns the reason to tell the request with, or 0. */
static __always_inline __u16 req_close(struct req_state *s, __u16 why, __u64 now)
{
	__u16 end = 0;

	if (s->phase != RQ_IDLE && !s->told) {
		end = why;
		if (req_is_quiet(s, now))
			end = CC_END_QUIET;
		else if (s->phase == RQ_READING && (s->conn & RQ_C_EOF) && why == CC_END_FIN)
			end = CC_END_EOF; /* the peer went first */
	}
	s->conn |= RQ_C_CLOSED;
	if (!end) /* all is told */
		s->phase = RQ_IDLE;
	return end;
}

/* The connection ended while a request lay unread: begins it, to be told as never read. */
static __always_inline void req_begin_unread(struct req_state *s, const struct req_op *op)
{
	__u32 flags;
	__u64 arrival = req_take(s, op, &flags);

	req_begin(s, op, arrival,
		  CC_RQ_UNREAD | (flags & RQ_P_ACCEPTQ ? CC_RQ_ACCEPTQ : 0) |
			  (flags & RQ_P_LATE ? CC_RQ_LATE : 0));
}

/* By the refresh: is it over? @blocked: the socket has no room for more now. */
static __always_inline __u16 req_quiet(const struct req_state *s, __u64 now, int blocked)
{
	if (s->phase != RQ_RESP || s->told || (s->eagain_since && blocked))
		return 0;
	return now > s->last_send + RQ_QUIET_NS ? CC_END_QUIET : 0;
}

/* Writes the request as a record: all but the header. @end: CC_END_*; NONE: it still runs. */
static __always_inline void req_fill(struct req_state *s, __u16 end, struct cc_rec_req *r)
{
	if (end != CC_END_NONE)
		req_label(s);
	r->cookie = s->cookie;
	r->ordinal = s->ordinal;
	r->what = s->what;
	if (end != CC_END_NONE && !s->last_send)
		r->what |= CC_RQ_NO_REPLY;
	if (s->conn & RQ_C_SHARED && s->what & CC_RQ_LATE)
		r->what |= CC_RQ_SHARED;
	r->arrival = s->arrival;
	r->first_recv = s->first_recv;
	r->last_recv = s->last_recv;
	r->first_send = s->first_send;
	r->last_send = s->last_send;
	r->accepted = 0;
	r->bytes_in = s->bytes_in;
	r->bytes_out = s->bytes_out;
	r->recv_cnt = s->recv_cnt;
	r->send_cnt = s->send_cnt;
	r->eagain_ns = s->eagain_ns;
	r->eagain_cnt = s->eagain_cnt;
	r->recv_tid = s->recv_tid;
	r->send_tid = s->send_tid;
	r->tgid = s->tgid;
	r->local_port = s->local_port;
	r->pad[0] = r->pad[1] = r->pad[2] = 0;
	req_copy_addr(&r->peer, &s->peer);
	r->up_cookie = s->up_cookie;
	r->up_votes = s->up_votes;
	r->up_calls = s->up_calls;
	if (s->up_cookie)
		req_copy_addr(&r->up_peer, &s->up_peer);
	else
		__builtin_memset(&r->up_peer, 0, sizeof(r->up_peer));
	__builtin_memcpy(r->comm, s->comm, sizeof(r->comm));
	r->netns = s->netns;
}

/* Writes what lies unread after the last request as one that has not begun. Returns 0 if none does.
 */
static __always_inline int req_fill_unread(const struct req_state *s, struct cc_rec_req *r)
{
	r->arrival = s->pend_first;
	/* set after its data was read, see req_take() */
	if (!(s->conn & RQ_C_LEFT) && r->arrival < s->last_recv_op)
		return 0;
	r->cookie = s->cookie;
	r->ordinal = s->ordinal + 1;
	r->what = CC_RQ_UNREAD | (s->pend_flags & RQ_P_ACCEPTQ ? CC_RQ_ACCEPTQ : 0) |
		  (s->pend_flags & RQ_P_LATE ? CC_RQ_LATE : 0) |
		  (s->conn & RQ_C_LATE ? CC_RQ_ORDINAL_GE : 0) |
		  (s->conn & RQ_C_UNIX ? CC_RQ_UNIX : 0) | (s->conn & RQ_C_UDP ? CC_RQ_UDP : 0);
	r->tgid = s->owner;
	r->local_port = s->local_port;
	req_copy_addr(&r->peer, &s->peer);
	r->netns = s->netns;
	return r->arrival != 0;
}

/* Told. A closed connection has nothing more to come. */
static __always_inline void req_told(struct req_state *s)
{
	s->told = 1;
	if (s->conn & RQ_C_CLOSED)
		s->phase = RQ_IDLE;
}

#endif
