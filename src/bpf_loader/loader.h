/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader: the live source. Loads the kernel programs in the best tier that this kernel takes,
 * attaches, seeds what was there before, and gives the stream of records through struct cc_source.
 * It does not unwind stacks and knows no names: SNAP records pass through raw.
 *
 * One thread owns a loader. Nothing is printed; what goes wrong is told in struct cc_err.
 */
#ifndef CC_LOADER_H
#define CC_LOADER_H

#include "base.h"
#include "rule.h"
#include "source.h"

/* When the stacks of slow waits are taken. The numbers are those of CC_OPT_STACK_TIER. */
enum loader_stack_tier {
	LOADER_STACK_AUTO = 0,
	LOADER_STACK_LATE = 1,   /* on resume, sched_exit_tp: the cheapest, Linux >= 6.18 */
	LOADER_STACK_WAKING = 2, /* by the waker, when it is of the same process */
	LOADER_STACK_EAGER = 3,  /* user stack at every switch-out, told when the wait was slow */
	LOADER_STACK_NONE = 4,
};

/* How operations on sockets are seen. The numbers are those of CC_OPT_REQ_TIER. */
enum loader_req_tier {
	LOADER_REQ_AUTO = 0,
	LOADER_REQ_SOCK = 1,   /* tier 1: socket length tracepoints, Linux >= 6.3 */
	LOADER_REQ_SEQ = 2,    /* tier 2: growth of sequence numbers; TCP only, no arrivals */
	LOADER_REQ_CALLS = 3,  /* tier 3: system calls; no io_uring, no arrivals */
	LOADER_REQ_SEQ_FN = 4, /* tier 2b: as 2, from function ends; untested, never by itself */
	LOADER_REQ_NONE = 9,   /* no requests: waits only */
};

/* What is followed of Go's goroutines. Their order is that of CC_OPT_GO_TIER, one further. */
enum loader_go_tier {
	LOADER_GO_AUTO = 0,
	LOADER_GO_OFF = 1,   /* threads only */
	LOADER_GO_ID = 2,    /* which goroutine a thread runs; no uprobes */
	LOADER_GO_WAITS = 3, /* and every wait: uprobes on gopark, ready, execute and channels */
	LOADER_GO_FULL = 4,  /* and every status change: casgstatus in place of ready and execute */
};

/* The kernel's cache of unwind rules (rule.h). With it, stacks may come as CHAIN records. */
enum loader_rules {
	LOADER_RULES_OFF = 0,
	LOADER_RULES_ON = 1,     /* if the kernel takes it */
	LOADER_RULES_VERIFY = 2, /* it unwinds, and all stacks come raw nevertheless */
};

struct go_target;

struct loader_go_sample {
	uint32_t tid; /* of a thread, as its own process knows it */
	uint64_t g;   /* the word where it keeps its goroutine; 0: none */
};

struct loader_go_verdict {
	uint32_t right, wrong; /* samples */
	struct cc_err why;
};

/* How the loader learns what a Go program is like: from whoever reads its file. */
struct loader_go {
	/* Is process @tgid a Go program? 1: *ret is it, valid until the next call. 0: no. -errno:
	 * it is, but cannot be followed, @why says so; -ENOMEM ends the tracing. NULL: never. */
	int (*find)(void *ctx, uint32_t tgid, const struct go_target **ret, struct cc_err *why);
	/* Judges what find() last told of @tgid by the process itself, of whose threads @s was
	 * seen, and may find other offsets. 0: *ret is right; -EAGAIN: too little was seen;
	 * -EINVAL: it is wrong; -ENOMEM ends the tracing; other: the process cannot be read. */
	int (*judge)(void *ctx, uint32_t tgid, const struct loader_go_sample *s, size_t cnt,
		     const struct go_target **ret, struct loader_go_verdict *v);
	void (*done)(void *ctx); /* with the source, or when that is not to be had; NULL: nothing */
	void *ctx;
	enum loader_go_tier tier;
	bool force; /* also where a probe must be single-stepped */
};

