/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel: the few kernel types our programs read, by hand. Every struct here is a CO-RE subset:
 * only the members we use, in any order; libbpf finds the true offsets in the running kernel's BTF.
 * No generated vmlinux.h, so a build needs nothing of the machine it runs on.
 *
 * A member that some kernels lack is only touched after bpf_core_field_exists(). Names are those of
 * Linux 6.18; what older kernels call otherwise stands as `type___old`.
 */
#ifndef CC_BPF_KERNEL_H
#define CC_BPF_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

/* From uapi/linux/bpf.h, which cannot be included: clang -target bpf finds no asm/types.h. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_RB_NO_WAKEUP = 1 << 0,
	BPF_RB_FORCE_WAKEUP = 1 << 1,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_PROD_POS = 3,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1 << 0,
	BPF_SK_STORAGE_GET_F_CREATE = 1 << 0,
	BPF_F_USER_STACK = 1 << 8,
};

#define TASK_INTERRUPTIBLE 0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define PF_KTHREAD 0x00200000
#define PF_EXITING 0x00000004
#define SIGNAL_GROUP_EXIT 0x00000004

#if defined(__TARGET_ARCH_x86)
#define THREAD_SIZE 16384ull
#elif defined(__TARGET_ARCH_arm64)
#define THREAD_SIZE 16384ull
#endif

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

typedef struct {
	int counter;
} atomic_t;
typedef struct {
	__s64 counter;
} atomic64_t;
typedef struct {
	__s64 counter;
} atomic_long_t;

struct list_head {
	struct list_head *next, *prev;
};

/* ---- tasks -------------------------------------------------------------------------------- */

struct thread_info {
	__u32 status; /* x86: TS_COMPAT */
	__u32 cpu;
};
struct sched_info {
	unsigned long pcount;            /* times it was put on a CPU */
	unsigned long long last_arrival; /* put on a CPU, rq clock */
	unsigned long long last_queued;  /* queued for a CPU since, rq clock; 0: not queued */
};
struct rq;
struct task_group;
struct cfs_rq {
	struct rq *rq;
	struct task_group *tg;
	__u64 throttled_clock_self;      /* since 6.6: rq clock when throttled with tasks; 0: not */
	__u64 throttled_clock_self_time; /* since 6.6: sum of past throttlings */
	int throttle_count;
};
struct sched_entity {
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime; /* sum_exec_runtime when it was last picked */
	__u64 nr_migrations;
	struct sched_entity *parent;
	struct cfs_rq *cfs_rq; /* it is queued on */
	struct cfs_rq *my_q;   /* a group's own */
};
struct rq {
	__u64 clock;
	__u64 clock_task;
	struct cfs_rq cfs;
};
struct pid_namespace;
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};
struct rw_semaphore {
	atomic_long_t count;
	atomic_long_t owner; /* task | flag bits 0..2 */
};
struct file;
struct mm_struct {
	unsigned long start_code;
	unsigned long start_stack;
	unsigned long mmap_base;
	unsigned long exec_vm; /* pages that are executable and not writable */
	struct rw_semaphore mmap_lock;
	struct file *exe_file;
};
struct thread_struct {
	unsigned long sp;
	unsigned long fsbase; /* x86 */
};
struct kernfs_node {
	__u64 id;
};
struct cgroup {
	struct kernfs_node *kn;
	int level;
};
struct cgroup_subsys_state {
	struct cgroup *cgroup;
};
struct css_set {
	struct cgroup *dfl_cgrp;
	struct cgroup_subsys_state *subsys[1];
};
struct net;
struct nsproxy {
	struct net *net_ns;
};
struct files_struct;
typedef struct {
	unsigned long sig[1];
} sigset_t;
struct sigpending {
	struct list_head list;
	sigset_t signal;
};
struct signal_struct {
	unsigned int flags;
	atomic_t live;
	struct sigpending shared_pending;
};
struct mutex {
	atomic_long_t owner; /* task | flag bits 0..2 */
};
struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	void *stack;
	unsigned int flags;
	int on_cpu;
	int on_rq;
	unsigned int wake_cpu;
	struct sched_entity se;
	struct sched_info sched_info;
	bool throttled; /* since 6.18: parked by CFS bandwidth control on its way to user mode */
	struct mm_struct *mm;
	int exit_state;
	int exit_code;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	__u64 start_time;
	__u64 start_boottime;
	char comm[16];
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	sigset_t blocked;
	struct sigpending pending;
	struct css_set *cgroups;
	unsigned sched_contributes_to_load : 1; /* when it went to sleep last, in D state */
	unsigned in_iowait : 1;
	unsigned long
		blocker; /* since 6.15: lock it sleeps on | kind, CONFIG_DETECT_HUNG_TASK_BLOCKER */
	struct thread_struct thread;
};
struct task_struct___pre514 { /* before 5.14 (2f064a59a11f): plain `state` */
	long state;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};
struct pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
	__u64 orig_x0;
	int syscallno;
};
#endif

/* ---- files -------------------------------------------------------------------------------- */

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};
struct inode {
	__u16 i_mode;
	unsigned long i_ino;
	__u32 i_rdev;
	struct super_block *i_sb;
	struct rw_semaphore i_rwsem;
};
struct file_operations {
	void *poll;
	void *read_iter;
	void *read;
	void *release;
};
struct file {
	struct inode *f_inode;
	const struct file_operations *f_op;
	void *private_data;
	unsigned int f_flags;
};
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};

/* ---- sockets ------------------------------------------------------------------------------ */

struct ns_common {
	unsigned int inum;
};
struct net {
	struct ns_common ns;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__be32 u6_addr32[4];
	} in6_u;
};
struct proto {
	char name[32];
};
struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
	struct proto *skc_prot;
};
struct socket;
struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	__u16 sk_type;
	__u16 sk_protocol;
	unsigned int sk_ack_backlog;
	unsigned int sk_max_ack_backlog;
	int sk_err;
	unsigned char sk_shutdown;
};
struct socket {
	short type;
	struct file *file;
	struct sock *sk;
};
struct inet_sock {
	struct sock sk;
	__be16 inet_sport;
};
struct inet_connection_sock {
	struct inet_sock icsk_inet;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 write_seq;
	__u32 snd_una;
	__u32 srtt_us; /* << 3 */
	__u32 total_retrans;
	__u32 lost_out;
};
struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};
struct unix_address {
	int len;
	struct sockaddr_un name[0];
};
struct unix_sock {
	struct sock sk;
	struct unix_address *addr;
	struct sock *peer;
};

struct sk_buff {
	struct sock *sk;
};

/* ---- timers ------------------------------------------------------------------------------- */

struct hrtimer {
	void *function;
};
struct timer_list {
	void *function;
};

/* ---- iterators ---------------------------------------------------------------------------- */

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
	__u64 seq_num;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};
struct bpf_map;
struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute pop
#endif

#endif
