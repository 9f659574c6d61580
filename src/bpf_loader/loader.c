/* SPDX-License-Identifier: Apache-2.0 */
#include "loader.h"

#include "follow.h"
#include "go.h"
#include "iter.h"
#include "load.h"
#include "loader_int.h"
#include "pidns.h"
#include "raw_stack.h"
#include "rings.h"
#include "sample.h"
#include "stats.h"
#include "stream.h"
#include "targets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "criticast.skel.h"

#define DRAIN_NS CC_MS(20)
#define STACK_MIN_NS CC_US(50)
#define SNAP_BYTES 8192u
#define RING_BYTES (4ull << 20)
#define RING_BYTES_GO (16ull << 20) /* a goroutine's wait is one more record, often several */
#define SEED_SLEEPS 4 /* so that this CPU's clock offset is known before tasks are seeded */

struct give { /* who takes the records of one poll */
	struct loader *l;
	cc_record_fn *fn;
	void *ctx;
};

static int give_record(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct give *g = ctx;
	struct loader *l = g->l;
	l->records++;
	rec = pidns_local(l, rec, len);
	if (rec->kind == CC_REC_TARGET && len >= sizeof(struct cc_rec_target)) {
		/* a traced process forked; if the child is gone by now, its records still come */
		const struct cc_rec_target *t = (const struct cc_rec_target *)rec;
		int err = targets_add_child(l, t->tgid, t->parent);
		if (!err) {
			targets_find(l, t->tgid)->told = true;
			err = go_want(l, t->tgid);
		}
		if (err == -ENOMEM)
			return err;
	}
	if (rec->kind == CC_REC_TASK && rec->aux == CC_TASK_EXEC &&
	    len >= sizeof(struct cc_rec_task)) {
		int err = go_want(l, ((const struct cc_rec_task *)rec)->tgid);
		if (err)
			return err;
	}
	int err = follow_record(l, rec, len);
	return err ? err : g->fn(g->ctx, rec, len);
}

/* Drains both rings. Returns the number of records or a negative return of the taker. */
static int drain(struct give *g)
{
	struct loader *l = g->l;
	cc_ns start = loader_now();
	uint64_t bytes, fill = rings_fill(l->rings, RING_EVENTS, &bytes);
	bool full;
	l->fill_max = CC_MAX(l->fill_max, fill);
	l->fill_recent = CC_MAX(l->fill_recent, fill);
	int n = rings_drain(l->rings, give_record, g, &full);
	l->last_drain = start;
	if (full)
		l->full_at = start;
	return n;
}

/* Processes that have become targets since: their programs, threads and sockets. */
static int take_later(struct loader *l)
{
	size_t first = l->target_cnt;
	int ret = targets_add_later(l), joined = ret < 0 ? ret : follow_join(l);
	ret = joined < 0 ? joined : ret + joined;
	for (size_t i = first; ret >= 0 && i < l->target_cnt; i++) {
		int err = go_want(l, l->targets[i].tgid);
		ret = err < 0 ? err : ret;
	}
	return ret > 0 ? sock_seed(l) : ret;
}

/* The state of all tasks and open requests now, and then everything that came before: so a task's
 * episodes up to its OPEN_TASK are told before it. */
static int refresh(struct give *g, uint32_t flags)
{
	struct loader *l = g->l;
	struct rec_buf b = { 0 };
	int cnt = 0, ret = take_later(l);
	if (!ret) /* before what they do */
		ret = stream_targets(l, g->fn, g->ctx);
	if (!ret)
		ret = follow_tell(l, g->fn, g->ctx);
	if (!ret)
		ret = iter_tasks(l, flags, &b);
	if (!ret)
		ret = go_refresh(l, flags & CC_TF_STOP, &b);
	if (!ret)
		ret = flags & CC_TF_STOP ? sock_stop(l, rec_buf_put, &b)
					 : sock_refresh(l, rec_buf_put, &b);
	if (ret >= 0)
		ret = cnt = drain(g);
	if (ret >= 0)
		ret = stream_targets(l, g->fn, g->ctx);
	if (ret >= 0)
		ret = rec_buf_give(&b, give_record, g);
	rec_buf_done(&b);
	return ret < 0 ? ret : ret + cnt;
}

