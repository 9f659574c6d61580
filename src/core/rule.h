/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * rule: the cache of unwind rules in the kernel. User space unwinds a raw stack (SNAP), and tells
 * the kernel programs how it left each frame; from then on they unwind such stacks themselves and
 * tell them as a CHAIN. Both sides are built together: no ABI.
 *
 * A rule belongs to (layout, ip). The layout is a hash of all that is mapped executable in a
 * process, so processes of one program share rules if, and only if, the same code lies at the same
 * addresses. The number of pages of code tells the kernel side when that has changed; it counts the
 * changes, so that a stack is never read in the mappings of another time.
 */
#ifndef CC_RULE_H
#define CC_RULE_H

#ifndef __bpf__
#include <linux/types.h> /* the BPF side has these from kernel.h */
#include <stdbool.h>
#include <stdint.h>
#endif

/* Where something of the caller is, by what is known in the frame that is left. */
enum cc_via {
	CC_VIA_LOST,   /* nowhere */
	CC_VIA_SP,     /* the stack pointer + off */
	CC_VIA_FP,     /* the frame pointer + off */
	CC_VIA_SP_MEM, /* what lies at the stack pointer + off */
	CC_VIA_FP_MEM,
	CC_VIA_CFA_MEM, /* what lies at the CFA + off */
	CC_VIA_SAME,    /* unchanged */
};

enum { /* cc_rule.what */
       CC_RULE_KNOWN = 1 << 0,
       CC_RULE_SIGNAL = 1 << 1,  /* the caller was interrupted: its ip is exact, its stack may be
				  * another */
       CC_RULE_END = 1 << 2,     /* there is no caller: the thread's start ... */
       CC_RULE_PART = 1 << 3,    /* ... or not even that: it goes on elsewhere */
       CC_RULE_GUESSED = 1 << 4, /* by a frame pointer or code that nothing confirms */
       CC_RULE_NO_ZERO = 1 << 5, /* a return address of 0 is no end, but an error */
};

struct cc_rule {
	__s32 cfa_off, ra_off, fp_off;
	__u8 cfa, ra, fp; /* enum cc_via */
	__u8 what;        /* 0: there is no rule that this could hold */
};

/* Set in cc_rule_key.ip where the ip is exact, and not behind a call. */
#define CC_RULE_EXACT (1ull << 63)

struct cc_rule_key {
	__u64 layout, ip;
};

struct cc_layout {
	__u64 id;         /* never 0 */
	__u64 code_pages; /* as the kernel counts them: executable and not writable */
	__u32 change;     /* the kernel's count of changes when it was read */
	__u32 pad;
};

#ifndef __bpf__
/* The kernel's side of the cache. Errors are no one's loss: what is not in it comes as a SNAP. */
struct cc_rule_cache {
	void (*layout)(void *ctx, uint32_t tgid, const struct cc_layout *l);
	/* NULL: it does not unwind, but it sees changes */
	void (*rule)(void *ctx, const struct cc_rule_key *k, const struct cc_rule *r);
	void (*forget)(void *ctx, uint64_t key); /* of a CHAIN: tell its frames again */
	/* How often @tgid's code has changed, as SNAPs have it in change; 0: it was not looked at.
	 */
	uint32_t (*change)(void *ctx, uint32_t tgid);
	void *ctx;
};
#endif

/* A bijective mix: every input bit moves every output bit (the finalizer of SplitMix64). */
static inline __u64 mix64(__u64 x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Appends @x to the hash @h; the order of appends counts. */
static inline __u64 hash_add(__u64 h, __u64 x) { return mix64(h * 0x9e3779b97f4a7c15ull + x + 1); }

/* The key of a CHAIN's stack, from the hash of its frames. @flags: CC_ST_*. Never 0. */
static inline __u64 chain_key(__u64 frames, __u64 layout, __u32 tgid, __u32 flags)
{
	__u64 key = hash_add(hash_add(frames, layout), (__u64)tgid << 32 | flags);

	return key ? key : 1;
}

#endif
