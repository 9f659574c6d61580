/* SPDX-License-Identifier: Apache-2.0 */
/* perf_map: the functions that a JIT compiler wrote down for profilers, a line each: "START SIZE
 * name" in hex, in /tmp/perf-PID.map (linux/tools/perf/Documentation/jit-interface.txt). The file
 * is the target's: only a regular one that belongs to the target's user or to root is read, and no
 * more than a bound of it. */
#ifndef CC_PERF_MAP_H
#define CC_PERF_MAP_H

#include "base.h"

struct perf_map;

/* Nothing is read yet. Returns 0 or -ENOMEM. */
CC_NODISCARD int perf_map_new(uint32_t tgid, struct perf_map **ret);
void perf_map_free(struct perf_map *m); /* NULL is a no-op */

/* The function that @addr lies in; the one written last counts. When none is known the file is read
 * again if it has grown or is another one, at most once a second by @now (CLOCK_MONOTONIC).
 * *ret_name is borrowed until the next call; hostile bytes. Returns 0 or -ENOENT. */
CC_NODISCARD int perf_map_find(struct perf_map *m, uint64_t addr, cc_ns now, const char **ret_name,
			       uint64_t *ret_off);

/* Reads on, at most once a second. True: code that perf_map_find() has named is other code by now;
 * perf_map_since() says @gen of it from now on. */
bool perf_map_renew(struct perf_map *m, cc_ns now, uint32_t gen);
uint32_t perf_map_since(const struct perf_map *m, uint64_t addr); /* 0: it was never other code */

/* Takes lines of text, as read from the file: for tests and fuzzing. Returns 0 or -ENOMEM. */
CC_NODISCARD int perf_map_parse(struct perf_map *m, const char *text, size_t len);

size_t perf_map_mem(const struct perf_map *m); /* bytes; NULL: 0 */

#endif
