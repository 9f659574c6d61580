/* SPDX-License-Identifier: Apache-2.0 */
/* fmt: durations, ids and addresses to text and back, the same for every output. No locale. */
#ifndef CC_FMT_H
#define CC_FMT_H

#include "path.h"

/* Every writer: at most @cap bytes with the NUL (@cap >= 1), cut if short; returns the length
 * written. FMT_LEN is enough for each. */
#define FMT_LEN 64

size_t fmt_ms(char *buf, size_t cap, cc_ns ns);  /* "211.4": ms without a unit; "0.02" below 0.1 */
size_t fmt_dur(char *buf, size_t cap, cc_ns ns); /* "850 ns" "20.0 us" "211.4 ms" "12.3 s" */
size_t fmt_reqid(char *buf, size_t cap, struct cc_reqid id);     /* "7f3a#3" "tid:12" "goid:5" "" */
size_t fmt_addr(char *buf, size_t cap, const struct cc_addr *a); /* "10.0.0.7:51122" "[::1]:80"
								  * "unix" "" */
size_t fmt_group(char *buf, size_t cap, uint64_t n);             /* "18 204": digits in threes */

/* snprintf that returns what was written, never more than cap - 1. */
CC_PRINTF(3, 4) size_t fmt_text(char *buf, size_t cap, const char *fmt, ...);

/* "250us" "10ms" "1.5s" "30s" "2m" "1h"; "0" needs no unit. Returns 0, -EINVAL, -ERANGE; @ret is
 * untouched on error. */
CC_NODISCARD int fmt_parse_duration(const char *s, cc_ns *ret);

/* "<cookie hex>#<ordinal>", "0x<cookie>" (ordinal 0: any on that connection),
 * "0x<cookie>#<ordinal>", "tid:N", "goid:N", or a plain decimal tid. Returns 0 or -EINVAL; @ret is
 * untouched on error. */
CC_NODISCARD int fmt_parse_reqid(const char *s, struct cc_reqid *ret);

/* True when @id is what @want names; an ordinal of 0 in @want is any. */
bool fmt_reqid_matches(struct cc_reqid want, struct cc_reqid id);

#endif
