/* SPDX-License-Identifier: Apache-2.0 */
/* tui: the terminal UI. It sees snapshots and gives commands; where they come from and go to (the
 * kernel, a file, a test) it never knows. It reads no clock but for pacing, and no file but themes.
 */
#ifndef CC_TUI_H
#define CC_TUI_H

#include <signal.h>
#include <stdio.h>

#include "base.h"
#include "config.h"
#include "snapshot.h"

#define TUI_FILTER_LEN 256

enum {                        /* tui_cmd.changed: what the user changed since the last command */
       TUI_CH_QUERY = 1 << 0, /* filter, sort, group */
       TUI_CH_SEEK = 1 << 1,  /* view_ns: go there */
       TUI_CH_PAUSE = 1 << 2,
       TUI_CH_SPEED = 1 << 3,    /* replay */
       TUI_CH_INTERVAL = 1 << 4, /* live */
       TUI_CH_SELECT = 1 << 5,   /* the selected row: alone it asks for no new snapshot */
};

/* All that the user wants now, so that a newer command may replace an older one unread; `changed`
 * gathers until command() has returned 0. */
struct tui_cmd {
	unsigned int changed;
	cc_ns view_ns;     /* window ends here; 0: the newest (live), where the replay is */
	uint32_t seek_cnt; /* +1 for every seek: a replay goes to view_ns (0: its start) and on */
	uint32_t restart_cnt; /* +1: look for the exited target until it runs again */
	bool paused;          /* live: keep recording, show view_ns; replay: stop at view_ns */
	double speed;         /* replay: 1 = as it was */
	cc_ns interval_ns;    /* live: between refreshes */
	char filter[TUI_FILTER_LEN]; /* core/filter.h; "": none. Parses, when it was typed here */
	enum snap_sort sort;
	bool ascending;
	enum snap_group group;
	bool root_causes;
	bool by_port;             /* ports too */
	struct cc_reqid selected; /* kind NONE: nothing */
	struct cc_reqid also;     /* a row wanted besides those; kind NONE: none */
	uint32_t span_tid;        /* this thread's time as a path; 0: none */
	cc_ns span_ns;            /* it ends here */
};

enum tui_save_what { TUI_SAVE_REQUEST, TUI_SAVE_FILTERED, TUI_SAVE_WINDOW };

/* id, in the menu. In which form it is saved. */
#define TUI_SAVE_FORMS(X)                        \
	X(USUAL, "as pprof, text and recording") \
	X(PERFETTO, "as Perfetto trace")         \
	X(FOLDED, "as folded stacks")            \
	X(OTLP, "as OpenTelemetry traces")       \
	X(CSV, "as CSV")                         \
	X(JSON, "as JSON")
#define X(id, name) TUI_SAVE_##id,
enum tui_save_form { TUI_SAVE_FORMS(X) TUI_SAVE_FORM_CNT };
#undef X

struct tui_save {
	enum tui_save_what what;
	enum tui_save_form form;
	struct cc_reqid id; /* TUI_SAVE_REQUEST */
	const char *filter; /* TUI_SAVE_FILTERED; borrowed */
};

/* Called on the thread of tui_run(), which draws and reads keys: none may wait for anything. */
struct tui_ops {
	/* The newest snapshot, now the UI's (it calls snapshot_free), or NULL: no news. While
	 * paused only snapshots with runtime.paused are shown: the owner sets it in those that
	 * answer a command given in the pause. */
	struct snapshot *(*take)(void *ctx);
	/* Takes over @cmd (copied). 0 or -errno, shown to the user. */
	int (*command)(void *ctx, const struct tui_cmd *cmd);
	/* A snapshot that take() gave is not needed any more. NULL: snapshot_free() does it. */
	void (*give_back)(void *ctx, struct snapshot *s);
	/* Saves; writes one line for the user into @msg. 0 or -errno; or, > 0, a descriptor: it
	 * goes on, and saved() tells its end as soon as that is readable. */
	int (*save)(void *ctx, const struct tui_save *what, char *msg, size_t cap);
	/* The same line and 0 or -errno; the descriptor is gone then. NULL: save() ends at once. */
	int (*saved)(void *ctx, char *msg, size_t cap);
	/* One request as Markdown or JSON for the clipboard; *ret by malloc, the UI frees it. May
	 * be NULL: then the UI copies its own plain text. 0 or -errno. */
	int (*story)(void *ctx, const struct snapshot *s, const struct snap_request *r, bool json,
		     char **ret);
};

struct tui_opts {
	const struct tui_ops *ops;
	void *ctx;
	int event_fd;                /* readable (eventfd) when a new snapshot is there; -1: none */
	bool live;                   /* else a replay */
	const char *title;           /* "pid 4242 nginx", sanitized; NULL: from the snapshot */
	const char *replay_file;     /* shown in a replay */
	cc_ns first_ns, last_ns;     /* replay: of the whole file; 0: what the snapshot says */
	const char *theme;           /* name or path of a .theme; NULL: the configuration's */
	bool ascii;                  /* no glyphs beyond ASCII */
	cc_ns interval_ns;           /* first refresh interval; 0: the configuration's, else 1 s */
	const struct config *config; /* copied; NULL: as without a file */
	const char *filter;          /* first filter; NULL: none */
	unsigned int max_frames;     /* quit after so many snapshots; 0: never */
};

/* The signals that tui_run() waits for. Block them before making any thread, so that none of
 * these is delivered elsewhere. */
void tui_signals(sigset_t *set);

/* Runs until the user quits. Returns 0; -EINTR when SIGTERM or SIGHUP ended it, -EIO when the
 * terminal went away, -ENOTTY without a terminal, -ENOENT for an unknown theme, -EBADMSG for a
 * theme file with an error, -EINVAL for a terminal that curses does not know or that cannot move
 * its cursor, -ENOMEM. The terminal is as it was in every case. */
CC_NODISCARD int tui_run(const struct tui_opts *o);

/* Says before curses starts what is wrong with a theme: 0, or as tui_run(), with @err. */
CC_NODISCARD int tui_check_theme(const char *name, struct cc_err *err);

/* The same UI without a terminal: keys and sizes from the file @path ("-": stdin), screens to files
 * (script.c has the language). Returns 0; -EBADMSG for a line that is no command, -ETIMEDOUT for a
 * text that did not come, another -errno; @err says why, its pos the line (0: none). */
CC_NODISCARD int tui_script(const struct tui_opts *o, const char *path, struct cc_err *err);

/* `top -b`: header and table as plain text, no escapes. 0 or -EIO. */
int tui_batch_print(const struct snapshot *s, FILE *out);

#endif
