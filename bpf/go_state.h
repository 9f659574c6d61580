/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * go_state: the life of a goroutine as the probes see it: made, run, parked, made ready, run again,
 * ended. One GO_EPISODE for each wait, when it runs again.
 *
 * The runtime holds the lock of what a goroutine parks on until it is parked, so its state is
 * written by one thread at a time.
 */
#ifndef CC_BPF_GO_STATE_H
#define CC_BPF_GO_STATE_H

#include "go_here.h"
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

static __always_inline void go_park(const struct go_here *h, __u64 lock, __u8 reason)
{
	const struct cc_bpf_go *go = h->go;
	__u64 goid = go_read(h->g, go->at.g_goid);
	struct cc_bpf_go_state *s;

	if (!goid)
		return;
	s = go_know(go, h->g, goid, h->cur->tgid, h->cur->pid, h->now);
	if (!s)
		return;
	s->what = CC_BPF_GO_IS_PLAIN;
	s->object = 0;
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
	case CC_BPF_GO_OBJ_POLL:
		s->what = CC_BPF_GO_IS_READ;
		s->object = lock - go->at.polldesc_rg;
		if (go_poll_writes(go, lock, &s->fd)) {
			s->what = CC_BPF_GO_IS_WRITE;
			s->object = lock - go->at.polldesc_wg;
		}
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
}

/* @gp may run again. */
static __always_inline void go_wake(const struct go_here *h, __u64 gp)
{
	struct cc_bpf_go_state *s = go_state(h->cur->tgid, gp);

	if (!s || s->state != CC_BPF_GO_PARKED || s->wake)
		return;
	s->waker_goid = go_current(h);
	s->waker_tid = h->cur->pid;
	s->wake = h->now;
}

static __always_inline void go_fold_lost(struct cc_bpf_go_state *s, __u64 ns)
{
	__u64 cnt = CC_LOST_CNT(s->lost) + 1;

	ns += CC_LOST_NS(s->lost);
	s->lost = CC_LOST(cnt < CC_LOST_CNT_MAX ? cnt : CC_LOST_CNT_MAX,
			  ns < CC_LOST_NS_MAX ? ns : CC_LOST_NS_MAX);
}

static __always_inline __u32 go_class(const struct cc_bpf_go *go, const struct cc_bpf_go_state *s)
{
	if (s->state != CC_BPF_GO_PARKED)
		return 0;
	if (s->what == CC_BPF_GO_IS_WRITE)
		return go->cls_write;
	if (s->what == CC_BPF_GO_IS_MUTEX)
		return go->cls_mutex;
	return go->cls[s->reason & (CC_BPF_GO_REASONS - 1)];
}

static __always_inline void go_episode_fill(struct cc_rec_go_episode *r, const struct cc_bpf_go *go,
					    const struct cc_bpf_go_state *s, __u32 tgid)
{
	r->goid = s->goid;
	r->tgid = tgid;
	r->tid = s->out_tid;
	r->out = s->out;
	r->wake = s->wake;
	r->waker_goid = s->waker_goid;
	r->waker_tid = s->waker_tid;
	r->wait_class = go_class(go, s);
	r->object = s->object;
	r->ustack = 0;
	r->lost = s->lost;
	r->in_tid = 0;
	r->seq = s->seq;
	r->fd_id = 0;
	r->fd = s->fd;
	r->fd_kind = 0;
	r->sock_ports = 0;
	r->pad = 0;
}

static __always_inline __u8 go_episode_flags(struct cc_bpf_go_state *s, __u64 now)
{
	__u8 flags = 0;

	if (s->state == CC_BPF_GO_NEW)
		flags |= CC_GE_BORN;
	if (s->state == CC_BPF_GO_YIELDED)
		flags |= CC_GE_PREEMPT;
	if (s->out > now || (s->wake && (s->wake < s->out || s->wake > now))) {
		if (s->out > now)
			s->out = now;
		if (s->wake)
			s->wake = s->wake < s->out ? s->out : s->wake > now ? now : s->wake;
		flags |= CC_GE_CLAMPED;
	}
	return flags;
}

