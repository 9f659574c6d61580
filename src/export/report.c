/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <errno.h>
#include <string.h>

#include "confidence.h"
#include "digest.h"
#include "fmt.h"
#include "snap_text.h"

#define WAIT_ROWS 15
#define BLAME_ROWS 10
#define EDGE_ROWS 10
#define GROUP_ROWS 5
#define MEMBERS 8

struct text {
	char s[FMT_LEN];
};

static struct text ms(cc_ns ns)
{
	struct text t = { "" };

	fmt_ms(t.s, sizeof(t.s), ns);
	return t;
}

static struct text count(uint64_t n)
{
	struct text t = { "" };

	fmt_group(t.s, sizeof(t.s), n);
	return t;
}

static void put_head(const struct snapshot *s, FILE *out)
{
	char span[FMT_LEN];

	if (s->target.tgid)
		fprintf(out, "target      %s%spid %u", snapshot_str(s, s->target.comm),
			*snapshot_str(s, s->target.comm) ? ", " : "", s->target.tgid);
	else
		fputs("target      not known", out);
	if (s->target_cnt > 1)
		fprintf(out, " and %u more", s->target_cnt - 1);
	fmt_dur(span, sizeof(span), s->window_ns);
	fprintf(out, "; %s records over %s\n", count(s->stats.events).s, span);
	if (s->host)
		fprintf(out, "host        %s\n", snapshot_str(s, s->host));
	for (uint32_t i = 0; i < s->note_cnt; i++)
		fprintf(out, "note        %s\n", snapshot_str(s, s->notes[i]));
	if (engine_lost(&s->stats))
		fprintf(out, "lost        %s events, %s ms of waits in them\n",
			count(engine_lost(&s->stats)).s, ms(s->stats.lost_ns).s);
	if (s->stats.evicted)
		fprintf(out, "forgotten   %s waits and requests: they did not fit into --memory\n",
			count(s->stats.evicted).s);
	if (s->stats.malformed || s->stats.unknown_kind)
		fprintf(out, "skipped     %s malformed records, %s of unknown kind\n",
			count(s->stats.malformed).s, count(s->stats.unknown_kind).s);
}

static void put_summary(const struct snapshot *s, FILE *out)
{
	fprintf(out, "requests    %s finished, %u in flight", count(snapshot_requests(s)).s,
		s->in_flight_cnt);
	if (s->apart_cnt)
		fprintf(out, ", %s exchanges apart", count(s->apart_cnt).s);
	if (!s->stats.has_servers)
		fputs(" (no request boundary was seen: each task is one)", out);
	if (s->filter_text)
		fprintf(out, "; filter %s takes %s", snapshot_str(s, s->filter_text),
			count(s->match_cnt).s);
	fprintf(out, "\nlatency ms  p50 %s  p95 %s  p99 %s  max %s\n", ms(s->p50_ns).s,
		ms(s->p95_ns).s, ms(s->p99_ns).s, ms(s->max_ns).s);
	fprintf(out, "confidence  H %.0f%%  M %.0f%%  L %.0f%% of requests\n",
		100 * s->conf_share[0], 100 * s->conf_share[1], 100 * s->conf_share[2]);
	fprintf(out, "verdict     %s\n", snapshot_str(s, s->verdict));
}

static void put_slow(const struct snapshot *s, FILE *out)
{
	if (!s->slow_cnt)
		return;
	fputs("\nSlow requests (p95 and over) against typical ones, mean ms per request\n"
	      "  wait              slow    typical\n",
	      out);
	for (uint32_t i = 0; i < s->slow_cnt; i++) {
		const struct snap_slow_typical *x = &s->slow[i];

		fprintf(out, "  %-12s %9s  %9s\n", wait_class_name(x->cls), ms(x->slow_ns).s,
			ms(x->typical_ns).s);
	}
}

