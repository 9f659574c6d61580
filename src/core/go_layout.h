/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * go_layout: where a Go runtime keeps the fields that are read from outside, as byte offsets. They
 * differ from version to version: src/symbol finds them, kernel programs read by them. Shared with
 * bpf/.
 */
#ifndef CC_GO_LAYOUT_H
#define CC_GO_LAYOUT_H

#ifndef __bpf__
#include <linux/types.h> /* the BPF side has these from vmlinux.h */
#endif

#define GO_NO_FIELD 0xffffffffu /* this version has none */

/* id, the runtime's type, its field ("a.b": within a struct within), optional. "g.sched.bp" in
 * offset files. */
#define GO_FIELDS(X)                                                                             \
	X(g_stack, "g", "stack", 0)               /* {lo, hi} */                                 \
	X(g_m, "g", "m", 0)                       /* *m; 0: runs on no thread */                 \
	X(g_sched_sp, "g", "sched.sp", 0)         /* where it goes on */                         \
	X(g_sched_pc, "g", "sched.pc", 0)         /* ... */                                      \
	X(g_sched_bp, "g", "sched.bp", 0)         /* ... */                                      \
	X(g_param, "g", "param", 1)               /* what woke it, often its *sudog */           \
	X(g_atomicstatus, "g", "atomicstatus", 0) /* u32 */                                      \
	X(g_goid, "g", "goid", 0)                 /* u64, never used again */                    \
	X(g_waitreason, "g", "waitreason", 0)     /* u8, index of struct go_reasons */           \
	X(g_parentgoid, "g", "parentGoid", 1)     /* u64; from 1.21 */                           \
	X(g_gopc, "g", "gopc", 0)                 /* pc behind the go statement that made it */  \
	X(g_startpc, "g", "startpc", 0)           /* entry of its function */                    \
	X(g_waiting, "g", "waiting", 0)           /* *sudog list it waits in */                  \
	X(m_g0, "m", "g0", 0)                     /* *g the scheduler runs on */                 \
	X(m_procid, "m", "procid", 0)             /* u64 tid (as the process sees it) */         \
	X(m_curg, "m", "curg", 0)                 /* *g that runs on the thread */               \
	X(sudog_g, "sudog", "g", 0)               /* *g that waits */                            \
	X(sudog_elem, "sudog", "elem", 0)         /* where the item comes from or goes to */     \
	X(sudog_isselect, "sudog", "isSelect", 0) /* bool */                                     \
	X(sudog_waitlink, "sudog", "waitlink", 0) /* *sudog, next of g.waiting */                \
	X(sudog_c, "sudog", "c", 0)               /* *hchan */                                   \
	X(hchan_qcount, "hchan", "qcount", 0)     /* items in the buffer */                      \
	X(hchan_dataqsiz, "hchan", "dataqsiz", 0) /* its room; 0: unbuffered */                  \
	X(hchan_buf, "hchan", "buf", 0)           /* *items */                                   \
	X(hchan_elemsize, "hchan", "elemsize", 0) /* u16 */                                      \
	X(hchan_closed, "hchan", "closed", 0)     /* u32 */                                      \
	X(hchan_sendx, "hchan", "sendx", 0)       /* index of the next item sent */              \
	X(hchan_recvx, "hchan", "recvx", 0)       /* index of the next item received */          \
	X(hchan_lock, "hchan", "lock", 0)         /* the runtime's own mutex */                  \
	X(polldesc_fd, "pollDesc", "fd", 0)       /* uintptr */                                  \
	X(polldesc_rg, "pollDesc", "rg", 0)       /* *g that waits to read; what gopark locks */ \
	X(polldesc_wg, "pollDesc", "wg", 0)       /* *g that waits to write */

struct go_layout {
#define X(id, type, field, optional) __u32 id;
	GO_FIELDS(X)
#undef X
};

#endif
