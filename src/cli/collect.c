/* SPDX-License-Identifier: Apache-2.0 */
#include "collect.h"
#include "digest.h"
#include "glance.h"
#include "history.h"
#include "past.h"
#include "resolver.h"
#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct collect {
	struct collect_opts o;
	struct engine *engine;
	struct history *history;
	struct past *past;     /* NULL: nobody looks back */
	struct glance *glance; /* NULL: none was needed so far */
	bool glancing;         /* it is what is shown */
	int writer_err;        /* first error of the recording; it ends, the rest goes on */
	uint64_t recorded;     /* bytes of the recording that was closed */
	cc_ns cpu_ns, wall_ns; /* at the last snapshot, for runtime.cpu_share */
	double cpu_share;
	uint64_t fed; /* of a file: records of late, and the CPU time they took */
	cc_ns fed_ns;
};

#define FED_MAX (1u << 20) /* records that are remembered in how long they took */

/* A seek feeds as many records before the place as can be fed in this time, so that its end is in
 * sight in a recording of any kind: some records cost ten times as much as others. */
#define SEEK_NS CC_MS(400)
#define SEEK_LEAST 50000u
#define SEEK_MOST 300000u

/* When that takes longer than a user waits gladly, a first look comes before it, from a few. */
#define GLANCE_OVER CC_MS(50)
#define GLANCE_NS CC_MS(10)
#define GLANCE_LEAST 2000u
#define GLANCE_MOST 20000u
#define GLANCE_ROWS 100u

static int engine_start(struct collect *c)
{
	return c->o.no_engine ? 0 : engine_new(&c->o.engine, &c->engine);
}

void collect_opts_drop(struct collect_opts *o)
{
	cc_source_free(take_ptr(o->source));
	resolver_free(take_ptr(o->resolver));
	trace_writer_free(take_ptr(o->writer));
}

