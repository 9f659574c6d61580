/* SPDX-License-Identifier: Apache-2.0 */
/* Health: what it costs, what was lost, how good the stacks are, what is attached. */
#include <string.h>

#include "view.h"

struct health_line {
	char what[44];
	struct text value;
	bool bad, title;
	char why[240]; /* a note of the tracing may be long */
};
#define HEALTH_MAX 128

static void add(struct health_line *out, int *n, const char *what, struct text value, bool bad,
		const char *why)
{
	if (*n == HEALTH_MAX)
		return;
	struct health_line *l = &out[(*n)++];
	*l = (struct health_line){ .value = value, .bad = bad };
	snprintf(l->what, sizeof(l->what), "%s", what);
	snprintf(l->why, sizeof(l->why), "%s", why);
}

static void title(struct health_line *out, int *n, const char *what)
{
	add(out, n, what, (struct text){ "" }, false, "");
	if (*n)
		out[*n - 1].title = true;
}

static struct text share_text(double share)
{
	struct text t = text_percent(share);
	size_t n = 0;
	while (t.s[n])
		n++;
	t.s[n] = '%';
	t.s[n + 1] = '\0';
	return t;
}

#define VALUE_W 10

static struct text count(uint64_t n) { return text_count_in(n, VALUE_W); }

static void add_losses(const struct snapshot *s, struct health_line *out, int *n)
{
	static const struct {
		int cnt;
		const char *what, *why;
	} drops[] = {
		{ CC_CNT_DROP_EPISODE, "episodes that found the ring full",
		  "folded into the next: shown as unknown, never as CPU" },
		{ CC_CNT_DROP_EXTRA, "details of slow waits lost",
		  "these have no stacks or owner" },
		{ CC_CNT_DROP_REQ, "requests lost", "" },
		{ CC_CNT_DROP_TASK, "births, deaths, names lost", "" },
		{ CC_CNT_DROP_SOCKOP, "socket operations lost", "identity is less sure" },
		{ CC_CNT_DROP_SNAP, "stack snapshots lost", "" },
		{ CC_CNT_DROP_GO, "of goroutines lost", "waits are folded, never shown as CPU" },
		{ CC_CNT_STORAGE_FAIL, "tasks or sockets without storage", "they are not seen" },
		{ CC_CNT_RECURSION, "program runs the kernel skipped", "" },
	};
	const struct engine_stats *st = &s->stats;
	add(out, n, "events lost, all", count(text_drops(s)), text_drops(s), "");
	add(out, n, "time lost", text_dur(st->lost_ns), st->lost_ns, "");
	for (size_t i = 0; i < ARRAY_SIZE(drops); i++)
		if (st->counter[drops[i].cnt])
			add(out, n, drops[i].what, count(st->counter[drops[i].cnt]), true,
			    drops[i].why);
	if (st->counter[CC_CNT_UNSEEN])
		add(out, n, "switches the kernel did not show", count(st->counter[CC_CNT_UNSEEN]),
		    false, "told by its own account of the thread, or lost");
	add(out, n, "came after their watermark", count(st->late), st->late, "");
	add(out, n, "malformed records", count(st->malformed), st->malformed, "");
	add(out, n, "tasks waiting for each other", count(st->cycles), false,
	    "a bad edge: confidence 0 there");
}

static struct text per_second(uint64_t cnt, cc_ns span)
{
	struct text t = text_count(span ? (uint64_t)((double)cnt / ((double)span / 1e9)) : 0);
	size_t n = strlen(t.s);
	if (n + 3 < sizeof(t.s))
		memcpy(t.s + n, "/s", 3);
	return t;
}

