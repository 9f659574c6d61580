/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "text.h"
#include "tui.h"

/* "lock > disk fsync" */
static void dominant_text(const struct snap_request *r, char *buf, size_t cap)
{
	bool deeper = r->root.ns && r->root.cls != r->dominant.cls;
	snprintf(buf, cap, "%s%s%s", wait_class_name(r->dominant.cls), deeper ? " > " : "",
		 deeper ? wait_class_name(r->root.cls) : "");
}

static const char *or_dash(const char *s) { return *s ? s : "-"; }

static void put_row(const struct snapshot *s, const struct snap_request *r, FILE *out)
{
	char dominant[64];
	const char *where = snapshot_str(s, r->dominant.resource);
	double lat = (double)CC_MAX(r->latency_ns, 1);
	dominant_text(r, dominant, sizeof(dominant));
	fprintf(out, "%-16s %9s%c %-24s %3.0f  %-16s %-16s %4s  %-5s  %-21s %s\n",
		snapshot_str(s, r->id_text), text_ms(r->latency_ns).s,
		r->state == CC_RQS_IN_FLIGHT ? '+'
		: r->lost_inside             ? '~'
					     : ' ',
		r->path_ok ? dominant : "no path", r->dominant.share * 100,
		or_dash(snapshot_str(s, r->waker_text)), or_dash(snapshot_str(s, r->holder_text)),
		text_percent((double)r->unexplained_ns / lat).s, text_conf(r->confidence).s,
		or_dash(snapshot_str(s, r->peer)),
		or_dash(*where ? where : snapshot_str(s, r->dominant.site)));
}

int tui_batch_print(const struct snapshot *s, FILE *out)
{
	fprintf(out, "criticast %s  window %s  req %.1f/s  p50 %s  p99 %s  max %s  in-flight %u",
		text_clock(s, s->now_ns, false).s, text_dur(s->window_ns).s, s->rate,
		text_dur(s->p50_ns).s, text_dur(s->p99_ns).s, text_dur(s->max_ns).s,
		s->in_flight_cnt);
	fprintf(out, "  conf H %.0f%% M %.0f%% L %.0f%%  lost %llu  shown %u of %u\n",
		s->conf_share[0] * 100, s->conf_share[1] * 100, s->conf_share[2] * 100,
		(unsigned long long)engine_lost(&s->stats), s->request_cnt, s->match_cnt);
	if (*snapshot_str(s, s->verdict))
		fprintf(out, "%s\n", snapshot_str(s, s->verdict));
	fprintf(out, "%-16s %9s  %-24s %3s  %-16s %-16s %4s  %-5s  %-21s %s\n", "REQ", "LAT-MS",
		"DOMINANT", "%", "WOKEN-BY", "HELD-BY", "?%", "CONF", "CONN", "WHERE");
	for (uint32_t i = 0; i < s->request_cnt; i++)
		put_row(s, &s->requests[i], out);
	for (uint32_t i = 0; i < s->note_cnt && !s->total_cnt; i++) /* why there may be none */
		fprintf(out, "note: %s\n", snapshot_str(s, s->notes[i]));
	fputc('\n', out);
	return ferror(out) ? -EIO : 0;
}

int batch_request(const struct snapshot *s, const struct snap_request *r, char **ret)
{
	size_t len;
	char *text = NULL;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return -ENOMEM;
	fprintf(out, "%s  %s ms  %s  %s  %s\n%s\n", snapshot_str(s, r->id_text),
		text_ms(r->latency_ns).s, text_conf(r->confidence).s, snapshot_str(s, r->peer),
		text_clock(s, r->start, true).s, snapshot_str(s, r->verdict));
	uint32_t first = CC_MIN(r->first_piece, s->piece_cnt);
	uint32_t cnt = CC_MIN(r->piece_cnt, s->piece_cnt - first);
	for (uint32_t i = 0; i < cnt; i++) {
		const struct snap_piece *p = &s->pieces[first + i];
		char note[512];
		text_note(s, p, note, sizeof(note));
		fprintf(out, "%10s ms  %*s%-14s %-20s %s\n", text_ms(p->p.end - p->p.start).s,
			2 * CC_MIN((int)p->p.depth, 16), "", wait_class_name(p->p.cls),
			snap_task_text(s, &p->task).s, note);
	}
	if (fclose(out)) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}