static int end_interval(struct give *g, uint32_t flags)
{
	struct loader *l = g->l;
	int cnt = refresh(g, flags), ret = cnt;
	if (ret >= 0 && !(flags & CC_TF_STOP))
		ret = go_watch(l);
	if (ret >= 0)
		ret = stream_losses(l, g->fn, g->ctx);
	if (ret >= 0)
		ret = stream_counters(l, g->fn, g->ctx);
	if (ret >= 0)
		ret = stream_tick(l, flags & CC_TF_STOP, g->fn, g->ctx);
	pidns_forget(l);
	follow_forget(l);
	while (l->next_tick <= loader_now())
		l->next_tick += l->o.interval_ns;
	return ret < 0 ? ret : cnt + 1;
}

/* Gives the threads of new targets their storage and finds their sockets. */
static int seed(struct loader *l, struct rec_buf *b)
{
	int ret = sock_seed(l);
	if (!ret)
		ret = iter_tasks(l, CC_TF_ATTACH, b);
	if (!ret)
		ret = sock_refresh(l, rec_buf_put, b);
	return ret;
}

static int give_seeds(struct give *g, struct rec_buf *b)
{
	int ret = stream_targets(g->l, g->fn, g->ctx);
	if (ret >= 0)
		ret = rec_buf_give(b, give_record, g);
	rec_buf_done(b);
	return ret;
}

static int start(struct give *g)
{
	struct loader *l = g->l;
	int ret = stream_options(l, g->fn, g->ctx);
	if (ret >= 0)
		ret = give_seeds(g, &l->head);
	if (ret >= 0)
		ret = go_work(l, g->fn, g->ctx);
	l->started = true;
	l->next_tick = loader_now() + l->o.interval_ns;
	return ret;
}

/* ---- struct cc_source ----------------------------------------------------------------------- */

static int wait_ms(const struct loader *l, cc_ns deadline)
{
	cc_ns now = loader_now(), due = CC_MIN(l->last_drain + DRAIN_NS, l->next_tick);
	due = CC_MIN(due, deadline);
	return due <= now ? 0 : (int)((due - now + CC_MS(1) - 1) / CC_MS(1));
}

/* Whom --follow has found joins before the next refresh: a call lasts shorter than that. */
static int join_early(struct give *g)
{
	struct loader *l = g->l;
	struct rec_buf b = { 0 };
	if (!follow_waits(l))
		return 0;
	int ret = take_later(l);
	if (!ret)
		ret = stream_targets(l, g->fn, g->ctx);
	if (!ret)
		ret = follow_tell(l, g->fn, g->ctx);
	if (!ret)
		ret = iter_tasks(l, 0, &b);
	if (!ret)
		ret = drain(g);
	if (ret >= 0)
		ret = rec_buf_give(&b, give_record, g);
	rec_buf_done(&b);
	return ret < 0 ? ret : 0;
}

static int poll_once(struct give *g, cc_ns deadline)
{
	struct loader *l = g->l;
	int ret = rings_wait(l->rings, wait_ms(l, deadline)), cnt;
	if (ret)
		return ret;
	cnt = drain(g);
	ret = cnt < 0 ? cnt : go_work(l, g->fn, g->ctx);
	if (ret >= 0)
		ret = join_early(g);
	if (ret < 0 || loader_now() < l->next_tick)
		return ret < 0 ? ret : cnt;
	ret = end_interval(g, 0);
	return ret < 0 ? ret : cnt + ret;
}

static int loader_poll(struct cc_source *s, int timeout_ms, cc_record_fn *fn, void *ctx)
{
	struct loader *l = (struct loader *)s;
	struct give g = { .l = l, .fn = fn, .ctx = ctx };
	cc_ns deadline = loader_now() + CC_MS(CC_MAX(timeout_ms, 0));
	if (l->stopped)
		return -ENODATA;
	if (!l->started) {
		int ret = start(&g);
		if (ret)
			return ret;
	}
	for (;;) {
		int ret = poll_once(&g, deadline);
		if (ret)
			return ret;
		if (!targets_alive(l)) {
			ret = drain(&g); /* what came between the last drain and the exit */
			return ret ? ret : -ENODATA;
		}
		if (loader_now() >= deadline)
			return 0;
	}
}

static int loader_stop(struct cc_source *s, cc_record_fn *fn, void *ctx)
{
	struct loader *l = (struct loader *)s;
	struct give g = { .l = l, .fn = fn, .ctx = ctx };
	int ret = 0;
	if (l->stopped)
		return 0;
	if (!l->started)
		ret = start(&g);
	if (ret >= 0)
		ret = end_interval(&g, CC_TF_STOP);
	l->stopped = true;
	return ret < 0 ? ret : 0;
}

