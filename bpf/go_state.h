/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * go_state: the life of a goroutine as the probes see it: made, parked, made ready, ended; that it
 * runs, go_run.h finds out.
 *
 * The runtime holds the lock of what a goroutine parks on until it is parked, so its state is
 * written by one thread at a time.
 */
#ifndef CC_BPF_GO_STATE_H
#define CC_BPF_GO_STATE_H

#include "go_file.h"
#include "go_item.h"
#include "go_stack.h"

#define STACK_MAX (1ull << 30) /* bytes, as the runtime allows */

/* fd of the pollDesc that @lock, its rg or wg, is in. They lie next to each other; the word before
 * fd is a pointer or 0, so what is found rg's distance before @lock tells which one it is. */
static __always_inline bool go_poll_writes(const struct cc_bpf_go *go, __u64 lock, __s32 *ret_fd)
{
	__u64 pd = lock - go->at.polldesc_rg, v[2] = {};

	if (bpf_probe_read_user(v, sizeof(v), (void *)pd))
		return false;
	if (go->at.polldesc_wg == go->at.polldesc_rg + 8 && go->at.polldesc_fd == 8 && v[0] &&
	    v[0] < 1ull << 31) {
		*ret_fd = (__s32)v[0];
		return true;
	}
	*ret_fd = (__s32)(go->at.polldesc_fd == 8 ? v[1] : go_read(pd, go->at.polldesc_fd));
	return false;
}

/* How the stack goes on above gopark, at its probe. */
static __always_inline __u64 go_stack_at_park(const struct go_here *h, struct cc_bpf_go_state *s,
					      struct pt_regs *ctx)
{
	struct go_frame top = {
		/* it ends where a frame has none above: its bounds need not be looked up */
		.lo = REGS_SP(ctx), .hi = REGS_SP(ctx) + STACK_MAX,
		.pc = REGS_IP(ctx), .bp = REGS_BP(ctx),
		.sp = REGS_SP(ctx), .seed = h->go->seed,
		.told = s->told,
	};

	if (!h->go->park_bare)
		return 0;
	s->told = go_stack(&top, h->now);
	return s->told;
}

static __always_inline void go_park(const struct go_here *h, struct pt_regs *ctx)
{
	__u64 lock = GO_ARG1(ctx);
	__u8 reason = (__u8)GO_ARG2(ctx);
	struct cc_bpf_go *go = h->go;
	struct cc_bpf_go_state *s = go_runs_here(h, h->g);

	if (!s)
		return;
	if (go->park_ip != REGS_IP(ctx))
		go->park_ip = REGS_IP(ctx);
	s->what = CC_BPF_GO_IS_PLAIN;
	s->object = 0;
	s->ustack = 0;
	switch (go->obj[reason & (CC_BPF_GO_REASONS - 1)]) {
	case CC_BPF_GO_OBJ_CHAN:
	case CC_BPF_GO_OBJ_SEND:
		s->object = lock > go->at.hchan_lock ? lock - go->at.hchan_lock : 0;
		break;
	case CC_BPF_GO_OBJ_SEMA:
		s->object = s->sema;
		if (s->sema && s->sema_mutex)
			s->what = CC_BPF_GO_IS_MUTEX;
		break;
	case CC_BPF_GO_OBJ_LOCK:
		s->object = lock;
		break;
	case CC_BPF_GO_OBJ_POLL: /* nobody is seen to end it, so all is asked now */
		s->what = CC_BPF_GO_IS_READ;
		s->object = lock - go->at.polldesc_rg;
		if (go_poll_writes(go, lock, &s->fd)) {
			s->what = CC_BPF_GO_IS_WRITE;
			s->object = lock - go->at.polldesc_wg;
		}
		/* how long it will last is not known; a client may well take its time */
		if (!go_file(s, go, h->now) || go_stack_allowed(cfg.stack_min_ns, h->now))
			s->ustack = go_stack_at_park(h, s, ctx);
		break;
	case CC_BPF_GO_OBJ_QUIET:
		if (cfg.stack_tier)
			s->ustack = go_stack_at_park(h, s, ctx);
		break;
	}
	s->sema = 0;
	s->reason = reason;
	s->out_tid = h->cur->pid;
	s->waker_goid = 0;
	s->waker_tid = 0;
	s->wake = 0;
	s->out = s->seen = h->now;
	s->state = CC_BPF_GO_PARKED;
	go_ends(h->st, h->now);
}

