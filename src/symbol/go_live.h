/* SPDX-License-Identifier: Apache-2.0 */
/* go_live: a running Go program judges the layout that was found for it, or gives one: of each
 * sampled thread its id and its g are known, and what they point to must fit together. Memory is
 * read through a function, and changes under it: a few samples may be wrong, not many. */
#ifndef CC_GO_LIVE_H
#define CC_GO_LIVE_H

#include "go_target.h"

struct go_tab;

#define GO_LIVE_SAMPLES 64 /* enough for all that is done here; more are not looked at */

struct go_sample {
	uint32_t tid; /* as the process itself sees it: in its own pid namespace */
	uint64_t g;   /* the word at thread pointer + tls_off; 0: the thread has none */
};

/* Reads @len bytes at @addr of the process. Returns false if they cannot be read. */
typedef bool go_mem_fn(void *ctx, uint64_t addr, void *buf, size_t len);

struct go_live {
	go_mem_fn *read;
	void *ctx;
	const struct go_target
		*t;         /* its program: version and wait reasons; the layout is not used */
	struct go_tab *tab; /* the same */
	uint64_t bias;      /* how far it was moved when it was loaded: 0 unless it is a PIE */
};

struct go_verdict {
	unsigned int right, wrong; /* samples */
	unsigned int idle;         /* without g, or that could not be read */
	char why[120];             /* of the first wrong one, or why there is no answer */
};

/* Whether @l is right: of each sample m.procid is the tid, m.curg or m.g0 is g, and a goroutine's
 * state, reason, id and function make sense. Returns 0; -EINVAL if it is not; -EAGAIN if too few
 * samples had a g to tell. */
CC_NODISCARD int go_live_check(const struct go_live *p, const struct go_layout *l,
			       const struct go_sample *s, size_t cnt, struct go_verdict *ret);

/* Finds the fields of g and m; those of channels and of the network poller are GO_NO_FIELD: they
 * cannot be seen from here. Needs samples of at least two goroutines, and of threads
 * that run none. Returns 0, -ENOMEM, or -ENOENT with the
 * reason in @ret_why. */
CC_NODISCARD int go_live_derive(const struct go_live *p, const struct go_sample *s, size_t cnt,
				struct go_layout *ret, char *ret_why, size_t why_cap);

/* go_mem_fn for a process: @ctx is a pointer to its pid_t. */
bool go_live_read_process(void *ctx, uint64_t addr, void *buf, size_t len);

#endif
