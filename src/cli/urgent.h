/* SPDX-License-Identifier: Apache-2.0 */
/* urgent: the thread that reads keys is woken rarely and works for a millisecond: on a busy host it
 * is to get the CPU before those that work for long. */
#ifndef CC_URGENT_H
#define CC_URGENT_H

/* For the thread that calls it. Without the right to it (CAP_SYS_NICE) only what anybody may ask
 * for is done; without a kernel that knows it, nothing. */
void ui_urgent(void);

#endif