static void put_waits(const struct snapshot *s, FILE *out)
{
	if (!s->wait_cnt)
		return;
	fputs("\nWaits of all these requests\n"
	      "  wait          total ms  share   req    p50 ms    p99 ms  conf  where\n",
	      out);
	for (uint32_t i = 0; i < s->wait_cnt && i < WAIT_ROWS; i++) {
		const struct snap_wait *w = &s->waits[i];

		fprintf(out, "  %-12s %9s  %4.0f%%  %4u %9s %9s  %c %3u", wait_class_name(w->cls),
			ms(w->total_ns).s, 100 * w->share, w->requests, ms(w->p50_ns).s,
			ms(w->p99_ns).s, confidence_letter(w->confidence), w->confidence);
		if (w->site)
			fprintf(out, "  %s", snapshot_str(s, w->site));
		if (w->resource)
			fprintf(out, "  on %s", snapshot_str(s, w->resource));
		if (w->holder)
			fprintf(out, "  held by %s", snapshot_str(s, w->holder));
		else if (w->waker)
			fprintf(out, "  ended by %s", snapshot_str(s, w->waker));
		fputc('\n', out);
	}
	if (s->wait_cnt > WAIT_ROWS)
		fprintf(out, "  and %u more\n", s->wait_cnt - WAIT_ROWS);
}

static void put_blame(const struct snapshot *s, FILE *out)
{
	if (!s->blame_cnt)
		return;
	fputs("\nBlame: whose time it was, and who took it\n"
	      "  total ms  wait          victim -> culprit\n",
	      out);
	for (uint32_t i = 0; i < s->blame_cnt && i < BLAME_ROWS; i++) {
		const struct snap_blame *b = &s->blame[i];

		fprintf(out, "  %8s  %-12s  %s -> %s\n", ms(b->total_ns).s, wait_class_name(b->cls),
			snapshot_str(s, b->victim), snapshot_str(s, b->culprit));
	}
}

static void put_members(const struct snapshot *s, const struct snap_wait_group *g, FILE *out)
{
	for (uint32_t i = 0; i < g->cnt && i < MEMBERS; i++)
		fprintf(out, "%s%s", i ? ", " : "", snapshot_str(s, s->wait_members[g->first + i]));
	if (g->cnt > MEMBERS)
		fprintf(out, " and %u more", g->cnt - MEMBERS);
}

static void put_graph(const struct snapshot *s, FILE *out)
{
	if (!s->edge_cnt)
		return;
	fputs("\nWho waits for whom, with what was handed on\n"
	      "  total ms   own ms  wait          who -> for whom\n",
	      out);
	for (uint32_t i = 0; i < s->edge_cnt && i < EDGE_ROWS; i++) {
		const struct snap_edge *e = &s->edges[i];

		if (e->total_ns < s->edges[0].total_ns / 1000)
			break;
		fprintf(out, "  %8s %8s  %-12s  %s -> %s\n", ms(e->total_ns).s, ms(e->own_ns).s,
			wait_class_name(e->cls), snapshot_str(s, e->from), snapshot_str(s, e->to));
	}
	for (uint32_t i = 0; i < s->wait_group_cnt && i < GROUP_ROWS; i++) {
		const struct snap_wait_group *g = &s->wait_groups[i];

		if (g->outside_ns)
			fputs("  wait for each other: ", out);
		else if (g->cnt > 1)
			fputs("  wait for each other and nobody else: ", out);
		else
			fputs("  waits for nobody: ", out);
		put_members(s, g, out);
		fprintf(out, "; waited for %s ms\n", ms(g->inside_ns + g->waited_ns).s);
	}
}

/* ---- one request ---- */

static void put_stack(const struct snapshot *s, const char *title, uint32_t stack, FILE *out)
{
	if (!stack || stack > s->stack_cnt)
		return;
	const struct snap_stack *st = &s->stacks[stack - 1];

	for (uint32_t i = 0; i < st->cnt && st->first + i < s->frame_cnt; i++) {
		const struct snap_frame *f = &s->frames[st->first + i];

		fprintf(out, "      %-8s %-36s %s\n", i ? "" : title, snapshot_str(s, f->text),
			snapshot_str(s, f->module));
	}
}

