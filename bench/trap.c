// SPDX-License-Identifier: Apache-2.0
/* trap: what a hit of a uprobe costs beside what its program does, in ns of CPU time: where the
 * kernel emulates the instruction, and on a nop of five bytes. */
#include "uprobe.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
	struct uprobe_price p;
	int err = uprobe_measure(&p);
	if (err) {
		fprintf(stderr, "trap: %s\n", strerror(-err));
		return 1;
	}
	printf("%llu %llu\n", (unsigned long long)p.trap, (unsigned long long)p.nop);
	return 0;
}
