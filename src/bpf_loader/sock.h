/* SPDX-License-Identifier: Apache-2.0 */
/* sock: what the socket side (sock.c, sock_tier.c) keeps. Its hooks are in loader_int.h. */
#ifndef CC_SOCK_H
#define CC_SOCK_H

#include "loader_int.h"

#define SOCK_PROGS_MAX 3         /* of a tier */
#define SOCK_WALK_BUF (64 << 10) /* bytes read at once */

struct bpf_link;

struct sock_side {
	struct bpf_link *links[SOCK_PROGS_MAX + 1];
	size_t link_cnt;
	cc_ns refresh_due; /* by loader_now(); not before */
	char buf[SOCK_WALK_BUF];
};

/* One run of the iterator over the files of the targets. @mode: SOCK_WALK_*; @fn NULL: its records
 * are not wanted. */
int sock_walk(struct loader *l, uint32_t mode, cc_record_fn *fn, void *ctx);

#endif
