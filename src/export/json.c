/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <errno.h>
#include <inttypes.h>

#include "confidence.h"
#include "json_write.h"
#include "snap_text.h"

/* CC_RQ_* by bit */
static const char *const flag_names[] = { "resumed",    "stream",     "no_reply", "unsolicited",
					  "acceptq",    "late",       "setup",    "busy",
					  "splice_in",  "ordinal_ge", "udp",      "unix",
					  "concurrent", "retold",     "by_proxy", "farewell",
					  "unread",     "shared" };

static void put_str(struct json *j, const char *key, const struct snapshot *s, cc_str str)
{
	json_str(j, key, snapshot_str(s, str));
}

static void put_task(struct json *j, const char *key, const struct snapshot *s,
		     const struct snap_task *t)
{
	if (!t->tid && !t->goid) {
		json_null(j, key);
		return;
	}
	json_open(j, key, '{');
	json_u64(j, "tid", t->tid);
	json_u64(j, "goid", t->goid);
	put_str(j, "comm", s, t->comm);
	json_close(j, '}');
}

/* ---- pieces ---- */

static void put_people(struct json *j, const struct snapshot *s, const struct snap_piece *p)
{
	if (p->p.holder_tid) {
		json_open(j, "holder", '{');
		json_u64(j, "tid", p->holder.tid);
		json_u64(j, "pid", p->holder.tgid);
		put_str(j, "comm", s, p->holder.comm);
		if (p->holder.goid)
			json_u64(j, "goid", p->holder.goid);
		json_close(j, '}');
	} else {
		json_null(j, "holder");
	}
	if (p->p.occupant_tid) {
		json_open(j, "occupant", '{');
		json_u64(j, "tid", p->occupant.tid);
		put_str(j, "comm", s, p->occupant.comm);
		json_u64(j, "ns", p->p.occupant_ns);
		json_close(j, '}');
	} else {
		json_null(j, "occupant");
	}
	if (*snap_waker_name(p->p.waker_kind)) {
		json_open(j, "waker", '{');
		json_u64(j, "tid", p->waker.tid);
		json_u64(j, "pid", p->waker.tgid);
		put_str(j, "comm", s, p->waker.comm);
		json_str(j, "kind", snap_waker_name(p->p.waker_kind));
		if (p->waker.goid)
			json_u64(j, "goid", p->waker.goid);
		json_close(j, '}');
	} else {
		json_null(j, "waker");
	}
}

/* What lowered the piece's confidence below the best there is. */
static void put_reasons(struct json *j, uint64_t evidence)
{
	json_open(j, "reasons", '[');
	for (unsigned int i = 0; i < CC_EV_CNT; i++) {
		if (evidence >> i & 1 && evidence_rate(i) < evidence_rate(CC_EV_SCHED))
			json_str(j, NULL, evidence_text(i));
	}
	json_close(j, ']');
}

static void put_stack(struct json *j, const char *key, const struct snapshot *s, uint32_t stack)
{
	json_open(j, key, '[');
	if (stack && stack <= s->stack_cnt) {
		const struct snap_stack *st = &s->stacks[stack - 1];

		for (uint32_t i = 0; i < st->cnt && st->first + i < s->frame_cnt; i++)
			put_str(j, NULL, s, s->frames[st->first + i].text);
	}
	json_close(j, ']');
}

