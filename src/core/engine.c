/* SPDX-License-Identifier: Apache-2.0 */
/* Records in: each goes to the module that keeps it; a TICK sets off the work. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_priv.h"
#include "lasting.h"

#define MEMORY_DEFAULT (256ull << 20)
#define NAMES_SHARE 4 /* names and stacks may take a quarter of the budget */
#define LOSSES_MAX 4096
#define WAKES_MAX (1u << 20)

int engine_new(const struct engine_opts *opts, struct engine **ret)
{
	struct engine *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->buf = malloc(sizeof(*e->buf));
	if (!e->buf) {
		free(e);
		return -ENOMEM;
	}
	e->opts = *opts;
	if (!e->opts.memory_bytes)
		e->opts.memory_bytes = MEMORY_DEFAULT;
	e->evict_at = e->opts.memory_bytes;
	tasks_init(&e->tasks, &e->mem);
	requests_init(&e->reqs, &e->mem, &e->tasks);
	resources_init(&e->res, &e->mem);
	names_init(&e->names, &e->mem, e->opts.memory_bytes / NAMES_SHARE);
	e->cls = (struct classifier){
		.names = &e->names,
		.resources = &e->res,
		.upstreams = &e->reqs.upstreams,
	};
	*ret = e;
	return 0;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	requests_done(&e->reqs);
	tasks_done(&e->tasks);
	resources_done(&e->res);
	names_done(&e->names);
	go_feed_done(e);
	vec_done(&e->mem, &e->handlers);
	vec_done(&e->mem, &e->wakes);
	vec_done(&e->mem, &e->losses);
	vec_done(&e->mem, &e->gaps);
	vec_done(&e->mem, &e->asleep);
	vec_done(&e->mem, &e->sorted);
	vec_done(&e->mem, &e->due);
	vec_done(&e->mem, &e->standings);
	vec_done(&e->mem, &e->rows);
	vec_done(&e->mem, &e->scratch);
	vec_done(&e->mem, &e->pack);
	vec_done(&e->mem, &e->segs);
	vec_done(&e->mem, &e->old_holds);
	vec_done(&e->mem, &e->habits);
	vec_done(&e->mem, &e->tls_ports);
	free(e->buf);
	free(e);
}

/* What is counted where it happens. */
static void gather_stats(struct engine *e)
{
	e->stats.episodes = e->tasks.episodes;
	e->stats.clamped = e->tasks.clamped;
	e->stats.lost_cnt = e->tasks.lost_cnt + e->stats.loss_records;
	e->stats.lost_ns = e->tasks.lost_ns;
	e->stats.stacks_user = e->tasks.stacks_user;
	e->stats.memory_bytes = e->mem.used;
}

/* Everything before @to is told; what goes on ends at @now. */
static int work(struct engine *e, cc_ns to, cc_ns now, bool all)
{
	int err = go_feed_run(e, to, all) ?: go_requests(e, now) ?: wakes_apply(e, all) ?: wakes_index(e);

	if (!err && !e->opts.no_paths)
		err = work_paths(e, to, now);
	if (!err && all && (!e->stats.has_servers || e->span.tid))
		err = path_of_tasks(e);
	if (err)
		return err;
	if (!all && !e->opts.no_paths)
		err = mix_add_cells(e, to);
	if (err)
		return err;
	work_evict(e, now);
	gather_stats(e);
	return e->opts.no_paths && !all
		       ? 0
		       : work_sort(e); /* nobody asks for requests before the end */
}

#define ASLEEP_LEAST CC_MS(500) /* less may be between the readings of two clocks */
#define ASLEEP_MAX 64u          /* then the oldest is forgotten */

/* CLOCK_MONOTONIC stands still while the machine sleeps, CLOCK_BOOTTIME does not. */
static int note_sleep(struct engine *e, const struct cc_rec_tick *r)
{
	int64_t off = (int64_t)(r->boottime_ns - r->h.ts);
	bool slept = e->boot_at && off - e->boot_off >= (int64_t)ASLEEP_LEAST;

	if (slept) {
		if (e->asleep.cnt == ASLEEP_MAX)
			vec_drop_front(&e->asleep, 1);
		if (vec_reserve(&e->mem, &e->asleep, e->asleep.cnt + 1))
			return -ENOMEM;
		e->asleep.p[e->asleep.cnt++] = (struct loss_span){ e->boot_at, r->h.ts };
		e->stats.suspends++;
		e->stats.suspended_ns += (cc_ns)(off - e->boot_off);
	}
	e->boot_at = r->h.ts;
	e->boot_off = off;
	return 0;
}