/* What s->fd is. A connection's goroutine mostly waits for the same socket again: then its cookie
 * is all that is looked at. */
static __always_inline void go_file(struct task_struct *cur, struct cc_bpf_go_state *s)
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
	fd_look(&x, cur, (__u32)s->fd, s->out);
	s->fd_id = x.id;
	s->fd_kind = x.kind;
	s->sock_ports = x.ports;
}

/* The wait of @s ended: it runs again. Says whether that could be told. */
static __always_inline bool go_episode_send(const struct go_here *h, struct cc_bpf_go_state *s,
					    __u64 gp)
{
	__u8 flags = go_episode_flags(s, h->now);
	struct cc_rec_go_episode *r;
	__u64 ustack = 0;
	bool io = s->what == CC_BPF_GO_IS_READ || s->what == CC_BPF_GO_IS_WRITE;

	cnt_add(CC_CNT_GO_EPISODES, 1);
	if (s->state == CC_BPF_GO_PARKED) {
		if (io)
			go_file(h->cur, s);
		if (h->now - s->out >= cfg.stack_min_ns && cfg.stack_tier)
			ustack = go_stack(gp, h->now);
	}
	r = bpf_ringbuf_reserve(&events, sizeof(*r), 0);
	if (!r) {
		cnt_add(CC_CNT_DROP_GO, 1);
		go_fold_lost(s, h->now - s->out);
		s->seq++;
		return false;
	}
	rec_init(&r->h, sizeof(*r), CC_REC_GO_EPISODE, flags,
		 s->state == CC_BPF_GO_PARKED ? s->reason : 0, h->now);
	go_episode_fill(r, h->go, s, h->cur->tgid);
	r->ustack = ustack;
	r->in_tid = h->cur->pid;
	r->fd_id = io ? s->fd_id : 0;
	r->fd_kind = io ? s->fd_kind : 0;
	r->sock_ports = io ? s->sock_ports : 0;
	s->lost = 0;
	s->seq++;
	events_commit(r, h->now);
	return true;
}

/* Thread h->cur is about to run @gp. */
static __always_inline void go_run(const struct go_here *h, __u64 gp)
{
	__u64 goid = go_read(gp, h->go->at.g_goid);
	struct task_state *st = bpf_task_storage_get(&tasks, h->cur, 0, 0);
	struct cc_bpf_go_state *s;

	if (!goid || !st)
		return;
	s = go_know(h->go, gp, goid, h->cur->tgid, h->cur->pid, h->now);
	if (s && s->state != CC_BPF_GO_RUNS) {
		if (go_episode_send(h, s, gp))
			st->goid = goid; /* in_tid has told it */
		s->state = CC_BPF_GO_RUNS;
	}
	go_on_send(h->cur, st, goid, h->now);
}

/* The running goroutine makes @gp, whose goid may not be known yet. */
static __always_inline void go_born(const struct go_here *h, __u64 gp)
{
	struct cc_bpf_go_state *s = go_state(h->cur->tgid, gp);

	if (s)
		__builtin_memset(s, 0, sizeof(*s)); /* that of a goroutine that ended */
	else
		s = go_state_new(h->cur->tgid, gp);
	if (!s)
		return;
	s->parent = go_current(h);
	s->waker_goid = s->parent;
	s->waker_tid = h->cur->pid;
	s->out_tid = h->cur->pid;
	s->born = s->out = s->wake = h->now;
	s->state = CC_BPF_GO_NEW;
}

static __always_inline void go_dead(const struct go_here *h, __u64 gp)
{
	struct cc_bpf_go_state *s = go_state(h->cur->tgid, gp);

	if (!s || !s->goid)
		return;
	if (s->lost) /* no record of its own will carry it any more */
		rec_lost(CC_REC_GO_EPISODE, 0, h->now);
	go_task_send(NULL, gp, s, h->cur->tgid, h->cur->pid, GO_TASK_DEAD, h->now);
	s->goid = s->born = 0; /* and stays: the next one to have this g takes it */
	s->state = CC_BPF_GO_RUNS;
}

#endif
