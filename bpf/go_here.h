/* SPDX-License-Identifier: GPL-2.0-only */
/* go_here: where a uprobe hit: whether it counts, and for which goroutine. */
#ifndef CC_BPF_GO_HERE_H
#define CC_BPF_GO_HERE_H

#include "go_run.h"

struct go_here { /* where a probe hit */
	struct cc_bpf_go *go;
	struct task_struct *cur;
	struct task_state *st;
	__u64 g; /* the running g: a goroutine's or a scheduler's */
	__u64 now;
	__u64 ip;
};

/* Is this a hit of @site that counts, in a process that is traced and understood? */
static __always_inline bool go_here(struct go_here *h, struct pt_regs *ctx, __u32 site)
{
	h->cur = bpf_get_current_task_btf();
	h->st = bpf_task_storage_get(&tasks, h->cur, 0, 0);
	if (!h->st)
		return false;
	h->go = go_proc(h->cur, h->st);
	if (!h->go || !go_trusted(h->go))
		return false;
	cnt_add(CC_CNT_GO_HITS, 1);
	if (h->go->on_nop >> site & 1)
		cnt_add(CC_BPF_CNT_GO_NOPS, 1);
	if (h->go->repeats >> site & 1 && GO_BRANCH(ctx))
		return false;
	h->g = GO_G(ctx);
	h->ip = REGS_IP(ctx);
	h->now = bpf_ktime_get_ns();
	return true;
}

/* g of the goroutine on whose behalf the thread runs; 0: none. @g0: of the scheduler, which runs.
 */
static __always_inline __u64 go_curg(const struct go_here *h, __u64 g0)
{
	if (h->st->go_g0 != g0) {
		h->st->go_m = go_read(g0, h->go->at.g_m);
		h->st->go_g0 = g0;
	}
	return go_read(h->st->go_m, h->go->at.m_curg);
}

/* The goroutine of @g, 0: none, runs. That it does is noted. */
static __always_inline __u64 go_current_is(const struct go_here *h, __u64 g, __u64 goid)
{
	if (!goid)
		goid = go_read(g, h->go->at.g_goid);
	/* by its number: the one before may have had the same g, and have ended unseen */
	if (goid && goid == h->st->go_run)
		h->st->go_last = h->now;
	else if (goid)
		go_begins(h->st, h->go, g, goid, h->now);
	return goid;
}

/* The goroutine that the thread was seen to run last still is its: one look tells, as leaving a
 * thread clears g.m. @w is room. */
static __always_inline bool go_still_runs(const struct go_here *h, struct go_words *w)
{
	struct task_state *st = h->st;

	return st->go_run && st->go_g0 == h->g && go_read_words(w, st->go_g, GO_G_BYTES) &&
	       go_word(w, st->go_g, h->go->at.g_m, GO_G_BYTES) == st->go_m &&
	       go_word(w, st->go_g, h->go->at.g_goid, GO_G_BYTES) == st->go_run;
}

/* The goroutine on whose behalf the thread runs, also while its scheduler's stack is in use; 0:
 * none, so it is the scheduler's own doing: netpoll, a timer. @w is room. */
static __always_inline __u64 go_current(const struct go_here *h, struct go_words *w)
{
	__u64 g = h->g, goid = 0;

	if (go_still_runs(h, w)) {
		h->st->go_last = h->now;
		return h->st->go_run;
	}
	if (g == h->st->go_g0 || !(goid = go_read(g, h->go->at.g_goid)))
		g = go_curg(h, g);
	return go_current_is(h, g, goid);
}

/* The goroutine of @gp, which a probe says runs. NULL: none, or no room. */
static __always_inline struct cc_bpf_go_state *go_runs_here(const struct go_here *h, __u64 gp)
{
	struct cc_bpf_go_state *s;
	__u64 goid;

	if (gp == h->st->go_g && h->st->go_run) {
		s = go_state(h->cur->tgid, gp);
		if (s && s->goid == h->st->go_run && s->state == CC_BPF_GO_RUNS) {
			h->st->go_last = s->seen = h->now;
			return s;
		}
	}
	goid = go_read(gp, h->go->at.g_goid);
	return goid ? go_begins(h->st, h->go, gp, goid, h->now) : NULL;
}

#endif
