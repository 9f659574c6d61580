/* SPDX-License-Identifier: Apache-2.0 */
/* Who else had the CPU: tasks outside the targets that threads of requests queued behind. */
#include "snap_build.h"

#include <errno.h>
#include <stdlib.h>

#include "digest.h"

struct delayer {
	uint32_t tid, tgid, requests, threads;
	uint64_t seen; /* threads: bit tid % 64, so that the count is a lower bound */
	cc_ns ns, last;
	const struct cc_request *of;
};
typedef VEC(struct delayer) delayers;

static bool is_target(const struct snap_build *b, uint32_t tgid)
{
	for (uint32_t i = 0; i < b->s->target_cnt; i++) {
		if (b->s->targets[i].task.tgid == tgid)
			return true;
	}
	return false;
}

static int add(struct snap_build *b, delayers *v, struct map *index, const struct cc_request *r,
	       const struct cc_piece *p)
{
	struct mem *mem = &b->labels.mem;
	uint32_t at = map_get(index, p->occupant_tid);

	if (!at) {
		if (vec_reserve(mem, v, v->cnt + 1) ||
		    map_put(mem, index, p->occupant_tid, v->cnt + 1))
			return -ENOMEM;
		v->p[v->cnt++] =
			(struct delayer){ .tid = p->occupant_tid, .tgid = p->occupant_tgid };
		at = v->cnt;
	}
	struct delayer *d = &v->p[at - 1];
	uint64_t bit = 1ull << (p->tid % 64);

	d->ns += CC_MIN(p->occupant_ns, piece_ns(p)) * request_weight(r);
	d->last = CC_MAX(d->last, p->end);
	d->requests += d->of != r ? request_weight(r) : 0;
	d->threads += !(d->seen & bit);
	d->seen |= bit;
	d->of = r;
	return 0;
}

static int by_delay(const void *pa, const void *pb)
{
	const struct delayer *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

int snap_outside(struct snap_build *b)
{
	delayers v = { 0 };
	struct map index = { 0 };
	struct mem *mem = &b->labels.mem;
	int err = 0;

	for (uint32_t i = 0; i < b->done.cnt && !err; i++) {
		const struct cc_request *r = b->done.p[i];
		const struct cc_piece *p;
		struct path_iter it;

		if (!r->path_ok)
			continue;
		for (path_iter_init(&it, r); !err && (p = path_iter_next(&it));) {
			if (!p->depth && p->cls == WAIT_RUNQ && p->occupant_tid &&
			    p->occupant_tgid != p->tgid && !is_target(b, p->occupant_tgid))
				err = add(b, &v, &index, r, p);
		}
	}
	map_done(mem, &index);
	uint32_t cnt = CC_MIN(v.cnt, (uint32_t)SNAP_OUTSIDE);
	struct snap_outside *out = err ? NULL : calloc((size_t)cnt + 1, sizeof(*out));

	if (v.cnt)
		qsort(v.p, v.cnt, sizeof(*v.p), by_delay);
	for (uint32_t i = 0; out && i < cnt; i++)
		out[i] = (struct snap_outside){
			.task = labels_task(&b->labels, v.p[i].tid, v.p[i].tgid, v.p[i].last),
			.delay_ns = v.p[i].ns,
			.requests = v.p[i].requests,
			.threads = v.p[i].threads,
		};
	vec_done(mem, &v);
	if (!out)
		return -ENOMEM;
	b->s->outside = out;
	b->s->outside_cnt = cnt;
	return 0;
}
