/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * event: the record ABI. One stream of these records is all that the engine ever learns: kernel
 * programs write them, iterators and the collector add theirs, and a .criticast file is the same
 * stream in compressed chunks.
 *
 * Rules
 * - Append only. A kind keeps its number and its meaning for ever; new fields go to the end of a
 *   struct; a reader accepts a record longer than it knows (ignores the rest) and shorter than it
 *   knows (the missing fields are 0) as long as it has the kind's CC_MIN_* size.
 * - Little endian, natural alignment, no hidden padding, every byte set.
 * - All times are CLOCK_MONOTONIC ns (bpf_ktime_get_ns). 0 means "not known" unless said otherwise.
 * - tids and tgids are those of the initial pid namespace. tids are reused: TASK and OPEN_TASK
 *   records say when a tid was born, and with which start time.
 * - Order: records of one task come in order from one ring; between rings order is by TICK's
 *   drained_to only. The engine must not assume more.
 */
#ifndef CC_EVENT_H
#define CC_EVENT_H

#ifndef __bpf__
#include <linux/types.h> /* the BPF side has these from vmlinux.h */
#endif

#define CC_ABI_VERSION 1
#define CC_COMM_LEN 16

/* Record kinds. ABI: append only. */
enum {
	CC_REC_NONE = 0,
	CC_REC_EPISODE = 1,     /* struct cc_rec_episode: one time off the CPU */
	CC_REC_EXTRA = 2,       /* struct cc_rec_extra: more about one slow episode */
	CC_REC_SOCKOP = 3,      /* struct cc_rec_sockop: a socket operation REQ does not tell */
	CC_REC_REQ = 4,         /* struct cc_rec_req: a request, at its finish */
	CC_REC_STACK = 5,       /* struct cc_rec_stack: a stack seen for the first time */
	CC_REC_SAMPLE = 6,      /* struct cc_rec_sample: where a task was on the CPU */
	CC_REC_TASK = 7,        /* struct cc_rec_task: fork, exec, exit, comm */
	CC_REC_OPEN_TASK = 8,   /* struct cc_rec_open_task: a task's state now, by iterator */
	CC_REC_OPEN_REQ = 9,    /* struct cc_rec_req: a request not finished yet, by iterator */
	CC_REC_LOSS = 10,       /* struct cc_rec_loss: records lost within a time span */
	CC_REC_TICK = 11,       /* struct cc_rec_tick: a refresh; moves the watermark */
	CC_REC_MODULE = 12,     /* struct cc_rec_module: a file mapped into a process */
	CC_REC_NAME = 13,       /* struct cc_rec_name: text for an address, cgroup, file ... */
	CC_REC_SHORT = 14,      /* struct cc_rec_short: waits below --min-block, summed */
	CC_REC_TARGET = 15,     /* struct cc_rec_target: a traced process */
	CC_REC_OPTION = 16,     /* struct cc_rec_counter: how the trace was taken (CC_OPT_*) */
	CC_REC_COUNTER = 17,    /* struct cc_rec_counter: a counter's value now (CC_CNT_*) */
	CC_REC_GO_EPISODE = 18, /* struct cc_rec_go_episode: one wait of a goroutine */
	CC_REC_GO_TASK = 19,    /* struct cc_rec_go_task: a goroutine born, seen or dead */
	CC_REC_GO_ON = 20,      /* struct cc_rec_go_on: a goroutine got or left a thread */
	CC_REC_GO_ITEM = 21,    /* struct cc_rec_go_item: a channel item sent or received */
	CC_REC_LISTEN = 22,     /* struct cc_rec_listen: a target's listening socket */
	CC_REC_WAKE = 23,       /* struct cc_rec_wake: a wake that no EPISODE carries */
	CC_REC_KIND_CNT,
	CC_REC_SNAP = 200, /* struct cc_rec_snap (raw_stack.h): ring only, never in a file: a raw
			    * stack that user space unwinds into STACK */
	CC_REC_CHAIN =
		201, /* struct cc_rec_chain: ring only: a stack that the kernel side unwound */
};

