/* SPDX-License-Identifier: Apache-2.0 */
#include "markdown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "confidence.h"
#include "digest.h"
#include "fmt.h"
#include "snap_text.h"

#define PATH_ROWS 40   /* of a path, the longest ones: a story is read, not searched */
#define WEAKEST_ROWS 3 /* of the evidence that lowers the confidence */

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

static bool is_known(const char *who) { return *who && strcmp(who, "-") != 0; }

/* Who ended the dominant wait and who had what was waited for: two, and seldom the same. */
static void put_culprits(FILE *out, const struct snapshot *s, const struct snap_request *r)
{
	const char *waker = snapshot_str(s, r->waker_text),
		   *holder = snapshot_str(s, r->holder_text);
	bool woken = is_known(waker), held = is_known(holder);

	if (!r->path_ok || (!woken && !held))
		return;
	fprintf(out, "- its longest wait, %s,", wait_class_name(r->dominant.cls));
	if (woken) {
		fputs(" was ended by ", out);
		put(out, waker);
	}
	if (held) {
		fputs(woken ? "; held by " : " was for what was held by ", out);
		put(out, holder);
	}
	fputc('\n', out);
}

/* "- time: lock 117.7 ms, runq 2.0 ms", the most first. */
static void put_classes(FILE *out, const struct snap_request *r)
{
	bool told[WAIT_CLASS_CNT] = { false };
	const char *sep = "- time: ";

	for (;;) {
		unsigned int max = WAIT_CLASS_CNT;

		for (unsigned int k = 0; k < WAIT_CLASS_CNT; k++)
			if (!told[k] && r->class_ns[k] &&
			    (max == WAIT_CLASS_CNT || r->class_ns[k] > r->class_ns[max]))
				max = k;
		if (max == WAIT_CLASS_CNT)
			break;
		told[max] = true;
		fprintf(out, "%s%s ", sep, wait_class_name(max));
		put_ms(out, r->class_ns[max]);
		fputs(" ms", out);
		sep = ", ";
	}
	if (*sep == ',')
		fputc('\n', out);
}

/* Time of the deepest pieces that rests on evidence @ev. */
static cc_ns evidence_ns(const struct snapshot *s, const struct snap_request *r, unsigned int ev)
{
	const struct snap_piece *p = &s->pieces[r->first_piece];
	cc_ns sum = 0;

	for (uint32_t i = 0; i < r->piece_cnt; i++)
		if (p[i].p.evidence >> ev & 1 &&
		    (i + 1 == r->piece_cnt || p[i + 1].p.depth <= p[i].p.depth))
			sum += piece_ns(&p[i].p);
	return sum;
}

static void put_confidence(FILE *out, const struct snapshot *s, const struct snap_request *r)
{
	uint64_t told = 0;

	fprintf(out, "- confidence %c %u; unexplained ", confidence_letter(r->confidence),
		r->confidence);
	put_ms(out, r->unexplained_ns);
	fputs(" ms", out);
	if (r->lost_inside)
		fputs("; events were lost meanwhile", out);
	fputc('\n', out);
	for (int row = 0; row < WEAKEST_ROWS; row++) {
		unsigned int weakest = CC_EV_CNT;

		for (unsigned int ev = 0; ev < CC_EV_CNT; ev++)
			if (!(told >> ev & 1) && evidence_rate(ev) < CC_CONF_HIGH &&
			    (weakest == CC_EV_CNT || evidence_rate(ev) < evidence_rate(weakest)) &&
			    evidence_ns(s, r, ev))
				weakest = ev;
		if (weakest == CC_EV_CNT)
			return;
		told |= 1ull << weakest;
		fputs("  - ", out);
		put_ms(out, evidence_ns(s, r, weakest));
		fprintf(out, " ms at %u: %s\n", evidence_rate(weakest), evidence_text(weakest));
	}
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
	put_classes(out, r);
	put_culprits(out, s, r);
	put_confidence(out, s, r);
	fputc('\n', out);
}

/* The columns "waited for" and "ended by" of one piece. */
static void put_cause(FILE *out, const struct snapshot *s, const struct snap_piece *p)
{
	const char *sep = "", *work = snap_kernel_work(s, p);

	if (p->resource) {
		put_str(out, s, p->resource);
		sep = ", ";
	}
	if (*work) {
		fprintf(out, "%s%s", sep, work);
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

static void put_piece(FILE *out, const struct snapshot *s, const struct snap_request *r,
		      const struct snap_piece *p)
{
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

static int longest_first(const void *a, const void *b)
{
	cc_ns x = *(const cc_ns *)a, y = *(const cc_ns *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The length that PATH_ROWS pieces have at least; a piece is never longer than the one it explains,
 * so that none is shown without that. */
static cc_ns least_shown(const struct snap_piece *p, uint32_t cnt)
{
	cc_ns *len = cnt > PATH_ROWS ? malloc(cnt * sizeof(*len)) : NULL;

	if (!len)
		return 0;
	for (uint32_t i = 0; i < cnt; i++)
		len[i] = piece_ns(&p[i].p);
	qsort(len, cnt, sizeof(*len), longest_first);
	cc_ns least = len[PATH_ROWS - 1];

	free(len);
	return least;
}

static void put_path(FILE *out, const struct snapshot *s, const struct snap_request *r)
{
	const struct snap_piece *p = &s->pieces[r->first_piece];
	cc_ns least = least_shown(p, r->piece_cnt), left_ns = 0;
	uint32_t left = 0;

	fputs("| from ms | ms | wait | thread | where | waited for | ended by |\n"
	      "|---:|---:|---|---|---|---|---|\n",
	      out);
	for (uint32_t i = 0; i < r->piece_cnt; i++) {
		if (piece_ns(&p[i].p) >= least) {
			put_piece(out, s, r, &p[i]);
			continue;
		}
		left++;
		left_ns += p[i].p.depth ? 0 : piece_ns(&p[i].p);
	}
	fputs("\nAn arrow marks what explains the wait above it. Path ", out);
	put_ms(out, r->path_sum_ns);
	fputs(" ms of latency ", out);
	put_ms(out, r->latency_ns);
	fputs(" ms", out);
	if (left) {
		fprintf(out, "; %u shorter pieces are not shown, ", left);
		put_ms(out, left_ns);
		fputs(" ms of the path", out);
	}
	fputs(".\n\n", out);
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
