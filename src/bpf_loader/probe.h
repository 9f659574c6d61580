/* SPDX-License-Identifier: Apache-2.0 */
/* probe: what this kernel and this user can do, item by item, without loading anything. */
#ifndef CC_PROBE_H
#define CC_PROBE_H

#include "base.h"

enum loader_probe_state { LOADER_PROBE_NO = 0, LOADER_PROBE_YES = 1, LOADER_PROBE_UNKNOWN = 2 };

struct loader_probe {
	const char *group; /* "rights", "kernel", "waits", "stacks", "go", "requests" */
	char name[48];
	enum loader_probe_state state;
	bool needed;       /* without it nothing can be traced */
	const char *gives; /* what one has by it */
	const char *fix;   /* what to do when it is missing */
};

/* Fills up to @max probes and returns their number. Needs no rights. */
uint32_t loader_probe(struct loader_probe *ret, uint32_t max);

#endif
