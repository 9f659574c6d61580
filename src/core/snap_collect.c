/* SPDX-License-Identifier: Apache-2.0 */
#include "snap_build.h"

#include <errno.h>
#include <string.h>

#include "digest.h"
#include "filter.h"
#include "fmt.h"
#include "latency.h"
#include "request.h"

static uint64_t site_number(void *ctx, const struct cc_piece *p)
{
	return labels_site(ctx, piece_site(p));
}

void snap_dominants(struct labels *n, const struct cc_request *r, const struct cc_piece *path,
		    struct cc_dominant *dominant, struct cc_dominant *root)
{
	digest_dominant(path, r->path_ok ? r->path_cnt : 0, site_number, n, dominant, root);
}

/* ---- what the filter may ask ---- */

static cc_str subject_str(struct labels *n, const struct cc_request *r, enum filter_key key)
{
	const struct cc_piece *p =
		r->path_ok && r->path_cnt ? &r->path[request_dominant(r)->piece] : NULL;

	switch (key) {
	case FK_SITE:
		return p ? labels_site(n, piece_site(p)) : 0;
	case FK_RESOURCE:
		return p ? labels_resource(n, p->resource) : 0;
	case FK_WAKER:
		return p ? labels_waker(n, p) : 0;
	case FK_HOLDER:
		return p ? labels_holder(n, p) : 0;
	default:
		return labels_task(n, r->tid, r->tgid, r->end).comm;
	}
}

static bool subject_text(void *ctx, const struct cc_request *r, enum filter_key key, char *buf,
			 size_t cap)
{
	static const char *const states[] = { [CC_RQS_DONE] = "done",
					      [CC_RQS_IN_FLIGHT] = "in_flight",
					      [CC_RQS_RESUMED] = "resumed" };
	struct labels *n = ctx;
	size_t len;

	switch (key) {
	case FK_PEER:
	case FK_CONN:
		len = fmt_addr(buf, cap, &r->rec.peer);
		if (len && r->id.kind == CC_REQID_SOCK)
			fmt_text(buf + len, cap - len, "#%u", r->id.ordinal);
		return len > 0;
	case FK_UPSTREAM:
		return r->rec.up_votes > 1 && fmt_addr(buf, cap, &r->rec.up_peer) > 0;
	case FK_LABEL:
		return fmt_text(buf, cap, "%s", request_label(&r->rec)) > 0;
	case FK_STATE:
		return fmt_text(buf, cap, "%s", states[r->state]) > 0;
	default:
		return fmt_text(buf, cap, "%s", strpool_str(&n->pool, subject_str(n, r, key))) > 0;
	}
}

/* Returns 1 or 0, or -ENOMEM. */
static int wanted(struct snap_build *b, const struct cc_request *r)
{
	if (b->q->only.kind != CC_REQID_NONE && !request_is(r, b->q->only))
		return 0;
	if (!b->q->filter)
		return 1;
	const struct cc_piece *path = request_path(r, &b->path);
	struct cc_request seen = *r; /* as the rows show it: with places by name */
	struct cc_found buf, found = *request_found(r, &buf);

	if (!path)
		return -ENOMEM;
	seen.path = (struct cc_piece *)path;
	seen.found = &found;
	snap_dominants(&b->labels, r, path, &found.dominant, &found.root);
	struct filter_subject subject = {
		.r = &seen,
		.wall_off_ns = b->s->realtime_off_ns + b->q->tz_off_s * (int64_t)CC_S(1),
		.text = subject_text,
		.ctx = &b->labels,
	};

	return filter_match(b->q->filter, &subject);
}

/* ---- the window ---- */

static int take_in_flight(struct snap_build *b, const struct cc_request *r)
{
	if (r->start >= b->hi && b->q->view_ns)
		return 0; /* began after what is looked at */
	if (request_is_answered(&r->rec))
		return 0; /* a connection between two requests: its time since then is nobody's */
	b->s->in_flight_cnt++;
	int want = wanted(b, r);

	if (want <= 0)
		return want;
	if (vec_reserve(&b->labels.mem, &b->flight, b->flight.cnt + 1))
		return -ENOMEM;
	b->flight.p[b->flight.cnt++] = r;
	return 0;
}

static int take_done(struct snap_build *b, const struct cc_request *r)
{
	struct mem *mem = &b->labels.mem;

	if (vec_reserve(mem, &b->done, b->done.cnt + 1) ||
	    vec_reserve(mem, &b->match, b->match.cnt + 1))
		return -ENOMEM;
	b->done.p[b->done.cnt++] = r;
	int want = wanted(b, r);

	if (want <= 0)
		return want;
	b->match.p[b->match.cnt++] = r;
	b->s->match_cnt += request_weight(r);
	return 0;
}

static int take_requests(struct snap_build *b)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(b->e, &cnt);
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		if (r[i]->state == CC_RQS_IN_FLIGHT)
			err = take_in_flight(b, r[i]);
		else if (r[i]->end >= b->lo && r[i]->end <= b->hi)
			err = take_done(b, r[i]);
	}
	return err;
}

/* What is known of all that finished, shown or not: how many, and how long they took. */
static int count_all(struct snap_build *b)
{
	struct snapshot *s = b->s;
	struct lat_view v;
	size_t cnt;
	const struct req_untimed *u = engine_untimed(b->e, &cnt);
	int err = lat_view_open(&b->labels.mem, engine_latencies(b->e), b->lo, b->hi, &v);

	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++) {
		if (u[i].end >= b->lo && u[i].end <= b->hi)
			*(u[i].apart ? &s->apart_cnt : &s->stream_cnt) += 1;
	}
	s->total_cnt = v.cnt + s->stream_cnt + s->apart_cnt;
	s->p50_ns = lat_percentile(&v, 500);
	s->p95_ns = lat_percentile(&v, 950);
	s->p99_ns = lat_percentile(&v, 990);
	s->max_ns = lat_percentile(&v, 1000);
	lat_p99_line(&v, SNAP_SLICES, s->p99_line);
	lat_view_done(&b->labels.mem, &v);
	return 0;
}

int snap_collect(struct snap_build *b)
{
	struct snapshot *s = b->s;
	cc_ns window = b->hi - b->lo;
	int err = count_all(b) ?: take_requests(b) ?: agg_sort(b->done.p, b->done.cnt, &b->sorted);

	if (err)
		return err;
	if (b->q->only.kind == CC_REQID_NONE && !b->q->filter)
		s->match_cnt = s->total_cnt;
	b->sorted.p95 = s->p95_ns;
	s->rate = window ? (double)snapshot_requests(s) * 1e9 / (double)window : 0;
	agg_conf_share(b->done.p, b->done.cnt, s->conf_share);
	agg_mix(&b->sorted, agg_slow(&b->sorted), s->p99_mix);
	return 0;
}
