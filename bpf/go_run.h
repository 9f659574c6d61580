/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * go_run: which goroutine a thread runs, and since when. The end of a run is probed (it parks,
 * yields, ends); that the next one runs is seen at whatever the thread does next: a probe, a
 * socket, a switch, a beat of the clock. It began when the one before it had ended, when the thread
 * came back from waiting without any, and not before it could: so no probe is needed where
 * goroutines start, which is the place passed most often.
 *
 * Without probes (tier id) the goroutine is read from the thread's own storage, and told as it is
 * seen. That is the only way that shows coroutines, too.
 */
#ifndef CC_BPF_GO_RUN_H
#define CC_BPF_GO_RUN_H

#include "go.h"

/* ---- a wait that is over ------------------------------------------------------------------ */

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

/* Fills @r; its times in order. Returns its flags. */
static __always_inline __u8 go_episode_fill(struct cc_rec_go_episode *r, const struct cc_bpf_go *go,
					    const struct cc_bpf_go_state *s, __u64 in)
{
	bool io = s->state == CC_BPF_GO_PARKED &&
		  (s->what == CC_BPF_GO_IS_READ || s->what == CC_BPF_GO_IS_WRITE);
	__u8 flags = 0;

	if (s->state == CC_BPF_GO_NEW)
		flags |= CC_GE_BORN;
	if (s->state == CC_BPF_GO_YIELDED)
		flags |= CC_GE_PREEMPT;
	if (s->about)
		flags |= CC_GE_ABOUT;
	r->out = s->out;
	r->wake = s->wake;
	if (s->out > in || (s->wake && (s->wake < s->out || s->wake > in))) {
		r->out = s->out > in ? in : s->out;
		if (s->wake)
			r->wake = s->wake < r->out ? r->out : s->wake > in ? in : s->wake;
		flags |= CC_GE_CLAMPED;
	}
	r->goid = s->goid;
	r->tid = s->out_tid;
	r->waker_goid = s->waker_goid;
	r->waker_tid = s->waker_tid;
	r->wait_class = go_class(go, s);
	r->object = s->object;
	r->ustack = s->ustack;
	r->lost = s->lost;
	r->seq = s->seq;
	r->fd_id = io ? s->fd_id : 0;
	r->fd = s->fd;
	r->fd_kind = io ? s->fd_kind : 0;
	r->sock_ports = io ? s->sock_ports : 0;
	r->pad = 0;
	return flags;
}

/* What @s, of process @tgid, waited for is over: since @in it runs on thread @tid, 0: it is not
 * known where. Says whether that could be told. */
static __noinline int go_episode_send(const struct cc_bpf_go *go, struct cc_bpf_go_state *s,
				      __u32 tgid, __u32 tid, __u64 in)
{
	struct cc_rec_go_episode *r;
	__u8 flags;

	if (!go || !s)
		return 0;
	cnt_add(CC_CNT_GO_EPISODES, 1);
	r = events_reserve(sizeof(*r));
	if (!r) {
		cnt_add(CC_CNT_DROP_GO, 1);
		go_fold_lost(s, in > s->out ? in - s->out : 0);
		s->seq++;
		return 0;
	}
	flags = go_episode_fill(r, go, s, in);
	rec_init(&r->h, sizeof(*r), CC_REC_GO_EPISODE, flags,
		 s->state == CC_BPF_GO_PARKED ? s->reason : 0, in);
	r->tgid = tgid;
	r->in_tid = tid;
	s->lost = 0;
	s->seq++;
	events_commit(r, in);
	return 1;
}

/* The goroutine of @s ended at some time before @now without being seen to. Of what it did since
 * its last wait there is nothing to be said. */
static __always_inline void go_ended_unseen(const struct cc_bpf_go *go, struct cc_bpf_go_state *s,
					    __u32 tgid, __u64 now)
{
	if (s->state == CC_BPF_GO_PARKED && s->wake)
		go_episode_send(go, s, tgid, 0, s->wake);
	go_dead_send(s, tgid, s->run_tid, s->wake > s->seen ? s->wake : s->seen, now);
}

