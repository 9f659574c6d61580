/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* chain_walk: leaves one frame by a rule. The same code runs in the kernel and in tests, which
 * compare it with the unwinder that the rules came from. */
#ifndef CC_BPF_CHAIN_WALK_H
#define CC_BPF_CHAIN_WALK_H

#include "raw_stack.h"
#include "rule.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

struct chain_at {
	__u64 ip, sp, fp;
	__u64 exact; /* CC_RULE_EXACT or 0 */
	__u64 fp_lost;
};

struct chain_stack { /* the bytes that were taken of it */
	const __u8 *bytes;
	__u64 sp; /* where they were */
	__u32 len;
};

enum chain_step { CHAIN_ON, CHAIN_FULL, CHAIN_PART, CHAIN_FAIL };

/* A frame may be larger than what is taken of a stack: its few words are read where they are. */
#define CHAIN_REACH (1u << 20)

static __always_inline bool chain_read(const struct chain_stack *s, __u64 addr, __u64 *ret)
{
	__u64 at = addr - s->sp;

	if (addr < s->sp || at > CHAIN_REACH)
		return false;
	if (at > CC_SNAP_MAX - sizeof(*ret) || at + sizeof(*ret) > s->len) {
#ifdef __bpf__
		return !bpf_probe_read_user(ret, sizeof(*ret), (void *)addr);
#else
		return false;
#endif
	}
	/* a hostile stack pointer may be odd: map values are read at any address, as plain
	 * words */
#ifdef __bpf__
	*ret = *(const __u64 *)(s->bytes + at);
#else
	__builtin_memcpy(ret, s->bytes + at, sizeof(*ret));
#endif
	return true;
}

static __always_inline bool chain_via(const struct chain_at *w, const struct chain_stack *s,
				      __u8 via, __s32 off, __u64 cfa, __u64 *ret)
{
	__u64 v;

	if (via == CC_VIA_SP || via == CC_VIA_SP_MEM)
		v = w->sp;
	else if (via == CC_VIA_CFA_MEM)
		v = cfa;
	else if ((via == CC_VIA_FP || via == CC_VIA_FP_MEM) && !w->fp_lost)
		v = w->fp;
	else
		return false;
	v += (__u64)(__s64)off;
	*ret = v;
	return via == CC_VIA_SP || via == CC_VIA_FP || chain_read(s, v, ret);
}

/* Moves @w to the caller, unless there is none. */
static __always_inline int chain_step(struct chain_at *w, const struct chain_stack *s,
				      const struct cc_rule *r)
{
	__u64 cfa, ra, fp = w->fp;

	if (!chain_via(w, s, r->cfa, r->cfa_off, 0, &cfa))
		return CHAIN_FAIL;
	if (r->what & CC_RULE_END)
		return r->what & CC_RULE_PART ? CHAIN_PART : CHAIN_FULL;
	if (r->what & CC_RULE_GUESSED && r->cfa == CC_VIA_FP && (fp < w->sp || fp & 7))
		return CHAIN_FAIL;
	if (!chain_via(w, s, r->ra, r->ra_off, cfa, &ra))
		return CHAIN_FAIL;
	if (!ra)
		return r->what & CC_RULE_NO_ZERO ? CHAIN_FAIL : CHAIN_FULL;
	if (cfa <= w->sp && !(r->what & CC_RULE_SIGNAL))
		return CHAIN_FAIL;
	if (r->fp != CC_VIA_SAME) {
		w->fp_lost = !chain_via(w, s, r->fp, r->fp_off, cfa, &fp);
		w->fp = fp;
	}
	w->ip = ra;
	w->sp = cfa;
	w->exact = r->what & CC_RULE_SIGNAL ? CC_RULE_EXACT : 0;
	return CHAIN_ON;
}

#endif
