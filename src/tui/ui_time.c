/* SPDX-License-Identifier: Apache-2.0 */
/* Time: pause, step, seek, speed. The same keys in a replay and in the history of a live trace. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text.h"
#include "ui.h"

static cc_ns stream_first(const struct ui *ui)
{
	cc_ns kept = ui->snap->runtime.kept_from_ns;
	if (ui->opts.first_ns)
		return ui->opts.first_ns;
	return kept ? CC_MAX(kept, ui->snap->first_ns) : ui->snap->first_ns;
}

static cc_ns stream_last(const struct ui *ui)
{
	cc_ns seen = CC_MAX(ui->snap->last_ns, ui->snap->now_ns);
	return ui->opts.last_ns ? ui->opts.last_ns : CC_MAX(seen, ui->snap->runtime.newest_ns);
}

void ui_time_range(const struct ui *ui, cc_ns *ret_first, cc_ns *ret_last)
{
	*ret_first = stream_first(ui);
	*ret_last = CC_MAX(stream_last(ui), *ret_first + 1);
}

void ui_seek(struct ui *ui, cc_ns ns)
{
	unsigned int changed = TUI_CH_SEEK;
	bool older = ui->opts.live && ns < stream_first(ui);
	ns = CC_MAX(stream_first(ui), CC_MIN(ns, stream_last(ui)));
	if (ui->opts.live && !ui->want.paused) {
		ui->want.paused = true;
		changed |= TUI_CH_PAUSE;
	}
	ui->at_ns = ns;
	ui->want.view_ns = ns;
	ui->want.seek_cnt++;
	ui_say(ui, false, "at %s%s", text_clock(ui->snap, ns, true).s,
	       older ? ", the oldest that is kept (--memory keeps more)" : "");
	ui_command(ui, changed);
}

static void seek_by(struct ui *ui, int64_t delta)
{
	cc_ns back = delta < 0 ? (cc_ns)-delta : 0;
	if (back)
		ui_seek(ui, ui->at_ns > back ? ui->at_ns - back : 0);
	else
		ui_seek(ui, ui->at_ns + (cc_ns)delta);
}

static void newest(struct ui *ui)
{
	if (!ui->opts.live) {
		ui_seek(ui, stream_last(ui));
		return;
	}
	unsigned int changed = TUI_CH_SEEK | (ui->want.paused ? (unsigned int)TUI_CH_PAUSE : 0u);
	ui->want.view_ns = 0;
	ui->want.paused = false;
	ui->want.seek_cnt++;
	ui_command(ui, changed);
}

static void pause_toggle(struct ui *ui)
{
	ui->want.paused = !ui->want.paused;
	ui->want.view_ns = ui->want.paused || !ui->opts.live ? ui->at_ns : 0;
	ui_command(ui, TUI_CH_PAUSE);
}

static const cc_ns intervals[] = { CC_MS(100), CC_MS(200), CC_MS(500), CC_S(1), CC_S(2),
				   CC_S(5),    CC_S(10),   CC_S(30),   CC_S(60) };

static void set_interval(struct ui *ui, cc_ns ns)
{
	ui->want.interval_ns = ns;
	ui_say(ui, false, "refresh every %gs", (double)ns / 1e9);
	ui_command(ui, TUI_CH_INTERVAL);
}

void ui_next_interval(struct ui *ui)
{
	size_t i = 0;
	while (i < ARRAY_SIZE(intervals) && intervals[i] <= ui->want.interval_ns)
		i++;
	set_interval(ui, intervals[i % ARRAY_SIZE(intervals)]);
}

static void faster(struct ui *ui, bool up)
{
	if (!ui->opts.live) {
		double speed = up ? ui->want.speed * 2 : ui->want.speed / 2;
		ui->want.speed = CC_MAX(0.125, CC_MIN(speed, 64));
		ui_say(ui, false, "speed %gx", ui->want.speed);
		ui_command(ui, TUI_CH_SPEED);
		return;
	}
	cc_ns old = ui->want.interval_ns, next = old;
	for (size_t i = 0; i < ARRAY_SIZE(intervals); i++) { /* faster: a shorter interval */
		if (!up && intervals[i] > old) {
			next = intervals[i];
			break;
		}
		if (up && intervals[i] < old)
			next = intervals[i];
	}
	set_interval(ui, next);
}

