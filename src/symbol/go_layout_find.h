/* SPDX-License-Identifier: Apache-2.0 */
/* go_layout_find: a struct go_layout, from debug information or from the table by version. */
#ifndef CC_GO_LAYOUT_FIND_H
#define CC_GO_LAYOUT_FIND_H

#include "go_target.h"

/* From the table: @path, or the one built in if it is NULL. *ret_by: GO_FOUND_TABLE or _FILE; if
 * @minor is newer than all in it, GO_FOUND_NEWEST and the newest one's. Returns 0; -ENOENT if it
 * has none; -EINVAL if the file is wrong, -errno if it cannot be read, with @err; -ENOMEM. */
CC_NODISCARD int go_layout_table(const char *path, unsigned int minor, struct go_layout *ret,
				 enum go_found *ret_by, struct cc_err *err);

/* From the DWARF of the file open as @fd. Returns 0, or -ENOENT if it does not tell every field. */
CC_NODISCARD int go_layout_dwarf(int fd, struct go_layout *ret);

/* "g.goid" and so on: where in struct go_layout; -ENOENT. */
int go_layout_field(const char *name);

/* Sets every field to GO_NO_FIELD. */
void go_layout_clear(struct go_layout *l);

/* Whether all fields are there that every version has, and small enough to be offsets. */
bool go_layout_whole(const struct go_layout *l);

#endif
