/* SPDX-License-Identifier: Apache-2.0 */
/* What is above every screen: title, totals, where the time went, replay bar, verdict, tabs. */
#include <string.h>

#include "view.h"

const struct view_ops *view_of(enum screen s)
{
	static const struct view_ops *const views[SCREEN_CNT] = {
		[SCREEN_REQUESTS] = &view_requests,
		[SCREEN_WAITS] = &view_waits,
		[SCREEN_THREADS] = &view_threads,
		[SCREEN_HEALTH] = &view_health,
		[SCREEN_PATH] = &view_path,
		[SCREEN_STACKS] = &view_stacks,
		[SCREEN_CONFIDENCE] = &view_confidence,
		[SCREEN_SETUP] = &view_setup,
		[SCREEN_HELP] = &view_help,
	};
	return views[s];
}

uint64_t view_hash(uint64_t h, const char *text)
{
	h ^= 0xcbf29ce484222325ull; /* FNV-1a */
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	return h;
}

void view_layout(const struct ui *ui, struct layout *ret)
{
	bool one = ON_REQUEST & 1u << ui_screen(ui);
	bool help = ui_screen(ui) == SCREEN_HELP || ui_screen(ui) == SCREEN_SETUP;
	int h = ui->h, y = 1; /* line 0: title */
	*ret = (struct layout){ .fkeys = h >= 16 };
	ret->status_y = h - 1 - ret->fkeys;
	if (one) {
		y = 3;
	} else if (!help) {
		y++; /* totals */
		ret->where_y = y;
		ret->where_h = h < 14 ? 0 : view_time_bar(ui) && h >= 20 ? 2 : 1;
		y += ret->where_h;
		ret->verdict_y = y;
		ret->verdict_h = h < 14 ? 0 : h >= 20 && ui->w < 100 ? 2 : 1;
		y += ret->verdict_h;
		ret->tabs_y = y++;
		ret->cols_y = y++;
	}
	ret->body_y = y;
	ret->body_h = CC_MAX(ret->status_y - y, 1);
	if (ui_screen(ui) == SCREEN_REQUESTS && !ui->no_preview && h >= 30 && !ui_by_port(ui)) {
		ret->preview_h = CC_MIN(h / 3, 14);
		ret->preview_y = ret->status_y - ret->preview_h;
		ret->body_h -= ret->preview_h;
	}
}

/* ---- head ---- */

static void draw_badge(const struct ui *ui, struct pen *p)
{
	const struct snapshot *s = ui->snap;
	if (s && s->runtime.target_gone)
		pen_put(p, ROLE_ERR, "EXITED");
	else if (ui->want.paused)
		pen_put(p, ROLE_PAUSE, " PAUSED ");
	else if (!ui->opts.live)
		pen_put(p, ROLE_REPLAY, s && s->runtime.ended ? " END " : " REPLAY ");
	else
		pen_put(p, ROLE_HI, "LIVE");
}

/* Right side of the title: own cost, losses, time. Returns where it starts. */
static int draw_title_right(struct canvas *c, const struct snapshot *s)
{
	char self[160], drops[128];
	struct text clock = text_clock(s, s->now_ns, false);
	uint64_t lost = text_drops(s);
	snprintf(self, sizeof(self), "self %.1f%%", s->runtime.cpu_share * 100);
	if (c->w >= 100)
		snprintf(self + strlen(self), sizeof(self) - strlen(self), " %s",
			 text_bytes(s->runtime.rss_bytes).s);
	snprintf(drops, sizeof(drops), "drops %s", text_count(lost).s);
	int gap = c->w >= 100 ? 3 : 2;
	int x = c->w - 1 - canvas_width(clock.s);
	canvas_text(c, x, 0, c->w - x, ROLE_FG, clock.s);
	if (c->w < 60 && !lost)
		return x;
	x -= gap + canvas_width(drops);
	canvas_text(c, x, 0, c->w - x, lost ? ROLE_ERR : ROLE_INACTIVE, drops);
	if (c->w < 60)
		return x;
	x -= gap + canvas_width(self);
	canvas_text(c, x, 0, c->w - x, ROLE_INACTIVE, self);
	return x;
}

