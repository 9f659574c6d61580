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

#include "go_item.h"
#include "go_stack.h"
#include "look_file.h"

#define GO_REASON_IO 2 /* in every version */

/* fd of the pollDesc that @lock, its rg or wg, is in. They lie next to each other; the word before
 * fd is a pointer or 0, so what is found rg's distance before @lock tells which one it is. */
static __always_inline bool go_poll_writes(const struct cc_bpf_go *go, __u64 lock, __s32 *ret_fd)
{
	__u64 pd = lock - go->at.polldesc_rg, v = go_read(pd, 0);

	if (go->at.polldesc_wg == go->at.polldesc_rg + 8 && go->at.polldesc_fd == 8 && v &&
	    v < 1ull << 31) {
		*ret_fd = (__s32)v;
		return true;
	}
	*ret_fd = (__s32)go_read(pd, go->at.polldesc_fd);
	return false;
}

/* What s->fd is. A connection's goroutine mostly waits for the same socket again: then its cookie
 * is all that is looked at. */
static __always_inline void go_file(struct task_struct *cur, struct cc_bpf_go_state *s, __u64 now)
{
	struct socket *so;
	struct fd_info x;
	struct sock *sk;
	struct file *f;

	if (s->fd_id && s->fd_kind >= CC_FD_SOCK_TCP && s->fd_kind <= CC_FD_SOCK_OTHER) {
		f = fd_file(cur, (__u32)s->fd);
		so = f ? (struct socket *)BPF_CORE_READ(f, private_data) : NULL;
		sk = so ? BPF_CORE_READ(so, sk) : NULL;
		if (sk && (__u64)BPF_CORE_READ(sk, __sk_common.skc_cookie.counter) == s->fd_id)
			return;
	}
	fd_look(&x, cur, (__u32)s->fd, now);
	s->fd_id = x.id;
	s->fd_kind = x.kind;
	s->sock_ports = x.ports;
}

/* How the stack goes on above gopark, at its probe. */
static __always_inline __u64 go_stack_at_park(const struct go_here *h, struct pt_regs *ctx)
{
	struct go_frame top = {
		.pc = REGS_IP(ctx), .bp = REGS_BP(ctx), .sp = REGS_SP(ctx), .seed = h->go->seed
	};
	__u64 bounds[2];

	if (!cfg.stack_tier || !h->go->park_bare ||
	    bpf_probe_read_user(bounds, sizeof(bounds), (void *)(h->g + h->go->at.g_stack)))
		return 0;
	top.lo = bounds[0];
	top.hi = bounds[1];
	return go_stack(&top, h->now);
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
		go_file(h->cur, s, h->now);
		s->ustack = go_stack_at_park(h, ctx);
		break;
	case CC_BPF_GO_OBJ_QUIET:
		s->ustack = go_stack_at_park(h, ctx);
		break;
	}
	s->sema = 0;
	s->reason = reason;
	s->out_tid = h->cur->pid;
	s->waker_goid = 0;
	s->waker_tid = 0;
	s->wake = 0;
	s->out = h->now;
	s->state = CC_BPF_GO_PARKED;
	go_ends(h->st, h->now);
}

/* @gp may run again. */
static __always_inline void go_wake(const struct go_here *h, __u64 gp)
{
	struct cc_bpf_go_state *s = go_state(h->cur->tgid, gp);
	__u64 goid = go_current(h);
	struct go_words g;
	bool slow;
	__u32 obj;

	if (!s || s->state != CC_BPF_GO_PARKED || s->wake)
		return;
	s->waker_goid = goid;
	s->waker_tid = h->cur->pid;
	s->wake = h->now;
	slow = !s->ustack && cfg.stack_tier && h->now - s->out >= cfg.stack_min_ns;
	obj = h->go->obj[s->reason & (CC_BPF_GO_REASONS - 1)];
	if (obj != CC_BPF_GO_OBJ_CHAN && obj != CC_BPF_GO_OBJ_SELECT)
		goid = 0;
	if ((!slow && !goid) || !go_read_words(&g, gp, GO_G_BYTES))
		return;
	if (slow)
		s->ustack = go_stack_parked(h->go, gp, &g, h->now);
	if (goid)
		go_gave(h, s, gp, go_word(&g, gp, h->go->at.g_param, GO_G_BYTES), &g);
}

/* The goroutine of @gp gives up its thread and wants to go on. */
static __always_inline void go_yield(const struct go_here *h, __u64 gp)
{
	if (go_runs_here(h, gp)) {
		go_left(h->cur, h->st, h->now);
		go_ends(h->st, h->now);
	}
}

/* The running goroutine, that of @curg, makes @gp, whose goid may not be known yet. */
static __always_inline void go_born(const struct go_here *h, __u64 curg, __u64 gp)
{
	struct cc_bpf_go_state *s = go_state(h->cur->tgid, gp);

	if (s)
		__builtin_memset(s, 0, sizeof(*s)); /* that of a goroutine that ended */
	else
		s = go_state_new(h->cur->tgid, gp);
	if (!s)
		return;
	s->parent = curg ? go_current_is(h, curg, 0) : 0;
	s->waker_goid = s->parent;
	s->waker_tid = h->cur->pid;
	s->out_tid = h->cur->pid;
	s->born = s->out = s->wake = h->now;
	s->state = CC_BPF_GO_NEW;
}

static __always_inline void go_dead(const struct go_here *h, __u64 gp)
{
	struct cc_bpf_go_state *s = go_runs_here(h, gp);

	go_ends(h->st, h->now);
	if (!s)
		return;
	if (s->lost) /* no record of its own will carry it any more */
		rec_lost(CC_REC_GO_EPISODE, 0, h->now);
	go_task_send(NULL, gp, s, h->cur->tgid, h->cur->pid, GO_TASK_DEAD, h->now);
	s->goid = s->born = 0; /* and stays: the next one to have this g takes it */
	s->state = CC_BPF_GO_RUNS;
}

#endif