static void add_cost(const struct snapshot *s, struct health_line *out, int *n)
{
	const struct engine_stats *st = &s->stats;
	cc_ns span = s->last_ns > s->first_ns ? s->last_ns - s->first_ns : 0;
	char why[100];
	title(out, n, "Cost");
	add(out, n, "own CPU", share_text(s->runtime.cpu_share), s->runtime.cpu_share > 0.05,
	    "of one core, all threads");
	add(out, n, "own memory", text_bytes(s->runtime.rss_bytes), false, "");
	add(out, n, "engine memory", text_bytes(st->memory_bytes), false, "");
	if (s->runtime.kept_from_ns) {
		cc_ns kept = s->runtime.newest_ns > s->runtime.kept_from_ns
				     ? s->runtime.newest_ns - s->runtime.kept_from_ns
				     : 0;
		snprintf(why, sizeof(why), "the last %.16s, to go back to and to save",
			 text_dur(kept).s);
		add(out, n, "records kept", text_bytes(s->runtime.kept_bytes), false, why);
	}
	add(out, n, "ring fill, fullest", share_text(s->runtime.ring_fill),
	    s->runtime.ring_fill > 0.5, "since the last refresh; full: waits are folded");
	add(out, n, "records", count(st->events), false, per_second(st->events, span).s);
	add(out, n, "times off the CPU", count(st->episodes), false,
	    per_second(st->episodes, span).s);
}

static void add_stacks(const struct snapshot *s, struct health_line *out, int *n)
{
	const struct engine_stats *st = &s->stats;
	const struct snap_unwind *u = &s->runtime.unwind;
	const struct {
		uint64_t cnt;
		const char *what, *why;
	} rows[] = {
		{ u->cut, "run past the bytes taken", "--snap-bytes takes more" },
		{ u->no_map, "lead to no code", "JIT code, or a process that is gone" },
		{ u->no_cfi, "meet code without unwind tables", "" },
		{ u->bad, "incomplete otherwise", "" },
		{ u->code_changed, "left out: their code was replaced", "dlclose() and dlopen()" },
		{ u->guessed, "by frame pointers", "a guess: marked on the stack" },
		{ u->unclaimed, "pushed out before their wait came", "" },
	};
	char why[100];
	title(out, n, "Stacks");
	add(out, n, "waits with a user stack", count(st->stacks_user), false, "");
	add(out, n, "of these complete",
	    share_text(st->stacks_user ? (double)st->stacks_complete / (double)st->stacks_user : 0),
	    st->stacks_complete * 100 < st->stacks_user * 95, "reach the thread's start");
	uint64_t here = st->counter[CC_CNT_CHAINS], both = here + st->counter[CC_CNT_SNAPS];
	if (both) {
		snprintf(why, sizeof(why),
			 "the others are copied, and teach it; %.16s of ring so far",
			 text_bytes(st->counter[CC_CNT_STACK_BYTES]).s);
		add(out, n, "unwound in the kernel", share_text((double)here / (double)both), false,
		    why);
	}
	if (!u->known)
		return;
	snprintf(why, sizeof(why), "%.16s complete, %.16s processes known, %.16s",
		 share_text(u->user ? (double)u->user_full / (double)u->user : 0).s,
		 text_count(u->procs).s, text_bytes(u->bytes).s);
	add(out, n, "stacks unwound", count(u->user), false, why);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].cnt)
			add(out, n, rows[i].what, count(rows[i].cnt), false, rows[i].why);
	if (u->kernel_hidden)
		add(out, n, "kernel names", (struct text){ "hidden" }, true,
		    "needs CAP_SYSLOG, or kernel.kptr_restrict=0");
}

