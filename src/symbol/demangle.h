/* SPDX-License-Identifier: Apache-2.0 */
/* demangle: names of C++ and Rust as people wrote them, by libiberty. */
#ifndef CC_DEMANGLE_H
#define CC_DEMANGLE_H

#include "base.h"

#define MANGLED_MAX 4096 /* bytes of a symbol that are read */

/* Writes the readable form of @raw, without parameters, else @raw itself; NUL-terminated, cut to
 * @cap. std::string is called so. Returns its length. */
size_t demangle(const char *raw, char *buf, size_t cap);

#endif
