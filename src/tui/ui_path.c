/* SPDX-License-Identifier: Apache-2.0 */
/* Within one request, and from one to another: the selected piece, zoom, folding, the way to who
 * was in the way and back. */
#include <string.h>

#include "view.h"

static const struct snap_piece *pieces_of(const struct ui *ui, uint32_t *ret_cnt)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	*ret_cnt = 0;
	return r ? request_pieces(s, r, ret_cnt) : NULL;
}

uint32_t ui_piece(const struct ui *ui)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_request(ui, &s);
	uint32_t cnt;
	pieces_of(ui, &cnt);
	uint32_t piece = ui->piece == PIECE_UNSEEN && r ? r->dominant.piece : ui->piece;
	return cnt ? CC_MIN(piece, cnt - 1) : 0;
}

void ui_piece_row(struct ui *ui, int row)
{
	const struct snap_request *r;
	struct path_view v;
	struct path_row pr;
	if (ui_path_view(ui, &r, &v) && path_row_at(&v, row, &pr))
		ui->piece = pr.first;
}

void ui_settle_path(struct ui *ui)
{
	const struct snap_request *r;
	struct path_view v;
	if (!ui_path_view(ui, &r, &v))
		return;
	/* begin at the wait that the row told about, so that Enter again shows its stacks */
	ui->piece = CC_MAX(CC_MIN(ui_piece(ui), v.to ? v.to - 1 : 0), v.from);
	ui->pos[SCREEN_PATH].row = path_row_of(&v, ui->piece);
}

/* ---- zoom ---- */

static void zoom(struct ui *ui, uint32_t from, uint32_t to)
{
	if (ui->zoom_cnt == UI_ZOOMS) {
		ui_say(ui, true, "no deeper zoom");
		return;
	}
	ui->zoom[ui->zoom_cnt++] = (struct zoom){ from, to };
	ui->piece = from;
	ui->pos[SCREEN_PATH].top = 0;
}

static void zoom_in(struct ui *ui)
{
	const struct snap_request *r;
	struct path_view v;
	struct path_row row;
	if (!ui_path_view(ui, &r, &v) || !path_row_at(&v, ui->pos[SCREEN_PATH].row, &row))
		return;
	uint32_t to = row.tops > 1 ? row.first + row.cnt : path_after(v.p, row.first, v.to);
	if (to - row.first < 2)
		ui_say(ui, false, "nothing is nested in this piece");
	else if (row.first == v.from && to == v.to)
		ui_say(ui, false, "this is all that is shown: Esc zooms out");
	else
		zoom(ui, row.first, to);
}

bool ui_open_folded(struct ui *ui)
{
	const struct snap_request *r;
	struct path_view v;
	struct path_row row;
	if (!ui_path_view(ui, &r, &v) || !path_row_at(&v, ui->pos[SCREEN_PATH].row, &row) ||
	    row.tops < 2)
		return false;
	if (row.first == v.from && row.first + row.cnt == v.to)
		ui->unfolded = true;
	else
		zoom(ui, row.first, row.first + row.cnt);
	return true;
}

/* ---- to who was in the way, and back ---- */

static void select_id(struct ui *ui, struct cc_reqid id, uint32_t piece)
{
	ui->follow &= ~(1u << SCREEN_REQUESTS);
	for (int i = 0; i < (int)ui->order_cnt; i++) {
		const struct snapshot *s;
		const struct snap_request *r = ui_row(ui, i, &s);
		if (r && cc_reqid_eq(r->id, id)) {
			ui_select_row(ui, i);
			break;
		}
	}
	ui->piece = piece;
}

static void jump(struct ui *ui, struct cc_reqid id)
{
	struct jump from = { ui->want.selected, ui->piece };
	int cnt = ui->jump_cnt;
	struct jump kept[UI_JUMPS];
	memcpy(kept, ui->jumps, sizeof(kept));
	if (cnt == UI_JUMPS)
		memmove(kept, kept + 1, sizeof(kept[0]) * (size_t)--cnt);
	kept[cnt++] = from;
	select_id(ui, id, PIECE_UNSEEN); /* forgets the way here */
	memcpy(ui->jumps, kept, sizeof(kept));
	ui->jump_cnt = cnt;
	ui_say(ui, false, "blocked by %s: shown now, Esc goes back",
	       snapshot_str(ui->snap, snapshot_find(ui->snap, id)->id_text));
}

bool ui_jump_back(struct ui *ui)
{
	if (!ui->jump_cnt)
		return false;
	struct jump to = ui->jumps[--ui->jump_cnt];
	int cnt = ui->jump_cnt;
	if (!snapshot_find(ui->snap, to.id)) {
		ui_look_for(ui, to.id, to.piece);
		return true;
	}
	select_id(ui, to.id, to.piece);
	ui->jump_cnt = cnt;
	return true;
}

/* Snapshots that may still be on their way when one more row is asked for. */
#define LOOK_SNAPSHOTS 3

