/* SPDX-License-Identifier: Apache-2.0 */
/* sanitize: the one way outside text (comm, paths, symbols, file contents) gets to a sink. */
#ifndef CC_SANITIZE_H
#define CC_SANITIZE_H

#include "base.h"

/* Copies @len bytes of @src as valid UTF-8 without anything that acts on a terminal or hides text:
 * escape sequences are dropped whole; C0, C1, DEL, bidirectional and line-separator controls and
 * bytes that are not UTF-8 become '?'; a NUL ends it. Cut at a whole character when @cap is short.
 * Always NUL-terminated (@cap >= 1). Returns the length written. @src and @dst do not overlap. */
size_t sanitize_text(const char *src, size_t len, char *dst, size_t cap);

#endif