static int on_tick(struct engine *e, const struct cc_rec_tick *r)
{
	if (r->drained_to > CC_TIME_MAX || r->realtime_ns > INT64_MAX || r->boottime_ns > INT64_MAX)
		return -EINVAL;
	if (r->boottime_ns && r->h.ts > e->boot_at && note_sleep(e, r))
		return -ENOMEM;
	e->stats.watermark_ns = CC_MAX(e->stats.watermark_ns, r->drained_to);
	if (r->realtime_ns)
		e->stats.realtime_off_ns = (int64_t)r->realtime_ns - (int64_t)r->h.ts;
	e->tick_ns = CC_MIN(r->interval_ns, CC_TIME_MAX);
	return work(e, e->stats.watermark_ns, r->h.ts, false);
}

static int on_loss(struct engine *e, const struct cc_rec_loss *r)
{
	if (r->from > r->to || r->to > CC_TIME_MAX)
		return -EINVAL;
	e->stats.loss_records += r->cnt;
	if (e->losses.cnt >= LOSSES_MAX) { /* then the last one grows to cover it */
		struct loss_span *last = &e->losses.p[e->losses.cnt - 1];

		last->from = CC_MIN(last->from, r->from);
		last->to = CC_MAX(last->to, r->to);
		return 0;
	}
	if (vec_reserve(&e->mem, &e->losses, e->losses.cnt + 1))
		return -ENOMEM;
	e->losses.p[e->losses.cnt++] = (struct loss_span){ r->from, r->to };
	return 0;
}

static int on_wake(struct engine *e, const struct cc_rec_wake *r)
{
	if (e->wakes.cnt >= WAKES_MAX) {
		int err = wakes_apply(e, true);

		if (err)
			return err;
	}
	if (vec_reserve(&e->mem, &e->wakes, e->wakes.cnt + 1))
		return -ENOMEM;
	e->wakes.p[e->wakes.cnt++] = *r;
	return 0;
}

static int on_extra(struct engine *e, const struct cc_rec_extra *r)
{
	struct engine_stack s;

	if (r->ustack && names_get_stack(&e->names, r->ustack, &s) && s.flags & CC_ST_COMPLETE)
		e->stats.stacks_complete++;
	return tasks_extra(&e->tasks, r);
}

static int on_counter(struct engine *e, const struct cc_rec_counter *r)
{
	if (r->h.kind == CC_REC_COUNTER) {
		if (r->h.aux < ARRAY_SIZE(e->stats.counter))
			e->stats.counter[r->h.aux] = r->value;
		return 0;
	}
	if (r->h.aux < ARRAY_SIZE(e->stats.option))
		e->stats.option[r->h.aux] = r->value;
	if (r->h.aux == CC_OPT_ARCH)
		e->cls.machine = (uint16_t)r->value;
	return 0;
}

static int on_short(struct engine *e, const struct cc_rec_short *r)
{
	int err = tasks_short(&e->tasks, r);

	if (!err) {
		e->stats.short_cnt += r->cnt;
		e->stats.short_ns += r->ns;
	}
	return err;
}

/* Facts about sockets: from the first server's on requests are those of sockets. */
int engine_on_socket(struct engine *e, const struct cc_rec *r)
{
	if (r->kind != CC_REC_SOCKOP || !(r->flags & CC_SO_UPSTREAM))
		e->stats.has_servers = true;
	if (!e->stats.has_sockets) {
		int err = wakes_reindex(e);

		if (err)
			return err;
		e->stats.has_sockets = true;
	}
	switch (r->kind) {
	case CC_REC_SOCKOP:
		return requests_sockop(&e->reqs, (const void *)r);
	case CC_REC_REQ:
	case CC_REC_OPEN_REQ:
		return requests_req(&e->reqs, (const void *)r);
	default:
		return 0;
	}
}

static int dispatch(struct engine *e, const struct cc_rec *r)
{
	if (r->kind == CC_REC_EPISODE)
		return tasks_episode(&e->tasks, (const void *)r);
	if (go_feed_wants(&e->go, r))
		return go_feed_put(e, r);
	switch (r->kind) {
	case CC_REC_EXTRA:
		return on_extra(e, (const void *)r);
	case CC_REC_SOCKOP:
	case CC_REC_REQ:
	case CC_REC_OPEN_REQ:
	case CC_REC_LISTEN:
		return engine_on_socket(e, r);
	case CC_REC_STACK:
		return names_stack(&e->names, (const void *)r);
	case CC_REC_TASK:
		return tasks_task(&e->tasks, (const void *)r);
	case CC_REC_OPEN_TASK:
		return tasks_open(&e->tasks, (const void *)r);
	case CC_REC_LOSS:
		return on_loss(e, (const void *)r);
	case CC_REC_TICK:
		return on_tick(e, (const void *)r);
	case CC_REC_MODULE:
		return names_module(&e->names, (const void *)r);
	case CC_REC_NAME:
		return names_name(&e->names, (const void *)r);
	case CC_REC_SHORT:
		return on_short(e, (const void *)r);
	case CC_REC_SAMPLE:
		return tasks_sample(&e->tasks, (const void *)r);
	case CC_REC_TARGET:
		return names_target(&e->names, (const void *)r);
	case CC_REC_OPTION:
	case CC_REC_COUNTER:
		return on_counter(e, (const void *)r);
	case CC_REC_WAKE:
		return on_wake(e, (const void *)r);
	default:
		return 0;
	}
}