struct cc_rec {     /* the header of every record */
	__u16 size; /* bytes, this header included; a multiple of 8 */
	__u8 kind;  /* CC_REC_* */
	__u8 flags; /* by kind */
	__u16 cpu;  /* that wrote it; 0xffff: user space */
	__u16 aux;  /* by kind */
	__u64 ts;   /* by kind: when it was written or what it is about */
};
_Static_assert(sizeof(struct cc_rec) == 16, "wire size");

/* ---- EPISODE ------------------------------------------------------------------------------ */

/* cc_rec.flags of EPISODE. ABI: append only. */
enum {
	CC_EP_PREEMPT = 1 << 0, /* switched out while runnable: [out, in) is RUNNABLE */
	CC_EP_CTX_SHIFT = 1,    /* 3 bits: CC_CTX_* of the waker */
	CC_EP_CTX_MASK = 7 << 1,
	CC_EP_EARLY_WAKE = 1 << 4, /* woken after the last switch-in, before the switch-out:
				    * wake == out, the rest is run queue */
	CC_EP_CLAMPED = 1 << 5,    /* out <= wake <= in did not hold and was forced */
	CC_EP_SEEDED = 1 << 6,     /* began before attach; out is from sched_info.last_arrival or a
				    * later bound, never earlier than the truth by more than ~40 us */
	CC_EP_BORN = 1 << 7,       /* a new task's first wait for a CPU: out = wake = fork */
};

/* What ran when the wake was given. ABI: append only. */
enum {
	CC_CTX_TASK = 0,    /* the waker task itself, in process context */
	CC_CTX_SOFTIRQ = 1, /* an interrupt on top of waker_tid, which is not to blame */
	CC_CTX_HARDIRQ = 2,
	CC_CTX_IDLE = 3, /* an interrupt on an idle CPU (swapper) */
	CC_CTX_KSOFTIRQD = 4,
	CC_CTX_KTHREAD = 5, /* a kernel thread: jbd2, kworker, md, ... */
	CC_CTX_IRQ = 6,     /* an interrupt, soft or hard not told apart */
	CC_CTX_UNKNOWN = 7,
};

struct cc_rec_episode {
	struct cc_rec h; /* ts = in: back on the CPU. aux = syscall nr as __s16; -1: none (a page
			  * fault or a preempted user program); -2: not known */
	__u32 tid;
	__u32 seq;       /* per task, +1 for each episode, lost ones included */
	__u64 out;       /* off the CPU */
	__u64 wake;      /* first sched_waking after out; 0: none seen */
	__u32 state;     /* task->__state at out, all bits (1 S, 2 D, 4 T, 8 t, 0x10/0x20 dead) */
	__u32 waker_tid; /* 0: none, or swapper (see CC_EP_CTX) */
	__u32 waker_tgid;
	__u32 key;  /* futex: low 32 bits of uaddr; other syscalls on an fd: the fd; else 0 */
	__u64 lost; /* CC_LOST(cnt, ns): episodes of this task that found the ring full since
		     * its last written one. They lie in [the last one's in, out), in all
		     * ns long; where in it is not known. Reported as UNKNOWN(lost) in
		     * [out - ns, out). */
};
_Static_assert(sizeof(struct cc_rec_episode) == 64, "wire size");

#define CC_LOST_NS_BITS 44
#define CC_LOST_NS_MAX ((1ull << CC_LOST_NS_BITS) - 1)
#define CC_LOST_CNT_MAX ((1ull << (64 - CC_LOST_NS_BITS)) - 1)
#define CC_LOST(cnt, ns) ((__u64)(cnt) << CC_LOST_NS_BITS | (__u64)(ns))
#define CC_LOST_NS(lost) ((lost)&CC_LOST_NS_MAX)
#define CC_LOST_CNT(lost) ((lost) >> CC_LOST_NS_BITS)

/* ---- EXTRA -------------------------------------------------------------------------------- */

