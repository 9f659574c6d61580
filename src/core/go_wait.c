/* SPDX-License-Identifier: Apache-2.0 */
/* What goroutines waited for: GO_EPISODE. */
#include "go_task_int.h"

#include <errno.h>
#include <string.h>

#include "decode.h" /* CC_TIME_MAX */

void go_wait_free(struct tasks *ts, uint32_t wait)
{
	if (wait && !vec_reserve(ts->mem, &ts->go.free_waits, ts->go.free_waits.cnt + 1))
		ts->go.free_waits.p[ts->go.free_waits.cnt++] = wait;
}

static int wait_new(struct tasks *ts, const struct cc_rec_go_episode *r, uint32_t *ret)
{
	*ret = 0;
	if (!r->object && !r->ustack && !r->lost && !r->fd_kind)
		return 0;
	*ret = pool_get(ts, &ts->go.waits, &ts->go.free_waits);
	if (!*ret)
		return -ENOMEM;
	ts->go.waits.p[*ret] = (struct go_wait){
		.object = r->object,
		.ustack = r->ustack,
		.fd_id = r->fd_kind ? r->fd_id : 0,
		.lost = r->lost,
		.fd = r->fd_kind ? r->fd : -1,
		.fd_kind = (uint8_t)CC_MIN(r->fd_kind, CC_FD_OTHER),
	};
	return 0;
}

static struct episode episode_of(const struct cc_rec_go_episode *r)
{
	bool runnable = r->h.flags & (CC_GE_BORN | CC_GE_PREEMPT);
	unsigned int ctx = r->waker_goid ? CC_CTX_TASK : CC_CTX_UNKNOWN;

	return (struct episode){
		.out = r->out,
		.wake = r->wake,
		.in = r->h.ts,
		.seq = r->seq,
		.waker_tgid = r->waker_goid ? r->tgid : 0,
		.key = CC_MIN(r->wait_class, WAIT_CLASS_CNT),
		.syscall = -2,
		.flags = (uint8_t)(ctx << CC_EP_CTX_SHIFT |
				   (r->h.flags & CC_GE_BORN ? CC_EP_BORN : 0) |
				   (r->h.flags & CC_GE_CLAMPED ? CC_EP_CLAMPED : 0)),
		.kind = (uint8_t)(EP_GO | (runnable ? EP_RUNNABLE : EP_SLEEPING)),
	};
}

/* It still waits. Its end will come as an episode of its own. */
static void still_waits(struct tasks *ts, struct task *t, const struct cc_rec_go_episode *r,
			struct episode *ep)
{
	if (t->open.now)
		go_wait_free(ts, t->open.ep.side);
	ep->in = CC_NEVER;
	t->open = (struct open_state){
		.now = r->h.ts,
		.out = r->out,
		.wake = r->wake,
		.lost = r->lost,
		.seq = r->seq,
		.ep = *ep,
	};
	t->alive = CC_MAX(t->alive, r->h.ts);
	if (!t->cut && !t->eps.cnt)
		t->known_from = CC_MIN(t->known_from, r->out);
}

static bool is_known(const struct task *t, const struct cc_rec_go_episode *r)
{
	const struct episode *last = t->eps.cnt ? &t->eps.p[t->eps.cnt - 1] : NULL;

	if (r->out >= t->dead)
		return true; /* the number is never used again: a stray record */
	if (!last)
		return false;
	if (r->h.flags & CC_GE_OPEN)
		return r->h.ts <= last->in || (r->seq && r->seq == last->seq);
	return last->seq == r->seq && last->out == r->out;
}

/* When it came to run on thread @ti, told as @at: a thread that was made to run it has no past by
 * which the kernel side could tell since when. */
static cc_ns on_since(const struct tasks *ts, uint32_t ti, cc_ns at)
{
	cc_ns born = ts->v.p[ti].born;

	return born != CC_NEVER ? CC_MAX(at, born) : at;
}

/* Off thread r->tid since r->out, on r->in_tid from its end on. */
static int move(struct tasks *ts, const struct cc_rec_go_episode *r, uint32_t gi)
{
	uint32_t ti;
	int err;

	if (r->tid && !(r->h.flags & CC_GE_BORN)) {
		err = go_thread_of(ts, r->tid, r->tgid, r->out, &ti);
		if (err)
			return err;
		go_on_close(ts, gi, ti, r->out);
		go_on_close(ts, ti, gi, r->out);
	}
	if (!r->in_tid || r->h.flags & CC_GE_OPEN)
		return 0;
	err = go_thread_of(ts, r->in_tid, r->tgid, r->h.ts, &ti);
	return err ? err : go_bind(ts, ti, gi, on_since(ts, ti, r->h.ts));
}

int go_episode(struct tasks *ts, const struct cc_rec_go_episode *r)
{
	struct episode ep = episode_of(r);
	uint32_t gi, waker;
	struct task *t;
	int64_t at;
	int err;

	if (!r->tgid || !r->goid || !r->h.ts || !r->out || r->out > r->h.ts ||
	    r->wake > CC_TIME_MAX || tid_is_go(r->tid) || tid_is_go(r->in_tid))
		return -EINVAL;
	err = go_proc_seen(ts, r->tgid, true, false) ?: go_index(ts, r->tgid, r->goid, &gi) ?:
	      go_index(ts, r->tgid, r->waker_goid, &waker);
	if (err || !gi--)
		return err;
	t = &ts->v.p[gi];
	if (is_known(t, r))
		return 0;
	ep.waker_tid = waker ? ts->v.p[waker - 1].tid : 0;
	if (r->h.flags & CC_GE_BORN) {
		ep.wake = ep.out;
		t->parent_tid = t->parent_tid ? t->parent_tid : ep.waker_tid;
	}
	err = wait_new(ts, r, &ep.side);
	if (err)
		return err;
	if (r->h.flags & CC_GE_OPEN) {
		still_waits(ts, t, r, &ep);
		return move(ts, r, gi);
	}
	at = tasks_insert(ts, gi, &ep, r->lost);
	if (at < 0)
		go_wait_free(ts, ep.side);
	if (at < 0 && at != -EEXIST)
		return (int)at;
	if (r->ustack && at >= 0)
		ts->stacks_user++;
	return move(ts, r, gi);
}