/* @gp, which waits, may run again, by goroutine @goid, 0: by none; @x: what that gives it, NULL:
 * that is to be found out; @g: its first words, room afterwards. */
static __always_inline void go_wake(const struct go_here *h, struct cc_bpf_go_state *s, __u64 goid,
				    __u64 gp, const struct go_given *x, struct go_words *g)
{
	__u32 obj;

	if (s->state != CC_BPF_GO_PARKED || s->wake)
		return;
	s->waker_goid = goid;
	s->waker_tid = h->cur->pid;
	s->wake = h->now;
	if (!s->ustack && go_stack_allowed(h->now - s->out, h->now))
		s->ustack = go_stack_parked(h->go, gp, g, h->now);
	obj = h->go->obj[s->reason & (CC_BPF_GO_REASONS - 1)];
	if (goid && x)
		go_gives(h, s, x, g);
	else if (goid && (obj == CC_BPF_GO_OBJ_CHAN || obj == CC_BPF_GO_OBJ_SEND ||
			  obj == CC_BPF_GO_OBJ_SELECT))
		go_gave(h, s, gp, go_word(g, gp, h->go->at.g_param, GO_G_BYTES),
			obj == CC_BPF_GO_OBJ_SEND || (obj == CC_BPF_GO_OBJ_SELECT && go_takes(h)),
			g);
}

/* The goroutine of @gp gives up its thread and wants to go on. */
static __always_inline void go_yield(const struct go_here *h, __u64 gp)
{
	if (go_runs_here(h, gp)) {
		go_left(h->cur, h->st, h->now);
		go_ends(h->st, h->now);
	}
}

/* The running goroutine @parent, 0: none, makes @gp, whose goid may not be known yet; @s: of the
 * one that had its g before, NULL: none. */
static __always_inline void go_born(const struct go_here *h, struct cc_bpf_go_state *s, __u64 gp,
				    __u64 parent)
{
	if (s && s->goid)
		go_ended_unseen(h->go, s, h->cur->tgid, h->now);
	if (s)
		__builtin_memset(s, 0, sizeof(*s));
	else
		s = go_state_new(h->cur->tgid, gp);
	if (!s)
		return;
	s->parent = parent;
	s->waker_goid = s->parent;
	s->waker_tid = h->cur->pid;
	s->out_tid = h->cur->pid;
	s->born = s->out = s->wake = s->seen = h->now;
	s->state = CC_BPF_GO_NEW;
}

static __always_inline void go_dead(const struct go_here *h, __u64 gp)
{
	__u64 seen = h->st->go_run ? h->st->go_last : h->st->go_free, ran = h->st->go_run;
	struct cc_bpf_go_state *s = go_runs_here(h, gp);

	go_ends(h->st, h->now);
	if (!s)
		return;
	if (seen < h->st->in)
		seen = h->st->in;
	if (seen < s->wake)
		seen = s->wake;
	h->go->ended++;
	h->go->unseen += ran != s->goid;
	h->go->late += h->now - seen > CC_BPF_GO_LATE_NS;
	if (s->lost) /* no record of its own will carry it any more */
		rec_lost(CC_REC_GO_EPISODE, 0, h->now);
	go_dead_send(s, h->cur->tgid, h->cur->pid, 0, h->now);
	s->waker_goid = s->goid;
	s->goid = s->born = 0; /* and stays: the next one to have this g takes it */
	s->state = CC_BPF_GO_RUNS;
}

#endif