/* Kind of the file a syscall waited on. ABI: append only. */
enum {
	CC_FD_NONE = 0,
	CC_FD_FILE = 1,
	CC_FD_DIR = 2,
	CC_FD_CHAR = 3,
	CC_FD_BLOCK = 4,
	CC_FD_PIPE = 5,
	CC_FD_SOCK_TCP = 6,
	CC_FD_SOCK_UDP = 7,
	CC_FD_SOCK_UNIX = 8,
	CC_FD_SOCK_OTHER = 9,
	CC_FD_EPOLL = 10,
	CC_FD_EVENTFD = 11,
	CC_FD_TIMERFD = 12,
	CC_FD_SIGNALFD = 13,
	CC_FD_INOTIFY = 14,
	CC_FD_IO_URING = 15,
	CC_FD_OTHER = 16,
	CC_FD_SHM = 17, /* no descriptor: of the file that a shared futex's memory is of */
};

/* cc_rec.flags of EXTRA. ABI: append only. */
enum {
	CC_EX_OWNER = 1 << 0,     /* owner is valid */
	CC_EX_MIGRATED = 1 << 1,  /* queued on another CPU than the one it then ran on */
	CC_EX_THROTTLED = 1 << 2, /* throttled_ns is valid */
	CC_EX_EXEC = 1 << 3,      /* ran_ns is valid */
	CC_EX_LATE = 1 << 4,      /* stacks were taken on resume (sched_exit_tp) */
	CC_EX_TIMEOUT = 1 << 5,   /* the wait had a timeout and was woken by its timer */
	CC_EX_SIGNAL = 1 << 6,    /* resumed with a signal pending */
};

struct cc_rec_extra {    /* same tid and seq as its EPISODE, which comes before or after it */
	struct cc_rec h; /* ts = in. aux = syscall nr, as in EPISODE */
	__u32 tid;
	__u32 seq;
	__u64 ustack; /* STACK keys; 0: none */
	__u64 kstack;
	__u64 waker_ustack;
	__u64 waker_kstack;
	__u64 args[6];    /* syscall arguments */
	__u64 uaddr;      /* futex: address waited on, 0: no futex. klock: address of the rwsem */
	__u32 owner;      /* tid of the lock's owner at out, from the owner word; 0: free/unknown */
	__u32 owner_tgid; /* of owner; 0: same process as the task */
	__u64 throttled_ns; /* CFS bandwidth throttling within the run-queue part */
	__u64 ran_ns;       /* delta sum_exec_runtime from the previous in to this out */
	__u32 occupant_tid; /* who held the CPU longest while this task was queued; 0: none */
	__u32 occupant_tgid;
	__u64 occupant_ns; /* how much of [wake, in) it held */
	char occupant_comm[CC_COMM_LEN];
	__u64 occupant_cgroup; /* cgroup id; 0: not known */
	char waker_comm[CC_COMM_LEN];
	char owner_comm[CC_COMM_LEN];
	__s32 fd;         /* -1: none */
	__u32 fd_kind;    /* CC_FD_* */
	__u64 fd_id;      /* socket cookie, or inode */
	__u32 fd_dev;     /* s_dev of the inode */
	__u32 sock_ports; /* local << 16 | remote, host order; SHM: page of the file */
	__u32 srtt_us;    /* TCP: smoothed round trip time at resume; 0: not known */
	__u32 retrans;    /* TCP: retransmissions during this wait */
};
_Static_assert(sizeof(struct cc_rec_extra) == 240, "wire size");

/* ---- stacks ------------------------------------------------------------------------------- */

/* cc_rec.flags of STACK. ABI: append only. */
enum {
	CC_ST_KERNEL = 1 << 0,
	CC_ST_COMPLETE = 1 << 1, /* reaches the thread's start */
	CC_ST_GUESSED = 1 << 2,  /* by frame pointers or code; nothing confirms it */
};

#define CC_STACK_MAX 128 /* frames */

struct cc_rec_stack {
	struct cc_rec h; /* aux = number of frames */
	__u64 key;       /* of its content: flags, tgid (0 for kernel), frames, gen; never 0 */
	__u32 tgid;      /* whose mappings the addresses are in; 0: kernel */
	__u32 gen;       /* ... as they were then: see NAME and MODULE */
	__u64 ip[];      /* innermost first; return addresses are as on the stack */
};
_Static_assert(sizeof(struct cc_rec_stack) == 32, "wire size");

