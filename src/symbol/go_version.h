/* SPDX-License-Identifier: Apache-2.0 */
/* go_version: which Go built a program. */
#ifndef CC_GO_VERSION_H
#define CC_GO_VERSION_H

#include "go_target.h"

struct go_image;
struct go_tab;

/* Fills version, minor, patch and version_by of @ret. Returns 0, -ENOENT if the program does not
 * tell, or -ENOMEM. */
CC_NODISCARD int go_version_find(const struct go_image *img, struct go_tab *tab,
				 struct go_target *ret);

/* Reads "go1.24.4", "devel go1.27-abc X:nofoo". Returns false if it is no Go 1 version. */
bool go_version_parse(const char *s, unsigned int *ret_minor, unsigned int *ret_patch);

#endif
