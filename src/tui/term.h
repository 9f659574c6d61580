/* SPDX-License-Identifier: Apache-2.0 */
/* term: the terminal. The only file that knows curses. One at a time. */
#ifndef CC_TERM_H
#define CC_TERM_H

#include "canvas.h"
#include "theme.h"

struct term;

/* Takes over stdin and stdout. Returns 0, -ENOTTY, -EINVAL (TERM is not known), -ENOMEM. Until
 * term_close() a fatal signal restores the terminal before it kills. */
CC_NODISCARD int term_open(struct term **ret);
void term_close(struct term *t); /* NULL is a no-op */

/* The locale or terminal cannot show the glyphs: use a canvas with `ascii` set. */
bool term_ascii(const struct term *t);
void term_theme(struct term *t, const struct theme *theme);

void term_size(struct term *t, int *ret_w, int *ret_h); /* as the kernel says now */
/* Shows @c: what differs from the last one shown. Nothing is written when nothing differs. 0 or
 * -ENOMEM. */
CC_NODISCARD int term_paint(struct term *t, const struct canvas *c);
void term_repaint(struct term *t); /* forget what is shown: the next paint draws everything */

/* Next key (keymap.h), TK_NONE when there is none, -EIO when the terminal is gone. */
int term_key(struct term *t);

/* With the mouse on, the place of the last TK_CLICK or TK_WHEEL_*. Off at start: no byte of it. */
void term_mouse(struct term *t, bool on);
void term_mouse_at(const struct term *t, int *ret_x, int *ret_y);

/* Stops this process as ^Z does; returns when it goes on. */
void term_suspend(struct term *t);
/* After SIGCONT: a SIGSTOP gave no chance to put the terminal back, and a shell may have changed it
 * meanwhile. */
void term_resumed(struct term *t);
/* Puts text into the clipboard of the user's terminal (OSC 52), over SSH too. 0 or -errno. */
int term_copy(struct term *t, const char *text);

#endif
