/* SPDX-License-Identifier: Apache-2.0 */
#include "crash.h"
#include "filter.h"
#include "session_priv.h"
#include "trace.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static cc_ns wall_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return CC_S(t.tv_sec) + (cc_ns)t.tv_nsec;
}

/* ---- collector thread ---- */

/* Pictures take at most a quarter of this thread's time: on a busy host, or of a very long table,
 * they come less often than asked for. 0: as asked for. */
#define BUILD_SHARE 4

static cc_ns slowed(const struct session *s)
{
	cc_ns asked = s->cmd.interval_ns ? s->cmd.interval_ns : CC_S(1);
	return BUILD_SHARE * s->build_ns > asked ? BUILD_SHARE * s->build_ns : 0;
}

/* The stream itself comes late: its TICKs are much further apart than asked for. */
static cc_ns lag(const struct session *s)
{
	cc_ns asked = s->cmd.interval_ns ? s->cmd.interval_ns : CC_S(1);
	bool live = !s->replay_path && !s->ended && !s->cmd.paused;
	return live && s->tick_gap_ns > 2 * asked + CC_S(1) ? s->tick_gap_ns - asked : 0;
}

#define PORTS_EVERY CC_S(10) /* servers start late */

/* It takes some milliseconds, and is of use only where there is no request to show. */
static void note_ports(struct session *s, struct snapshot *snap)
{
	cc_ns now = wall_ns();
	if (!s->ports || snap->total_cnt)
		return;
	if (!s->asked_ns || now > s->asked_ns + PORTS_EVERY) {
		s->ports(snap, s->listens, sizeof(s->listens));
		s->asked_ns = now;
	}
	memcpy(snap->runtime.listens, s->listens, sizeof(s->listens));
}

static int publish(struct session *s)
{
	struct snapshot *snap;
	struct cc_query q = s->query;
	char status[128];
	int broken = collect_recording_error(s->collect);
	if (s->err || broken) {
		snprintf(status, sizeof(status), "%s: %s",
			 s->err ? "the collector failed" : "the recording ended",
			 strerror(s->err ? -s->err : -broken));
		q.status = status;
	}
	struct cc_request span = { 0 };
	struct cc_found found;
	if (s->cmd.span_tid &&
	    !collect_span(s->collect, s->cmd.span_tid, s->cmd.span_ns, &span, &found))
		q.span = &span;
	if (s->target_gone && !q.status)
		q.status = s->waiting ? "waiting for the target to run again" : s->gone;
	cc_ns began = wall_ns();
	int err = collect_snapshot(s->collect, &q, &snap);
	free(span.path);
	s->published_ns = wall_ns();
	s->build_ns = s->published_ns - began;
	if (err)
		return err;
	snap->runtime.live = !s->replay_path && !s->ended;
	snap->runtime.paused = s->cmd.paused;
	snap->runtime.ended = s->ended;
	snap->runtime.target_gone = s->target_gone;
	snap->runtime.filling = s->fill_to != 0;
	snap->runtime.slowed_ns = slowed(s);
	snap->runtime.lag_ns = lag(s);
	snap->runtime.built_ns = s->published_ns;
	note_ports(s, snap);
	snapshot_free(mailbox_put(&s->snaps, snap));
	session_signal(s->event_fd);
	return 0;
}

static int on_tick(void *ctx, struct collect *c, const struct cc_rec_tick *tick)
{
	(void)c;
	struct session *s = ctx;
	s->tick_gap_ns = s->tick_ns && tick->h.ts > s->tick_ns ? tick->h.ts - s->tick_ns : 0;
	s->tick_ns = tick->h.ts;
	if (s->replay_path || s->cmd.paused)
		return 0;
	return slowed(s) && wall_ns() < s->published_ns + slowed(s) ? 0 : publish(s);
}