static void put_note(const struct snapshot *s, const struct snap_piece *p, FILE *out)
{
	const char *work = snap_kernel_work(s, p);

	if (*work)
		fprintf(out, "  (%s)", work);
	if (p->site)
		fprintf(out, "  %s", snapshot_str(s, p->site));
	if (p->resource)
		fprintf(out, "  on %s", snapshot_str(s, p->resource));
	if (p->p.holder_tid)
		fprintf(out, "  held by %s", snap_task_text(s, &p->holder).s);
	if (p->p.last_tid)
		fprintf(out, "  (last ended by %s)", snap_task_text(s, &p->last).s);
	if (p->p.occupant_tid)
		fprintf(out, "  behind %s %s ms", snap_task_text(s, &p->occupant).s,
			ms(p->p.occupant_ns).s);
	if (p->by_request || p->for_request)
		fprintf(out, "  for request %s",
			snapshot_str(s, p->by_request ? p->by_request : p->for_request));
	if (p->p.flags & CC_PC_OPEN)
		fputs("  not over", out);
	else if (p->p.waker_kind != CC_WAKER_NONE)
		fprintf(out, "  ended by %s%s", snap_waker_text(s, p).s,
			p->p.flags & CC_PC_NOT_TRACED ? " (not traced)" : "");
	if (p->p.ended == CC_ENDED_TIMEOUT)
		fputs("  (timeout)", out);
	fputs(snap_net_text(&p->p).s, out);
	if (p->p.confidence < CC_CONF_HIGH)
		fprintf(out, "  [%c %u]", confidence_letter(p->p.confidence), p->p.confidence);
}

static void put_path(const struct snapshot *s, const struct snap_request *r, bool stacks, FILE *out)
{
	uint32_t small = r->pieces_small;

	for (uint32_t i = 0; i < r->piece_cnt; i++) {
		const struct snap_piece *p = &s->pieces[r->first_piece + i];

		if (!stacks && piece_ns(&p->p) < r->latency_ns / REPORT_SMALL_PART) {
			small++;
			continue;
		}
		fprintf(out, "  %9s %9s  %*s%-*s %s", ms(p->p.start - r->start).s,
			ms(piece_ns(&p->p)).s, 2 * CC_MIN(p->p.depth, 12), "",
			14 - 2 * CC_MIN(p->p.depth, 6), wait_class_name(p->p.cls),
			snap_task_text(s, &p->task).s);
		put_note(s, p, out);
		fputc('\n', out);
		if (!stacks)
			continue;
		put_stack(s, "kernel", p->kstack, out);
		put_stack(s, "user", p->stack, out);
		put_stack(s, "waker", p->waker_kstack, out);
		put_stack(s, p->waker_kstack ? "" : "waker", p->waker_stack, out);
	}
	if (small)
		fprintf(out, "  %9s %9s  %u pieces below 0.5%% each are not shown\n", "", "",
			small);
}

static void put_request(const struct snapshot *s, const struct snap_request *r, bool stacks,
			FILE *out)
{
	fprintf(out, "\n%s  %s ms%s  %s  confidence %c %u", snapshot_str(s, r->id_text),
		ms(r->latency_ns).s, r->state == CC_RQS_IN_FLIGHT ? " so far" : "",
		snap_task_text(s, &r->task).s, confidence_letter(r->confidence), r->confidence);
	if (r->peer)
		fprintf(out, "  from %s", snapshot_str(s, r->peer));
	if (r->rec.local_port)
		fprintf(out, "  on :%u", r->rec.local_port);
	fprintf(out, "\n  %s\n", snapshot_str(s, r->verdict));
	if (!r->piece_cnt)
		return;
	fputs("    from ms        ms  wait           thread\n", out);
	put_path(s, r, stacks, out);
	fprintf(out, "  path %s %s latency %s ms, unexplained %s\n", ms(r->path_sum_ns).s,
		r->path_sum_ns == r->latency_ns ? "=" : "is not", ms(r->latency_ns).s,
		ms(r->unexplained_ns).s);
}

int report_text(const struct snapshot *s, bool stacks, FILE *out)
{
	put_head(s, out);
	put_summary(s, out);
	if (!stacks) {
		put_slow(s, out);
		put_waits(s, out);
		put_blame(s, out);
		put_graph(s, out);
	}
	if (s->request_cnt)
		fputs(stacks ? "" : "\nSlowest requests\n", out);
	for (uint32_t i = 0; i < s->request_cnt; i++)
		put_request(s, &s->requests[i], stacks, out);
	return ferror(out) ? -EIO : 0;
}