struct loader_opts {          /* 0 is the default of every field */
	const uint32_t *pids; /* processes, in the pid namespace of the caller */
	uint32_t pid_cnt;
	const uint32_t *ports; /* local TCP ports: the processes that listen there */
	uint32_t port_cnt;
	const char *const *comms; /* processes of exactly these names */
	uint32_t comm_cnt;
	const char *const *cgroups; /* directories, or paths below a hierarchy's mount */
	uint32_t cgroup_cnt;
	const char *const *units; /* of systemd */
	uint32_t unit_cnt;
	cc_ns min_block_ns; /* 0: every wait is a record */
	cc_ns stack_min_ns; /* 0: 50 us */
	uint32_t sample_n;  /* paths for 1 request in n; 0: all */
	uint32_t sample_hz; /* samples of what runs, a second and CPU; 0: none */
	enum loader_stack_tier stack_tier;
	enum loader_req_tier req_tier;
	enum loader_rules rules;
	cc_ns interval_ns;   /* between TICKs; 0: 1 s */
	uint32_t snap_bytes; /* of user stack per snapshot; 0: 8192; at most CC_SNAP_MAX */
	uint64_t ring_bytes; /* 0: 4 MiB, 16 for Go; rounded up to a power of two of pages */
	uint32_t follow;     /* hops of processes outside the targets that wake them; 0: none */
	bool count_runs; /* of programs, and their time: adds ~20 ns to each run; Linux >= 5.8 */
	struct loader_go go;
};

/*
 * Loads and attaches. @o is only read during the call.
 * Returns 0; -EPERM (@err names the missing capability and the fix); -EOPNOTSUPP (no BTF, kernel
 * too old, programs refused); -ESRCH (no such process, nothing listens on the port, no
 * process of that name or in that cgroup); -EINVAL (nothing to trace asked for); -ENOMEM.
 * Source of the capability rules: capabilities(7), kernel/bpf/syscall.c.
 */
CC_NODISCARD int loader_source_new(const struct loader_opts *o, struct cc_err *err,
				   struct cc_source **ret);

/* How its cache of unwind rules is filled; as long as @s lives. Returns false if it has none.
 * Without
 * @ret->rule it does not unwind, but counts changes of code. */
bool loader_rule_cache(struct cc_source *s, struct cc_rule_cache *ret);

struct loader_prog_stats {
	const char *name;    /* borrowed from the source */
	const char *section; /* "tp_btf/sched_switch": what it is attached to; borrowed */
	bool attached;
	uint64_t run_cnt; /* both 0 unless kernel.bpf_stats_enabled or count_runs */
	uint64_t run_time_ns;
	uint64_t recursion_misses;
	uint32_t insn_cnt; /* as loaded, after the verifier; 0: not loaded */
};

struct loader_stats {
	enum loader_stack_tier stack_tier; /* the one in use */
	enum loader_req_tier req_tier;
	const char *req_why;  /* why it is not the best one; "": it is; borrowed from the source */
	const char *left_out; /* a program that the kernel refused and that is done without; "" */
	uint64_t ring_bytes, ring_fill, ring_fill_max; /* events ring; max over the drains so far */
	uint64_t control_bytes, control_fill;
	uint64_t counters[32]; /* by CC_CNT_*, summed over CPUs */
	uint64_t records;      /* drained so far */
	uint32_t target_cnt, prog_cnt;
};

/* Returns 0 or -errno of the read. */
int loader_stats(struct cc_source *s, struct loader_stats *ret);

/* Fills up to @max entries. Returns their number or -errno. */
int loader_prog_stats(struct cc_source *s, struct loader_prog_stats *ret, uint32_t max);

enum loader_go_state {
	LOADER_GO_STATE_CHECKING, /* not enough threads seen yet to believe its offsets */
	LOADER_GO_STATE_ON,
	LOADER_GO_STATE_WRONG, /* they are not true: threads only */
};

struct loader_go_proc {
	uint32_t tgid;
	enum loader_go_tier tier;
	enum loader_go_state state;
	uint32_t good, bad; /* threads or switches where the offsets led to themselves, and not */
	uint32_t probe_cnt;
	bool multi;                     /* by uprobe_multi */
	cc_ns trap_ns, nop_ns;          /* of a hit, and of one on a nop of 5 bytes, besides its
					 * program, on this machine; 0: not measured */
	const struct go_target *target; /* borrowed until the next poll */
};

/* The Go programs among the targets. Fills up to @max, returns their number. */
int loader_go_procs(struct cc_source *s, struct loader_go_proc *ret, uint32_t max);
const char *loader_go_tier_name(enum loader_go_tier t);
/* "tier 2, ...": for people. */
const char *loader_req_tier_name(enum loader_req_tier t);

#endif
