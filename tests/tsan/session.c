/* SPDX-License-Identifier: Apache-2.0 */
/* The two threads of `top` on a small recording, while the main one does what a hasty user does:
 * seeks, pauses, filters, sorts, saves; then a live one that is paused and looked back at. Run
 * under TSan; its own checks are that every snapshot is whole (paths add up) and that the last
 * command's effect arrives. */
#include "session.h"
#include "trace.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICKS 200
#define REQUESTS 5 /* per TICK */
#define BASE CC_S(100)

static int put(struct trace_writer *w, void *rec, unsigned int kind, size_t size, cc_ns ts)
{
	struct cc_rec *h = rec;
	h->kind = (uint8_t)kind;
	h->size = (uint16_t)size;
	h->ts = ts;
	return trace_writer_put(w, h, size);
}

/* One thread that serves a request in each fifth of a second: 10 ms, of which 6 are a wait. */
static int write_recording(const char *path)
{
	struct trace_writer *w;
	struct cc_err why;
	int err = trace_writer_open(path, &why, &w);
	uint32_t seq = 0;
	for (int t = 0; !err && t < TICKS; t++) {
		cc_ns base = BASE + (cc_ns)t * CC_S(1);
		for (unsigned int i = 0; !err && i < REQUESTS; i++) {
			cc_ns at = base + i * CC_MS(200);
			struct cc_rec_episode e = { .tid = 7,
						    .seq = ++seq,
						    .out = at + CC_MS(2),
						    .wake = at + CC_MS(8),
						    .state = 1,
						    .waker_tid = 9,
						    .waker_tgid = 7 };
			struct cc_rec_req r = { .cookie = 0xabc,
						.ordinal = seq,
						.arrival = at,
						.first_recv = at,
						.last_recv = at,
						.first_send = at + CC_MS(10),
						.last_send = at + CC_MS(10),
						.recv_cnt = 1,
						.send_cnt = 1,
						.recv_tid = 7,
						.send_tid = 7,
						.tgid = 7,
						.local_port = 80 };
			e.h.aux = 202; /* futex */
			err = put(w, &e, CC_REC_EPISODE, sizeof(e), at + CC_MS(8) + 1000);
			if (!err)
				err = put(w, &r, CC_REC_REQ, sizeof(r), at + CC_MS(60));
		}
		struct cc_rec_tick tick = { .drained_to = base + CC_S(1), .interval_ns = CC_S(1) };
		if (!err)
			err = put(w, &tick, CC_REC_TICK, sizeof(tick), base + CC_S(1));
	}
	int closed = trace_writer_close(w);
	return err ? err : closed;
}

static bool whole(const struct snapshot *s)
{
	for (uint32_t i = 0; i < s->request_cnt; i++) {
		const struct snap_request *r = &s->requests[i];
		if (r->path_ok && r->path_sum_ns != r->latency_ns)
			return false;
	}
	return true;
}

static void hasty_user(struct session *s, int steps, unsigned int *snaps, unsigned int *broken)
{
	struct tui_cmd cmd = { .speed = 1000 };
	unsigned int rnd = 1;
	for (int i = 0; i < steps; i++) {
		rnd = rnd * 1103515245u + 12345u;
		switch (rnd >> 16 & 7) {
		case 0:
			cmd.seek_cnt++;
			cmd.view_ns = BASE + (rnd >> 8 & 127) * CC_S(1);
			break;
		case 1:
			cmd.paused = !cmd.paused;
			break;
		case 2:
			snprintf(cmd.filter, sizeof(cmd.filter), "%s", rnd & 64 ? "lat>1ms" : "");
			break;
		default:
			cmd.sort = (enum snap_sort)(rnd >> 20 & 3);
		}
		if (session_tui_ops.command(s, &cmd))
			(*broken)++;
		struct pollfd p = { .fd = session_event_fd(s), .events = POLLIN };
		uint64_t news;
		if (poll(&p, 1, 5) == 1 && read(p.fd, &news, sizeof(news)) < 0)
			(*broken)++;
		struct snapshot *snap = session_tui_ops.take(s);
		if (!snap)
			continue;
		(*snaps)++;
		*broken += !whole(snap);
		snapshot_free(snap);
	}
}

/* ---- a live trace: the recording at a pace of its own, which never ends ---- */

struct paced {
	struct cc_source source;
	struct cc_source *file;
	struct cc_rec_tick tick; /* the last one: told again and again at the end */
};

struct passed_on {
	struct paced *p;
	cc_record_fn *fn;
	void *ctx;
};

static int pass_on(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct passed_on *to = ctx;
	if (rec->kind == CC_REC_TICK)
		memcpy(&to->p->tick, rec, sizeof(to->p->tick));
	return to->fn(to->ctx, rec, len);
}

