/* SPDX-License-Identifier: Apache-2.0 */
/* config: what the user wants of the screens each time, from a file of lines "key = value":
 *
 *	theme = okabe-ito          as --theme
 *	interval = 2s              0.1s .. 60s; as --interval
 *	columns = req lat dominant held conf
 *	sort = age ascending       latency, age, confidence, unexplained, dominant, cpu, runq
 *	key.page-down = PgDn ^F J  all keys of an action; names as `top --help-keys` has them
 *
 * '#' begins a comment at the start of a line. What the command line says goes first. */
#ifndef CC_CONFIG_H
#define CC_CONFIG_H

#include "keymap.h"
#include "snapshot.h"

#define CONFIG_MAX_BYTES 65536

struct config {
	char theme[256];   /* name or path; "": not said */
	cc_ns interval_ns; /* 0: not said */
	uint32_t columns;  /* 1u << COL_*: those to show when there is room */
	enum snap_sort sort;
	bool ascending;
	struct keymap keys;
};

void config_init(struct config *ret); /* as without a file */

/* Reads @text over *@c. Returns 0, or -EBADMSG with the line and the reason in @err at the first
 * line that is wrong (err->pos: its number from 1, 0: the bindings together); @c is then
 * unchanged. */
CC_NODISCARD int config_parse(const char *text, struct config *c, struct cc_err *err);

/* @old (may be "") with the settings of @c: lines keep their place and comments stay; what is new
 * and differs from the defaults is added. NULL: out of memory; the caller frees. */
char *config_merge(const char *old, const struct config *c);

/* Where the file is: $XDG_CONFIG_HOME/criticast/config, else below $HOME/.config. 0, -ENOENT
 * without either, -ENAMETOOLONG. */
CC_NODISCARD int config_path(char *buf, size_t cap);

/* Reads the file over *@c; without one, 0. On error -errno and one line in @err that names the file
 * and line; @c is then unchanged. */
CC_NODISCARD int config_load(struct config *c, struct cc_err *err);

/* Writes the file, whole or not at all; a symbolic link stays one. Returns 0 or -errno with @err.
 */
CC_NODISCARD int config_save(const struct config *c, struct cc_err *err);

const char *config_sort_name(enum snap_sort s);
const char *config_column_name(unsigned int col);

#endif