struct cc_rec_sample {
	struct cc_rec h;
	__u32 tid;
	__u32 tgid;
	__u64 ustack, kstack; /* STACK keys */
	__u64 ip;
};
_Static_assert(sizeof(struct cc_rec_sample) == 48, "wire size");

/* ---- sockets and requests ----------------------------------------------------------------- */

enum { /* cc_rec.aux of SOCKOP. ABI: append only. */
       CC_OP_RECV = 1,
       CC_OP_SEND = 2,
       CC_OP_CONNECT = 3, /* to an upstream, in process context */
       CC_OP_ACCEPT = 4,
       CC_OP_EOF = 5, /* recv of 0 */
       CC_OP_CLOSE = 6,
       CC_OP_EAGAIN = 7, /* a send that found the buffer full */
       CC_OP_DATA = 8,   /* data arrived (in the softirq; tid = 0) */
};

enum {                          /* cc_rec.flags of SOCKOP. ABI: append only. */
       CC_SO_UPSTREAM = 1 << 0, /* the target is the client here; else a server socket */
       CC_SO_LINKED = 1 << 1,   /* link_* name the request by one vote (send or connect side) */
       CC_SO_VOTE2 = 1 << 2,    /* the reply's side agreed too */
       CC_SO_BY_PROXY = 1 << 3, /* as CC_RQ_BY_PROXY */
};

struct cc_addr {
	__u8 family; /* AF_INET, AF_INET6, AF_UNIX; 0: not known */
	__u8 pad;
	__u16 port;  /* host order */
	__u8 ip[16]; /* v4: the first 4 bytes, network order; unix: inode of the peer, of this end
		      */
	__u8 pad2[4];
};
_Static_assert(sizeof(struct cc_addr) == 24, "wire size");

struct cc_rec_sockop {
	struct cc_rec h;
	__u64 cookie; /* the socket */
	__u32 tid;    /* who did it; 0: softirq */
	__u32 tgid;
	__u64 bytes;
	__u64 link_cookie;  /* CC_SO_LINKED: the server socket ... */
	__u32 link_ordinal; /* ... and the request on it */
	__u32 ordinal;      /* server socket: the request on this socket it belongs to; 0: none */
	__u16 local_port, pad[3];
	struct cc_addr peer;
};
_Static_assert(sizeof(struct cc_rec_sockop) == 88, "wire size");

enum {                   /* cc_rec.aux of REQ and OPEN_REQ: why it ended. ABI: append only. */
       CC_END_NONE = 0,  /* OPEN_REQ */
       CC_END_NEXT = 1,  /* the next request arrived */
       CC_END_QUIET = 2, /* no send for 50 ms after the answer began */
       CC_END_FIN = 3,   /* we closed */
       CC_END_EOF = 4,   /* the peer closed */
       CC_END_RST = 5,
       CC_END_STOP = 6, /* tracing stopped */
       CC_END_EXIT = 7, /* the process ended */
};

enum {                         /* cc_rec_req.what. ABI: append only. */
       CC_RQ_RESUMED = 1 << 0, /* reported before, then more was sent: replaces that row */
       CC_RQ_STREAM = 1 << 1,  /* resumed twice or more: not in percentiles */
       CC_RQ_NO_REPLY = 1 << 2,
       CC_RQ_UNSOLICITED = 1 << 3, /* sent without having received */
       CC_RQ_ACCEPTQ = 1 << 4,     /* data came before accept() */
       CC_RQ_LATE = 1 << 5,        /* already running at attach: start is a bound */
       CC_RQ_SETUP = 1 << 6,       /* looks like a TLS or protocol start-up exchange */
       CC_RQ_BUSY = 1 << 7,        /* pipelined or multiplexed: a busy period, not one request */
       CC_RQ_SPLICE_IN = 1 << 8,   /* read without recv: read time not known */
       CC_RQ_ORDINAL_GE = 1 << 9,  /* late attach: ordinal is a lower bound */
       CC_RQ_UDP = 1 << 10,
       CC_RQ_UNIX = 1 << 11,
       CC_RQ_CONCURRENT = 1 << 12, /* UDP: several open at once, its answer may be another's */
       CC_RQ_RETOLD = 1 << 13,     /* same id was told before by CC_END_QUIET */
       CC_RQ_BY_PROXY =
	       1 << 14,          /* read or sent by other than the thread told: by io_uring's for
				  * its ring's owner, by a packet that left later. Tids are inferred */
       CC_RQ_FAREWELL = 1 << 15, /* by the engine: a few bytes that ended the connection */
       CC_RQ_UNREAD = 1 << 16,   /* it lies in the socket, or did until the end: nobody read it */
       CC_RQ_SHARED = 1 << 17,   /* several targets had its connection at attach: tgid is one */
};

