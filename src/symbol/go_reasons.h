/* SPDX-License-Identifier: Apache-2.0 */
/* go_reasons: why a goroutine waits. The numbers change from version to version, so the program's
 * own table of names is read, and a class goes with the name. */
#ifndef CC_GO_REASONS_H
#define CC_GO_REASONS_H

#include "go_target.h"

struct go_image;

/* Returns 0, or -ENOMEM; ret->cnt 0: the program has no such table. */
CC_NODISCARD int go_reasons_find(const struct go_image *img, struct go_reasons *ret);

/* The class of a reason's name; WAIT_BLOCKED if it is not known. */
uint8_t go_reason_class(const char *name);

#endif
