/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * go: what is known of Go processes and of their goroutines, and how it is told.
 *
 * Nothing is told before the offsets have led from some threads' g to its m and back to the thread;
 * nothing any more once they fail to.
 */
#ifndef CC_BPF_GO_H
#define CC_BPF_GO_H

#include "task.h"

#include "go_config.h"

/* Go processes among the targets: tgid -> where in go_known it is. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CC_BPF_GO_PROCS);
	__type(key, __u32);
	__type(value, __u32);
} go_procs __weak SEC(".maps");

/* What is known of them. A thread remembers the place of its process: an array costs next to
 * nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CC_BPF_GO_PROCS);
	__type(key, __u32);
	__type(value, struct cc_bpf_go);
} go_known __weak SEC(".maps");

/* One for each g that was seen. The runtime uses them again, so they are as many as goroutines ever
 * lived at once. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, struct cc_bpf_go_key);
	__type(value, struct cc_bpf_go_state);
} go_states __weak SEC(".maps");

/* How many processes are in go_procs: a server in another language pays one load for all of this.
 */
volatile __u32 go_proc_cnt __weak;

/* What is known of the process of @cur, the current task; NULL: it is no Go process. */
static __always_inline struct cc_bpf_go *go_proc(struct task_struct *cur, struct task_state *st)
{
	__u32 tgid = cur->tgid, slot = st->go_slot, *at;
	struct cc_bpf_go *go = bpf_map_lookup_elem(&go_known, &slot);

	if (go && go->tgid == tgid)
		return go;
	at = bpf_map_lookup_elem(&go_procs, &tgid);
	if (!at)
		return NULL;
	slot = *at;
	go = bpf_map_lookup_elem(&go_known, &slot);
	if (!go || go->tgid != tgid)
		return NULL;
	st->go_slot = slot;
	return go;
}

/* Process @tgid is another program now. */
static __always_inline void go_proc_forget(__u32 tgid)
{
	__u32 *at = bpf_map_lookup_elem(&go_procs, &tgid), slot;
	struct cc_bpf_go *go;

	if (!at)
		return;
	slot = *at;
	go = bpf_map_lookup_elem(&go_known, &slot);
	if (go && go->tgid == tgid)
		go->tgid = 0;
	bpf_map_delete_elem(&go_procs, &tgid);
}

static __always_inline __u64 go_read(__u64 base, __u32 off)
{
	__u64 v = 0;

	if (base && bpf_probe_read_user(&v, sizeof(v), (void *)(base + off)))
		return 0;
	return v;
}

/* The first words of a g, a sudog or a hchan. The kernel checks so much before it copies from user
 * space that 192 bytes cost hardly more than 8. What lies behind the thing must not be read, as
 * that page may not be there: so many bytes each of them has in every version. */
#define GO_G_BYTES 192u
#define GO_SUDOG_BYTES 96u
#define GO_HCHAN_BYTES 96u
struct go_words {
	__u64 w[GO_G_BYTES / 8];
};

/* @bytes: a constant, one of the above, in both. */
static __always_inline bool go_read_words(struct go_words *b, __u64 base, __u32 bytes)
{
	return base && !bpf_probe_read_user(b->w, bytes, (void *)base);
}

/* The word at @off of what was read from @base. */
static __always_inline __u64 go_word(const struct go_words *b, __u64 base, __u32 off, __u32 bytes)
{
	__u32 i = off / 8;

	return i < bytes / 8 && off % 8 == 0 ? b->w[i] : go_read(base, off);
}