/* The record says what happened at its ts, and its ring was drained up to the watermark then. */
static bool is_late(const struct engine *e, const struct cc_rec *r)
{
	return r->ts < e->stats.watermark_ns &&
	       (r->kind == CC_REC_EPISODE || r->kind == CC_REC_SOCKOP);
}

/* Names and tasks may have been told long before the rest: by a recording that is a cut of a longer
 * one, or after a seek. The time between is not known, and so no part of the stream. */
static void note_time(struct engine *e, const struct cc_rec *r)
{
	struct engine_stats *st = &e->stats;
	bool lasting = rec_is_lasting(r->kind);

	if (!r->ts)
		return;
	st->last_ns = CC_MAX(st->last_ns, r->ts);
	if (!st->first_ns || (!lasting && !e->begun))
		st->first_ns = r->ts;
	else if (!lasting || !e->begun)
		st->first_ns = CC_MIN(st->first_ns, r->ts);
	e->begun |= !lasting;
}

/* decode() of what most records are. */
static bool is_whole_episode(const struct cc_rec *rec, size_t len)
{
	return (uintptr_t)rec % _Alignof(struct cc_rec_episode) == 0 &&
	       len == sizeof(struct cc_rec_episode) && rec->kind == CC_REC_EPISODE &&
	       rec->size == sizeof(struct cc_rec_episode) && rec->ts <= CC_TIME_MAX;
}

static int take_in(struct engine *e, const struct cc_rec *rec, size_t len)
{
	const struct cc_rec *r = rec;
	int err = is_whole_episode(rec, len) ? 0 : decode(rec, len, e->buf, &r);

	if (err == -ENOTSUP) {
		e->stats.unknown_kind++;
		e->stats.events++;
		return 0;
	}
	if (!err)
		err = dispatch(e, r);
	if (err == -EINVAL)
		e->stats.malformed++;
	if (err)
		return err;
	e->stats.events++;
	e->stats.late += is_late(e, r);
	note_time(e, r);
	if (e->mem.used <= e->evict_at)
		return 0;
	work_evict(e, 0);
	return work_sort(e);
}

/* Step by step for all that are kept back: each step needs what the one before has fetched. */
static int take_in_ahead(struct engine *e)
{
	uint32_t cnt = e->ahead_cnt, task[AHEAD];
	int err = 0;

	e->ahead_cnt = 0;
	for (uint32_t i = 0; i < cnt; i++)
		task[i] = tasks_prefetch(&e->tasks, e->ahead[i].tid);
	for (uint32_t i = 0; i < cnt; i++)
		tasks_prefetch_end(&e->tasks, task[i]);
	for (uint32_t i = 0; i < cnt && (!err || err == -EINVAL); i++)
		err = take_in(e, &e->ahead[i].h, sizeof(e->ahead[i]));
	return err == -EINVAL ? 0 : err;
}

int engine_feed(struct engine *e, const struct cc_rec *rec, size_t len)
{
	int err = e->ahead_cnt ? take_in_ahead(e) : 0;

	return err ? err : take_in(e, rec, len);
}

int engine_stream(struct engine *e, const struct cc_rec *rec, size_t len)
{
	int err;

	if (e->tasks.v.cnt < TASKS_FAR || !is_whole_episode(rec, len)) {
		err = engine_feed(e, rec, len);
		return err == -EINVAL ? 0 : err;
	}
	e->ahead[e->ahead_cnt] = *(const struct cc_rec_episode *)rec;
	tasks_prefetch_slot(&e->tasks, e->ahead[e->ahead_cnt].tid);
	return ++e->ahead_cnt < AHEAD ? 0 : take_in_ahead(e);
}

int engine_finish(struct engine *e)
{
	int err = take_in_ahead(e);

	if (err)
		return err;
	e->stats.watermark_ns = CC_MAX(e->stats.watermark_ns, e->stats.last_ns);
	return work(e, e->stats.last_ns + 1, e->stats.last_ns, true);
}

int engine_finish_span(struct engine *e, const struct engine_span *span)
{
	if (span->lo >= span->hi)
		return -EINVAL;
	e->span = *span;
	return engine_finish(e);
}

int engine_walk(struct engine *e, uint32_t tid, cc_ns lo, cc_ns hi, struct cc_piece **ret,
		size_t *ret_cnt)
{
	struct task *t;
	uint32_t cnt;
	int err;

	if (lo >= hi || hi > CC_TIME_MAX)
		return -EINVAL;
	e->idle.valid = false;
	err = take_in_ahead(e) ?: wakes_index(e);
	if (err)
		return err;
	t = tasks_get(&e->tasks, tid, hi);
	if (!t)
		return -ENOMEM;
	err = path_of_span(e, (uint32_t)(t - e->tasks.v.p), lo, hi, ret, &cnt);
	if (!err)
		*ret_cnt = cnt;
	return err;
}
