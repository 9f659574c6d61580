/* SPDX-License-Identifier: Apache-2.0 */
/* ui_util: a UI on the fixture snapshot, without a terminal. */
#ifndef UI_UTIL_H
#define UI_UTIL_H

#include "ui.h"
#include "ui_fixture.h"

struct ui_test {
	struct ui ui;
	struct canvas canvas;
	struct tui_cmd last; /* what the owner got */
	unsigned int cmd_cnt, save_cnt;
	int save_fd, save_end; /* > 0: it goes on; how it ends */
	struct tui_save saved;
	unsigned int effects; /* of everything since the start, ORed */
};

/* Times are UTC, widths those of C.UTF-8. The UI has the size and no snapshot yet. */
void ui_test_init(struct ui_test *t, int w, int h, bool live);
void ui_test_done(struct ui_test *t);
void ui_test_snapshot(struct ui_test *t, unsigned int how);
void ui_test_size(struct ui_test *t, int w, int h);
/* As keymap_next_key() reads them. */
void ui_test_keys(struct ui_test *t, const char *keys);
/* Draws; the text as canvas_dump() writes it, by malloc. */
char *ui_test_screen(struct ui_test *t);

#endif