static int paced_poll(struct cc_source *s, int timeout_ms, cc_record_fn *fn, void *ctx)
{
	struct paced *p = (struct paced *)s;
	(void)timeout_ms;
	poll(NULL, 0, 2);
	struct passed_on to = { p, fn, ctx };
	int n = p->file->ops->poll(p->file, 0, pass_on, &to);
	return n == -ENODATA ? fn(ctx, &p->tick.h, sizeof(p->tick)) : n;
}

static void paced_free(struct cc_source *s)
{
	struct paced *p = (struct paced *)s;
	cc_source_free(p->file);
	free(p);
}

static const struct cc_source_ops paced_ops = { .poll = paced_poll, .free = paced_free };

static int paced_new(const char *path, struct cc_source **ret)
{
	struct cc_err why;
	struct paced *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->source.ops = &paced_ops;
	int err = trace_source_new(path, &why, &p->file);
	if (err)
		free(p);
	else
		*ret = &p->source;
	return err;
}

/* The next snapshot for which paused is @paused and that is not after @to; NULL: none in time. */
static struct snapshot *await(struct session *s, bool paused, cc_ns from, cc_ns to)
{
	for (int i = 0; i < 2000; i++) {
		struct pollfd p = { .fd = session_event_fd(s), .events = POLLIN };
		uint64_t news;
		if (poll(&p, 1, 10) == 1 && read(p.fd, &news, sizeof(news)) < 0)
			return NULL;
		struct snapshot *snap = session_tui_ops.take(s);
		if (snap && snap->runtime.paused == paused && snap->now_ns >= from &&
		    snap->now_ns <= to)
			return snap;
		snapshot_free(snap);
	}
	return NULL;
}

/* In pause a second engine tells how it was, while the first goes on. Returns what went wrong. */
static const char *look_back(struct session *s)
{
	struct tui_cmd cmd = { .speed = 1, .interval_ns = CC_S(1) };
	const cc_ns then = BASE + CC_S(50), end = BASE + CC_S(TICKS);
	struct snapshot *snap = await(s, false, BASE + CC_S(100), end);
	if (!snap)
		return "the trace does not go on";
	snapshot_free(snap);
	cmd.paused = true;
	cmd.view_ns = then;
	cmd.changed = TUI_CH_SEEK | TUI_CH_PAUSE;
	if (session_tui_ops.command(s, &cmd) || !(snap = await(s, true, then, then)))
		return "no picture of the past";
	bool ok = snap->total_cnt == 50 * REQUESTS && whole(snap) &&
		  snap->runtime.newest_ns > then && snap->runtime.kept_from_ns == BASE + CC_S(1);
	snapshot_free(snap);
	if (!ok)
		return "the past is another one";
	cmd.changed = TUI_CH_QUERY;
	snprintf(cmd.filter, sizeof(cmd.filter), "lat>1s");
	if (session_tui_ops.command(s, &cmd) || !(snap = await(s, true, then, then)))
		return "no answer in pause";
	ok = snap->match_cnt == 0 || snap->filter_text == 0; /* the one before may come first */
	snapshot_free(snap);
	cmd.paused = false;
	cmd.view_ns = 0;
	cmd.changed = TUI_CH_PAUSE | TUI_CH_SEEK;
	if (session_tui_ops.command(s, &cmd) || !(snap = await(s, false, BASE + CC_S(100), end)))
		return "not back to live";
	snapshot_free(snap);
	return ok ? NULL : "the filter does nothing in the past";
}

static int live(const char *path)
{
	struct session_opts o = { .window_ns = CC_S(1000) };
	struct session *s;
	o.collect.history_bytes = 64 << 20;
	o.collect.history_ns = CC_S(1000);
	int err = paced_new(path, &o.collect.source);
	if (!err)
		err = session_start(&o, &s);
	if (err)
		return err;
	const char *wrong = look_back(s);
	if (wrong)
		printf("looking back: %s\n", wrong);
	err = session_stop(s);
	session_free(s);
	return wrong ? -EIO : err;
}

int main(void)
{
	char dir[] = "/tmp/criticast-tsan-XXXXXX", path[64];
	unsigned int snaps = 0, broken = 0;
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/t.criticast", dir);
	struct session_opts o = { .replay_path = path, .window_ns = CC_S(60) };
	struct session *s = NULL;
	struct cc_err why;
	int err = write_recording(path);
	if (!err)
		err = trace_source_new(path, &why, &o.collect.source);
	if (!err)
		err = session_start(&o, &s);
	if (!err) {
		hasty_user(s, 400, &snaps, &broken);
		err = session_stop(s);
		session_free(s);
	}
	if (!err)
		err = live(path);
	unlink(path);
	rmdir(dir);
	if (err)
		printf("error: %s\n", strerror(-err));
	printf("%u snapshots, %u broken\n", snaps, broken);
	int passed = !err && snaps > 20 && !broken;
	printf("%d passed, %d failed\n", passed, !passed);
	return !passed;
}