struct cc_rec_req {
	struct cc_rec h; /* REQ: ts = when it was told. OPEN_REQ: now */
	__u64 cookie;
	__u32 ordinal; /* from 1 on the connection */
	__u32 what;    /* CC_RQ_* */
	__u64 arrival; /* data_ready of its first byte; 0: not seen (first_recv counts) */
	__u64 first_recv, last_recv;
	__u64 first_send, last_send; /* last_send = end; 0: nothing sent yet */
	__u64 accepted;              /* accept() returned; 0: before attach or not told */
	__u64 bytes_in, bytes_out;
	__u32 recv_cnt, send_cnt;
	__u64 eagain_ns; /* time between a send that found the buffer full and the next send */
	__u32 eagain_cnt;
	__u32 recv_tid; /* first recv */
	__u32 send_tid; /* last send */
	__u32 tgid;
	__u16 local_port, pad[3];
	struct cc_addr peer;
	__u64 up_cookie; /* linked upstream socket; 0: none */
	__u32 up_votes;  /* 0..2 */
	__u32 up_calls;  /* calls to upstreams linked to this request */
	struct cc_addr up_peer;
	char comm[CC_COMM_LEN]; /* of recv_tid */
	__u64 netns;            /* inode of the network namespace */
};
_Static_assert(sizeof(struct cc_rec_req) == 224, "wire size");

struct cc_rec_listen {
	struct cc_rec h; /* aux: 1 now listening, 0 no more */
	__u64 cookie;
	__u32 tgid;
	__u16 port, family;
	__u64 netns;
};
_Static_assert(sizeof(struct cc_rec_listen) == 40, "wire size");

/* ---- tasks -------------------------------------------------------------------------------- */

enum {                   /* cc_rec.aux of TASK. ABI: append only. */
       CC_TASK_FORK = 1, /* tid is the new task, parent the task that made it */
       CC_TASK_EXEC = 2, /* old_tid: the thread that called exec, now tid */
       CC_TASK_EXIT = 3,
       CC_TASK_COMM = 4,
       CC_TASK_NAMED = 5, /* only a name for a tid outside the target */
};

enum {                        /* cc_rec.flags of TASK and OPEN_TASK. ABI: append only. */
       CC_TF_TRACED = 1 << 0, /* its episodes are in the stream */
       CC_TF_KTHREAD = 1 << 1,
       CC_TF_FOLLOWED = 1 << 2, /* traced to explain, not a target */
       CC_TF_ATTACH = 1 << 3,   /* OPEN_TASK: the one at attach */
       CC_TF_STOP = 1 << 4,     /* OPEN_TASK: the one at stop */
};

struct cc_rec_task {
	struct cc_rec h;
	__u32 tid, tgid;
	__u64 start;     /* task start time, the other half of its identity */
	__u32 parent;    /* FORK: tid of the creator */
	__u32 old_tid;   /* EXEC */
	__s32 exit_code; /* EXIT: as in task->exit_code */
	__u32 ns_tid;    /* in its own pid namespace; 0: same */
	__u64 cgroup;
	char comm[CC_COMM_LEN];
};
_Static_assert(sizeof(struct cc_rec_task) == 72, "wire size");

