/* SPDX-License-Identifier: Apache-2.0 */
/* ui: what the user looks at and wants: screens, selection, prompts. Keys and snapshots in,
 * effects and commands out. No terminal here. */
#ifndef CC_UI_H
#define CC_UI_H

#include "canvas.h"
#include "keymap.h"
#include "theme.h"
#include "tui.h"

#define UI_MIN_W 40
#define UI_MIN_H 10
#define UI_DEPTH 4 /* screens above each other */
#define UI_MARKS 64
#define ORDER_PIN UINT32_MAX
#define UI_ZOOMS 8
#define UI_JUMPS 8
#define UI_FOLDS 64
#define ROLE_KEY 3              /* of view_hash(), before a role's name */
#define PIECE_UNSEEN UINT32_MAX /* begin at the dominant wait */

enum { /* what ui_key() and ui_snapshot() ask the loop to do */
       UI_DRAW = 1 << 0,
       UI_QUIT = 1 << 1,
       UI_SUSPEND = 1 << 2,
       UI_REPAINT = 1 << 3, /* forget what the terminal shows */
       UI_THEME = 1 << 4,   /* ui->theme changed */
       UI_MOUSE = 1 << 6,   /* ui->mouse changed */
       UI_COPY = 1 << 5,    /* ui->clip is to go to the clipboard */
};

enum prompt_kind { PROMPT_NONE, PROMPT_FILTER, PROMPT_SEARCH, PROMPT_GOTO };
struct prompt {
	enum prompt_kind kind;
	char text[TUI_FILTER_LEN];
	size_t at;                   /* cursor: byte offset in text */
	char before[TUI_FILTER_LEN]; /* comes back on Esc */
	struct cc_err err;           /* pos: byte offset of what is wrong; msg "": fine */
};

enum menu_kind { MENU_NONE, MENU_SORT, MENU_SAVE };

struct mark {
	struct cc_reqid id;
	cc_ns at; /* its end */
};
struct row_mark { /* on Waits or Threads: what the row is about, by view_ops.key */
	enum screen screen;
	uint64_t key;
};

/* The p99 of equal slices of all the time that can be gone to, as far as it was seen. */
#define UI_BAR 240
struct time_bar {
	cc_ns first, width; /* of a slice; 0: nothing was seen */
	cc_ns p99[UI_BAR];  /* 0: none ended there, or not seen */
};

struct list_pos {
	int row, top; /* selected, first shown */
};

/* Rows of Threads. */
struct thread_row {
	uint32_t at;  /* in snap->threads, of those outside in snap->outside; of a role its first */
	uint32_t cnt; /* of a role: its threads, in the rows below it; 0: no role */
	bool in_role, outside;
	bool folded;             /* a role: its threads have no rows */
	const uint32_t *members; /* of a role, cnt of them: in snap->threads */
};

struct row_sort {
	int col; /* of sort_cols() */
	bool ascending;
};

struct zoom { /* pieces of the selected request */
	uint32_t from, to;
};
struct jump { /* where a jump to a blocker came from */
	struct cc_reqid id;
	uint32_t piece;
};

struct ui {
	struct tui_opts opts;
	struct keymap keys;
	uint32_t columns;      /* of Requests: 1u << COL_* */
	struct snapshot *snap; /* owned; NULL: none yet */
	struct snapshot *pin;  /* owned: the last one that knew the selected request, when snap
				* does not; else NULL */
	struct tui_cmd want;
	struct time_bar bar;
	cc_ns at_ns; /* time shown, or asked for by the last seek: seeks add to it */
	enum screen stack[UI_DEPTH]; /* the last of them is shown */
	int depth;
	int w, h;
	uint32_t *order; /* rows of Requests as shown: index in snap->requests, or ORDER_PIN */
	uint32_t order_cnt, order_cap;
	uint32_t *waits;            /* rows of Waits: index in snap->waits */
	struct thread_row *threads; /* rows of Threads */
	uint32_t thread_rows;
	uint32_t *role_members;   /* what their members point into */
	uint64_t folds[UI_FOLDS]; /* roles that are not as fold_all says */
	int fold_cnt;
	uint64_t thread_jumps[UI_JUMPS]; /* rows from which B went to another thread */
	int thread_jump_cnt;
	struct row_sort sorts[SCREEN_CNT]; /* of Waits and Threads; of Requests: want.sort */
	bool by_role, fold_all;
	unsigned int follow; /* 1u << screen: its first row stays selected */
	struct list_pos pos[SCREEN_CNT];
	uint32_t piece; /* selected on Path; PIECE_UNSEEN */
	struct zoom zoom[UI_ZOOMS];
	int zoom_cnt;
	struct jump jumps[UI_JUMPS];
	int jump_cnt;
	uint32_t also_piece;         /* of want.also */
	int also_left;               /* snapshots that may come without it */
	char port_kind[64];          /* selected among the ports */
	struct cc_reqid before_span; /* selected before a thread's time was */
	int span_left;               /* snapshots that may come without it */
	int pan;                     /* columns that texts without room are moved to the left */
	bool no_preview, no_kernel, no_lines, chosen, frozen, blame, no_theme, unfolded, mouse;
	struct prompt prompt;
	enum menu_kind menu;
	int menu_row;
	enum tui_save_form save_form; /* what the save menu is set to */
	char search[TUI_FILTER_LEN];
	char help_query[32];
	char history[8][TUI_FILTER_LEN]; /* filters, newest first */
	int history_at;
	struct mark marks[UI_MARKS];
	int mark_cnt;
	struct row_mark row_marks[UI_MARKS];
	int row_mark_cnt;
	char status[256]; /* answer to the last key; "": none */
	bool status_bad;
	int save_fd; /* readable when what is being saved is saved: ui_saved(); -1: nothing is */
	char *clip;
	char **themes; /* names, owned */
	size_t theme_cnt, theme_at;
	char theme_from[256]; /* name or path of the one shown */
	struct theme theme;
	unsigned int frame_cnt; /* snapshots shown */
};

