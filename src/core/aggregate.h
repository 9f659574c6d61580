/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aggregate: many requests to rows: percentiles, waits, blame, slow versus typical. Names are
 * numbers (of a string pool) that come from the caller's callbacks, 0 for "none".
 *
 * Percentiles are by nearest rank. Streams, and what is no single request (CC_RQ_UNTIMED), are in
 * none of them. A request counts as many as its weight says.
 */
#ifndef CC_AGGREGATE_H
#define CC_AGGREGATE_H

#include "snapshot.h"

struct agg_names {
	void *ctx;
	struct path_buf *path; /* room for one path at a time; NULL: none of them is packed */
	cc_str (*site)(void *ctx, const struct cc_piece *p);
	cc_str (*resource)(void *ctx, const struct cc_piece *p);
	cc_str (*waker)(void *ctx, const struct cc_piece *p);
	cc_str (*holder)(void *ctx, const struct cc_piece *p);
	/* kind of a request by its id, as "nginx:8080" */
	cc_str (*kind)(void *ctx, struct cc_reqid id);
	cc_str (*task)(void *ctx, const struct cc_piece *p);   /* whose time it is */
	cc_str (*device)(void *ctx, const struct cc_piece *p); /* no task ended it: "disk fsync" */
	/* a task of another process, as "backup[911]" */
	cc_str (*process)(void *ctx, uint32_t tid, uint32_t tgid);
};

/* ---- by latency ---- */

struct agg_sorted { /* all but untimed ones, by latency, the shortest first; ties by end, id */
	const struct cc_request **r;
	size_t cnt;
	uint64_t weight; /* requests that they stand for: ranks are of these */
	cc_ns p95;       /* from here on a request is slow; the caller may know it better */
};
CC_NODISCARD int agg_sort(const struct cc_request *const *r, size_t cnt, struct agg_sorted *ret);
void agg_sorted_done(struct agg_sorted *s);

cc_ns request_latency(const struct cc_request *r);

/* Smallest latency that @permille of 1000 are not above; 0 of none. */
cc_ns agg_percentile(const struct agg_sorted *s, unsigned int permille);

/* Requests at or above the p95, and the median ones: ranks 40 % to 60 %. */
struct agg_range {
	size_t from, to; /* in agg_sorted.r, [from, to) */
};
struct agg_range agg_slow(const struct agg_sorted *s);
struct agg_range agg_typical(const struct agg_sorted *s);

/* ns by WAIT_GROUPS of depth 0. */
void agg_mix(const struct agg_sorted *s, struct agg_range range, cc_ns ret[9]);

/* Class by class, mean ns per request; what slow requests have most more of comes first. Writes at
 * most WAIT_CLASS_CNT rows, returns how many. */
uint32_t agg_slow_typical(const struct agg_sorted *s, struct snap_slow_typical *ret);

/* Share of H, M, L. */
void agg_conf_share(const struct cc_request *const *r, size_t cnt, double ret[3]);

/* ---- waits ---- */

struct agg_waits_opts {
	enum snap_group group;  /* rows: one per class and this */
	bool root_causes;       /* the deepest known pieces, not depth 0 */
	uint8_t min_confidence; /* pieces below it are unknown, without names */
	uint32_t max_rows;
};

/* Rows by total, the largest first. Columns that the rows are not made by hold what more than half
 * of the row's time agrees on, else 0. what_if_ns is "at most": all of it, but for what another one
 * that was begun together with whom it waited for took as well. Caller frees *ret. */
CC_NODISCARD int agg_waits(const struct cc_request *const *r, size_t cnt,
			   const struct agg_waits_opts *o, const struct agg_names *n,
			   struct snap_wait **ret, uint32_t *ret_cnt);

/* ---- who waits for whom ---- */

struct agg_graph {               /* the caller frees edges, groups, members and shared */
	struct snap_edge *edges; /* the heaviest first */
	struct snap_wait_group *groups;
	cc_str *members;
	struct snap_shared *shared; /* the most waited for first */
	uint32_t edge_cnt, group_cnt, member_cnt, shared_cnt;
	uint32_t false_wakes; /* woken, looked, and waited for the same thing again: one wait */
};
CC_NODISCARD int agg_graph(const struct cc_request *const *r, size_t cnt, uint32_t max_rows,
			   const struct agg_names *n, struct agg_graph *ret);

/* ---- blame ---- */

/* Whose work or hold the time of victims went to: the request that a piece served or waited behind,
 * else another process that held, woke or had the CPU. Time without such a culprit is in no row.
 * Class is the one the victim felt (depth 0). Largest first. Caller frees *ret. */
CC_NODISCARD int agg_blame(const struct cc_request *const *r, size_t cnt, uint32_t max_rows,
			   const struct agg_names *n, struct snap_blame **ret, uint32_t *ret_cnt);

#endif
