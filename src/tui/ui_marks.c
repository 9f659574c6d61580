/* SPDX-License-Identifier: Apache-2.0 */
/* What is worth a look in time: marks, losses, the worst moments; and going to what a log line
 * names. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "filter.h"
#include "view.h"

/* ---- the time bar ---- */

static void bar_move(struct time_bar *b, cc_ns first, cc_ns width)
{
	struct time_bar old = *b;
	*b = (struct time_bar){ .first = first, .width = width };
	for (cc_ns i = 0; i < UI_BAR && old.width; i++) {
		cc_ns t = old.first + i * old.width + old.width / 2;
		cc_ns at = t >= first ? (t - first) / width : UI_BAR;
		if (at < UI_BAR)
			b->p99[at] = CC_MAX(b->p99[at], old.p99[i]);
	}
}

void ui_bar_add(struct ui *ui)
{
	const struct snapshot *s = ui->snap;
	struct time_bar *b = &ui->bar;
	const int slices = ARRAY_SIZE(s->p99_line);
	cc_ns first, last, lo = s->now_ns > s->window_ns ? s->now_ns - s->window_ns : 0;
	if (s->runtime.filling) /* of its requests only some are known */
		return;
	ui_time_range(ui, &first, &last);
	/* twice as long as needed: a live history grows and moves */
	if (!b->width || first + b->width < b->first || last >= b->first + UI_BAR * b->width)
		bar_move(b, first, (last - first) * (ui->opts.live ? 2 : 1) / UI_BAR + 1);
	for (int i = 0; i < slices; i++) {
		cc_ns t = lo + s->window_ns / (cc_ns)slices * (cc_ns)i;
		cc_ns end = t + s->window_ns / (cc_ns)slices;
		for (; s->p99_line[i] && t < end; t += b->width)
			if (t >= b->first && (t - b->first) / b->width < UI_BAR)
				b->p99[(t - b->first) / b->width] = s->p99_line[i];
	}
}

/* ---- to what is worth a look ---- */

struct moment {
	cc_ns at; /* the view that has it in its window */
	const struct mark *mark;
	const char *what;
};

struct search {
	cc_ns now, slack;
	bool on; /* after now, else before it */
	struct moment best;
};

static void offer(struct search *s, cc_ns at, const struct mark *mark, const char *what)
{
	bool beyond = s->on ? at > s->now + s->slack : at + s->slack < s->now;
	bool nearer = !s->best.what || (s->on ? at < s->best.at : at > s->best.at);
	if (beyond && nearer)
		s->best = (struct moment){ at, mark, what };
}

/* The highest slices: where it was nearly as bad as it ever got. */
static void offer_worst(struct search *s, const struct time_bar *b, cc_ns after)
{
	cc_ns top = 0;
	for (int i = 0; i < UI_BAR; i++)
		top = CC_MAX(top, b->p99[i]);
	for (int i = 0; i < UI_BAR && top; i++)
		if (b->p99[i] >= top / 10 * 9 && (!i || b->p99[i - 1] < top / 10 * 9))
			offer(s, b->first + (cc_ns)(i + 1) * b->width + after, NULL,
			      "the worst moment");
}

static void to_moment(struct ui *ui, bool on)
{
	cc_ns step = ui->want.interval_ns;
	struct search s = { .now = ui->at_ns, .slack = step / 2, .on = on };
	for (int i = 0; i < ui->mark_cnt; i++)
		offer(&s, ui->marks[i].at + step, &ui->marks[i], "a mark");
	for (uint32_t i = 0; i < ui->snap->loss_cnt; i++)
		offer(&s, ui->snap->losses[i].to + step, NULL, "a loss");
	offer_worst(&s, &ui->bar, step);
	if (!s.best.what) {
		ui_say(ui, false, "no mark, loss or worst moment %s", on ? "after" : "before");
		return;
	}
	ui_seek(ui, s.best.at);
	if (s.best.mark && !cc_reqid_eq(s.best.mark->id, ui->want.selected))
		ui_look_for(ui, s.best.mark->id, PIECE_UNSEEN);
	ui_say(ui, false, "%s, at %s", s.best.what, text_clock(ui->snap, s.best.at, true).s);
}

/* ---- marks ---- */

static void mark_row(struct ui *ui)
{
	enum screen s = ui_screen(ui);
	const struct view_ops *v = view_of(s);
	int row = ui->pos[s].row;
	if (!ui->snap || row >= v->rows(ui))
		return;
	uint64_t key = v->key(ui, row);
	for (int i = 0; i < ui->row_mark_cnt; i++)
		if (ui->row_marks[i].screen == s && ui->row_marks[i].key == key) {
			ui->row_marks[i] = ui->row_marks[--ui->row_mark_cnt];
			ui_say(ui, false, "no mark on this row");
			return;
		}
	if (ui->row_mark_cnt == UI_MARKS) {
		ui_say(ui, true, "no more than %d marks", UI_MARKS);
		return;
	}
	ui->row_marks[ui->row_mark_cnt++] = (struct row_mark){ s, key };
	ui_say(ui, false, "marked this row: ( and ) come back to it");
}