static void put_piece(struct json *j, const struct snapshot *s, const struct snap_piece *p)
{
	json_open(j, NULL, '{');
	json_u64(j, "start_ns", p->p.start);
	json_u64(j, "end_ns", p->p.end);
	json_u64(j, "depth", p->p.depth);
	put_task(j, "task", s, &p->task);
	json_str(j, "class", wait_class_json(p->p.cls));
	json_bool(j, "open", p->p.flags & CC_PC_OPEN);
	json_str(j, "ended", snap_ended_name(p->p.ended));
	put_str(j, "site", s, p->site);
	put_str(j, "resource", s, p->resource);
	if (*snap_kernel_work(s, p))
		json_str(j, "kernel_work", snap_kernel_work(s, p));
	put_people(j, s, p);
	put_str(j, "for_request", s, p->for_request);
	put_str(j, "by_request", s, p->by_request);
	json_u64(j, "short_ns", p->p.short_ns);
	json_u64(j, "confidence", p->p.confidence);
	put_reasons(j, p->p.evidence);
	put_stack(j, "stack", s, p->stack);
	put_stack(j, "waker_stack", s, p->waker_stack);
	put_stack(j, "kernel_stack", s, p->kstack);
	put_stack(j, "waker_kernel_stack", s, p->waker_kstack);
	json_bool(j, "not_traced", p->p.flags & CC_PC_NOT_TRACED);
	if (p->p.last_tid)
		put_task(j, "last_waker", s, &p->last);
	if (p->p.srtt_us || p->p.retrans) {
		json_u64(j, "srtt_us", p->p.srtt_us);
		json_u64(j, "retrans", p->p.retrans);
	}
	if (p->p.sibling_end)
		json_u64(j, "sibling_end_ns", p->p.sibling_end);
	if (p->p.herd)
		json_u64(j, "herd", p->p.herd);
	json_close(j, '}');
}

/* ---- requests ---- */

static void put_dominant(struct json *j, const char *key, const struct snapshot *s,
			 const struct snap_dominant *d, const struct snap_dominant *root)
{
	json_open(j, key, '{');
	json_str(j, "class", wait_class_json(d->cls));
	json_share(j, "share", d->share);
	put_str(j, "site", s, d->site);
	put_str(j, "resource", s, d->resource);
	json_u64(j, "ns", d->ns);
	if (root)
		put_dominant(j, "root", s, root, NULL);
	json_close(j, '}');
}

static void put_request_times(struct json *j, const struct snap_request *r)
{
	json_u64(j, "start_ns", r->start);
	json_u64(j, "first_recv_ns", r->rec.first_recv);
	json_u64(j, "first_send_ns", r->rec.first_send);
	json_u64(j, "end_ns", r->end);
	json_u64(j, "latency_ns", r->latency_ns);
	json_u64(j, "path_sum_ns", r->path_sum_ns);
	json_u64(j, "unexplained_ns", r->unexplained_ns);
	json_u64(j, "ambiguous_ns", r->ambiguous_ns);
	json_u64(j, "bytes_in", r->rec.bytes_in);
	json_u64(j, "bytes_out", r->rec.bytes_out);
}

static void put_request(struct json *j, const struct snapshot *s, const struct snap_request *r)
{
	json_open(j, NULL, '{');
	put_str(j, "id", s, r->id_text);
	json_str(j, "state", snap_state_name(r->state));
	put_str(j, "peer", s, r->peer);
	json_u64(j, "local_port", r->rec.local_port);
	put_task(j, "task", s, &r->task);
	put_task(j, "recv_task", s, &r->recv_task);
	put_request_times(j, r);
	json_open(j, "flags", '[');
	for (unsigned int i = 0; i < ARRAY_SIZE(flag_names); i++) {
		if (r->rec.what >> i & 1)
			json_str(j, NULL, flag_names[i]);
	}
	json_close(j, ']');
	if (r->up_peer) {
		json_open(j, "upstream", '{');
		put_str(j, "peer", s, r->up_peer);
		json_u64(j, "votes", r->rec.up_votes);
		json_close(j, '}');
	} else {
		json_null(j, "upstream");
	}
	if (r->up_hint)
		put_str(j, "upstream_hint", s, r->up_hint);
	else
		json_null(j, "upstream_hint");
	json_u64(j, "confidence", r->confidence);
	put_dominant(j, "dominant", s, &r->dominant, &r->root);
	put_str(j, "verdict", s, r->verdict);
	json_bool(j, "path_ok", r->path_ok);
	json_bool(j, "lost_inside", r->lost_inside);
	json_open(j, "path", '[');
	for (uint32_t i = 0; i < r->piece_cnt; i++)
		put_piece(j, s, &s->pieces[r->first_piece + i]);
	json_close(j, ']');
	json_u64(j, "pieces_left_out", r->pieces_left_out);
	json_close(j, '}');
}