static void draw_title(const struct ui *ui, struct canvas *c)
{
	const struct snapshot *s = ui->snap;
	struct pen p = { c, 1, 0, c->w };
	if (s)
		p.end = draw_title_right(c, s) - 1;
	if (c->w >= 60)
		pen_put(&p, ROLE_TITLE, c->w >= 100 ? "criticast top   " : "criticast top  ");
	if (ui->opts.title)
		pen_put(&p, ROLE_FG, ui->opts.title);
	else if (s && s->target_cnt - s->followed_cnt > 1)
		pen_printf(&p, ROLE_FG, "%u processes %s", s->target_cnt - s->followed_cnt,
			   snapshot_str(s, s->target.comm));
	else if (s && s->target.tgid)
		pen_printf(&p, ROLE_FG, "pid %u %s", s->target.tgid,
			   snapshot_str(s, s->target.comm));
	if (s && s->followed_cnt)
		pen_printf(&p, ROLE_INACTIVE, " +%u followed", s->followed_cnt);
	if (s && c->w >= 100)
		pen_printf(&p, ROLE_INACTIVE, "  %u thr", s->thread_all);
	if (s && c->w >= 100 && s->goroutine_all)
		pen_printf(&p, ROLE_INACTIVE, " %u gor", s->goroutine_all);
	pen_put(&p, ROLE_FG, c->w >= 100 ? "   " : "  ");
	draw_badge(ui, &p);
	if (s && c->w >= 100)
		pen_printf(&p, ROLE_INACTIVE, "  win %s", text_age(s->window_ns).s);
	if (ui->opts.live && c->w >= 100)
		pen_printf(&p, ROLE_INACTIVE, "  every %gs", (double)ui->want.interval_ns / 1e9);
}

/* "p50 1.9ms": the name dim, so that the number stands out. */
static void put_pair(struct pen *p, style st, const char *name, const char *value)
{
	if (p->x + canvas_width(name) + canvas_width(value) + 1 > p->end)
		return;
	pen_printf(p, ROLE_INACTIVE, "%s ", name);
	pen_put(p, st, value);
	pen_put(p, ROLE_FG, "  ");
}

/* Shares by confidence: "conf H 91% M 6% L 3%", narrow "conf H91 M6 L3". */
static void put_shares(struct pen *p, const struct snapshot *s)
{
	static const style looks[] = { ROLE_CONF_HIGH, ROLE_CONF_MID, ROLE_CONF_LOW };
	bool wide = p->c->w >= 100;
	char part[3][32];
	int w = 7;
	for (int i = 0; i < 3; i++) {
		snprintf(part[i], sizeof(part[i]), wide ? " %c %.0f%%" : " %c%.0f", "HML"[i],
			 s -> conf_share[i] * 100);
		w += canvas_width(part[i]);
	}
	if (!s->total_cnt || p->x + w > p->end)
		return;
	pen_put(p, ROLE_INACTIVE, "conf");
	for (int i = 0; i < 3; i++)
		pen_put(p, looks[i], part[i]);
	pen_put(p, ROLE_FG, "  ");
}

static void draw_totals(struct canvas *c, const struct snapshot *s)
{
	struct pen p = { c, 1, 1, c->w };
	char buf[32];
	snprintf(buf, sizeof(buf), s->rate < 9.95 ? "%.1f/s" : "%.0f/s", s->rate);
	put_pair(&p, ROLE_FG, "req", buf);
	if (s->total_cnt) {
		put_pair(&p, ROLE_FG, "p50", text_dur(s->p50_ns).s);
		put_pair(&p, ROLE_TITLE, "p99", text_dur(s->p99_ns).s);
		put_pair(&p, ROLE_FG, "max", text_dur(s->max_ns).s);
	}
	if (s->in_flight_cnt && c->w >= 100) /* slow ones are rows on any screen */
		put_pair(&p, ROLE_FG, "in flight", text_count(s->in_flight_cnt).s);
	if (s->stream_cnt && c->w >= 100)
		put_pair(&p, ROLE_FG, "streams", text_count(s->stream_cnt).s);
	if (s->apart_cnt && c->w >= 100) /* set-up exchanges, busy periods: no single requests */
		put_pair(&p, ROLE_FG, "apart", text_count(s->apart_cnt).s);
	put_shares(&p, s);
	int room = CC_MIN(p.end - p.x - 5, (int)ARRAY_SIZE(s->p99_line));
	if (room >= 8 && s->total_cnt) {
		pen_put(&p, ROLE_INACTIVE, "p99 ");
		draw_spark(c, p.x, 1, room, s->p99_line, ARRAY_SIZE(s->p99_line));
	}
}

