/* SPDX-License-Identifier: Apache-2.0 */
/* Requests grouped: one row for each port, with the request that speaks for its slow ones. The
 * selection stays on the port, whatever request that is by now. */
#include <string.h>

#include "view.h"

bool ui_by_port(const struct ui *ui) { return ui->want.by_port && ui->snap && ui->snap->port_cnt; }

const struct snap_port *ui_port(const struct ui *ui, int row)
{
	const struct snapshot *s;
	const struct snap_request *r = ui_by_port(ui) ? ui_row(ui, row, &s) : NULL;
	for (uint32_t i = 0; r && i < ui->snap->port_cnt; i++)
		if (cc_reqid_eq(ui->snap->ports[i].slow, r->id))
			return &ui->snap->ports[i];
	return NULL;
}

void ui_note_port(struct ui *ui)
{
	const struct snap_port *p = ui_port(ui, ui->pos[SCREEN_REQUESTS].row);
	if (p)
		snprintf(ui->port_kind, sizeof(ui->port_kind), "%s",
			 snapshot_str(ui->snap, p->kind));
}

void ui_keep_port(struct ui *ui)
{
	if (!ui_by_port(ui) || ui_screen(ui) != SCREEN_REQUESTS)
		return;
	int row = 0;
	for (int i = 0; i < (int)ui->order_cnt; i++) {
		const struct snap_port *p = ui_port(ui, i);
		if (p && !strcmp(snapshot_str(ui->snap, p->kind), ui->port_kind))
			row = i;
	}
	ui_select_row(ui, row);
}

void ui_port_toggle(struct ui *ui)
{
	ui->want.by_port = !ui->want.by_port;
	ui->pos[SCREEN_REQUESTS] = (struct list_pos){ 0 };
	if (ui->snap && ui_order(ui, NULL))
		ui_say(ui, true, "out of memory");
	ui_say(ui, false,
	       ui->want.by_port ? "by port: Enter opens a slow request of it" : "every request");
	ui_command(ui, TUI_CH_QUERY);
}
