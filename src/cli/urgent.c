/* SPDX-License-Identifier: Apache-2.0 */
#include "urgent.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NICE -10
#define SLICE_NS 100000 /* Linux 6.12 and newer: a short slice is due early */

void ui_urgent(void)
{
	struct sched_attr a = { .size = sizeof(a),
				.sched_policy = SCHED_NORMAL,
				.sched_nice = NICE,
				.sched_runtime = SLICE_NS };
	if (!syscall(SYS_sched_setattr, 0, &a, 0))
		return;
	a.sched_nice = getpriority(PRIO_PROCESS, 0);
	syscall(SYS_sched_setattr, 0, &a, 0);
}
