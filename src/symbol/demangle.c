/* SPDX-License-Identifier: Apache-2.0 */
#include "demangle.h"

#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

static bool is_mangled(const char *raw)
{
	return !strncmp(raw, "_Z", 2) || !strncmp(raw, "_R", 2) || !strncmp(raw, "___Z", 4);
}

/* What everybody calls std::string, in place. */
static void shorten(char *text)
{
	static const char *const longs[] = {
		"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
		"std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
	};
	static const char name[] = "std::string";

	for (size_t i = 0; i < ARRAY_SIZE(longs); i++) {
		size_t len = strlen(longs[i]);

		for (char *at = text; (at = strstr(at, longs[i]));) {
			memcpy(at, name, sizeof(name) - 1);
			at += sizeof(name) - 1;
			memmove(at, at + len - (sizeof(name) - 1),
				strlen(at + len - (sizeof(name) - 1)) + 1);
		}
	}
}

size_t demangle(const char *raw, char *buf, size_t cap)
{
	/* Rust's styles are tried first: its older one looks like C++ */
	char *text = is_mangled(raw) ? cplus_demangle(raw, DMGL_AUTO | DMGL_ANSI) : NULL;
	size_t len;

	if (text)
		shorten(text);
	len = strnlen(text ? text : raw, cap - 1);

	memcpy(buf, text ? text : raw, len);
	buf[len] = '\0';
	free(text);
	return len;
}