struct cc_rec_open_task {
	struct cc_rec h; /* ts = now. aux = syscall nr, as in EPISODE */
	__u32 tid, tgid;
	__u64 start;  /* task start time */
	__u64 out;    /* off the CPU since; 0: on the CPU */
	__u64 wake;   /* woken at, not yet running; 0: not woken */
	__u32 state;  /* task->__state now */
	__u32 seq;    /* the number its next EPISODE will have */
	__u32 parent; /* tgid of the parent process */
	__u32 key;    /* as in EPISODE */
	__u64 args[6];
	__u64 uaddr;
	__u32 owner, owner_tgid; /* as in EXTRA; 0: none known */
	__u64 ustack, kstack;    /* STACK keys; 0: none */
	__s32 fd;
	__u32 fd_kind;
	__u64 fd_id;
	__u64 cgroup;
	char comm[CC_COMM_LEN];
	__u64 lost;    /* CC_LOST(): folded so far and not told by an EPISODE yet */
	__u64 last_in; /* on the CPU since, when out is 0 */
	/* absent in older files: 0. As in EXTRA, up to now */
	__u32 sock_ports;
	__u32 srtt_us, retrans;
	__u32 pad;
};
_Static_assert(sizeof(struct cc_rec_open_task) == 216, "wire size");

struct cc_rec_wake {     /* an import, or a wake of a task whose EPISODE was lost */
	struct cc_rec h; /* ts = when; flags: CC_CTX_* */
	__u32 tid;       /* woken */
	__u32 waker_tid, waker_tgid;
	__u32 key; /* futex, if known */
};
_Static_assert(sizeof(struct cc_rec_wake) == 32, "wire size");

struct cc_rec_short {    /* waits below --min-block, since the last SHORT of this task */
	struct cc_rec h; /* ts = until */
	__u32 tid;
	__u32 cnt;
	__u64 since;
	__u64 ns;
};
_Static_assert(sizeof(struct cc_rec_short) == 40, "wire size");

/* ---- the stream itself -------------------------------------------------------------------- */

struct cc_rec_loss {     /* records of no one task: REQ, TASK, SOCKOP, STACK ... */
	struct cc_rec h; /* aux = kind lost; 0: any */
	__u64 from, to;
	__u64 cnt;
	__u64 bytes;
};
_Static_assert(sizeof(struct cc_rec_loss) == 48, "wire size");

struct cc_rec_tick {
	struct cc_rec h;   /* ts = now. flags: 1 = the last one, tracing stopped */
	__u64 drained_to;  /* watermark: all records before it have come */
	__u64 realtime_ns; /* CLOCK_REALTIME at ts */
	__u64 boottime_ns; /* CLOCK_BOOTTIME at ts */
	__u64 interval_ns; /* refresh interval */
};
_Static_assert(sizeof(struct cc_rec_tick) == 48, "wire size");

struct cc_rec_module {
	struct cc_rec h;
	__u64 start, end; /* addresses */
	__u64 file_off;
	__u32 tgid; /* 0: kernel */
	__u32 build_id_len;
	__u8 build_id[24];
	__u64 ino;
	__u32 dev;
	__u32 path_len;
	char path[]; /* path_len bytes, padded with NULs to 8; then, if it is not 0, a __u64: gen */
};
_Static_assert(sizeof(struct cc_rec_module) == 88, "wire size");

enum {                     /* cc_rec.aux of NAME: what id is. ABI: append only. */
       CC_NAME_FRAME = 1,  /* id = address in tgid (0: kernel), id2 = gen (see decode.h):
			    * "fn+0x41", then module, file:line */
       CC_NAME_CGROUP = 2, /* id = cgroup id */
       CC_NAME_FILE = 3,   /* id = inode, id2 = device: path */
       CC_NAME_ADDR = 4,   /* id = data address in tgid: "cart_mutex" or "app+0x4040"; "": nothing
			    * that has a name. Two that differ: it has meant both, and has none */
       CC_NAME_HOST = 5,   /* text of the machine: kernel, arch, host */
       CC_NAME_SOCK = 6,   /* id = socket cookie */
       CC_NAME_NOTE = 7,   /* a line for the user about this trace: a tier, a limit */
};