static void note_exit(struct session *s)
{
	struct engine_target t = { 0 };
	struct timespec now;
	struct tm tm;
	char who[64] = "the target";
	if (engine_target_at(collect_engine(s->collect), 0, &t) &&
	    !engine_target_at(collect_engine(s->collect), 1, &t))
		snprintf(who, sizeof(who), "pid %u %.*s", t.tgid, CC_COMM_LEN,
			 t.comm ? t.comm : "");
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	snprintf(s->gone, sizeof(s->gone), "%s exited %02d:%02d:%02d", who, tm.tm_hour, tm.tm_min,
		 tm.tm_sec);
}

static int end_of_stream(struct session *s)
{
	s->ended = true;
	s->fill_to = 0;
	collect_glance_over(s->collect);
	s->target_gone = !s->replay_path;
	if (s->target_gone)
		note_exit(s);
	int err = s->replay_path ? 0 : collect_stop(s->collect);
	if (!err)
		err = collect_finish(s->collect);
	return err ? err : publish(s);
}

/* Feeds a replay up to the first TICK at or after @to. */
static int replay_to(struct session *s, cc_ns to)
{
	while (!s->ended && s->tick_ns < to && !atomic_load(&s->stop)) {
		int n = collect_step(s->collect, 0);
		if (n == -ENODATA)
			return end_of_stream(s);
		if (n < 0)
			return n;
	}
	return 0;
}

static bool has_finished_request(const struct engine *e)
{
	size_t cnt;
	engine_requests(e, &cnt);
	return cnt > 0;
}

#define OPEN_WITHIN CC_MS(500) /* then a recording without requests is shown from where it is */

static int replay_open(struct session *s)
{
	cc_ns until = wall_ns() + OPEN_WITHIN;
	while (!s->ended && !has_finished_request(collect_engine(s->collect)) &&
	       !atomic_load(&s->stop) && (wall_ns() < until || !s->tick_ns)) {
		int n = collect_step(s->collect, 0);
		if (n == -ENODATA)
			return end_of_stream(s);
		if (n < 0)
			return n;
	}
	return publish(s);
}

static int replay_reopen(struct session *s)
{
	struct cc_source *src;
	struct cc_err why;
	int err = trace_source_new(s->replay_path, &why, &src);
	return err ? err : collect_restart(s->collect, src);
}

static int replay_seek(struct session *s, cc_ns to)
{
	bool onward = to != 0 && to >= s->tick_ns;
	int first = to ? collect_glance(s->collect, to, onward) : 0;
	if (first < 0)
		return first;
	s->fill_to = first ? to : 0;
	int err = first ? publish(s) : 0; /* before the engine of before is taken down */
	if (err)
		return err;
	err = collect_seek(s->collect, to, onward);
	if (err == -EOPNOTSUPP || err == -ENOENT)
		err = onward ? 0 : replay_reopen(s);
	if (err)
		return err;
	if (!onward) {
		s->tick_ns = s->tick_gap_ns = 0;
		s->ended = false;
	}
	s->next_step = 0;
	return to == 0 ? replay_open(s) : first ? 0 : replay_to(s, to);
}

/* One refresh further on the way to where the first look is of. */
static int fill_on(struct session *s)
{
	int n = collect_step(s->collect, 0);
	if (n == -ENODATA)
		return end_of_stream(s);
	if (n < 0 || s->tick_ns < s->fill_to)
		return CC_MIN(n, 0);
	s->fill_to = 0;
	collect_glance_over(s->collect);
	return publish(s);
}

static int replay_step(struct session *s)
{
	cc_ns before = s->tick_ns;
	int err = replay_to(s, before + 1);
	if (err || s->ended)
		return err;
	double speed = s->cmd.speed > 0 ? s->cmd.speed : 1;
	cc_ns gap = s->tick_gap_ns ? s->tick_gap_ns : CC_S(1);
	s->next_step = wall_ns() + (cc_ns)((double)gap / speed);
	return publish(s);
}