static void draw_where(struct canvas *c, const struct snapshot *s, int y)
{
	struct pen p = { c, 1, y, c->w };
	int w = c->w * 2 / 5 - 8;
	pen_put(&p, ROLE_INACTIVE, c->w >= 60 ? "where p99 went  " : "p99 in ");
	draw_mix(c, p.x, y, w, s->p99_mix, 0);
	p.x += w + 2;
	static const char unit[] = "(%)";
	p.end -= (int)sizeof(unit); /* and the edge of the screen */
	draw_legend(&p, s->p99_mix);
	p.end = c->w;
	pen_put(&p, ROLE_INACTIVE, unit);
}

enum screen tab_under(const struct ui *ui, const struct layout *l, int x, int y)
{
	int at = 1;
	if (y != l->tabs_y || !l->tabs_y)
		return SCREEN_CNT;
	for (int i = SCREEN_REQUESTS; i <= SCREEN_HEALTH; i++) {
		bool named = ui->w >= 60 || ui_under(ui) == (enum screen)i;
		at += 4 + (named ? canvas_width(screen_name((enum screen)i)) : 0);
		if (x < at)
			return (enum screen)i;
	}
	return SCREEN_CNT;
}

static void draw_tabs(const struct ui *ui, struct canvas *c, int y)
{
	struct pen p = { c, 1, y, c->w };
	for (int i = SCREEN_REQUESTS; i <= SCREEN_HEALTH; i++) {
		bool on = ui_under(ui) == (enum screen)i;
		const char *name = c->w >= 60 || on ? screen_name((enum screen)i) : "";
		pen_printf(&p, on ? ROLE_TITLE : ROLE_INACTIVE, on ? "[%d %s]" : " %d %s ", i + 1,
			   name);
	}
	pen_put(&p, ROLE_FG, "  ");
	if (ui_screen(ui) == SCREEN_REQUESTS && ui_by_port(ui)) {
		pen_put(&p, ROLE_FG, "by port  ");
	} else if (keymap_row(ACT_SORT_MENU)->screens & 1u << ui_screen(ui) &&
		   !(ui_screen(ui) == SCREEN_WAITS && ui->blame)) {
		int n;
		pen_put(&p, ROLE_INACTIVE, c->w >= 100 ? "sort " : "");
		pen_printf(&p, ROLE_FG, "%s %s  ", sort_cols(ui_screen(ui), &n)[ui_sort(ui)].title,
			   ui_ascending(ui) ? "▴" : "▾");
	}
	if (ui->snap && ui->want.filter[0]) {
		char cnt[220];
		snprintf(cnt, sizeof(cnt), " (%s of %s) ", text_count(ui->snap->match_cnt).s,
			 text_count(ui->snap->total_cnt).s);
		int room = p.end - p.x - canvas_width(cnt) - 1;
		pen_put(&p, ROLE_HI, "\\");
		p.x += canvas_fit(c, p.x, y, room, ROLE_HI, ui->want.filter);
		pen_put(&p, ROLE_INACTIVE, cnt);
	}
	if (ui->frozen)
		pen_put(&p, ROLE_WARN, "frozen  ");
	if (ui->follow & 1u << ui_screen(ui))
		pen_put(&p, ROLE_WARN, "follow");
}