struct cc_rec_name {
	struct cc_rec h;
	__u64 id, id2;
	__u32 tgid;
	__u16 len[2]; /* bytes of text, then of module or place */
	char text[];  /* len[0] + len[1] bytes, padded with NULs to 8; not trusted */
};
_Static_assert(sizeof(struct cc_rec_name) == 40, "wire size");

enum {                          /* cc_rec.flags of TARGET. ABI: append only. */
       CC_TG_CAME = 1 << 0,     /* by itself: fork, --follow */
       CC_TG_FOLLOWED = 1 << 1, /* by --follow: it explains, its requests are no rows */
};

struct cc_rec_target {
	struct cc_rec h;
	__u32 tgid;
	__u32 parent;
	__u64 start;
	char comm[CC_COMM_LEN];
};
_Static_assert(sizeof(struct cc_rec_target) == 48, "wire size");

enum {                        /* cc_rec.aux of OPTION. ABI: append only. */
       CC_OPT_MIN_BLOCK = 1,  /* ns */
       CC_OPT_STACK_MIN = 2,  /* ns */
       CC_OPT_SAMPLE = 3,     /* 1 request in N has a path */
       CC_OPT_STACK_TIER = 4, /* 1 late, 2 waking, 3 eager */
       CC_OPT_REQ_TIER = 5,   /* 0 none, 1 lengths, 2 sequence numbers, 3 system calls, 4: 2b */
       CC_OPT_ARCH = 6,       /* ELF e_machine */
       CC_OPT_CPUS = 7,
       CC_OPT_IMPORTED = 8, /* CC_IMPORTED_*; 0: our own probes */
       CC_OPT_GO_TIER = 9,  /* 0 no goroutines, 1 identity, 2 waits, 3 every status change */
};

enum {                                  /* value of CC_OPT_IMPORTED. ABI: append only. */
       CC_IMPORTED = 1 << 0,            /* from another tool's trace; no sockets known */
       CC_IMPORTED_NO_CONTEXT = 1 << 1, /* some wakers may have been interrupted ones */
       CC_IMPORTED_WAKEUPS = 1 << 2,    /* wakers are those of sched_wakeup, which may run on the
					 * woken task's CPU */
};

enum {                          /* cc_rec.aux of COUNTER. ABI: append only. */
       CC_CNT_DROP_EPISODE = 1, /* folded into their task's next record */
       CC_CNT_DROP_EXTRA = 2,
       CC_CNT_DROP_REQ = 3,
       CC_CNT_DROP_TASK = 4,
       CC_CNT_DROP_SOCKOP = 5,
       CC_CNT_DROP_SNAP = 6,
       CC_CNT_CLAMPED = 7,
       CC_CNT_WAKE_RUNNING = 8,  /* wakes of a task that was running */
       CC_CNT_UNWOUND = 9,       /* user stacks taken */
       CC_CNT_UNWOUND_FULL = 10, /* of these, that reach the thread's start */
       CC_CNT_SCHED_EVENTS = 11,
       CC_CNT_STORAGE_FAIL = 12, /* task or socket storage could not be had */
       CC_CNT_RECURSION = 13,    /* program runs the kernel skipped */
       CC_CNT_SNAP_BUDGET = 14,  /* stacks left out on purpose in a burst of waits: nothing lost */
       CC_CNT_DROP_GO = 15,      /* Go records that found the ring full */
       CC_CNT_GO_EPISODES = 16,  /* waits of goroutines seen */
       CC_CNT_GO_HITS = 17,      /* of the probes on Go programs */
       CC_CNT_CHAINS = 18,       /* stacks of waits and wakers unwound in the kernel */
       CC_CNT_SNAPS = 19,        /* that were copied */
       CC_CNT_STACK_BYTES = 20,  /* of ring that stacks took, kernel stacks included */
       CC_CNT_VERIFIED = 21,     /* of CHAINS, unwound once more here to compare (tests) ... */
       CC_CNT_VERIFY_WRONG = 22, /* ... and not alike */
       CC_CNT_UNSEEN = 23,       /* switches of tasks the kernel did not show; some also lost */
       CC_CNT_LAST = CC_CNT_UNSEEN,
};

