/* SPDX-License-Identifier: Apache-2.0 */
/* eval: what a Go server says of itself (CRITICAST_GT lines) against what models say, from the log
 * alone and from a trace. Each line is a question: for which request did this goroutine work now?
 */
#ifndef CC_EVAL_H
#define CC_EVAL_H

#include <stdio.h>

#include "engine.h"

/* id, name in reports. What a model must know to answer. */
#define EVAL_MECHANISMS(X)           \
	X(NONE, "none")              \
	X(SPAWN, "spawn-lineage")    \
	X(CHAN, "chan-work-handoff") \
	X(POOL, "conn-pool")         \
	X(MUTEX, "mutex")            \
	X(BROADCAST, "broadcast")    \
	X(NETPOLL, "netpoll")        \
	X(SELECT, "select")
#define X(id, name) EVAL_##id,
enum eval_mech { EVAL_MECHANISMS(X) EVAL_MECH_CNT };
#undef X

/* id, name in the log, mechanism. Others are facts without a mechanism. */
#define EVAL_SITES(X)                             \
	X(OTHER, "", NONE)                        \
	X(ENTRY, "handler-entry", NONE)           \
	X(EXIT, "handler-exit", NONE)             \
	X(SPAWN, "spawn", SPAWN)                  \
	X(SPAWN_WORK, "spawn-work", SPAWN)        \
	X(SPAWN_DONE, "spawn-done", SPAWN)        \
	X(JOIN_BEGIN, "join-begin", NONE)         \
	X(JOIN_END, "join-end", NONE)             \
	X(SEND, "worker-pool-send", CHAN)         \
	X(RECV, "worker-recv", CHAN)              \
	X(DONE, "worker-done", CHAN)              \
	X(ANSWER, "worker-pool-answer", NONE)     \
	X(POOL_WAIT, "conn-pool-wait", NONE)      \
	X(ACQUIRE, "conn-pool-acquire", POOL)     \
	X(RELEASE, "conn-pool-release", POOL)     \
	X(LOCK_WAIT, "mutex-wait", NONE)          \
	X(LOCK, "mutex-lock", MUTEX)              \
	X(UNLOCK, "mutex-unlock", MUTEX)          \
	X(BROADCAST, "broadcast-wake", BROADCAST) \
	X(NETPOLL, "netpoll-recv", NETPOLL)       \
	X(SELECT, "select-recv", SELECT)          \
	X(SELECT_ANSWER, "select-answer", SELECT)
#define X(id, name, mech) EVAL_AT_##id,
enum eval_site { EVAL_SITES(X) EVAL_SITE_CNT };
#undef X

struct eval_fact {
	uint64_t wall_ns; /* of CLOCK_REALTIME */
	uint64_t mono_ns; /* of CLOCK_MONOTONIC; 0: the log does not tell it */
	uint64_t at_ns;   /* the latter if all facts of the log have it, else the former */
	uint64_t goid;
	uint64_t line;  /* of the log */
	uint32_t token; /* index of its text, from 1 */
	uint8_t site;   /* enum eval_site */
	uint8_t mech;   /* enum eval_mech */
	bool has_extra; /* extra is a number */
	uint64_t extra; /* SEND, RECV, DONE: the item. ACQUIRE, RELEASE: which one. SPAWN_WORK: the
			 * goroutine that made it */
};

struct eval_log {
	struct eval_fact *v; /* by time */
	size_t cnt, cap;
	char **tokens; /* [0] is unused */
	size_t token_cnt, token_cap;
	uint64_t lines, ignored, bad; /* without the mark; with it, not readable */
};

/* Reads @in. Returns 0 or -ENOMEM. */
CC_NODISCARD int eval_log_read(FILE *in, struct eval_log *ret);
void eval_log_done(struct eval_log *l);

struct eval_claim {     /* a model's answer to one fact */
	uint32_t token; /* 0: it does not say */
	uint8_t confidence;
	bool ambiguous; /* it says that it cannot tell */
	bool asked;     /* false: the fact lies outside of what was traced */
};

struct eval_score {
	uint64_t facts, claimed, right, ambiguous;
};

struct eval_bucket { /* of calibration */
	uint64_t claims, right;
};

struct eval_mode_result {
	struct eval_score mech[EVAL_MECH_CNT];
	struct eval_score all; /* of those with a mechanism */
	struct eval_bucket by_confidence[101];
	uint64_t sure_wrong;     /* wrong with confidence H */
	double entropy_auc;      /* < 0: not known */
	uint64_t shared, single; /* goroutines it is of */
};

struct eval_path_result {
	uint64_t requests; /* with a true path and a traced one */
	double jaccard;    /* mean */
	uint64_t inexact;  /* paths that do not sum up */
};

struct eval_result {
	const struct eval_log *log;
	bool traced;
	uint64_t tokens_found;       /* requests of the log that the trace has */
	uint64_t tokens;             /* ... that the log has */
	bool mode[ENGINE_SERVE_CNT]; /* wanted */
	struct eval_mode_result alone[ENGINE_SERVE_CNT], live[ENGINE_SERVE_CNT];
	struct eval_path_result path;
};

const char *eval_mode_name(enum engine_serve mode);
int eval_mode_parse(const char *s); /* enum engine_serve, or -EINVAL */

/* A model's claims on the log alone: one for each fact. */
void eval_alone(const struct eval_log *l, enum engine_serve mode, struct eval_claim *claims);

/* The same from a trace. */
struct eval_live;
/* Reads the recording at @path. 0; -errno with a line in @err. */
CC_NODISCARD int eval_live_open(const char *path, const struct eval_log *l, struct cc_err *err,
				struct eval_live **ret);
void eval_live_free(struct eval_live *v);
void eval_live_claims(struct eval_live *v, enum engine_serve mode, struct eval_claim *claims);
uint64_t eval_live_found(const struct eval_live *v); /* tokens */
void eval_live_paths(struct eval_live *v, struct eval_path_result *ret);

/* The edges of a request's true path: who waited for whom, at least EVAL_EDGE_MIN long. */
#define EVAL_EDGE_MIN CC_US(200)
#define EVAL_EDGES_MAX 64
struct eval_edge {
	uint64_t waiter, waker; /* goids */
};
/* For the request @token, whose facts are at @idx[@cnt] by time. Returns how many. */
size_t eval_true_edges(const struct eval_log *l, const uint32_t *idx, size_t cnt,
		       struct eval_edge *ret);
/* Shared part of both; edges are counted once. */
double eval_jaccard(struct eval_edge *a, size_t a_cnt, struct eval_edge *b, size_t b_cnt);

CC_NODISCARD int eval_score_claims(const struct eval_log *l, const struct eval_claim *claims,
				   struct eval_mode_result *ret);
/* What is below the thresholds, as one line; NULL: nothing. @buf: for the line. */
const char *eval_failure(const struct eval_result *r, double min_precision, char *buf, size_t cap);

void eval_report_text(const struct eval_result *r, FILE *out);
void eval_report_json(const struct eval_result *r, FILE *out);

#endif
