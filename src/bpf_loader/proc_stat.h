/* SPDX-License-Identifier: Apache-2.0 */
/* proc_stat: what proc(5) says of a process in numbers. */
#ifndef CC_PROC_STAT_H
#define CC_PROC_STAT_H

#include "base.h"

enum proc_stat_field { PROC_STAT_UTIME = 14, PROC_STAT_STIME = 15, PROC_STAT_START = 22 };

/* A time of process @tgid in ns, to the clock tick (a start: of CLOCK_BOOTTIME); 0: no such
 * process. */
cc_ns proc_stat(uint32_t tgid, enum proc_stat_field field);

/* A thread of the kernel: no program, no sockets. False also when there is no such process. */
bool proc_is_kernel(uint32_t tgid);

#endif
