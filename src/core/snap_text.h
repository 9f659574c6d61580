/* SPDX-License-Identifier: Apache-2.0 */
/* snap_text: names of what a snapshot holds, as every text output writes them. */
#ifndef CC_SNAP_TEXT_H
#define CC_SNAP_TEXT_H

#include "snapshot.h"

#define SNAP_TEXT_LEN 96

struct snap_text {
	char s[SNAP_TEXT_LEN];
};

/* "worker/4249", of a goroutine "main.serve/g17"; "tid 4249" without a name; "-" for no task. */
struct snap_text snap_task_text(const struct snapshot *s, const struct snap_task *t);

/* Who ended a piece's wait: "worker/4249", "softirq", "timer", "-". */
struct snap_text snap_waker_text(const struct snapshot *s, const struct snap_piece *p);

/* Of a wait on a TCP connection: ", 2 packets sent again: lost on the way, or no room at the peer",
 * ", nothing sent again, round trip 0.05 ms: the peer took that long"; "" when that is not known.
 */
struct snap_text snap_net_text(const struct cc_piece *p);

/* What the kernel was at on this thread when a piece on the CPU was sampled: "page fault",
 * "reclaim", "softirq", "interrupt": time that the program's own frames do not explain. "" for all
 * else. */
const char *snap_kernel_work(const struct snapshot *s, const struct snap_piece *p);

/* Take any number: "" beyond their tables. */
const char *snap_ended_name(unsigned int ended);      /* enum cc_ended: "wake" "timeout" "" */
const char *snap_state_name(unsigned int state);      /* enum cc_req_state: "done" "in_flight" */
const char *snap_waker_name(unsigned int waker_kind); /* enum cc_waker: "task" "softirq" "" */

#endif