static void apply_query(struct session *s, const struct tui_cmd *c)
{
	struct filter *f = NULL;
	struct cc_err why;
	if (!c->filter[0] || filter_parse(c->filter, &why, &f) == 0) {
		filter_free(s->filter);
		s->filter = f;
	}
	s->query.filter = s->filter;
	s->query.sort = c->sort;
	s->query.ascending = c->ascending;
	s->query.group = c->group;
	s->query.root_causes = c->root_causes;
	s->query.selected = c->selected;
	s->query.also = c->also;
	s->query.by_port = c->by_port;
	s->query.view_ns = c->paused ? c->view_ns : 0;
}

/* A live trace in pause is looked at as it was then: the engine of now has forgotten some of it and
 * knows more of the rest. The first picture of the pause is still that of now. */
static int look_back(struct session *s, const struct tui_cmd *c)
{
	bool live = !s->replay_path;
	if (!live || !c->paused) {
		s->look_ns = 0;
		s->looking = false;
		if (live)
			collect_hold(s->collect, false);
		return collect_look(s->collect, 0);
	}
	collect_hold(s->collect, true);
	if (c->changed != TUI_CH_SELECT && (c->changed != TUI_CH_PAUSE || s->look_ns)) {
		s->look_ns = c->view_ns;
		s->looking = s->look_ns != 0;
	}
	return 0;
}

/* One refresh further on the way to the past. */
static int look_on(struct session *s)
{
	int more = collect_look(s->collect, s->look_ns);
	if (more > 0)
		return 0;
	s->looking = false;
	if (more && more != -ENOENT)
		return more;
	if (!more)
		s->query.view_ns = 0; /* it ends there by itself */
	return publish(s);
}

#define AGAIN_EVERY CC_S(1)

/* One look for the target; when it is there everything starts anew. */
static int try_again(struct session *s)
{
	struct collect_opts co = { 0 };
	s->next_step = wall_ns() + AGAIN_EVERY;
	int err = s->again(s->again_ctx, &co);
	if (err == -ESRCH)
		return 0;
	s->waiting = false;
	if (!err)
		err = collect_again(s->collect, &co);
	if (err)
		return err;
	s->ended = s->target_gone = false;
	s->tick_ns = s->tick_gap_ns = s->look_ns = 0;
	return publish(s);
}

static int apply_command(struct session *s)
{
	const struct tui_cmd *c = newest_take(&s->cmds);
	if (!c)
		return 0;
	bool seek = s->replay_path && c->seek_cnt != s->cmd.seek_cnt;
	bool show = c->changed != TUI_CH_SELECT;
	if (c->restart_cnt != s->cmd.restart_cnt)
		s->waiting = s->again && s->target_gone;
	s->cmd = *c;
	apply_query(s, c);
	int err = seek ? replay_seek(s, c->view_ns) : look_back(s, c);
	bool shown = s->looking || (seek && s->fill_to);
	return err || !show || shown ? err : publish(s);
}

static void apply_job(struct session *s)
{
	struct save_job *j = mailbox_take(&s->jobs);
	pid_t pid;
	if (!j)
		return;
	pid_t old = atomic_exchange(&s->save_pid, 0);
	if (old) /* it told its end before this one was asked for */
		waitpid(old, NULL, 0);
	if (!save_fork(j, s->collect, &s->query, &pid))
		atomic_store(&s->save_pid, pid);
	save_job_free(j);
}

static void free_used(struct session *s)
{
	for (size_t i = 0; i < SESSION_USED; i++)
		snapshot_free(atomic_exchange(&s->used[i], NULL));
}

/* How long the thread may sleep when the source has nothing to wait on. */
static int idle_ms(const struct session *s)
{
	if (!s->waiting && (s->ended || s->cmd.paused))
		return 1000;
	cc_ns now = wall_ns();
	return now >= s->next_step ? 0 : (int)((s->next_step - now) / 1000000) + 1;
}

