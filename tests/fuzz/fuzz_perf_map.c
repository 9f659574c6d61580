/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the lines that a JIT compiler of the target wrote for profilers. */
#include <string.h>

#include "fuzz.h"
#include "perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct perf_map *m;
	const char *name;
	uint64_t addr = 0, off;

	if (perf_map_new(UINT32_MAX, &m)) /* no process: nothing else is read */
		return -1;
	if (perf_map_parse(m, (const char *)data, len))
		abort();
	for (int i = 0; i < 64; i++) {
		if (perf_map_find(m, addr, 1, &name, &off) == 0 &&
		    (!memchr(name, 0, 4096) || off > addr))
			abort();
		addr = addr * 3 + 0x1000;
	}
	perf_map_free(m);
	return 0;
}
