/* SPDX-License-Identifier: Apache-2.0 */
/* base: time, attributes and scope guards that every layer uses. No code with state. */
#ifndef CC_BASE_H
#define CC_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC. All times inside criticast are of this kind; they become wall
 * clock times only when printed, through the anchors in TICK records. */
typedef uint64_t cc_ns;

#define CC_US(n) ((cc_ns)(n)*1000ull)
#define CC_MS(n) ((cc_ns)(n)*1000000ull)
#define CC_S(n) ((cc_ns)(n)*1000000000ull)

#define CC_NODISCARD __attribute__((warn_unused_result))
#define CC_PRINTF(fmt_idx, va_idx) __attribute__((format(printf, fmt_idx, va_idx)))
#define CC_UNUSED __attribute__((unused))
#define CC_AUTO(fn) __attribute__((cleanup(fn)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CC_MIN(a, b) ((a) < (b) ? (a) : (b))
#define CC_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Reads a pointer and sets it to NULL: moves ownership out of a CC_AUTO variable. */
#define take_ptr(p)                         \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

/* What went wrong in outside text (a filter, an option, a file): for one line to the user. */
struct cc_err {
	int pos;       /* byte offset or line, -1: none */
	char msg[200]; /* NUL-terminated, without newline */
};

#endif
