/* SPDX-License-Identifier: Apache-2.0 */
/* The models on a trace: the engine is asked what a goroutine worked for at the time of each line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "confidence.h"
#include "eval.h"
#include "eval_clock.h"
#include "trace.h"

struct visit {               /* one request with a token: a token may come again */
	uint32_t first, cnt; /* its facts, in idx */
	struct cc_reqid id;  /* kind NONE: not in the trace */
};

struct eval_live {
	const struct eval_log *log;
	struct engine *e;
	struct eval_anchor *anchors;
	size_t anchor_cnt, anchor_cap;
	uint32_t tgid;      /* of the Go process */
	uint32_t *idx;      /* facts by token, then time */
	uint32_t *visit_of; /* of each fact: 1 + index of its visit; 0: before the first */
	struct visit *visits;
	size_t visit_cnt;
	struct token_of { /* by request, sorted */
		struct cc_reqid id;
		uint32_t visit;
	} * tokens;
	size_t token_cnt;
};

/* ---- reading ---- */

static int keep_anchor(struct eval_live *v, const struct cc_rec_tick *t)
{
	if (!t->realtime_ns)
		return 0;
	if (v->anchor_cnt == v->anchor_cap) {
		size_t cap = v->anchor_cap ? 2 * v->anchor_cap : 64;
		struct eval_anchor *p = realloc(v->anchors, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		v->anchors = p;
		v->anchor_cap = cap;
	}
	v->anchors[v->anchor_cnt++] = (struct eval_anchor){ t->h.ts, t->realtime_ns };
	return 0;
}

static int feed(void *ctx, const struct cc_rec *rec, size_t len)
{
	struct eval_live *v = ctx;
	int err = engine_feed(v->e, rec, len);

	if (!err && rec->kind == CC_REC_TICK && len >= sizeof(struct cc_rec_tick))
		err = keep_anchor(v, (const void *)rec);
	return err == -EINVAL ? 0 : err;
}

/* 0: not known. */
static cc_ns mono_of(const struct eval_live *v, const struct eval_fact *f)
{
	return f->mono_ns ? f->mono_ns : eval_mono_of(v->anchors, v->anchor_cnt, f->wall_ns);
}

/* ---- which request each token is ---- */

static int by_request(const void *a, const void *b)
{
	const struct token_of *x = a, *y = b;

	if (x->id.id != y->id.id)
		return x->id.id < y->id.id ? -1 : 1;
	return (x->id.ordinal > y->id.ordinal) - (x->id.ordinal < y->id.ordinal);
}

static bool ask(struct eval_live *v, const struct eval_fact *f, enum engine_serve mode,
		struct engine_served *ret)
{
	cc_ns at = mono_of(v, f);

	return at && engine_go_served(v->e, v->tgid, f->goid, at, mode, ret);
}

static uint32_t token_of(const struct eval_live *v, struct cc_reqid id)
{
	const struct token_of key = { .id = id };
	const struct token_of *t = bsearch(&key, v->tokens, v->token_cnt, sizeof(key), by_request);

	return t ? v->log->v[v->idx[v->visits[t->visit].first]].token : 0;
}

static int by_token(const void *a, const void *b, void *ctx)
{
	const struct eval_log *l = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (l->v[x].token != l->v[y].token)
		return l->v[x].token < l->v[y].token ? -1 : 1;
	return (x > y) - (x < y);
}

/* Facts of one token from one handler-entry to the next are of one request. */
static int find_visits(struct eval_live *v)
{
	struct eval_log *l = (struct eval_log *)v->log; /* qsort_r() takes no const */
	uint32_t token = 0;

	v->idx = calloc(l->cnt + 1, sizeof(*v->idx));
	v->visit_of = calloc(l->cnt + 1, sizeof(*v->visit_of));
	v->visits = calloc(l->cnt + 1, sizeof(*v->visits));
	v->tokens = calloc(l->cnt + 1, sizeof(*v->tokens));
	if (!v->idx || !v->visit_of || !v->visits || !v->tokens)
		return -ENOMEM;
	for (size_t i = 0; i < l->cnt; i++)
		v->idx[i] = (uint32_t)i;
	qsort_r(v->idx, l->cnt, sizeof(*v->idx), by_token, l);
	for (uint32_t i = 0; i < l->cnt; i++) {
		const struct eval_fact *f = &l->v[v->idx[i]];

		if (f->site == EVAL_AT_ENTRY) {
			v->visits[v->visit_cnt++] = (struct visit){ .first = i };
			token = f->token;
		} else if (f->token != token) {
			continue; /* before its first entry */
		}
		v->visits[v->visit_cnt - 1].cnt++;
		v->visit_of[v->idx[i]] = (uint32_t)v->visit_cnt;
	}
	return 0;
}

/* A handler's goroutine serves on its own socket: that request has the token of its entry, if its
 * exit says so too. */
static void anchor(struct eval_live *v, struct visit *s)
{
	const struct eval_log *l = v->log;
	struct engine_served at;

	for (uint32_t i = 0; i < s->cnt; i++) {
		const struct eval_fact *f = &l->v[v->idx[s->first + i]];

		if (f->site != EVAL_AT_ENTRY && f->site != EVAL_AT_EXIT)
			continue;
		if (!ask(v, f, ENGINE_SERVE_LINEAGE, &at) || !(at.evidence & CC_EV_BIT(SOCKET)) ||
		    (i > 0 && !cc_reqid_eq(s->id, at.id))) {
			s->id = (struct cc_reqid){ 0 };
			return;
		}
		s->id = at.id;
	}
}

/* Where two visits have one request neither counts. */
static void anchor_all(struct eval_live *v)
{
	size_t kept = 0;

	for (uint32_t i = 0; i < v->visit_cnt; i++) {
		anchor(v, &v->visits[i]);
		if (v->visits[i].id.kind)
			v->tokens[v->token_cnt++] = (struct token_of){ v->visits[i].id, i };
	}
	qsort(v->tokens, v->token_cnt, sizeof(*v->tokens), by_request);
	for (size_t i = 0; i < v->token_cnt; i++) {
		bool twice =
			(i > 0 && !by_request(&v->tokens[i - 1], &v->tokens[i])) ||
			(i + 1 < v->token_cnt && !by_request(&v->tokens[i + 1], &v->tokens[i]));

		if (twice)
			v->visits[v->tokens[i].visit].id = (struct cc_reqid){ 0 };
	}
	for (size_t i = 0; i < v->token_cnt; i++)
		if (v->visits[v->tokens[i].visit].id.kind)
			v->tokens[kept++] = v->tokens[i];
	v->token_cnt = kept;
}

/* The process most of the log's goroutines are known in. */
static void find_process(struct eval_live *v)
{
	struct engine_target t;
	uint64_t most = 0;

	for (size_t i = 0; engine_target_at(v->e, i, &t); i++) {
		uint64_t known = 0;
		struct engine_served s;

		for (size_t k = 0; k < v->log->cnt; k++)
			known += v->log->v[k].site == EVAL_AT_ENTRY &&
				 engine_go_served(v->e, t.tgid, v->log->v[k].goid,
						  mono_of(v, &v->log->v[k]), ENGINE_SERVE_LINEAGE,
						  &s);
		if (known > most) {
			most = known;
			v->tgid = t.tgid;
		}
	}
}

static int read_trace(struct eval_live *v, const char *path, struct cc_err *err)
{
	struct engine_opts o = { .memory_bytes = 2ull << 30 };
	struct cc_source *src;
	int n = trace_source_new(path, err, &src);

	if (n)
		return n;
	n = engine_new(&o, &v->e);
	while (!n && (n = src->ops->poll(src, 0, feed, v)) > 0)
		n = 0;
	cc_source_free(src);
	return n == -ENODATA ? engine_finish(v->e) : n;
}

int eval_live_open(const char *path, const struct eval_log *l, struct cc_err *err,
		   struct eval_live **ret)
{
	struct eval_live *v = calloc(1, sizeof(*v));
	int n = v ? 0 : -ENOMEM;

	*err = (struct cc_err){ .pos = -1 };
	if (v) {
		v->log = l;
		n = read_trace(v, path, err);
	}
	if (!n) {
		find_process(v);
		n = find_visits(v);
	}
	if (!n) {
		anchor_all(v);
	}
	if (n) {
		if (!err->msg[0])
			snprintf(err->msg, sizeof(err->msg), "cannot read %s: %s", path,
				 strerror(-n));
		eval_live_free(v);
		return n;
	}
	*ret = v;
	return 0;
}

void eval_live_free(struct eval_live *v)
{
	if (!v)
		return;
	engine_free(v->e);
	free(v->anchors);
	free(v->idx);
	free(v->visit_of);
	free(v->visits);
	free(v->tokens);
	free(v);
}

uint64_t eval_live_found(const struct eval_live *v) { return v->token_cnt; }

/* ---- asking ---- */

void eval_live_claims(struct eval_live *v, enum engine_serve mode, struct eval_claim *claims)
{
	memset(claims, 0, v->log->cnt * sizeof(*claims));
	for (size_t i = 0; i < v->log->cnt; i++) {
		const struct eval_fact *f = &v->log->v[i];
		struct engine_served s;

		claims[i].asked = v->visit_of[i] && v->visits[v->visit_of[i] - 1].id.kind;
		claims[i].asked = claims[i].asked && mono_of(v, f);
		if (!claims[i].asked || !ask(v, f, mode, &s))
			continue;
		claims[i].ambiguous = s.ambiguous;
		claims[i].confidence = evidence_confidence(s.evidence);
		if (!s.ambiguous) {
			claims[i].token = token_of(v, s.id);
			if (!claims[i].token)
				claims[i].token = UINT32_MAX; /* one that the log does not have */
		}
	}
}

/* ---- paths ---- */

static uint64_t goid_of(const struct eval_live *v, uint32_t tid, cc_ns at)
{
	struct engine_task t;

	return tid && engine_task(v->e, tid, at, &t) ? t.goid : 0;
}

static size_t traced_edges(const struct eval_live *v, const struct cc_piece *path,
			   uint32_t piece_cnt, struct eval_edge *ret)
{
	size_t cnt = 0;

	for (uint32_t i = 0; i < piece_cnt && cnt < EVAL_EDGES_MAX; i++) {
		const struct cc_piece *p = &path[i];
		uint64_t waker = goid_of(v, p->waker_tid, p->end);

		if (p->depth == 0 && p->goid && waker && p->end - p->start >= EVAL_EDGE_MIN)
			ret[cnt++] = (struct eval_edge){ p->goid, waker };
	}
	return cnt;
}

static const struct cc_request *request_of(const struct eval_live *v, struct cc_reqid id)
{
	size_t cnt;
	const struct cc_request *const *r = engine_requests(v->e, &cnt);

	for (size_t i = 0; i < cnt; i++)
		if (cc_reqid_eq(r[i]->id, id))
			return r[i];
	return NULL;
}

static bool is_exact(const struct cc_request *r, const struct cc_piece *path)
{
	cc_ns sum = 0;

	for (uint32_t i = 0; i < r->path_cnt; i++)
		sum += path[i].depth ? 0 : path[i].end - path[i].start;
	return sum == r->end - r->start;
}

void eval_live_paths(struct eval_live *v, struct eval_path_result *ret)
{
	struct eval_edge want[EVAL_EDGES_MAX], got[EVAL_EDGES_MAX];
	struct path_buf buf = { 0 };
	double sum = 0;

	*ret = (struct eval_path_result){ 0 };
	for (size_t i = 0; i < v->visit_cnt; i++) {
		const struct visit *s = &v->visits[i];
		const struct cc_request *r = s->id.kind ? request_of(v, s->id) : NULL;
		const struct cc_piece *path = r && r->path_ok ? request_path(r, &buf) : NULL;
		size_t want_cnt;

		if (!path)
			continue;
		want_cnt = eval_true_edges(v->log, v->idx + s->first, s->cnt, want);
		if (!want_cnt)
			continue;
		sum += eval_jaccard(want, want_cnt, got, traced_edges(v, path, r->path_cnt, got));
		ret->requests++;
		ret->inexact += !is_exact(r, path);
	}
	path_buf_done(&buf);
	ret->jaccard = ret->requests ? sum / (double)ret->requests : 0;
}
