/* SPDX-License-Identifier: Apache-2.0 */
/* labels: what tasks, places and resources are called, as strings of one snapshot. Every number
 * is looked up in the engine once. Private to the snapshot's builder. */
#ifndef CC_LABELS_H
#define CC_LABELS_H

#include "aggregate.h"
#include "map.h"
#include "snapshot.h"
#include "strpool.h"

struct labels {
	const struct engine *e;
	struct strpool pool;
	struct mem mem;
	struct map sites;       /* ustack key -> 1 + cc_str */
	struct map resources;   /* -> 1 + cc_str */
	struct map comms;       /* tid and start time -> 1 + cc_str */
	struct map tasks;       /* the same -> 1 + cc_str "comm/tid" */
	struct map kinds;       /* comm and port -> 1 + cc_str */
	struct map stack_idx;   /* key -> 2 + index in stacks[], 1: not known */
	struct map mapping_idx; /* the engine's number -> 1 + index in mappings[] */
	VEC(struct snap_stack) stacks;
	VEC(struct snap_frame) frames;
	VEC(struct snap_mapping) mappings;
	int err; /* sticky: -ENOMEM; names are "" from then on */
};

void labels_init(struct labels *n, const struct engine *e);
void labels_done(struct labels *n); /* also after what it holds was taken */
int labels_err(const struct labels *n);

/* Keeps what @key is called in @m. */
cc_str labels_keep(struct labels *n, struct map *m, uint64_t key, cc_str name);

struct snap_task labels_task(struct labels *n, uint32_t tid, uint32_t tgid, cc_ns at);
cc_str labels_task_label(struct labels *n, uint32_t tid, cc_ns at); /* "comm/tid" */
cc_str labels_site(struct labels *n, uint64_t ustack);
cc_str labels_resource(struct labels *n, uint32_t resource);
cc_str labels_waker(struct labels *n, const struct cc_piece *p);  /* "worker/7" "softirq" "" */
cc_str labels_holder(struct labels *n, const struct cc_piece *p); /* "worker/7" "" */
cc_str labels_reqid(struct labels *n, struct cc_reqid id);
uint32_t labels_stack(struct labels *n, uint64_t key); /* 1 + index in stacks[]; 0: not known */

cc_str labels_kind(struct labels *n, struct cc_reqid id); /* "nginx:8080" */

/* @path is lent to them. */
struct agg_names labels_for_aggregate(struct labels *n, struct path_buf *path);

#endif