static __noinline struct cc_bpf_go_state *go_state_new(__u32 tgid, __u64 g)
{
	struct cc_bpf_go_key k = { .g = g, .tgid = tgid };
	struct cc_bpf_go_state zero = {};

	if (bpf_map_update_elem(&go_states, &k, &zero, BPF_ANY)) {
		cnt_add(CC_CNT_STORAGE_FAIL, 1);
		return NULL;
	}
	return bpf_map_lookup_elem(&go_states, &k);
}

/* The state of goroutine @goid, whose g is @g. The first time it is seen it is told. */
static __always_inline struct cc_bpf_go_state *go_know(struct cc_bpf_go *go, __u64 g, __u64 goid,
						       __u32 tgid, __u32 tid, __u64 now)
{
	struct cc_bpf_go_state *s = go_state(tgid, g);

	if (s && s->goid == goid)
		return s;
	if (s && !s->goid && s->born) { /* its maker was seen */
		s->goid = goid;
		go_task_send(go, g, s, tgid, s->out_tid, GO_TASK_BORN, now);
		return s;
	}
	if (s && s->goid)
		go_ended_unseen(go, s, tgid, now);
	s = go_state_new(tgid, g);
	if (!s)
		return NULL;
	s->goid = goid;
	go_task_send(go, g, s, tgid, tid, GO_TASK_SEEN, now);
	return s;
}

/* ---- runs --------------------------------------------------------------------------------- */

/* The run of @st's goroutine ended at @at without a probe: a system call that found no processor to
 * come back to, a coroutine, what the probes of this version do not show. */
static __noinline int go_left(struct task_struct *cur, struct task_state *st, __u64 at)
{
	struct cc_bpf_go_state *s;

	if (!st)
		return 0;
	s = go_state(cur->tgid, st->go_g);
	if (s && s->goid == st->go_run && s->state == CC_BPF_GO_RUNS &&
	    s->run_tid == (__u32)cur->pid) {
		s->out = s->wake = s->seen = at;
		s->out_tid = cur->pid;
		s->waker_goid = s->waker_tid = 0;
		s->object = s->ustack = 0;
		s->what = CC_BPF_GO_IS_PLAIN;
		s->state = CC_BPF_GO_YIELDED;
	}
	st->go_run = 0;
	st->go_free = at + 1; /* what is told as of @at was its doing */
	return 0;
}

/* The current thread runs goroutine @goid, whose g is @gp: what it did since it ran last is told.
 * NULL: no room.
 */
static __noinline struct cc_bpf_go_state *go_begins(struct task_state *st, struct cc_bpf_go *go,
						    __u64 gp, __u64 goid, __u64 now)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct cc_bpf_go_state *s;
	__u64 in;

	if (!st || !go)
		return NULL;
	s = go_know(go, gp, goid, cur->tgid, cur->pid, now);
	if (!s)
		return NULL;
	if (st->go_run)
		go_left(cur, st, st->go_last);
	if (s->state == CC_BPF_GO_RUNS) { /* seen for the first time, or left unseen elsewhere */
		go_on_send(cur, st, goid, now);
	} else {
		in = st->go_none && st->in > st->go_free ? st->in : st->go_free;
		if (in < s->wake)
			in = s->wake;
		if (in < s->out)
			in = s->out;
		if (go_episode_send(go, s, cur->tgid, cur->pid, in < now ? in : now))
			st->goid = goid; /* in_tid has told it */
		s->state = CC_BPF_GO_RUNS;
		s->about = 0;
		go_on_send(cur, st, goid, now);
	}
	s->run_tid = cur->pid;
	s->seen = now;
	st->go_run = goid;
	st->go_g = gp;
	st->go_last = now;
	st->go_none = 0;
	return s;
}

/* What @cur ran is off it since @now; a probe said so. */
static __always_inline void go_ends(struct task_state *st, __u64 now)
{
	st->go_run = 0;
	st->go_free = now;
	st->go_none = 0;
}

/* ---- a look without a probe --------------------------------------------------------------- */

