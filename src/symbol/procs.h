/* SPDX-License-Identifier: Apache-2.0 */
/* procs: what is remembered of each process whose stacks come in: its mappings, now and in the
 * recent past, because a stack that was taken before a dlclose() and dlopen() belongs in those of
 * before. Numbers of generations (cc_module_gen()) are given here: they grow with time, and none is
 * given twice to one number of a process; 0 is what was there when it was first seen. */
#ifndef CC_PROCS_H
#define CC_PROCS_H

#include "maps.h"
#include "perf_map.h"
#include "raw_stack.h"

#define PROC_PAST 4

/* What was mapped, from when to when as the kernel counts changes (cc_rec_snap.change). */
struct proc_maps {
	struct maps maps;
	struct cc_layout layout; /* change: the last one; id 0: they could not be read */
	uint32_t first_change;   /* 0, both: of no one time */
};

struct proc {
	uint32_t tgid;
	uint32_t epoch;       /* never the same twice within a struct procs */
	uint32_t first_gen;   /* since of what was there when it was first seen */
	uint32_t jit_gen;     /* since when code of a JIT is other code at the same place; or 0 */
	struct proc_maps now; /* as they were read last */
	struct proc_maps past[PROC_PAST]; /* before that, the latest first; without maps: none */
	struct cc_layout given;           /* what the kernel was told last */
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

/* @kernel: counts changes of code; copied. NULL: nobody does. */
CC_NODISCARD int procs_new(const struct cc_rule_cache *kernel, struct procs **ret);
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

/* The mappings in which the stack of @s is to be read; they are read again if they have changed.
 * NULL: those of then are not to be had (any more), and those of now may be others. */
struct maps *procs_maps(struct procs *p, struct proc *proc, const struct cc_rec_snap *s);
struct maps *procs_layout(struct proc *proc, uint64_t layout); /* by id; NULL: not known */

/* The generation of a stack of these frames: that of the newest of them. @back as is told: all but
 * the first are return addresses. */
uint32_t procs_stack_gen(const struct proc *proc, struct maps *m, const __u64 *ip, size_t cnt);
/* Since when @addr in @p means what it does. */
uint32_t procs_since(const struct proc *proc, const struct mapping *p, uint64_t addr);

/* What lies at @addr of @tgid since generation @since, and in which of its mappings. NULL: it is
 * forgotten. */
struct mapping *procs_mapping(struct procs *p, uint32_t tgid, uint64_t addr, uint32_t since,
			      struct maps **ret_maps);

/* It is another program since @when (fork of a new process, exec). */
void procs_reborn(struct procs *p, uint32_t tgid, cc_ns when);
void procs_exited(struct procs *p, uint32_t tgid); /* forgotten a few ticks later */
void procs_tick(struct procs *p);

size_t procs_cnt(const struct procs *p);
size_t procs_mem(const struct procs *p); /* bytes, estimated */

#endif
