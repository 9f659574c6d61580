/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: where a system call's number and arguments lie, and which calls have a file or a futex. */
#ifndef CC_BPF_ARCH_H
#define CC_BPF_ARCH_H

#include "kernel.h"

#if defined(__TARGET_ARCH_x86)

#define REGS_NR(r) ((long)(r)->orig_ax)
#define REGS_ARG0(r) ((r)->di)
#define REGS_ARG1(r) ((r)->si)
#define REGS_ARG2(r) ((r)->dx)
#define REGS_ARG3(r) ((r)->r10)
#define REGS_ARG4(r) ((r)->r8)
#define REGS_ARG5(r) ((r)->r9)
#define REGS_IP(r) ((r)->ip)
#define REGS_SP(r) ((r)->sp)
#define REGS_BP(r) ((r)->bp)
/* Go's own calling convention (cmd/compile/abi-internal.md); g is the running goroutine */
#define GO_ARG0(r) ((r)->ax)
#define GO_ARG1(r) ((r)->bx)
#define GO_ARG2(r) ((r)->cx)
#define GO_G(r) ((r)->r14)
#define GO_BRANCH(r) ((r)->flags & 0x41) /* jbe is taken: CF or ZF */
#define THREAD_POINTER(t) ((t)->thread.fsbase)
#define TS_COMPAT 0x2 /* thread_info.status: in a 32-bit system call */
#define SYS_FUTEX 202
#define SYS_READ 0
#define SYS_WRITE 1
#define SYS_READV 19
#define SYS_WRITEV 20
#define SYS_SENDFILE 40
#define SYS_SENDTO 44
#define SYS_RECVFROM 45
#define SYS_SENDMSG 46
#define SYS_RECVMSG 47

#define NR_BIT(nr) (1ull << ((nr) % 64))
/* System calls that may sleep and whose first argument is an fd, one word per 64 numbers. */
#define FD_CALLS_0                                                                       \
	(NR_BIT(0) /* read */ | NR_BIT(1) /* write */ | NR_BIT(3) /* close */ |          \
	 NR_BIT(16) /* ioctl */ | NR_BIT(17) /* pread64 */ | NR_BIT(18) /* pwrite64 */ | \
	 NR_BIT(19) /* readv */ | NR_BIT(20) /* writev */ | NR_BIT(40) /* sendfile */ |  \
	 NR_BIT(42) /* connect */ | NR_BIT(43) /* accept */ | NR_BIT(44) /* sendto */ |  \
	 NR_BIT(45) /* recvfrom */ | NR_BIT(46) /* sendmsg */ | NR_BIT(47) /* recvmsg */)
#define FD_CALLS_1                                                                  \
	(NR_BIT(72) /* fcntl */ | NR_BIT(73) /* flock */ | NR_BIT(74) /* fsync */ | \
	 NR_BIT(75) /* fdatasync */ | NR_BIT(77) /* ftruncate */ | NR_BIT(78) /* getdents */)
#define FD_CALLS_2 0ull
#define FD_CALLS_3 \
	(NR_BIT(217) /* getdents64 */ | NR_BIT(221) /* fadvise64 */ | NR_BIT(232) /* epoll_wait \
										   */)
#define FD_CALLS_4                                                                              \
	(NR_BIT(275) /* splice */ | NR_BIT(276) /* tee */ | NR_BIT(277) /* sync_file_range */ | \
	 NR_BIT(278) /* vmsplice */ | NR_BIT(281) /* epoll_pwait */ |                           \
	 NR_BIT(285) /* fallocate */ | NR_BIT(288) /* accept4 */ | NR_BIT(295) /* preadv */ |   \
	 NR_BIT(296) /* pwritev */ | NR_BIT(299) /* recvmmsg */ | NR_BIT(306) /* syncfs */ |    \
	 NR_BIT(307) /* sendmmsg */)
#define FD_CALLS_5 \
	(NR_BIT(326) /* copy_file_range */ | NR_BIT(327) /* preadv2 */ | NR_BIT(328) /* pwritev2 \
										      */)
#define FD_CALLS_6 (NR_BIT(426) /* io_uring_enter */ | NR_BIT(441) /* epoll_pwait2 */)

#define MM_CALLS_0                                                                    \
	(NR_BIT(9) /* mmap */ | NR_BIT(10) /* mprotect */ | NR_BIT(11) /* munmap */ | \
	 NR_BIT(12) /* brk */ | NR_BIT(25) /* mremap */ | NR_BIT(26) /* msync */ |    \
	 NR_BIT(28) /* madvise */ | NR_BIT(30) /* shmat */)

#else
#error "no register layout for this architecture yet"
#endif

#define FUTEX_WAIT 0
#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2 13
#define FUTEX_PRIVATE 128
#define FUTEX_CMD_MASK 0x7f
#define FUTEX_TID_MASK 0x3fffffffu
#define FUTEX_WAITERS 0x80000000u

/* Does system call @nr wait on the file of its first argument? */
static __inline bool nr_has_fd(long nr)
{
	__u64 word;

	if (nr < 0 || nr >= 448)
		return false;
	switch (nr >> 6) {
	case 0:
		word = FD_CALLS_0;
		break;
	case 1:
		word = FD_CALLS_1;
		break;
	case 2:
		word = FD_CALLS_2;
		break;
	case 3:
		word = FD_CALLS_3;
		break;
	case 4:
		word = FD_CALLS_4;
		break;
	case 5:
		word = FD_CALLS_5;
		break;
	default:
		word = FD_CALLS_6;
	}
	return word >> (nr & 63) & 1;
}

/* Does system call @nr take mmap_lock for its work? */
static __inline bool nr_changes_mm(long nr) { return nr >= 0 && nr < 64 && (MM_CALLS_0 >> nr & 1); }

#endif