static void loader_free(struct cc_source *s)
{
	struct loader *l = (struct loader *)s;
	sample_done(l);
	sock_done(l);
	follow_done(l);
	go_done(l);
	if (l->o.go.done)
		l->o.go.done(l->o.go.ctx);
	rings_free(l->rings);
	criticast__destroy(l->skel);
	targets_done(l);
	pidns_done(l);
	rec_buf_done(&l->head);
	free(l->lost);
	if (l->stats_fd >= 0)
		close(l->stats_fd);
	free(l);
}

static const struct cc_source_ops loader_ops = {
	.poll = loader_poll,
	.stop = loader_stop,
	.health = stats_health,
	.free = loader_free,
};

static void set_defaults(struct loader *l, const struct loader_opts *o)
{
	l->source.ops = &loader_ops;
	l->stats_fd = -1;
	l->o = *o;
	l->o.pids = l->o.ports = NULL;
	l->o.comms = l->o.cgroups = l->o.units = NULL;
	l->o.stack_min_ns = o->stack_min_ns ? o->stack_min_ns : STACK_MIN_NS;
	l->o.interval_ns = o->interval_ns ? o->interval_ns : CC_S(1);
	l->o.snap_bytes = o->snap_bytes ? CC_MIN(o->snap_bytes, (uint32_t)CC_SNAP_MAX) : SNAP_BYTES;
	l->o.ring_bytes = o->ring_bytes   ? o->ring_bytes
			  : go_expects(o) ? RING_BYTES_GO
					  : RING_BYTES;
	l->o.sample_n = o->sample_n ? o->sample_n : 1;
}

/* Everything that was there before: this CPU must have switched to us and away from us, twice, for
 * the programs to know the offset of the scheduler's clock. Children born before the fork program
 * was attached are looked for once more. */
static int seed_first(struct loader *l)
{
	const struct timespec nap = { .tv_nsec = 200000 };
	for (int i = 0; i < SEED_SLEEPS; i++)
		nanosleep(&nap, NULL);
	int ret = pidns_learn(l);
	if (!ret)
		ret = targets_add_children(l);
	if (ret < 0)
		return ret;
	ret = go_seed(l);
	return ret ? ret : seed(l, &l->head);
}

/* Until the source is freed. */
static int count_runs(struct loader *l, struct cc_err *err)
{
	l->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (l->stats_fd >= 0)
		return 0;
	int res = -errno;
	loader_err(err, "counting program runs: %s; needs Linux 5.8 and CAP_SYS_ADMIN",
		   strerror(-res));
	return res;
}

static int add_ring(struct loader *l, const struct bpf_map *m, uint64_t *over)
{
	int fd = bpf_map__fd(m);
	uint64_t bytes = bpf_map__max_entries(m);
	return over ? rings_add_small(l->rings, fd, bytes, over) : rings_add(l->rings, fd, bytes);
}

static int add_rings(struct loader *l)
{
	const struct {
		const struct bpf_map *map;
		uint64_t *over;
	} in_order[] = {
		[RING_CONTROL] = { l->skel->maps.control, NULL },
		[RING_REQUESTS] = { l->skel->maps.requests,
				    (uint64_t *)&l->skel->bss->requests_over },
		[RING_EVENTS] = { l->skel->maps.events, NULL },
		[RING_EVENTS_SMALL] = { l->skel->maps.events_small,
					(uint64_t *)&l->skel->bss->events_over },
	};
	for (size_t i = 0; i < ARRAY_SIZE(in_order); i++) {
		int res = add_ring(l, in_order[i].map, in_order[i].over);
		if (res)
			return res;
	}
	return 0;
}

int loader_source_new(const struct loader_opts *o, struct cc_err *err, struct cc_source **ret)
{
	struct loader *l = calloc(1, sizeof(*l));
	if (err)
		*err = (struct cc_err){ .pos = -1 };
	if (!l) {
		if (o->go.done)
			o->go.done(o->go.ctx);
		return -ENOMEM;
	}
	set_defaults(l, o);
	l->lost = calloc(CC_REC_KIND_CNT, sizeof(*l->lost));
	int res = l->lost ? rings_new(&l->rings) : -ENOMEM;
	if (!res)
		res = load_programs(l, o, err);
	if (!res && o->count_runs)
		res = count_runs(l, err);
	if (!res)
		res = add_rings(l);
	l->losses_seen = l->last_drain = loader_now();
	if (!res)
		res = seed_first(l);
	if (res) {
		if (err && !err->msg[0])
			loader_err(err, "cannot start tracing: %s", strerror(-res));
		loader_free(&l->source);
		return res;
	}
	*ret = &l->source;
	return 0;
}
