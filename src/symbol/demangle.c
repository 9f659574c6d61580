/* SPDX-License-Identifier: Apache-2.0 */
#include "demangle.h"

#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

static bool is_mangled(const char *raw)
{
	return !strncmp(raw, "_Z", 2) || !strncmp(raw, "_R", 2) || !strncmp(raw, "___Z", 4);
}

size_t demangle(const char *raw, char *buf, size_t cap)
{
	/* Rust's styles are tried first: its older one looks like C++ */
	char *text = is_mangled(raw) ? cplus_demangle(raw, DMGL_AUTO | DMGL_ANSI) : NULL;
	size_t len = strnlen(text ? text : raw, cap - 1);

	memcpy(buf, text ? text : raw, len);
	buf[len] = '\0';
	free(text);
	return len;
}
