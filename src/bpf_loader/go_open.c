/* SPDX-License-Identifier: Apache-2.0 */
/* go_open: goroutines that wait now, out of the kernel's table of them. */
#include "go.h"
#include "go_check.h"
#include "iter.h"
#include "pidns.h"
#include "wait_class.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define STACKS_MAX 256 /* per refresh */
#define STACK_MIN_NS CC_MS(20)
#define BATCH 256
#define TASK_DEAD 3

struct batch {
	struct cc_bpf_go_key keys[BATCH];
	struct cc_bpf_go_state states[BATCH];
};

/* @tgid as the kernel programs know it */
static struct go_proc *find(struct loader *l, uint32_t tgid)
{
	const struct go_side *g = l->go;
	for (size_t i = 0; i < g->proc_cnt; i++)
		if (pidns_global(l, g->procs[i]->tgid) == tgid &&
		    g->procs[i]->state == LOADER_GO_STATE_ON)
			return g->procs[i];
	return NULL;
}

static uint32_t class_of(const struct go_proc *p, const struct cc_bpf_go_state *s)
{
	if (s->what == CC_BPF_GO_IS_WRITE)
		return WAIT_NET_SEND;
	if (s->what == CC_BPF_GO_IS_MUTEX)
		return WAIT_MUTEX;
	return s->reason < p->target.reasons.cnt ? p->target.reasons.cls[s->reason] : WAIT_BLOCKED;
}

/* The wait of @s, as far as its beginning tells. */
static struct cc_rec_go_episode go_episode_of(const struct go_proc *p,
					      const struct cc_bpf_go_key *k,
					      const struct cc_bpf_go_state *s)
{
	return (struct cc_rec_go_episode){
		.h = { .size = sizeof(struct cc_rec_go_episode),
		       .kind = CC_REC_GO_EPISODE,
		       .flags = s->about ? CC_GE_ABOUT : 0,
		       .cpu = 0xffff,
		       .aux = s->reason },
		.goid = s->goid,
		.tgid = k->tgid,
		.tid = s->out_tid,
		.out = s->out,
		.wait_class = class_of(p, s),
		.object = s->object,
		.lost = s->lost,
		.seq = s->seq,
		.fd = s->fd,
	};
}

/* A wait that began since the last refresh and has not ended. One that ends while it is read here
 * comes as its own GO_EPISODE, with the same seq. */
static int give_open(struct loader *l, const struct cc_bpf_go_key *k,
		     const struct cc_bpf_go_state *s, cc_ns now, uint32_t *stacks,
		     struct rec_buf *b)
{
	if (s->state != CC_BPF_GO_PARKED || s->wake || s->out > now)
		return 0;
	const struct go_proc *p = find(l, k->tgid);
	if (!p || (s->out < l->go->opened_at && !p->seeded))
		return 0;
	struct cc_rec_go_episode e = go_episode_of(p, k, s);
	e.h.flags |= CC_GE_OPEN;
	e.h.ts = now;
	if (*stacks < STACKS_MAX && now - s->out >= STACK_MIN_NS) {
		e.ustack = go_check_stack(p, k->g, b);
		(*stacks)++;
	}
	return rec_buf_put(b, &e.h, sizeof(e));
}

/* A goroutine that did something since the last refresh, or @all: at any time, and has ended
 * without being seen to (go_ends.c), is told to have, with its last wait. */
static int give_ended(struct loader *l, const struct cc_bpf_go_key *k,
		      const struct cc_bpf_go_state *s, cc_ns now, bool all, struct rec_buf *b)
{
	cc_ns seen = CC_MAX(s->seen, s->wake);
	if (!s->goid || (s->state == CC_BPF_GO_PARKED && !s->wake) ||
	    (!all && seen < l->go->opened_at))
		return 0;
	const struct go_proc *p = find(l, k->tgid);
	if (!p || p->tier != LOADER_GO_WAITS || !go_check_ended(p, k->g, s->goid))
		return 0;
	struct cc_rec_go_episode e = go_episode_of(p, k, s);
	struct cc_rec_go_task d = {
		.h = { .size = sizeof(d),
		       .kind = CC_REC_GO_TASK,
		       .flags = CC_GT_ABOUT,
		       .cpu = 0xffff,
		       .aux = TASK_DEAD,
		       .ts = now },
		.goid = s->goid,
		.tgid = k->tgid,
		.born = seen,
	};
	e.h.ts = s->wake;
	e.wake = s->wake;
	e.waker_goid = s->waker_goid;
	e.waker_tid = s->waker_tid;
	e.ustack = s->ustack;
	int err = s->state == CC_BPF_GO_PARKED ? rec_buf_put(b, &e.h, sizeof(e)) : 0;
	return err ? err : rec_buf_put(b, &d.h, sizeof(d));
}

int go_refresh(struct loader *l, bool last, struct rec_buf *b)
{
	if (!l->go || !l->go->proc_cnt)
		return 0;
	struct batch *v = malloc(sizeof(*v));
	int fd = bpf_map__fd(l->skel->maps.go_states), err = v ? 0 : -ENOMEM;
	cc_ns now = loader_now();
	uint32_t stacks = 0, at = 0;
	bool more = true;
	for (bool first = true; !err && more; first = false) {
		__u32 cnt = BATCH;
		/* the end is -ENOENT, with the last ones; a full bucket that does not fit -ENOSPC
		 */
		more = !bpf_map_lookup_batch(fd, first ? NULL : &at, &at, v->keys, v->states, &cnt,
					     NULL);
		if (!more && errno != ENOENT)
			break;
		for (__u32 i = 0; !err && i < cnt; i++)
			err = give_open(l, &v->keys[i], &v->states[i], now, &stacks, b)
				      ?: give_ended(l, &v->keys[i], &v->states[i], now, last, b);
	}
	for (size_t i = 0; i < l->go->proc_cnt && !err; i++)
		l->go->procs[i]->seeded = false;
	l->go->opened_at = now;
	free(v);
	return err;
}
