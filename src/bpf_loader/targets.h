/* SPDX-License-Identifier: Apache-2.0 */
/* targets: which processes are traced, found by /proc and kept apart from reused pids by pidfds. */
#ifndef CC_TARGETS_H
#define CC_TARGETS_H

#include "loader_int.h"

#define TARGETS_MAX 16000 /* the kernel's table has 16384 */

/*
 * Adds what @o asks for: --pid, the listeners of --port, the processes named --comm, the members of
 * --cgroup and --unit, each with all descendants. Called before attach, so that forks from then on
 * are followed by the programs, and again after it (targets_add_children) for children born
 * between. Returns 0, -ESRCH, -EINVAL (nothing asked for), -E2BIG, -ENOMEM; @err says what.
 */
CC_NODISCARD int targets_add_asked(struct loader *l, const struct loader_opts *o,
				   struct cc_err *err);

/* Adds descendants of all targets that are not known yet. Returns how many, or -errno. */
CC_NODISCARD int targets_add_children(struct loader *l);

/* Looks which targets have exited. Returns how many are left. */
size_t targets_alive(struct loader *l);

/* Adds who has moved into the cgroups asked for since. Returns how many, or -errno. */
CC_NODISCARD int targets_add_later(struct loader *l);

/* Adds @tgid, a child of target @parent, whose kind it takes. As loader_target_add(). */
CC_NODISCARD int targets_add_child(struct loader *l, uint32_t tgid, uint32_t parent);

/* The process of thread @tid; 0: there is none. */
uint32_t targets_tgid_of(uint32_t tid);
bool targets_is_self(uint32_t tgid);

/* Calls @fn for each numeric entry of directory @path until it returns other than 0: returns that.
 * -ESRCH: no such directory. */
CC_NODISCARD int targets_each_number(const char *path, int (*fn)(void *ctx, uint32_t n), void *ctx);

struct loader_target *targets_find(struct loader *l, uint32_t tgid);

void targets_done(struct loader *l);

#endif
