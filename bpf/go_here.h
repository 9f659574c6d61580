/* SPDX-License-Identifier: GPL-2.0-only */
/* go_here: where a uprobe hit: whether it counts, and for which goroutine. */
#ifndef CC_BPF_GO_HERE_H
#define CC_BPF_GO_HERE_H

#include "go.h"

struct go_here { /* where a probe hit */
	struct cc_bpf_go *go;
	struct task_struct *cur;
	__u64 g; /* the running g: a goroutine's or a scheduler's */
	__u64 now;
};

/* Is this a hit of @site that counts, in a process that is traced and understood? */
static __always_inline bool go_here(struct go_here *h, struct pt_regs *ctx, __u32 site)
{
	h->cur = bpf_get_current_task_btf();
	h->go = go_proc(h->cur->tgid);
	if (!h->go || !go_trusted(h->go))
		return false;
	cnt_add(CC_CNT_GO_HITS, 1);
	if (h->go->repeats >> site & 1 && GO_BRANCH(ctx))
		return false;
	h->g = GO_G(ctx);
	h->now = bpf_ktime_get_ns();
	return true;
}

/* The goroutine on whose behalf the thread runs, also while its scheduler's stack is in use; 0:
 * none, so it is the scheduler's own doing: netpoll, a timer. */
static __always_inline __u64 go_current(const struct go_here *h)
{
	__u64 goid = go_read(h->g, h->go->at.g_goid), m;

	if (goid)
		return goid;
	m = go_read(h->g, h->go->at.g_m);
	return go_read(go_read(m, h->go->at.m_curg), h->go->at.g_goid);
}

#endif
