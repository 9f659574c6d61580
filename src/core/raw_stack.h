/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* raw_stack: records between the kernel side and the resolver only, which makes STACK, MODULE and
 * NAME records of them: they are in no file, so they may change. */
#ifndef CC_RAW_STACK_H
#define CC_RAW_STACK_H

#include "event.h"

/* What a SNAP belongs to. */
enum { CC_SNAP_BLOCKED = 0, CC_SNAP_WAKER = 1, CC_SNAP_SAMPLE = 2, CC_SNAP_OPEN = 3 };

#define CC_SNAP_KFRAMES 64
#define CC_SNAP_MAX 16384 /* bytes of user stack */

struct cc_rec_snap {     /* size counts only the bytes that are used */
	struct cc_rec h; /* aux = CC_SNAP_* */
	__u32 tid;       /* of the EPISODE or OPEN_TASK it belongs to */
	__u32 seq;
	__u32 owner_tid;  /* whose stack it is: tid, or the waker */
	__u32 owner_tgid; /* 0: no user stack */
	__u64 ip, sp, bp;
	__u64 regs[13]; /* rax rbx rcx rdx rsi rdi r8 .. r14 (x86-64); x19 .. x28 x30 (arm64) */
	__u64 r15;
	__u64 stack_top;  /* 0: not known */
	__u32 kframe_cnt; /* frames first, then the bytes */
	__u32 byte_cnt;   /* from sp up */
	/* of the cache of unwind rules (rule.h); 0: it was not asked */
	__u64 layout; /* that was looked in */
	__u64 miss;   /* cc_rule_key.ip of the frame that has no rule */
	__u64 chain;  /* key of the CHAIN it would be, were it not to be verified */
	/* of the process's code when it was taken (rule.h); 0: it was not looked at */
	__u64 code_pages;
	__u32 change, pad;
	__u64 data[]; /* kframe_cnt kernel addresses, then byte_cnt bytes, padded to 8 */
};
_Static_assert(sizeof(struct cc_rec_snap) == 224, "wire size");

/* A stack that the kernel side unwound by rules it was taught. Its frames come once, then only its
 * keys. */
struct cc_rec_chain {
	struct cc_rec h; /* aux = CC_SNAP_*; flags = CC_ST_* of the user stack */
	__u32 tid;       /* as in SNAP */
	__u32 seq;
	__u32 owner_tgid; /* whose user stack it is; 0: there is none */
	__u16 ucnt, kcnt; /* frames that follow; 0: told before */
	__u64 layout;     /* of the user stack */
	__u64 ukey, kkey; /* 0: there is no such stack */
	__u64 ip[];       /* ucnt, then kcnt frames, innermost first */
};
_Static_assert(sizeof(struct cc_rec_chain) == 56, "wire size");

#endif
