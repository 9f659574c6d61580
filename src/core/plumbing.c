/* SPDX-License-Identifier: Apache-2.0 */
#include "plumbing.h"

#include <string.h>

static bool begins_with(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && !memcmp(s, prefix, n);
}

bool plumbing_module(const char *module, size_t len)
{
	static const char *const names[] = { "libc.so",   "libc-",  "libpthread",
					     "ld-linux",  "ld-2.",  "ld-musl",
					     "libc.musl", "[vdso]", "linux-vdso" };
	const char *end = memchr(module, ' ', len);

	len = end ? (size_t)(end - module) : len;
	for (size_t i = len; i > 0; i--) {
		if (module[i - 1] == '/') {
			module += i;
			len -= i;
			break;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (begins_with(module, len, names[i]))
			return true;
	return false;
}

/* Of Go: the runtime and the packages through which a program waits. A C compiler's clones look
 * alike ("sync.part.0"). */
bool plumbing_function(const char *text, size_t len)
{
	static const char *const packages[] = { "runtime.",   "runtime/", "internal/",
						"syscall.",   "sync.",    "net.",
						"os.(*File)", "bufio.",   "io." };
	static const char *const clones[] = { "part.", "constprop.", "isra.", "cold" };

	for (size_t i = 0; i < ARRAY_SIZE(packages); i++) {
		size_t n = strlen(packages[i]);
		bool clone = false;

		if (!begins_with(text, len, packages[i]))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(clones); k++)
			clone |= begins_with(text + n, len - n, clones[k]);
		return !clone;
	}
	return begins_with(text, len, "time.Sleep");
}
