/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* go_config: what the kernel programs know of each traced Go process; written by the loader. Shared
 * by both sides, rebuilt together; not an ABI. */
#ifndef CC_BPF_GO_CONFIG_H
#define CC_BPF_GO_CONFIG_H

#include "go_layout.h"

#define CC_BPF_GO_REASONS 64
#define CC_BPF_GO_HANDLERS 32
#define CC_BPF_GO_PROCS 1024 /* Go processes at once */

/* One more counter, above all CC_CNT_*, which no stream tells: of CC_CNT_GO_HITS, those on a nop
 * that the kernel makes a call of (since 6.18), which cost less. */
#define CC_BPF_CNT_GO_NOPS 31

/* What gopark's lock argument and the goroutine's state say about the thing waited for. */
enum {
	CC_BPF_GO_OBJ_NONE,
	CC_BPF_GO_OBJ_CHAN,   /* lock is the channel's, of which it wants an item */
	CC_BPF_GO_OBJ_SEND,   /* ... to which it gives one */
	CC_BPF_GO_OBJ_SEMA,   /* the address given to semacquire1 */
	CC_BPF_GO_OBJ_LOCK,   /* lock itself */
	CC_BPF_GO_OBJ_POLL,   /* lock is a field of a pollDesc */
	CC_BPF_GO_OBJ_SELECT, /* none of its own: the channel that ends it is known by then */
	CC_BPF_GO_OBJ_QUIET,  /* none; its end passes no probe either */
};

/* Hits of these sites do not count when the branch they stand on is taken. */
enum {
	CC_BPF_GO_AT_PARK,
	CC_BPF_GO_AT_RUNNABLE,
	CC_BPF_GO_AT_MADE,
	CC_BPF_GO_AT_READY,
	CC_BPF_GO_AT_YIELD,
	CC_BPF_GO_AT_STATUS,
	CC_BPF_GO_AT_END,
	CC_BPF_GO_AT_END_OLD,
	CC_BPF_GO_AT_CORO,
	CC_BPF_GO_AT_GOSCHED,
	CC_BPF_GO_AT_SCHED,
	CC_BPF_GO_AT_SCHED_PREEMPT,
	CC_BPF_GO_AT_SCHED_GUARDED,
	CC_BPF_GO_AT_PREEMPT,
	CC_BPF_GO_AT_SEMA,
	CC_BPF_GO_AT_PUT,
	CC_BPF_GO_AT_TAKE,
	CC_BPF_GO_AT_SELECT0,
	CC_BPF_GO_AT_SELECT1,
	CC_BPF_GO_AT_PASS,
	CC_BPF_GO_AT_CNT
};

/* Cookies of the places where goroutines are made ready: what the registers tell there, and whether
 * it is on a nop, as on_nop says of the other sites. */
enum { CC_BPF_GO_BY_G, CC_BPF_GO_BY_SUDOG, CC_BPF_GO_BY_SEND };
#define CC_BPF_GO_COOKIE(by, nop) ((__u64)(by) << 1 | (nop))
#define CC_BPF_GO_COOKIE_BY(c) ((c) >> 1)
#define CC_BPF_GO_COOKIE_NOP(c) ((c)&1)

struct cc_bpf_go { /* of one process */
	struct go_layout at;
	__s64 tls_off; /* of g from the thread pointer */
	__u64 seed;    /* of the hashes of stacks and items */
	__u64 park_ip; /* where gopark's probe was hit; 0: not yet */
	__s64 recv_at; /* the runtime's recv() begins so far behind that */
	__u64 recv_size;
	__u32 repeats;   /* bits of CC_BPF_GO_AT_* */
	__u32 on_nop;    /* the same: of those on a nop that may have become a call */
	__u32 good;      /* threads seen whose g led back to them: procid == tid, curg == g */
	__u32 bad;       /* ... and not */
	__u32 cls_write; /* WAIT_* of an IO wait to write; to read: as the reason says */
	__u32 cls_mutex; /* WAIT_* of a semaphore that is a mutex's; before 1.20 no reason says so
			  */
	__u32 probed;    /* its probes are set: what goroutines wait for is told */
	__u32 park_bare; /* gopark's probe is before it makes its frame */
	__u32 ended;     /* goroutines whose end was probed, */
	__u32 late;      /* ... and without would have seemed CC_BPF_GO_LATE_NS too early */
	__u32 unseen;    /* ... and without would not have been seen to run since its last wait */
	__u32 handled;   /* goroutines seen whose life is a request */
	__u32 handler_cnt;
	__s64 handlers[CC_BPF_GO_HANDLERS]; /* where those begin, behind park_ip */
	__u8 cls[CC_BPF_GO_REASONS];        /* WAIT_*, by wait reason */
	__u8 obj[CC_BPF_GO_REASONS];        /* CC_BPF_GO_OBJ_* */
	__u32 tgid;                         /* whose it is; 0: nobody's */
	__u32 port;                         /* one that it listens on, once seen; 0: none */
};

#define CC_BPF_GO_LATE_NS 200000 /* on the CPU, interrupts of it included */

/* Believed from so many good ones on, and while fewer than one in CC_BPF_GO_BAD_SHARE was bad. */
#define CC_BPF_GO_GOOD_MIN 2
#define CC_BPF_GO_BAD_SHARE 50
#define CC_BPF_GO_CHECKS 4096 /* every thread switch is checked until so many were good */

struct cc_bpf_go_key { /* of a goroutine's state: its g, which another one may have later */
	__u64 g;
	__u32 tgid;
	__u32 pad;
};

enum { CC_BPF_GO_RUNS, CC_BPF_GO_PARKED, CC_BPF_GO_NEW, CC_BPF_GO_YIELDED };

/* What the wait is, beyond its reason. */
enum { CC_BPF_GO_IS_PLAIN, CC_BPF_GO_IS_READ, CC_BPF_GO_IS_WRITE, CC_BPF_GO_IS_MUTEX };

struct cc_bpf_go_state {
	__u64 goid; /* 0: a new one, not known yet */
	__u64 out, wake;
	__u64 born; /* 0: not seen */
	__u64 parent;
	__u64 waker_goid; /* goid 0: of the one that ended */
	__u64 object;
	__u64 sema;   /* the last address given to semacquire1, until it parks */
	__u64 lost;   /* CC_LOST() */
	__u64 fd_id;  /* cookie of the socket it last waited for */
	__u64 ustack; /* of the wait, where it was to be had */
	__u64 seen;   /* when it was last seen to do something */
	__u64 told;   /* the last key of a stack of it that was told */
	__u32 fd_kind, sock_ports;
	__u32 seq;
	__u32 out_tid;
	__u32 run_tid; /* thread it was last seen to run on */
	__u32 waker_tid;
	__s32 fd; /* valid when what is READ or WRITE */
	__u16 reason;
	__u8 state;      /* CC_BPF_GO_RUNS ... */
	__u8 what;       /* CC_BPF_GO_IS_* */
	__u8 sema_mutex; /* sema is a mutex's */
	__u8 about;      /* out is only about right */
	__u8 served;     /* the socket fd_id is a client's connection */
	__u8 pad[5];
};

struct cc_bpf_go_thread { /* what the iterator over a process's threads gives */
	__u64 tp;         /* thread pointer */
	__u32 tid;
	__u32 ns_tid; /* as the process itself knows it */
};

#endif