struct cc_rec_counter {
	struct cc_rec h;
	__u64 value;
};
_Static_assert(sizeof(struct cc_rec_counter) == 24, "wire size");

/* ---- Go ----------------------------------------------------------------------------------- */

/* cc_rec.flags of GO_EPISODE. ABI: append only. */
enum {
	CC_GE_BORN = 1 << 0,    /* a new goroutine's first wait to be run: out = wake = when it was
				 * made, waker = who made it */
	CC_GE_OPEN = 1 << 1,    /* it still waits: ts = now, in_tid = 0. Told once; its end comes as
				 * an episode with the same seq */
	CC_GE_PREEMPT = 1 << 2, /* it did not wait: preempted or yielded (out = wake) */
	CC_GE_CLAMPED = 1 << 3, /* out <= wake <= in did not hold and was forced */
	CC_GE_ABOUT = 1 << 4, /* out as the runtime says in its traces: up to a collection early */
};

struct cc_rec_go_episode {
	/* ts = in: executes again; told when that is seen. aux = wait reason of this Go version */
	struct cc_rec h;
	__u64 goid;
	__u32 tgid;
	__u32 tid;        /* thread it ran on before; BORN: thread it was made on */
	__u64 out;        /* gopark */
	__u64 wake;       /* ready; 0: netpoll or timer */
	__u64 waker_goid; /* 0: none */
	__u32 waker_tid;
	__u32 wait_class; /* WAIT_* mapped from the reason by user space */
	__u64 object;     /* channel, lock or pollDesc */
	__u64 ustack;     /* STACK key */
	__u64 lost;       /* CC_LOST() */
	/* absent in older files: 0 */
	__u32 in_tid;     /* thread it executes on again; 0: not known */
	__u32 seq;        /* per goroutine, +1 each, lost ones included */
	__u64 fd_id;      /* IO wait: socket cookie, or inode; 0: not known */
	__s32 fd;         /* IO wait: valid when fd_kind is not 0 */
	__u32 fd_kind;    /* CC_FD_* */
	__u32 sock_ports; /* local << 16 | remote, host order */
	__u32 pad;
};
_Static_assert(sizeof(struct cc_rec_go_episode) == 120, "wire size");

enum { CC_GT_ABOUT = 1 << 0 }; /* cc_rec.flags of a dead one: by ts; born: when last seen to live */
struct cc_rec_go_task {        /* aux: 1 born, 2 seen, 3 dead */
	struct cc_rec h;
	__u64 goid, parent_goid;
	__u32 tgid, tid; /* tid: thread it now runs on; born: thread it was made on */
	__u64 start_pc, go_pc;
	__u64 born; /* when it was made; 0: not seen */
};
_Static_assert(sizeof(struct cc_rec_go_task) == 64, "wire size");

/* Told whenever it differs from what was told last of this thread, so also at each switch-out and
 * wake. ts: seen then; the change may have been earlier, since the thread's last record. */
struct cc_rec_go_on { /* aux: 1 got the thread, 0 left it; goid 0: it had none, this is Go */
	struct cc_rec h;
	__u64 goid;
	__u32 tgid, tid;
};
_Static_assert(sizeof(struct cc_rec_go_on) == 32, "wire size");

/*
 * aux: 1 sent, 2 received. flags: 0 about to be put into a buffered channel, 1 exact, 2 peek (what
 * lay at the head of the buffer when the receive began: another may take it first).
 * 4 (with 0 or 1): item names its place in the buffer, at which it was put, or taken with the
 * channel's lock held; what is put into a place follows what was taken out of it.
 * Exact with a peer: goid gave it to (sent) or took it from (received) peer_goid, which waited.
 * Exact without: taken from a buffer; match it by item. item is a hash, never the content.
 */
struct cc_rec_go_item {
	struct cc_rec h;
	__u64 goid, peer_goid, channel, item;
	__u32 tgid, tid;
};
_Static_assert(sizeof(struct cc_rec_go_item) == 56, "wire size");

#endif
