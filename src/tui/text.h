/* SPDX-License-Identifier: Apache-2.0 */
/* text: numbers and notes as the screens write them (names of tasks: snap_text.h). Values are
 * returned, nothing is allocated. */
#ifndef CC_TEXT_H
#define CC_TEXT_H

#include "snap_text.h"

struct text {
	char s[96];
};

struct text text_ms(cc_ns ns); /* "211.4": milliseconds, however many */
struct text text_ms_in(cc_ns ns,
		       int w);      /* "12.3s", "9h" where that is too long for @w: 5 and more */
struct text text_dur(cc_ns ns);     /* "850us" "1.9ms" "3.84s" "2m05s" "3h07m": at most 7 columns */
struct text text_age(cc_ns ns);     /* "60s" "5m" "3h": at most 4 columns */
struct text text_delta(int64_t ns); /* "+41.0ms" */
struct text text_bytes(uint64_t n); /* "312B" "48.2k" "21M" */
struct text text_count(uint64_t n); /* "4 812" */
struct text text_count_in(uint64_t n, int w); /* "104k", "12M" where that is too long for @w */
struct text text_percent(double share);       /* "67", "0.3", "<0.1"; share is 0..1 */
/* Wall clock "12:04:31", with @ms "12:04:31.250"; in the zone of TZ. */
struct text text_clock(const struct snapshot *s, cc_ns ns, bool ms);
struct text text_hms(cc_ns ns); /* "00:02:11" */

/* What to know about a piece in one line: resource, holder, waker, culprit. */
void text_note(const struct snapshot *s, const struct snap_piece *p, char *buf, size_t cap);
/* "H 98", "H100": at most 4 columns */
struct text text_conf(unsigned int confidence);

/* Sums of @class_ns by WAIT_GROUPS. */
void group_sums(const cc_ns class_ns[WAIT_CLASS_CNT], cc_ns ret[9]);

/* Records lost, as a number to show. */
uint64_t text_drops(const struct snapshot *s);

/* Case-insensitive search; an empty needle is nowhere. */
bool text_has(const char *hay, const char *needle);

#endif
