/* SPDX-License-Identifier: Apache-2.0 */
/* keys: codes of keys, the same whatever reads them. */
#ifndef CC_KEYS_H
#define CC_KEYS_H

/* A key: a code point below 0x110000 (control characters included) or one of these. */
enum {
	TK_NONE = 0,
	TK_TAB = 9,
	TK_ENTER = 13,
	TK_ESC = 27,
	TK_BACKSPACE = 127,
	TK_UP = 0x200000,
	TK_DOWN,
	TK_LEFT,
	TK_RIGHT,
	TK_PGUP,
	TK_PGDN,
	TK_HOME,
	TK_END,
	TK_DELETE,
	TK_BACKTAB,
	TK_F1,
	TK_F12 = TK_F1 + 11,
	TK_CLICK, /* these three at a place of the screen */
	TK_WHEEL_UP,
	TK_WHEEL_DOWN,
};
#define TK_F(n) (TK_F1 + (n)-1)
#define TK_CTRL(c) ((c)&0x1f)

#endif