void ui_look_for(struct ui *ui, struct cc_reqid id, uint32_t piece)
{
	ui->want.also = id;
	ui->also_piece = piece;
	ui->also_left = LOOK_SNAPSHOTS;
	ui_say(ui, false, "looking for it");
	ui_command(ui, TUI_CH_QUERY);
}

void ui_found(struct ui *ui)
{
	struct cc_reqid id = ui->want.also;
	if (id.kind == CC_REQID_NONE)
		return;
	if (snapshot_find(ui->snap, id)) {
		jump(ui, id);
		ui->piece = ui->also_piece;
	} else if (--ui->also_left > 0) {
		return;
	} else {
		ui_say(ui, true, "that request is no longer known");
	}
	ui->want.also = (struct cc_reqid){ 0 };
}

/* On Path the request of the selected piece, on Requests that of the longest such piece. */
static void jump_blocker(struct ui *ui)
{
	uint32_t cnt, first = 0, end;
	const struct snap_piece *p = pieces_of(ui, &cnt), *best = NULL;
	end = cnt;
	if (ui_screen(ui) == SCREEN_PATH && cnt) {
		first = ui_piece(ui);
		end = path_after(p, first, cnt);
	}
	for (uint32_t i = first; i < end; i++)
		if ((p[i].p.by_request.kind || p[i].p.for_request.kind) &&
		    (!best || p[i].p.end - p[i].p.start > best->p.end - best->p.start))
			best = &p[i];
	if (!best) {
		ui_say(ui, false, "no other request was in the way here");
		return;
	}
	struct cc_reqid id =
		best->p.by_request.kind != CC_REQID_NONE ? best->p.by_request : best->p.for_request;
	if (snapshot_find(ui->snap, id))
		jump(ui, id);
	else
		ui_look_for(ui, id, PIECE_UNSEEN);
}

/* ---- a thread's time as a path ---- */

bool ui_on_span(const struct ui *ui) { return ui->before_span.kind != CC_REQID_NONE; }

void ui_open_span(struct ui *ui)
{
	const struct snap_thread *t = ui_thread(ui, ui->pos[SCREEN_THREADS].row);
	if (!t || t->task.goid) {
		ui_say(ui, true, "only of a traced thread is the time known");
		return;
	}
	ui->want.span_tid = t->task.tid;
	ui->want.span_ns = ui->snap->now_ns;
	ui->span_left = LOOK_SNAPSHOTS;
	ui_command(ui, TUI_CH_QUERY);
}

/* It is asked for once; the snapshot that has it is then kept as that of any request that is no
 * longer among the rows. */
void ui_span_came(struct ui *ui)
{
	const struct snapshot *s = ui->snap;
	uint32_t tid = ui->want.span_tid;
	if (!tid)
		return;
	const struct snap_request *r = s->has_span ? &s->requests[s->request_cnt - 1] : NULL;
	if (r && r->id.id == tid) {
		ui->before_span =
			ui->want.selected.kind == CC_REQID_NONE ? r->id : ui->want.selected;
		ui->want.selected = r->id;
		ui->piece = PIECE_UNSEEN;
		ui->zoom_cnt = ui->jump_cnt = 0;
		ui_open(ui, SCREEN_PATH);
	} else if (--ui->span_left > 0) {
		return;
	} else {
		ui_say(ui, true, "nothing is known of what it did");
	}
	ui->want.span_tid = 0;
}

void ui_end_span(struct ui *ui)
{
	if (!ui_on_span(ui))
		return;
	ui->want.selected = ui->before_span;
	ui->before_span = (struct cc_reqid){ 0 };
	ui->piece = PIECE_UNSEEN;
	ui->zoom_cnt = 0;
	if (!ui->snap || !snapshot_find(ui->snap, ui->want.selected))
		ui->want.selected = (struct cc_reqid){ 0 };
	ui_drop(ui, take_ptr(ui->pin));
	if (ui->snap && ui_order(ui, ui->frozen ? ui->snap : NULL))
		ui_say(ui, true, "out of memory");
	ui_command(ui, TUI_CH_SELECT);
}

bool ui_act_path(struct ui *ui, enum action a)
{
	switch ((int)a) {
	case ACT_BLOCKER:
		if (ui_screen(ui) == SCREEN_THREADS)
			ui_thread_blocker(ui);
		else
			jump_blocker(ui);
		return true;
	case ACT_ZOOM:
		if (ui_screen(ui) == SCREEN_THREADS)
			ui_open_span(ui);
		else
			zoom_in(ui);
		return true;
	case ACT_FOLD:
		if (ui_screen(ui) == SCREEN_THREADS) {
			ui_fold_role(ui);
			return true;
		}
		ui->unfolded = !ui->unfolded;
		ui_say(ui, false, ui->unfolded ? "every piece" : "short neighbours share a row");
		return true;
	default:
		return false;
	}
}
