/* SPDX-License-Identifier: Apache-2.0 */
/* Confidence: why the number is what it is, as facts that can be checked. */
#include <stdlib.h>
#include <string.h>

#include "confidence.h"
#include "view.h"

/* A line of the screen. Facts come first, then evidence, weakest first. */
struct reason {
	uint8_t rate;
	bool minus; /* lowers the score */
	cc_ns ns;   /* of the request's deepest partition that rests on it; facts: 0 */
	uint32_t pieces;
	char what[128], value[220];
};

#define FACTS 6
#define REASONS_MAX (FACTS + CC_EV_CNT)

static void fact(struct reason *r, bool minus, const char *what, const char *value)
{
	*r = (struct reason){ .minus = minus };
	snprintf(r->what, sizeof(r->what), "%s", what);
	snprintf(r->value, sizeof(r->value), "%s", value);
}

static int add_facts(const struct snapshot *s, const struct snap_request *r, struct reason *out)
{
	double lat = (double)CC_MAX(r->latency_ns, 1);
	double known = 1 - CC_MIN((double)r->unexplained_ns / lat, 1.0);
	char buf[220];
	int n = 0;
	fact(&out[n++], r->path_sum_ns != r->latency_ns, "pieces of the path add up to the latency",
	     r->path_sum_ns == r->latency_ns ? "exactly" : "no");
	snprintf(buf, sizeof(buf), "%.1f%%", known * 100);
	fact(&out[n++], known < 0.9, "time accounted for (below 90%: at most L 59)", buf);
	snprintf(buf, sizeof(buf), "%s ms", text_ms(r->ambiguous_ns).s);
	fact(&out[n++], r->ambiguous_ns > 0, "time that could belong to several requests", buf);
	fact(&out[n++], r->lost_inside, "events lost inside (any: at most M 89)",
	     r->lost_inside ? "yes" : "none");
	bool bound = r->id.kind == CC_REQID_SOCK && !(r->rec.what & CC_RQ_LATE);
	fact(&out[n++], !bound, "start and end seen on the socket",
	     bound                         ? "both"
	     : r->id.kind == CC_REQID_SOCK ? "no: began before tracing"
					   : "no sockets");
	snprintf(buf, sizeof(buf), "%s of %s", text_count(s->stats.stacks_complete).s,
		 text_count(s->stats.stacks_user).s);
	fact(&out[n++], false, "user stacks that are complete, in the whole trace", buf);
	return n;
}

static bool leaf(const struct snap_piece *p, uint32_t cnt, uint32_t i)
{
	return i + 1 >= cnt || p[i + 1].p.depth <= p[i].p.depth;
}

static int weakest_first(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;
	if (x->rate != y->rate)
		return x->rate - y->rate;
	return x->ns < y->ns ? 1 : x->ns > y->ns ? -1 : strcmp(x->what, y->what);
}

static int add_evidence(const struct snapshot *s, const struct snap_request *r, struct reason *out)
{
	uint32_t cnt;
	const struct snap_piece *p = request_pieces(s, r, &cnt);
	int n = 0;
	for (unsigned int ev = 0; ev < CC_EV_CNT; ev++) {
		struct reason e = { .rate = evidence_rate(ev),
				    .minus = evidence_rate(ev) < CC_CONF_HIGH };
		for (uint32_t i = 0; i < cnt; i++) {
			if (!(p[i].p.evidence >> ev & 1) || !leaf(p, cnt, i))
				continue;
			e.ns += p[i].p.end - p[i].p.start;
			e.pieces++;
		}
		if (!e.pieces)
			continue;
		snprintf(e.what, sizeof(e.what), "%s", evidence_text(ev));
		snprintf(e.value, sizeof(e.value), "%s ms in %u", text_ms(e.ns).s, e.pieces);
		out[n++] = e;
	}
	qsort(out, (size_t)n, sizeof(*out), weakest_first);
	return n;
}

static int reasons(const struct ui *ui, struct reason out[REASONS_MAX])
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	if (!r || !r->path_ok)
		return 0;
	int n = add_facts(s, r, out);
	return n + add_evidence(s, r, out + n);
}

static int confidence_rows(const struct ui *ui)
{
	struct reason out[REASONS_MAX];
	return reasons(ui, out);
}

static int confidence_body(const struct ui *ui, const struct layout *l)
{
	(void)ui;
	return CC_MAX(l->status_y - 7, 1);
}

static void draw_reason(struct canvas *c, const struct snap_request *r, const struct reason *e,
			int y, int pan)
{
	int value_w = c->w < 60 ? 0 : c->w < 100 ? 15 : 22, x = c->w - value_w - 1;
	double share = (double)e->ns / (double)CC_MAX(r->latency_ns, 1);
	canvas_text(c, 2, y, 1, e->minus ? ROLE_CONF_LOW : ROLE_CONF_HIGH, e->minus ? "-" : "+");
	if (e->ns) {
		canvas_printf(c, 4, y, 4, style_conf(e->rate), "%3u", e->rate);
		canvas_right(c, 9, y, value_w ? 5 : 0, ROLE_FG, text_percent(share).s);
	}
	int what_x = value_w ? 16 : 8;
	canvas_pan_cut(c, what_x, y, x - what_x - 1, ROLE_FG, e->what, pan);
	canvas_right(c, x, y, value_w, e->minus ? ROLE_CONF_LOW : ROLE_FG, e->value);
}

static void confidence_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	struct reason out[REASONS_MAX];
	if (!r) {
		canvas_text(c, 1, 1, c->w - 2, ROLE_WARN, "This request is no longer known.");
		return;
	}
	draw_request_head(ui, c, s, r);
	int n = reasons(ui, out), top = ui->pos[SCREEN_CONFIDENCE].top;
	struct pen p = { c, 1, 2, c->w };
	pen_put(&p, ROLE_FG, "confidence ");
	pen_printf(&p, style_conf(r->confidence), "%s", text_conf(r->confidence).s);
	pen_put(&p, ROLE_INACTIVE,
		c->w < 60 ? " of 100"
			  : " of 100: each piece by its weakest evidence, weighted by time");
	canvas_text(c, 4, 4, c->w, ROLE_TITLE, c->w < 60 ? "    REASON" : "RATE TIME%  REASON");
	canvas_right(c, c->w - 12, 4, 11, ROLE_TITLE, c->w < 60 ? "" : "FACT");
	for (int i = top; i < n && i - top < confidence_body(ui, l); i++) {
		draw_reason(c, r, &out[i], 5 + i - top, ui->pan);
		if (i == ui->pos[SCREEN_CONFIDENCE].row)
			draw_selected(c, 0, 5 + i - top, 0);
	}
	if (!n)
		canvas_text(c, 2, 5, c->w - 3, ROLE_WARN, "No path, so nothing is claimed.");
	canvas_cut(c, 1, l->status_y - 1, c->w - 2, ROLE_INACTIVE,
		   c->w < 100
			   ? "Every minus is a fact you can check. H 90 and above, M 60, L below."
			   : "Every minus is a fact you can check. H 90 and above, M 60, L below. "
			     "RATE: how often such pieces were right.");
}

static bool confidence_match(const struct ui *ui, int row, const char *needle)
{
	struct reason out[REASONS_MAX];
	return row < reasons(ui, out) && text_has(out[row].what, needle);
}

const struct view_ops view_confidence = {
	.rows = confidence_rows,
	.body = confidence_body,
	.draw = confidence_draw,
	.match = confidence_match,
};
