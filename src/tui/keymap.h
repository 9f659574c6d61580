/* SPDX-License-Identifier: Apache-2.0 */
/* keymap: the one table of keys: dispatch, help and the manual page come from it. */
#ifndef CC_KEYMAP_H
#define CC_KEYMAP_H

#include <stdio.h>

#include "base.h"
#include "keys.h"

enum screen {
	SCREEN_REQUESTS,
	SCREEN_WAITS,
	SCREEN_THREADS,
	SCREEN_HEALTH,
	SCREEN_PATH,
	SCREEN_STACKS,
	SCREEN_CONFIDENCE,
	SCREEN_SETUP,
	SCREEN_HELP,
	SCREEN_CNT
};
#define ON(s) (1u << SCREEN_##s)
#define ON_TOP (ON(REQUESTS) | ON(WAITS) | ON(THREADS) | ON(HEALTH))
#define ON_LISTS (ON(REQUESTS) | ON(WAITS) | ON(THREADS))
#define ON_REQUEST (ON(PATH) | ON(STACKS) | ON(CONFIDENCE))
#define ON_ALL (ON_TOP | ON_REQUEST)
#define ON_ANYWHERE (ON_ALL | ON(SETUP) | ON(HELP))

/* id, group, screens, keys (up to 5), help. A key means one thing per screen (tested). */
#define KEYMAP(X)                                                                                \
	X(UP, MOVE, ON_ANYWHERE, "one row up", 'k', TK_UP)                                       \
	X(DOWN, MOVE, ON_ANYWHERE, "one row down", 'j', TK_DOWN)                                 \
	X(PAGE_UP, MOVE, ON_ANYWHERE, "one page up", TK_PGUP, TK_CTRL('b'))                      \
	X(PAGE_DOWN, MOVE, ON_ANYWHERE, "one page down", TK_PGDN, TK_CTRL('f'))                  \
	X(HALF_UP, MOVE, ON_ANYWHERE, "half a page up", TK_CTRL('u'))                            \
	X(HALF_DOWN, MOVE, ON_ANYWHERE, "half a page down", TK_CTRL('d'))                        \
	X(TOP, MOVE, ON_ANYWHERE, "first row", 'g', TK_HOME)                                     \
	X(BOTTOM, MOVE, ON_ANYWHERE, "last row", 'G', TK_END)                                    \
	X(PAN_LEFT, MOVE, ON_ALL, "show what lies left of texts that are cut", 'H')              \
	X(PAN_RIGHT, MOVE, ON_ALL, "show what lies right of texts that are cut", 'L')            \
	X(OPEN, OPEN, ON(REQUESTS) | ON(WAITS) | ON(THREADS) | ON(PATH) | ON(SETUP),             \
	  "open: path, then stacks; of a group: its requests", TK_ENTER, 'l', TK_RIGHT)          \
	X(BACK, OPEN, ON_ANYWHERE, "back (never quits)", TK_ESC, TK_LEFT, TK_BACKSPACE)          \
	X(BLOCKER, OPEN, ON(REQUESTS) | ON(PATH) | ON(THREADS),                                  \
	  "to the request (Esc: back) or thread that was in the way", 'B')                       \
	X(ZOOM, OPEN, ON(PATH) | ON(THREADS),                                                    \
	  "zoom into what is nested here; of a thread: its time as a path", 'z')                 \
	X(QUIT_BACK, OPEN, ON_ANYWHERE, "back; quits at the top", 'q')                           \
	X(QUIT, OPEN, ON_ANYWHERE, "quit", 'Q', TK_CTRL('c'), TK_F(10))                          \
	X(VIEW_REQUESTS, VIEW, ON_ANYWHERE, "Requests, slowest first", '1')                      \
	X(VIEW_WAITS, VIEW, ON_ANYWHERE, "Waits: where the time of all of them went", '2')       \
	X(VIEW_THREADS, VIEW, ON_ANYWHERE, "Threads", '3')                                       \
	X(VIEW_HEALTH, VIEW, ON_ANYWHERE, "Health: losses, cost, what is attached", '4')         \
	X(NEXT_PANE, VIEW, ON_ALL, "next tab", TK_TAB)                                           \
	X(PREV_PANE, VIEW, ON_ALL, "previous tab", TK_BACKTAB)                                   \
	X(PREVIEW, VIEW, ON(REQUESTS) | ON(PATH), "preview or details on and off", 'v')          \
	X(FOLD, VIEW, ON(PATH) | ON(THREADS),                                                    \
	  "fold short neighbours, or the threads of a role, into one row, on and off", 'e')      \
	X(KERNEL, VIEW, ON(STACKS), "kernel frames on and off", 'K')                             \
	X(LINES, VIEW, ON(STACKS), "files and lines on and off", '#')                            \
	X(THEME, VIEW, ON_ALL | ON(SETUP), "next theme", 'T')                                    \
	X(SETUP, VIEW, ON_ALL, "setup: columns, sort, interval, theme; saved on request", 'S',   \
	  TK_F(2))                                                                               \
	X(MOUSE, VIEW, ON_ANYWHERE, "mouse on and off", 'M')                                     \
	X(REDRAW, VIEW, ON_ANYWHERE, "draw the whole screen again", TK_CTRL('l'))                \
	X(HELP, VIEW, ON_ANYWHERE, "this help, on and off", '?', 'h', TK_F(1))                   \
	X(SEARCH, FIND, ON_ALL, "search", '/', TK_F(3))                                          \
	X(NEXT_MATCH, FIND, ON_ALL, "next match", 'n')                                           \
	X(PREV_MATCH, FIND, ON_ALL, "previous match", 'N')                                       \
	X(FILTER, FIND, ON_TOP, "filter: wait=lock lat>20ms peer=10.0.0.7:51122 !conf=L", '\\',  \
	  TK_F(4))                                                                               \
	X(ONLY, FIND, ON_LISTS, "only what this row stands for", 'o')                            \
	X(EXCLUDE, FIND, ON_LISTS, "nothing of what this row stands for", 'x')                   \
	X(CLEAR_FILTER, FIND, ON_TOP, "clear the filter", 'c')                                   \
	X(SORT_MENU, SORT, ON_LISTS, "choose the sort column", 's', TK_F(6))                     \
	X(SORT_PREV, SORT, ON_LISTS, "sort by the column before", '<')                           \
	X(SORT_NEXT, SORT, ON_LISTS, "sort by the column after", '>')                            \
	X(INVERT, SORT, ON_LISTS, "turn the order round", 'I')                                   \
	X(FREEZE, SORT, ON(REQUESTS), "keep rows where they are; new ones come last", 'f')       \
	X(FOLLOW, SORT, ON_LISTS, "keep the first row selected", 'F', TK_F(8))                   \
	X(GROUP, SORT, ON_LISTS,                                                                 \
	  "group: by port; threads by role; waits: class, site, resource, waker, holder, blame", \
	  't', TK_F(5))                                                                          \
	X(ROOT, SORT, ON(WAITS), "by first wait or by root cause", 'r')                          \
	X(PAUSE, TIME, ON_ALL, "pause and go on; a live trace keeps recording", ' ', 'p', 'Z')   \
	X(STEP_BACK, TIME, ON_ALL, "one refresh back", ',')                                      \
	X(STEP_ON, TIME, ON_ALL, "one refresh on", '.')                                          \
	X(SEEK_BACK, TIME, ON_ALL, "10 s back", '[')                                             \
	X(SEEK_ON, TIME, ON_ALL, "10 s on", ']')                                                 \
	X(LEAP_BACK, TIME, ON_ALL, "1 min back", '{')                                            \
	X(LEAP_ON, TIME, ON_ALL, "1 min on", '}')                                                \
	X(PREV_MARK, TIME, ON_ALL, "to the mark, loss or worst moment before", '(')              \
	X(NEXT_MARK, TIME, ON_ALL, "to the mark, loss or worst moment after", ')')               \
	X(START, TIME, ON_ALL, "to the start", '0')                                              \
	X(NEWEST, TIME, ON_ALL, "to the end; live: back to now", '$')                            \
	X(GOTO, TIME, ON_ALL, "go to 12:04:31, +30s, 50%, or peer=10.0.0.7:51122 at=12:04:31",   \
	  'b')                                                                                   \
	X(SLOWER, TIME, ON_ALL, "replay slower; live: refresh less often", '-')                  \
	X(FASTER, TIME, ON_ALL, "replay faster; live: refresh more often", '+', '=')             \
	X(SAVE, SAVE, ON_ALL | ON(SETUP),                                                        \
	  "save request, filtered set or window (pprof, trace, text); on Setup: the settings",   \
	  'w', TK_F(9))                                                                          \
	X(COPY, SAVE, ON_ALL, "copy the request's story; of other screens, the text (OSC 52)",   \
	  'y')                                                                                   \
	X(COPY_JSON, SAVE, ON(REQUESTS) | ON_REQUEST, "copy the request as JSON (OSC 52)", 'Y')  \
	X(MARK, SAVE, ON_LISTS | ON_REQUEST, "mark or unmark the request or row", 'm', TK_F(7))  \
	X(RESTART, VIEW, ON_ALL, "wait for the exited target to run again", 'R')                 \
	X(SUSPEND, VIEW, ON_ANYWHERE, "suspend (fg comes back)", TK_CTRL('z'))