static __always_inline __u64 go_hash(__u64 h, __u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* The g of @cur, the current task; 0: not a thread of the Go runtime. */
static __always_inline __u64 go_tls(const struct cc_bpf_go *go, struct task_struct *cur)
{
	__u64 tp = THREAD_POINTER(cur);

	return tp ? go_read(tp + (__u64)go->tls_off, 0) : 0;
}

static __always_inline bool go_trusted(const struct cc_bpf_go *go)
{
	return go->good >= CC_BPF_GO_GOOD_MIN && go->bad <= go->good / CC_BPF_GO_BAD_SHARE;
}

/* Does @g, of the current task, lead back to it? */
static __always_inline void go_check(struct cc_bpf_go *go, struct task_struct *cur, __u64 g,
				     __u64 goid)
{
	__u32 level = BPF_CORE_READ(cur, thread_pid, level);
	__u64 m = go_read(g, go->at.g_m), id;
	struct upid u = { .nr = cur->pid };

	if (level)
		bpf_probe_read_kernel(&u, bpf_core_type_size(struct upid),
				      &cur->thread_pid->numbers[level & 31]);
	id = go_read(m, go->at.m_procid);
	if (!id && !goid)
		return; /* made by C: it has a scheduler's g some time before it knows its number */
	/* a g that is no goroutine (g0, a signal's) is not what runs on m */
	if (id == (__u32)u.nr && (!goid || go_read(m, go->at.m_curg) == g))
		go->good++;
	else
		go->bad++;
}

/* A goroutine that begins at @pc: is its life a request, so that its end must be exact? */
static __always_inline bool go_is_handler(const struct cc_bpf_go *go, __u64 pc)
{
	for (__u32 i = 0; i < CC_BPF_GO_HANDLERS && i < go->handler_cnt; i++)
		if ((__s64)(pc - go->park_ip) == go->handlers[i])
			return true;
	return false;
}

enum { GO_TASK_BORN = 1, GO_TASK_SEEN = 2, GO_TASK_DEAD = 3 };

static __always_inline void go_task_send(struct cc_bpf_go *go, __u64 g,
					 const struct cc_bpf_go_state *s, __u32 tgid, __u32 tid,
					 __u16 what, __u64 now)
{
	struct cc_rec_go_task *r = events_reserve(sizeof(*r));
	__u64 v[4];

	if (!r) {
		cnt_add(CC_CNT_DROP_GO, 1);
		rec_lost(CC_REC_GO_TASK, sizeof(*r), now);
		return;
	}
	rec_init(&r->h, sizeof(*r), CC_REC_GO_TASK, 0, what, now);
	r->goid = s->goid;
	r->parent_goid = s->parent;
	/* {[parentGoid,] gopc, ancestors, startpc} in every version */
	if (g && !bpf_probe_read_user(v, sizeof(v), (void *)(g + go->at.g_gopc - 8)) &&
	    go->at.g_startpc == go->at.g_gopc + 16) {
		if (!s->parent && go->at.g_parentgoid == go->at.g_gopc - 8)
			r->parent_goid = v[0];
		r->go_pc = v[1];
		r->start_pc = v[3];
	} else {
		if (!s->parent && go->at.g_parentgoid != GO_NO_FIELD)
			r->parent_goid = go_read(g, go->at.g_parentgoid);
		r->start_pc = go_read(g, go->at.g_startpc);
		r->go_pc = go_read(g, go->at.g_gopc);
	}
	r->tgid = tgid;
	r->tid = tid;
	r->born = s->born;
	go->handled += go_is_handler(go, r->start_pc);
	events_commit(r, now);
}

/* Goroutine @s of process @tgid ended: now, as a probe says; or @seen, its last trace, and now it
 * is known by another one that has its g. */
static __always_inline void go_dead_send(const struct cc_bpf_go_state *s, __u32 tgid, __u32 tid,
					 __u64 seen, __u64 now)
{
	struct cc_rec_go_task *r = events_reserve(sizeof(*r));

	if (!r) {
		cnt_add(CC_CNT_DROP_GO, 1);
		rec_lost(CC_REC_GO_TASK, sizeof(*r), now);
		return;
	}
	rec_init(&r->h, sizeof(*r), CC_REC_GO_TASK, seen ? CC_GT_ABOUT : 0, GO_TASK_DEAD, now);
	r->goid = s->goid;
	r->parent_goid = s->parent;
	r->tgid = tgid;
	r->tid = tid;
	r->start_pc = r->go_pc = 0;
	r->born = seen ? seen : s->born;
	events_commit(r, now);
}

static __always_inline struct cc_bpf_go_state *go_state(__u32 tgid, __u64 g)
{
	struct cc_bpf_go_key k = { .g = g, .tgid = tgid };

	return bpf_map_lookup_elem(&go_states, &k);
}

/* Thread @cur, with storage @st, runs goroutine @goid now, or none (0). Told when it is another
 * than was told last. */
static __always_inline void go_on_send(struct task_struct *cur, struct task_state *st, __u64 goid,
				       __u64 now)
{
	struct cc_rec_go_on *r;

	if (st->goid == goid)
		return;
	r = events_reserve(sizeof(*r));
	if (!r) { /* it still differs: the next look tells it */
		cnt_add(CC_CNT_DROP_GO, 1);
		return;
	}
	rec_init(&r->h, sizeof(*r), CC_REC_GO_ON, 0, goid ? 1 : 0, now);
	r->goid = goid ? goid : st->goid;
	r->tgid = cur->tgid;
	r->tid = cur->pid;
	st->goid = goid;
	events_commit(r, now);
}

#endif