static void mark_request(struct ui *ui)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	if (!r)
		return;
	for (int i = 0; i < ui->mark_cnt; i++)
		if (cc_reqid_eq(ui->marks[i].id, r->id)) {
			ui->marks[i] = ui->marks[--ui->mark_cnt];
			ui_say(ui, false, "no mark on %s", snapshot_str(s, r->id_text));
			return;
		}
	if (ui->mark_cnt == UI_MARKS) {
		ui_say(ui, true, "no more than %d marks", UI_MARKS);
		return;
	}
	ui->marks[ui->mark_cnt++] = (struct mark){ r->id, r->end };
	ui_say(ui, false, "marked %s: ( and ) come back to it", snapshot_str(s, r->id_text));
}

static bool row_is_marked(const struct ui *ui, enum screen on, int row)
{
	const struct snapshot *s;
	const struct snap_request *r;
	if (on != SCREEN_REQUESTS)
		return ui_row_marked(ui, on, row);
	r = ui_row(ui, row, &s);
	return r && ui_marked(ui, r->id);
}

/* Among the rows of now there is no need to go back in time. */
static bool next_marked_row(struct ui *ui, int step)
{
	enum screen on = ui_screen(ui);
	int rows = view_of(on)->rows(ui), row = ui->pos[on].row;
	if (!(ON_LISTS & 1u << on) ||
	    (on == SCREEN_REQUESTS && (!ui->opts.live || ui->want.paused)))
		return false;
	for (int i = 1; i <= rows; i++) {
		int at = (row + i * step % rows + rows) % rows;
		if (row_is_marked(ui, on, at)) {
			ui_goto_row(ui, at);
			return true;
		}
	}
	return false;
}

bool ui_act_mark(struct ui *ui, enum action a)
{
	bool on = a == ACT_NEXT_MARK;
	if (a == ACT_MARK && ui_screen(ui) != SCREEN_REQUESTS && ON_LISTS & 1u << ui_screen(ui))
		mark_row(ui);
	else if (a == ACT_MARK)
		mark_request(ui);
	else if (!on && a != ACT_PREV_MARK)
		return false;
	else if (!ui->snap)
		ui_say(ui, true, "no data yet");
	else if (!next_marked_row(ui, on ? 1 : -1))
		to_moment(ui, on);
	return true;
}

/* ---- go to ---- */

/* A word of a log line as a term of the filter language: "10.0.0.7:51122" as a peer, "12:04:31" (or
 * a time stamp that ends with it) as a time; terms as they are. */
static size_t term_of(const char *word, size_t len, char *out, size_t cap)
{
	const char *t = memchr(word, 'T', len);
	bool term = memchr(word, '=', len) || memchr(word, '~', len) || memchr(word, '>', len) ||
		    memchr(word, '<', len);
	if (!term && t && isdigit((unsigned char)word[0])) { /* 2026-11-30T12:04:31 */
		len -= (size_t)(t + 1 - word);
		word = t + 1;
	}
	bool clock =
		len >= 5 && isdigit((unsigned char)word[0]) && (word[1] == ':' || word[2] == ':');
	if (clock && !term) /* filters know seconds */
		while (len && (word[len - 1] == 'Z' || memchr(word, '.', len)))
			len--;
	int n = snprintf(out, cap, "%s%.*s", term ? "" : clock ? "at=" : "peer=", (int)len, word);
	return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}

static int log_line(const char *text, char *out, size_t cap)
{
	size_t n = 0;
	out[0] = '\0';
	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		size_t len = strcspn(text, " ");
		if (n + 2 > cap)
			return -EINVAL;
		if (n)
			out[n++] = ' ';
		size_t more = term_of(text, len, out + n, cap - n);
		if (!more)
			return -EINVAL;
		n += more;
		text += len;
	}
	return n ? 0 : -EINVAL;
}

/* Time of its at= term; 0: it has none. */
static cc_ns time_of(const struct ui *ui, const char *terms)
{
	const char *at = strstr(terms, "at=");
	char word[32];
	cc_ns ns = 0;
	if (!at || (at > terms && at[-1] != ' '))
		return 0;
	snprintf(word, sizeof(word), "%.*s", (int)CC_MIN(strcspn(at + 3, " "), (size_t)31), at + 3);
	return ui_parse_time(ui, word, &ns) ? 0 : ns;
}

int ui_goto(struct ui *ui, const char *text, struct cc_err *err)
{
	char terms[TUI_FILTER_LEN];
	struct filter *f = NULL;
	cc_ns to;
	if (!ui_parse_time(ui, text, &to)) {
		ui_seek(ui, to);
		return 0;
	}
	if (log_line(text, terms, sizeof(terms)) || filter_parse(terms, err, &f)) {
		err->pos = 0;
		snprintf(err->msg, sizeof(err->msg),
			 "not a time (12:04:31, +30s, -1m, 50%%) nor terms (peer=IP:port "
			 "at=12:04:31)");
		return -EINVAL;
	}
	filter_free(f);
	ui->want.selected = (struct cc_reqid){ 0 }; /* the first that is found */
	to = time_of(ui, terms);
	cc_ns from =
		ui->snap->now_ns > ui->snap->window_ns ? ui->snap->now_ns - ui->snap->window_ns : 0;
	if (to && (to < from || to > ui->snap->now_ns))
		ui_seek(ui, to + CC_S(2)); /* it may have gone on for a while */
	ui_filter(ui, terms);
	ui_goto_top(ui, SCREEN_REQUESTS);
	ui_say(ui, false, "what was going on then; c shows all again");
	return 0;
}