/* ---- the rest ---- */

static void put_trace(struct json *j, const struct snapshot *s)
{
	json_open(j, "trace", '{');
	json_u64(j, "format", 3);
	json_u64(j, "events", s->stats.events);
	json_u64(j, "lost", engine_lost(&s->stats));
	json_u64(j, "start_ns", s->first_ns);
	json_u64(j, "end_ns", s->last_ns);
	json_open(j, "target", '{');
	json_u64(j, "pid", s->target.tgid);
	put_str(j, "comm", s, s->target.comm);
	json_close(j, '}');
	json_open(j, "targets", '[');
	for (uint32_t i = 0; i < s->target_cnt; i++) {
		json_open(j, NULL, '{');
		json_u64(j, "pid", s->targets[i].task.tgid);
		put_str(j, "comm", s, s->targets[i].task.comm);
		json_bool(j, "followed", s->targets[i].followed);
		json_close(j, '}');
	}
	json_close(j, ']');
	put_str(j, "host", s, s->host);
	json_open(j, "notes", '[');
	for (uint32_t i = 0; i < s->note_cnt; i++)
		put_str(j, NULL, s, s->notes[i]);
	json_close(j, ']');
	json_i64(j, "realtime_off_ns", s->realtime_off_ns);
	json_close(j, '}');
}

static void put_summary(struct json *j, const struct snapshot *s)
{
	json_open(j, "summary", '{');
	json_u64(j, "requests", snapshot_requests(s));
	json_u64(j, "in_flight", s->in_flight_cnt);
	json_u64(j, "p50_ns", s->p50_ns);
	json_u64(j, "p99_ns", s->p99_ns);
	json_u64(j, "max_ns", s->max_ns);
	json_u64(j, "p95_ns", s->p95_ns);
	json_u64(j, "matched", s->match_cnt);
	json_u64(j, "streams", s->stream_cnt);
	json_u64(j, "apart", s->apart_cnt);
	put_str(j, "verdict", s, s->verdict);
	json_close(j, '}');
}

