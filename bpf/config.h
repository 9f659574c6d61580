/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* config: what the kernel programs and their loader agree on besides the records themselves. Shared
 * by both sides, rebuilt together; not an ABI. */
#ifndef CC_BPF_CONFIG_H
#define CC_BPF_CONFIG_H

#define CC_BPF_COMMS_MAX 64 /* names given with --comm */
#define CC_BPF_CNT_MAX 32   /* > every CC_CNT_* */

/* Kernel functions that programs tell apart by address: what kind of file an anonymous inode is,
 * whose timer has expired. The loader fills the addresses in from kallsyms, 0 where that is not
 * readable. */
#define CC_BPF_FUNCTIONS(X)  \
	X(ep_eventpoll_poll) \
	X(eventfd_poll)      \
	X(timerfd_poll)      \
	X(signalfd_poll)     \
	X(inotify_poll)      \
	X(io_uring_poll)     \
	X(hrtimer_wakeup)    \
	X(process_timeout)   \
	X(asm_exc_page_fault)

#define X(name) CC_BPF_FN_##name,
enum { CC_BPF_FUNCTIONS(X) CC_BPF_FN_CNT };
#undef X

/* How operations on sockets are seen; the numbers are those of CC_OPT_REQ_TIER. */
enum {
	CC_BPF_REQ_NONE = 0,
	CC_BPF_REQ_SOCK = 1, /* tracepoints of socket lengths */
	CC_BPF_REQ_SEQ = 2,  /* TCP's sequence numbers, at tcp_rcv_space_adjust and net_dev_queue */
	CC_BPF_REQ_CALLS = 3,  /* ends of system calls */
	CC_BPF_REQ_SEQ_FN = 4, /* sequence numbers, at the end of tcp_recvmsg and tcp_sendmsg */
};

/* The cache of unwind rules (rule.h). Verify: all stacks are sent raw, with what it made of them.
 */
enum { RULES_OFF, RULES_ON, RULES_VERIFY };

struct cc_bpf_config {        /* .rodata: fixed at load */
	__u64 min_block_ns;   /* shorter waits are summed into SHORT; 0: every wait is told */
	__u64 stack_min_ns;   /* EXTRA and stacks from here on */
	__u64 stolen_min_ns;  /* EXTRA also when this much on-CPU time is missing */
	__u64 events_quarter; /* bytes in the ring from which user space is woken */
	__u64 control_quarter;
	__u64 fn[CC_BPF_FN_CNT];
	__u64 sample_n;       /* 1 request in n by hash of its id */
	__u32 snap_bytes;     /* of user stack, at most CC_SNAP_MAX */
	__u32 stack_tier;     /* 0 none, 1 late, 2 waking, 3 eager */
	__u32 req_tier;       /* CC_BPF_REQ_* */
	__u32 has_prev_state; /* sched_switch tells prev_state (since 5.18) */
	__u32 snap_burst;     /* snapshots per CPU and 20 ms */
	__u32 go_stack_burst; /* stacks of goroutines per CPU and 20 ms */
	__u32 pid_nested;     /* user space is in a pid namespace: see pidns.h */
	__u32 has_task_kfunc; /* bpf_task_from_vpid (since 6.14) is there */
	__u32 rule_cache;     /* RULES_* */
	__u32 has_cast_kfunc; /* bpf_rdonly_cast (since 6.2) is there */
	__u32 pad;
};

struct cc_bpf_target {
	__u32 flags;  /* CC_TF_FOLLOWED or 0 */
	__u32 parent; /* tgid it came from; 0: asked for */
};

struct cc_bpf_pid { /* a thread in two pid namespaces: the initial one, and user space's */
	__u32 global, local;
};

struct cc_bpf_iter_ctl {   /* how the next run of the task iterator is */
	__u64 snap_min_ns; /* stacks of tasks that sleep at least this long ... */
	__u32 snap_left;   /* ... and of so many at most */
	__u32 flags;       /* CC_TF_ATTACH or CC_TF_STOP or 0 */
};

struct cc_bpf_loss {
	__u64 last; /* time of the latest loss */
	__u64 cnt;
	__u64 bytes;
	__u64 pad;
};

#endif
