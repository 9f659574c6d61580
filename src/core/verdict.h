/* SPDX-License-Identifier: Apache-2.0 */
/* verdict: one plain sentence about a request, and one about a window. Says "not attributed" when
 * it is, and how sure it is when it is not. Reads nothing but a snapshot. */
#ifndef CC_VERDICT_H
#define CC_VERDICT_H

#include "snapshot.h"

#define VERDICT_LEN 512

/* "lock 141.0 of 211.4 ms (67%): cart_mutex held by worker/7, itself in disk fsync 123.0 ms -> the
 * root cause is disk fsync". Writes at most @cap bytes with the NUL; returns the length. */
size_t verdict_request(const struct snapshot *s, const struct snap_request *r, char *buf,
		       size_t cap);

/* What the slow requests of a window have in common, beyond their class. */
struct verdict_slow {
	uint8_t cls;                          /* enum wait_class these are about */
	cc_str resource, site, holder, waker; /* "": more than one */
	uint8_t root_cls; /* of most of their time; cls itself: nothing beneath */
};

/* "slow requests (over 48.2 ms): lock +41.0 ms on cart_mutex, held by worker/7 in disk fsync;
 * upstream as always". @d may be NULL. */
size_t verdict_window(const struct snapshot *s, const struct verdict_slow *d, char *buf,
		      size_t cap);

#endif
