/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the syscalls that core/classify.c knows, with their x86-64 numbers, sorted by name.
 * Source: arch/x86/entry/syscalls/syscall_64.tbl. */
#include "sched_line.h"

static const struct {
	const char *name;
	int16_t nr;
} syscalls[] = {
	{ "accept", 43 },
	{ "accept4", 288 },
	{ "access", 21 },
	{ "brk", 12 },
	{ "clock_nanosleep", 230 },
	{ "clone", 56 },
	{ "clone3", 435 },
	{ "connect", 42 },
	{ "copy_file_range", 326 },
	{ "creat", 85 },
	{ "epoll_pwait", 281 },
	{ "epoll_pwait2", 441 },
	{ "epoll_wait", 232 },
	{ "execve", 59 },
	{ "fallocate", 285 },
	{ "fcntl", 72 },
	{ "fdatasync", 75 },
	{ "flock", 73 },
	{ "fsync", 74 },
	{ "ftruncate", 77 },
	{ "futex", 202 },
	{ "futex_wait", 455 },
	{ "futex_waitv", 449 },
	{ "getdents", 78 },
	{ "getdents64", 217 },
	{ "getrandom", 318 },
	{ "io_getevents", 208 },
	{ "io_pgetevents", 333 },
	{ "io_uring_enter", 426 },
	{ "lstat", 6 },
	{ "madvise", 28 },
	{ "mkdir", 83 },
	{ "mkdirat", 258 },
	{ "mmap", 9 },
	{ "mprotect", 10 },
	{ "mq_timedreceive", 243 },
	{ "mq_timedsend", 242 },
	{ "mremap", 25 },
	{ "msgrcv", 70 },
	{ "msgsnd", 69 },
	{ "msync", 26 },
	{ "munmap", 11 },
	{ "nanosleep", 35 },
	{ "newfstatat", 262 },
	{ "open", 2 },
	{ "openat", 257 },
	{ "openat2", 437 },
	{ "pause", 34 },
	{ "poll", 7 },
	{ "ppoll", 271 },
	{ "pread64", 17 },
	{ "preadv", 295 },
	{ "preadv2", 327 },
	{ "pselect6", 270 },
	{ "pwrite64", 18 },
	{ "pwritev", 296 },
	{ "pwritev2", 328 },
	{ "read", 0 },
	{ "readahead", 187 },
	{ "readv", 19 },
	{ "recvfrom", 45 },
	{ "recvmmsg", 299 },
	{ "recvmsg", 47 },
	{ "rename", 82 },
	{ "renameat", 264 },
	{ "renameat2", 316 },
	{ "rmdir", 84 },
	{ "rt_sigsuspend", 130 },
	{ "rt_sigtimedwait", 128 },
	{ "select", 23 },
	{ "semop", 65 },
	{ "semtimedop", 220 },
	{ "sendfile", 40 },
	{ "sendmmsg", 307 },
	{ "sendmsg", 46 },
	{ "sendto", 44 },
	{ "splice", 275 },
	{ "stat", 4 },
	{ "statx", 332 },
	{ "sync", 162 },
	{ "sync_file_range", 277 },
	{ "syncfs", 306 },
	{ "tee", 276 },
	{ "truncate", 76 },
	{ "unlink", 87 },
	{ "unlinkat", 263 },
	{ "vfork", 58 },
	{ "vmsplice", 278 },
	{ "wait4", 61 },
	{ "waitid", 247 },
	{ "write", 1 },
	{ "writev", 20 },
};

int32_t sched_syscall_nr(struct slice name)
{
	size_t lo = 0, hi = ARRAY_SIZE(syscalls);

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		size_t len = strlen(syscalls[mid].name);
		int c = memcmp(syscalls[mid].name, name.p, CC_MIN(len, name.n));

		if (!c)
			c = (len > name.n) - (len < name.n);
		if (!c)
			return syscalls[mid].nr;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -2;
}