bool ui_act_time(struct ui *ui, enum action a)
{
	int64_t step = (int64_t)ui->want.interval_ns;
	if (keymap_row(a)->group != KEYS_TIME || a == ACT_GOTO || a == ACT_PREV_MARK ||
	    a == ACT_NEXT_MARK)
		return false;
	if (!ui->snap) { /* no time to go to yet */
		ui_say(ui, true, "no data yet");
		return true;
	}
	if (a == ACT_PAUSE)
		pause_toggle(ui);
	else if (a == ACT_STEP_BACK || a == ACT_STEP_ON)
		seek_by(ui, a == ACT_STEP_ON ? step : -step);
	else if (a == ACT_SEEK_BACK || a == ACT_SEEK_ON)
		seek_by(ui, (int64_t)CC_S(10) * (a == ACT_SEEK_ON ? 1 : -1));
	else if (a == ACT_LEAP_BACK || a == ACT_LEAP_ON)
		seek_by(ui, (int64_t)CC_S(60) * (a == ACT_LEAP_ON ? 1 : -1));
	else if (a == ACT_START)
		ui_seek(ui, stream_first(ui));
	else if (a == ACT_NEWEST)
		newest(ui);
	else
		faster(ui, a == ACT_FASTER);
	return true;
}

/* "+30s", "-1m", "+250ms" relative to @now. */
static int parse_relative(const char *text, cc_ns now, cc_ns *ret)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ms", 1e6 }, { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 }, { "", 1e9 } };
	char *end;
	double v = strtod(text + 1, &end);
	if (end == text + 1 || !(v >= 0) || v > 1e6)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(end, units[i].unit)) {
			cc_ns d = (cc_ns)(v * units[i].ns);
			*ret = *text == '+' ? now + d : now > d ? now - d : 0;
			return 0;
		}
	return -EINVAL;
}

/* The time of the stream at which clocks show @second of the day, on the day of the screen. */
static int clock_to_ns(const struct snapshot *s, int second, cc_ns *ret)
{
	int64_t real = (int64_t)s->now_ns + s->realtime_off_ns;
	time_t now = (time_t)(real / 1000000000);
	struct tm tm;
	if (!localtime_r(&now, &tm))
		return -EINVAL;
	int64_t delta = second - tm.tm_hour * 3600 - tm.tm_min * 60 - tm.tm_sec;
	int64_t to = ((int64_t)now + delta) * 1000000000 - s->realtime_off_ns;
	*ret = to > 0 ? (cc_ns)to : 0;
	return 0;
}

int ui_parse_time(const struct ui *ui, const char *text, cc_ns *ret)
{
	const struct snapshot *s = ui->snap;
	int h, m, sec = 0, used = 0;
	char *end;
	text += strspn(text, " ");
	if (*text == '+' || *text == '-')
		return parse_relative(text, ui->at_ns, ret);
	if (sscanf(text, "%2d:%2d%n", &h, &m, &used) == 2 && used && h >= 0 && m >= 0 && m < 60) {
		int more = 0;
		text += used;
		if (sscanf(text, ":%2d%n", &sec, &more) == 1 && more)
			text += more;
		if (*text || h > 23 || sec < 0 || sec > 59)
			return -EINVAL;
		return clock_to_ns(s, h * 3600 + m * 60 + sec, ret);
	}
	double percent = strtod(text, &end);
	if (end == text || strcmp(end, "%") != 0 || !(percent >= 0 && percent <= 100))
		return -EINVAL;
	cc_ns first = stream_first(ui), last = CC_MAX(first, stream_last(ui));
	*ret = first + (cc_ns)((double)(last - first) * percent / 100);
	return 0;
}
