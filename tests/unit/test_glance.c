/* SPDX-License-Identifier: Apache-2.0 */
/* A first look at a place of a recording, and the whole picture that follows it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "glance.h"
#include "json.h"
#include "session.h"
#include "trace.h"

#define DEMO CC_SRC_DIR "/testdata/demo.criticast"

static const struct engine_opts opts = { .memory_bytes = 256 << 20, .window_ns = CC_S(120) };

static struct cc_source *open_demo(struct trace_info *ret)
{
	struct cc_source *src;
	struct cc_err err;
	cr_assert_eq(trace_source_new(DEMO, &err, &src), 0, "%s", err.msg);
	*ret = *trace_source_info(src);
	return src;
}

static struct snapshot *picture(const struct engine *e, cc_ns to)
{
	struct cc_query q = { .window_ns = CC_S(60), .view_ns = to };
	struct snapshot *s;
	cr_assert_eq(snapshot_build(e, &q, &s), 0);
	return s;
}

struct feeding {
	struct engine *e;
	cc_ns to;
};

static int feed(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct feeding *f = ctx;
	int err = engine_feed(f->e, rec, len);
	if (rec->kind == CC_REC_TICK && rec->ts >= f->to)
		return -ECANCELED;
	return err == -EINVAL ? 0 : err;
}

/* All that the file says up to the first TICK at or after @to. */
static struct engine *whole_engine(cc_ns to)
{
	struct trace_info info;
	struct feeding f = { .to = to };
	struct cc_source *src = open_demo(&info);
	cr_assert_eq(engine_new(&opts, &f.e), 0);
	while (src->ops->poll(src, 0, feed, &f) > 0)
		;
	cc_source_free(src);
	return f.e;
}

/* Of the last moments before the place it says what the whole engine says. */
Test(glance, is_of_the_place_and_true)
{
	struct trace_info info;
	struct cc_source *src = open_demo(&info);
	struct glance *g;
	cr_assert_eq(glance_new(src, &opts, &g), 0);
	for (unsigned int tenth = 3; tenth <= 9; tenth += 2) {
		cc_ns to = info.first_ns + (info.last_ns - info.first_ns) / 10 * tenth;
		struct engine *e = whole_engine(to);
		uint32_t same = 0;
		cr_assert_eq(glance_go(g, to, 20000, 0), 0);
		struct snapshot *first = picture(glance_engine(g), 0), *all = picture(e, 0);
		cr_expect_eq(first->now_ns, to);
		cr_expect_gt(first->request_cnt, 0, "%u", tenth);
		cr_expect_lt(first->total_cnt, all->total_cnt, "it is of a part");
		cr_expect_lt(llabs(first->realtime_off_ns - all->realtime_off_ns),
			     (long long)CC_MS(1), "the clock is right, but for its drift");
		for (uint32_t i = 0; i < first->request_cnt; i++) {
			const struct snap_request *r = &first->requests[i];
			const struct snap_request *w = snapshot_find(all, r->id);
			cr_expect(r->end <= to);
			cr_expect(!r->path_ok || r->path_sum_ns == r->latency_ns);
			same += w && r->state == CC_RQS_DONE && w->start == r->start &&
				w->end == r->end;
		}
		cr_expect_gt(same, 0, "%u", tenth);
		snapshot_free(first);
		snapshot_free(all);
		engine_free(e);
	}
	glance_free(g);
	cc_source_free(src);
}

Test(glance, begins_and_ends_of_a_file)
{
	struct trace_info info;
	struct cc_source *src = open_demo(&info);
	struct glance *g;
	cr_assert_eq(glance_new(src, &opts, &g), 0);
	cr_expect_eq(glance_go(g, info.first_ns, 2000, 0), 0);
	cr_expect_eq(glance_go(g, info.last_ns, 2000, 0), 0);
	cr_expect_eq(glance_go(g, info.last_ns + CC_S(100), 2000, 0), 0);
	glance_drop(g);
	cr_expect_eq(glance_go(g, info.first_ns + CC_S(1), 2000, 0), 0, "it can be used again");
	glance_free(g);
	cc_source_free(src);
}

static struct snapshot *await(struct session *s, cc_ns at)
{
	struct pollfd p = { .fd = session_event_fd(s), .events = POLLIN };
	while (poll(&p, 1, 30000) > 0) {
		uint64_t clear;
		cr_assert_eq(read(p.fd, &clear, sizeof(clear)), sizeof(clear));
		struct snapshot *snap = session_tui_ops.take(s);
		if (snap && snap->now_ns >= at && !snap->runtime.filling)
			return snap;
		session_tui_ops.give_back(s, snap);
	}
	return NULL;
}

static char *json_of(const struct snapshot *s)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	cr_assert_eq(json_snapshot_line(s, f), 0);
	fclose(f);
	return text;
}

/* Whether a first look came or not: what stays is all that the file says, and another seek may
 * come before it. */
Test(glance, what_stays_is_the_whole_picture, .timeout = 120)
{
	struct session_opts o = { .replay_path = DEMO, .window_ns = CC_S(60) };
	struct tui_cmd c = { .changed = TUI_CH_SEEK, .paused = true, .speed = 1 };
	struct trace_info info;
	struct session *s;
	o.collect.source = open_demo(&info);
	o.collect.engine = opts;
	cr_assert_eq(session_start(&o, &s), 0);
	for (unsigned int tenth = 9; tenth >= 3; tenth -= 2) {
		cc_ns step = (info.last_ns - info.first_ns) / 10;
		for (unsigned int hasty = 0; hasty < 3; hasty++) {
			c.view_ns = info.first_ns + step * (tenth - hasty);
			c.seek_cnt++;
			session_tui_ops.command(s, &c);
		}
		struct engine *e = whole_engine(c.view_ns);
		struct snapshot *want = picture(e, c.view_ns), *got = await(s, c.view_ns);
		for (; got && got->now_ns != c.view_ns; got = await(s, c.view_ns))
			session_tui_ops.give_back(s, got); /* of the one before */
		cr_assert(got);
		cr_expect_eq(got->total_cnt, want->total_cnt);
		char *a = json_of(want), *b = json_of(got);
		cr_expect(!strcmp(a, b), "%u", tenth);
		free(a);
		free(b);
		session_tui_ops.give_back(s, got);
		snapshot_free(want);
		engine_free(e);
	}
	cr_expect_eq(session_stop(s), 0);
	session_free(s);
}