void draw_head(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snapshot *s = ui->snap;
	draw_title(ui, c);
	draw_tabs(ui, c, l->tabs_y);
	if (!s)
		return;
	draw_totals(c, s);
	if (l->where_h && view_time_bar(ui))
		draw_time(ui, c, l->where_y, l->where_h);
	else if (l->where_h && s->total_cnt)
		draw_where(c, s, l->where_y);
	if (l->verdict_h == 1)
		canvas_cut(c, 1, l->verdict_y, c->w - 2, ROLE_TITLE, snapshot_str(s, s->verdict));
	else if (l->verdict_h)
		canvas_wrap(c, 1, l->verdict_y, c->w - 2, l->verdict_h, ROLE_TITLE,
			    snapshot_str(s, s->verdict));
}

/* A fact that has no room is left out, one that has some is cut in its middle: a part of an address
 * is another address. */
static void put_fact(struct pen *p, const char *name, const char *value)
{
	int lead = canvas_width(name) + 1, room = p->end - p->x - lead, w = canvas_width(value);
	if (!*value || (w > room && room < 8))
		return;
	pen_printf(p, ROLE_INACTIVE, "%s ", name);
	p->x += canvas_fit(p->c, p->x, p->y, CC_MIN(w, room), ROLE_FG, value);
	pen_put(p, ROLE_FG, "  ");
}

static void request_facts(struct canvas *c, const struct snapshot *s, const struct snap_request *r)
{
	struct pen p = { c, 1, 1, c->w - 1 };
	char text[128] = "";
	if (r->rec.local_port)
		snprintf(text, sizeof(text), "%u", r->rec.local_port);
	put_fact(&p, "port", text);
	put_fact(&p, "served by", snap_task_text(s, &r->task).s);
	if (r->recv_task.tid && r->recv_task.tid != r->task.tid)
		put_fact(&p, "received by", snap_task_text(s, &r->recv_task).s);
	put_fact(&p, "at", text_clock(s, r->start, true).s);
	put_fact(&p, "upstream", snapshot_str(s, r->up_peer));
	put_fact(&p, "upstream, by one vote only:", snapshot_str(s, r->up_hint));
	snprintf(text, sizeof(text), "%.16s, out %.16s", text_bytes(r->rec.bytes_in).s,
		 text_bytes(r->rec.bytes_out).s);
	if (r->rec.bytes_in || r->rec.bytes_out)
		put_fact(&p, "in", text);
}

void draw_request_head(const struct ui *ui, struct canvas *c, const struct snapshot *s,
		       const struct snap_request *r)
{
	static const enum screen tabs[] = { SCREEN_PATH, SCREEN_STACKS, SCREEN_CONFIDENCE };
	int w = 0;
	for (size_t i = 0; i < ARRAY_SIZE(tabs); i++)
		if (c->w >= 60 || ui_under(ui) == tabs[i])
			w += canvas_width(screen_name(tabs[i])) + 2;
	struct pen t = { c, CC_MAX(c->w - w - 1, 20), 0, c->w };
	struct pen p = { c, 1, 0, t.x - 1 };
	for (size_t i = 0; i < ARRAY_SIZE(tabs); i++) {
		bool on = ui_under(ui) == tabs[i];
		if (!on && c->w < 60)
			continue;
		pen_printf(&t, on ? ROLE_TITLE : ROLE_INACTIVE, on ? "[%s]" : " %s ",
			   screen_name(tabs[i]));
	}
	pen_printf(&p, ROLE_TITLE, "%s  ", snapshot_str(s, r->id_text));
	pen_printf(&p, ROLE_TITLE, "%s ms%s  ", text_ms(r->latency_ns).s,
		   r->state == CC_RQS_IN_FLIGHT ? " so far" : "");
	pen_printf(&p, style_conf(r->confidence), "%s", text_conf(r->confidence).s);
	pen_printf(&p, ROLE_FG, "%s  %s  ", r->lost_inside ? "~" : "", snapshot_str(s, r->peer));
	if (ui_on_span(ui))
		pen_put(&p, ROLE_WARN, "what this thread did  ");
	else if (s == ui->pin)
		pen_put(&p, ROLE_WARN, "left the window  ");
	draw_badge(ui, &p);
	request_facts(c, s, r);
}
