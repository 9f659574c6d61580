/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_int: what the files of this folder share, and the hooks by which the socket side
 * (sock_*.c) hangs into the life of a loader:
 *
 *	open skeleton -> set rodata -> sock_prepare -> load -> sock_attach (refused: sock_refused,
 *	  anew) -> attach scheduler -> sock_start -> sock_seed, task seeding -> drain ...
 *sock_refresh at each interval ... -> sock_stop
 *	  -> sock_done
 *
 * Records that a hook gives through @fn come with the caller's @ctx, in the order given; a negative
 * return of @fn ends the hook with it.
 */
#ifndef CC_LOADER_INT_H
#define CC_LOADER_INT_H

#include "loader.h"

#include "../../bpf/config.h"

#include <stdio.h>

enum {
	RING_CONTROL,
	RING_REQUESTS,
	RING_EVENTS,
	RING_EVENTS_SMALL
}; /* in the order of rings_add() */

struct criticast; /* the skeleton, criticast.skel.h */
struct ring_drain;
struct go_side;
struct follow_side;
struct sock_side; /* sock_*.c's own, by sock_prepare(); NULL: no requests */

struct loader_target {
	uint32_t tgid;   /* here */
	uint32_t global; /* for the kernel programs, see pidns.h */
	int pidfd;       /* -1: not to be had; then start tells */
	uint64_t start;  /* task start time, ns of CLOCK_BOOTTIME: a reused pid has another */
	uint32_t parent;
	uint32_t flags; /* CC_TF_FOLLOWED or 0 */
	uint32_t hop;   /* how far from a target; 0: it is one */
	bool gone;
	bool told; /* its TARGET record is out */
};

struct rec_buf { /* records one after another; zero is empty. See iter.h */
	unsigned char *data;
	size_t len, cap;
};

struct loader {
	struct cc_source source; /* first */
	struct loader_opts o;    /* defaults filled in; the lists are not kept */
	struct criticast *skel;
	struct ring_drain *rings;
	struct sock_side *sock;
	struct sample_side *samples; /* sample.h */
	struct follow_side *follow;  /* follow.h; NULL: nobody is, so far */
	struct pidns_side *pidns;    /* pidns.h; NULL: in the initial pid namespace */
	struct go_side *go;          /* go.h; NULL: goroutines are not followed */
	int go_err; /* why the kernel refused the programs for that; 0: it did not */
	struct loader_target *targets;
	size_t target_cnt, target_cap;
	uint32_t *target_slots; /* by tgid, see targets.c */
	size_t target_slot_cnt;
	char **cgroups; /* directories whose members are targets, now and later */
	uint32_t cgroup_cnt;
	enum loader_stack_tier stack_tier;
	enum loader_req_tier req_tier;
	uint32_t left_out;      /* optional programs that this kernel refuses, by bit ... */
	char left_out_name[64]; /* ... the first of them; "" */
	uint32_t req_refused;   /* 1 << tier: this kernel does not take its programs ... */
	uint32_t kernel_pid;    /* a thread of the kernel that was asked for; 0: none */
	char req_why[128];      /* ... because; the first refusal counts. "" */
	uint32_t rule_cache;    /* RULES_*, as it was loaded */
	bool iter_sleepable;    /* the task iterator can read user stacks */
	int stats_fd;           /* BPF_ENABLE_STATS; -1: off */
	cc_ns next_tick, last_drain;
	cc_ns full_at; /* start of the last drain that left nothing behind: the watermark's base */
	cc_ns losses_seen;        /* when the losses were last read */
	struct cc_bpf_loss *lost; /* sums at that time, by record kind */
	struct rec_buf head;      /* what was there before attach; given by the first poll */
	uint64_t records, fill_max, fill_recent; /* fill_recent: since the last stats_health() */
	bool started;                            /* the head of the stream is out */
	bool stopped;
};

/* "what: cause; fix" into @err. */
CC_PRINTF(2, 3) void loader_err(struct cc_err *err, const char *fmt, ...);

/* CLOCK_MONOTONIC now. */
cc_ns loader_now(void);

/* Adds process @want->tgid (with parent, flags, hop) to the kernel's target table and to
 * l->targets; known ones are left alone. Returns 0, 1 if it was known, -ESRCH, -E2BIG, -ENOMEM. */
int loader_target_add(struct loader *l, const struct loader_target *want);

/* ---- the socket side: src/bpf_loader/sock_*.c --------------------------------------------- */

/*
 * The processes that listen on @ports (TCP, any family, in their own network namespace), without
 * any BPF: /proc/PID/net/tcp* and the fds. *ret is the caller's to free(). Returns 0, -ESRCH when
 * nothing listens on one of them (@err names it), -ENOMEM.
 */
CC_NODISCARD int sock_find_ports(const uint32_t *ports, uint32_t port_cnt, struct cc_err *err,
				 uint32_t **ret, size_t *ret_cnt);

/* Skeleton opened, not loaded: choose the tier (l->o.req_tier -> l->req_tier), switch programs off
 * that this kernel does not take (bpf_program__set_autoload), allocate l->sock. 0 or -errno. */
int sock_prepare(struct loader *l, struct cc_err *err);

/* The kernel refused @prog with @res. True: it is of the tier chosen, and there is another choice:
 * load anew. False: it is none of the socket programs, or that tier was asked for (@err says so).
 */
bool sock_refused(struct loader *l, const char *prog, int res, struct cc_err *err);

/* Loaded: attaches the socket programs, which do nothing before sock_start(). *ret_refused: the one
 * that failed. */
int sock_attach(struct loader *l, const char **ret_refused);

/* The scheduler's programs are attached: from now on sockets are told. */
int sock_start(struct loader *l);

/* Attached: find sockets of the targets that were there before (iter/task_file). Also called when
 * targets were added later. */
int sock_seed(struct loader *l);

/* Once after seeding: LISTEN records and so on. At each interval: OPEN_REQ, quiet requests. */
int sock_refresh(struct loader *l, cc_record_fn *fn, void *ctx);

/* Tracing stops: the requests not finished, as OPEN_REQ. */
int sock_stop(struct loader *l, cc_record_fn *fn, void *ctx);

/* NULL-safe; before the skeleton is destroyed. */
void sock_done(struct loader *l);

#endif