/* Returns 0, -ENOENT or -EBADMSG for the theme, -ENOMEM. @o is copied, its strings are borrowed. */
CC_NODISCARD int ui_init(struct ui *ui, const struct tui_opts *o);
void ui_done(struct ui *ui);
/* What the user has chosen by now, as the file of the configuration says it. */
void ui_config(const struct ui *ui, struct config *ret);

/* Each returns effects. */
unsigned int ui_key(struct ui *ui, int key);
unsigned int ui_mouse(struct ui *ui, int key, int x, int y); /* TK_CLICK, TK_WHEEL_* */
unsigned int ui_snapshot(struct ui *ui, struct snapshot *s); /* takes @s */
unsigned int ui_resize(struct ui *ui, int w, int h);
unsigned int ui_saved(struct ui *ui);

/* Draws on @c, which has the size of the last ui_resize(). */
void ui_draw(const struct ui *ui, struct canvas *c);

/* ---- for views and keys ---- */

enum screen ui_screen(const struct ui *ui);
enum screen ui_under(const struct ui *ui); /* the screen below Help or Setup; else the one shown */

/* The selected request and the snapshot that knows it; NULL: nothing is selected. */
const struct snap_request *ui_request(const struct ui *ui, const struct snapshot **ret_s);
/* Row @i of Requests; NULL beyond the last. */
const struct snap_request *ui_row(const struct ui *ui, int i, const struct snapshot **ret_s);
/* Pieces of @r, clipped to what the snapshot has. */
const struct snap_piece *request_pieces(const struct snapshot *s, const struct snap_request *r,
					uint32_t *ret_cnt);
bool ui_marked(const struct ui *ui, struct cc_reqid id);
bool ui_row_marked(const struct ui *ui, enum screen s, int row); /* of Waits and Threads */
void ui_say(struct ui *ui, bool bad, const char *fmt, ...) CC_PRINTF(3, 4);

/* Fills ui->order from ui->snap by the wanted sort; with @old (frozen) rows that were in @old stay
 * as they were. Keeps the selection by id. Returns 0 or -ENOMEM. */
CC_NODISCARD int ui_order(struct ui *ui, const struct snapshot *old);
/* ---- ui_port.c: one row for each port ---- */
bool ui_by_port(const struct ui *ui); /* the rows of Requests are those of ports */
const struct snap_port *ui_port(const struct ui *ui, int row);
void ui_note_port(struct ui *ui); /* the port of the selected row is the selected one */
void ui_keep_port(struct ui *ui); /* selects its row again: another request speaks for it now */
void ui_port_toggle(struct ui *ui);

/* ---- ui_rows.c: rows of Waits and Threads ---- */
struct sort_col {
	char key;
	const char *title, *name;
};
const struct sort_col *sort_cols(enum screen s, int *ret_cnt);
CC_NODISCARD int ui_rows(struct ui *ui); /* puts them in order; 0 or -ENOMEM */
void ui_reorder_rows(struct ui *ui);     /* the same, and the selection stays where it was */
const struct snap_wait *ui_wait(const struct ui *ui, int row);
const struct thread_row *ui_thread_row(const struct ui *ui, int row);
const struct snap_thread *ui_thread(const struct ui *ui, int row); /* NULL: no thread's row */
void ui_role(const struct ui *ui, int row, char *buf, size_t cap); /* its name; "": no role */
/* ---- ui_threads.c ---- */
bool ui_folded(const struct ui *ui, uint64_t role); /* by its view_hash() */
void ui_fold_role(struct ui *ui);                   /* that of the selected row, on and off */
void ui_next_roles(struct ui *ui);
void ui_thread_blocker(struct ui *ui);
bool ui_thread_back(struct ui *ui); /* false: B was not used */

