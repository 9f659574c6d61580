/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go: the Go side of a loader: which targets are Go programs, whether what is known of them is
 *true, the probes on them, and what their goroutines wait for now. Hangs into the life of a loader:
 *
 *	go_prepare -> load -> attach scheduler -> go_want for each target -> go_work ... at each
 *poll go_refresh at each interval ... -> go_done
 */
#ifndef CC_LOADER_GO_H
#define CC_LOADER_GO_H

#include "loader_int.h"

#include "../../bpf/go_config.h"
#include "go_cost.h"

#include "go_target.h"

struct bpf_link;

struct go_probe {
	int fd;                /* uprobe_multi; -1: none */
	struct bpf_link *link; /* a perf event, on kernels without; NULL: none */
};

/* go_ends.c: is the probe where goroutines end worth what it costs? */
struct go_ends {
	uint32_t ended, late, unseen, handled;          /* as last looked at */
	uint32_t first_ended, first_late, first_unseen; /* ... and at @since */
	uint32_t last_handled;
	cc_ns since;      /* it was set or taken away then; 0: neither yet */
	cc_ns handler_at; /* a handler was seen to begin last */
	bool away;
};

struct go_proc {
	uint32_t tgid;
	uint32_t slot;            /* in the kernel's go_known */
	enum loader_go_tier tier; /* the best that its program allows and that was asked for */
	enum loader_go_state state;
	struct go_target target;
	uint32_t good, bad; /* as last looked at */
	struct go_ends ends;
	uint32_t refused; /* times that its layout was judged wrong */
	bool known;       /* it is in the kernel's table */
	bool multi;       /* its probes are uprobe_multi's */
	bool seeded;      /* those that waited before are in the kernel's table, and not told yet */
	uint32_t probe_cnt;
	struct go_probe probes[CC_BPF_GO_AT_CNT];
};

struct go_watch { /* go_watch.c */
	struct uprobe_price price;
	struct go_hits hits; /* as last read */
	cc_ns cpu, at;       /* CPU time of all processes, and when it was read */
	struct go_choice choice;
	bool measured; /* the price was, or cannot be had */
	bool told;     /* what they cost, once */
};

struct go_side {
	struct go_proc **procs;
	size_t proc_cnt, proc_cap;
	size_t seeded;    /* targets up to here are or were wanted */
	uint32_t *wanted; /* to be looked at by the next go_work() */
	size_t wanted_cnt, wanted_cap;
	bool multi;           /* uprobe_multi is there */
	struct rec_buf notes; /* for the stream */
	struct go_watch watch;
	cc_ns opened_at; /* waits that began before were looked at by go_refresh() */
};

/* Is one of those that are asked for a Go program that will be followed? Before anything is loaded.
 */
bool go_expects(const struct loader_opts *o);

/* Skeleton opened, not loaded: switches off what is not wanted. @use: false when the kernel refused
 * the programs. 0 or -errno. */
int go_prepare(struct loader *l, bool use);

/* Process @tgid became a target, or runs another program now. */
int go_want(struct loader *l, uint32_t tgid);

/* Wants all targets that were not looked at yet, and works on them. */
int go_seed(struct loader *l);

/* Looks at the wanted, at those in doubt, and drops those that are gone. Gives the notes to @fn
 * unless that is NULL; then they wait. 0 or negative. */
int go_work(struct loader *l, cc_record_fn *fn, void *ctx);

/* Goroutines that wait now and were not told to: GO_EPISODEs and their stacks; and those that ended
 * unseen since, @last: all. 0 or -errno. */
int go_refresh(struct loader *l, bool last, struct rec_buf *b);

/* Once an interval: says what the probes cost; in tier auto gives probes up when they cost too much
 * of the target's CPU, takes them up again when it has time. 0 or negative. */
int go_watch(struct loader *l);

/* Before the first probe is set: measures what a hit costs on this machine. */
void go_watch_measure(struct go_side *g);

/* For go_watch.c: a line for the user; and @p's probes as of the tier @tier, waits or id. */
CC_PRINTF(2, 3) int go_note(struct go_side *g, const char *fmt, ...);
int go_change(struct loader *l, struct go_proc *p, uint32_t level);

/* For go_trust.c: tells the kernel programs of @p, or what changed; and not any more; what they
 * count of its threads into good and bad; forgets all goroutines of @tgid. 0 or -errno. */
int go_tell_kernel(struct loader *l, struct go_proc *p);
void go_untell_kernel(struct loader *l, struct go_proc *p);
int go_read_counts(struct loader *l, struct go_proc *p);
void go_sweep(struct loader *l, uint32_t tgid);
/* Sets @p's probes, and takes up who waits already. 0 or -errno, with the reason. */
int go_probe_all(struct loader *l, struct go_proc *p, struct cc_err *why);

/* Looks whether @p is to be believed: turns its probes on, or gives it up. 0 or negative. */
int go_trust(struct loader *l, struct go_proc *p);

/* The tier of @p, as it is with what was given up. */
enum loader_go_tier go_tier_now(const struct loader *l, const struct go_proc *p);

/* Each poll, the counts just read: sets the probe where goroutines end, or takes it away. */
void go_ends_watch(struct loader *l, struct go_proc *p);

void go_done(struct loader *l); /* NULL-safe; before the skeleton is destroyed */

#endif
