/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter: `wait=lock lat>20ms peer=10.0.0.7:51122 at=12:04:31 port=8080 !conf=L site~cart`
 *
 *   expr = all { "|" all }      all = term { " " term }: space (and) binds closer than | (or)
 *   term = ["!"] key op value   op: = != ~ (contains, any case) > >= < <=
 *   value: up to a space or |; "in quotes" when it has these
 *
 * Keys: see FILTER_KEYS. A name of a wait class is a key as well: lock>10ms. What a request does
 * not have (no peer, no path) matches no term but a negated one.
 */
#ifndef CC_FILTER_H
#define CC_FILTER_H

#include "path.h"

enum filter_type {
	FILTER_TEXT, /* = != ~ */
	FILTER_NS,   /* = != > >= < <= with a duration */
	FILTER_NUM,  /* the same with a number */
	FILTER_CONF, /* the same with 0..100 or H, M, L */
	FILTER_WAIT, /* = != ~ with a class or group name */
	FILTER_TIME, /* = with a wall clock time: was going on then */
	FILTER_ID,   /* = != with an id as fmt_parse_reqid() reads it */
};

/* id, name, type, help: for the manual (scripts/gen-man) */
#define FILTER_KEYS(X)                                                                   \
	X(WAIT, "wait", FILTER_WAIT, "class or group of the dominant wait")              \
	X(ROOT, "root", FILTER_WAIT, "class or group of the root cause beneath it")      \
	X(LAT, "lat", FILTER_NS, "latency")                                              \
	X(PEER, "peer", FILTER_TEXT, "client: address, address:port")                    \
	X(CONN, "conn", FILTER_TEXT, "the same as peer")                                 \
	X(AT, "at", FILTER_TIME, "in progress at 12:04 or 12:04:31")                     \
	X(PORT, "port", FILTER_NUM, "local port")                                        \
	X(CONF, "conf", FILTER_CONF, "confidence: H, M, L or 0..100")                    \
	X(SITE, "site", FILTER_TEXT, "where the dominant wait was")                      \
	X(RESOURCE, "resource", FILTER_TEXT, "what it waited for")                       \
	X(WAKER, "waker", FILTER_TEXT, "who ended the dominant wait: worker/7, softirq") \
	X(HOLDER, "holder", FILTER_TEXT, "who had the resource")                         \
	X(COMM, "comm", FILTER_TEXT, "thread that served it")                            \
	X(TID, "tid", FILTER_NUM, "thread that received or sent it")                     \
	X(ID, "id", FILTER_ID, "request id: 7f3a#3, 0x7f3a")                             \
	X(STATE, "state", FILTER_TEXT, "done, in_flight, resumed")                       \
	X(LABEL, "label", FILTER_TEXT, "what is no plain request: stream, set-up, push") \
	X(UPSTREAM, "up", FILTER_TEXT, "upstream it called")                             \
	X(UNEXPLAINED, "unexplained", FILTER_NS, "time that is not explained")

#define X(id, name, type, help) FK_##id,
enum filter_key { FILTER_KEYS(X) FILTER_KEY_CNT };
#undef X

struct filter;

/* Parses. Returns 0; -EINVAL with the place and the reason in @err; -ENOMEM. Caller owns *ret,
 * untouched on error. Text without a term gives a filter that matches all. */
CC_NODISCARD int filter_parse(const char *text, struct cc_err *err, struct filter **ret);
void filter_free(struct filter *f);              /* NULL is a no-op */
const char *filter_text(const struct filter *f); /* as it was parsed */

/* What a filter asks of a request. Both may give "not there". */
struct filter_subject {
	const struct cc_request *r;
	int64_t wall_off_ns; /* wall clock of the user's zone - monotonic, for at= */
	/* Text of a FILTER_TEXT key, at most @cap bytes with the NUL. False: it has none. PEER may
	 * have an ordinal at its end ("10.0.0.7:51122#3"). */
	bool (*text)(void *ctx, const struct cc_request *r, enum filter_key key, char *buf,
		     size_t cap);
	void *ctx;
};
bool filter_match(const struct filter *f, const struct filter_subject *s);

/* True when @want names it: by id (an ordinal of 0 is any), or by the tid that received or sent. */
bool request_is(const struct cc_request *r, struct cc_reqid want);

/* Name of a key, for help texts; "" beyond the table. */
const char *filter_key_name(unsigned int key);

#endif