static int turn(struct session *s)
{
	if (!s->replay_path && !s->ended) {
		int n = collect_step(s->collect, s->looking ? 0 : 20);
		if (n == -ENODATA)
			n = end_of_stream(s);
		return n >= 0 && s->looking ? look_on(s) : CC_MIN(n, 0);
	}
	if (s->looking)
		return look_on(s);
	if (s->fill_to)
		return fill_on(s);
	struct pollfd p = { .fd = s->wake_fd, .events = POLLIN };
	int ms = idle_ms(s);
	if (ms > 0 && poll(&p, 1, ms) > 0)
		return session_clear(s->wake_fd), 0;
	if (s->waiting && wall_ns() >= s->next_step)
		return try_again(s);
	if (s->ended || s->cmd.paused || wall_ns() < s->next_step)
		return 0;
	return replay_step(s);
}

/* Its engine comes from this thread's part of the heap, so that to make it larger takes no lock
 * that the UI may want. */
static int begin(struct session *s)
{
	int err = collect_new(&s->opts, &s->collect);
	s->begin_err = err;
	sem_post(&s->begun);
	return err;
}

static void *collector(void *arg)
{
	struct session *s = arg;
	if (s->signal_stack)
		crash_thread_stack(s->signal_stack, crash_stack_size());
	if (begin(s))
		return NULL;
	int err = s->replay_path ? replay_open(s) : 0;
	while (!err && !atomic_load(&s->stop)) {
		free_used(s);
		err = apply_command(s);
		if (!s->fill_to)
			apply_job(s);
		if (!err)
			err = turn(s);
	}
	apply_job(s); /* asked for just before the end */
	if (!err && !s->replay_path && !s->ended)
		err = collect_stop(s->collect);
	if (err) { /* what there is stays on the screen, and says why it is the last */
		s->err = err;
		s->ended = true;
		if (publish(s))
			session_signal(s->event_fd);
	}
	return NULL;
}

/* ---- begin and end ---- */

int session_event_fd(const struct session *s) { return s->event_fd; }

static int open_fds(struct session *s)
{
	s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s->event_fd < 0 || s->wake_fd < 0 ? -errno : 0;
}

int session_start(const struct session_opts *o, struct session **ret)
{
	struct collect_opts co = o->collect;
	struct session *s = calloc(1, sizeof(*s));
	if (!s) {
		collect_opts_drop(&co);
		return -ENOMEM;
	}
	co.on_tick = on_tick;
	co.ctx = s;
	newest_init(&s->cmds);
	sem_init(&s->begun, 0, 0);
	s->save_fd = -1;
	s->replay_path = o->replay_path;
	s->again = o->again;
	s->again_ctx = o->again_ctx;
	s->ports = o->ports;
	s->query.window_ns = o->window_ns;
	int err = open_fds(s);
	if (!err && o->filter) {
		struct cc_err why;
		err = filter_parse(o->filter, &why, &s->filter);
		s->query.filter = s->filter;
	}
	s->opts = co;
	s->signal_stack = malloc(crash_stack_size());
	if (!err)
		err = -pthread_create(&s->thread, NULL, collector, s);
	if (err) {
		collect_opts_drop(&s->opts);
	} else {
		while (sem_wait(&s->begun) && errno == EINTR)
			;
		err = s->begin_err; /* what it was given is dropped then */
		if (err)
			pthread_join(s->thread, NULL);
	}
	if (err) {
		session_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

int session_stop(struct session *s)
{
	atomic_store(&s->stop, true);
	session_signal(s->wake_fd);
	pthread_join(s->thread, NULL);
	int closed = collect_close_recording(s->collect);
	return s->err ? s->err : closed;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	collect_free(s->collect);
	filter_free(s->filter);
	snapshot_free(mailbox_take(&s->snaps));
	free_used(s);
	save_job_free(mailbox_take(&s->jobs));
	if (s->event_fd > 0)
		close(s->event_fd);
	if (s->wake_fd > 0)
		close(s->wake_fd);
	if (s->save_fd >= 0)
		close(s->save_fd);
	sem_destroy(&s->begun);
	free(s->signal_stack);
	free(s);
}
