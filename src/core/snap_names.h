/* SPDX-License-Identifier: Apache-2.0 */
/* snap_names: what tasks, places and resources are called, as strings of one snapshot. Every number
 * is looked up in the engine once. Private to the snapshot's builder. */
#ifndef CC_SNAP_NAMES_H
#define CC_SNAP_NAMES_H

#include "aggregate.h"
#include "map.h"
#include "snapshot.h"
#include "strpool.h"

struct names {
	const struct engine *e;
	struct strpool pool;
	struct mem mem;
	struct map sites;     /* ustack key -> 1 + cc_str */
	struct map resources; /* -> 1 + cc_str */
	struct map tasks;     /* tid -> 1 + cc_str "comm/tid" */
	struct map stack_idx; /* key -> 2 + index in stacks[], 1: not known */
	struct map requests;  /* hash of id -> 1 + index in reqs[]: see names_request() */
	const struct cc_request *const *reqs;
	size_t req_cnt;
	VEC(struct snap_stack) stacks;
	VEC(struct snap_frame) frames;
	int err; /* sticky: -ENOMEM; names are "" from then on */
};

int names_init(struct names *n, const struct engine *e);
void names_done(struct names *n); /* also after stacks, frames and pool were taken */
int names_err(const struct names *n);

struct snap_task names_task(struct names *n, uint32_t tid, uint32_t tgid, cc_ns at);
cc_str names_task_label(struct names *n, uint32_t tid, cc_ns at); /* "comm/tid" */
cc_str names_site(struct names *n, uint64_t ustack);
cc_str names_resource(struct names *n, uint32_t resource);
cc_str names_waker(struct names *n, const struct cc_piece *p);  /* "worker/7" "softirq" "" */
cc_str names_holder(struct names *n, const struct cc_piece *p); /* "worker/7" "" */
cc_str names_reqid(struct names *n, struct cc_reqid id);
uint32_t names_stack(struct names *n, uint64_t key); /* 1 + index in stacks[]; 0: not known */

const struct cc_request *names_request(const struct names *n, struct cc_reqid id); /* or NULL */
cc_str names_kind(struct names *n, struct cc_reqid id); /* "nginx:8080" */

struct agg_names names_for_aggregate(struct names *n);

#endif
