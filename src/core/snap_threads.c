/* SPDX-License-Identifier: Apache-2.0 */
#include "go_task.h"
#include "snap_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Sleeping is no work: a busy thread stands before an idle one with as many requests. */
static cc_ns busy_ns(const struct snap_thread *t)
{
	const char *groups = WAIT_GROUPS;
	cc_ns sum = 0;

	for (int i = 0; groups[i]; i++) {
		if (strchr("CRLND", groups[i]))
			sum += t->mix[i];
	}
	return sum;
}

static int by_work(const void *pa, const void *pb)
{
	const struct snap_thread *a = pa, *b = pb;
	cc_ns ba = busy_ns(a), bb = busy_ns(b);

	if (a->requests != b->requests)
		return a->requests > b->requests ? -1 : 1;
	if (ba != bb)
		return ba > bb ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

static void fill_strip(const struct snap_build *b, struct snap_thread *t)
{
	cc_ns width = (b->hi - b->lo) / SNAP_SLICES;

	for (unsigned int i = 0; i < SNAP_SLICES && width; i++) {
		cc_ns mix[9] = { 0 }, most = 0;

		engine_task_mix(b->e, t->id, b->lo + i * width, b->lo + (i + 1) * width, mix);
		for (unsigned int g = 0; g < ARRAY_SIZE(mix); g++) {
			if (mix[g] > most) {
				most = mix[g];
				t->strip[i] = (uint8_t)(g + 1);
			}
		}
	}
}

static int count_requests(struct snap_build *b, struct map *per_tid)
{
	for (uint32_t i = 0; i < b->done.cnt; i++) {
		uint32_t tid = b->done.p[i]->tid, n = request_weight(b->done.p[i]);

		if (tid && map_put(&b->labels.mem, per_tid, tid, map_get(per_tid, tid) + n))
			return -ENOMEM;
	}
	return 0;
}

static void show_now(struct snap_build *b, struct snap_thread *t)
{
	struct engine_now now;

	if (!engine_task_now(b->e, t->id, b->hi, &now) || now.since >= b->hi)
		return;
	t->now_cls = (uint8_t)now.cls;
	t->now_ns = b->hi - now.since;
	t->now_seeded = now.seeded;
	t->now_site = labels_site(&b->labels, now.ustack);
}

int snap_threads(struct snap_build *b)
{
	VEC(struct snap_thread) rows = { 0 };
	struct map per_tid = { 0 };
	struct mem *mem = &b->labels.mem;
	struct engine_task t;
	int err = count_requests(b, &per_tid);

	for (size_t i = 0; !err && engine_task_at(b->e, i, &t); i++) {
		if (!(t.flags & (CC_TF_TRACED | CC_TF_FOLLOWED)) || t.born > b->hi ||
		    (t.dead && t.dead < b->lo))
			continue;
		err = vec_reserve(mem, &rows, rows.cnt + 1);
		if (err)
			break;
		struct snap_thread *row = &rows.p[rows.cnt++];

		b->s->thread_all += !tid_is_go(t.tid);
		b->s->goroutine_all += tid_is_go(t.tid) && !t.dead;
		*row = (struct snap_thread){ .task = labels_task(&b->labels, t.tid, t.tgid, b->hi),
					     .id = t.tid,
					     .flags = t.flags,
					     .requests = map_get(&per_tid, t.tid) };
		engine_task_mix(b->e, t.tid, b->lo, b->hi, row->mix);
		show_now(b, row);
	}
	map_done(mem, &per_tid);
	if (err) {
		vec_done(mem, &rows);
		return err;
	}
	if (rows.cnt)
		qsort(rows.p, rows.cnt, sizeof(*rows.p), by_work);
	b->s->thread_cnt = CC_MIN(rows.cnt, SNAP_THREADS);
	for (uint32_t i = 0; i < b->s->thread_cnt; i++)
		fill_strip(b, &rows.p[i]);
	b->s->threads = rows.p;
	return 0;
}
