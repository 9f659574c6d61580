/* SPDX-License-Identifier: Apache-2.0 */
/* resolver: turns the raw stacks of a live stream (SNAP) into STACK, MODULE and NAME records and
 * puts their keys into the records they belong to, so that the stream, and the file, need no
 * binaries to be read. Everything else passes through unchanged and in order. Collector thread. */
#ifndef CC_RESOLVER_H
#define CC_RESOLVER_H

#include "rule.h"
#include "source.h"

struct resolver_opts {
	bool names;           /* of user frames, data and files too; else only the kernel's */
	bool keep_tables;     /* of large files, on disk (table_cache.h) */
	const char *kallsyms; /* NULL: /proc/kallsyms */
	const struct cc_rule_cache *rules; /* of the source, which outlives it; NULL: it has none */
};

/* What became of the stacks, since the start. */
struct resolver_health {
	uint64_t user;           /* user stacks taken, of blocked tasks, wakers and samples */
	uint64_t user_full;      /* of these, that reach the thread's start */
	uint64_t cut;            /* that run past the bytes taken */
	uint64_t no_map;         /* that lead to an address without code: JIT, or a process gone */
	uint64_t no_cfi;         /* that meet a function without unwind information */
	uint64_t bad;            /* other incomplete ones */
	uint64_t code_changed;   /* that no mappings known belong to: code came and went too fast */
	uint64_t guessed;        /* frame pointers were needed */
	uint64_t chains;         /* of user: unwound in the kernel */
	uint64_t chains_unknown; /* keys of stacks that cannot be told (any more): no stack then */
	uint64_t verified, wrong;        /* unwound in both places; and not alike */
	uint64_t kernel;                 /* kernel stacks */
	uint64_t damaged;                /* SNAP records that were not well formed */
	uint64_t unclaimed;              /* keys that were pushed out before their record came */
	uint64_t stacks, names, modules; /* records told */
	uint64_t procs, bytes;           /* now: processes known, memory used (estimated) */
	bool kernel_hidden; /* the kernel hides its addresses: CAP_SYSLOG or kptr_restrict */
};

struct resolver;

/* Reads the kernel's symbols (~0.1 s): before tracing starts. Returns 0 or -ENOMEM. */
CC_NODISCARD int resolver_new(const struct resolver_opts *o, struct resolver **ret);
void resolver_free(struct resolver *r); /* NULL is a no-op */

/* Takes one record of @len bytes; gives it, with what belongs before it, to @out. Returns 0,
 * -ENOMEM or what @out returned. */
CC_NODISCARD int resolver_feed(struct resolver *r, const struct cc_rec *rec, size_t len,
			       cc_record_fn *out, void *ctx);

void resolver_health(const struct resolver *r, struct resolver_health *ret);

#endif