/* As soon as gopark is hit a goroutine is parked here, and still is on its thread. */
static __always_inline bool go_in_gopark(struct task_struct *cur, const struct cc_bpf_go *go)
{
	__u64 ip = REGS_IP((struct pt_regs *)bpf_task_pt_regs(cur));

	/* behind the breakpoint, within the branch it stands on: the hit is still to come */
	if (go->repeats >> CC_BPF_GO_AT_PARK & 1 && ip == go->park_ip + 1)
		return false;
	return go->park_ip && ip - go->park_ip + 64 < 384;
}

/* @g: of the thread; @goid: its number, 0 if it is a scheduler's. */
static __noinline int go_look_probed(struct task_state *st, struct cc_bpf_go *go, __u64 g,
				     __u64 goid, __u64 now)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct cc_bpf_go_state *s;
	bool system = !goid;

	if (!st || !go)
		return 0;
	if (system) { /* whose stack is used for a goroutine, or for none */
		g = go_read(go_read(g, go->at.g_m), go->at.m_curg);
		goid = go_read(g, go->at.g_goid);
	}
	if (!goid) {
		if (st->go_run)
			go_left(cur, st, now);
		st->go_none = 1;
		return go_on_send(cur, st, 0, now), 0;
	}
	if (goid == st->go_run) {
		st->go_last = now;
		return 0;
	}
	s = go_state(cur->tgid, g);
	if (s && !s->goid && s->waker_goid == goid)
		return 0; /* it has just ended here */
	/* It may not have left yet; once it was made ready it had. A thread may be switched out at
	 * gopark's next hit, before the probe is run. */
	if (s && s->goid == goid && s->state == CC_BPF_GO_PARKED && !s->wake &&
	    (system || go_in_gopark(cur, go)))
		return 0;
	go_begins(st, go, g, goid, now);
	return 0;
}

/* Without probes: nothing is known but who runs now. */
static __noinline int go_look_bare(struct task_state *st, struct cc_bpf_go *go, __u64 g, __u64 goid,
				   __u64 now)
{
	struct task_struct *cur = bpf_get_current_task_btf();

	if (!st || !go)
		return 0;
	if (!goid) { /* the scheduler's stack: for a goroutine (cgo, a larger stack), or for none */
		g = go_read(go_read(g, go->at.g_m), go->at.m_curg);
		goid = go_read(g, go->at.g_goid);
	}
	st->go_none = !goid;
	if (goid == st->goid)
		return 0;
	if (goid)
		go_know(go, g, goid, cur->tgid, cur->pid, now);
	go_on_send(cur, st, goid, now);
	return 0;
}

/* What is known of the process of @cur, if that may be told; *g, *goid: of the thread. */
static __always_inline struct cc_bpf_go *go_look_at(struct task_struct *cur, struct task_state *st,
						    __u64 *g, __u64 *goid)
{
	struct cc_bpf_go *go = go_proc_cnt ? go_proc(cur, st) : NULL;

	if (!go)
		return NULL;
	*g = go_tls(go, cur);
	if (!*g)
		return NULL;
	*goid = go_read(*g, go->at.g_goid);
	if (go->good < CC_BPF_GO_CHECKS)
		go_check(go, cur, *g, *goid);
	return go_trusted(go) ? go : NULL;
}

/* Looks which goroutine @cur, the current task, runs. */
static __always_inline void go_look(struct task_struct *cur, struct task_state *st, __u64 now)
{
	__u64 g = 0, goid = 0;
	struct cc_bpf_go *go = go_look_at(cur, st, &g, &goid);

	if (!go)
		st->go_none = 0; /* not that we know */
	else if (!go->probed)
		go_look_bare(st, go, g, goid, now);
	else if (goid && goid == st->go_run)
		st->go_last = now;
	else
		go_look_probed(st, go, g, goid, now);
}

/* The same for work on a socket: who it is for is only known while it is done. */
static __inline int go_look_current(__u64 now)
{
	struct task_struct *cur;
	struct task_state *st;

	if (!go_proc_cnt)
		return 0;
	cur = bpf_get_current_task_btf();
	st = bpf_task_storage_get(&tasks, cur, 0, 0);
	if (st)
		go_look(cur, st, now);
	return 0;
}

#endif
