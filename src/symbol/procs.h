/* SPDX-License-Identifier: Apache-2.0 */
/* procs: what is remembered of each process whose stacks come in: its mappings, its unwinder, and
 * an epoch, so that a name told for an address is told anew once the address means another thing.
 */
#ifndef CC_PROCS_H
#define CC_PROCS_H

#include "maps.h"
#include "perf_map.h"

struct proc {
	uint32_t tgid;
	uint32_t epoch; /* never the same twice within a struct procs */
	struct maps maps;
	struct cc_layout layout; /* of these maps; id 0: they could not be read */
	uint64_t layout_given;   /* id of the one the kernel was told; 0: none */
	cc_ns given_at;
	struct perf_map *jit; /* owned; NULL: nobody asked for code of a JIT yet */
	cc_ns born;      /* fork or exec as far as seen: what is older was another program; or 0 */
	cc_ns read_at;   /* mappings, by CLOCK_MONOTONIC; 0: never with success */
	cc_ns next_read; /* not before */
	cc_ns used_at;
	cc_ns backoff;      /* between reads that brought nothing */
	unsigned int dying; /* ticks left; 0: it lives */
};

struct procs;

CC_NODISCARD int procs_new(struct procs **ret);
void procs_free(struct procs *p);

/* The process, its mappings read at the first call and then every ~10 s. NULL: no memory. It may be
 * empty, if the process is gone. Borrowed until the next call. */
struct proc *procs_get(struct procs *p, uint32_t tgid);

/* An address lies in no mapping: reads them again, unless that was tried just now. Returns true if
 * they were read. */
bool procs_reread(struct procs *p, struct proc *proc);

/* The JIT-compiled function at @addr: perf_map_find(). */
CC_NODISCARD int procs_jit(struct proc *proc, uint64_t addr, const char **ret_name,
			   uint64_t *ret_off);

/* The process as it was when its epoch was @epoch; NULL: it is another by now, or forgotten. */
struct proc *procs_find(struct procs *p, uint32_t tgid, uint32_t epoch);

/* It is another program since @when (fork of a new process, exec). */
void procs_reborn(struct procs *p, uint32_t tgid, cc_ns when);
void procs_exited(struct procs *p, uint32_t tgid); /* forgotten a few ticks later */
void procs_tick(struct procs *p);

size_t procs_cnt(const struct procs *p);
size_t procs_mem(const struct procs *p); /* bytes, estimated */

#endif