static void add_probes(const struct snapshot *s, struct health_line *out, int *n)
{
	uint32_t attached = 0;
	char what[64];
	for (uint32_t i = 0; i < s->runtime.probe_cnt; i++)
		attached += s->runtime.probe[i].attached;
	if (!s->runtime.probe_cnt)
		return;
	snprintf(what, sizeof(what), "Probes: %u of %u attached", attached, s->runtime.probe_cnt);
	title(out, n, what);
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < s->runtime.probe_cnt; i++) {
			const struct snap_probe *p = &s->runtime.probe[i];
			struct text value = { "attached" };
			char why[100];
			if (p->attached == (pass == 1))
				continue;
			if (!p->attached)
				snprintf(value.s, sizeof(value.s), "not used");
			snprintf(why, sizeof(why), "%s", p->place);
			if (p->skipped)
				snprintf(why, sizeof(why), "%s; %.16s runs skipped", p->place,
					 text_count(p->skipped).s);
			add(out, n, p->name, value, false, why);
		}
}

static int lines(const struct snapshot *s, struct health_line out[HEALTH_MAX])
{
	const struct engine_stats *st = &s->stats;
	int n = 0;
	add_cost(s, out, &n);
	title(out, &n, "Losses");
	add_losses(s, out, &n);
	add(out, &n, "short waits summed", count(st->short_cnt), false, "below --min-block");
	add(out, &n, "forgotten for age or memory", count(st->evicted), false,
	    "waits and requests");
	if (st->paths_left_out)
		add(out, &n, "requests without a path", count(st->paths_left_out), false,
		    "counted; paths: the slowest, and a sample");
	add_stacks(s, out, &n);
	title(out, &n, "How it is traced");
	for (uint32_t i = 0; i < s->note_cnt; i++)
		add(out, &n, "", (struct text){ "" }, false, snapshot_str(s, s->notes[i]));
	add_probes(s, out, &n);
	return n;
}

static int health_rows(const struct ui *ui)
{
	struct health_line out[HEALTH_MAX];
	return ui->snap ? lines(ui->snap, out) : 0;
}

static int health_body(const struct ui *ui, const struct layout *l)
{
	(void)ui;
	return l->body_h;
}

static void draw_line(struct canvas *c, const struct health_line *line, int y, int pan)
{
	int what_w = c->w < 100 ? 31 : 36, value_x = CC_MIN(4 + what_w, c->w - 11);
	if (line->title) {
		canvas_cut(c, 1, y, c->w - 2, ROLE_TITLE, line->what);
		return;
	}
	if (!line->what[0]) {
		canvas_pan_cut(c, 3, y, c->w - 4, ROLE_FG, line->why, pan);
		return;
	}
	canvas_cut(c, 3, y, CC_MIN(what_w, value_x - 4), ROLE_FG, line->what);
	canvas_right(c, value_x, y, VALUE_W, line->bad ? ROLE_ERR : ROLE_FG | CELL_BOLD,
		     line->value.s);
	canvas_pan_cut(c, value_x + 12, y, c->w - value_x - 13, ROLE_INACTIVE, line->why, pan);
}

static void health_draw(const struct ui *ui, struct canvas *c, const struct layout *l)
{
	const struct snapshot *s = ui->snap;
	struct health_line out[HEALTH_MAX];
	int top = ui->pos[SCREEN_HEALTH].top;
	draw_head(ui, c, l);
	if (!s) {
		draw_empty(ui, c, l->body_y);
		return;
	}
	int n = lines(s, out);
	canvas_cut(c, 3, l->cols_y, c->w - 4, ROLE_INACTIVE, snapshot_str(s, s->host));
	for (int i = 0; i < l->body_h && top + i < n; i++) {
		draw_line(c, &out[top + i], l->body_y + i, ui->pan);
		if (top + i == ui->pos[SCREEN_HEALTH].row)
			draw_selected(c, 0, l->body_y + i, 0);
	}
}

static bool health_match(const struct ui *ui, int row, const char *needle)
{
	struct health_line out[HEALTH_MAX];
	int n = ui->snap ? lines(ui->snap, out) : 0;
	return row < n && (text_has(out[row].what, needle) || text_has(out[row].why, needle));
}

const struct view_ops view_health = {
	.rows = health_rows,
	.body = health_body,
	.draw = health_draw,
	.match = health_match,
};