static void put_waits(struct json *j, const struct snapshot *s, const char *key,
		      const struct snap_wait *rows, uint32_t cnt)
{
	json_open(j, key, '[');
	for (uint32_t i = 0; i < cnt; i++) {
		const struct snap_wait *w = &rows[i];

		json_open(j, NULL, '{');
		json_str(j, "class", wait_class_json(w->cls));
		put_str(j, "site", s, w->site);
		put_str(j, "resource", s, w->resource);
		put_str(j, "waker", s, w->waker);
		put_str(j, "holder", s, w->holder);
		json_u64(j, "total_ns", w->total_ns);
		json_u64(j, "requests", w->requests);
		json_u64(j, "p50_ns", w->p50_ns);
		json_u64(j, "p99_ns", w->p99_ns);
		json_share(j, "share", w->share);
		json_u64(j, "confidence", w->confidence);
		json_u64(j, "what_if_at_most_ns", w->what_if_ns);
		json_u64(j, "herd", w->herd);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* Where the time of the slow requests went, told in every way. */
static void put_slow(struct json *j, const struct snapshot *s)
{
	static const char *const views[] = { "symptoms", "root_causes" };
	static const char *const groups[SNAP_GROUPS] = {
		[GROUP_CLASS] = "class", [GROUP_SITE] = "site",     [GROUP_RESOURCE] = "resource",
		[GROUP_WAKER] = "waker", [GROUP_HOLDER] = "holder",
	};

	json_open(j, "slow", '{');
	json_u64(j, "from_ns", s->p95_ns);
	json_u64(j, "requests", s->slow_requests);
	for (int v = 0; v < 2; v++) {
		json_open(j, views[v], '{');
		for (int g = 0; g < SNAP_GROUPS; g++) {
			const struct snap_wait_table *t = &s->slow_waits[v][g];

			put_waits(j, s, groups[g], t->rows, t->cnt);
		}
		json_close(j, '}');
	}
	json_close(j, '}');
}

static const char *group_kind(const struct snap_wait_group *g)
{
	return g->outside_ns ? "scc" : g->cnt > 1 ? "knot" : "sink";
}

static void put_graph(struct json *j, const struct snapshot *s)
{
	json_open(j, "wait_graph", '{');
	json_open(j, "edges", '[');
	for (uint32_t i = 0; i < s->edge_cnt; i++) {
		const struct snap_edge *e = &s->edges[i];

		json_open(j, NULL, '{');
		put_str(j, "from", s, e->from);
		put_str(j, "to", s, e->to);
		json_str(j, "class", wait_class_json(e->cls));
		json_u64(j, "total_ns", e->total_ns);
		json_u64(j, "own_ns", e->own_ns);
		json_u64(j, "longest_ns", e->longest_ns);
		json_u64(j, "waits", e->waits);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_open(j, "groups", '[');
	for (uint32_t i = 0; i < s->wait_group_cnt; i++) {
		const struct snap_wait_group *g = &s->wait_groups[i];

		json_open(j, NULL, '{');
		json_str(j, "kind", group_kind(g));
		json_open(j, "members", '[');
		for (uint32_t k = 0; k < g->cnt; k++)
			put_str(j, NULL, s, s->wait_members[g->first + k]);
		json_close(j, ']');
		json_u64(j, "inside_ns", g->inside_ns);
		json_u64(j, "waited_ns", g->waited_ns);
		json_u64(j, "outside_ns", g->outside_ns);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_u64(j, "false_wakes", s->false_wakes);
	json_open(j, "shared", '[');
	for (uint32_t i = 0; i < s->shared_cnt; i++) {
		const struct snap_shared *x = &s->shared[i];

		json_open(j, NULL, '{');
		put_str(j, "to", s, x->to);
		json_u64(j, "requests", x->requests);
		json_u64(j, "total_ns", x->total_ns);
		json_share(j, "entropy", x->entropy);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void put_threads(struct json *j, const struct snapshot *s)
{
	json_open(j, "threads", '[');
	for (uint32_t i = 0; i < s->thread_cnt; i++) {
		const struct snap_thread *t = &s->threads[i];
		cc_ns known = 0;

		json_open(j, NULL, '{');
		put_task(j, "task", s, &t->task);
		json_u64(j, "pid", t->task.tgid);
		json_bool(j, "followed", t->flags & CC_TF_FOLLOWED);
		json_u64(j, "requests", t->requests);
		json_open(j, "now", '{');
		json_str(j, "class", t->now_ns ? wait_class_json(t->now_cls) : "");
		json_u64(j, "for_ns", t->now_ns);
		json_bool(j, "before_tracing", t->now_seeded);
		put_str(j, "site", s, t->now_site);
		json_close(j, '}');
		json_open(j, "ns", '{');
		for (unsigned int g = 0; WAIT_GROUPS[g]; g++) {
			json_u64(j, wait_group_name(WAIT_GROUPS[g]), t->mix[g]);
			known += t->mix[g];
		}
		json_close(j, '}');
		json_u64(j, "known_ns", known);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_blame(struct json *j, const struct snapshot *s)
{
	json_open(j, "blame", '[');
	for (uint32_t i = 0; i < s->blame_cnt; i++) {
		json_open(j, NULL, '{');
		put_str(j, "victim", s, s->blame[i].victim);
		put_str(j, "culprit", s, s->blame[i].culprit);
		json_str(j, "class", wait_class_json(s->blame[i].cls));
		json_u64(j, "total_ns", s->blame[i].total_ns);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_open(j, "slow_vs_typical", '[');
	for (uint32_t i = 0; i < s->slow_cnt; i++) {
		json_open(j, NULL, '{');
		json_str(j, "class", wait_class_json(s->slow[i].cls));
		json_u64(j, "slow_ns", s->slow[i].slow_ns);
		json_u64(j, "typical_ns", s->slow[i].typical_ns);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_counters(struct json *j, const struct snapshot *s)
{
	const struct engine_stats *st = &s->stats;
	uint64_t drops = 0;

#define X(cnt, name) drops += st->counter[cnt];
	CC_DROPS(X)
#undef X
	json_open(j, "counters", '{');
	json_u64(j, "ring_drops", drops);
	json_u64(j, "lost_ns", st->lost_ns);
	json_u64(j, "stacks_user", st->stacks_user);
	json_u64(j, "stacks_complete", st->stacks_complete);
	json_u64(j, "short_cnt", st->short_cnt);
	json_u64(j, "short_ns", st->short_ns);
	json_u64(j, "episodes", st->episodes);
	json_u64(j, "malformed", st->malformed);
	json_u64(j, "unknown_kind", st->unknown_kind);
	json_u64(j, "late", st->late);
	json_u64(j, "clamped", st->clamped);
	json_u64(j, "wake_running", st->wake_running);
	json_u64(j, "cycles", st->cycles);
	json_u64(j, "evicted", st->evicted);
	json_u64(j, "suspends", st->suspends);
	json_u64(j, "suspended_ns", st->suspended_ns);
	json_u64(j, "paths_left_out", st->paths_left_out);
	json_u64(j, "stacks_skipped", st->counter[CC_CNT_SNAP_BUDGET]);
	json_open(j, "dropped", '{');
#define X(cnt, name) json_u64(j, name, st->counter[cnt]);
	CC_DROPS(X)
#undef X
	json_close(j, '}');
	json_u64(j, "stacks_in_kernel", st->counter[CC_CNT_CHAINS]);
	json_u64(j, "stacks_copied", st->counter[CC_CNT_SNAPS]);
	json_u64(j, "stack_bytes", st->counter[CC_CNT_STACK_BYTES]);
	json_u64(j, "stacks_verified", st->counter[CC_CNT_VERIFIED]);
	json_u64(j, "stacks_wrong", st->counter[CC_CNT_VERIFY_WRONG]);
	json_u64(j, "switches_unseen", st->counter[CC_CNT_UNSEEN]);
	json_close(j, '}');
}

static void put_runtime(struct json *j, const struct snapshot *s)
{
	json_open(j, "runtime", '{');
	json_share(j, "cpu_share", s->runtime.cpu_share);
	json_u64(j, "rss_bytes", s->runtime.rss_bytes);
	json_close(j, '}');
}

int json_snapshot_line(const struct snapshot *s, FILE *out)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_u64(&j, "schema", 1);
	json_u64(&j, "now_ns", s->now_ns);
	json_u64(&j, "window_ns", s->window_ns);
	put_trace(&j, s);
	put_summary(&j, s);
	json_open(&j, "requests", '[');
	for (uint32_t i = 0; i < s->request_cnt; i++)
		put_request(&j, s, &s->requests[i]);
	json_close(&j, ']');
	put_waits(&j, s, "waits", s->waits, s->wait_cnt);
	put_blame(&j, s);
	put_counters(&j, s);
	put_threads(&j, s);
	put_graph(&j, s);
	if (s->has_slow_tables)
		put_slow(&j, s);
	if (s->runtime.live)
		put_runtime(&j, s);
	json_close(&j, '}');
	fputc('\n', out);
	return ferror(out) ? -EIO : 0;
}

int json_request_line(const struct snapshot *s, const struct snap_request *r, FILE *out)
{
	struct json j = { .out = out };

	put_request(&j, s, r);
	fputc('\n', out);
	return ferror(out) ? -EIO : 0;
}