/* Clamps rows and scrolls so that the selected row is visible. */
void ui_settle(struct ui *ui);
/* ---- ui_setup.c: rows of Setup; the columns follow ---- */
enum { SETUP_THEME, SETUP_INTERVAL, SETUP_SORT, SETUP_ORDER, SETUP_MOUSE, SETUP_COLUMNS };
int setup_rows(const struct ui *ui);
unsigned int setup_change(struct ui *ui); /* the selected one; effects */
void setup_save(struct ui *ui);
void ui_next_interval(struct ui *ui);

/* ---- ui_path.c ---- */
bool ui_on_span(const struct ui *ui);      /* the selected "request" is a thread's time */
uint32_t ui_piece(const struct ui *ui);    /* selected piece of the selected request */
void ui_piece_row(struct ui *ui, int row); /* selects the piece of a row of Path */
void ui_settle_path(struct ui *ui);        /* row of Path by the selected piece */
bool ui_open_folded(struct ui *ui);        /* false: the selected row is one piece */
bool ui_jump_back(struct ui *ui);          /* false: no jump was made */
void ui_open_span(struct ui *ui);          /* time of the selected thread as a path */
void ui_span_came(struct ui *ui);
void ui_end_span(struct ui *ui);                /* what was selected before is again */
bool ui_act_path(struct ui *ui, enum action a); /* false: @a is none of its keys */
/* Asks for a request that is not among the rows; ui_found() selects it when it is there. */
void ui_look_for(struct ui *ui, struct cc_reqid id, uint32_t piece);
void ui_found(struct ui *ui);

void ui_drop(struct ui *ui, struct snapshot *s); /* back to the owner; NULL is a no-op */
/* Gives ui->want to the owner. */
void ui_command(struct ui *ui, unsigned int changed);
void ui_select_row(struct ui *ui, int row);
void ui_goto_row(struct ui *ui, int row); /* of the screen shown */
void ui_open(struct ui *ui, enum screen s);
void ui_goto_top(struct ui *ui, enum screen s); /* leaves all others */
bool ui_back(struct ui *ui);                    /* false: at the top */

unsigned int ui_act(struct ui *ui, enum action a); /* effects */
/* Time: seeks, pause, speed. Returns false if @a is none of these. */
bool ui_act_time(struct ui *ui, enum action a);
/* First and last time that can be gone to; with a snapshot only. */
void ui_time_range(const struct ui *ui, cc_ns *ret_first, cc_ns *ret_last);
void ui_bar_add(struct ui *ui);                 /* takes in what ui->snap tells */
bool ui_act_mark(struct ui *ui, enum action a); /* marks and the way to what is worth a look */
/* What is typed at "go to": a time, or terms of a filter as a log line has them. Returns 0, or
 * -EINVAL with the reason in @err. */
CC_NODISCARD int ui_goto(struct ui *ui, const char *text, struct cc_err *err);
bool ui_act_order(struct ui *ui, enum action a); /* the same for sort, freeze, group */
bool ui_act_find(struct ui *ui, enum action a);  /* and for search and filter */
/* Adds what the selected row stands for to the filter. False: it stands for nothing. */
bool ui_add_term(struct ui *ui, bool exclude);
/* "12:04:31", "+30s", "-1m", "50%" to a time of the stream. 0 or -EINVAL. */
CC_NODISCARD int ui_parse_time(const struct ui *ui, const char *text, cc_ns *ret);
void ui_seek(struct ui *ui, cc_ns ns);           /* shows that time; a live trace pauses */
void ui_filter(struct ui *ui, const char *text); /* takes it as the filter */

void prompt_open(struct ui *ui, enum prompt_kind kind);
unsigned int prompt_key(struct ui *ui, int key);
unsigned int menu_key(struct ui *ui, int key);
int menu_items(const struct ui *ui); /* number, of the menu that is open */
const char *menu_item(const struct ui *ui, int i, char *ret_key);
const char *sort_name(enum snap_sort s);
int ui_sort(const struct ui *ui); /* of the screen shown: column of sort_cols() */
bool ui_ascending(const struct ui *ui);
void ui_sort_by(struct ui *ui, int col);

#endif
