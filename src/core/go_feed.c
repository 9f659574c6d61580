/* SPDX-License-Identifier: Apache-2.0 */
#include "go_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"

#define WORDS_MAX (8u << 20) /* 64 MiB: a stream that never ticks does not wait for ever */

static bool is_go(unsigned int kind)
{
	return kind == CC_REC_GO_EPISODE || kind == CC_REC_GO_TASK || kind == CC_REC_GO_ON ||
	       kind == CC_REC_GO_ITEM;
}

bool go_feed_wants(const struct go_feed *f, const struct cc_rec *r)
{
	switch (r->kind) {
	case CC_REC_SOCKOP:
	case CC_REC_REQ:
	case CC_REC_OPEN_REQ:
		return f->on;
	default:
		return is_go(r->kind);
	}
}

void go_feed_done(struct engine *e)
{
	vec_done(&e->mem, &e->go.words);
	vec_done(&e->mem, &e->go.v);
}

int go_feed_put(struct engine *e, const struct cc_rec *r)
{
	struct go_feed *f = &e->go;
	uint32_t words = (uint32_t)(decode_size(r) / sizeof(uint64_t));
	int err = 0;

	if (f->words.cnt + words > WORDS_MAX)
		err = go_feed_run(e, 0, true);
	if (err || vec_reserve(&e->mem, &f->words, f->words.cnt + words) ||
	    vec_reserve(&e->mem, &f->v, f->v.cnt + 1))
		return err ? err : -ENOMEM;
	f->on = true;
	f->v.p[f->v.cnt++] = (struct go_queued){ r->ts, f->words.cnt, words };
	memcpy(f->words.p + f->words.cnt, r, words * sizeof(uint64_t));
	f->words.cnt += words;
	return 0;
}

/* When all that the record leans on has happened; 0: it is told as far as it goes. */
static cc_ns ready_after(const struct cc_rec *r)
{
	const struct cc_rec_req *q = (const void *)r;

	if (r->kind == CC_REC_OPEN_REQ)
		return 0;
	if (r->kind == CC_REC_REQ)
		return CC_MAX(CC_MAX(q->first_recv, q->last_recv),
			      CC_MAX(q->first_send, q->last_send));
	return r->ts;
}

/* The goroutine that thread *tid of @tgid ran at @at takes its place; nobody does where that is not
 * known, for a thread of a Go program works for all. */
static void name_worker(struct engine *e, uint32_t tgid, uint32_t *tid, cc_ns at)
{
	uint32_t gi;

	if (!*tid || !at)
		return;
	gi = go_on_thread(&e->tasks, *tid, at);
	if (gi == GO_NONE) {
		*tid = go_proc(&e->tasks, tgid) ? 0 : *tid;
		return;
	}
	task_ran_at(tasks_find(&e->tasks, *tid, at), at);
	*tid = e->tasks.v.p[gi].tid;
}

static int hand_over_req(struct engine *e, struct cc_rec_req q)
{
	if (tid_is_go(q.recv_tid) || tid_is_go(q.send_tid))
		return -EINVAL;
	name_worker(e, q.tgid, &q.recv_tid, q.first_recv);
	name_worker(e, q.tgid, &q.send_tid, q.last_send);
	if (go_proc(&e->tasks, q.tgid)) { /* linked by what else the thread did: here no link */
		q.up_votes = 0;
		q.up_cookie = 0;
		q.up_peer = (struct cc_addr){ 0 };
	}
	return engine_on_socket(e, &q.h);
}

static int hand_over_op(struct engine *e, struct cc_rec_sockop q)
{
	if (tid_is_go(q.tid))
		return -EINVAL;
	name_worker(e, q.tgid, &q.tid, q.h.ts);
	if (go_proc(&e->tasks, q.tgid))
		q.h.flags &= (uint8_t) ~(CC_SO_LINKED | CC_SO_VOTE2);
	return engine_on_socket(e, &q.h);
}

static void count_stack(struct engine *e, const struct cc_rec_go_episode *r)
{
	struct engine_stack s;

	if (r->ustack && !(r->h.flags & CC_GE_OPEN) && names_get_stack(&e->names, r->ustack, &s) &&
	    s.flags & CC_ST_COMPLETE)
		e->stats.stacks_complete++;
}

static int hand_over(struct engine *e, const struct cc_rec *r)
{
	switch (r->kind) {
	case CC_REC_GO_EPISODE:
		count_stack(e, (const void *)r);
		return go_episode(&e->tasks, (const void *)r);
	case CC_REC_GO_TASK:
		return go_task(&e->tasks, (const void *)r);
	case CC_REC_GO_ON:
		return go_thread_on(&e->tasks, (const void *)r);
	case CC_REC_GO_ITEM:
		return go_item(&e->tasks, (const void *)r);
	case CC_REC_SOCKOP:
		return hand_over_op(e, *(const struct cc_rec_sockop *)(const void *)r);
	default:
		return hand_over_req(e, *(const struct cc_rec_req *)(const void *)r);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct go_queued *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return (x->off > y->off) - (x->off < y->off);
}

/* Those of goroutines first: whose operations these were must be known. */
static int run_pass(struct engine *e, cc_ns to, bool all, bool go)
{
	struct go_feed *f = &e->go;
	uint32_t kept = 0;
	int err = 0;

	for (uint32_t i = 0; i < f->v.cnt; i++) {
		const struct cc_rec *r = (const void *)(f->words.p + f->v.p[i].off);

		if (err || is_go(r->kind) != go || !(all || ready_after(r) < to)) {
			f->v.p[kept++] = f->v.p[i];
			continue;
		}
		err = hand_over(e, r);
		if (err == -EINVAL) {
			e->stats.malformed++;
			err = 0;
		}
	}
	f->v.cnt = kept;
	return err;
}

/* What is left moves to the front, in the order it came in. */
static void compact(struct go_feed *f)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < f->v.cnt; i++) {
		struct go_queued *q = &f->v.p[i];

		memmove(f->words.p + at, f->words.p + q->off, q->cnt * sizeof(uint64_t));
		q->off = at;
		at += q->cnt;
	}
	f->words.cnt = at;
}

static int by_place(const void *a, const void *b)
{
	const struct go_queued *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

int go_feed_run(struct engine *e, cc_ns to, bool all)
{
	struct go_feed *f = &e->go;
	int err;

	if (!f->v.cnt)
		return 0;
	qsort(f->v.p, f->v.cnt, sizeof(*f->v.p), by_time);
	err = run_pass(e, to, all, true) ?: run_pass(e, to, all, false);
	if (f->v.cnt)
		qsort(f->v.p, f->v.cnt, sizeof(*f->v.p), by_place);
	compact(f);
	return err;
}
