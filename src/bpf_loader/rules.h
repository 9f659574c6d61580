/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the kernel's cache of unwind rules (core/rule.h), as whoever unwinds in user space fills
 * it. */
#ifndef CC_LOADER_RULES_H
#define CC_LOADER_RULES_H

#include "loader_int.h"

/* Skeleton opened, not loaded: with @mode (RULES_*), switch off what it has no use for, or what the
 * kernel lacks (@sees_mmap: it tells when a process looks for room). */
void rules_prepare(struct loader *l, uint32_t mode, bool sees_mmap);

/* A line for the user about the mode that was loaded; NULL: nothing to say. */
const char *rules_note(const struct loader *l);

#endif