int collect_new(const struct collect_opts *o, struct collect **ret)
{
	struct collect_opts mine = *o;
	struct collect *c = calloc(1, sizeof(*c));
	if (!c) {
		collect_opts_drop(&mine);
		return -ENOMEM;
	}
	c->o = mine;
	int err = engine_start(c);
	if (!err && o->history_bytes) {
		c->history = history_new(o->history_bytes, o->history_ns);
		err = c->history ? 0 : -ENOMEM;
	}
	if (err) {
		collect_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

void collect_free(struct collect *c)
{
	if (!c)
		return;
	collect_opts_drop(&c->o);
	past_free(c->past);
	glance_free(c->glance);
	engine_free(c->engine);
	history_free(c->history);
	free(c);
}

/* One resolved record, on its way to everyone who keeps something of it. */
static int take_in(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct collect *c = ctx;
	if (c->o.writer && !c->writer_err) {
		int put = trace_writer_put(c->o.writer, rec, len);
		c->writer_err = put == -EINVAL ? 0 : put; /* malformed: counted by the engine */
	}
	if (c->writer_err && c->o.no_engine)
		return c->writer_err; /* recording was all there was to do */
	if (c->history) {
		int err = history_put(c->history, rec, len);
		if (err)
			return err;
	}
	if (!c->engine)
		return 0;
	return engine_stream(c->engine, rec, len); /* malformed: counted, shown with its stats */
}

static int resolved(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct collect *c = ctx;
	if (c->o.on_record)
		c->o.on_record(c->o.ctx, rec);
	int err = take_in(c, rec, len);
	if (err < 0 || rec->kind != CC_REC_TICK || !c->o.on_tick)
		return err;
	return c->o.on_tick(c->o.ctx, c, (const struct cc_rec_tick *)rec);
}

static int from_source(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct collect *c = ctx;
	return c->o.resolver ? resolver_feed(c->o.resolver, rec, len, resolved, c)
			     : resolved(c, rec, len);
}

static cc_ns thread_cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

int collect_step(struct collect *c, int timeout_ms)
{
	if (c->o.resolver)
		return c->o.source->ops->poll(c->o.source, timeout_ms, from_source, c);
	cc_ns began = thread_cpu_ns();
	int n = c->o.source->ops->poll(c->o.source, timeout_ms, from_source, c);
	c->fed += (uint64_t)CC_MAX(n, 0);
	c->fed_ns += thread_cpu_ns() - began;
	if (c->fed > FED_MAX) {
		c->fed /= 2;
		c->fed_ns /= 2;
	}
	return n;
}

int collect_stop(struct collect *c)
{
	struct cc_source *s = c->o.source;
	return s->ops->stop ? s->ops->stop(s, from_source, c) : 0;
}

int collect_close_recording(struct collect *c)
{
	if (!c->o.writer)
		return 0;
	c->recorded = trace_writer_bytes(c->o.writer);
	int err = trace_writer_close(c->o.writer);
	c->o.writer = NULL;
	return c->writer_err ? c->writer_err : err;
}

uint64_t collect_recorded_bytes(const struct collect *c)
{
	struct history_kept kept = { .bytes = 0 };
	if (c->o.writer)
		return trace_writer_bytes(c->o.writer);
	if (!c->history)
		return c->recorded;
	history_kept(c->history, &kept);
	return kept.bytes;
}

int collect_recording_error(const struct collect *c) { return c->writer_err; }

int collect_finish(struct collect *c) { return c->engine ? engine_finish(c->engine) : 0; }

int collect_restart(struct collect *c, struct cc_source *source)
{
	cc_source_free(c->o.source);
	c->o.source = source;
	engine_free(c->engine);
	c->engine = NULL;
	return engine_start(c);
}

int collect_again(struct collect *c, const struct collect_opts *o)
{
	cc_source_free(c->o.source);
	resolver_free(c->o.resolver);
	c->o.source = o->source;
	c->o.resolver = o->resolver;
	past_free(take_ptr(c->past));
	engine_free(take_ptr(c->engine));
	if (c->history) {
		history_free(c->history);
		c->history = history_new(c->o.history_bytes, c->o.history_ns);
		if (!c->history)
			return -ENOMEM;
	}
	return engine_start(c);
}

/* How many can be fed in @ns, going by those of late. */
static uint64_t fed_in(const struct collect *c, cc_ns ns, uint64_t least, uint64_t most)
{
	double per_ns = c->fed_ns ? (double)c->fed / (double)c->fed_ns : 0;
	return (uint64_t)CC_MAX(CC_MIN(per_ns * (double)ns, (double)most), (double)least);
}

static uint64_t seek_records(const struct collect *c)
{
	return fed_in(c, SEEK_NS, SEEK_LEAST, SEEK_MOST);
}

int collect_glance(struct collect *c, cc_ns to, bool onward)
{
	uint64_t ahead = trace_source_ahead(c->o.source, to, seek_records(c), onward);
	c->glancing = false;
	if (ahead < fed_in(c, GLANCE_OVER, 1, UINT32_MAX))
		return 0;
	int err = c->glance ? 0 : glance_new(c->o.source, &c->o.engine, &c->glance);
	if (!err)
		err = glance_go(c->glance, to, fed_in(c, GLANCE_NS, GLANCE_LEAST, GLANCE_MOST),
				c->engine ? engine_stats(c->engine)->realtime_off_ns : 0);
	c->glancing = !err;
	return err == -EOPNOTSUPP ? 0 : err ? err : 1;
}

void collect_glance_over(struct collect *c)
{
	c->glancing = false;
	if (c->glance)
		glance_drop(c->glance);
}

int collect_seek(struct collect *c, cc_ns to, bool onward)
{
	int n = trace_source_seek(c->o.source, to, seek_records(c), onward);
	if (n)
		return n < 0 ? n : 0;
	engine_free(take_ptr(c->engine));
	return engine_start(c);
}

static int put_record(void *ctx, const struct cc_rec *rec, size_t len)
{
	return trace_writer_put(ctx, rec, len);
}

int collect_save_history(struct collect *c, cc_ns since, const char *path)
{
	if (!c->history)
		return -ENOENT;
	struct trace_writer *w;
	struct cc_err why;
	int err = trace_writer_open(path, &why, &w);
	if (err)
		return err;
	err = history_each(c->history, since, put_record, w);
	int closed = trace_writer_close(w);
	return err ? err : closed;
}

static struct engine *shown(const struct collect *c)
{
	return c->glancing ? glance_engine(c->glance) : c->past ? past_engine(c->past) : c->engine;
}

const struct engine *collect_engine(const struct collect *c) { return shown(c); }

void collect_hold(struct collect *c, bool hold)
{
	if (c->history)
		history_hold(c->history, hold);
}

int collect_look(struct collect *c, cc_ns to)
{
	if (!to) {
		past_free(take_ptr(c->past));
		return 0;
	}
	if (!c->history)
		return -ENOENT;
	if (!c->past)
		c->past = past_new(&c->o.engine, c->history);
	return c->past ? past_go(c->past, to) : -ENOMEM;
}

static cc_ns clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

static uint64_t rss_bytes(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	if (!f)
		return 0;
	if (fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int32_t collect_zone_offset(const struct engine *e)
{
	const struct engine_stats *st = engine_stats(e);
	time_t sec = (time_t)(((int64_t)st->last_ns + st->realtime_off_ns) / (int64_t)CC_S(1));
	struct tm tm;
	return localtime_r(&sec, &tm) ? (int32_t)tm.tm_gmtoff : 0;
}

#define SPAN_PIECES 20000 /* a thread's time is shown for as long as that many tell it */
#define SPAN_MAX CC_S(10)

int collect_span(struct collect *c, uint32_t tid, cc_ns to, struct cc_request *ret,
		 struct cc_found *found)
{
	*ret = (struct cc_request){
		.id = { .id = tid, .kind = CC_REQID_TID }, .end = to, .tid = tid, .recv_tid = tid
	};
	struct engine_task t;
	struct engine *e = shown(c);
	if (!engine_task(e, tid, to, &t))
		return -ESRCH;
	ret->tgid = t.tgid;
	cc_ns first = CC_MAX(engine_stats(e)->first_ns, t.born);
	for (cc_ns span = SPAN_MAX;; span /= 4) {
		size_t cnt = 0;
		ret->start = CC_MAX(to > span ? to - span : 0, first);
		int err = engine_walk(e, tid, ret->start, to, &ret->path, &cnt);
		ret->path_cnt = (uint32_t)cnt;
		ret->path_ok = !err;
		if (err || cnt <= SPAN_PIECES || span < CC_MS(1)) {
			request_digest(ret, found);
			return err;
		}
		free(take_ptr(ret->path));
	}
}

cc_ns collect_kept_ns(const struct collect *c)
{
	struct history_kept kept = { 0 };
	if (c->history)
		history_kept(c->history, &kept);
	return kept.oldest && kept.to > kept.oldest ? kept.to - kept.oldest : 0;
}

static void tell_kept(const struct collect *c, struct snapshot *s)
{
	struct history_kept kept;
	s->runtime.newest_ns = c->engine ? engine_stats(c->engine)->watermark_ns : 0;
	if (!c->history)
		return;
	history_kept(c->history, &kept);
	s->runtime.kept_from_ns = kept.from;
	s->runtime.kept_bytes = kept.bytes;
}

static void tell_unwinding(const struct collect *c, struct snapshot *s)
{
	struct resolver_health h;
	if (!c->o.resolver)
		return;
	resolver_health(c->o.resolver, &h);
	s->runtime.unwind = (struct snap_unwind){
		.user = h.user,
		.user_full = h.user_full,
		.cut = h.cut,
		.no_map = h.no_map,
		.no_cfi = h.no_cfi,
		.bad = h.bad,
		.code_changed = h.code_changed,
		.guessed = h.guessed,
		.unclaimed = h.unclaimed,
		.procs = h.procs,
		.bytes = h.bytes,
		.known = true,
		.kernel_hidden = h.kernel_hidden,
	};
}

static void tell_probes(const struct collect *c, struct snapshot *s)
{
	struct cc_source_health h = { 0 };
	struct cc_source *src = c->o.source;
	if (!src->ops->health)
		return;
	src->ops->health(src, &h);
	s->runtime.ring_fill = h.ring_fill;
	for (uint32_t i = 0; i < h.probe_cnt && i < SNAP_PROBES; i++) {
		struct snap_probe *p = &s->runtime.probe[s->runtime.probe_cnt++];
		snprintf(p->name, sizeof(p->name), "%s", h.probe[i].name);
		snprintf(p->place, sizeof(p->place), "%s", h.probe[i].place);
		p->attached = h.probe[i].attached;
		p->skipped = h.probe[i].skipped;
	}
}

int collect_snapshot(struct collect *c, const struct cc_query *query, struct snapshot **ret)
{
	struct snapshot *s;
	struct cc_query q = *query;
	q.tz_off_s = collect_zone_offset(shown(c));
	if (c->glancing)
		q.max_rows = GLANCE_ROWS;
	int err = snapshot_build(shown(c), &q, &s);
	if (err)
		return err;
	cc_ns cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), wall = clock_ns(CLOCK_MONOTONIC);
	/* a process that saves has used none yet: it tells the last share that was known */
	if (c->wall_ns && wall > c->wall_ns && cpu >= c->cpu_ns)
		c->cpu_share = (double)(cpu - c->cpu_ns) / (double)(wall - c->wall_ns);
	s->runtime.cpu_share = c->cpu_share;
	c->cpu_ns = cpu;
	c->wall_ns = wall;
	s->runtime.rss_bytes = rss_bytes();
	tell_kept(c, s);
	tell_unwinding(c, s);
	tell_probes(c, s);
	*ret = s;
	return 0;
}
