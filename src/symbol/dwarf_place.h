/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_place: one file's debug information, its own or a separate file's, as libdwfl finds it: by
 * build-id, debuglink, .gnu_debugdata, and debuginfod if DEBUGINFOD_URLS says so. Slow: not for the
 * collector's thread. */
#ifndef CC_DWARF_PLACE_H
#define CC_DWARF_PLACE_H

#include "places.h"

struct place_file_id {
	dev_t dev;
	ino_t ino;
	int64_t sec, nsec; /* of its last change */
};

struct dwarf_place;

/* Takes @fd, also on failure. A file without debug information is no failure. Returns 0, -ENOMEM,
 * -ENOEXEC. */
CC_NODISCARD int dwarf_place_new(const struct place_file_id *id, int fd, struct dwarf_place **ret);
void dwarf_place_free(struct dwarf_place *d);
const struct place_file_id *dwarf_place_id(const struct dwarf_place *d);

/* What stands at @vaddr - @back: fills text and file of @ret. @named: its function is known
 * already, and left out of the text. Returns false: nothing more is known. */
bool dwarf_place_find(struct dwarf_place *d, uint64_t vaddr, unsigned int back, bool named,
		      struct place *ret);

#endif