#define X(id, ...) ACT_##id,
enum action { ACT_NONE, KEYMAP(X) ACT_CNT };
#undef X

/* id, title in help, in this order */
#define KEY_GROUPS(X)            \
	X(MOVE, "Move")          \
	X(OPEN, "Open and back") \
	X(VIEW, "Look")          \
	X(FIND, "Find")          \
	X(SORT, "Order")         \
	X(TIME, "Time")          \
	X(SAVE, "Keep")
#define X(id, title) KEYS_##id,
enum key_group { KEY_GROUPS(X) KEYS_CNT };
#undef X

#define KEYMAP_KEYS 5
struct key_row {
	enum action action;
	enum key_group group;
	unsigned int screens; /* ON() set */
	const char *name;     /* as its enum: "PAGE_UP" */
	const char *help;
	int keys[KEYMAP_KEYS]; /* those bound at first; 0 ends */
};

/* What is bound now: the user may have rebound an action. */
struct keymap {
	int keys[ACT_CNT][KEYMAP_KEYS]; /* 0 ends */
};

/* Row of an action (1 .. ACT_CNT - 1). */
const struct key_row *keymap_row(enum action a);

void keymap_init(struct keymap *ret); /* as the table has it */
/* What @key does on @s; ACT_NONE: nothing. */
enum action keymap_find(const struct keymap *km, enum screen s, int key);
/* A key that means two things on one screen. False: there is none. */
bool keymap_clash(const struct keymap *km, int *ret_key, enum action *ret_a, enum action *ret_b);

/* "^D", "PgUp", "F10", "Space"; at least 8 bytes. */
void keymap_key_name(int key, char buf[16]);
/* The same as it is typed: "Up" for "↑". */
void keymap_key_typed(int key, char buf[16]);
/* The other way, and any single character. 0: no key has this name. */
int keymap_key_parse(const char *name, size_t len);
/* Takes the next key off *s: a character, or a name in <>; "<<" is '<'. 0: no such key; *s then is
 * where it begins. */
int keymap_next_key(const char **s);
/* "k ↑" */
void keymap_keys(const struct keymap *km, enum action a, char *buf, size_t cap);
/* Name of an action in the configuration: "page-up". */
void keymap_action_name(enum action a, char buf[32]);
enum action keymap_action_find(const char *name, size_t len); /* ACT_NONE: no such action */
const char *key_group_title(enum key_group g);
const char *screen_name(enum screen s);

/* One line for each action, by group: keys, a tab, what they do, a tab, its name. */
void keymap_list(FILE *out);

#endif
