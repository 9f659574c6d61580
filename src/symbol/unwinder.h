/* SPDX-License-Identifier: Apache-2.0 */
/* unwinder: from registers and a piece of stack to return addresses. The interface that ways of
 * unwinding share, so that a faster one can come, and that another one can check. */
#ifndef CC_UNWINDER_H
#define CC_UNWINDER_H

#include "cfi.h"
#include "maps.h"
#include "raw_stack.h"
#include "rule.h"

struct unwind_in {
	const struct cfi_arch *arch;
	uint64_t regs[CFI_REGS]; /* as cfi.h numbers them; CFI_RA: the link register, if it has one
				  */
	uint64_t ip, sp;
	const uint8_t *stack; /* the bytes from sp up; borrowed */
	size_t stack_len;
	bool learn; /* the rules of the frames are wanted */
};

/* Why it ended. */
enum unwind_end {
	UNWIND_START,  /* the thread's first function: complete */
	UNWIND_CUT,    /* went beyond the bytes that were taken */
	UNWIND_NO_MAP, /* an address in no executable mapping: see miss */
	UNWIND_NO_CFI, /* no unwind information for a function */
	UNWIND_BAD,    /* unwind information or stack do not make sense */
	UNWIND_DEEP,   /* more than CC_STACK_MAX frames */
	UNWIND_END_CNT
};

struct unwind_out {
	__u64 ip[CC_STACK_MAX]; /* innermost first; return addresses as on the stack */
	unsigned int cnt;
	enum unwind_end end;
	bool guessed;  /* by frame pointers or code, at least once */
	uint64_t miss; /* UNWIND_NO_MAP: the address; the mappings may be stale */
	/* learn: how each frame is left, which follows from the code alone. what: 0 if a rule
	 * cannot say it, but for CC_RULE_SIGNAL, which is always right */
	struct cc_rule rules[CC_STACK_MAX];
};

struct unwinder;
struct unwinder_ops {
	const char *name;
	/* Always gives what it has: 0 frames only if the ip itself lies nowhere. */
	void (*unwind)(struct unwinder *u, struct maps *m, const struct unwind_in *in,
		       struct unwind_out *out);
	/* How a frame at @ip is left (@exact: it stands there, else it is a return address), as in
	 * unwind_out.rules. False: a rule cannot say it. NULL: it does not know of rules. */
	bool (*rule)(struct unwinder *u, struct maps *m, uint64_t ip, bool exact,
		     struct cc_rule *ret);
	void (*free)(struct unwinder *u);
};
struct unwinder {
	const struct unwinder_ops *ops;
};

/* By rows of CFI that are made once per address of a file (cfi.h). It goes through signal frames,
 * Go code (go_tab.h; x86-64), and over code without either by what it does (code_row.h; x86-64) or
 * by frame pointers (guessed). Rules for
 * the kernel side (learn) are of x86-64 only. @c is borrowed and must outlive it. Returns 0 or
 * -ENOMEM. */
CC_NODISCARD int unwind_rows_new(struct file_cache *c, struct unwinder **ret);

/* Is @ip, a return address, where a handler of signals returns to? Then the next frame was
 * interrupted: its ip is where it stood, and not behind a call. */
bool frame_interrupts(struct maps *m, struct file_cache *c, uint64_t ip);

static inline void unwinder_free(struct unwinder *u)
{
	if (u)
		u->ops->free(u);
}

/* Fills @ret from a SNAP, whose sizes were checked. @ret borrows the stack bytes. */
void unwind_in_from_snap(const struct cc_rec_snap *s, struct unwind_in *ret);
/* The same of one that was taken on another machine. */
void unwind_in_of(const struct cfi_arch *arch, const struct cc_rec_snap *s, struct unwind_in *ret);

#endif
