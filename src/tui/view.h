/* SPDX-License-Identifier: Apache-2.0 */
/* view: one file per screen draws (snapshot, state, size) on a canvas and nothing else. */
#ifndef CC_VIEW_H
#define CC_VIEW_H

#include "path_rows.h"
#include "text.h"
#include "ui.h"

/* Where things are on a screen of this size. */
struct layout {
	int where_y, where_h;     /* "where p99 went", or the replay bar */
	int verdict_y, verdict_h; /* h 0: not shown */
	int tabs_y;
	int cols_y;         /* column titles */
	int body_y, body_h; /* rows */
	int preview_y, preview_h;
	int status_y;
	bool fkeys; /* one line below status */
};
void view_layout(const struct ui *ui, struct layout *ret);

struct view_ops {
	int (*rows)(const struct ui *ui);                         /* that can be selected */
	int (*body)(const struct ui *ui, const struct layout *l); /* rows shown at once */
	void (*draw)(const struct ui *ui, struct canvas *c, const struct layout *l);
	bool (*match)(const struct ui *ui, int row, const char *needle); /* NULL: no search */
	/* What a row is about, whatever its place: the selection stays on it. NULL: rows keep. */
	uint64_t (*key)(const struct ui *ui, int row);
};
extern const struct view_ops view_requests, view_waits, view_threads, view_health, view_path,
	view_stacks, view_confidence, view_setup, view_help;
const struct view_ops *view_of(enum screen s);

/* For keys of rows: a number of texts and numbers. */
uint64_t view_hash(uint64_t h, const char *text);

/* What the Path screen shows of the selected request. False: none is selected. */
bool ui_path_view(const struct ui *ui, const struct snap_request **ret_r, struct path_view *ret);

/* ---- parts that several screens share ---- */

enum screen tab_under(const struct ui *ui, const struct layout *l, int x,
		      int y); /* SCREEN_CNT: none */
void draw_head(const struct ui *ui, struct canvas *c, const struct layout *l);
/* Two lines of a screen about one request: who it is and which tab is open. */
void draw_request_head(const struct ui *ui, struct canvas *c, const struct snapshot *s,
		       const struct snap_request *r);
void draw_foot(const struct ui *ui, struct canvas *c, const struct layout *l);
/* Line @y is the selected one: marked over its whole width, the terminal's cursor at @x, and there
 * @mark, unless it is 0. */
void draw_selected(struct canvas *c, int x, int y, uint32_t mark);
/* Why there is nothing to see, where the table would be. */
void draw_empty(const struct ui *ui, struct canvas *c, int y);
void draw_tiny(struct canvas *c);
bool view_time_bar(const struct ui *ui); /* instead of where the time went */
void draw_time(const struct ui *ui, struct canvas *c, int y, int h);
void draw_menu(const struct ui *ui, struct canvas *c, const struct layout *l);
void draw_prompt(const struct ui *ui, struct canvas *c, int y);
const char *prompt_label(enum prompt_kind kind);

/* Bar of group letters in proportion to @ns, whose sum is @total (0: their own). */
void draw_mix(struct canvas *c, int x, int y, int w, const cc_ns ns[9], cc_ns total);
/* One cell of it. */
void draw_spark_cell(struct canvas *c, int x, int y, cc_ns v, cc_ns top);
/* The highest of each slice of @v, oldest first. */
void draw_spark(struct canvas *c, int x, int y, int w, const cc_ns *v, int cnt);
/* "lock 46  net 22" by size, "L46 N22" where these do not all fit before p->end. */
void draw_legend(struct pen *p, const cc_ns ns[9]);
style style_wait(unsigned int cls);
style style_conf(unsigned int confidence);
style style_group(int i);

/* ---- Requests by port ---- */
int port_height(const struct ui *ui, int row);               /* lines of a row */
int ports_body(const struct ui *ui, const struct layout *l); /* rows with the selected one last */
int port_under(const struct ui *ui, const struct layout *l, int y); /* -1: none */
void draw_port_titles(struct canvas *c, int y);
void draw_port(const struct ui *ui, struct canvas *c, int row, int y, int h);
/* "lock>disk fsync cart_mutex": the first wait, what lies beneath it, and where. */
void draw_dominant(struct canvas *c, const struct snapshot *s, const struct snap_request *r, int x,
		   int y, int w, int pan);

/* ---- path rows: the Path screen and the preview ---- */

/* Draws the time scale (since @origin) and column titles at @y, rows from @top on below, @h lines
 * in all. @row < 0: none is selected. */
void draw_path_rows(struct canvas *c, const struct path_view *v, cc_ns origin, int y, int h,
		    int top, int row, int pan);
/* "path 211.4 = latency 211.4 ms   unexplained 0.0 (0.0%) ..." */
void draw_path_sum(struct canvas *c, const struct snapshot *s, const struct snap_request *r, int y);

#endif
