/* SPDX-License-Identifier: Apache-2.0 */
/* go_target: what is known of one Go program before it is traced: layout of its runtime, where to
 * probe it, what its wait reasons mean. Plain data: src/symbol/go_bin.h fills it from the file,
 * src/bpf_loader probes by it; they do not know each other. */
#ifndef CC_GO_TARGET_H
#define CC_GO_TARGET_H

#include "base.h"
#include "go_layout.h"

/* id, name. Integer arguments are in AX, BX, CX, DI, SI (arm64: R0 to R4), g in R14 (R28), but for
 * functions in assembler. A function that the compiler inlined everywhere is not there. */
#define GO_FUNCS(X)                                                                                \
	X(GOPARK, "runtime.gopark")             /* (unlockf, lock, u8 reason, ...) by g */         \
	X(READY, "runtime.ready")               /* (gp, traceskip, next) */                        \
	X(RUNQPUT, "runtime.runqput")           /* (p, gp, next): ready, made, or yields */        \
	X(EXECUTE, "runtime.execute")           /* (gp, inheritTime), on g0 */                     \
	X(CASGSTATUS, "runtime.casgstatus")     /* (gp, u32 old, u32 new) */                       \
	X(NEWPROC1, "runtime.newproc1")         /* (fn, callergp, callerpc, ...), on g0 */         \
	X(GOEXIT0, "runtime.goexit0")           /* (gp), on g0: gp is at its end */                \
	X(GDESTROY, "runtime.gdestroy")         /* (gp), from 1.20: also of leaked coroutines */   \
	X(CHANSEND, "runtime.chansend")         /* (c, ep, block, callerpc) */                     \
	X(CHANRECV, "runtime.chanrecv")         /* (c, ep, block) */                               \
	X(SEND, "runtime.send")                 /* (c, sg, ep, ...): gives to waiting sg.g */      \
	X(RECV, "runtime.recv")                 /* (c, sg, ep, ...): takes from waiting sg.g */    \
	X(CLOSECHAN, "runtime.closechan")       /* (c): wakes all who wait */                      \
	X(SELECTGO, "runtime.selectgo")         /* (cas0, order0, pc0, nsends, nrecvs, block) */   \
	X(SEMACQUIRE1, "runtime.semacquire1")   /* (addr, lifo, profile, skip, reason) */          \
	X(SEMRELEASE1, "runtime.semrelease1")   /* (addr, handoff, skip) */                        \
	X(NETPOLLBLOCK, "runtime.netpollblock") /* (pd, mode, waitio) */                           \
	X(ENTERSYSCALL, "runtime.entersyscall") /* () */                                           \
	X(EXITSYSCALL, "runtime.exitsyscall")   /* () */                                           \
	X(GCASSIST, "runtime.gcAssistAlloc")    /* (gp): g pays for what it allocated */           \
	X(STOPTHEWORLD, "runtime.stopTheWorldWithSema")   /* (reason) */                           \
	X(STARTTHEWORLD, "runtime.startTheWorldWithSema") /* (now, ...) */                         \
	X(CORO, "runtime.coroswitch_m")                   /* (gp), on g0: from 1.23 */             \
	X(COROSTART, "runtime.corostart")                 /* () by a new coroutine */              \
	X(GOSCHED, "runtime.Gosched")                     /* () by g: to the back of the queue */  \
	X(GOPREEMPT, "runtime.gopreempt_m")               /* (gp), on g0 */                        \
	X(GOGUARDED, "runtime.goschedguarded_m")          /* (gp), on g0 */                        \
	X(GOYIELD, "runtime.goyield_m")                   /* (gp), on g0: to its own queue */      \
	X(NEWPROC_ON_G0, "runtime.newproc.func1")         /* of newproc(), on g0 */                \
	X(GOSCHEDIMPL, "runtime.goschedImpl")             /* (gp, ...), on g0: to the back */      \
	X(PREEMPTPARK, "runtime.preemptPark")             /* (gp), on g0: until it is looked at */ \
	X(TYPEDMEMMOVE, "runtime.typedmemmove")           /* (type, dst, src) */

/* Calls within a function: id, caller, callee, which of them, what is known as. */
#define GO_CALLS(X)                                                       \
	X(MADE, NEWPROC_ON_G0, RUNQPUT, 0, "runtime.newproc, to queue")   \
	X(PUT, CHANSEND, TYPEDMEMMOVE, 0, "runtime.chansend, to buffer")  \
	X(TAKE, CHANRECV, TYPEDMEMMOVE, 0, "runtime.chanrecv, of buffer") \
	X(SELECT0, SELECTGO, TYPEDMEMMOVE, 0, "runtime.selectgo, buffer") \
	X(SELECT1, SELECTGO, TYPEDMEMMOVE, 1, "runtime.selectgo, buffer") \
	X(PASS, RECV, TYPEDMEMMOVE, 1, "runtime.recv, to buffer")

