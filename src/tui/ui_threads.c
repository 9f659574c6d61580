/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: roles folded and unfolded; from a thread to the one that was in its way, and back. */
#include <string.h>

#include "view.h"

/* ---- roles ---- */

static int fold_at(const struct ui *ui, uint64_t role)
{
	for (int i = 0; i < ui->fold_cnt; i++)
		if (ui->folds[i] == role)
			return i;
	return -1;
}

bool ui_folded(const struct ui *ui, uint64_t role)
{
	return ui->fold_all != (fold_at(ui, role) >= 0);
}

static void fold_toggle(struct ui *ui, uint64_t role)
{
	int at = fold_at(ui, role);
	if (at >= 0)
		ui->folds[at] = ui->folds[--ui->fold_cnt];
	else if (ui->fold_cnt < UI_FOLDS)
		ui->folds[ui->fold_cnt++] = role;
	else
		ui_say(ui, true, "no more than %d roles differ from the others", UI_FOLDS);
}

/* Row of the role that @row is of; -1: of none. */
static int role_row(const struct ui *ui, int row)
{
	const struct thread_row *r = ui_thread_row(ui, row);
	while (r && r->in_role)
		r = ui_thread_row(ui, --row);
	return r && r->cnt ? row : -1;
}

static void select_key(struct ui *ui, uint64_t key)
{
	for (int i = 0; i < (int)ui->thread_rows; i++)
		if (view_threads.key(ui, i) == key)
			ui->pos[SCREEN_THREADS].row = i;
}

void ui_fold_role(struct ui *ui)
{
	int row = ui->by_role ? role_row(ui, ui->pos[SCREEN_THREADS].row) : -1;
	if (row < 0) {
		ui_say(ui, false,
		       ui->by_role ? "a thread that stands for itself" : "t puts them by role");
		return;
	}
	uint64_t key = view_threads.key(ui, row);
	fold_toggle(ui, key);
	ui_reorder_rows(ui);
	select_key(ui, key);
}

/* Each for itself, by role, by role with all of them folded. */
void ui_next_roles(struct ui *ui)
{
	ui->fold_all = ui->by_role && !ui->fold_all;
	ui->by_role = !ui->by_role || ui->fold_all;
	ui->fold_cnt = 0;
	int role = ui->fold_all ? role_row(ui, ui->pos[SCREEN_THREADS].row) : -1;
	uint64_t key = role >= 0 ? view_threads.key(ui, role) : 0;
	ui_reorder_rows(ui);
	if (key)
		select_key(ui, key);
	ui_say(ui, false,
	       !ui->by_role   ? "each thread for itself"
	       : ui->fold_all ? "by role, folded: e unfolds one"
			      : "by role: e folds one, t all");
}

/* ---- who was in a thread's way ---- */

static const struct snap_task *culprit(const struct snap_piece *p)
{
	return p->holder.tid ? &p->holder : p->occupant.tid ? &p->occupant : &p->waker;
}

/* The task that its requests waited for longest, of those whose paths are shown. */
static const struct snap_task *blocker_of(const struct snapshot *s, uint32_t tid, cc_ns *ret_ns)
{
	const struct snap_task *best = NULL;
	struct {
		const struct snap_task *task;
		cc_ns ns;
	} seen[64];
	size_t cnt = 0;
	*ret_ns = 0;
	for (uint32_t i = 0; i < s->request_cnt; i++) {
		uint32_t pieces;
		const struct snap_piece *p = request_pieces(s, &s->requests[i], &pieces);
		for (uint32_t k = 0; k < pieces; k++) {
			const struct snap_task *by = culprit(&p[k]);
			size_t at = 0;
			if (p[k].task.tid != tid || !by->tid || by->tid == tid)
				continue;
			while (at < cnt && seen[at].task->tid != by->tid)
				at++;
			if (at == ARRAY_SIZE(seen))
				continue;
			if (at == cnt) {
				seen[cnt].task = by;
				seen[cnt++].ns = 0;
			}
			seen[at].ns += by == &p[k].occupant ? p[k].p.occupant_ns
							    : p[k].p.end - p[k].p.start;
			if (seen[at].ns > *ret_ns) {
				*ret_ns = seen[at].ns;
				best = by;
			}
		}
	}
	return best;
}

static int row_of_thread(const struct ui *ui, uint32_t tid)
{
	const struct snapshot *s = ui->snap;
	for (int i = 0; i < (int)ui->thread_rows; i++) {
		const struct thread_row *r = &ui->threads[i];
		if (!r->cnt &&
		    tid == (r->outside ? s->outside[r->at].task.tid : s->threads[r->at].task.tid))
			return i;
	}
	return -1;
}

/* It may lie in a role that is folded. */
static int unfold_to_thread(struct ui *ui, uint32_t tid)
{
	for (int i = 0; i < (int)ui->thread_rows; i++) {
		const struct thread_row *r = &ui->threads[i];
		for (uint32_t m = 0; m < r->cnt && r->folded; m++)
			if (ui->snap->threads[r->members[m]].task.tid == tid) {
				fold_toggle(ui, view_threads.key(ui, i));
				ui_reorder_rows(ui);
				return row_of_thread(ui, tid);
			}
	}
	return row_of_thread(ui, tid);
}

static void note_jump(struct ui *ui, uint64_t from)
{
	if (ui->thread_jump_cnt == UI_JUMPS)
		memmove(ui->thread_jumps, ui->thread_jumps + 1,
			sizeof(*ui->thread_jumps) * (size_t)--ui->thread_jump_cnt);
	ui->thread_jumps[ui->thread_jump_cnt++] = from;
}

bool ui_thread_back(struct ui *ui)
{
	if (!ui->thread_jump_cnt)
		return false;
	select_key(ui, ui->thread_jumps[--ui->thread_jump_cnt]);
	return true;
}

void ui_thread_blocker(struct ui *ui)
{
	const struct snapshot *s = ui->snap;
	int row = ui->pos[SCREEN_THREADS].row;
	const struct snap_thread *t = ui_thread(ui, row);
	cc_ns ns;
	const struct snap_task *by = t && t->task.tid ? blocker_of(s, t->task.tid, &ns) : NULL;
	if (!by) {
		ui_say(ui, false, "nobody was in its way in the requests shown");
		return;
	}
	uint64_t from = view_threads.key(ui, row);
	int to = unfold_to_thread(ui, by->tid);
	if (to >= 0) {
		note_jump(ui, from);
		ui->follow &= ~(1u << SCREEN_THREADS);
		ui->pos[SCREEN_THREADS].row = to;
	}
	ui_say(ui, false, "%s was in its way for %s of the requests shown%s",
	       snap_task_text(s, by).s, text_dur(ns).s,
	       to < 0 ? ": it has no row here" : "; Esc goes back");
}
