/* SPDX-License-Identifier: Apache-2.0 */
#include "proc_stat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAT_FLAGS 9
#define FLAG_KTHREAD 0x200000 /* the kernel's PF_KTHREAD */

static uint64_t stat_number(uint32_t tgid, int field)
{
	char path[64], buf[1024];
	snprintf(path, sizeof(path), "/proc/%u/stat", tgid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	size_t n = fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	buf[n] = 0;
	/* the name is in parentheses and may hold any byte: fields count from the last ')' */
	char *p = strrchr(buf, ')');
	for (int at = 2; p && at < field; at++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

cc_ns proc_stat(uint32_t tgid, enum proc_stat_field field)
{
	return stat_number(tgid, (int)field) * (CC_S(1) / (cc_ns)sysconf(_SC_CLK_TCK));
}

bool proc_is_kernel(uint32_t tgid) { return stat_number(tgid, STAT_FLAGS) & FLAG_KTHREAD; }