enum go_func_id { /* sites: functions, then calls */
#define X(id, name) GO_FN_##id,
		  GO_FUNCS(X) GO_FN_CNT,
#undef X
		  GO_CALL_BASE = GO_FN_CNT - 1,
#define X(id, in, of, nth, name) GO_FN_CALL_##id,
		  GO_CALLS(X) GO_SITE_CNT
#undef X
};

/* What a uprobe costs depends on the instruction it replaces. */
enum go_insn {
	GO_INSN_PUSH, /* emulated by the kernel */
	GO_INSN_JCC,  /* emulated; of the stack check: see repeats below */
	GO_INSN_NOP,  /* emulated */
	GO_INSN_CALL, /* emulated, a little dearer */
	GO_INSN_NOP5, /* a nop of 5 bytes: from Linux 6.18 on it becomes a call, a quarter as dear
		       */
	GO_INSN_STEP, /* single-stepped: some 13 times as dear */
	GO_INSN_CNT
};

struct go_site {
	uint64_t off;   /* of the probe in the file; 0: the function is not there */
	uint64_t entry; /* of the function, as linked */
	uint32_t size;  /* of the function */
	uint16_t delta; /* the probe is so many bytes behind the entry */
	uint8_t insn;   /* enum go_insn */
	bool args;      /* all argument registers are as at the entry */
	/* On the branch of the stack check: if it is taken (amd64: CF or ZF is set), the stack is
	 * made larger and the function begins anew: that hit does not count, another one comes. */
	bool repeats;
	bool framed; /* the frame is made already; else the return address is at *sp */
};

/* Where the runtime calls ready(gp, ...), or what does nothing but that in the end, if some of that
 * is where it costs little; else none. No two of them are passed for the same. */
#define GO_READY_MAX 32
enum go_ready_arg {                 /* what tells there which goroutine it is */
		    GO_READY_G,     /* (gp, ...) */
		    GO_READY_SUDOG, /* (sudog, ...) */
		    GO_READY_SEND,  /* (channel, sudog, ...), and it is given an item */
};

struct go_ready {
	uint32_t cnt;
	uint32_t nops; /* of these, on nops of 5 bytes */
	struct go_ready_at {
		uint64_t off; /* in the file */
		uint8_t arg;  /* enum go_ready_arg */
		bool nop;
	} at[GO_READY_MAX];
};

#define GO_HANDLERS_MAX 32
#define GO_REASONS_MAX 64
#define GO_REASON_LEN 40

struct go_reasons {
	uint32_t cnt; /* 0: the table was not found */
	char name[GO_REASONS_MAX][GO_REASON_LEN];
	uint8_t cls[GO_REASONS_MAX]; /* enum wait_class, by name; WAIT_BLOCKED: not known */
};

enum go_found { /* how something was found */
		GO_FOUND_NONE,
		GO_FOUND_DWARF,
		GO_FOUND_TABLE,  /* by version */
		GO_FOUND_FILE,   /* --go-offsets */
		GO_FOUND_NEWEST, /* that of the newest version known, which this one is newer than:
				  * only g and m can be checked live, so no hand-off by it */
		GO_FOUND_LIVE,   /* derived from a running process */
		GO_FOUND_BUILDINFO,
		GO_FOUND_SCAN, /* the string the program prints itself with */
		GO_FOUND_USER, /* told by the user */
		GO_FOUND_CNT
};

struct go_target {
	uint16_t machine;   /* EM_X86_64 or EM_AARCH64 */
	char version[64];   /* "go1.19.8" */
	unsigned int minor; /* 19; never below 18 */
	unsigned int patch; /* 8 */
	enum go_found version_by;
	struct go_layout layout;
	enum go_found layout_by; /* GO_FOUND_NONE: only live derivation can give one */
	bool has_tls;
	int64_t tls_off; /* g is at thread pointer + this, if has_tls */
	uint64_t allgs;  /* where a running process has the list of all its goroutines; 0: not known
			  */
	struct go_site sites[GO_SITE_CNT];
	struct go_ready ready;
	uint64_t handlers[GO_HANDLERS_MAX]; /* functions whose goroutine is a request, as linked */
	uint32_t handler_cnt;               /* more than fit: GO_HANDLERS_MAX + 1 */
	struct go_reasons reasons;
};

/* Does the name of a function that a goroutine begins in, or that has the go statement in it, say
 * that the goroutine serves one request and ends with it? */
bool go_names_handler(const char *name, size_t len);

const char *go_func_name(unsigned int id);   /* of a site; "?" beyond the table */
const char *go_found_name(unsigned int how); /* "?" beyond the table */
const char *go_insn_name(unsigned int insn);

#endif
