/* SPDX-License-Identifier: Apache-2.0 */
#include "markdown.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "confidence.h"
#include "digest.h"
#include "fmt.h"
#include "snap_text.h"

static void put(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\`*_{}[]<>|#~!&", *text))
			fputc('\\', out);
		fputc(*text, out);
	}
}

static void put_str(FILE *out, const struct snapshot *s, cc_str str)
{
	put(out, snapshot_str(s, str));
}

static void put_ms(FILE *out, cc_ns ns)
{
	char text[FMT_LEN];

	fmt_ms(text, sizeof(text), ns);
	fputs(text, out);
}

/* UTC, when the recording has a wall clock anchor. */
static void put_time(FILE *out, const struct snapshot *s, cc_ns ns)
{
	int64_t real = (int64_t)ns + s->realtime_off_ns;
	time_t sec = (time_t)(real / (int64_t)CC_S(1));
	char text[64] = "";
	struct tm tm;

	if (!s->realtime_off_ns || !gmtime_r(&sec, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm)) {
		put_ms(out, ns - s->first_ns);
		fputs(" ms into the recording", out);
		return;
	}
	fprintf(out, "%s.%03u UTC", text, (unsigned int)(real / 1000000 % 1000));
}

static void put_head(FILE *out, const struct snapshot *s, const struct snap_request *r)
{
	fputs("## Request ", out);
	put_str(out, s, r->id_text);
	fputs(": ", out);
	put_ms(out, r->latency_ns);
	fputs(r->state == CC_RQS_IN_FLIGHT ? " ms so far\n\n**" : " ms\n\n**", out);
	put_str(out, s, r->verdict);
	fputs("**\n\n- served by ", out);
	put(out, snap_task_text(s, &r->task).s);
	if (r->peer) {
		fputs(", for ", out);
		put_str(out, s, r->peer);
	}
	if (r->rec.local_port)
		fprintf(out, ", on port %u", r->rec.local_port);
	fputs("\n- from ", out);
	put_time(out, s, r->start);
	fprintf(out, "; %llu bytes in, %llu out\n", (unsigned long long)r->rec.bytes_in,
		(unsigned long long)r->rec.bytes_out);
	fprintf(out, "- confidence %c %u; unexplained ", confidence_letter(r->confidence),
		r->confidence);
	put_ms(out, r->unexplained_ns);
	fputs(" ms", out);
	if (r->lost_inside)
		fputs("; events were lost meanwhile", out);
	fputs("\n\n", out);
}

/* The columns "waited for" and "ended by" of one piece. */
static void put_cause(FILE *out, const struct snapshot *s, const struct snap_piece *p)
{
	const char *sep = "";

	if (p->resource) {
		put_str(out, s, p->resource);
		sep = ", ";
	}
	if (p->p.holder_tid) {
		fprintf(out, "%sheld by ", sep);
		put(out, snap_task_text(s, &p->holder).s);
		sep = ", ";
	}
	if (p->p.occupant_tid) {
		fprintf(out, "%sbehind ", sep);
		put(out, snap_task_text(s, &p->occupant).s);
		sep = ", ";
	}
	if (p->by_request || p->for_request) {
		fprintf(out, "%sfor request ", sep);
		put_str(out, s, p->by_request ? p->by_request : p->for_request);
	}
	fputs(" | ", out);
	put(out, p->p.flags & CC_PC_OPEN ? "not over" : snap_waker_text(s, p).s);
	if (p->p.ended == CC_ENDED_TIMEOUT || p->p.ended == CC_ENDED_SIGNAL)
		fprintf(out, " (%s)", snap_ended_name(p->p.ended));
}

static void put_path(FILE *out, const struct snapshot *s, const struct snap_request *r)
{
	fputs("| from ms | ms | wait | thread | where | waited for | ended by |\n"
	      "|---:|---:|---|---|---|---|---|\n",
	      out);
	for (uint32_t i = 0; i < r->piece_cnt; i++) {
		const struct snap_piece *p = &s->pieces[r->first_piece + i];

		fputs("| ", out);
		put_ms(out, p->p.start - r->start);
		fputs(" | ", out);
		put_ms(out, piece_ns(&p->p));
		fputs(" | ", out);
		for (unsigned int d = 0; d < p->p.depth && d < 8; d++)
			fputs("&rarr; ", out);
		fprintf(out, "%s | ", wait_class_name(p->p.cls));
		put(out, snap_task_text(s, &p->task).s);
		fputs(" | ", out);
		put_str(out, s, p->site);
		fputs(" | ", out);
		put_cause(out, s, p);
		fputs(" |\n", out);
	}
	fputs("\nAn arrow marks what explains the wait above it. Path ", out);
	put_ms(out, r->path_sum_ns);
	fputs(" ms of latency ", out);
	put_ms(out, r->latency_ns);
	fputs(" ms.\n\n", out);
}

static void put_stack(FILE *out, const struct snapshot *s, const char *title, uint32_t kernel,
		      uint32_t user)
{
	uint32_t both[2] = { kernel, user };

	if (!kernel && !user)
		return;
	fprintf(out, "%s:\n\n", title);
	for (int k = 0; k < 2; k++) {
		if (!both[k] || both[k] > s->stack_cnt)
			continue;
		const struct snap_stack *st = &s->stacks[both[k] - 1];

		for (uint32_t i = 0; i < st->cnt && st->first + i < s->frame_cnt; i++) {
			const struct snap_frame *f = &s->frames[st->first + i];

			/* indented code: nothing in it acts, and no fence can be closed */
			fprintf(out, "    %-40s %s\n", snapshot_str(s, f->text),
				snapshot_str(s, f->module));
		}
	}
	fputc('\n', out);
}

int markdown_request(const struct snapshot *s, const struct snap_request *r, FILE *out)
{
	put_head(out, s, r);
	if (r->piece_cnt)
		put_path(out, s, r);
	for (uint32_t i = 0; i < r->piece_cnt; i++) {
		const struct snap_piece *p = &s->pieces[r->first_piece + i];

		if (i != r->dominant.piece && i != r->root.piece)
			continue;
		put_stack(out, s, i == r->dominant.piece ? "Where it waited" : "The root cause",
			  p->kstack, p->stack);
		put_stack(out, s, "Who ended it", p->waker_kstack, p->waker_stack);
	}
	return ferror(out) ? -EIO : 0;
}
