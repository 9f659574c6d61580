/* SPDX-License-Identifier: Apache-2.0 */
/* go_attach: from what is known of a Go program to a tier and its probes. */
#ifndef CC_GO_ATTACH_H
#define CC_GO_ATTACH_H

#include "go.h"

/* Chooses the tier: what is @asked, or the best below for which all needed sites can be probed.
 * @why, if it is not as asked (or no choice was asked for and it is not waits): the cause. */
enum loader_go_tier go_tier_choose(const struct go_target *t, enum loader_go_tier asked, bool force,
				   struct cc_err *why);

/* What the kernel programs are to know of @p, which they know as @tgid: for go_known. */
void go_config(const struct go_proc *p, uint32_t tgid, struct cc_bpf_go *ret);

/* Sets the probes of p->tier. Those that are not needed may fail. Returns 0 or -errno, then none is
 * left and @why says which. */
int go_attach(struct loader *l, struct go_proc *p, struct cc_err *why);
void go_detach(struct go_proc *p);

/* Sets, or takes away, the probe that shows where goroutines end. Says whether there is one now. */
bool go_attach_ends(struct loader *l, struct go_proc *p, bool on);

/* Gives up those that follow items through channels' buffers: the dearest for what they tell. */
void go_thin_out(struct go_proc *p);

/* The programs of all tiers, for autoload and attach type. */
struct bpf_program;
size_t go_programs(struct loader *l, struct bpf_program *ret[CC_BPF_GO_AT_CNT]);

#endif
